/* Iterative walks over the graph of values, with an explicit worklist instead of recursion. A chain of operations may
 * be as long as the kernel, and recursion over it would exceed the stack of the compiling thread. */
#ifndef TLC_IR_GRAPH_H
#define TLC_IR_GRAPH_H

#include "ir/ir.h"

/* A worklist of values, each of which is visited once. During such a walk no other walk over the same values may begin
 * (first_visit). Zero-initialised except for `id`: {.id = begin_walk(ctx)}. */
struct value_walk {
	u32 id;
	struct arena scratch;
	VEC(const struct value *) work;
};
void visit_later(struct value_walk *w, const struct value *v);
/* Adds the operands of o such that the first operand is visited first. */
void visit_operands(struct value_walk *w, const struct op *o);
/* The next value, in depth-first order. NULL at the end of the walk, which frees its memory. */
const struct value *visit_next(struct value_walk *w);
/* Stops a walk early. Returns `answer`. */
bool end_walk(struct value_walk *w, bool answer);

/* A worklist of pairs of values, each of which is visited once. */
struct value_pair {
	const struct value *x, *y;
};
struct pair_walk {
	struct arena scratch;
	struct map partners; /* x → list of the y values visited together with it */
	VEC(struct value_pair) work;
};
void visit_pair(struct pair_walk *w, const struct value *x, const struct value *y);
bool next_pair(struct pair_walk *w, struct value_pair *next);
/* Visits the pairs of operands. False if x and y are not the same result of equal operations (same_operation). */
bool visit_operand_pairs(struct pair_walk *w, struct value_pair at);
bool end_pair_walk(struct pair_walk *w, bool answer);

/* The number of operations from o on, including those in regions. Stops after `most` + 1. */
u32 count_ops(const struct op *o, u32 most);
/* True if an operand of a dot depends on another dot of the block. */
bool chains_dots(struct ir_context *ctx, const struct block *b);

/* True if a and b, which have no regions, compute the same result from the same operands. */
bool same_operation(const struct op *a, const struct op *b);

/* A value and the aspect in which it is required: a dimension, a layout, or 0. */
struct demand {
	struct value *v;
	intptr_t aspect;
};
/* Satisfies `root`, after all demands that it depends on. `missing` finds the first unsatisfied demand that d depends
 * on, if there is one. `make` satisfies d once there is none. */
void meet_demand(struct demand root, bool (*missing)(void *arg, struct demand d, struct demand *first),
		 void (*make)(void *arg, struct demand d), void *arg);

/* A set of values that owns its memory: free it with arena_free(&set->scratch). */
struct value_set {
	struct arena scratch;
	struct map map;
	VEC(const struct value *) work;
};
bool set_has(const struct value_set *set, const struct value *v);
/* False if the set already contains v. */
bool set_add(struct value_set *set, const struct value *v);
/* Adds v and the values that it is computed from, through operations that satisfy `through`. */
void add_sources(struct value_set *set, const struct value *v, bool (*through)(const struct op *o));

/* A step of a backward walk over a block that moves operations up to an earlier insertion point. `needed` holds the
 * values that must be computed there. If o computes one of them, the function tests whether o can be moved too, and
 * adds its operands to `needed`. False if o is needed and cannot be moved. */
bool take_along(struct value_set *needed, const struct op *o);
/* True if the set contains a result of o. */
bool set_has_result(const struct value_set *set, const struct op *o);

#endif

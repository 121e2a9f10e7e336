/* Walks over the graph of values with a list or a stack of their own in place of recursion: a chain of operations may
 * be as long as a kernel, for which the stack of the thread that compiles is too short. */
#ifndef TLC_IR_GRAPH_H
#define TLC_IR_GRAPH_H

#include "ir/ir.h"

/* Values that are still to be visited; each is visited once. While such a walk goes on, no other may begin that meets
 * the same values (first_visit). Zero-initialised but for `id`: {.id = begin_walk(ctx)}. */
struct value_walk {
	u32 id;
	struct arena scratch;
	VEC(const struct value *) work;
};
void visit_later(struct value_walk *w, const struct value *v);
/* The first operand is visited first. */
void visit_operands(struct value_walk *w, const struct op *o);
/* The next value, depth first. NULL at the end of the walk, which frees its memory. */
const struct value *visit_next(struct value_walk *w);
/* Ends a walk before its end. Returns `answer`. */
bool end_walk(struct value_walk *w, bool answer);

/* The same for pairs of values. */
struct value_pair {
	const struct value *x, *y;
};
struct pair_walk {
	struct arena scratch;
	struct map partners; /* x → list of the y that it was visited with */
	VEC(struct value_pair) work;
};
void visit_pair(struct pair_walk *w, const struct value *x, const struct value *y);
bool next_pair(struct pair_walk *w, struct value_pair *next);
bool end_pair_walk(struct pair_walk *w, bool answer);

/* Does an operand of a dot hang on another dot of the block? */
bool chains_dots(struct ir_context *ctx, const struct block *b);

/* Would a and b, which have no regions, compute the same from the same operands? */
bool same_operation(const struct op *a, const struct op *b);

/* A value and the aspect in which it is needed: a dimension, a layout, or 0. */
struct demand {
	struct value *v;
	intptr_t aspect;
};
/* Meets `root`, and before it all demands that it has in turn. `missing` finds the first demand of d that has not been
 * met, if there is one; `make` meets d when there is none. */
void meet_demand(struct demand root, bool (*missing)(void *arg, struct demand d, struct demand *first),
		 void (*make)(void *arg, struct demand d), void *arg);

/* A set of values, with memory of its own: free it with arena_free(&set->scratch). */
struct value_set {
	struct arena scratch;
	struct map map;
	VEC(const struct value *) work;
};
bool set_has(const struct value_set *set, const struct value *v);
/* False if the set has v already. */
bool set_add(struct value_set *set, const struct value *v);
/* Adds v and what it is computed from, as far as operations on the way are `through`. */
void add_sources(struct value_set *set, const struct value *v, bool (*through)(const struct op *o));

/* For a walk backward through a block, from an operation to one in front of which it is to stand. `needed` has the
 * values that must be computed there. If o computes one of them: can it come along? Then its operands are needed, too.
 * True if it does not. */
bool take_along(struct value_set *needed, const struct op *o);
void add_operands(struct value_set *set, const struct op *o);
/* Is one of o's results in the set? */
bool set_has_result(const struct value_set *set, const struct op *o);

#endif

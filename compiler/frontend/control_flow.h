/* Shared by the files about control flow: control_flow.c (how statements end, and run-time branches) and loops.c. */
#ifndef TLC_FRONTEND_CONTROL_FLOW_H
#define TLC_FRONTEND_CONTROL_FLOW_H

#include "frontend/frontend_internal.h"

typedef VEC(const char *) name_vec;

/* The loop around a statement, in its function. */
struct loop {
	const struct loop *outer;
	/* What `break` is: FLOW_BREAK and FLOW_BREAK_OUTER in turns, so that the `else` of a loop, which belongs to the
	 * loop outside, can leave that one. */
	enum flow leave;
	/* Of a run-time loop: the names that its statements assign and that have a value before it, which are all that
	 * an iteration leaves behind. NULL: the loop is unrolled, and every variable lives on. */
	const name_vec *kept;
};

/* What runs next behind a statement: the statements of a body from `at` on, or the iterations from `at` on of an
 * unrolled loop, and then `outer`; or the end of a loop's body, a loop or a function, from which `ends` leads on. All
 * of them have the same loop around. The list ends where a run-time branch does (NULL). */
struct cont {
	const struct body *body;
	const struct stmt *loop; /* unrolled, over the values of `over` */
	const struct val *over;
	i128 at;
	enum flow ends; /* where body and loop are NULL */
	const struct cont *outer;
};

/* --- values as their parts ----------------------------------------------------------------------------------- */

void flatten(struct eval *e, const struct val *v, value_vec *out);
/* v with its run-time parts replaced, in order, by the values at *next. */
struct val rebuild(struct eval *e, struct val v, struct value *const **next);
bool has_run_time_part(const struct val *v);
/* Same structure and types, so that one SSA value can replace either. */
bool same_type(const struct val *a, const struct val *b);
bool is_descriptor(const struct val *v);
/* A descriptor whose flags, of padding and rounding, are run-time values where those of `other` differ; NULL: all. */
struct val run_time_flags(struct eval *e, struct val v, const struct val *other, struct loc at);
void build_yield(struct eval *e, struct block *b, const value_vec *v);
const struct type **types_of(struct eval *e, const value_vec *v);
void result_values(struct eval *e, struct op *o, value_vec *out);
/* A value of the type that nobody reads, at b. */
struct value *build_placeholder(struct builder *b, const struct type *t);

/* --- scopes -------------------------------------------------------------------------------------------------- */

scope copy_scope(struct eval *e, const scope *s);
const struct binding *lookup(const scope *s, const char *name);
/* After code that runs only sometimes: what it assigned since `before` is not known. constants: but for run-time
 * values. */
void forget_assigned(struct eval *e, const scope *before, bool constants, const char *reason);
void bind_unset(struct eval *e, scope *vars, const char *name, const char *reason);
/* Every name that the statements of b may assign. */
void assigned_names(struct eval *e, const struct body *b, name_vec *out);
/* The names that := assigns in x. */
void add_named(struct eval *e, const struct expr *x, name_vec *out);
/* After an error in a condition or a bound: the variables that the statements assign become V_ERROR, so that their
 * uses report nothing. */
void mark_unknown(struct eval *e, const struct body *b);

/* loop_index_liveness.c: may f read the index of its loop after the loop, before it assigns the name again? `known`
 * caches answers for all loops of the function over the same name. */
bool index_is_used_behind(const struct func *f, const struct stmt *loop, struct map *known);

/* --- flow ---------------------------------------------------------------------------------------------------- */

/* The way on is the only one. */
struct outcome goes_on(void);
/* Evaluation is given up. */
struct outcome gives_up(void);
/* Evaluates body, and from its end leads on as `ends` says. It never ends in FLOW_NEXT. */
struct outcome exec_region(struct eval *e, const struct body *body, enum flow ends);
/* What is left of the way `from` is taken for the way `to`, of which there is none. */
struct outcome rename_flow(struct eval *e, struct outcome r, enum flow from, enum flow to);
/* Evaluates the statements of `rest` where r goes on, under a run-time branch if it does not always. */
struct outcome continue_with(struct eval *e, struct outcome r, const struct cont *rest);
struct outcome exec_iterations(struct eval *e, const struct stmt *s, const struct val *over, i128 at,
			       const struct cont *rest);
/* Counts one more run-time branch or loop around the statements that follow; false when there are too many. */
bool count_branch(struct eval *e, struct loc at);
/* Operations go into b from here on. Returns the builder of the outer block, for leave_block. */
struct builder enter_block(struct eval *e, struct block *b);
void leave_block(struct eval *e, struct builder outer);

#endif

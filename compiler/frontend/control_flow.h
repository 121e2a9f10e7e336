/* Interface between the files about control flow: control_flow.c (how statements end, run-time branches) and
 * loops.c. */
#ifndef TLC_FRONTEND_CONTROL_FLOW_H
#define TLC_FRONTEND_CONTROL_FLOW_H

#include "frontend/frontend_internal.h"

typedef VEC(const char *) name_vec;

/* The innermost loop around a statement, within its function. */
struct loop {
	const struct loop *outer;
	/* The flow of a `break`. FLOW_BREAK and FLOW_BREAK_OUTER alternate with the nesting depth, so that a `break` in
	 * the `else` clause of this loop, which leaves the enclosing loop, has a different flow. */
	enum flow leave;
	/* For a run-time loop: the variables that its statements assign and that have a value before the loop. Only
	 * these survive an iteration. NULL: the loop is unrolled, and every variable survives. */
	const name_vec *kept;
};

/* The continuation of a statement: a linked list of code that runs after it. An entry is the rest of a body from
 * statement `at`, or the rest of an unrolled loop from iteration `at`, followed by `outer`. The last entry is the end
 * of a loop body, a loop or a function, and `ends` is the flow from there; or the list ends in NULL, at the end of a
 * run-time branch. All entries have the same enclosing loop. */
struct cont {
	const struct body *body;
	const struct stmt *loop; /* unrolled, over the values of `over` */
	const struct val *over;
	i128 at;
	enum flow ends; /* valid if both body and loop are NULL */
	const struct cont *outer;
};

/* --- parts of values ----------------------------------------------------------------------------------------- */

void flatten(struct eval *e, const struct val *v, value_vec *out);
/* Rebuilds v with its run-time parts replaced, in order, by the values at *next, and advances *next. */
struct val rebuild(struct eval *e, struct val v, struct value *const **next);
bool has_run_time_part(const struct val *v);
/* True if a and b have the same structure and types, so that one set of SSA values can replace either. */
bool same_type(const struct val *a, const struct val *b);
bool is_descriptor(const struct val *v);
/* Turns the padding and rounding flags of descriptor v into run-time values where they differ from those of `other`.
 * NULL: all flags. */
struct val run_time_flags(struct eval *e, struct val v, const struct val *other, struct loc at);
void build_yield(struct eval *e, struct block *b, const value_vec *v);
const struct type **types_of(struct eval *e, const value_vec *v);
void result_values(struct eval *e, struct op *o, value_vec *out);
/* A value of type t that is never read, built at b. */
struct value *build_placeholder(struct builder *b, const struct type *t);

/* --- scopes -------------------------------------------------------------------------------------------------- */

scope copy_scope(struct eval *e, const scope *s);
const struct binding *lookup(const scope *s, const char *name);
/* After code that runs conditionally: unsets each variable that the code assigned since `before`. With `constants`,
 * variables with run-time parts are kept. */
void forget_assigned(struct eval *e, const scope *before, bool constants, const char *reason);
void bind_unset(struct eval *e, scope *vars, const char *name, const char *reason);
/* Collects every name that the statements of b may assign. */
void assigned_names(struct eval *e, const struct body *b, name_vec *out);
/* Collects the names that := assigns in x. */
void add_named(struct eval *e, const struct expr *x, name_vec *out);
/* After an error in a condition or a bound: sets the variables that the statements assign to V_ERROR, so that their
 * uses report no further errors. */
void mark_unknown(struct eval *e, const struct body *b);

/* loop_index_liveness.c: true if f may read the index of the loop after the loop, before it assigns the name again.
 * `known` caches the answers for all loops of f that share the index name. */
bool index_is_used_behind(const struct func *f, const struct stmt *loop, struct map *known);

/* --- flow ---------------------------------------------------------------------------------------------------- */

/* True if some path of r takes the flow. */
static inline bool may(const struct outcome *r, enum flow w)
{
	return r->ways & 1u << w;
}
/* Control continues with the next statement on every path. */
struct outcome goes_on(void);
/* The evaluation stops. */
struct outcome gives_up(void);
/* Evaluates body. Control that reaches its end takes the flow `ends`, so the result never includes FLOW_NEXT. */
struct outcome exec_region(struct eval *e, const struct body *body, enum flow ends);
/* Replaces the flow `from` in r by the flow `to`, which r does not include. */
struct outcome rename_flow(struct eval *e, struct outcome r, enum flow from, enum flow to);
/* Evaluates the statements of `rest` on the paths of r that end in FLOW_NEXT. Where r has other flows too, this code is
 * under a run-time branch. */
struct outcome continue_with(struct eval *e, struct outcome r, const struct cont *rest);
struct outcome exec_iterations(struct eval *e, const struct stmt *s, const struct val *over, i128 at,
			       const struct cont *rest);
/* Increments the nesting depth of run-time branches and loops. False if the depth exceeds MAX_BRANCHES. */
bool count_branch(struct eval *e, struct loc at);

#endif

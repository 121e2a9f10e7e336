/* Mask elimination: comparisons that are provably true are replaced by true.
 *
 * `offs < n` over a tile is true for all elements if the largest left value is less than the smallest right value. Both
 * are affine expressions, and the sign of their difference is often known. */
#include "ir/graph.h"
#include "analysis/comparison.h"
#include "analysis/index_forms.h"
#include "ir/pass.h"

/* An upper bound of a · index over all iterations of a loop whose last step ends exactly at its end: from one multiple
 * of the step to another, or up to cdiv(x, m) for a multiple x of m. Unknown for other loops. `bound` is the end, or a
 * value that is not less. */
static struct affine most_of_index(struct pass_state *s, const struct op *loop, i64 a, const struct value *bound)
{
	const struct value *first = for_lower(loop), *end = for_upper(loop);
	i64 step, m, lo;
	struct affine unknown = {0}, by = affine_constant(0);
	if (!value_const_int(for_step(loop), &step) || step <= 0)
		return unknown;
	if (is_known_multiple(s->k, first, step) && is_known_multiple(s->k, end, step)) {
		by.constant = step;
	} else {
		bound = divided_up(end, &m);
		if (!bound || step != 1 || !value_const_int(first, &lo) || lo < 0 || a % m ||
		    !is_known_multiple(s->k, bound, m))
			return unknown;
		by.constant = m;
		a /= m;
	}
	struct affine most = affine_difference(exact_hi(s->ranges, bound), &by);
	return affine_scaled(&most, a);
}

/* True if the comparison is true in the last iteration of an enclosing loop, and so in all its iterations. */
static bool holds_to_the_end(struct pass_state *s, const struct op *o, const struct affine *excess)
{
	for (const struct op *loop = o->block->parent; loop; loop = loop->block->parent) {
		if (loop->code != IR_FOR)
			continue;
		struct affine f = affine_without_indices(s->ranges, excess, loop, true);
		const struct op *least = def_if(for_upper(loop), IR_MINSI); /* the end is the minimum of two values */
		i64 a = affine_take(&f, for_index(loop));
		for (u32 i = 0; a > 0 && i < (least ? 3 : 1); i++) {
			struct affine most = most_of_index(s, loop, a, i ? operand(least, i - 1) : for_upper(loop));
			most = affine_sum(&f, &most);
			if (never_positive(s->ranges, &most, o))
				return true;
		}
	}
	return false;
}

struct elimination {
	struct pass_state *s;
	struct value_set assumed; /* conditions of assumptions, and the operands of their conjunctions */
};

static bool is_conjunction(const struct op *o)
{
	return o->code == IR_ANDI;
}

static void note_assumption(struct op *o, void *set)
{
	if (o->code == IR_ASSUME)
		add_sources(set, operand(o, 0), is_conjunction);
}

/* True if the user is an assumption, or a conjunction that feeds an assumption. */
static bool feeds_assume(const struct elimination *e, const struct op *user)
{
	return user->code == IR_ASSUME || (is_conjunction(user) && set_has(&e->assumed, result(user)));
}

/* Replaces a comparison that is provably true. Assumptions keep it, because later passes read their conditions. */
static void prove(struct op *o, void *arg)
{
	struct elimination *e = arg;
	struct pass_state *s = e->s;
	struct less l;
	if (o->code != IR_CMPI || !as_less(o, &l))
		return;
	struct affine f = excess(NULL, s->ranges, o, &l);
	if (!f.known || !(never_positive(s->ranges, &f, o) || holds_to_the_end(s, o, &f)))
		return;
	struct builder b = builder_before(s->ctx, o);
	struct value *yes = build_int(&b, result(o)->type, 1);
	for (struct use *u = result(o)->uses, *next; u; u = next) {
		next = u->next;
		if (!feeds_assume(e, u->user))
			op_set_operand(u->user, (u32)(u - u->user->operands), yes);
	}
}

void pass_mask_elimination(struct pass_state *s)
{
	struct elimination e = {.s = s};
	walk(s->k->body, note_assumption, &e.assumed);
	walk(s->k->body, prove, &e);
	arena_free(&e.assumed.scratch);
	pass_canonicalize(s);
}

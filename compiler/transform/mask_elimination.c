/* Mask elimination: comparisons that are provably true are replaced by true.
 *
 * `offs < n` over a tile is true for all elements if the largest left value is less than the smallest right value. Both
 * are affine expressions, and the sign of their difference is often known. */
#include "ir/graph.h"
#include "analysis/comparison.h"

#include "analysis/launch_bounds.h"

bool as_less(const struct op *o, struct less *l)
{
	bool swap;
	switch ((enum cmpi_predicate)o->attr[ATTR_PREDICATE]) {
	case CMPI_SLT: swap = false, l->margin = 1; break;
	case CMPI_SLE: swap = false, l->margin = 0; break;
	case CMPI_SGT: swap = true, l->margin = 1; break;
	case CMPI_SGE: swap = true, l->margin = 0; break;
	default: return false;
	}
	l->left = operand(o, swap);
	l->right = operand(o, !swap);
	return true;
}

/* hi(L) - lo(R) + margin. At most zero means that the comparison is true for all elements. Then the left value is
 * less than the right one, so the left value needs only a lower limit against wrapping, and the right value an upper
 * limit. A scalar without such a limit stands for its machine value. Any other value without a limit makes the
 * excess unknown. */
struct affine excess(struct kernel *k, struct ranges *r, const struct op *cmp, const struct less *l)
{
	const struct range *left = value_range(r, l->left), *right = value_range(r, l->right);
	int bits = type_elem_bits(operand(cmp, 0)->type);
	i64 lo, hi, max = bits >= 64 ? INT64_MAX / 2 : (1ll << (bits - 1)) - 1;
	bool above = !left->wraps || (affine_interval(r, left->lo, cmp, &lo, &hi) && lo >= -max - 1) ||
		     (k && bounds_keep_bounded(k, r, l->left, max));
	bool below = !right->wraps || (affine_interval(r, right->hi, cmp, &lo, &hi) && hi <= max) ||
		     (k && bounds_keep_bounded(k, r, l->right, max));
	const struct affine *most = above ? left->hi : exact_hi(r, l->left);
	const struct affine *least = below ? right->lo : exact_lo(r, l->right);
	struct affine margin = affine_constant(l->margin), f = affine_difference(most, least);
	return (above || most->n) && (below || least->n) ? affine_sum(&f, &margin) : (struct affine){0};
}

/* True if o keeps multiples of n: shape operations and changes of width, for truncations and zero extensions only if n
 * is a power of two. */
static bool keeps_multiples(const struct op *o, i64 n)
{
	return o->code == IR_SPLAT || o->code == IR_EXTSI || o->code == IR_CONVERT_LAYOUT || op_is_shape(o) ||
	       (is_pow2((u64)n) && (o->code == IR_EXTUI || o->code == IR_TRUNCI));
}

static bool is_multiple(const struct kernel *k, const struct value *v, i64 n, int depth)
{
	i64 c;
	while (v->def && keeps_multiples(v->def, n))
		v = operand(v->def, 0);
	if (value_const_int(v, &c))
		return c % n == 0;
	i32 param = param_number(k, v), divisor = param < 0 ? 0 : k->params[param].divisibility;
	if (!v->def || !depth)
		return divisor && divisor % n == 0;
	const struct value *x = v->def->noperands == 2 ? operand(v->def, 0) : NULL, *y = x ? operand(v->def, 1) : NULL;
	switch (v->def->code) {
	case IR_MINSI:
	case IR_MAXSI: return is_multiple(k, x, n, depth - 1) && is_multiple(k, y, n, depth - 1);
	case IR_ADDI:
	case IR_SUBI: /* multiples of powers of two remain multiples even if the operation wraps */
		return is_pow2((u64)n) && is_multiple(k, x, n, depth - 1) && is_multiple(k, y, n, depth - 1);
	case IR_ANDI:
	case IR_MULI: return is_pow2((u64)n) && (is_multiple(k, x, n, depth - 1) || is_multiple(k, y, n, depth - 1));
	case IR_SHLI: return is_pow2((u64)n) && value_const_int(y, &c) && c >= ilog2((u64)n) && c < 63;
	default: return false;
	}
}

bool is_known_multiple(const struct kernel *k, const struct value *v, i64 n)
{
	enum { DEPTH = 4 };
	return is_multiple(k, v, n, DEPTH);
}

/* An upper bound of a · index over all iterations of a loop whose last step ends exactly at its end: from one multiple
 * of the step to another, or up to cdiv(x, m) for a multiple x of m. Unknown for other loops. `bound` is the end, or a
 * value that is not less. */
static struct affine most_of_index(struct pass_state *s, const struct op *loop, i64 a, const struct value *bound)
{
	const struct value *first = for_lower(loop), *end = for_upper(loop);
	const struct op *div = def_if(end, IR_DIVSI), *sum = div ? def_if(operand(div, 0), IR_ADDI) : NULL;
	i64 step, m, round, lo;
	struct affine unknown = {0}, by = affine_constant(0);
	if (!value_const_int(for_step(loop), &step) || step <= 0)
		return unknown;
	if (is_known_multiple(s->k, first, step) && is_known_multiple(s->k, end, step)) {
		by.constant = step;
	} else {
		bool rounds = sum && value_const_int(operand(div, 1), &m) && m > 0 &&
			      value_const_int(operand(sum, 1), &round) && round == m - 1;
		if (!rounds || step != 1 || !value_const_int(first, &lo) || lo < 0 || a % m ||
		    !is_known_multiple(s->k, operand(sum, 0), m))
			return unknown;
		bound = operand(sum, 0);
		by.constant = m;
		a /= m;
	}
	struct affine most = affine_difference(exact_hi(s->ranges, bound), &by);
	return affine_scaled(&most, a);
}

/* True if f <= 0 wherever `at` executes. */
static bool never_positive(struct pass_state *s, const struct affine *f, const struct op *keep_index,
			   const struct op *at)
{
	i64 lo, hi;
	struct affine most = affine_without_indices(s->ranges, f, keep_index, true);
	return (affine_interval(s->ranges, f, at, &lo, &hi) && hi <= 0) ||
	       (affine_interval(s->ranges, &most, at, &lo, &hi) && hi <= 0);
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
			if (never_positive(s, &most, NULL, o))
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
	if (!f.known || !(never_positive(s, &f, NULL, o) || holds_to_the_end(s, o, &f)))
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

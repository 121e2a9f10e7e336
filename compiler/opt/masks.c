/* Masks: what is provably true goes, and a loop whose mask only matters at its end is split.
 *
 * `offs < n` over a tile is true everywhere when the largest left side is below the smallest right side. With both as
 * linear forms the difference often has a known sign; then the comparison is a constant. When it depends on a loop's
 * index i as a·i + rest with a > 0, it is true exactly for i < ceil(-rest / a): the loop runs up to there with the
 * comparison replaced by true, and a second loop (the tail, usually one iteration or none) runs what is left with the
 * mask as written. The bound is computed in 64 bits before the loop, and only comparisons that cannot wrap in the
 * machine's integers are treated so; the split is therefore always right, whatever the values.
 *
 * It costs the code of a second loop and the time to enter it, so it is done where the mask costs more: in loops with
 * dots, where the mask forbids wide loads or stores, where it is made of several rows' and columns', and where the bounds are
 * constants, so that often only one of the loops remains. A mask that only whole pieces of copies to shared memory
 * have is no reason: it is one of their operands. */
#include "opt/axis.h"
#include "opt/pass.h"
#include "opt/ranges.h"

/* A comparison L < R (or a mirror of it) as two operands and a margin: all true iff hi(L) - lo(R) + margin <= 0. */
struct less {
	struct value *left, *right;
	i64 margin; /* 1 for <, 0 for <= */
};

static bool as_less(const struct op *o, struct less *l)
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

/* The sides' ideal values stand in for the machine's wherever the comparison of the ideal values holds: the left is below the right then, so it
 * needs a lower limit only, and the right an upper one. */
static bool cannot_wrap(const struct ranges *r, const struct op *cmp, const struct range *left, const struct range *right)
{
	int bits = type_elem_bits(operand(cmp, 0)->type);
	i64 lo, hi, max = bits >= 64 ? INT64_MAX / 2 : (1ll << (bits - 1)) - 1;
	if (left->wraps && (!affine_interval(r, left->lo, cmp, &lo, &hi) || lo < -max - 1))
		return false;
	return !right->wraps || (affine_interval(r, right->hi, cmp, &lo, &hi) && hi <= max);
}

/* hi(L) - lo(R) + margin: at most zero means that the comparison is true everywhere. Unknown where the machine may say otherwise. */
static struct affine excess(const struct ranges *r, const struct op *cmp, const struct less *l)
{
	const struct range *left = value_range(r, l->left), *right = value_range(r, l->right);
	struct affine margin = affine_constant(l->margin), f = affine_difference(left->hi, right->lo);
	return cannot_wrap(r, cmp, left, right) ? affine_sum(&f, &margin) : (struct affine){0};
}

/* --- provably true ------------------------------------------------------------------------------------------- */

static bool is_multiple(const struct kernel *k, const struct value *v, i64 n)
{
	i64 c;
	if (value_const_int(v, &c))
		return c % n == 0;
	for (u32 i = 0; i < k->nparams; i++)
		if (k->params[i].value == v)
			return k->params[i].divisibility && k->params[i].divisibility % n == 0;
	return false;
}

/* At least a · index, in any iteration of the loop, where its steps reach the end exactly: from one multiple of the step to another, or
 * up to cdiv(x, m) for a multiple x of m. Unknown elsewhere. */
static struct affine most_of_index(struct pass_state *s, const struct op *loop, i64 a)
{
	const struct value *first = operand(loop, 0), *end = operand(loop, 1);
	const struct op *div = def_if(end, IR_DIVSI), *sum = div ? def_if(operand(div, 0), IR_ADDI) : NULL;
	i64 step, m, round, lo;
	struct affine unknown = {0}, by = affine_constant(0);
	if (!value_const_int(operand(loop, 2), &step) || step <= 0)
		return unknown;
	if (is_multiple(s->k, first, step) && is_multiple(s->k, end, step)) {
		by.constant = step;
	} else {
		bool rounds = sum && value_const_int(operand(div, 1), &m) && m > 0 && value_const_int(operand(sum, 1), &round) && round == m - 1;
		if (!rounds || step != 1 || !value_const_int(first, &lo) || lo < 0 || a % m || !is_multiple(s->k, operand(sum, 0), m))
			return unknown;
		end = operand(sum, 0);
		by.constant = m;
		a /= m;
	}
	struct affine most = affine_difference(exact_hi(s->ranges, end), &by);
	return affine_scaled(&most, a);
}

/* Where `at` executes. */
static bool never_positive(struct pass_state *s, const struct affine *f, const struct op *keep_index, const struct op *at)
{
	i64 lo, hi;
	struct affine most = affine_without_indices(s->ranges, f, keep_index, true);
	return (affine_interval(s->ranges, f, at, &lo, &hi) && hi <= 0) || (affine_interval(s->ranges, &most, at, &lo, &hi) && hi <= 0);
}

/* Is the comparison true in the last iteration of a loop that it stands in, and so in all others? */
static bool holds_to_the_end(struct pass_state *s, const struct op *o, const struct affine *excess)
{
	for (const struct op *loop = o->block->parent; loop; loop = loop->block->parent) {
		if (loop->code != IR_FOR)
			continue;
		struct affine f = affine_without_indices(s->ranges, excess, loop, true);
		i64 a = affine_take(&f, loop->blocks[0]->args[0]);
		struct affine most = most_of_index(s, loop, a);
		f = affine_sum(&f, &most);
		if (a > 0 && never_positive(s, &f, NULL, o))
			return true;
	}
	return false;
}

/* Is it an assumption, or the part of one? */
static bool feeds_assume(const struct op *user)
{
	if (user->code == IR_ANDI)
		for (const struct use *u = result(user)->uses; u; u = u->next)
			if (feeds_assume(u->user))
				return true;
	return user->code == IR_ASSUME;
}

/* An assumption keeps its condition, which later passes read. */
static void prove(struct op *o, void *arg)
{
	struct pass_state *s = arg;
	struct less l;
	if (o->code != IR_CMPI || !as_less(o, &l))
		return;
	struct affine f = excess(s->ranges, o, &l);
	if (!f.known || !(never_positive(s, &f, NULL, o) || holds_to_the_end(s, o, &f)))
		return;
	struct builder b = builder_before(s->ctx, o);
	struct value *yes = build_int(&b, result(o)->type, 1);
	for (struct use *u = result(o)->uses, *next; u; u = next) {
		next = u->next;
		if (!feeds_assume(u->user))
			op_set_operand(u->user, (u32)(u - u->user->operands), yes);
	}
}

void pass_masks(struct pass_state *s)
{
	walk(s->k->body, prove, s);
	pass_canonicalize(s);
}

/* --- peeling ------------------------------------------------------------------------------------------------- */

enum { MAX_PEELED_OPS = 600 };

struct split {
	struct op *cmp;
	struct affine rest; /* of a·i + rest */
	i64 a;
};
typedef VEC(struct split) split_vec;

static const struct value *mask_of(const struct op *o)
{
	u32 mask = o->code == IR_LOAD ? 1 : 2;
	return (o->code == IR_LOAD || o->code == IR_STORE) && o->noperands > mask ? operand(o, mask) : NULL;
}

static bool feeds_mask(const struct value *v, int depth)
{
	for (const struct use *u = v->uses; u && depth < 8; u = u->next) {
		const struct op *o = u->user;
		if (mask_of(o) == v)
			return true;
		if ((o->code == IR_ANDI || o->code == IR_BROADCAST || o->code == IR_EXPAND_DIMS || o->code == IR_TRANS ||
		     o->code == IR_SPLAT) &&
		    feeds_mask(result(o), depth + 1))
			return true;
	}
	return false;
}

static u32 count_ops(const struct block *b, bool *nested)
{
	u32 n = 0;
	for (const struct op *o = b->first; o; o = o->next) {
		n++;
		*nested |= o->code == IR_FOR || o->code == IR_WHILE;
		for (u32 i = 0; i < o->nblocks; i++)
			n += count_ops(o->blocks[i], nested);
	}
	return n;
}

/* The comparisons directly in the loop's body that become false, for good, at some index. */
static void find_splits(struct pass_state *s, struct op *loop, struct arena *a, split_vec *out)
{
	for (struct op *o = loop->blocks[0]->first; o; o = o->next) {
		struct less l;
		if (o->code != IR_CMPI || !as_less(o, &l) || !feeds_mask(&o->results[0], 0))
			continue;
		struct affine f = excess(s->ranges, o, &l);
		struct split sp = {.cmp = o, .a = affine_take(&f, loop->blocks[0]->args[0])};
		bool outside = f.known;
		for (int i = 0; i < f.n; i++)
			outside &= value_defined_outside(f.term[i].scalar, loop->blocks[0]);
		sp.rest = f;
		if (sp.a > 0 && outside)
			vec_push(a, out, sp);
	}
}

static struct value *to_i64(struct builder *b, struct value *v)
{
	const struct type *t = type_scalar(b->ctx, DT_I64);
	return v->type == t ? v : build1(b, IR_EXTSI, t, v);
}

/* ceil(x / a) for a constant a > 0, rounding toward plus infinity for negative x too. */
static struct value *ceil_div(struct builder *b, struct value *x, i64 a)
{
	const struct type *t = x->type;
	if (a == 1)
		return x;
	/* ceil(x/a) = floor((x + a - 1)/a); floor(y/a) = (y - mod(y, a))/a with mod in 0 … a-1 */
	struct value *y = build2(b, IR_ADDI, t, x, build_int(b, t, a - 1)), *d = build_int(b, t, a);
	struct value *m = build2(b, IR_REMSI, t, y, d);
	m = build2(b, IR_REMSI, t, build2(b, IR_ADDI, t, m, d), d);
	return build2(b, IR_DIVSI, t, build2(b, IR_SUBI, t, y, m), d);
}

/* The first index, in 64 bits, at which the comparison may be false. */
static struct value *split_point(struct builder *b, const struct split *sp)
{
	const struct type *t = type_scalar(b->ctx, DT_I64);
	struct value *x = build_int(b, t, -sp->rest.constant);
	for (int i = 0; i < sp->rest.n; i++) {
		struct value *v = to_i64(b, (struct value *)sp->rest.term[i].scalar);
		v = build2(b, IR_MULI, t, v, build_int(b, t, -sp->rest.term[i].coef));
		x = build2(b, IR_ADDI, t, x, v);
	}
	/* true while a·i + rest <= 0, so up to floor(-rest / a): the first false index is floor(-rest/a) + 1 */
	x = build2(b, IR_ADDI, t, x, build_int(b, t, 1));
	return ceil_div(b, x, sp->a);
}

static struct value *clamp(struct builder *b, struct value *x, struct value *lo, struct value *hi)
{
	return build2(b, IR_MINSI, x->type, build2(b, IR_MAXSI, x->type, x, lo), hi);
}

/* Index values are lb + n·step: the first of them that is not below `end`. */
static struct value *round_to_step(struct builder *b, struct value *end, struct value *lb, struct value *step)
{
	const struct type *t = end->type;
	struct value *d = build2(b, IR_SUBI, t, end, lb);
	i64 k;
	if (value_const_int(step, &k) && k == 1)
		return end;
	struct value *n = build2(b, IR_SUBI, t, build2(b, IR_ADDI, t, d, step), build_int(b, t, 1));
	n = build2(b, IR_DIVSI, t, n, step);
	return build2(b, IR_ADDI, t, lb, build2(b, IR_MULI, t, n, step));
}

/* Are the comparisons those of tiles as long as a step with the loop's end, i + step - 1 < ub? */
static bool only_part_of_a_step(const struct op *loop, const split_vec *splits)
{
	i64 lb, step;
	if (!value_const_int(operand(loop, 0), &lb) || lb < 0 || !value_const_int(operand(loop, 2), &step))
		return false;
	for (u32 i = 0; i < splits->len; i++) {
		const struct split *sp = &splits->at[i];
		if (sp->a != 1 || sp->rest.constant != step || sp->rest.n != 1 || sp->rest.term[0].scalar != operand(loop, 1) || sp->rest.term[0].coef != -1)
			return false;
	}
	return true;
}

/* Where the main loop ends: lb <= end <= max(lb, ub), on the grid of indices. */
static struct value *end_of_main(struct builder *b, const struct op *loop, const split_vec *splits)
{
	const struct type *t = operand(loop, 0)->type;
	if (only_part_of_a_step(loop, splits)) { /* what is left to do is not negative: nothing wraps */
		struct value *lb = operand(loop, 0), *step = operand(loop, 2);
		struct value *n = build2(b, IR_SUBI, t, build2(b, IR_MAXSI, t, operand(loop, 1), lb), lb);
		return build2(b, IR_ADDI, t, lb, build2(b, IR_MULI, t, build2(b, IR_DIVSI, t, n, step), step));
	}
	struct value *lb = to_i64(b, operand(loop, 0)), *ub = to_i64(b, operand(loop, 1)), *step = to_i64(b, operand(loop, 2));
	struct value *end = split_point(b, &splits->at[0]);
	for (u32 i = 1; i < splits->len; i++)
		end = build2(b, IR_MINSI, end->type, end, split_point(b, &splits->at[i]));
	struct value *last = build2(b, IR_MAXSI, ub->type, ub, lb);
	end = clamp(b, end, lb, last);
	end = build2(b, IR_MINSI, end->type, round_to_step(b, end, lb, step), last); /* rounding past the end would leave no tail anyway */
	return t != end->type ? build1(b, IR_TRUNCI, t, end) : end;
}

static void peel(struct pass_state *s, struct op *loop, const split_vec *splits)
{
	struct builder b = builder_before(s->ctx, loop);
	struct value *end = end_of_main(&b, loop, splits);

	/* the main loop: a copy with the comparisons true */
	struct map map = {.arena = s->ctx->arena};
	struct op *main = op_clone(&b, loop, &map);
	op_set_operand(main, 1, end);
	for (u32 i = 0; i < splits->len; i++) {
		struct value *cmp = mapped(&map, &splits->at[i].cmp->results[0]);
		struct builder at = builder_before(s->ctx, cmp->def);
		replace_uses(cmp, build_int(&at, cmp->type, 1));
	}
	/* the tail: the loop itself, from where the main one stopped */
	op_set_operand(loop, 0, end);
	for (u32 i = 0; i < loop->nresults; i++)
		op_set_operand(loop, 3 + i, &main->results[i]);
	loop->attr[ATTR_STAGES] = 1;
	loop->attr[ATTR_UNROLL] = 0;
}

/* Would accesses be wider without their masks, or does a dot wait for them? */
static bool peeling_pays(const struct pass_state *s, const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next) {
		const struct value *mask = mask_of(o);
		if (o->code == IR_DOT)
			return true;
		if (mask && operand(o, 0)->type->rank > 1) /* a predicate for each row */
			return true;
		for (int d = 0; mask && d < operand(o, 0)->type->rank; d++)
			if (axis_vector_width(s->axis, operand(o, 0), mask, d) < axis_vector_width(s->axis, operand(o, 0), NULL, d))
				return true;
		for (u32 i = 0; i < o->nblocks; i++)
			if (o->code != IR_REDUCE && o->code != IR_SCAN && peeling_pays(s, o->blocks[i]))
				return true;
	}
	return false;
}

/* Is o a dot's operand on its way to shared memory, in pieces as wide with the mask as they can be? */
static bool masked_copy(const struct pass_state *s, const struct op *o)
{
	if (o->code != IR_LOAD || !s->target->has_async_copy || o->attr[ATTR_VOLATILE] || !load_fills_zero(o))
		return false;
	const struct value *v = result(o);
	if (value_has_one_use(v) && v->uses->user->code == IR_TRANS)
		v = result(v->uses->user);
	if (!value_has_one_use(v) || v->uses->user->code != IR_DOT)
		return false;
	for (int d = 0; d < operand(o, 0)->type->rank; d++)
		if (axis_vector_width(s->axis, operand(o, 0), operand(o, 1), d) * type_elem_bits(v->type) == 128)
			return true;
	return false;
}

static bool masks_only_copies(const struct pass_state *s, const struct value *v)
{
	for (const struct use *u = v->uses; u; u = u->next) {
		const struct op *o = u->user;
		bool part = o->code == IR_ANDI || o->code == IR_BROADCAST || o->code == IR_EXPAND_DIMS || o->code == IR_TRANS || o->code == IR_SPLAT;
		if (part ? !masks_only_copies(s, result(o)) : mask_of(o) != v || !masked_copy(s, o))
			return false;
	}
	return true;
}

/* Nothing is gained by splitting: the loop's copies are issued ahead, and no mask makes them or anything else slower. Where a dot's
 * result is more than the next iteration's sum, copies without masks may be boxes (place/boxes.c). */
static bool masks_are_free(const struct pass_state *s, const struct op *loop, const split_vec *splits)
{
	if (stages_of(s, loop) < 2)
		return false;
	for (const struct op *o = loop->blocks[0]->first; o; o = o->next)
		if (o->code == IR_DOT && (!value_has_one_use(result(o)) || result(o)->uses->user->code != IR_YIELD))
			return false;
	for (u32 i = 0; i < splits->len; i++)
		if (!masks_only_copies(s, &splits->at[i].cmp->results[0]))
			return false;
	return true;
}

/* Is one of the comparisons false somewhere in the first iteration already? Then there is no main loop. A loop that runs once at most is not
 * pipelined either. */
static bool nothing_to_split(struct pass_state *s, struct op *loop, const split_vec *splits)
{
	struct affine first = lower_bound_of_rounded(s->ranges, operand(loop, 0));
	bool nothing = false;
	i64 lo, hi, step;
	for (u32 i = 0; i < splits->len; i++) {
		struct affine at = affine_scaled(&first, splits->at[i].a);
		at = affine_sum(&at, &splits->at[i].rest);
		at = affine_without_indices(s->ranges, &at, NULL, false);
		nothing |= affine_interval(s->ranges, &at, loop, &lo, &hi) && lo > 0;
	}
	struct affine way = affine_difference(exact_hi(s->ranges, operand(loop, 1)), &first);
	if (nothing && value_const_int(operand(loop, 2), &step) && affine_interval(s->ranges, &way, loop, &lo, &hi) && hi <= step)
		loop->attr[ATTR_STAGES] = 1;
	return nothing;
}

static bool is_counted(const struct op *loop)
{
	i64 k;
	return value_const_int(operand(loop, 0), &k) && value_const_int(operand(loop, 1), &k) && value_const_int(operand(loop, 2), &k);
}

/* Bounds of 64 bits are split only where sums of them and of a step cannot wrap. */
static bool bounds_fit(const struct pass_state *s, const struct op *loop)
{
	const i64 most = INT64_MAX / 8;
	return value_range(s->ranges, operand(loop, 0))->min >= -most && value_range(s->ranges, operand(loop, 1))->max <= most &&
	       value_range(s->ranges, operand(loop, 2))->max <= most;
}

static void peel_loops(struct pass_state *s, struct block *b)
{
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		bool nested = false;
		for (u32 i = 0; i < o->nblocks; i++)
			peel_loops(s, o->blocks[i]);
		if (o->code != IR_FOR || count_ops(o->blocks[0], &nested) > MAX_PEELED_OPS || nested)
			continue;
		if (!is_counted(o) && !peeling_pays(s, o->blocks[0]))
			continue;
		struct arena scratch = {0};
		split_vec splits = {0};
		find_splits(s, o, &scratch, &splits);
		if (splits.len && bounds_fit(s, o) && !nothing_to_split(s, o, &splits) && (is_counted(o) || !masks_are_free(s, o, &splits)))
			peel(s, o, &splits);
		arena_free(&scratch);
	}
}

void pass_peel(struct pass_state *s)
{
	peel_loops(s, s->k->body);
	pass_canonicalize(s);
}

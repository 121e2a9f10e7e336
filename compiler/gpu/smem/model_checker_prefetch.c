/* Copies that are issued ahead must be for iterations that will run: the condition of a tlc.elect_one implies that more
 * than n iterations are left, of the loop around it or of the next loop. The loops of a producer must match the loops
 * that read the buffers it fills. */
#include "ir/graph.h"
#include "analysis/affine.h"
#include "gpu/smem/model_checker.h"

enum { DEPTH = 8, MOST_AHEAD = 100 /* iterations */, LARGE = 1 << 30 /* larger constants stay in opaque values */ };

/* v as a linear combination of values. v is taken for max(v, 0), since it is compared with a value that is not
 * negative. */
static struct affine terms_of(const struct value *v, int depth)
{
	const struct op *o = v->def;
	i64 x;
	if (value_const_int(v, &x))
		return affine_constant(x);
	if (!o || !depth)
		return affine_scalar(v);
	if (o->code == IR_EXTSI || (o->code == IR_MAXSI && value_const_int(operand(o, 1), &x) && !x))
		return terms_of(operand(o, 0), depth - 1);
	if (o->noperands == 2 && value_const_int(operand(o, 1), &x) && (x <= -LARGE || x >= LARGE))
		return affine_scalar(v);
	if (o->code == IR_ADDI || o->code == IR_SUBI) {
		struct affine a = terms_of(operand(o, 0), depth - 1), b = terms_of(operand(o, 1), depth - 1);
		return o->code == IR_ADDI ? affine_sum(&a, &b) : affine_difference(&a, &b);
	}
	if (o->code == IR_MULI && value_const_int(operand(o, 1), &x)) {
		struct affine a = terms_of(operand(o, 0), depth - 1);
		return affine_scaled(&a, x);
	}
	return affine_scalar(v);
}

static i64 coefficient_of(const struct affine *a, const struct value *v)
{
	struct affine copy = affine_copied(a);
	return affine_take(&copy, v);
}

/* The condition that a distance between indices exceeds `least`, an unsigned number. */
struct far {
	struct affine distance;
	u64 least;
};

/* True if `least` minus the distance is n steps of the loop. A step that is a sum must have the terms of the
 * distance. */
static bool get_steps(const struct far *c, const struct op *loop, i64 *n)
{
	struct affine step = terms_of(for_step(loop), DEPTH);
	const struct affine *s = &c->distance;
	if (!s->known || !step.known || (step.n ? c->least : step.constant <= 0 || c->least % (u64)step.constant))
		return false;
	*n = step.n ? -coefficient_of(s, step.term[0].scalar) / step.term[0].coef : -s->constant / step.constant;
	struct affine by = affine_scaled(&step, *n), rest = affine_sum(s, &by);
	u64 more = step.n ? 0 : c->least / (u64)step.constant;
	if (*n <= -MOST_AHEAD || *n >= MOST_AHEAD || more >= MOST_AHEAD)
		return false;
	*n += (i64)more;
	return rest.known && !rest.n && !rest.constant;
}

/* --- loops that wait for copies ---------------------------------------------------------------------------------- */

static const struct value *barriers_of(const struct op *o)
{
	const struct op *one = operand(o, 0)->def;
	return one && one->code == IR_MEMDESC_INDEX ? operand(one, 0) : operand(o, 0);
}

/* The first operation with this opcode after `behind` (NULL: in the whole block), inner blocks included. `on`: the
 * mbarriers that it must use, or NULL. */
static const struct op *find_op(const struct block *b, enum opcode code, const struct op *behind,
				const struct value *on)
{
	const struct op *found = NULL;
	for (const struct op *o = behind ? behind->next : b->first; o && !found; o = o->next) {
		found = o->code == code && (!on || barriers_of(o) == on) ? o : NULL;
		for (u32 i = 0; i < o->nblocks && !found && (o->code != IR_ONE_THREAD || code != IR_WAIT_BARRIER); i++)
			found = find_op(o->blocks[i], code, NULL, on);
	}
	return found;
}

/* True if the loop contains a wait for the copies that o issues. */
static bool waits_inside(const struct op *loop, const struct op *o)
{
	const struct op *expect = find_op(o->blocks[0], IR_BARRIER_EXPECT, NULL, NULL);
	return expect && find_op(loop->blocks[0], IR_WAIT_BARRIER, NULL, barriers_of(expect));
}

/* --- the condition of issued copies ---------------------------------------------------------------------------- */

static const struct op *find_next_loop(const struct op *o)
{
	for (o = o->next; o && o->code != IR_FOR;)
		o = o->next;
	return o;
}

static bool is_either(const struct op *o, const struct value *a, const struct value *b)
{
	return (operand(o, 0) == a && operand(o, 1) == b) || (operand(o, 0) == b && operand(o, 1) == a);
}

/* True if `left` > 0 implies that more than a->n iterations are left when the loop's index is `now`. `left` is the
 * distance from `now` to the end of the loop, or of the next loop. */
static bool match(const struct far *left, const struct op *loop, const struct value *now, struct issue_condition *a)
{
	const struct op *next = find_next_loop(loop);
	struct affine index = terms_of(now, DEPTH), end = terms_of(for_upper(loop), DEPTH);
	struct affine s = affine_sum(&left->distance, &index);
	*a = (struct issue_condition){.loop = loop, .known = true};
	/* up to the end of the next loop, which begins where this loop ends */
	for (int i = 0; i < s.n && next && for_lower(next) == for_upper(loop); i++) {
		const struct op *both = s.term[i].scalar->def;
		if (both && both->code == IR_MAXSI && is_either(both, for_upper(loop), for_upper(next))) {
			a->next = next;
			end = affine_scalar(s.term[i].scalar);
			break;
		}
	}
	return get_steps(&(struct far){affine_difference(&s, &end), left->least}, loop, &a->n);
}

/* match for a point before the loop: `now` is the lower bound or, in case the loop has no iterations, min(lower,
 * upper). */
static bool match_before(const struct far *left, const struct op *loop, struct issue_condition *a)
{
	bool ok = match(left, loop, for_lower(loop), a);
	for (int i = 0; i < left->distance.n && !ok; i++) {
		const struct op *first = left->distance.term[i].scalar->def;
		if (first && first->code == IR_MINSI && is_either(first, for_lower(loop), for_upper(loop)))
			ok = match(left, loop, left->distance.term[i].scalar, a);
	}
	return ok;
}

/* match_before for the loops after o: with `waits` the loops that wait for o's copies, otherwise any loop. */
static bool match_next(const struct far *left, const struct op *o, bool waits, struct issue_condition *a)
{
	bool ok = false;
	for (const struct op *loop = o; !ok && (loop = find_next_loop(loop));)
		ok = (!waits || waits_inside(loop, o)) && match_before(left, loop, a);
	return ok;
}

static struct issue_condition condition_of(const struct op *o, const struct value *condition, int depth)
{
	const struct op *c = condition->def;
	struct issue_condition none = {0}, a = none, b;
	if (!c || !depth)
		return none;
	if (c->code == IR_ANDI) { /* the other operand excludes sums that wrap */
		a = condition_of(o, operand(c, 0), depth - 1);
		b = condition_of(o, operand(c, 1), depth - 1);
		return !a.known || (b.known && b.n > a.n) ? b : a;
	}
	if (c->code != IR_CMPI || (c->attr[ATTR_PREDICATE] != CMPI_SLT && c->attr[ATTR_PREDICATE] != CMPI_ULT))
		return none;
	struct affine from = terms_of(operand(c, 0), DEPTH);
	struct far left = {.distance = terms_of(operand(c, 1), DEPTH)};
	if (c->attr[ATTR_PREDICATE] != CMPI_ULT || !value_const_bits(operand(c, 0), &left.least))
		left.distance = affine_difference(&left.distance, &from);
	if (match_next(&left, o, true, &a))
		return a;
	for (const struct op *loop = o->block->parent; loop; loop = loop->block->parent)
		if (loop->code == IR_FOR && match(&left, loop, for_index(loop), &a))
			return a;
	return match_next(&left, o, false, &a) ? a : none;
}

struct issue_condition checker_condition(const struct op *o)
{
	return condition_of(o, operand(o, 0), DEPTH);
}

/* --- a producer's loops ------------------------------------------------------------------------------------------ */

static const struct op *loop_around(const struct op *o)
{
	while (o && (o = o->block->parent) && o->code != IR_FOR)
		if (o->code == IR_PARTITION)
			return NULL;
	return o;
}

/* True if the same operations compute x and y, where the indices of loops count as equal. */
static bool same_value(const struct value *x, const struct value *y)
{
	struct pair_walk w = {0};
	struct value_pair at;
	bool same = true;
	visit_pair(&w, x, y);
	while (same && next_pair(&w, &at)) {
		const struct op *a = at.x->def, *b = at.y->def;
		if (at.x == at.y)
			continue;
		if (!a && !b) { /* loop indices: the caller compares the loops */
			same = !at.x->index && !at.y->index && at.x->block->parent && at.y->block->parent;
			continue;
		}
		same = a && (op_has(a, PURE) || a->code == IR_LOAD) && visit_operand_pairs(&w, at);
	}
	return end_pair_walk(&w, same);
}

/* True if v is the minimum (code: IR_MINSI) or the maximum of two values equal to x and y, possibly folded. */
static bool is_of_both(const struct value *v, enum opcode code, const struct value *x, const struct value *y)
{
	const struct op *o = def_if(v, code);
	i64 c, cx, cy;
	if (value_const_int(x, &cx) && value_const_int(y, &cy))
		return value_const_int(v, &c) && c == (code == IR_MINSI ? MIN(cx, cy) : MAX(cx, cy));
	if (same_value(x, y))
		return same_value(v, x);
	return o && ((same_value(operand(o, 0), x) && same_value(operand(o, 1), y)) ||
		     (same_value(operand(o, 0), y) && same_value(operand(o, 1), x)));
}

/* True if loop a has the iterations of b, or of b and the next loop, which continues where b ends. */
static bool runs_as_often(const struct op *a, const struct op *b)
{
	const struct op *next = find_next_loop(b);
	bool same = true;
	for (u32 i = 0; i < FOR_INITS; i++)
		same &= same_value(operand(a, i), operand(b, i));
	return same || (next && for_lower(next) == for_upper(b) && same_value(for_step(a), for_step(b)) &&
			same_value(for_step(next), for_step(b)) &&
			is_of_both(for_lower(a), IR_MINSI, for_lower(b), for_upper(b)) &&
			is_of_both(for_upper(a), IR_MAXSI, for_upper(b), for_upper(next)));
}

bool checker_same_loops(const struct op *producer)
{
	const struct op *fill = find_op(producer->blocks[0], IR_BARRIER_EXPECT, NULL, NULL);
	const struct op *wait = fill ? find_op(producer->block, IR_WAIT_BARRIER, producer, barriers_of(fill)) : NULL;
	const struct op *a = loop_around(fill), *b = loop_around(wait);
	for (; a && b; a = loop_around(a), b = loop_around(b))
		if (!runs_as_often(a, b))
			return false;
	return !a && !b && fill && wait;
}

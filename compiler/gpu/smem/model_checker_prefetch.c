/* Copies that are issued ahead must be for iterations that will run: the condition of a tlc.elect_one implies that more
 * than n iterations are left, of the loop around it or of the next loop. The loops of a producer must match the loops
 * that read the buffers it fills. */
#include "ir/graph.h"
#include "gpu/smem/model_checker.h"

/* A linear combination of values. `full`: it has more terms than fit. */
struct sum {
	i128 constant;
	u32 n;
	struct {
		const struct value *v;
		i128 factor;
	} at[8];
	bool full;
};

static void add_value(struct sum *s, const struct value *v, i128 factor)
{
	u32 i = 0;
	while (i < s->n && s->at[i].v != v)
		i++;
	if (i == ARRAY_LEN(s->at)) {
		s->full = true;
		return;
	}
	if (i == s->n) {
		s->at[s->n].v = v;
		s->at[s->n++].factor = 0;
	}
	s->at[i].factor += factor;
}

enum { LARGE = 1 << 30 /* larger factors are not multiplied out: no sum exceeds 128 bits */ };

/* Adds factor · v. max(v, 0) is taken for v, since it is compared with a value that is not negative. */
static void add_terms(struct sum *s, const struct value *v, i128 factor, int depth)
{
	const struct op *o = v->def;
	i64 x, y;
	if (value_const_int(v, &x)) {
		s->constant += factor * x;
	} else if (!o || !depth) {
		add_value(s, v, factor);
	} else if (o->code == IR_EXTSI || (o->code == IR_MAXSI && value_const_int(operand(o, 1), &y) && !y)) {
		add_terms(s, operand(o, 0), factor, depth - 1);
	} else if (o->code == IR_ADDI || o->code == IR_SUBI) {
		add_terms(s, operand(o, 0), factor, depth - 1);
		add_terms(s, operand(o, 1), o->code == IR_ADDI ? factor : -factor, depth - 1);
	} else if (o->code == IR_MULI && value_const_int(operand(o, 1), &y) && y > -LARGE && y < LARGE &&
		   factor > -LARGE && factor < LARGE) {
		add_terms(s, operand(o, 0), factor * y, depth - 1);
	} else {
		add_value(s, v, factor);
	}
}

enum { DEPTH = 8, MOST_AHEAD = 100 /* iterations */ };

static i128 factor_of(const struct sum *s, const struct value *v)
{
	for (u32 i = 0; i < s->n; i++)
		if (s->at[i].v == v)
			return s->at[i].factor;
	return 0;
}

/* True if the sum is -n steps of the loop. A step that is a sum itself must have the same terms. */
static bool get_steps(const struct sum *s, const struct op *loop, i64 *n)
{
	struct sum step = {0}, rest = *s;
	i128 steps = 0;
	add_terms(&step, for_step(loop), 1, DEPTH);
	if (!step.n && step.constant > 0)
		steps = -s->constant / step.constant;
	for (u32 i = 0; i < step.n && !steps; i++)
		if (step.at[i].factor)
			steps = -factor_of(s, step.at[i].v) / step.at[i].factor;
	if (steps <= -MOST_AHEAD || steps >= MOST_AHEAD)
		return false;
	rest.constant += steps * step.constant;
	for (u32 i = 0; i < step.n; i++)
		add_value(&rest, step.at[i].v, steps * step.at[i].factor);
	bool ok = !rest.full && !step.full && !rest.constant && (step.n || step.constant > 0);
	for (u32 i = 0; i < rest.n; i++)
		ok &= !rest.at[i].factor;
	*n = (i64)steps;
	return ok;
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
static bool match(const struct sum *left, const struct op *loop, const struct value *now, struct issue_condition *a)
{
	const struct op *next = find_next_loop(loop);
	struct sum s = *left;
	add_terms(&s, now, 1, DEPTH);
	*a = (struct issue_condition){.loop = loop, .known = true};
	/* up to the end of the next loop, which begins where this loop ends */
	for (u32 i = 0; i < s.n && next && for_lower(next) == for_upper(loop); i++) {
		const struct op *both = s.at[i].v->def;
		if (both && both->code == IR_MAXSI && is_either(both, for_upper(loop), for_upper(next))) {
			a->next = next;
			add_value(&s, s.at[i].v, -1);
			return get_steps(&s, loop, &a->n);
		}
	}
	add_terms(&s, for_upper(loop), -1, DEPTH);
	return get_steps(&s, loop, &a->n);
}

/* match for a point before the loop: `now` is the lower bound or, in case the loop has no iterations, min(lower,
 * upper). */
static bool match_before(const struct sum *left, const struct op *loop, struct issue_condition *a)
{
	bool ok = match(left, loop, for_lower(loop), a);
	for (u32 i = 0; i < left->n && !ok; i++) {
		const struct op *first = left->at[i].v->def;
		if (first && first->code == IR_MINSI && is_either(first, for_lower(loop), for_upper(loop)))
			ok = match(left, loop, left->at[i].v, a);
	}
	return ok;
}

/* match_before for the loops after o: with `waits` the loops that wait for o's copies, otherwise any loop. */
static bool match_next(const struct sum *left, const struct op *o, bool waits, struct issue_condition *a)
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
	struct sum left = {0};
	u64 steps;
	if (c->attr[ATTR_PREDICATE] == CMPI_ULT && value_const_bits(operand(c, 0), &steps))
		left.constant = -(i128)steps;
	else
		add_terms(&left, operand(c, 0), -1, DEPTH);
	add_terms(&left, operand(c, 1), 1, DEPTH);
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

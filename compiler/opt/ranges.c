#include "opt/ranges.h"

struct ranges {
	struct arena *arena;
	struct map of;    /* value → struct range */
	bool has_assumes;
};

/* --- affine expressions -------------------------------------------------------------------------------------- */

static const struct affine unknown;

struct affine affine_constant(i64 c)
{
	return (struct affine){.known = true, .constant = c};
}

static bool add_term(struct affine *f, const struct value *s, i64 coef)
{
	for (int i = 0; i < f->n; i++)
		if (f->term[i].scalar == s) {
			if (__builtin_add_overflow(f->term[i].coef, coef, &f->term[i].coef))
				return false;
			if (!f->term[i].coef)
				f->term[i] = f->term[--f->n];
			return true;
		}
	if (!coef)
		return true;
	if (f->n == AFFINE_MAX_TERMS)
		return false;
	f->term[f->n].scalar = s;
	f->term[f->n++].coef = coef;
	return true;
}

struct affine affine_scaled(const struct affine *a, i64 by)
{
	struct affine r = affine_constant(0);
	if (!a->known || __builtin_mul_overflow(a->constant, by, &r.constant))
		return unknown;
	r.n = by ? a->n : 0;
	for (int i = 0; i < r.n; i++) {
		r.term[i].scalar = a->term[i].scalar;
		if (__builtin_mul_overflow(a->term[i].coef, by, &r.term[i].coef))
			return unknown;
	}
	return r;
}

/* Kept expressions end behind their last term. */
static struct affine copied(const struct affine *a)
{
	return affine_scaled(a, 1);
}

struct affine affine_sum(const struct affine *a, const struct affine *b)
{
	struct affine r = copied(a);
	if (!r.known || !b->known || __builtin_add_overflow(r.constant, b->constant, &r.constant))
		return unknown;
	for (int i = 0; i < b->n; i++)
		if (!add_term(&r, b->term[i].scalar, b->term[i].coef))
			return unknown;
	return r;
}

struct affine affine_difference(const struct affine *a, const struct affine *b)
{
	struct affine minus = affine_scaled(b, -1);
	return affine_sum(a, &minus);
}

i64 affine_take(struct affine *f, const struct value *scalar)
{
	for (int i = 0; i < f->n; i++)
		if (f->term[i].scalar == scalar) {
			i64 c = f->term[i].coef;
			f->term[i] = f->term[--f->n];
			return c;
		}
	return 0;
}

static struct affine affine_scalar(const struct value *v)
{
	struct affine f = affine_constant(0);
	add_term(&f, v, 1);
	return f;
}

static bool same_affine(const struct affine *a, const struct affine *b)
{
	return a->constant == b->constant && a->n == b->n && !memcmp(a->term, b->term, (size_t)a->n * sizeof a->term[0]);
}

/* In the arena, as short as it is. */
static const struct affine *keep(struct ranges *r, const struct affine *f)
{
	return arena_dup(r->arena, f, offsetof(struct affine, term) + (size_t)f->n * sizeof f->term[0]);
}

/* --- assumptions --------------------------------------------------------------------------------------------- */

/* Has every execution that reaches `at` passed `o`? */
static bool dominates(const struct op *o, const struct op *at)
{
	while (at && at->block != o->block)
		at = at->block->parent;
	while (at && at != o)
		at = at->prev;
	return at != NULL;
}

/* Does the assumption hold for v wherever v exists, or where `at` executes? */
static bool holds(const struct op *assume, const struct value *v, const struct op *at)
{
	const struct block *home = v->def ? v->def->block : v->block;
	return (assume->block == home && always_reaches(home, v->def, assume)) || (at && dominates(assume, at));
}

/* Is the condition assumed, itself or as part of a conjunction? */
static bool is_assumed(const struct value *condition, const struct value *v, const struct op *at)
{
	for (const struct use *u = condition->uses; u; u = u->next)
		if (u->user->code == IR_ASSUME ? holds(u->user, v, at) : u->user->code == IR_ANDI && is_assumed(result(u->user), v, at))
			return true;
	return false;
}

static enum cmpi_predicate mirrored(enum cmpi_predicate p)
{
	switch (p) {
	case CMPI_SLT: return CMPI_SGT;
	case CMPI_SLE: return CMPI_SGE;
	case CMPI_SGT: return CMPI_SLT;
	case CMPI_SGE: return CMPI_SLE;
	default: return p;
	}
}

/* Narrows [lo, hi] by the assumptions about v and a constant that hold wherever v exists, or at `at`. */
static void narrow(const struct ranges *r, const struct value *v, const struct op *at, i64 *lo, i64 *hi)
{
	for (const struct use *u = r->has_assumes ? v->uses : NULL; u; u = u->next) {
		const struct op *cmp = u->user;
		i64 c;
		if (cmp->code != IR_CMPI || !value_const_int(operand(cmp, operand(cmp, 0) == v), &c) || !is_assumed(result(cmp), v, at))
			continue;
		enum cmpi_predicate p = (enum cmpi_predicate)cmp->attr[ATTR_PREDICATE];
		switch (operand(cmp, 0) == v ? p : mirrored(p)) {
		case CMPI_SGT: *lo = MAX(*lo, c == INT64_MAX ? c : c + 1); break;
		case CMPI_SGE: *lo = MAX(*lo, c); break;
		case CMPI_SLT: *hi = MIN(*hi, c == INT64_MIN ? c : c - 1); break;
		case CMPI_SLE: *hi = MIN(*hi, c); break;
		case CMPI_EQ: *lo = MAX(*lo, c), *hi = MIN(*hi, c); break;
		default: break;
		}
	}
}

/* --- intervals ----------------------------------------------------------------------------------------------- */

struct interval {
	i128 lo, hi;
};

static struct interval of_type(const struct type *t)
{
	int bits = type_elem_bits(t);
	if (bits == 1)
		return (struct interval){0, 1};
	return (struct interval){-((i128)1 << (bits - 1)), ((i128)1 << (bits - 1)) - 1};
}

static bool within(struct interval i, struct interval outer)
{
	return i.lo >= outer.lo && i.hi <= outer.hi;
}

static struct interval joined(struct interval a, struct interval b)
{
	return (struct interval){MIN(a.lo, b.lo), MAX(a.hi, b.hi)};
}

static struct interval product(struct interval a, struct interval b)
{
	i128 p[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
	struct interval r = {p[0], p[0]};
	for (int i = 1; i < 4; i++)
		r = joined(r, (struct interval){p[i], p[i]});
	return r;
}

/* Toward zero. A divisor is not zero. */
static struct interval quotient(struct interval x, struct interval y)
{
	i128 most = MAX(x.hi, -x.lo);
	y.lo = y.lo ? y.lo : MIN(y.hi, 1);
	if (y.lo <= 0) /* of either sign: no farther from zero than x */
		return (struct interval){-most, most};
	return (struct interval){x.lo < 0 ? x.lo / y.lo : x.lo / y.hi, x.hi < 0 ? x.hi / y.hi : x.hi / y.lo};
}

/* It has the sign of x and is less than either. */
static struct interval remainder_of(struct interval x, struct interval y)
{
	i128 most = MAX(MAX(y.hi, -y.lo) - 1, 0);
	return (struct interval){x.lo < 0 ? MAX(x.lo, -most) : 0, x.hi > 0 ? MIN(x.hi, most) : 0};
}

static struct interval conjunction(struct interval x, struct interval y, struct interval all)
{
	if (x.lo >= 0 && y.lo >= 0)
		return (struct interval){0, MIN(x.hi, y.hi)};
	if (x.lo >= 0 || y.lo >= 0)
		return (struct interval){0, x.lo >= 0 ? x.hi : y.hi};
	return all;
}

static struct interval disjunction(struct interval x, struct interval y, struct interval all)
{
	i128 most = MAX(x.hi, y.hi), bits = 1;
	if (x.lo < 0 || y.lo < 0)
		return all;
	while (bits <= most)
		bits *= 2;
	return (struct interval){0, bits - 1};
}

/* The results of an operation on two operands whose elements lie in x and y; `all`: of the type. Operations on unsigned numbers are
 * those on signed ones where neither is negative. */
static struct interval binary(enum opcode code, struct interval x, struct interval y, struct interval all)
{
	bool positive = x.lo >= 0 && y.lo >= 0;
	switch (code) {
	case IR_ADDI: return (struct interval){x.lo + y.lo, x.hi + y.hi};
	case IR_SUBI: return (struct interval){x.lo - y.hi, x.hi - y.lo};
	case IR_MULI: return product(x, y);
	case IR_SHLI: return y.lo == y.hi && y.lo >= 0 && y.lo < 63 ? product(x, (struct interval){(i128)1 << (int)y.lo, (i128)1 << (int)y.lo}) : all;
	case IR_DIVUI:
		if (!positive)
			return all;
		/* fallthrough */
	case IR_DIVSI: return quotient(x, y);
	case IR_REMUI:
		if (!positive)
			return y.lo > 0 ? (struct interval){0, y.hi - 1} : all;
		/* fallthrough */
	case IR_REMSI: return remainder_of(x, y);
	case IR_ANDI: return conjunction(x, y, all);
	case IR_ORI:
	case IR_XORI: return disjunction(x, y, all);
	case IR_SHRUI:
		if (x.lo < 0)
			return y.lo >= 1 ? (struct interval){0, all.hi} : all;
		/* fallthrough */
	case IR_SHRSI: {
		if (y.lo < 0)
			return all;
		int least = (int)MIN(y.lo, 64), most = (int)MIN(y.hi, 64);
		return (struct interval){x.lo < 0 ? x.lo >> least : x.lo >> most, x.hi < 0 ? x.hi >> most : x.hi >> least};
	}
	case IR_MINUI:
		if (!positive)
			return conjunction(x, y, all);
		/* fallthrough */
	case IR_MINSI: return (struct interval){MIN(x.lo, y.lo), MIN(x.hi, y.hi)};
	case IR_MAXUI:
		if (!positive)
			return all;
		/* fallthrough */
	case IR_MAXSI: return (struct interval){MAX(x.lo, y.lo), MAX(x.hi, y.hi)};
	default: return all;
	}
}

static struct interval magnitude(struct interval x, struct interval all)
{
	if (x.lo <= all.lo)
		return all;
	return x.lo >= 0 ? x : (struct interval){0, MAX(x.hi, -x.lo)};
}

/* --- the walk ------------------------------------------------------------------------------------------------ */

static bool is_integer(const struct value *v)
{
	return v->type->kind != TY_MEMDESC && !type_is_ptr(v->type) && dtype_is_int(type_dtype(v->type));
}

static struct interval interval_of(const struct ranges *r, const struct value *v)
{
	const struct range *x = value_range(r, v);
	return (struct interval){x->min, x->max};
}

static bool affine_wide(const struct ranges *r, const struct affine *f, const struct op *at, struct interval *out)
{
	*out = (struct interval){f->constant, f->constant};
	for (int i = 0; i < f->n; i++) {
		const struct affine_term *t = &f->term[i];
		i64 lo = value_range(r, t->scalar)->min, hi = value_range(r, t->scalar)->max;
		if (at)
			narrow(r, t->scalar, at, &lo, &hi);
		out->lo += (i128)t->coef * (t->coef > 0 ? lo : hi);
		out->hi += (i128)t->coef * (t->coef > 0 ? hi : lo);
	}
	return f->known;
}

bool affine_interval(const struct ranges *r, const struct affine *f, const struct op *at, i64 *lo, i64 *hi)
{
	struct interval i;
	if (!affine_wide(r, f, at, &i) || i.lo < INT64_MIN / 2 || i.hi > INT64_MAX / 2)
		return false;
	*lo = (i64)i.lo;
	*hi = (i64)i.hi;
	return true;
}

/* What is known of v: `in` holds its elements unless the operation that makes it wraps; lo and hi are bounds of its ideal value or unknown;
 * `exact`: `in` holds the ideal value too, which is the machine's where `in` lies within the type. */
static struct range described(struct ranges *r, const struct value *v, struct interval in, bool exact, struct affine lo, struct affine hi)
{
	struct interval all = of_type(v->type), least, most;
	bool fits = within(in, all), affine = affine_wide(r, &lo, NULL, &least) && affine_wide(r, &hi, NULL, &most);
	in = fits ? in : all;
	struct range x = {0};
	if (affine) {
		struct interval ideal = {least.lo, most.hi};
		bool inside = within(ideal, all);
		x.wraps = !inside && !(exact && fits);
		if (inside) {
			in.lo = MAX(in.lo, ideal.lo);
			in.hi = MIN(in.hi, ideal.hi);
		}
	}
	x.min = (i64)in.lo;
	x.max = (i64)in.hi;
	narrow(r, v, NULL, &x.min, &x.max);
	if (affine) {
		x.lo = keep(r, &lo);
		x.hi = same_affine(&lo, &hi) ? x.lo : keep(r, &hi);
	} else if (!is_integer(v)) {
		x.lo = x.hi = keep(r, &unknown);
	} else if (!type_is_tensor(v->type)) {
		lo = affine_scalar(v);
		x.lo = x.hi = keep(r, &lo);
	} else {
		lo = affine_constant(x.min);
		hi = affine_constant(x.max);
		x.lo = keep(r, &lo);
		x.hi = keep(r, &hi);
	}
	return x;
}

const struct range *value_range(const struct ranges *r, const struct value *v)
{
	const struct range *x = map_get(&r->of, v);
	if (x)
		return x;
	struct ranges *memo = (struct ranges *)r;
	struct range made = described(memo, v, is_integer(v) ? of_type(v->type) : (struct interval){0, 0}, true, unknown, unknown);
	x = arena_dup(r->arena, &made, sizeof made);
	map_put(&memo->of, v, (void *)x);
	return x;
}

/* Where the tile's elements come from, when shape operations made it. */
static const struct value *without_shape(const struct value *v)
{
	while (v->def && (v->def->code == IR_SPLAT || op_is_shape(v->def)))
		v = operand(v->def, 0);
	return v;
}

static const struct affine *exact(struct ranges *r, const struct value *v, bool upper)
{
	v = without_shape(v);
	const struct range *x = value_range(r, v);
	if (!x->wraps)
		return upper ? x->hi : x->lo;
	struct affine f = type_is_tensor(v->type) ? affine_constant(upper ? x->max : x->min) : affine_scalar(v);
	return keep(r, &f);
}

const struct affine *exact_lo(struct ranges *r, const struct value *v)
{
	return exact(r, v, false);
}

const struct affine *exact_hi(struct ranges *r, const struct value *v)
{
	return exact(r, v, true);
}

static void put(struct ranges *r, const struct value *v, struct range x)
{
	map_put(&r->of, v, arena_dup(r->arena, &x, sizeof x));
}

static void put_interval(struct ranges *r, const struct value *v, struct interval in)
{
	put(r, v, described(r, v, in, true, unknown, unknown));
}

static bool constant_bounds(const struct range *x, i64 *c)
{
	*c = x->lo->constant;
	return x->lo->known && !x->lo->n && x->lo == x->hi;
}

/* Sums, differences, and products with a constant. */
static struct range ring(struct ranges *r, const struct op *o, struct interval in)
{
	const struct range *x = value_range(r, operand(o, 0)), *y = value_range(r, operand(o, 1));
	struct affine lo = unknown, hi = unknown;
	i64 c;
	switch (o->code) {
	case IR_ADDI:
		lo = affine_sum(x->lo, y->lo);
		hi = x->lo == x->hi && y->lo == y->hi ? lo : affine_sum(x->hi, y->hi);
		break;
	case IR_SUBI:
		lo = affine_difference(x->lo, y->hi);
		hi = x->lo == x->hi && y->lo == y->hi ? lo : affine_difference(x->hi, y->lo);
		break;
	default:
		if (constant_bounds(x, &c)) {
			x = y;
		} else if (!constant_bounds(y, &c)) {
			break;
		}
		if (o->code == IR_SHLI) {
			if (x == y || c < 0 || c >= 63) /* a constant shifted */
				break;
			c = (i64)1 << c;
		}
		lo = affine_scaled(c < 0 ? x->hi : x->lo, c);
		hi = affine_scaled(c < 0 ? x->lo : x->hi, c);
	}
	return described(r, result(o), in, !value_range(r, operand(o, 0))->wraps && !value_range(r, operand(o, 1))->wraps, lo, hi);
}

/* x % m for x >= 0: 0 … m - 1, and no more than x; min(x, m): no more than m. For tiles, whose bounds would else be constants. */
static struct affine upper_bound(struct ranges *r, const struct op *o)
{
	const struct value *x = operand(o, 0), *m = operand(o, 1);
	struct affine one = affine_constant(1);
	if (!type_is_tensor(result(o)->type))
		return unknown;
	if (o->code == IR_REMSI && value_range(r, x)->min >= 0 && value_range(r, m)->min > 0)
		return affine_difference(exact_hi(r, m), &one);
	if (o->code == IR_MINSI)
		return copied(exact_hi(r, exact_hi(r, m)->n ? m : x));
	return unknown;
}

static struct range extended(struct ranges *r, const struct op *o)
{
	const struct value *v = operand(o, 0);
	const struct range *x = value_range(r, v);
	struct interval in = {x->min, x->max};
	int bits = type_elem_bits(v->type);
	bool same = true;
	if (o->code == IR_EXTSI && bits == 1) {
		in = (struct interval){-x->max, -x->min};
		same = false;
	} else if (o->code == IR_EXTUI && x->min < 0) {
		in = (struct interval){0, ((i128)1 << bits) - 1};
		same = false;
	}
	if (!same)
		return described(r, result(o), in, true, unknown, unknown);
	return described(r, result(o), in, true, copied(exact_lo(r, v)), copied(exact_hi(r, v)));
}

static struct interval joined_yields(const struct ranges *r, const struct op *o, u32 i)
{
	struct interval in = interval_of(r, operand(o->blocks[0]->last, i));
	return o->nblocks > 1 ? joined(in, interval_of(r, operand(o->blocks[1]->last, i))) : in;
}

static bool is_logic(enum opcode code)
{
	return code == IR_ANDI || code == IR_ORI || code == IR_XORI;
}

/* CUDA's limits, which libtl keeps on every device. */
static i64 most_programs(i64 axis)
{
	return axis ? 65535 : INT32_MAX;
}

static struct range transfer(struct ranges *r, const struct op *o)
{
	const struct value *v = result(o);
	struct interval all = of_type(v->type), in = all;
	struct affine lo = unknown, hi = unknown;
	i64 c;
	if (value_const_int(v, &c)) {
		lo = affine_constant(c);
		return described(r, v, (struct interval){c, c}, true, lo, lo);
	}
	switch (o->code) {
	case IR_PROGRAM_ID: in = (struct interval){0, most_programs(o->attr[ATTR_AXIS]) - 1}; break;
	case IR_NUM_PROGRAMS: in = (struct interval){1, most_programs(o->attr[ATTR_AXIS])}; break;
	case IR_MAKE_RANGE: in = (struct interval){o->attr[ATTR_START], o->attr[ATTR_END] - 1}; break;
	case IR_SPLAT:
	case IR_UNSPLAT:
	case IR_BROADCAST:
	case IR_EXPAND_DIMS:
	case IR_TRANS:
	case IR_RESHAPE:
	case IR_CONVERT_LAYOUT: return *value_range(r, operand(o, 0));
	case IR_BITCAST:
		if (operand(o, 0)->type == v->type)
			return *value_range(r, operand(o, 0));
		break;
	case IR_TRUNCI: {
		const struct range *x = value_range(r, operand(o, 0));
		return described(r, v, (struct interval){x->min, x->max}, !x->wraps, copied(x->lo), copied(x->hi));
	}
	case IR_EXTSI:
	case IR_EXTUI: return extended(r, o);
	case IR_ABSI: in = magnitude(interval_of(r, operand(o, 0)), all); break;
	case IR_SELECT: in = joined(interval_of(r, operand(o, 1)), interval_of(r, operand(o, 2))); break;
	case IR_JOIN: in = joined(interval_of(r, operand(o, 0)), interval_of(r, operand(o, 1))); break;
	case IR_ADDI:
	case IR_SUBI:
	case IR_MULI:
	case IR_SHLI: return ring(r, o, binary(o->code, interval_of(r, operand(o, 0)), interval_of(r, operand(o, 1)), all));
	default:
		if (op_has(o, ELEM) && o->noperands == 2 && is_integer(operand(o, 0)) && (type_elem_bits(v->type) > 1 || is_logic(o->code))) {
			in = binary(o->code, interval_of(r, operand(o, 0)), interval_of(r, operand(o, 1)), all);
			hi = upper_bound(r, o);
			if (hi.known && within(in, all))
				lo = affine_constant((i64)in.lo);
		}
	}
	return described(r, v, in, true, lo, hi);
}

/* A carried value that grows by a constant in each iteration: what it was, and that many times the iterations. */
static bool carried_sum(struct ranges *r, const struct op *loop, u32 i, struct affine *lo, struct affine *hi)
{
	const struct block *body = loop->blocks[0];
	const struct value *arg = body->args[1 + i], *increment;
	const struct op *next = operand(body->last, i)->def;
	i64 by, step;
	if (!next || next->code != IR_ADDI || next->block != body || !value_const_int(operand(loop, 2), &step) || step <= 0)
		return false;
	increment = operand(next, 0) == arg ? operand(next, 1) : operand(next, 1) == arg ? operand(next, 0) : NULL;
	if (!increment || !value_const_int(increment, &by) || by < 0 || by % step)
		return false;
	const struct range *first = value_range(r, operand(loop, 3 + i));
	struct affine index = affine_scalar(body->args[0]);
	*lo = affine_difference(&index, exact_hi(r, operand(loop, 0)));
	*hi = affine_difference(&index, exact_lo(r, operand(loop, 0)));
	*lo = affine_scaled(lo, by / step);
	*hi = affine_scaled(hi, by / step);
	*lo = affine_sum(first->lo, lo);
	*hi = affine_sum(first->hi, hi);
	return lo->known && hi->known;
}

static void analyze_block(struct ranges *r, const struct block *b);

static void analyze_for(struct ranges *r, const struct op *o)
{
	const struct block *body = o->blocks[0];
	struct interval all = of_type(body->args[0]->type), first = interval_of(r, operand(o, 0)), end = interval_of(r, operand(o, 1));
	struct interval index = {first.lo, end.hi - 1};
	put_interval(r, body->args[0], index.lo <= index.hi ? index : all);
	for (u32 i = 0; i < o->nresults; i++) {
		struct affine lo = unknown, hi = unknown;
		const struct value *arg = body->args[1 + i];
		if (is_integer(arg) && carried_sum(r, o, i, &lo, &hi)) {
			/* between what the index's bounds make of it */
			struct affine a = affine_without_indices(r, &lo, NULL, false), b = affine_without_indices(r, &hi, NULL, true);
			struct interval least, most, in = of_type(arg->type);
			bool inside = affine_wide(r, &a, NULL, &least) && affine_wide(r, &b, NULL, &most) && within((struct interval){least.lo, most.hi}, in);
			if (inside)
				in = (struct interval){least.lo, most.hi};
			put(r, arg, described(r, arg, in, inside, lo, hi));
		}
	}
	analyze_block(r, body);
	for (u32 i = 0; i < o->nresults; i++)
		if (is_integer(&o->results[i]))
			put_interval(r, &o->results[i], joined(interval_of(r, operand(o, 3 + i)), joined_yields(r, o, i)));
}

static void analyze_op(struct ranges *r, const struct op *o)
{
	if (o->code == IR_FOR) {
		analyze_for(r, o);
		return;
	}
	if (o->code == IR_REDUCE || o->code == IR_SCAN)
		return;
	for (u32 i = 0; i < o->nblocks; i++)
		analyze_block(r, o->blocks[i]);
	for (u32 i = 0; o->code == IR_IF && i < o->nresults; i++)
		if (is_integer(&o->results[i]))
			put_interval(r, &o->results[i], joined_yields(r, o, i));
	if (o->nresults == 1 && !o->nblocks && is_integer(result(o)))
		put(r, result(o), transfer(r, o));
}

static void analyze_block(struct ranges *r, const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next)
		analyze_op(r, o);
}

static bool is_assume(const struct op *o)
{
	return o->code == IR_ASSUME;
}

struct ranges *ranges_analyze(const struct kernel *k)
{
	struct ranges *r = arena_new(k->ctx->arena, struct ranges);
	r->arena = r->of.arena = k->ctx->arena;
	r->has_assumes = block_has(k->body, is_assume);
	analyze_block(r, k->body);
	return r;
}

/* --- loops --------------------------------------------------------------------------------------------------- */

static const struct op *loop_of_index(const struct value *v)
{
	return !v->def && v->block->parent && v->block->parent->code == IR_FOR && !v->index ? v->block->parent : NULL;
}

/* The innermost index is replaced first: bounds of a loop name the indices of outer loops only. */
static const struct op *innermost(const struct affine *f, const struct op *keep_index)
{
	const struct op *best = NULL;
	for (int i = 0; i < f->n; i++) {
		const struct op *loop = loop_of_index(f->term[i].scalar);
		if (loop && loop != keep_index && (!best || block_contains(best->blocks[0], loop->block)))
			best = loop;
	}
	return best;
}

struct affine affine_without_indices(struct ranges *r, const struct affine *a, const struct op *keep_index, bool upper)
{
	struct affine f = copied(a);
	const struct op *loop;
	while (f.known && (loop = innermost(&f, keep_index))) {
		i64 coef = affine_take(&f, loop->blocks[0]->args[0]);
		bool last = (coef > 0) == upper;
		struct affine by = copied(last ? exact_hi(r, operand(loop, 1)) : exact_lo(r, operand(loop, 0))), one = affine_constant(1);
		if (last)
			by = affine_difference(&by, &one);
		by = affine_scaled(&by, coef);
		f = affine_sum(&f, &by);
	}
	return f;
}

struct affine lower_bound_of_rounded(struct ranges *r, const struct value *v)
{
	const struct op *mul = def_if(v, IR_MULI), *div = mul ? def_if(operand(mul, 0), IR_DIVSI) : NULL;
	i64 m, n;
	if (!div || !value_const_int(operand(mul, 1), &m) || !value_const_int(operand(div, 1), &n) || m != n || m <= 0)
		return copied(exact_lo(r, v));
	struct affine most = affine_constant(m - 1); /* toward zero: down or up */
	return affine_difference(exact_lo(r, operand(div, 0)), &most);
}

/* Is v the end, or that and a constant that is not negative, whichever is greater? */
static bool is_end(const struct value *v, const struct value *end)
{
	const struct op *greater = def_if(v, IR_MAXSI);
	i64 c;
	return v == end || (greater && operand(greater, 0) == end && value_const_int(operand(greater, 1), &c) && c >= 0);
}

/* Where nothing can wrap: between constants, and from end / m * m to the end. */
bool loop_runs_once(const struct op *loop)
{
	const struct value *first = operand(loop, 0), *end = operand(loop, 1);
	const struct op *mul = def_if(first, IR_MULI), *div = mul ? def_if(operand(mul, 0), IR_DIVSI) : NULL;
	i64 lo, hi, step, m, n;
	if (!value_const_int(operand(loop, 2), &step) || step <= 0)
		return false;
	if (value_const_int(first, &lo) && value_const_int(end, &hi))
		return lo >= hi || (u64)hi - (u64)lo <= (u64)step;
	return div && value_const_int(operand(mul, 1), &m) && value_const_int(operand(div, 1), &n) && m == n && m > 0 && m <= step &&
	       is_end(operand(div, 0), end);
}

/* --- rows --------------------------------------------------------------------------------------------------- */

bool row_of(const struct value *x, struct row *r)
{
	const struct op *range = x->def;
	*r = (struct row){0};
	if (range && range->code == IR_ADDI) {
		bool swapped = operand(range, 1)->def && operand(range, 1)->def->code == IR_SPLAT;
		const struct op *splat = operand(range, swapped)->def;
		range = operand(range, !swapped)->def;
		if (!splat || splat->code != IR_SPLAT)
			return false;
		r->start = operand(splat, 0);
	}
	if (!range || range->code != IR_MAKE_RANGE)
		return false;
	r->first = range->attr[ATTR_START];
	r->last = range->attr[ATTR_END] - 1;
	return true;
}

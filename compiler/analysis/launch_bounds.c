#include "analysis/launch_bounds.h"

#include "support/thresholds.h"

/* In limits of products with a rounded-up factor (cdiv), smaller sizes count as this size: their products are small. */
enum { COUNTS_AS = 256 };

/* The known bounds of a value in launches within the limits: it is from 0 to `least` (negative if not known), and
 * cannot be kept within 0 to `fails` or less. */
struct known_bound {
	i64 least, fails;
};

/* An undo record: the previous `least` of a bound. */
struct change {
	struct known_bound *of;
	i64 least;
};

struct query {
	const struct kernel *k;
	const struct ranges *r;
	u32 operations; /* operations visited, without those known from earlier queries: at most MAX_INDEX_OPERATIONS */
	struct size_limits limits;
	struct map *bounds; /* value → struct known_bound */
	int narrower;       /* number of bits by which indices are narrower than 32, for checks; the smallest allowed
			     * limits shrink by the same number of bits */
	struct arena scratch;
	VEC(struct change) changes; /* undo log: changes that follow from limits that may be withdrawn */
};

/* The state of a query, to return to. */
struct checkpoint {
	struct size_limits limits;
	u32 nchanges;
};

static struct checkpoint checkpoint(const struct query *q)
{
	return (struct checkpoint){q->limits, q->changes.len};
}

static void withdraw(struct query *q, const struct checkpoint *to)
{
	q->limits = to->limits;
	while (q->changes.len > to->nchanges) {
		const struct change *c = &q->changes.at[--q->changes.len];
		c->of->least = c->least;
	}
}

static const struct value *without_shape(const struct value *v)
{
	while (v->def && (v->def->code == IR_SPLAT || v->def->code == IR_EXTSI || op_is_shape(v->def)))
		v = operand(v->def, 0);
	return v;
}

/* Adds the limit a · b <= most, or a <= most for b = SIZE_NONE. False if `most` is less than least_most. */
static bool add_limit_from(struct query *q, i16 a, i16 b, i32 least, i64 most, i64 least_most)
{
	/* a variant without launch bounds may only rely on a limit that every launch satisfies: a grid has fewer than
	 * 2^31 programs along an axis */
	if (q->k->sizes)
		return a <= SIZE_PROGRAMS && b == SIZE_NONE && most >= INT32_MAX;
	if (most < least_most >> q->narrower)
		return false;
	if (b != SIZE_NONE && b < a) {
		i16 swap = a;
		a = b;
		b = swap;
	}
	for (u32 i = 0; i < q->limits.n; i++) {
		struct size_limit *l = &q->limits.at[i];
		if (l->a == a && l->b == b && l->least == least) {
			l->most = MIN(l->most, most);
			return true;
		}
	}
	if (q->limits.n == MAX_SIZE_LIMITS)
		return false;
	q->limits.at[q->limits.n++] = (struct size_limit){most, a, b, least};
	return true;
}

static bool add_limit(struct query *q, i16 a, i16 b, i32 least, i64 most)
{
	bool batches = b == SIZE_NONE && a < SIZE_PROGRAMS;
	return add_limit_from(q, a, b, least, most,
			      batches          ? BOUNDS_LEAST_BATCHES
			      : b == SIZE_NONE ? BOUNDS_LEAST
					       : BOUNDS_LEAST_PRODUCT);
}

/* The smaller of `most` and the largest signed number of v's width. */
static i64 held(const struct value *v, i64 most)
{
	int bits = type_elem_bits(v->type);
	return MIN(most, bits == 64 ? INT64_MAX : ((i64)1 << (bits - 1)) - 1);
}

static bool within(struct query *q, const struct value *v, i64 most);
static bool bounded(struct query *q, const struct value *v, i64 most);

/* No bound. Also the result of arithmetic on a bound with an operand of 2^24 or more, which could overflow 64 bits. */
static const struct size_bound no_bound = {.size = SIZE_NONE, .by = 1};

static struct size_bound scaled(struct size_bound b, i64 c)
{
	while (b.by % 2 == 0 && c % 2 == 0) /* tile sizes are powers of two */
		b.by /= 2, c /= 2;
	if (c <= 0 || c >= 1 << 24 || b.times >= 1 << 24 || b.plus >= 1 << 24 || b.plus < -(1 << 24))
		return no_bound;
	b.times *= c;
	b.plus *= c;
	return b;
}

static struct size_bound plus_constant(struct size_bound b, i64 by)
{
	if (by < 0 || by >= 1 << 24 || b.by >= 1 << 24)
		return no_bound;
	b.plus += by * b.by;
	return b;
}

enum { MOST_FACTORS = 4 };

/* Appends the factors of v to `out`, which has n, and returns the new number. Only the first MOST_FACTORS are
 * stored. */
static u32 factors_of(struct value *v, struct value **out, u32 n)
{
	while (def_if(v, IR_MULI)) {
		n = factors_of(operand(v->def, 0), out, n);
		v = operand(v->def, 1);
	}
	if (n < MOST_FACTORS)
		out[n] = v;
	return n + 1;
}

/* If x is a loop index with an upper bound that is the product of y and one more factor: that factor, which is greater
 * than x / y if neither is negative and y does not wrap. The product may wrap to a smaller number. Else NULL. */
static struct value *quotient_below(struct query *q, const struct value *x, struct value *y)
{
	const struct op *loop = loop_of_index(x);
	struct value *all[MOST_FACTORS], *by[MOST_FACTORS];
	if (!loop || value_range(q->r, for_lower(loop))->min < 0)
		return NULL;
	u32 nall = factors_of(for_upper(loop), all, 0), nby = factors_of(y, by, 0);
	if (nall > MOST_FACTORS || nby + 1 != nall)
		return NULL;
	for (u32 i = 0, k; i < nby; i++) {
		for (k = 0; k < nall && all[k] != by[i]; k++)
			;
		if (k == nall)
			return NULL;
		all[k] = all[--nall];
	}
	return all[0];
}

/* An upper bound of v in terms of one size. Only for values whose operations do not wrap (see within). */
static struct size_bound bound_of(struct query *q, const struct value *v)
{
	v = without_shape(v);
	const struct op *o = v->def, *loop = loop_of_index(v);
	struct size_bound b = no_bound;
	i64 c;
	if (++q->operations > MAX_INDEX_OPERATIONS)
		return no_bound;
	if (loop && within(q, for_lower(loop), INT64_MAX)) {
		b = bound_of(q, for_upper(loop));
		b.plus -= b.by;
		return b;
	}
	if (!o)
		return !v->block->parent && v->type->kind == TY_SCALAR && dtype_is_int(v->type->dtype) &&
				       type_elem_bits(v->type) > 1
			       ? (struct size_bound){(i16)v->index, 1, 0, 1}
			       : no_bound;
	if (program_axis(o) >= 0)
		return (struct size_bound){(i16)(SIZE_PROGRAMS - program_axis(o)), 1, -1, 1};
	switch (o->code) {
	case IR_NUM_PROGRAMS: return (struct size_bound){(i16)(SIZE_PROGRAMS - o->attr[ATTR_AXIS]), 1, 0, 1};
	case IR_DIVSI:
		struct value *below = quotient_below(q, operand(o, 0), operand(o, 1));
		b = bound_of(q, below ? below : operand(o, 0));
		if (below)
			b.plus -= b.by;
		else if (value_const_int(operand(o, 1), &c) && c > 0 && c < (1 << 24) / b.by)
			b.by *= c;
		return b;
	case IR_REMSI:
		b = bound_of(q, operand(o, 1)); /* less than the divisor, and not more than the dividend */
		b.plus -= b.by;
		return b.size != SIZE_NONE ? b : bound_of(q, operand(o, 0));
	case IR_MULI: return value_const_int(operand(o, 1), &c) ? scaled(bound_of(q, operand(o, 0)), c) : no_bound;
	case IR_ADDI:
		c = value_range(q->r, operand(o, 1))->max;
		if (c < BOUNDS_LEAST)
			return plus_constant(bound_of(q, operand(o, 0)), MAX(c, 0));
		c = value_range(q->r, operand(o, 0))->max;
		return c < BOUNDS_LEAST ? plus_constant(bound_of(q, operand(o, 1)), MAX(c, 0)) : no_bound;
	case IR_SUBI: return value_range(q->r, operand(o, 1))->min >= 0 ? bound_of(q, operand(o, 0)) : no_bound;
	default: return no_bound;
	}
}

/* The slope for which times · size + plus <= slope · size, for sizes of `least` or more. */
static i64 slope(struct size_bound b, i32 least)
{
	return b.times + (MAX(b.plus, 0) + least - 1) / least;
}

/* True if 0 <= x · y <= most. Handles a factor that is constant or at most BOUNDS_LEAST, and two factors that each have
 * a struct size_bound. */
static bool product_within(struct query *q, const struct value *x, const struct value *y, i64 most)
{
	const struct range *p = value_range(q->r, x), *s = value_range(q->r, y);
	if (s->min >= 0 && (s->max <= BOUNDS_LEAST || s->min == s->max))
		return within(q, x, most / MAX(s->max, 1));
	if (p->min >= 0 && (p->max <= BOUNDS_LEAST || p->min == p->max))
		return within(q, y, most / MAX(p->max, 1));
	struct size_bound a = bound_of(q, x), b = bound_of(q, y);
	if (a.size == SIZE_NONE || b.size == SIZE_NONE || !within(q, x, INT64_MAX) || !within(q, y, INT64_MAX))
		return false;
	i32 least = a.plus > 0 || b.plus > 0 ? COUNTS_AS : 1;
	i128 top = (i128)most * a.by * b.by / ((i128)slope(a, least) * slope(b, least));
	return add_limit(q, a.size, b.size, least, (i64)MIN(top, INT64_MAX));
}

/* within(x), or false with the limits unchanged. */
static bool alone_within(struct query *q, const struct value *x, i64 most)
{
	struct checkpoint before = checkpoint(q);
	if (within(q, x, most))
		return true;
	withdraw(q, &before);
	return false;
}

/* True if 0 <= x <= most_x and 0 <= y <= most_y. If false, the limits are unchanged. */
static bool both_within(struct query *q, const struct value *x, i64 most_x, const struct value *y, i64 most_y)
{
	struct checkpoint before = checkpoint(q);
	if (within(q, x, most_x) && within(q, y, most_y))
		return true;
	withdraw(q, &before);
	return false;
}

/* The axis if v is the number of a program along it and n is the number of programs along it; otherwise -1. */
static int axis_below(const struct value *v, const struct value *n)
{
	v = without_shape(v), n = without_shape(n);
	int axis = v->def ? program_axis(v->def) : -1;
	return def_if(n, IR_NUM_PROGRAMS) && n->def->attr[ATTR_AXIS] == axis ? axis : -1;
}

/* True if x + product numbers the programs of two axes in rows, as program_id(0) + program_id(1) * num_programs(0)
 * does, and 0 <= x + product <= most. The numbers are less than the product of the two sizes. A bound of that product
 * is practical from the same number of programs on as a bound of one axis. If false, the limits are unchanged. */
static bool row_of_programs_within(struct query *q, const struct value *x, const struct value *product, i64 most)
{
	const struct op *o = def_if(without_shape(product), IR_MULI);
	for (u32 i = 0; o && i < 2; i++) {
		const struct value *row = without_shape(operand(o, i));
		int a = axis_below(x, operand(o, 1 - i)), b = row->def ? program_axis(row->def) : -1;
		if (a >= 0 && b >= 0 && a != b)
			return add_limit_from(q, (i16)(SIZE_PROGRAMS - a), (i16)(SIZE_PROGRAMS - b), 1,
					      held(result(o), most), BOUNDS_LEAST);
	}
	return false;
}

static bool sum_within(struct query *q, const struct value *x, const struct value *y, i64 most)
{
	if (row_of_programs_within(q, x, y, most) || row_of_programs_within(q, y, x, most))
		return true;
	i64 px = value_range(q->r, x)->max, py = value_range(q->r, y)->max, few = most / 64;
	if (px <= most / 2 || py <= most / 2) {
		i64 for_y = py <= most / 2 ? py : most - MAX(px, 0);
		return for_y >= 0 && within(q, x, most - for_y) && within(q, y, for_y);
	}
	/* one of the two is usually much larger: rows times their length, plus columns */
	return both_within(q, x, most - few, y, few) || both_within(q, x, few, y, most - few) ||
	       both_within(q, x, most / 2, y, most / 2);
}

/* The largest number with a quotient by `by` of at most `most`. */
static i64 dividend(i64 most, i64 by)
{
	i64 r;
	return __builtin_mul_overflow(most, by, &r) || __builtin_add_overflow(r, by - 1, &r) ? INT64_MAX : r;
}

static bool operation_within(struct query *q, const struct op *o, i64 most)
{
	i64 c;
	int axis = o->code == IR_NUM_PROGRAMS ? (int)o->attr[ATTR_AXIS] : program_axis(o);
	if (axis >= 0) {
		bool index = o->code != IR_NUM_PROGRAMS && most != INT64_MAX;
		return add_limit(q, (i16)(SIZE_PROGRAMS - axis), SIZE_NONE, 1, most + index);
	}
	if (!o->noperands)
		return false;
	const struct value *x = operand(o, 0), *y = o->noperands > 1 ? operand(o, 1) : x;
	switch (o->code) {
	case IR_ADDI: return sum_within(q, x, y, most);
	case IR_MULI: return product_within(q, x, y, most);
	case IR_SHLI: return value_const_int(y, &c) && c >= 0 && c < 31 && within(q, x, most >> c);
	case IR_DIVSI:
		if (value_const_int(y, &c))
			return c > 0 && within(q, x, dividend(most, c));
		if (value_range(q->r, y)->max <= 0)
			return false;
		struct value *below = quotient_below(q, x, operand(o, 1));
		if (below && both_within(q, below, most, y, INT64_MAX))
			return true;
		return within(q, x, most); /* y > 0: see launch_bounds.h */
	case IR_REMSI:
		if (value_const_int(y, &c) && c <= 0)
			return false;
		if (value_range(q->r, y)->max <= most + (most < INT64_MAX))
			return within(q, x, INT64_MAX);
		return alone_within(q, x, most) || both_within(q, x, INT64_MAX, y, most);
	case IR_MINSI:
		c = value_range(q->r, y)->max;
		return within(q, x, c <= most ? INT64_MAX : most) && within(q, y, INT64_MAX);
	case IR_MAXSI: return value_range(q->r, y)->max <= most && within(q, x, most);
	case IR_SELECT: return within(q, y, most) && within(q, operand(o, 2), most);
	case IR_TRUNCI:
	case IR_SPLAT:
	case IR_BROADCAST:
	case IR_EXPAND_DIMS:
	case IR_TRANS:
	case IR_RESHAPE:
	case IR_CONVERT_LAYOUT:
	case IR_EXTSI: return within(q, x, most);
	case IR_BITCAST: return x->type == result(o)->type && within(q, x, most);
	default: return false;
	}
}

static bool value_within(struct query *q, const struct value *v, i64 most)
{
	most = held(v, most);
	if (v->def)
		return v->def->nblocks == 0 && v->def->nresults == 1 && operation_within(q, v->def, most);
	const struct op *loop = loop_of_index(v);
	if (loop) /* a loop with an upper bound below 0 has no iteration */
		return within(q, for_lower(loop), most) && bounded(q, for_upper(loop), most);
	return !v->block->parent && dtype_is_int(type_dtype(v->type)) &&
	       add_limit(q, (i16)v->index, SIZE_NONE, 1, most);
}

static struct known_bound *bound_for(const struct query *q, const struct value *v)
{
	struct known_bound *bound = map_get(q->bounds, v);
	if (!bound) {
		bound = arena_new(q->bounds->arena, struct known_bound);
		*bound = (struct known_bound){-1, -1};
		map_put(q->bounds, v, bound);
	}
	return bound;
}

static void note_failure(const struct query *q, const struct value *v, i64 most)
{
	struct known_bound *bound = bound_for(q, v);
	bound->fails = MAX(bound->fails, most);
}

/* True if 0 <= v <= most follows from the operands of v. Then v does not wrap. tl.assume may bound v even if it wraps,
 * so value_range is not used for v here. */
static bool computed_within(struct query *q, const struct value *v, i64 most)
{
	struct known_bound *bound = map_get(q->bounds, v);
	if (bound && bound->least >= 0 && most >= bound->least)
		return true;
	if (most < 0 || type_elem_bits(v->type) == 1 || (bound && most <= bound->fails) ||
	    ++q->operations > MAX_INDEX_OPERATIONS)
		return false;
	bool yes = value_within(q, v, most);
	bound = bound_for(q, v);
	if (yes) {
		vec_push(&q->scratch, &q->changes, ((struct change){bound, bound->least}));
		bound->least = most;
	} else if (!yes && q->operations <= MAX_INDEX_OPERATIONS) {
		note_failure(q, v, most);
	}
	return yes;
}

/* True if 0 <= v <= most for the value in its width. If the answer comes from the operands, no operation on the way
 * wraps. */
static bool within(struct query *q, const struct value *v, i64 most)
{
	const struct range *known = value_range(q->r, v);
	return (known->min >= 0 && known->max <= most) || computed_within(q, v, most);
}

/* True if -most <= v <= most follows from the operands of v. */
static bool computed_bounded(struct query *q, const struct value *v, i64 most)
{
	struct checkpoint before = checkpoint(q);
	const struct op *o = v->def;
	i64 c;
	if (computed_within(q, v, most))
		return true;
	withdraw(q, &before);
	if (!o || ++q->operations > MAX_INDEX_OPERATIONS)
		return false;
	most = held(v, most);
	switch (o->code) {
	case IR_ADDI:
	case IR_SUBI: return bounded(q, operand(o, 0), most / 2) && bounded(q, operand(o, 1), most / 2);
	case IR_MULI: return value_const_int(operand(o, 1), &c) && c > 0 && bounded(q, operand(o, 0), most / c);
	case IR_DIVSI:
		return value_const_int(operand(o, 1), &c) && c > 0 && bounded(q, operand(o, 0), dividend(most, c));
	case IR_SELECT: return bounded(q, operand(o, 1), most) && bounded(q, operand(o, 2), most);
	case IR_MINSI:
	case IR_MAXSI: return bounded(q, operand(o, 0), most) && bounded(q, operand(o, 1), most);
	default: return false;
	}
}

static bool bounded(struct query *q, const struct value *v, i64 most)
{
	const struct range *known = value_range(q->r, v);
	return (known->min >= -most && known->max <= most) || computed_bounded(q, v, most);
}

static bool limits_make(struct kernel *k, const struct ranges *r, const struct value *v, i64 most,
			bool (*how)(struct query *, const struct value *, i64))
{
	struct query q = {.k = k, .r = r, .limits = k->limits, .bounds = size_bounds(r)};
	struct checkpoint before = checkpoint(&q);
	bool yes = how(&q, v, most);
	if (!yes)
		withdraw(&q, &before);
	if (!yes && how == within)
		note_failure(&q, v, most); /* also if the limit on operations was reached */
	k->limits = q.limits;
	arena_free(&q.scratch);
	return yes;
}

bool bounds_keep_within(struct kernel *k, const struct ranges *r, const struct value *v, i64 most)
{
	return limits_make(k, r, v, most, within);
}

bool bounds_keep_bounded(struct kernel *k, const struct ranges *r, const struct value *v, i64 most)
{
	return limits_make(k, r, v, most, bounded);
}

bool bounds_keep_exact(struct kernel *k, const struct ranges *r, const struct value *v)
{
	return type_elem_bits(v->type) == 64 || !value_range(r, v)->wraps ||
	       limits_make(k, r, v, INT32_MAX, computed_bounded);
}

bool bounds_keep_plane(struct kernel *k)
{
	struct query q = {.k = k, .limits = k->limits};
	bool yes = add_limit(&q, SIZE_PROGRAMS, SIZE_PROGRAMS - 1, 1, INT32_MAX);
	k->limits = q.limits;
	return yes;
}

/* --- checks -------------------------------------------------------------------------------------------------- */

/* A claim about v, computed without results of earlier queries. limits is NULL if there is none. */
static struct size_claim claim(const struct ranges *r, const struct value *v, struct arena *a, i64 most, int narrower,
			       bool negative, struct size_bound *bound)
{
	static const struct kernel launched; /* kernel.sizes is 0: limits apply */
	struct query q = {.k = &launched, .r = r, .narrower = narrower};
	struct map bounds = {.arena = &q.scratch};
	q.bounds = &bounds;
	struct size_claim c = {negative ? -most : 0, most, NULL, 0};
	if (negative ? computed_bounded(&q, v, most) : computed_within(&q, v, most)) {
		if (bound)
			*bound = bound_of(&q, v);
		c.limits = arena_dup(a, q.limits.at, sizeof q.limits.at);
		c.nlimits = q.limits.n;
	}
	arena_free(&q.scratch);
	return c;
}

u32 bounds_claim(const struct ranges *r, const struct value *v, struct arena *a, struct size_claim *out, u32 most,
		struct size_bound *bound)
{
	int bits = type_elem_bits(v->type);
	bool negative = false;
	u32 n = 0;
	*bound = no_bound;
	for (int narrower = bits == 64 ? -1 : 0; n < most && narrower < 31; narrower++) {
		i64 top = narrower < 0 ? INT64_MAX : (bits == 64 ? INT32_MAX : INT64_MAX >> (64 - bits)) >> narrower;
		struct size_claim c = claim(r, v, a, top, MAX(narrower, 0), negative, n || negative ? NULL : bound);
		if (!c.limits && !n && !negative) {
			negative = true;
			c = claim(r, v, a, top, 0, true, NULL);
		}
		if (!c.limits)
			break;
		out[n++] = c;
	}
	return n;
}

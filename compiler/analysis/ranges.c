#include "analysis/ranges.h"

#include "ir/graph.h"
#include "analysis/index_forms.h"
#include "analysis/interval.h"

struct ranges {
	struct ir_context *ctx;
	struct arena *arena;
	struct map of;    /* value → struct range */
	struct map sizes; /* size_bounds */
	bool has_assumes;
};

static const struct affine unknown;

/* A copy in the arena, without the unused terms. */
static const struct affine *keep(struct ranges *r, const struct affine *f)
{
	return arena_dup(r->arena, f, offsetof(struct affine, term) + (size_t)f->n * sizeof f->term[0]);
}

/* --- assumptions --------------------------------------------------------------------------------------------- */

/* True if the assumption holds wherever v is defined, or where `at` executes. */
static bool holds(const struct op *assume, const struct value *v, const struct op *at)
{
	const struct block *home = v->def ? v->def->block : v->block;
	return (assume->block == home && always_reaches(home, v->def, assume)) || comes_behind(at, assume);
}

/* True if the condition is assumed, directly or as part of a conjunction. */
static bool is_assumed(const struct ranges *r, const struct value *condition, const struct value *v,
		       const struct op *at)
{
	struct value_walk w = {.id = begin_walk(r->ctx)};
	visit_later(&w, condition);
	while ((condition = visit_next(&w)))
		for (const struct use *u = condition->uses; u; u = u->next) {
			if (u->user->code == IR_ANDI)
				visit_later(&w, result(u->user));
			else if (u->user->code == IR_ASSUME && holds(u->user, v, at))
				return end_walk(&w, true);
		}
	return false;
}

/* Narrows [lo, hi] by the assumptions that compare v with a constant and hold wherever v is defined, or at `at`. */
static void apply_assumptions(const struct ranges *r, const struct value *v, const struct op *at, i64 *lo, i64 *hi)
{
	for (const struct use *u = r->has_assumes ? v->uses : NULL; u; u = u->next) {
		const struct op *cmp = u->user;
		i64 c;
		if (cmp->code != IR_CMPI || !value_const_int(operand(cmp, operand(cmp, 0) == v), &c) ||
		    !is_assumed(r, result(cmp), v, at))
			continue;
		enum cmpi_predicate p = (enum cmpi_predicate)cmp->attr[ATTR_PREDICATE];
		switch (operand(cmp, 0) == v ? p : mirrored_predicate(p)) {
		case CMPI_SGT: *lo = MAX(*lo, c == INT64_MAX ? c : c + 1); break;
		case CMPI_SGE: *lo = MAX(*lo, c); break;
		case CMPI_SLT: *hi = MIN(*hi, c == INT64_MIN ? c : c - 1); break;
		case CMPI_SLE: *hi = MIN(*hi, c); break;
		case CMPI_EQ: *lo = MAX(*lo, c), *hi = MIN(*hi, c); break;
		default: break;
		}
	}
}

/* --- the analysis -------------------------------------------------------------------------------------------- */

static bool is_integer(const struct value *v)
{
	const struct type *t = type_elem(v->type);
	return v->type->kind != TY_MEMDESC && t->kind == TY_SCALAR && dtype_is_int(t->dtype);
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
			apply_assumptions(r, t->scalar, at, &lo, &hi);
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

/* The range of v. `in`: the interval of its elements unless the operation wraps. lo, hi: bounds of its ideal value, or
 * unknown. `exact`: `in` bounds the ideal value too, so the machine value equals it if `in` lies within the type. */
static struct range described(struct ranges *r, const struct value *v, struct interval in, bool exact, struct affine lo,
			      struct affine hi)
{
	struct interval all = interval_of_type(v->type), least, most;
	bool fits = interval_within(in, all),
	     affine = affine_wide(r, &lo, NULL, &least) && affine_wide(r, &hi, NULL, &most);
	in = fits ? in : all;
	struct range x = {.overflows = !affine && !(exact && fits)};
	if (affine) {
		struct interval ideal = {least.lo, most.hi};
		bool inside = interval_within(ideal, all);
		x.wraps = x.overflows = !inside && !(exact && fits);
		if (inside) {
			in.lo = MAX(in.lo, ideal.lo);
			in.hi = MIN(in.hi, ideal.hi);
		}
	}
	x.min = (i64)in.lo;
	x.max = (i64)in.hi;
	apply_assumptions(r, v, NULL, &x.min, &x.max);
	if (affine) {
		x.lo = keep(r, &lo);
		x.hi = affine_equals(&lo, &hi) ? x.lo : keep(r, &hi);
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
	struct range made = described(memo, v, is_integer(v) ? interval_of_type(v->type) : (struct interval){0, 0},
				      true, unknown, unknown);
	x = arena_dup(r->arena, &made, sizeof made);
	map_put(&memo->of, v, (void *)x);
	return x;
}

struct map *size_bounds(const struct ranges *r)
{
	return &((struct ranges *)r)->sizes;
}

/* The value that provides the elements of v, before splats and shape operations. */
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

static void set_range(struct ranges *r, const struct value *v, struct range x)
{
	map_put(&r->of, v, arena_dup(r->arena, &x, sizeof x));
}

static void set_interval(struct ranges *r, const struct value *v, struct interval in)
{
	set_range(r, v, described(r, v, in, true, unknown, unknown));
}

static bool constant_bounds(const struct range *x, i64 *c)
{
	*c = x->lo->constant;
	return x->lo->known && !x->lo->n && x->lo == x->hi;
}

/* A bound of a product with a constant, or of a shift by a constant. */
static struct affine product_bound(const struct op *o, const struct range *x, const struct range *y, bool upper)
{
	i64 c;
	if (o->code == IR_SHLI) {
		if (!constant_bounds(y, &c) || c < 0 || c >= 63)
			return unknown;
		c = (i64)1 << c;
	} else if (constant_bounds(x, &c)) {
		x = y;
	} else if (!constant_bounds(y, &c)) {
		return unknown;
	}
	return affine_scaled((c < 0) == upper ? x->lo : x->hi, c);
}

/* The range of a sum, a difference, a product or a left shift. */
static struct range ring(struct ranges *r, const struct op *o, struct interval in)
{
	const struct range *x = value_range(r, operand(o, 0)), *y = value_range(r, operand(o, 1));
	struct affine lo = unknown, hi = unknown;
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
		lo = product_bound(o, x, y, false);
		hi = product_bound(o, x, y, true);
	}
	bool known_shift = o->code != IR_SHLI || y->min == y->max;
	return described(r, result(o), in, known_shift && !x->wraps && !y->wraps, lo, hi);
}

/* An upper bound of x % m for x >= 0 (m - 1) and of min(x, m). Only for tiles, whose bounds would otherwise be
 * constants. */
static struct affine upper_bound(struct ranges *r, const struct op *o)
{
	const struct value *x = operand(o, 0), *m = operand(o, 1);
	struct affine one = affine_constant(1);
	if (!type_is_tensor(result(o)->type))
		return unknown;
	if (o->code == IR_REMSI && value_range(r, x)->min >= 0 && value_range(r, m)->min > 0)
		return affine_difference(exact_hi(r, m), &one);
	if (o->code == IR_MINSI)
		return affine_copied(exact_hi(r, exact_hi(r, m)->n ? m : x));
	return unknown;
}

static struct range extended(struct ranges *r, const struct op *o)
{
	const struct value *v = operand(o, 0);
	const struct range *x = value_range(r, v);
	struct interval in = {x->min, x->max};
	const struct affine *lo = exact_lo(r, v), *hi = exact_hi(r, v);
	int bits = type_elem_bits(v->type);
	if (o->code == IR_EXTSI && bits == 1) {
		in = (struct interval){-x->max, -x->min};
		lo = hi = &unknown;
	} else if (o->code == IR_EXTUI && x->min < 0) {
		in = (struct interval){0, ((i128)1 << bits) - 1};
		lo = hi = &unknown;
	}
	return described(r, result(o), in, true, affine_copied(lo), affine_copied(hi));
}

static struct interval joined_yields(const struct ranges *r, const struct op *o, u32 i)
{
	struct interval in = interval_of(r, operand(o->blocks[0]->last, i));
	return o->nblocks > 1 ? interval_joined(in, interval_of(r, operand(o->blocks[1]->last, i))) : in;
}

static bool is_logic(enum opcode code)
{
	return code == IR_ANDI || code == IR_ORI || code == IR_XORI;
}

/* CUDA's grid limits, which libtl enforces on every device. */
static i64 most_programs(i64 axis)
{
	return axis ? 65535 : INT32_MAX;
}

static struct range transfer(struct ranges *r, const struct op *o)
{
	const struct value *v = result(o);
	struct interval all = interval_of_type(v->type), in = all;
	struct affine lo = unknown, hi = unknown;
	i64 c;
	if (value_const_int(v, &c)) {
		lo = affine_constant(c);
		return described(r, v, (struct interval){c, c}, true, lo, lo);
	}
	if (program_axis(o) >= 0) {
		in = (struct interval){0, most_programs(program_axis(o)) - 1};
		return described(r, v, in, true, lo, hi);
	}
	switch (o->code) {
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
		return described(r, v, (struct interval){x->min, x->max}, !x->wraps, affine_copied(x->lo),
				 affine_copied(x->hi));
	}
	case IR_EXTSI:
	case IR_EXTUI: return extended(r, o);
	case IR_ABSI: in = interval_magnitude(interval_of(r, operand(o, 0)), all); break;
	case IR_SELECT: in = interval_joined(interval_of(r, operand(o, 1)), interval_of(r, operand(o, 2))); break;
	case IR_JOIN: in = interval_joined(interval_of(r, operand(o, 0)), interval_of(r, operand(o, 1))); break;
	case IR_ADDI:
	case IR_SUBI:
	case IR_MULI:
	case IR_SHLI:
		return ring(
			r, o,
			interval_binary(o->code, interval_of(r, operand(o, 0)), interval_of(r, operand(o, 1)), all));
	default:
		if (op_has(o, ELEM) && o->noperands == 2 && is_integer(operand(o, 0)) &&
		    (type_elem_bits(v->type) > 1 || is_logic(o->code))) {
			in = interval_binary(o->code, interval_of(r, operand(o, 0)), interval_of(r, operand(o, 1)),
					     all);
			hi = upper_bound(r, o);
			if (hi.known && interval_within(in, all))
				lo = affine_constant((i64)in.lo);
		}
	}
	return described(r, v, in, true, lo, hi);
}

/* Bounds of a carried value that grows by a constant: its initial value plus the constant times the number of
 * iterations. */
static bool carried_sum(struct ranges *r, const struct op *loop, u32 i, struct affine *lo, struct affine *hi)
{
	const struct value *increment = increment_of(for_arg(loop, i));
	i64 by, step;
	if (!increment || !value_const_int(for_step(loop), &step) || step <= 0 || !value_const_int(increment, &by) ||
	    by < 0 || by % step)
		return false;
	const struct range *first = value_range(r, for_init(loop, i));
	struct affine index = affine_scalar(for_index(loop));
	*lo = affine_difference(&index, exact_hi(r, for_lower(loop)));
	*hi = affine_difference(&index, exact_lo(r, for_lower(loop)));
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
	struct interval all = interval_of_type(for_index(o)->type), first = interval_of(r, for_lower(o)),
			end = interval_of(r, for_upper(o));
	struct interval index = {first.lo, end.hi - 1};
	set_interval(r, for_index(o), index.lo <= index.hi ? index : all);
	for (u32 i = 0; i < o->nresults; i++) {
		struct affine lo = unknown, hi = unknown;
		const struct value *arg = for_arg(o, i);
		if (is_integer(arg) && carried_sum(r, o, i, &lo, &hi)) {
			/* the interval between the values at the bounds of the index */
			struct affine a = affine_without_indices(r, &lo, NULL, false),
				      b = affine_without_indices(r, &hi, NULL, true);
			struct interval least, most, in = interval_of_type(arg->type);
			bool inside = affine_wide(r, &a, NULL, &least) && affine_wide(r, &b, NULL, &most) &&
				      interval_within((struct interval){least.lo, most.hi}, in);
			if (inside)
				in = (struct interval){least.lo, most.hi};
			set_range(r, arg, described(r, arg, in, inside, lo, hi));
		}
	}
	analyze_block(r, body);
	for (u32 i = 0; i < o->nresults; i++)
		if (is_integer(&o->results[i]))
			set_interval(r, &o->results[i],
				     interval_joined(interval_of(r, for_init(o, i)), joined_yields(r, o, i)));
}

static void analyze_op(struct ranges *r, const struct op *o)
{
	if (o->code == IR_FOR) {
		analyze_for(r, o);
		return;
	}
	if (op_runs_on_elements(o))
		return;
	for (u32 i = 0; i < o->nblocks; i++)
		analyze_block(r, o->blocks[i]);
	for (u32 i = 0; o->code == IR_IF && i < o->nresults; i++)
		if (is_integer(&o->results[i]))
			set_interval(r, &o->results[i], joined_yields(r, o, i));
	if (o->nresults == 1 && !o->nblocks && is_integer(result(o)))
		set_range(r, result(o), transfer(r, o));
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
	r->ctx = k->ctx;
	r->arena = r->of.arena = r->sizes.arena = k->ctx->arena;
	r->has_assumes = block_has(k->body, is_assume);
	analyze_block(r, k->body);
	return r;
}

/* --- loops --------------------------------------------------------------------------------------------------- */

/* The innermost loop with an index in f. It is replaced first, because bounds of a loop contain indices of outer loops
 * only. */
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
	struct affine f = affine_copied(a);
	const struct op *loop;
	while (f.known && (loop = innermost(&f, keep_index))) {
		i64 coef = affine_take(&f, for_index(loop));
		bool last = (coef > 0) == upper;
		struct affine by = affine_copied(last ? exact_hi(r, for_upper(loop)) : exact_lo(r, for_lower(loop))),
			      one = affine_constant(1);
		if (last)
			by = affine_difference(&by, &one);
		by = affine_scaled(&by, coef);
		f = affine_sum(&f, &by);
	}
	return f;
}

bool never_positive(struct ranges *r, const struct affine *f, const struct op *at)
{
	i64 lo, hi;
	struct affine most = affine_without_indices(r, f, NULL, true);
	return (affine_interval(r, f, at, &lo, &hi) && hi <= 0) ||
	       (affine_interval(r, &most, at, &lo, &hi) && hi <= 0);
}

struct affine lower_bound_of_rounded(struct ranges *r, const struct value *v)
{
	i64 m;
	const struct value *x = rounded_down(v, &m);
	if (!x)
		return affine_copied(exact_lo(r, v));
	struct affine most = affine_constant(m - 1); /* x / m * m >= x - (m - 1), also where x / m rounds down */
	return affine_difference(exact_lo(r, x), &most);
}

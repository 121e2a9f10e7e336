#include "ir/launch_abi.h"
#include "analysis/axis.h"

#include "ir/pass.h"
#include "analysis/launch_bounds.h"

struct axis_analysis {
	struct arena *arena;
	struct kernel *kernel;
	const struct ranges *ranges;
	struct map infos; /* value → struct axis_info */
	bool believes, promised;       /* believes: hints of the kernel (tl.max_contiguous …) count as facts. promised:
				        * a hint of contiguity added something. */
	struct axis_analysis *without; /* if promised: the analysis of the same kernel without hints; else NULL */
};

static const struct axis_info nothing = {
	.contiguity = {1, 1, 1, 1, 1}, .divisibility = {1, 1, 1, 1, 1}, .constancy = {1, 1, 1, 1, 1}};

static i32 divisor_of(i64 x)
{
	if (x == 0)
		return AXIS_MAX_DIVISOR;
	u64 d = (u64)x & -(u64)x;
	return d > AXIS_MAX_DIVISOR ? AXIS_MAX_DIVISOR : (i32)d;
}

static i32 times(i32 a, i32 b)
{
	i64 p = (i64)a * b;
	return p > AXIS_MAX_DIVISOR ? AXIS_MAX_DIVISOR : (i32)p;
}

static int dims(const struct type *t)
{
	return MAX(t->rank, 1);
}

static i32 dim_size(const struct type *t, int d)
{
	return type_is_tensor(t) ? t->shape[d] : 1;
}

/* A divisor of the first value of each run of `run` elements along d, which may be shorter than the runs of x. `unit`
 * is the step between adjacent elements: the element size for pointers. */
static i32 divisibility_at(const struct axis_info *x, int d, i32 run, i32 unit)
{
	return run >= x->contiguity[d] ? x->divisibility[d] : MIN(x->divisibility[d], times(run, unit));
}

/* A divisor of every element. */
static i32 element_divisor(const struct axis_info *x, int n)
{
	i32 best = 1;
	for (int d = 0; d < n; d++)
		if (x->contiguity[d] == 1)
			best = MAX(best, x->divisibility[d]);
	return best;
}

const struct axis_info *axis_of(const struct axis_analysis *a, const struct value *v)
{
	const struct axis_info *i = map_get(&a->infos, v);
	return i ? i : &nothing;
}

static struct axis_info constant_info(const struct type *t, i64 c, bool known)
{
	struct axis_info r = nothing;
	for (int d = 0; d < dims(t); d++) {
		r.divisibility[d] = known ? divisor_of(c) : 1;
		r.constancy[d] = dim_size(t, d);
	}
	r.is_constant = known;
	r.constant = c;
	return r;
}

/* --- transfer functions -------------------------------------------------------------------------------------- */

static struct axis_info add_info(const struct axis_info *x, const struct axis_info *y, const struct type *t, bool sub,
				 i32 unit_x, i32 unit_y)
{
	struct axis_info r = nothing;
	for (int d = 0; d < dims(t); d++) {
		i32 c = MIN(x->contiguity[d], y->constancy[d]);
		if (!sub)
			c = MAX(c, MIN(x->constancy[d], y->contiguity[d]));
		r.contiguity[d] = c;
		r.constancy[d] = MIN(x->constancy[d], y->constancy[d]);
		r.divisibility[d] = MIN(divisibility_at(x, d, c, unit_x), times(divisibility_at(y, d, c, 1), unit_y));
	}
	return r;
}

static struct axis_info mul_info(const struct axis_info *x, const struct axis_info *y, const struct type *t)
{
	struct axis_info r = nothing;
	for (int d = 0; d < dims(t); d++) {
		r.constancy[d] = MIN(x->constancy[d], y->constancy[d]);
		r.divisibility[d] = times(divisibility_at(x, d, 1, 1), divisibility_at(y, d, 1, 1));
	}
	return r;
}

/* `floors`: the quotient is rounded down, as for x >= 0. Rounded toward zero, -4 … -1 divided by 4 are -1, 0, 0, 0: the
 * quotient is not constant in an aligned run. */
static struct axis_info div_info(const struct axis_info *x, const struct axis_info *y, const struct type *t,
				 bool floors)
{
	struct axis_info r = nothing;
	for (int d = 0; d < dims(t); d++) {
		r.constancy[d] = MIN(x->constancy[d], y->constancy[d]);
		if (y->is_constant && y->constant <= 0)
			continue;
		/* adjacent elements share a quotient within aligned runs of a length that divides the divisor */
		i32 g = MIN(MIN(x->contiguity[d], x->divisibility[d]),
			    MIN(y->constancy[d], divisibility_at(y, d, 1, 1)));
		if (floors)
			r.constancy[d] = MAX(r.constancy[d], g);
		if (x->contiguity[d] == 1 && y->is_constant && is_pow2(y->constant) && x->divisibility[d] > y->constant)
			r.divisibility[d] = (i32)(x->divisibility[d] / y->constant);
	}
	return r;
}

/* For x >= 0 (`floors`): within aligned runs of a length that divides y, the remainder increases by one with x. */
static struct axis_info rem_info(const struct axis_info *x, const struct axis_info *y, const struct type *t,
				 bool floors)
{
	struct axis_info r = nothing;
	for (int d = 0; d < dims(t); d++) {
		i32 dy = divisibility_at(y, d, 1, 1);
		i32 c = MIN(MIN(x->contiguity[d], x->divisibility[d]), MIN(dy, y->constancy[d]));
		r.contiguity[d] = floors ? MAX(c, 1) : 1;
		r.constancy[d] = MIN(x->constancy[d], y->constancy[d]);
		r.divisibility[d] = MIN(divisibility_at(x, d, r.contiguity[d], 1), dy);
	}
	return r;
}

/* The longest aligned run in which no element of the type wraps, signed or not. */
static i32 longest_run(const struct type *t)
{
	return 1 << MIN(MAX(type_elem_bits(t) - 1, 0), 24);
}

static struct axis_info cmp_info(const struct op *o, const struct axis_info *x, const struct axis_info *y,
				 const struct type *t)
{
	enum cmpi_predicate p = (enum cmpi_predicate)o->attr[ATTR_PREDICATE];
	/* If x is contiguous and y constant, x < y and x >= y change only where x equals y. If y and the first x are
	 * multiples of g, the result is constant in groups of g elements. x > y and x <= y likewise, with x and y
	 * exchanged. */
	bool left = p == CMPI_SLT || p == CMPI_SGE || p == CMPI_ULT || p == CMPI_UGE;
	bool right = p == CMPI_SGT || p == CMPI_SLE || p == CMPI_UGT || p == CMPI_ULE;
	struct axis_info r = nothing;
	for (int d = 0; d < dims(t); d++) {
		const struct axis_info *run = left ? x : y, *edge = left ? y : x;
		r.constancy[d] = MIN(x->constancy[d], y->constancy[d]);
		if (o->code == IR_CMPI && (left || right)) {
			i32 g = MIN(MIN(run->contiguity[d], run->divisibility[d]),
				    MIN(divisibility_at(edge, d, 1, 1), edge->constancy[d]));
			r.constancy[d] = MAX(r.constancy[d], MIN(g, longest_run(operand(o, 0)->type)));
		}
	}
	return r;
}

static struct axis_info select_info(const struct axis_info *c, const struct axis_info *x, const struct axis_info *y,
				    const struct type *t, bool scalar)
{
	struct axis_info r = nothing;
	for (int d = 0; d < dims(t); d++) {
		i32 whole = scalar ? dim_size(t, d) : c->constancy[d];
		r.contiguity[d] = MIN(MIN(x->contiguity[d], y->contiguity[d]), whole);
		r.constancy[d] = MIN(MIN(x->constancy[d], y->constancy[d]), whole);
		r.divisibility[d] =
			MIN(divisibility_at(x, d, r.contiguity[d], 1), divisibility_at(y, d, r.contiguity[d], 1));
	}
	return r;
}

static struct axis_info range_info(const struct op *o, const struct type *t)
{
	struct axis_info r = nothing;
	r.contiguity[0] = t->shape[0];
	r.divisibility[0] = divisor_of(o->attr[ATTR_START]);
	return r;
}

static struct axis_info expand_info(const struct op *o, const struct axis_info *x)
{
	int axis = (int)o->attr[ATTR_AXIS], n = operand(o, 0)->type->rank;
	struct axis_info r = *x;
	for (int d = n; d >= 0; d--) {
		int from = d - (d > axis);
		r.contiguity[d] = d == axis ? 1 : x->contiguity[from];
		r.divisibility[d] = d == axis ? element_divisor(x, n) : x->divisibility[from];
		r.constancy[d] = d == axis ? 1 : x->constancy[from];
	}
	return r;
}

static struct axis_info shape_info(const struct op *o, const struct axis_info *x, const struct type *t)
{
	const struct type *from = operand(o, 0)->type;
	struct axis_info r = *x;
	switch (o->code) {
	case IR_SPLAT:
		for (int d = 0; d < t->rank; d++) {
			r.contiguity[d] = 1;
			r.divisibility[d] = x->divisibility[0];
			r.constancy[d] = t->shape[d];
		}
		return r;
	case IR_BROADCAST:
		for (int d = 0; d < t->rank; d++)
			if (from->shape[d] != t->shape[d])
				r.constancy[d] = t->shape[d];
		return r;
	case IR_EXPAND_DIMS: return expand_info(o, x);
	case IR_TRANS:
		for (int d = 0; d < t->rank; d++) {
			int k = perm_get(o->attr[ATTR_ORDER], d);
			r.contiguity[d] = x->contiguity[k];
			r.divisibility[d] = x->divisibility[k];
			r.constancy[d] = x->constancy[k];
		}
		return r;
	default: return nothing;
	}
}

static i32 pointee_bytes(const struct type *t)
{
	const struct type *p = type_elem(t)->elem;
	return p->kind == TY_PTR ? 8 : dtype_bytes(p->dtype);
}

static struct axis_info shift_info(const struct op *o, const struct axis_info *x, const struct axis_info *y,
				   const struct type *t)
{
	if (!y->is_constant || y->constant < 0 || y->constant > 30)
		return nothing;
	struct axis_info by = constant_info(t, 1ll << y->constant, true);
	return o->code == IR_SHLI ? mul_info(x, &by, t) : div_info(x, &by, t, true);
}

/* True if no element of operand i of o is negative. The operation keeps the answer as an attribute, for passes that
 * change how the operand is computed, such as loop splitting. */
static bool is_not_negative(const struct axis_analysis *a, const struct op *o, u32 i)
{
	bool has_note = o->code == IR_DIVSI || o->code == IR_REMSI || o->code == IR_EXTSI || o->code == IR_ADDPTR;
	/* Only the analysis that uses hints adds launch bounds to the kernel. */
	if (!a->believes || (has_note && o->attr[ATTR_NNEG]))
		return has_note && o->attr[ATTR_NNEG];
	bool yes = bounds_keep_within(a->kernel, a->ranges, operand(o, i), INT64_MAX);
	if (yes && has_note)
		((struct op *)o)->attr[ATTR_NNEG] = 1;
	return yes;
}

/* The axis info of operand i of o, extended to a wider type. Elements on both sides of a wrap (from the type's maximum
 * to its minimum; for unsigned types, to zero) are not adjacent in the wider type. An aligned run contains no wrap. */
static struct axis_info extended_info(const struct axis_analysis *a, const struct op *o, u32 i)
{
	const struct value *v = operand(o, i);
	bool is_signed = o->code != IR_EXTUI;
	struct axis_info r = *axis_of(a, v);
	const struct range *range = value_range(a->ranges, v);
	int bits = type_elem_bits(v->type);
	bool jumps = is_signed ? bits < 64 && range->min <= -((i64)1 << (bits - 1)) &&
					 range->max >= ((i64)1 << (bits - 1)) - 1
			       : range->min < 0;
	for (int d = 0; d < dims(v->type) && jumps; d++) {
		i32 aligned = MIN(MIN(r.contiguity[d], r.divisibility[d]), longest_run(v->type));
		if (r.contiguity[d] <= aligned)
			continue;
		if (is_not_negative(a, o, i))
			return r;
		r.divisibility[d] = divisibility_at(&r, d, aligned, 1);
		r.contiguity[d] = aligned;
	}
	return r;
}

/* The axis info of an integer converted to another width. A constant that does not fit becomes another number. */
static struct axis_info resized_info(const struct axis_analysis *a, const struct op *o, const struct axis_info *x,
				     const struct type *t)
{
	enum dtype narrow = type_dtype(o->code == IR_TRUNCI ? t : operand(o, 0)->type);
	if (!x->is_constant)
		return o->code == IR_TRUNCI ? *x : extended_info(a, o, 0);
	i64 c = dtype_decode_int(narrow, dtype_encode_int(narrow, x->constant));
	u64 low = dtype_bits(narrow) == 64 ? ~0ull : (1ull << dtype_bits(narrow)) - 1;
	c = o->code == IR_EXTUI ? (i64)((u64)c & low) : o->code == IR_EXTSI && narrow == DT_I1 ? -c : c;
	return constant_info(t, c, true);
}

static struct axis_info transfer(const struct axis_analysis *a, const struct op *o)
{
	const struct type *t = o->results[0].type;
	const struct axis_info *x = o->noperands > 0 ? axis_of(a, operand(o, 0)) : &nothing;
	const struct axis_info *y = o->noperands > 1 ? axis_of(a, operand(o, 1)) : &nothing;
	struct axis_info r = nothing;
	i64 c;
	if (value_const_int(&o->results[0], &c))
		return constant_info(t, c, true);
	switch (o->code) {
	case IR_CONSTANT: return constant_info(t, 0, false);
	case IR_MAKE_RANGE: return range_info(o, t);
	case IR_ADDI: return add_info(x, y, t, false, 1, 1);
	case IR_SUBI: return add_info(x, y, t, true, 1, 1);
	case IR_ADDPTR: {
		struct axis_info offset = extended_info(a, o, 1);
		return add_info(x, &offset, t, false, pointee_bytes(t), pointee_bytes(t));
	}
	case IR_MULI:
		if (y->is_constant && y->constant == 1)
			return *x;
		return mul_info(x, y, t);
	case IR_DIVSI:
	case IR_DIVUI: return div_info(x, y, t, o->code == IR_DIVUI || is_not_negative(a, o, 0));
	case IR_REMSI:
	case IR_REMUI: return rem_info(x, y, t, o->code == IR_REMUI || is_not_negative(a, o, 0));
	case IR_SHLI:
	case IR_SHRSI:
	case IR_SHRUI: return shift_info(o, x, y, t);
	case IR_CMPI:
	case IR_CMPF: return cmp_info(o, x, y, t);
	case IR_SELECT: return select_info(x, y, axis_of(a, operand(o, 2)), t, !type_is_tensor(operand(o, 0)->type));
	case IR_EXTSI:
	case IR_EXTUI:
	case IR_TRUNCI: return resized_info(a, o, x, t);
	case IR_CONVERT_LAYOUT: return *x;
	case IR_BITCAST: { /* int1 is loaded as int8 */
		const struct type *from = operand(o, 0)->type;
		if (from == t)
			return *x;
		bool pointers = type_elem(t)->kind == TY_PTR && type_elem(from)->kind == TY_PTR;
		return pointers && pointee_bytes(t) == pointee_bytes(from) ? *x : nothing;
	}
	case IR_SPLAT:
	case IR_BROADCAST:
	case IR_EXPAND_DIMS:
	case IR_TRANS: return shape_info(o, x, t);
	case IR_MINSI:
	case IR_MAXSI:
	case IR_MINUI:
	case IR_MAXUI:
		for (int d = 0; d < dims(t); d++) {
			r.constancy[d] = MIN(x->constancy[d], y->constancy[d]);
			r.divisibility[d] = MIN(divisibility_at(x, d, 1, 1), divisibility_at(y, d, 1, 1));
		}
		return r;
	case IR_LOAD:
		if (o->attr[ATTR_VOLATILE]) /* memory may change between two elements */
			return r;
		for (int d = 0; d < dims(t); d++)
			for (u32 i = 0; i < o->noperands; i++)
				r.constancy[d] = i ? MIN(r.constancy[d], axis_of(a, operand(o, i))->constancy[d])
						   : x->constancy[d];
		return r;
	default: break;
	}
	if (op_has(o, ELEM)) /* equal inputs give equal outputs */
		for (int d = 0; d < dims(t); d++) {
			r.constancy[d] = dim_size(t, d);
			for (u32 i = 0; i < o->noperands; i++)
				r.constancy[d] = MIN(r.constancy[d], axis_of(a, operand(o, i))->constancy[d]);
		}
	return r;
}

/* --- the analysis -------------------------------------------------------------------------------------------- */

static void apply_hints(struct axis_analysis *a, const struct hints *h, const struct type *t, struct axis_info *r)
{
	for (int d = 0; h && a->believes && d < dims(t); d++) {
		a->promised |= h->contiguity[d] > r->contiguity[d];
		/* a hint about every element also holds for the first of each run */
		r->divisibility[d] = MAX(r->divisibility[d], h->divisibility[d]);
		r->contiguity[d] = MAX(r->contiguity[d], h->contiguity[d]);
		r->constancy[d] = MAX(r->constancy[d], h->constancy[d]);
	}
}

static bool same_info(const struct axis_info *x, const struct axis_info *y)
{
	return !memcmp(x->contiguity, y->contiguity, sizeof x->contiguity) &&
	       !memcmp(x->divisibility, y->divisibility, sizeof x->divisibility) &&
	       !memcmp(x->constancy, y->constancy, sizeof x->constancy) && x->is_constant == y->is_constant &&
	       x->constant == y->constant;
}

/* False if nothing changed. */
static bool record(struct axis_analysis *a, const struct value *v, const struct axis_info *i)
{
	struct axis_info *old = map_get(&a->infos, v);
	if (old && same_info(old, i))
		return false;
	if (old)
		*old = *i;
	else
		map_put(&a->infos, v, arena_dup(a->arena, i, sizeof *i));
	return true;
}

static struct axis_info meet(const struct axis_info *x, const struct axis_info *y)
{
	struct axis_info r = *x;
	for (int d = 0; d < MAX_RANK; d++) {
		r.contiguity[d] = MIN(x->contiguity[d], y->contiguity[d]);
		r.constancy[d] = MIN(x->constancy[d], y->constancy[d]);
		r.divisibility[d] =
			MIN(divisibility_at(x, d, r.contiguity[d], 1), divisibility_at(y, d, r.contiguity[d], 1));
	}
	r.is_constant = x->is_constant && y->is_constant && x->constant == y->constant;
	return r;
}

static void analyze_block(struct axis_analysis *a, const struct block *b);

/* Sets ATTR_NO_WRAP if it is proved that the index after the last iteration fits its type, and the difference between
 * the end and the first index too. */
static void note_no_wrap(const struct axis_analysis *a, struct op *o)
{
	struct value *end = for_upper(o), *step = for_step(o);
	int bits = type_elem_bits(end->type);
	i64 most = bits == 64 ? INT64_MAX : ((i64)1 << (bits - 1)) - 1, by = value_range(a->ranges, step)->max;
	bool below_0 = value_range(a->ranges, for_lower(o))->min < 0;
	if (below_0)
		most /= 2;
	if (o->attr[ATTR_NO_WRAP] || (below_0 && !bounds_keep_bounded(a->kernel, a->ranges, for_lower(o), most)))
		return;
	if (by <= most / 2)
		o->attr[ATTR_NO_WRAP] = value_range(a->ranges, end)->max <= most - (by - 1) ||
					bounds_keep_bounded(a->kernel, a->ranges, end, most - (by - 1));
	else
		o->attr[ATTR_NO_WRAP] = bounds_keep_bounded(a->kernel, a->ranges, step, most / 2) &&
					bounds_keep_bounded(a->kernel, a->ranges, end, most / 2);
}

static void analyze_for(struct axis_analysis *a, const struct op *o)
{
	if (a->believes)
		note_no_wrap(a, (struct op *)o);
	const struct block *b = o->blocks[0];
	struct axis_info iv = nothing;
	iv.divisibility[0] =
		MIN(axis_of(a, for_lower(o))->divisibility[0], axis_of(a, for_step(o))->divisibility[0]);
	record(a, for_index(o), &iv);
	for (u32 i = 0; i < o->nresults; i++)
		record(a, for_arg(o, i), axis_of(a, for_init(o, i)));
	for (bool changed = true; changed;) {
		changed = false;
		analyze_block(a, b);
		for (u32 i = 0; i < o->nresults; i++) {
			struct axis_info m = meet(axis_of(a, for_arg(o, i)), axis_of(a, for_yielded(o, i)));
			changed |= record(a, for_arg(o, i), &m);
		}
	}
	for (u32 i = 0; i < o->nresults; i++)
		record(a, &o->results[i], axis_of(a, for_arg(o, i)));
}

static void analyze_op(struct axis_analysis *a, const struct op *o)
{
	if (o->code == IR_FOR) {
		analyze_for(a, o);
		return;
	}
	if (op_runs_on_elements(o))
		return;
	for (u32 i = 0; i < o->nblocks; i++)
		analyze_block(a, o->blocks[i]);
	if (o->code == IR_IF)
		for (u32 i = 0; i < o->nresults; i++) {
			struct axis_info m = meet(axis_of(a, operand(o->blocks[0]->last, i)),
						  axis_of(a, operand(o->blocks[1]->last, i)));
			record(a, &o->results[i], &m);
		}
	if (o->nresults != 1 || o->nblocks)
		return;
	struct axis_info r = transfer(a, o);
	apply_hints(a, o->hints, o->results[0].type, &r);
	record(a, &o->results[0], &r);
}

static void analyze_block(struct axis_analysis *a, const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next)
		analyze_op(a, o);
}

static struct axis_analysis *analyze(struct kernel *k, const struct ranges *ranges, bool believes)
{
	struct axis_analysis *a = arena_new(k->ctx->arena, struct axis_analysis);
	a->believes = believes;
	a->arena = k->ctx->arena;
	a->kernel = k;
	a->ranges = ranges;
	a->infos.arena = k->ctx->arena;
	for (u32 i = 0; i < k->nparams; i++) {
		struct axis_info r = nothing;
		r.divisibility[0] = MAX(k->params[i].divisibility, 1);
		if (type_is_ptr(k->params[i].value->type)) /* a pointer has at least the alignment of its element */
			r.divisibility[0] = MAX(r.divisibility[0], pointee_bytes(k->params[i].value->type));
		record(a, k->params[i].value, &r);
	}
	analyze_block(a, k->body);
	return a;
}

struct axis_analysis *axis_analyze(struct kernel *k, const struct ranges *ranges)
{
	struct axis_analysis *a = analyze(k, ranges, true);
	if (a->promised)
		a->without = analyze(k, ranges, false);
	return a;
}

void axis_copy(struct axis_analysis *a, const struct value *v, const struct value *same)
{
	record(a, v, axis_of(a, same));
	if (a->without)
		record(a->without, v, axis_of(a->without, same));
}

const struct axis_info *axis_proved(const struct axis_analysis *a, const struct value *v)
{
	return axis_of(a->without ? a->without : a, v);
}

int axis_vector_width(const struct axis_analysis *a, const struct value *ptr, const struct value *mask, int d)
{
	if (mask && abi_needs_map(a->kernel, ptr)) /* TMA checks the bounds */
		mask = NULL;
	const struct axis_info *p = axis_of(a, ptr);
	i32 bytes = pointee_bytes(ptr->type);
	i32 width = MIN(p->contiguity[d], MAX(p->divisibility[d] / bytes, 1));
	if (mask)
		width = MIN(width, axis_of(a, mask)->constancy[d]);
	return MAX(MIN(width, 16 / bytes), 1);
}

int axis_run_length(const struct axis_analysis *a, const struct value *ptr, const struct value *mask, int d, int *unit)
{
	const struct axis_info *p = axis_proved(a, ptr);
	i32 bytes = pointee_bytes(ptr->type), same = mask ? axis_of(a, mask)->constancy[d] : p->contiguity[d];
	*unit = MAX(MIN(p->divisibility[d], 4), bytes);
	/* 2 words for 2-byte units, 4 for bytes. Fewer words save no loads. With more words, the accesses of adjacent
	 * lanes lie further apart. */
	i32 n = 16 / *unit / bytes;
	return *unit < 4 && MIN(p->contiguity[d], same) >= n ? n : 0;
}

#include "analysis/index_forms.h"

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
	if (range && range->code == IR_EXTSI) /* of a row in 64 bits */
		range = operand(range, 0)->def;
	if (!range || range->code != IR_MAKE_RANGE)
		return false;
	r->first = range->attr[ATTR_START];
	r->last = range->attr[ATTR_END] - 1;
	return true;
}

static const struct value *without_hints(const struct value *v)
{
	const struct op *o = def_if(v, IR_BITCAST);
	return o && operand(o, 0)->type == v->type ? operand(o, 0) : v;
}

struct value *increment_of(const struct value *v)
{
	const struct op *loop = v->def ? NULL : v->block->parent;
	const struct op *add =
		loop && loop->code == IR_FOR && v->index ? for_yielded(loop, for_arg_number(v))->def : NULL;
	if (!add || (add->code != IR_ADDPTR && add->code != IR_ADDI))
		return NULL;
	return without_hints(operand(add, 0)) == v   ? operand(add, 1)
	       : without_hints(operand(add, 1)) == v ? operand(add, 0)
						     : NULL;
}

struct value *rounded_down(const struct value *v, i64 *m)
{
	const struct op *mul = def_if(v, IR_MULI), *div = mul ? def_if(operand(mul, 0), IR_DIVSI) : NULL;
	i64 by;
	if (!div || !value_const_int(operand(mul, 1), &by) || !value_is_int(operand(div, 1), by) || by <= 0)
		return NULL;
	*m = by;
	return operand(div, 0);
}

struct value *divided_up(const struct value *v, i64 *m)
{
	const struct op *div = def_if(v, IR_DIVSI), *sum = div ? def_if(operand(div, 0), IR_ADDI) : NULL;
	i64 by;
	if (!sum || !value_const_int(operand(div, 1), &by) || by <= 0 || !value_is_int(operand(sum, 1), by - 1))
		return NULL;
	*m = by;
	return operand(sum, 0);
}

/* True if v is the loop's end, or max(end, c) for a constant c >= 0. */
static bool is_end(const struct value *v, const struct value *end)
{
	const struct op *greater = def_if(v, IR_MAXSI);
	i64 c;
	return v == end ||
	       (greater && operand(greater, 0) == end && value_const_int(operand(greater, 1), &c) && c >= 0);
}

/* Two forms: constant bounds; and a loop from end / m * m (or max(end, c) / m * m) to end with a step of at least m. */
bool loop_runs_once(const struct op *loop)
{
	const struct value *first = for_lower(loop), *end = for_upper(loop);
	i64 lo, hi, step, m;
	if (!value_const_int(for_step(loop), &step) || step <= 0)
		return false;
	if (value_const_int(first, &lo) && value_const_int(end, &hi))
		return lo >= hi || (u64)hi - (u64)lo <= (u64)step;
	first = rounded_down(first, &m);
	return first && m <= step && is_end(first, end);
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

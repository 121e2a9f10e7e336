#include "gpu/estimate/known_values.h"

#include "ir/scalar.h"

static const struct known not_known = {0};

/* loop: that in which the condition changes; 0: none */
static struct known part(double share, u32 loop)
{
	return (struct known){.kind = SHARE, .share = share, .loop = loop};
}

static i64 number_at(struct known x, i64 i, i64 iteration)
{
	u64 along = x.n > 1 ? (u64)x.step * (u64)i : 0, later = x.iterations > 1 ? (u64)x.advance * (u64)iteration : 0;
	return (i64)((u64)x.first + along + later); /* wraps as the kernel's integers do */
}

/* A number that does not change: that of one iteration of a loop. */
static struct known in_iteration(const struct known_values *k, struct known x)
{
	x.first = number_at(x, 0, (i64)(k->iteration * (double)x.iterations));
	x.advance = 0;
	x.iterations = 1;
	return x;
}

bool single_number(const struct known_values *k, const struct value *v, i64 *out)
{
	struct known x = known_of(k, v);
	*out = in_iteration(k, x).first;
	return x.kind == NUMBERS && x.n == 1;
}

/* Makes both change in one loop only. */
static void unite_loops(const struct known_values *k, struct known *x, struct known *y)
{
	if (x->iterations > 1 && y->iterations > 1 && x->loop != y->loop)
		*x = in_iteration(k, *x); /* of a loop around that of y, or before it */
}

/* x + times * y, element by element. */
static struct known sum(const struct known_values *k, struct known x, struct known y, i64 times)
{
	struct known s = {.kind = NUMBERS, .n = MAX(x.n, y.n)};
	if (x.n > 1 && y.n > 1 && x.n != y.n)
		return not_known; /* along two dimensions */
	unite_loops(k, &x, &y);
	s.iterations = MAX(x.iterations, y.iterations);
	s.loop = x.iterations > 1 ? x.loop : y.loop;
	bool over = __builtin_mul_overflow(times, y.first, &s.first) | __builtin_mul_overflow(times, y.step, &s.step) |
		    __builtin_mul_overflow(times, y.advance, &s.advance);
	over |= __builtin_add_overflow(s.first, x.first, &s.first) | __builtin_add_overflow(s.step, x.step, &s.step) |
		__builtin_add_overflow(s.advance, x.advance, &s.advance);
	return over ? not_known : s;
}

static struct known product(struct known x, struct known y)
{
	struct known p = x;
	if (y.n > 1 || y.iterations > 1)
		return x.n > 1 || x.iterations > 1 ? not_known : product(y, x);
	bool over = __builtin_mul_overflow(x.first, y.first, &p.first) |
		    __builtin_mul_overflow(x.step, y.first, &p.step) |
		    __builtin_mul_overflow(x.advance, y.first, &p.advance);
	return over ? not_known : p;
}

static bool holds(enum cmpi_predicate p, i64 x, i64 y)
{
	switch (p) {
	case CMPI_EQ: return x == y;
	case CMPI_NE: return x != y;
	case CMPI_SLT: return x < y;
	case CMPI_SLE: return x <= y;
	case CMPI_SGT: return x > y;
	case CMPI_SGE: return x >= y;
	case CMPI_ULT: return (u64)x < (u64)y;
	case CMPI_ULE: return (u64)x <= (u64)y;
	case CMPI_UGT: return (u64)x > (u64)y;
	default: return (u64)x >= (u64)y;
	}
}

static struct known comparison(const struct known_values *all, enum cmpi_predicate p, struct known x, struct known y)
{
	enum { MOST_COUNTED = 1 << 12 };
	if (x.n > 1 && y.n > 1 && x.n != y.n)
		return not_known;
	unite_loops(all, &x, &y);
	i64 n = MAX(x.n, y.n), iterations = MAX(x.iterations, y.iterations), count = 0, total = 0;
	if (n == 1 && iterations == 1)
		return one_number(holds(p, x.first, y.first));
	i64 next = (n + MOST_COUNTED - 1) / MOST_COUNTED, later = (iterations - 1) / MAX(MOST_COUNTED / n, 1) + 1;
	for (i64 k = 0; k < iterations; k += later)
		for (i64 i = 0; i < n; i += next, total++)
			count += holds(p, number_at(x, i, k), number_at(y, i, k));
	return part((double)count / (double)total, iterations == 1 ? 0 : x.iterations > 1 ? x.loop : y.loop);
}

static double share_of(struct known x)
{
	return x.kind == SHARE ? x.share : x.first != 0;
}

/* Conditions on different dimensions are independent: the shares are multiplied. Conditions that change in one loop end
 * to hold in its last iterations, so that one implies the other. A condition that is not known counts as true. */
static struct known both(struct known x, struct known y)
{
	double a = share_of(x), b = share_of(y);
	if (x.kind == NOT_KNOWN || y.kind == NOT_KNOWN)
		return x.kind == NOT_KNOWN ? y : x;
	return part(x.loop && x.loop == y.loop ? MIN(a, b) : a * b, x.loop ? x.loop : y.loop);
}

static struct known either(struct known x, struct known y)
{
	double a = share_of(x), b = share_of(y);
	if (x.kind == NOT_KNOWN || y.kind == NOT_KNOWN)
		return not_known;
	return part(x.loop && x.loop == y.loop ? MAX(a, b) : 1 - (1 - a) * (1 - b), x.loop ? x.loop : y.loop);
}

bool known_share(const struct known_values *k, const struct value *v, double *out)
{
	struct known x = known_of(k, v);
	*out = share_of(x);
	return x.kind == SHARE || (x.kind == NUMBERS && x.n == 1);
}

/* The remainder is known where the numbers do not wrap. */
static struct known remainder_of(struct known x, struct known y)
{
	i64 last = number_at(x, x.n - 1, x.iterations - 1);
	bool same = y.n == 1 && y.iterations == 1 && x.step >= 0 && x.advance >= 0 && x.first >= 0 && last < y.first;
	return same ? x : not_known;
}

static u64 bits_of(const struct value *v, i64 x)
{
	int bits = type_elem_bits(v->type);
	return bits < 64 ? (u64)x & ((1ull << bits) - 1) : (u64)x;
}

static i64 number_of(const struct value *v, u64 bits)
{
	int unused = 64 - type_elem_bits(v->type);
	return type_dtype(v->type) == DT_I1 ? (i64)(bits & 1) : (i64)(bits << unused) >> unused;
}

static bool all_numbers(const struct known_values *k, const struct op *o)
{
	bool all = true;
	for (u32 i = 0; i < o->noperands; i++)
		all &= known_of(k, operand(o, i)).kind == NUMBERS;
	return all;
}

static bool all_single(const struct known_values *k, const struct op *o)
{
	bool all = true;
	for (u32 i = 0; i < o->noperands; i++)
		all &= known_of(k, operand(o, i)).n == 1;
	return all;
}

/* An elementwise operation on single numbers, as the interpreter evaluates it. */
static struct known scalar_result(const struct known_values *k, const struct op *o)
{
	u64 in[3] = {0}, out;
	if (dtype_is_float(type_dtype(result(o)->type)) || o->noperands > ARRAY_LEN(in))
		return not_known;
	for (u32 i = 0; i < o->noperands; i++) {
		if (dtype_is_float(type_dtype(operand(o, i)->type)))
			return not_known;
		in[i] = bits_of(operand(o, i), in_iteration(k, known_of(k, operand(o, i))).first);
	}
	return scalar_eval(o, in, &out) ? one_number(number_of(result(o), out)) : not_known;
}

static struct known elementwise(const struct known_values *k, const struct op *o)
{
	struct known x = known_of(k, operand(o, 0)), y = o->noperands > 1 ? known_of(k, operand(o, 1)) : not_known;
	if (type_is_ptr(result(o)->type))
		return not_known;
	if (type_dtype(result(o)->type) == DT_I1 && o->code == IR_ANDI)
		return both(x, y);
	if (type_dtype(result(o)->type) == DT_I1 && o->code == IR_ORI)
		return either(x, y);
	if (!all_numbers(k, o))
		return not_known;
	switch (o->code) {
	case IR_ADDI: return sum(k, x, y, 1);
	case IR_SUBI: return sum(k, x, y, -1);
	case IR_MULI: return product(x, y);
	case IR_CMPI: return comparison(k, (enum cmpi_predicate)o->attr[ATTR_PREDICATE], x, y);
	case IR_EXTSI:
	case IR_EXTUI:
	case IR_TRUNCI: return x;
	case IR_REMSI:
	case IR_REMUI:
		if (remainder_of(x, y).kind == NUMBERS)
			return x;
		break;
	default: break;
	}
	return all_single(k, o) ? scalar_result(k, o) : not_known;
}

static struct known constant_value(const struct op *o)
{
	const struct value *v = result(o);
	return type_is_ptr(v->type) || dtype_is_float(type_dtype(v->type))
		       ? not_known
		       : one_number(number_of(v, (u64)o->attr[ATTR_VALUE]));
}

static struct known result_of(const struct known_values *k, const struct op *o)
{
	switch (o->code) {
	case IR_CONSTANT: return constant_value(o);
	case IR_PROGRAM_ID: return one_number(k->program[o->attr[ATTR_PROGRAM_AXIS]]);
	case IR_NUM_PROGRAMS:
		return one_number(k->launch->blocks ? k->launch->blocks : k->launch->grid[o->attr[ATTR_PROGRAM_AXIS]]);
	case IR_MAKE_RANGE:
		return (struct known){.kind = NUMBERS,
				      .first = o->attr[ATTR_START],
				      .step = 1,
				      .iterations = 1,
				      .n = o->attr[ATTR_END] - o->attr[ATTR_START]};
	case IR_SPLAT:
	case IR_UNSPLAT:
	case IR_EXPAND_DIMS:
	case IR_BROADCAST:
	case IR_RESHAPE:
	case IR_TRANS:
	case IR_CONVERT_LAYOUT: return known_of(k, operand(o, 0));
	default: return op_has(o, ELEM) && o->nresults == 1 ? elementwise(k, o) : not_known;
	}
}

void know_results(struct known_values *k, const struct op *o)
{
	for (u32 i = 0; i < o->nresults; i++)
		k->at[o->results[i].mark] = o->nresults == 1 && o->noperands <= 3 ? result_of(k, o) : not_known;
}

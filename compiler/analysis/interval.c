#include "analysis/interval.h"

struct interval interval_of_type(const struct type *t)
{
	int bits = type_elem_bits(t);
	if (bits == 1)
		return (struct interval){0, 1};
	return (struct interval){-((i128)1 << (bits - 1)), ((i128)1 << (bits - 1)) - 1};
}

bool interval_within(struct interval i, struct interval outer)
{
	return i.lo >= outer.lo && i.hi <= outer.hi;
}

struct interval interval_joined(struct interval a, struct interval b)
{
	return (struct interval){MIN(a.lo, b.lo), MAX(a.hi, b.hi)};
}

static struct interval product(struct interval a, struct interval b)
{
	i128 p[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
	struct interval r = {p[0], p[0]};
	for (int i = 1; i < 4; i++)
		r = interval_joined(r, (struct interval){p[i], p[i]});
	return r;
}

/* The interval of quotients rounded toward zero. The divisor is not zero. */
static struct interval quotient(struct interval x, struct interval y)
{
	i128 most = MAX(x.hi, -x.lo);
	y.lo = y.lo ? y.lo : MIN(y.hi, 1);
	if (y.lo <= 0) /* a divisor of either sign: the quotient is not farther from zero than x */
		return (struct interval){-most, most};
	return (struct interval){x.lo < 0 ? x.lo / y.lo : x.lo / y.hi, x.hi < 0 ? x.hi / y.hi : x.hi / y.lo};
}

/* The remainder has the sign of x and a smaller magnitude than either operand. */
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

struct interval interval_binary(enum opcode code, struct interval x, struct interval y, struct interval all)
{
	bool positive = x.lo >= 0 && y.lo >= 0;
	switch (code) {
	case IR_ADDI: return (struct interval){x.lo + y.lo, x.hi + y.hi};
	case IR_SUBI: return (struct interval){x.lo - y.hi, x.hi - y.lo};
	case IR_MULI: return product(x, y);
	case IR_SHLI:
		return y.lo == y.hi && y.lo >= 0 && y.lo < 63
			       ? product(x, (struct interval){(i128)1 << (int)y.lo, (i128)1 << (int)y.lo})
			       : all;
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
		return (struct interval){x.lo < 0 ? x.lo >> least : x.lo >> most,
					 x.hi < 0 ? x.hi >> most : x.hi >> least};
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

struct interval interval_magnitude(struct interval x, struct interval all)
{
	if (x.lo <= all.lo)
		return all;
	return x.lo >= 0 ? x : (struct interval){0, MAX(x.hi, -x.lo)};
}

#include "base/index_program.h"

/* Far beyond any index; sums and products of two such numbers fit 128 bits, and are cut to it. */
static const i64 FAR = (i64)1 << 62;

static i64 cut(i128 x)
{
	return x > FAR ? FAR : x < -FAR ? -FAR : (i64)x;
}

static struct index_interval hull(i128 a, i128 b, i128 c, i128 d)
{
	return (struct index_interval){cut(MIN(MIN(a, b), MIN(c, d))), cut(MAX(MAX(a, b), MAX(c, d))), true};
}

static i64 magnitude(struct index_interval x)
{
	return MAX(x.max, -x.min);
}

static struct index_interval quotient(struct index_interval x, struct index_interval y)
{
	i64 m = magnitude(x);
	return y.min > 0   ? hull(x.min / y.min, x.min / y.max, x.max / y.min, x.max / y.max)
	       : y.max < 0 ? hull(x.min / y.min, x.min / y.max, x.max / y.min, x.max / y.max)
			   : hull(-m, m, 0, 0);
}

static struct index_interval remainder_of(struct index_interval x, struct index_interval y)
{
	i64 most = MAX(magnitude(y) - 1, 0);
	return hull(MAX(MIN(x.min, 0), -most), MIN(MAX(x.max, 0), most), 0, 0);
}

static struct index_interval value_of(const struct index_node *n, const struct index_interval *at)
{
	struct index_interval x, y;
	if (n->op == INDEX_CONSTANT)
		return hull(n->min, n->max, n->min, n->max);
	if (n->op == INDEX_ANY)
		return (struct index_interval){0};
	x = at[n->a], y = at[n->b];
	if (!x.known || !y.known)
		return (struct index_interval){0};
	x = hull(x.min, x.max, x.min, x.max);
	y = hull(y.min, y.max, y.min, y.max);
	switch (n->op) {
	case INDEX_ADD: return hull((i128)x.min + y.min, (i128)x.max + y.max, (i128)x.min + y.min, (i128)x.max + y.max);
	case INDEX_SUB: return hull((i128)x.min - y.max, (i128)x.max - y.min, (i128)x.min - y.max, (i128)x.max - y.min);
	case INDEX_MUL: return hull((i128)x.min * y.min, (i128)x.min * y.max, (i128)x.max * y.min, (i128)x.max * y.max);
	case INDEX_DIV: return quotient(x, y);
	case INDEX_REM: return remainder_of(x, y);
	case INDEX_MIN: return (struct index_interval){MIN(x.min, y.min), MIN(x.max, y.max), true};
	case INDEX_MAX: return (struct index_interval){MAX(x.min, y.min), MAX(x.max, y.max), true};
	case INDEX_LOOP: return (struct index_interval){MIN(x.min, y.min), MAX(x.max, y.max - 1), true};
	default: return hull(x.min, x.max, y.min, y.max);
	}
}

i32 index_program_run(const struct index_node *nodes, u32 nleaves, u32 n, struct index_interval *at)
{
	i32 first = -1;
	for (u32 i = nleaves; i < n; i++) {
		at[i] = value_of(&nodes[i], at);
		bool fits = !at[i].known || (at[i].min >= INT32_MIN && at[i].max <= INT32_MAX);
		if (first < 0 && nodes[i].is_32_bits && !fits)
			first = (i32)i;
	}
	return first;
}

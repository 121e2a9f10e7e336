/* Scans: inclusive, along any axis, in either direction. */
#include "themes.h"

static const char file[] = "reduce.tl";
static const tl_dtype types[] = {TL_I32, TL_F32, TL_F16, TL_I64, TL_BF16, TL_I8,
				 TL_F64, TL_U8,  TL_I16, TL_U32, TL_U16,  TL_U64};

static tl_dtype result_type(const char *op, tl_dtype t)
{
	bool sum = !strcmp(op, "cumsum") || !strcmp(op, "cumprod");
	return sum && !is_float(t) && bits_of(t) < 32 ? (is_signed(t) ? TL_I32 : TL_U32) : t;
}

static double step_float(const char *op, double a, double b)
{
	return !strcmp(op, "cumsum") ? a + b : !strcmp(op, "cumprod") ? a * b : !strcmp(op, "maximum") ? fmax(a, b) :
	       !strcmp(op, "first") ? a : b;
}

static int64_t step_int(const char *op, tl_dtype t, int64_t a, int64_t b)
{
	bool less = is_signed(t) ? a < b : (uint64_t)a < (uint64_t)b;
	if (!strcmp(op, "cumsum"))
		return (int64_t)((uint64_t)a + (uint64_t)b);
	if (!strcmp(op, "cumprod"))
		return (int64_t)((uint64_t)a * (uint64_t)b);
	return !strcmp(op, "maximum") ? (less ? b : a) : !strcmp(op, "first") ? a : b;
}

/* Floats whose sums and products are exact in any order. */
static void scan_data(struct array *x, const char *op)
{
	for (size_t i = 0; x->f && i < x->len; i++)
		set(x, i, !strcmp(op, "cumsum") ? (double)random_int(-1, 1) : !strcmp(op, "cumprod")
		    ? (random_bits() & 1 ? 1 : -1) :
			  uniform(-4, 4));
}

static void want_scan(struct array *o, const struct array *x, const char *op, const struct tile_walk *w, bool reverse)
{
	for (int line = 0; line < w->outer * w->inner; line++) {
		size_t at = (size_t)(line / w->inner * w->length * w->inner + line % w->inner);
		double f = 0;
		int64_t n = 0;
		for (int k = 0; k < w->length; k++) {
			size_t i = at + (size_t)((reverse ? w->length - 1 - k : k) * w->inner);
			if (x->f)
				want(o, i, f = k ? step_float(op, f, value(x, i)) : value(x, i));
			else
				want_int(o, i, n = k ? step_int(op, x->dtype, n, value_int(x, i)) : value_int(x, i));
		}
	}
}

static void scan(struct suite *s, const char *op, tl_dtype t, int rank, const int *shape, int axis, bool reverse,
		 int warps)
{
	struct tile_walk w;
	char tile[80];
	tile_walk(&w, rank, shape, axis);
	if (!case_begin(s, file, "%s %s %s%s warps=%d", op, tl_dtype_name(t), tile_name(tile, rank, shape, axis),
			reverse ? " reverse" : "",
			warps))
		return;
	size_t len = (size_t)(w.outer * w.inner * w.length);
	struct array *x = in(s, "x", t, len), *o = out(s, "o", result_type(op, t), len);
	shaped(o, rank, shape);
	scan_data(x, op);
	want_scan(o, x, op, &w, reverse);
	int full[3] = {1, 1, 1};
	memcpy(full + 3 - rank, shape, (size_t)rank * sizeof *shape);
	LAUNCH(s, "scan", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_str(op), tl_int(full[0]),
	       tl_int(full[1]), tl_int(full[2]), tl_int(rank), tl_int(axis), tl_bool(reverse));
	case_end(s);
}

/* x → a·x + b, composed from the left: neither commutative nor made of one value. */
static void recurrence(struct suite *s, tl_dtype t, int b, int c, int axis, bool reverse, int warps)
{
	struct tile_walk w;
	if (!case_begin(s, file, "recurrence %s %dx%d axis=%d%s warps=%d", tl_dtype_name(t), b, c, axis,
			reverse ? " reverse" : "", warps))
		return;
	tile_walk(&w, 2, (int[]){b, c}, axis);
	struct array *p = in(s, "a", t, (size_t)(b * c)), *q = in(s, "b", t, p->len), *o = out(s, "o", t, p->len);
	for (int line = 0; line < w.outer * w.inner; line++) {
		size_t at = (size_t)(line / w.inner * w.length * w.inner + line % w.inner);
		double f = 0;
		uint64_t n = 0;
		for (int k = 0; k < w.length; k++) {
			size_t i = at + (size_t)((reverse ? w.length - 1 - k : k) * w.inner);
			f = value(p, i) * f + value(q, i);
			n = (uint64_t)value_int(p, i) * n + (uint64_t)value_int(q, i);
			if (is_float(t))
				want(o, i, f);
			else
				want_int(o, i, (int64_t)n);
		}
	}
	if (is_float(t)) /* |a| ≤ 1, so what is summed is at most the length, with an error each */
		tolerance(o, 2 * w.length * unit_roundoff(t), 0);
	LAUNCH(s, "recurrence", CONFIG(.grid = {1}, .num_warps = warps), ptr(p), ptr(q), ptr(o), tl_int(b), tl_int(c),
	       tl_int(axis), tl_bool(reverse));
	case_end(s);
}

static void scan_of_scan(struct suite *s, int b, int c, int warps)
{
	if (!case_begin(s, file, "summed area %dx%d warps=%d", b, c, warps))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)(b * c)), *o = out(s, "o", TL_I32, x->len);
	shaped(o, 2, (int[]){b, c});
	fill(x, -99, 99);
	int64_t *above = calloc((size_t)c, sizeof *above), *total = calloc((size_t)c, sizeof *total);
	for (int i = 0; i < b * c; i++)
		total[i % c] += value_int(x, (size_t)i);
	for (int i = 0; i < b; i++) {
		int64_t row = 0, totals = 0;
		for (int j = 0; j < c; j++) {
			row += value_int(x, (size_t)(i * c + j));
			totals += total[j];
			above[j] += row;
			want_int(o, (size_t)(i * c + j), above[j] + totals);
		}
	}
	free(above), free(total);
	LAUNCH(s, "scan_of_scan", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(b), tl_int(c));
	case_end(s);
}

void theme_scan(struct suite *s)
{
	static const char *const ops[] = {"cumsum", "cumprod", "maximum", "first", "last"};
	static const int two[][2] = {{1, 1},   {1, 64},   {64, 1},  {2, 2},   {16, 16},
				     {32, 64}, {128, 32}, {4, 512}, {512, 4}, {2, 2048}},
			 three[][3] = {{1, 1, 1},  {2, 2, 2},   {4, 8, 16}, {16, 8, 4},
				       {2, 64, 8}, {32, 1, 16}, {8, 8, 8}};
	int k = 0;
	for (int n = 1; n <= 8192; n *= 2)
		for (int i = 0; i < COUNT(ops); i++, k++)
			scan(s, ops[i], types[k % COUNT(types)], 1, &n, 0, k % 2, 1 << k % 4);
	for (int t = 0; t < COUNT(types); t++)
		for (int i = 0; i < 2; i++)
			scan(s, ops[i], types[t], 1, (int[]){1024}, 0, i, 4);
	for (int i = 0; i < COUNT(two); i++)
		for (int axis = 0; axis < 2; axis++)
			for (int j = 0; j < 3; j++, k++)
				scan(s, ops[k % COUNT(ops)], types[(k + k / 12) % COUNT(types)], 2, two[i], axis,
				     k / 3 % 2, 1 << k % 4);
	for (int i = 0; i < COUNT(three); i++)
		for (int axis = -1; axis < 3; axis++, k++)
			scan(s, ops[k % COUNT(ops)], types[(k + k / 12) % COUNT(types)], 3, three[i], axis, k % 2,
			     1 << k % 5);
	for (int i = 0; i < COUNT(two); i++)
		for (int axis = 0; axis < 2; axis++, k++)
			recurrence(s, k % 4 < 2 ? TL_I32 : TL_F32, two[i][0], two[i][1], axis, k / 2 % 2, 1 << k % 4);
	recurrence(s, TL_I64, 4, 1024, 1, true, 8), recurrence(s, TL_F64, 64, 16, 0, false, 2);
	scan_of_scan(s, 1, 1, 1), scan_of_scan(s, 16, 16, 4), scan_of_scan(s, 64, 32, 2), scan_of_scan(s, 8, 256, 8);
}

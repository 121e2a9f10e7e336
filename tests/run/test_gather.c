/* tl.gather, tl.histogram and tl.map_elementwise. */
#include "themes.h"

static const char file[] = "gather.tl";

/* --- gather -------------------------------------------------------------------------------------------------- */

/* shape: zeros behind the last dimension. */
static void take(struct suite *s, tl_dtype t, tl_dtype by, const int *shape, int axis, int n, const char *form,
		 bool anywhere, int warps)
{
	int rank = shape[2] ? 3 : shape[1] ? 2 : 1, outer = 1, inner = 1, len = shape[axis];
	char name[64];
	if (!case_begin(s, file, "gather %s by %s %s to %d %s%s warps=%d", tl_dtype_name(t), tl_dtype_name(by),
			tile_name(name, rank, shape, axis), n, form, anywhere ? " anywhere" : "", warps))
		return;
	for (int d = 0; d < rank; d++)
		*(d < axis ? &outer : &inner) *= d == axis ? 1 : shape[d];
	struct array *x = in(s, "x", t, (size_t)(outer * len * inner)),
		     *index = in(s, "index", by, (size_t)(outer * n * inner)),
		     *o = out(s, "o", t, (size_t)(outer * n * inner));
	if (!anywhere)
		fill(index, 0, len - 1);
	for (int k = 0; k < outer * n * inner; k++) {
		int64_t at = value_int(index, (size_t)k) & (len - 1); /* numbers outside wrap: len is a power of two */
		size_t from = (size_t)((k / (n * inner) * len + at) * inner + k % inner);
		if (x->f)
			want(o, (size_t)k, value(x, from));
		else
			want_int(o, (size_t)k, value_int(x, from));
	}
	LAUNCH(s, "take", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(index), ptr(o), tl_int(axis),
	       tl_int(shape[0]), rank > 1 ? tl_int(shape[1]) : tl_none(), rank > 2 ? tl_int(shape[2]) : tl_none(),
	       tl_int(n), tl_str(form));
	case_end(s);
}

static void walk(struct suite *s, int n, int steps, int warps)
{
	if (!case_begin(s, file, "walk n=%d steps=%d warps=%d", n, steps, warps))
		return;
	struct array *next = in(s, "next", TL_I32, (size_t)n), *o = out(s, "o", TL_I32, (size_t)n);
	fill(next, 0, n - 1);
	for (int i = 0; i < n; i++) {
		int at = i;
		for (int k = 0; k < steps; k++)
			at = (int)value_int(next, (size_t)at);
		want_int(o, (size_t)i, at);
	}
	LAUNCH(s, "walk", CONFIG(.grid = {1}, .num_warps = warps), ptr(next), ptr(o), tl_int(steps), tl_int(n));
	case_end(s);
}

/* --- histogram ----------------------------------------------------------------------------------------------- */

static void count(struct suite *s, tl_dtype t, int m, int bins, bool masked, int programs, int warps)
{
	if (!case_begin(s, file, "histogram %s m=%d bins=%d%s programs=%d warps=%d", tl_dtype_name(t), m, bins,
			masked ? " masked" : "", programs, warps))
		return;
	int n = masked ? m * programs - m / 3 : m * programs;
	struct array *x = in(s, "x", t, (size_t)n), *o = out(s, "o", TL_I32, (size_t)(bins * programs));
	int64_t *seen = calloc((size_t)(bins * programs), sizeof *seen);
	for (int i = 0; i < n; i++) {
		/* some beside the bins: of both signs, and far away */
		int64_t v = random_int(0, 9) ? random_int(masked ? 0 : -1, bins) : t == TL_U32 ? 0xFFFFFFFF : 1 << 30;
		set_int(x, (size_t)i, v);
		v = value_int(x, (size_t)i);
		if (v >= 0 && v < bins && (!masked || v % 3 != 1))
			seen[i / m * bins + v]++;
	}
	for (int b = 0; b < bins * programs; b++)
		want_int(o, (size_t)b, seen[b]);
	free(seen);
	LAUNCH(s, "count", CONFIG(.grid = {(uint32_t)programs}, .num_warps = warps), ptr(x), ptr(o), tl_int(n),
	       tl_int(m), tl_int(bins), tl_bool(masked));
	case_end(s);
}

static void count_rows(struct suite *s, int n, int m, int bins, int warps)
{
	if (!case_begin(s, file, "histogram in a loop n=%d m=%d bins=%d warps=%d", n, m, bins, warps))
		return;
	struct array *x = in(s, "x", TL_I32, (size_t)n), *o = out(s, "o", TL_I32, (size_t)bins);
	fill(x, 0, bins - 1);
	for (int b = 0, sum = 0; b < bins; b++) {
		for (int i = 0; i < n; i++)
			sum += value_int(x, (size_t)i) == b;
		want_int(o, (size_t)b, sum);
	}
	LAUNCH(s, "count_rows", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(n), tl_int(m),
	       tl_int(bins));
	case_end(s);
}

/* --- map_elementwise ----------------------------------------------------------------------------------------- */

static int64_t gcd(int64_t a, int64_t b, int *steps)
{
	for (*steps = 0; b; ++*steps) {
		int64_t r = a % b;
		a = b;
		b = r;
	}
	return a;
}

static void mapped(struct suite *s, tl_dtype t, int m, int n, const char *form, int warps)
{
	if (!case_begin(s, file, "map %s %s %dx%d warps=%d", form, tl_dtype_name(t), m, n, warps))
		return;
	bool has_q = !strcmp(form, "gcd") || !strcmp(form, "pairs"), compares = !has_q && strcmp(form, "turned");
	struct array *x = in(s, "x", t, (size_t)(m * n)), *y = in(s, "y", t, (size_t)(m * n)),
		     *o = out(s, "o", compares ? TL_I32 : t, (size_t)(m * n)),
		     *q = out(s, "q", TL_I32, (size_t)(m * n));
	for (size_t i = 0; i < x->len; i++)
		set(x, i, (double)random_int(0, 60)), set(y, i, (double)random_int(0, 60));
	for (size_t i = 0; i < x->len; i++) {
		double a = !strcmp(form, "scalar") ? 5 : value(x, i),
		       b = !strcmp(form, "scalar") ? value(x, i)
			   : !strcmp(form, "row")  ? value(y, i % (size_t)n)
						   : value(y, i);
		int steps = 0;
		if (compares)
			want(o, i, (a > b) - (a < b));
		else if (!strcmp(form, "gcd"))
			want(o, i, (double)gcd((int64_t)a, (int64_t)b, &steps)), want(q, i, steps);
		else if (!strcmp(form, "pairs"))
			want(o, i, a + value(y, i ^ 1)), want(q, i, a < b);
		else
			want(o, i, value(x, i ^ 3));
	}
	LAUNCH(s, "mapped", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(y), ptr(o), ptr(q), tl_int(m),
	       tl_int(n), tl_str(form));
	case_end(s);
}

static void roots(struct suite *s, int n, int steps, int warps)
{
	if (!case_begin(s, file, "roots n=%d steps=%d warps=%d", n, steps, warps))
		return;
	struct array *x = in(s, "x", TL_F32, (size_t)n), *o = out(s, "o", TL_F32, (size_t)n);
	fill(x, -2, 4);
	for (int i = 0; i < n; i++) {
		double v = value(x, (size_t)i), r = v;
		for (int k = 0; k < steps; k++)
			r = 0.5 * (r + v / r);
		want(o, (size_t)i, v > 0 ? r : 0);
	}
	tolerance(o, 1e-6, 1e-5);
	LAUNCH(s, "roots", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(steps), tl_int(n));
	case_end(s);
}

static void product(struct suite *s, int n, int warps)
{
	if (!case_begin(s, file, "map of a product n=%d warps=%d", n, warps))
		return;
	struct array *x = in(s, "x", TL_F16, (size_t)(2 * n * n)), *y = in(s, "y", TL_F16, (size_t)(n * n)),
		     *o = out(s, "o", TL_F32, (size_t)(n * n));
	for (int i = 0; i < n * n; i++) {
		double acc = 0;
		for (int k = 0; k < 2; k++) {
			for (int j = 0; j < n; j++)
				acc += value(x, (size_t)(k * n * n + i / n * n + j)) *
				       value(y, (size_t)(j * n + i % n));
			acc = acc > 0 ? acc : 0;
		}
		want(o, (size_t)i, acc);
	}
	tolerance(o, 1e-4, 1e-4);
	LAUNCH(s, "product", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(y), ptr(o), tl_int(n));
	case_end(s);
}

static void gathers(struct suite *s)
{
	static const tl_dtype types[] = {TL_F32, TL_I8, TL_F16, TL_I64, TL_BF16, TL_F64, TL_U16, TL_F8E5M2, TL_I1},
			      numbers[] = {TL_I32, TL_I64, TL_I8, TL_U16, TL_U32, TL_I16, TL_U8};
	static const char *const forms[] = {"plain", "method", "twice", "pointers"};
	static const int shapes[][3] = {{32},      {1},        {64},      {1024},    {4, 4},    {2, 32},   {32, 2},
					{128, 64}, {8, 1},     {1, 8},    {64, 16},  {2, 4, 8}, {16, 2, 4}, {1, 32, 2}};
	int c = 0;
	for (int k = 0; k < COUNT(shapes); k++)
		for (int axis = 0; axis < 3 && shapes[k][axis]; axis++)
			for (int i = 0; i < 6; i++, c++) {
				tl_dtype t = types[c % COUNT(types)], by = numbers[c % COUNT(numbers)];
				const char *form = forms[i % 4];
				/* comparisons of tiles of fp8 there are none */
				if (is_fp8(t) && !strcmp(form, "twice"))
					form = "plain";
				int n = i == 0 ? shapes[k][axis] : 1 << (c * 5 + i) % 7;
				take(s, t, by, shapes[k], axis, n, form, i % 3 == 2 || bits_of(by) == 8, 1 << c % 4);
			}
	for (int warps = 1; warps <= 8; warps *= 2)
		walk(s, 32, 5, warps), walk(s, 256, 3, warps), walk(s, 4, 7, warps), walk(s, 1024, 2, warps);
}

void theme_gather(struct suite *s)
{
	static const int sizes[][2] = {{1, 1},    {1024, 8},  {256, 512}, {8, 2},     {32, 4096},
				       {2048, 2}, {16, 1024}, {4096, 64}, {128, 128}, {2, 32}};
	static const tl_dtype ints[] = {TL_I32, TL_I64, TL_U32, TL_I16, TL_U8};
	gathers(s);
	for (int k = 0; k < COUNT(sizes); k++)
		for (int i = 0; i < 4; i++)
			count(s, i & 1 ? TL_U32 : TL_I32, sizes[k][0], sizes[k][1], i & 2, 1 + k % 3, 1 << (k + i) % 4);
	count_rows(s, 1000, 64, 16, 1), count_rows(s, 5000, 512, 256, 4), count_rows(s, 100, 128, 1, 8),
		count_rows(s, 3000, 1024, 1024, 2);
	for (int k = 0; k < 5; k++) {
		int m = 1 << k, n = 1 << (k * 3 + 2) % 7, warps = 1 << k % 4;
		mapped(s, TL_F32, m, n, "compare", warps), mapped(s, ints[k], m, n, "compare", warps);
		mapped(s, TL_F16, m, n, "row", warps), mapped(s, ints[k], m, n, "row", warps);
		mapped(s, TL_BF16, m, n, "scalar", warps), mapped(s, TL_F64, m, n, "compare", warps);
		mapped(s, ints[k], m, n, "gcd", warps);
		mapped(s, TL_F32, m, n, "pairs", warps), mapped(s, ints[k], m, n, "pairs", warps);
		mapped(s, TL_F16, m, n, "turned", warps), mapped(s, ints[k], m, n, "turned", warps);
		roots(s, 1 << (2 * k + 1), k + 1, warps);
	}
	product(s, 32, 4), product(s, 64, 4), product(s, 16, 1);
}

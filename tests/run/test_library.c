/* What the library writes in the language itself: elements in another order, random numbers, libdevice. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "themes.h"

static const char file[] = "library.tl";

/* --- order --------------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

enum order { FLIP, SORT, SORT_DOWN, TOPK };

static void order(struct suite *s, enum order kind, tl_dtype t, const int *shape, int dim, int k, int warps)
{
	static const char *const names[] = {"flip", "sort", "sort down", "topk"};
	if (!case_begin(s, file, "%s %s %dx%dx%d dim=%d k=%d warps=%d", names[kind], tl_dtype_name(t), shape[0],
			shape[1], shape[2], dim, k, warps))
		return;
	int n = shape[2], rows = shape[0] * shape[1], kept = kind == TOPK ? k : n;
	struct array *x = in(s, "x", t, (size_t)(rows * n)), *o = out(s, "o", t, (size_t)(rows * kept));
	for (size_t i = 0; i < x->len; i++) /* some are equal */
		set_int(x, i, random_int(t == TL_U8 ? 0 : -100, 100));
	double *row = calloc((size_t)n, sizeof *row);
	for (int r = 0; r < rows; r++) {
		for (int c = 0; c < n; c++)
			row[c] = value(x, (size_t)(r * n + c));
		if (kind != FLIP)
			qsort(row, (size_t)n, sizeof *row, ascending);
		for (int c = 0; c < kept; c++) {
			int a = r / shape[1], b = r % shape[1];
			int at = dim == 0   ? ((shape[0] - 1 - a) * shape[1] + b) * n + c
				 : dim == 1 ? (a * shape[1] + shape[1] - 1 - b) * n + c
					    : r * n + n - 1 - c;
			want(o, (size_t)(r * kept + c),
			     kind == FLIP ? value(x, (size_t)at) : row[kind == SORT ? c : n - 1 - c]);
		}
	}
	free(row);
	LAUNCH(s, "order", CONFIG(.grid = {1}, .num_warps = warps), ptr(x), ptr(o), tl_int(kind), tl_int(dim),
	       tl_int(k), tl_int(shape[0]), tl_int(shape[1]), tl_int(shape[2]));
	case_end(s);
}

static void pairs(struct suite *s, int kind, tl_dtype t, int n)
{
	if (!case_begin(s, file, "%s %s %d", kind ? "cat" : "interleave", tl_dtype_name(t), n))
		return;
	struct array *x = in(s, "x", t, (size_t)n), *y = in(s, "y", t, (size_t)n), *o = out(s, "o", t, 2 * (size_t)n);
	for (size_t i = 0; i < o->len; i++) {
		const struct array *from = kind ? (i < x->len ? x : y) : i % 2 ? y : x;
		size_t at = kind ? i % x->len : i / 2;
		if (is_float(t))
			want_number(o, i, value(from, at));
		else
			want_int(o, i, value_int(from, at));
	}
	LAUNCH(s, "pairs", CONFIG(.grid = {1}), ptr(x), ptr(y), ptr(o), tl_int(kind), tl_int(n));
	case_end(s);
}

/* --- random numbers ------------------------------------------------------------------------------------------ */

/* Philox 4x32-10 as the paper defines it. */
static void philox(uint64_t seed, uint64_t offset, uint32_t out[4])
{
	uint32_t c[4] = {(uint32_t)offset, (uint32_t)(offset >> 32), 0, 0},
		 k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
	for (int round = 0; round < 10; round++) {
		uint64_t p = (uint64_t)0xD2511F53 * c[0], q = (uint64_t)0xCD9E8D57 * c[2];
		uint32_t next[] = {(uint32_t)(q >> 32) ^ c[1] ^ k[0], (uint32_t)q, (uint32_t)(p >> 32) ^ c[3] ^ k[1],
				   (uint32_t)p};
		memcpy(c, next, sizeof next);
		k[0] += 0x9E3779B9, k[1] += 0xBB67AE85;
	}
	memcpy(out, c, sizeof c);
}

static double uniform_of(uint32_t bits)
{
	int32_t x = (int32_t)bits;
	return (float)(x < 0 ? -x - 1 : x) * 4.6566127342e-10f;
}

enum random_kind { RANDINT, RAND, RANDN, RANDINT4X };

static void random_numbers(struct suite *s, enum random_kind kind, uint64_t seed, int start, bool wide)
{
	static const char *const names[] = {"randint", "rand", "randn", "randint4x"};
	enum { COUNT_NUMBERS = 256 };
	if (!case_begin(s, file, "%s seed=%llu start=%d%s", names[kind], (unsigned long long)seed, start,
			wide ? " wide" : ""))
		return;
	bool floats = kind == RAND || kind == RANDN;
	struct array *o = out(s, "o", floats ? TL_F32 : TL_U32, COUNT_NUMBERS);
	for (int i = 0; i < COUNT_NUMBERS; i++) {
		uint32_t r[4];
		philox(seed, wide ? (uint64_t)(start + i) * 0x100000001 : (uint32_t)(start + i), r);
		if (kind == RANDINT || kind == RANDINT4X)
			want_int(o, (size_t)i, kind == RANDINT ? r[0] : r[0] ^ r[1] ^ r[2] ^ r[3]);
		else if (kind == RAND)
			want(o, (size_t)i, uniform_of(r[0]));
		else
			want(o, (size_t)i,
			     sqrt(-2 * log(fmax(1e-7f, uniform_of(r[0])))) * cos(6.283185307179586 * uniform_of(r[1])));
	}
	if (kind == RANDN)
		tolerance(o, 4e-6, 1e-5);
	LAUNCH(s, "random", CONFIG(.grid = {1}), tl_int((int64_t)seed), ptr(o), tl_int(start), tl_int(kind),
	       tl_bool(wide), tl_int(COUNT_NUMBERS));
	case_end(s);
}

/* --- libdevice ----------------------------------------------------------------------------------------------- */

static double exp10_of(double x)
{
	return pow(10, x);
}
static double rcbrt_of(double x)
{
	return 1 / cbrt(x);
}
static double rhypot_of(double x, double y)
{
	return 1 / hypot(x, y);
}
static double saturate(double x)
{
	return fmin(fmax(x, 0), 1);
}

static const struct {
	const char *name;
	double (*f)(double);
	double (*g)(double, double);
	double lo, hi;
	double single; /* ulps that CUDA's documentation allows for fp32; 0: exact */
} functions[] = {
	{"exp10", exp10_of, NULL, -30, 30, 1.5}, /* of ex2.approx on a GPU */
	{"log10", log10, NULL, 1e-6, 1e6, 2},
	{"log1p", log1p, NULL, -0.99, 10, 1},
	{"expm1", expm1, NULL, -10, 10, 1},
	{"cbrt", cbrt, NULL, -100, 100, 1},
	{"rcbrt", rcbrt_of, NULL, 1e-3, 100, 1},
	{"tan", tan, NULL, -10, 10, 4},
	{"atan", atan, NULL, -50, 50, 2},
	{"asin", asin, NULL, -1, 1, 2},
	{"acos", acos, NULL, -1, 1, 2},
	{"sinh", sinh, NULL, -30, 30, 3},
	{"cosh", cosh, NULL, -30, 30, 2},
	{"asinh", asinh, NULL, -100, 100, 3},
	{"acosh", acosh, NULL, 1, 100, 4},
	{"atanh", atanh, NULL, -0.99, 0.99, 3},
	{"trunc", trunc, NULL, -100, 100, 0},
	{"round", round, NULL, -100, 100, 0},
	{"rint", rint, NULL, -100, 100, 0},
	{"nearbyint", rint, NULL, -5, 5, 0},
	{"saturatef", saturate, NULL, -2, 2, 0},
	{"pow", NULL, pow, 0, 20, 4},
	{"atan2", NULL, atan2, -10, 10, 3},
	{"hypot", NULL, hypot, -100, 100, 3},
	{"rhypot", NULL, rhypot_of, -100, 100, 2},
	{"copysign", NULL, copysign, -10, 10, 0},
	{"fdim", NULL, fdim, -10, 10, 0},
};

static const double specials[] = {0.0,  -0.0, 1,     -1,   0.5, -0.5, 1.5, 2.5,   2,        3,         -2, -3,
				  1e-8, 1e20, -1e20, 0.25, 7,   -7.5, 0.1, 1e-30, INFINITY, -INFINITY, NAN};

static void device_function(struct suite *s, int k, tl_dtype t, bool special)
{
	enum { BLOCK = 256, N = COUNT(specials) * COUNT(specials), ALL = (N + BLOCK - 1) / BLOCK * BLOCK };
	if (!case_begin(s, file, "%s %s%s", functions[k].name, tl_dtype_name(t), special ? " special values" : ""))
		return;
	struct array *x = in(s, "x", t, ALL), *y = in(s, "y", t, ALL), *o = out(s, "o", t, ALL);
	fill(x, functions[k].lo, functions[k].hi);
	fill(y, functions[k].lo, functions[k].hi);
	for (size_t i = 0; i < ALL && special; i++)
		set(x, i, specials[i % COUNT(specials)]), set(y, i, specials[i / COUNT(specials) % COUNT(specials)]);
	for (size_t i = 0; i < ALL; i++)
		want(o, i, functions[k].f ? functions[k].f(value(x, i)) : functions[k].g(value(x, i), value(y, i)));
	if (t == TL_F32 && functions[k].single > 0)
		tolerance_ulps(o, functions[k].single + 0.5);
	else
		tolerance(o, t == TL_F32 ? 1e-44 : 1e-300, t == TL_F32 ? 1e-9 : 8e-15);
	LAUNCH(s, "device", CONFIG(.grid = {ALL / BLOCK}), ptr(x), ptr(y), ptr(o), tl_str(functions[k].name),
	       tl_bool(!functions[k].f), tl_int(BLOCK));
	case_end(s);
}

enum bits { POPC, CLZ, FFS, BREV };

static int64_t count_bits(enum bits kind, uint64_t x, int width)
{
	uint64_t reversed = 0;
	int n = 0, high = 0, low = 0;
	for (int b = 0; b < width; b++)
		if (x >> b & 1) {
			n++;
			high = b + 1;
			low = low ? low : b + 1;
			reversed |= (uint64_t)1 << (width - 1 - b);
		}
	return kind == POPC  ? n
	       : kind == CLZ ? width - high
	       : kind == FFS ? low
	       : width == 32 ? (int32_t)reversed
			     : (int64_t)reversed;
}

static void bits(struct suite *s, enum bits kind, tl_dtype t)
{
	static const char *const names[] = {"popc", "clz", "ffs", "brev"};
	enum { N = 256 };
	if (!case_begin(s, file, "%s %s", names[kind], tl_dtype_name(t)))
		return;
	int width = t == TL_I32 ? 32 : 64;
	struct array *x = in(s, "x", t, N), *o = out(s, "o", kind == BREV ? t : TL_I32, N);
	for (size_t i = 0; i < N; i++) {
		if (i < 80)
			set_int(x, i, i < 64 ? (int64_t)((uint64_t)1 << i) : (int64_t)i - 72);
		uint64_t v = (uint64_t)value_int(x, i);
		want_int(o, i, count_bits(kind, width == 32 ? (uint32_t)v : v, width));
	}
	LAUNCH(s, "bits", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(kind), tl_int(N));
	case_end(s);
}

void theme_library(struct suite *s)
{
	static const tl_dtype types[] = {TL_F32, TL_I32, TL_F16, TL_I8, TL_BF16, TL_I64, TL_F64, TL_U8};
	static const int shapes[][3] = {{1, 1, 64}, {1, 4, 32}, {2, 4, 16}, {4, 2, 128}, {1, 1, 512}, {2, 8, 2}};
	for (int t = 0; t < COUNT(types); t++)
		for (int k = 0; k < COUNT(shapes); k++) {
			for (int dim = 0; dim < 3; dim++)
				order(s, FLIP, types[t], shapes[k], dim, 1, 1 << (t + k + dim) % 4);
			if ((t + k) % 2) /* the longer compiles are a sample */
				continue;
			order(s, SORT + t % 2, types[t], shapes[k], 2, 1, 1 << (t + k) % 4);
			order(s, TOPK, types[t], shapes[k], 2,
			      shapes[k][2] / (k % 2              ? 2
					      : shapes[k][2] > 8 ? 8
								 : 1),
			      4);
		}
	for (int t = 0; t < COUNT(types); t++)
		for (int n = 1; n <= 512; n *= 8)
			pairs(s, 0, types[t], n), pairs(s, 1, types[t], n);
	for (int kind = 0; kind < 4; kind++)
		for (int wide = 0; wide < 2; wide++) {
			random_numbers(s, kind, 10, 0, wide);
			random_numbers(s, kind, 0x123456789ABCDEF0, 1000000, wide);
		}
	for (int k = 0; k < COUNT(functions); k++)
		for (int special = 0; special < 2; special++) {
			device_function(s, k, TL_F32, special);
			if (strcmp(functions[k].name, "pow") != 0)
				device_function(s, k, TL_F64, special);
		}
	for (int kind = 0; kind < 4; kind++) {
		bits(s, kind, TL_I32);
		bits(s, kind, TL_I64);
	}
}

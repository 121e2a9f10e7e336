/* Built-in functions and options that the other themes leave out, each against plain C. */
#include "themes.h"

static const char file[] = "reference.tl";
enum { N = 64 };

static void same_bits(struct array *o, size_t at, double v) /* where NaN is any NaN */
{
	want_number(o, at, v);
}

static int32_t word_of(double v)
{
	return (int32_t)encode(TL_F32, v);
}

static void words(struct suite *s)
{
	if (!case_begin(s, file, "words"))
		return;
	struct array *x = in(s, "x", TL_F32, N), *half = out(s, "half", TL_F16, N), *bits = out(s, "bits", TL_U32, N),
		     *o = out(s, "o", TL_I32, 3);
	int32_t all = 0;
	for (size_t i = 0; i < N; i++) {
		want_number(half, i, round_toward_zero(TL_F16, value(x, i)));
		want_int(bits, i, (int64_t)(uint32_t)word_of(value(x, i)));
		all ^= word_of(value(x, i));
	}
	want_int(o, 0, all);
	want_int(o, 1, all);
	want_int(o, 2, 3 + N);
	LAUNCH(s, "words", CONFIG(.grid = {1}), ptr(x), ptr(half), ptr(bits), ptr(o), tl_int(N));
	case_end(s);
}

static void pairs(struct suite *s)
{
	if (!case_begin(s, file, "pairs"))
		return;
	struct array *x = in(s, "x", TL_I32, N), *y = in(s, "y", TL_I32, N), *o = out(s, "o", TL_I32, 8 * N);
	for (size_t i = 0; i < N; i++) {
		int64_t a = value_int(x, i), b = value_int(y, i), most = a > b ? a : b;
		want_int(o, i, a > 0 && b > 0);
		want_int(o, N + i, a > 0 || b > 0);
		want_int(o, 2 * N + i, wrap(TL_I32, a + b));
		want_int(o, 3 * N + i, wrap(TL_I32, a - b));
		want_int(o, 4 * N + i, wrap(TL_I32, a * b));
		want_int(o, 5 * N + i, most > 7 ? most : 7);
		want_int(o, 6 * N + i, wrap(TL_I32, (a < b ? a : b) + (b < 0 ? -b : b)));
		want_int(o, 7 * N + i, 0);
	}
	LAUNCH(s, "pairs", CONFIG(.grid = {1}), ptr(x), ptr(y), ptr(o), tl_int(N));
	case_end(s);
}

static void floats(struct suite *s)
{
	if (!case_begin(s, file, "floats"))
		return;
	struct array *x = in(s, "x", TL_F32, N), *y = in(s, "y", TL_F32, N), *o = out(s, "o", TL_F32, 4 * N);
	fill(y, 0.5, 4);
	tolerance(o, 1e-6, 1e-6);
	for (size_t i = 0; i < N; i++) {
		double a = value(x, i), b = value(y, i);
		want(o, i, a / b);
		want(o, N + i, fma(a, b, a));
		want(o, 2 * N + i, pow(fabs(a), b));
		want(o, 3 * N + i, a / b);
	}
	LAUNCH(s, "floats", CONFIG(.grid = {1}), ptr(x), ptr(y), ptr(o), tl_int(N));
	case_end(s);
}

static void bits(struct suite *s)
{
	static const double specials[] = {0, -0.0, INFINITY, -INFINITY, NAN, 0.5, 1.5, 2.5, -0.5, -2.5};
	if (!case_begin(s, file, "bits"))
		return;
	struct array *x = in(s, "x", TL_F32, N), *d = in(s, "d", TL_F64, N), *n = out(s, "n", TL_I32, 9 * N),
		     *l = out(s, "l", TL_I64, 3 * N), *f = out(s, "f", TL_F32, 2 * N), *g = out(s, "g", TL_F64, 4 * N);
	fill(x, -1000, 1000);
	for (size_t i = 0; i < COUNT(specials); i++)
		set(x, i, specials[i]), set(d, i, specials[i]);
	for (size_t i = 0; i < N; i++) {
		double a = value(x, i), b = value(d, i), small = fabs(a) < 1e6 ? a : 0;
		int64_t wide = (int64_t)encode(TL_F64, b);
		int32_t parts[] = {word_of(a), word_of(a), (int32_t)(wide >> 32), (int32_t)wide};
		for (size_t k = 0; k < 4; k++)
			want_int(n, k * N + i, parts[k]);
		want_int(n, 4 * N + i, signbit(a) != 0);
		want_int(n, 5 * N + i, isnan(a));
		want_int(n, 6 * N + i, isinf(a) != 0);
		want_int(n, 7 * N + i, isfinite(a));
		want_int(n, 8 * N + i, isfinite(b));
		want_int(l, i, wide);
		want_int(l, N + i, llrint(small));
		want_int(l, 2 * N + i, llround(small));
		same_bits(f, i, a), same_bits(f, N + i, a);
		same_bits(g, i, b), same_bits(g, N + i, b);
		want(g, 2 * N + i, word_of(a));
		want(g, 3 * N + i, (uint32_t)word_of(a));
	}
	LAUNCH(s, "bits", CONFIG(.grid = {1}), ptr(x), ptr(d), ptr(n), ptr(l), ptr(f), ptr(g), tl_int(N));
	case_end(s);
}

static double rsqrt_of(double x)
{
	return 1 / sqrt(x);
}
static double exp10_of(double x)
{
	return pow(10, x);
}

/* Functions of libdevice that hardware has, and faster ones of fp32; how exact those of fp32 are. */
static const struct {
	const char *name;
	double (*f)(double);
	double lo, hi, relative;
	bool only_fp32;
} functions[] = {
	{"exp", exp, -10, 10, 4e-6, false},       {"exp2", exp2, -10, 10, 1e-6, false},
	{"log", log, 0.1, 100, 1e-6, false},      {"log2", log2, 0.1, 100, 1e-6, false},
	{"sqrt", sqrt, 0, 100, 1e-6, false},      {"rsqrt", rsqrt_of, 0.1, 100, 1e-6, false},
	{"sin", sin, -10, 10, 1e-6, false},       {"cos", cos, -10, 10, 1e-6, false},
	{"erf", erf, -3, 3, 1e-6, false},         {"floor", floor, -100, 100, 0, false},
	{"ceil", ceil, -100, 100, 0, false},      {"abs", fabs, -100, 100, 0, false},
	{"fabs", fabs, -100, 100, 0, false},      {"tanh", tanh, -3, 3, 1e-6, false},
	{"fast_expf", exp, -10, 10, 4e-6, true},  {"fast_exp10f", exp10_of, -5, 5, 1e-5, true},
	{"fast_logf", log, 2, 100, 1e-5, true},   {"fast_log2f", log2, 2, 100, 1e-5, true},
	{"fast_log10f", log10, 2, 100, 1e-5, true}, {"fast_sinf", sin, -3, 3, 1e-5, true},
	{"fast_cosf", cos, -3, 3, 1e-5, true},    {"fast_tanf", tan, -1, 1, 1e-5, true},
	{"fast_tanhf", tanh, -3, 3, 1e-5, true},
};

static void function(struct suite *s, int k, tl_dtype t)
{
	if (!case_begin(s, "library.tl", "%s %s", functions[k].name, tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, 4 * N), *o = out(s, "o", t, 4 * N);
	double relative = functions[k].relative;
	fill(x, functions[k].lo, functions[k].hi);
	if (relative > 0)
		tolerance(o, t == TL_F32 ? 1e-6 : 1e-14, t == TL_F32 ? relative : 1e-14);
	for (size_t i = 0; i < x->len; i++)
		want(o, i, functions[k].f(value(x, i)));
	LAUNCH(s, "device", CONFIG(.grid = {4}), ptr(x), ptr(x), ptr(o), tl_str(functions[k].name), tl_bool(false),
	       tl_int(N));
	case_end(s);
}

/* rsqrt_rn is correctly rounded. rcp64h gives the reciprocal's upper half: 20 bits of the mantissa. */
static void reciprocals(struct suite *s)
{
	if (!case_begin(s, file, "reciprocals"))
		return;
	struct array *x = in(s, "x", TL_F32, N), *d = in(s, "d", TL_F64, N), *o = out(s, "o", TL_F32, N),
		     *high = out(s, "high", TL_F64, N);
	fill(x, 0.001, 100);
	fill(d, 0.5, 8);
	tolerance(high, 0, 0x1p-19);
	for (size_t i = 0; i < N; i++) {
		want(o, i, 1 / sqrt(value(x, i)));
		want(high, i, 1 / value(d, i));
	}
	LAUNCH(s, "reciprocals", CONFIG(.grid = {1}), ptr(x), ptr(d), ptr(o), ptr(high), tl_int(N));
	case_end(s);
}

static void types(struct suite *s, tl_dtype t)
{
	static const tl_dtype ones[] = {TL_I1,  TL_I1,  TL_I8,  TL_I16,  TL_I32, TL_I64, TL_U8, TL_U16, TL_U32,
					TL_U64, TL_F16, TL_BF16, TL_F32, TL_F64, TL_F8E4M3, TL_F8E5M2,
					TL_F8E4B15};
	if (!case_begin(s, file, "types %s", tl_dtype_name(t)))
		return;
	bool i = !is_float(t) && !is_fp8(t);
	struct array *o = out(s, "o", TL_I64, 33);
	const bool kinds[] = {!i, !i && !is_fp8(t), i, i && is_signed(t), i && !is_signed(t), is_fp8(t),
			      false, false, false, false};
	for (size_t k = 0; k < COUNT(kinds); k++)
		want_int(o, k, kinds[k]);
	for (size_t k = 0; k < COUNT(ones); k++)
		want_int(o, COUNT(kinds) + k, ones[k] == t);
	want_int(o, 27, 0);
	want_int(o, 28, 0);
	if (i) {
		want_int(o, 29, t == TL_I1 ? 0 : least(t));
		want_int(o, 30, t == TL_I1 ? 1 : most(t));
		want_int(o, 31, 1);
	}
	want_int(o, 32, 1);
	LAUNCH(s, "types", CONFIG(.grid = {1}), ptr(o), tl_type(t));
	case_end(s);
}

static void classes(struct suite *s)
{
	enum { ANSWERS = 34 };
	if (!case_begin(s, file, "classes"))
		return;
	struct array *x = in(s, "x", TL_I32, 8), *o = out(s, "o", TL_I32, ANSWERS);
	for (size_t k = 0; k < ANSWERS; k++)
		want_int(o, k, 1);
	LAUNCH(s, "classes", CONFIG(.grid = {1}), ptr(x), ptr(o));
	case_end(s);
}

static void inherited(struct suite *s, int n)
{
	if (!case_begin(s, file, "inherited n=%d", n))
		return;
	struct array *x = in(s, "x", TL_I32, N), *o = out(s, "o", TL_I32, N);
	fill(x, -1000, 1000);
	for (size_t i = 0; i < N; i++) {
		int64_t low = value_int(x, i), width = (int64_t)i, by = 1;
		for (int k = 0; k < n; k++) {
			low -= k;
			width *= by++;
		}
		want_int(o, i, low + width);
	}
	LAUNCH(s, "inherited", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(n));
	case_end(s);
}

static void loops(struct suite *s, int n)
{
	if (!case_begin(s, file, "loops n=%d", n))
		return;
	struct array *o = out(s, "o", TL_I32, 4);
	int64_t a = 0, b = 0, c = n;
	for (int i = 0; i < n; i++) {
		a += i % 2 ? 0 : i * i;
		b = wrap(TL_I32, b * 3 + i);
	}
	for (int i = 0; i < n; i++)
		b = wrap(TL_I32, b + i);
	while (c > 5)
		c -= 3;
	want_int(o, 0, a);
	want_int(o, 1, b);
	want_int(o, 2, c);
	want_int(o, 3, c + 1);
	LAUNCH(s, "loops", CONFIG(.grid = {1}), ptr(o), tl_int(n));
	case_end(s);
}

static void rows(struct suite *s, int kind, int a, int b)
{
	if (!case_begin(s, file, "rows kind=%d %dx%d", kind, a, b))
		return;
	int kept = kind == 2 ? b / 2 : kind == 4 ? 1 : b;
	struct array *x = in(s, "x", TL_I32, (size_t)(a * b)),
		     *o = out(s, "o", TL_I32, (size_t)(a * kept * (kind == 3 || kind == 5 ? 2 : 1)));
	for (int r = 0; r < a; r++) {
		int64_t sum = 0;
		for (int c = 0; c < b; c++) { /* rises up to the middle, then falls between those values */
			size_t at = (size_t)(r * b + c);
			int64_t v = 10 * (c < b / 2 ? 2 * c : 2 * (b - 1 - c) + 1) - r;
			set_int(x, at, v);
			sum += v;
			if (kind == 3) {
				want_int(o, at, v);
				want_int(o, (size_t)((a + r) * b + c), v + 1);
			}
			if (kind == 5) {
				want_int(o, (size_t)(r * 2 * b + c), v);
				want_int(o, (size_t)(r * 2 * b + b + c), v + 1);
			}
		}
		for (int c = 0; c < kept && kind < 3; c++)
			want_int(o, (size_t)(r * kept + c), 10 * (kind == 1 ? b - 1 - c : c) - r);
		if (kind == 4)
			want_int(o, (size_t)r, sum);
	}
	LAUNCH(s, "rows", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(kind), tl_int(a), tl_int(b));
	case_end(s);
}

static void philox(uint32_t seed, uint32_t offset, int rounds, uint32_t c[4])
{
	uint32_t k0 = seed, k1 = 0;
	c[0] = offset, c[1] = c[2] = c[3] = 0;
	for (int r = 0; r < rounds; r++) {
		uint64_t p = 0xD2511F53ull * c[0], q = 0xCD9E8D57ull * c[2];
		uint32_t next[] = {(uint32_t)(q >> 32) ^ c[1] ^ k0, (uint32_t)q, (uint32_t)(p >> 32) ^ c[3] ^ k1,
				   (uint32_t)p};
		memcpy(c, next, sizeof next);
		k0 += 0x9E3779B9, k1 += 0xBB67AE85;
	}
}

static double uniform_of(uint32_t bits)
{
	int32_t x = (int32_t)bits;
	return (float)(x < 0 ? -x - 1 : x) * 4.6566127342e-10f;
}

static double normal_of(uint32_t first, uint32_t second, bool sine)
{
	double angle = 6.283185307179586 * uniform_of(second);
	return sqrt(-2 * log(fmax(1e-7f, uniform_of(first)))) * (sine ? sin(angle) : cos(angle));
}

static void random_words(struct suite *s, int rounds)
{
	if (!case_begin(s, file, "random n_rounds=%d", rounds))
		return;
	struct array *o = out(s, "o", TL_U32, 5 * N), *f = out(s, "f", TL_F32, 6 * N);
	tolerance(f, 4e-6, 1e-5);
	for (size_t i = 0; i < N; i++) {
		uint32_t c[4];
		philox(1234, (uint32_t)i, rounds, c);
		const uint32_t w[] = {c[0], c[3], c[0], c[1], c[2]};
		for (size_t k = 0; k < COUNT(w); k++)
			want_int(o, k * N + i, w[k]);
		want(f, i, uniform_of(c[0]));
		want(f, N + i, uniform_of(c[3]));
		want(f, 2 * N + i, uniform_of(c[2]));
		want(f, 3 * N + i, normal_of(c[0], c[1], false));
		want(f, 4 * N + i, normal_of(c[2], c[3], true));
		want(f, 5 * N + i, normal_of(c[0], c[1], true));
	}
	LAUNCH(s, "random", CONFIG(.grid = {1}), tl_int(1234), ptr(o), ptr(f), tl_int(N), tl_int(rounds));
	case_end(s);
}

static void reductions(struct suite *s, tl_dtype t)
{
	if (!case_begin(s, file, "reductions %s", tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, N), *n = out(s, "n", TL_I64, 2 + 2 * N), *f = out(s, "f", TL_F32, N);
	int64_t sum = 0;
	uint64_t product = 1;
	double total = 0;
	tolerance(f, 0, 2e-6);
	for (size_t i = 0; i < N; i++)
		set_int(x, i, (int64_t)(i * 37 + 11) % 67 - (is_signed(t) ? 30 : 0));
	size_t most = 0, least = 0;
	for (size_t i = 0; i < N; i++) {
		int64_t v = value_int(x, i);
		most = v > value_int(x, most) ? i : most;
		least = v < value_int(x, least) ? i : least;
		want_int(n, 2 + i, sum += v);
		want_int(n, 2 + N + i, (int64_t)(product *= (uint64_t)v));
		total += exp((double)v / N);
	}
	want_int(n, 0, (int64_t)most);
	want_int(n, 1, (int64_t)least);
	for (size_t i = 0; i < N; i++)
		want(f, i, exp((double)value_int(x, i) / N) / total);
	LAUNCH(s, "reductions", CONFIG(.grid = {1}), ptr(x), ptr(n), ptr(f), tl_int(N));
	case_end(s);
}

static void blocks(struct suite *s)
{
	enum { R = 21, C = 16 };
	if (!case_begin(s, file, "blocks"))
		return;
	struct array *x = in(s, "x", TL_F32, R * C), *o = out(s, "o", TL_F32, R * C);
	for (size_t i = 0; i < R * C; i++)
		want(o, i, 2 * value(x, i));
	LAUNCH(s, "blocks", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(R), tl_int(C));
	case_end(s);
}

static void atomics(struct suite *s, tl_dtype t, const char *sem, const char *scope)
{
	if (!case_begin(s, file, "atomic load and store %s sem=%s scope=%s", tl_dtype_name(t), sem ? sem : "",
			scope ? scope : ""))
		return;
	struct array *x = inout(s, "x", t, N), *old = out(s, "old", t, N), *v = in(s, "v", t, N),
		     *done = out(s, "done", TL_I32, N);
	for (size_t i = 0; i < N; i++) {
		set(x, i, (double)(i % 100)), set(v, i, (double)(100 - i % 3));
		if (i % 2 == 0)
			want(x, i, value(v, i));
		if (i > 3)
			want(old, i, i % 2 == 0 ? value(v, i) : value(x, i));
		want_int(done, i, i % 2 == 0);
	}
	LAUNCH(s, "atomics", CONFIG(.grid = {1}), ptr(x), ptr(old), ptr(v), ptr(done), sem ? tl_str(sem) : tl_none(),
	       scope ? tl_str(scope) : tl_none(), tl_int(N));
	case_end(s);
}

static void chain(struct suite *s)
{
	enum { PROGRAMS = 12 };
	if (!case_begin(s, file, "chain"))
		return;
	struct array *flag = inout(s, "flag", TL_I32, PROGRAMS), *sum = inout(s, "sum", TL_I32, PROGRAMS + 1),
		     *x = in(s, "x", TL_I32, PROGRAMS);
	int64_t all = 5;
	set_int(sum, 0, all);
	for (size_t i = 0; i < PROGRAMS; i++) {
		set_int(flag, i, 0);
		want_int(flag, i, 1);
		set_int(sum, i + 1, -1);
		want_int(sum, i + 1, all = wrap(TL_I32, all + value_int(x, i)));
	}
	LAUNCH(s, "chain", CONFIG(.grid = {PROGRAMS}), ptr(flag), ptr(sum), ptr(x));
	case_end(s);
}

static void product(struct suite *s)
{
	if (!case_begin(s, file, "product of fp8"))
		return;
	struct array *x = in(s, "x", TL_F8E4M3, 1024), *y = in(s, "y", TL_F8E4M3, 1024), *o = out(s, "o", TL_F32, 1024);
	tolerance(o, 1e-4, 1e-3);
	for (size_t i = 0; i < 1024; i++) {
		double sum = 0;
		for (size_t k = 0; k < 32; k++)
			sum += value(x, i / 32 * 32 + k) * value(y, k * 32 + i % 32);
		want(o, i, sum);
	}
	LAUNCH(s, "product", CONFIG(.grid = {1}), ptr(x), ptr(y), ptr(o));
	case_end(s);
}

void theme_reference(struct suite *s)
{
	static const char *const sems[] = {NULL, "relaxed", "release"}, *const scopes[] = {NULL, "gpu", "cta", "sys"};
	static const tl_dtype atomic_types[] = {TL_I32, TL_F32, TL_I64, TL_F64, TL_U32, TL_U64},
			      small[] = {TL_I8, TL_I32, TL_U8, TL_I64};
	words(s);
	pairs(s);
	floats(s);
	bits(s);
	reciprocals(s);
	for (int k = 0; k < COUNT(functions); k++) {
		function(s, k, TL_F32);
		if (!functions[k].only_fp32)
			function(s, k, TL_F64);
	}
	for (int t = TL_I1; t < DTYPES; t++)
		types(s, (tl_dtype)t);
	classes(s);
	for (int n = 0; n < 12; n += 5)
		loops(s, n), inherited(s, n / 2);
	for (int kind = 0; kind < 6; kind++)
		for (int b = 4; b <= 64; b *= 4)
			rows(s, kind, 4, b);
	random_words(s, 10);
	random_words(s, 7);
	for (int k = 0; k < COUNT(small); k++)
		reductions(s, small[k]);
	blocks(s);
	for (int k = 0; k < 12; k++)
		atomics(s, atomic_types[k % COUNT(atomic_types)], sems[k % COUNT(sems)], scopes[k % COUNT(scopes)]);
	chain(s);
	product(s);
}

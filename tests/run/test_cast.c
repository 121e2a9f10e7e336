/* Conversions between every pair of types, operands of different types, and their promotion. */
#include "themes.h"

static const char file[] = "elementwise.tl";
enum { N = 900, BLOCK = 1024 };

/* Numbers around the places where rounding and saturation change: the formats' limits, halfway cases, powers of two. */
static double hard_number(tl_dtype to)
{
	static const double anchors[] = {0,      1,       448,     464,      57344,   61440,      65504,      65520,
					 0x1p-9, 0x1p-10, 0x1p-16, 0x1p-17,  0x1p-24, 0x1p-25,    0x1p-126,   0x1p-149,
					 127,    128,     255,     256,      32767,   32768,      65535,      0x1p31,
					 0x1p32, 0x1p63,  0x1p64,  INFINITY, NAN,     0x1.FEp127, 0x1.FFp127, 0x1p24};
	double v = anchors[random_int(0, COUNT(anchors) - 1)];
	static const int least_normal[] = {-6, -14, -126};
	switch (random_int(0, 5)) {
	case 0: break;
	case 1: v = uniform(-1, 1) * ldexp(1, (int)random_int(-30, 70)); break;
	case 2: v += uniform(-2, 2); break;
	case 3: { /* between two neighbours of the target format, near the middle */
		double x = ldexp(uniform(1, 2), (int)random_int(-18, 20));
		if (is_float(to)) {
			double u = ulp(to, x);
			v = round_toward_zero(to, x) + u / 2 +
			    u * (double)random_int(-1, 1) * ldexp(1, -(int)random_int(3, 42));
		} else {
			v = floor(x) + 0.5;
		}
		break;
	}
	case 4: v = ldexp(uniform(0, 4), least_normal[random_int(0, COUNT(least_normal) - 1)]); break;
	default: v = uniform(-300, 300);
	}
	return random_bits() & 1 ? -v : v;
}

static int64_t hard_int(tl_dtype from, tl_dtype to)
{
	int64_t v = (int64_t)(random_bits() >> random_int(0, 63));
	if (random_bits() % 3 == 0 && is_float(to)) { /* just beside the middle of two neighbours */
		double x = ldexp(uniform(1, 2), (int)random_int(3, 62)), u = ulp(to, x);
		v = (int64_t)(round_toward_zero(TL_F64, floor(x / u) * u)) + (int64_t)(u / 2) + random_int(-1, 1);
	}
	return wrap(from, random_bits() & 1 ? (int64_t)(0 - (uint64_t)v) : v);
}

/* Toward zero; saturating; NaN is 0. */
static int64_t float_to_int(tl_dtype to, double v)
{
	if (isnan(v))
		return 0;
	v = trunc(v);
	if (v < int_value(to, least(to)))
		return least(to);
	return v >= ldexp(1, bits_of(to) - is_signed(to)) ? most(to) : to == TL_U64 ? (int64_t)(uint64_t)v : (int64_t)v;
}

/* x as a `from`, converted. Integers become fp8 by way of fp32; otherwise there is one rounding. */
static void want_cast(struct array *o, size_t i, const struct array *x)
{
	tl_dtype from = x->dtype, to = o->dtype;
	int64_t n = is_float(from) ? 0 : value_int(x, i);
	if (from == to && is_float(from))
		want_number(o, i, value(x, i));
	else if (is_float(from) && is_float(to))
		want(o, i, value(x, i));
	else if (to == TL_I1)
		want_int(o, i, is_float(from) ? !(value(x, i) == 0) : n != 0);
	else if (is_float(from))
		want_int(o, i, float_to_int(to, value(x, i)));
	else if (!is_float(to))
		want_int(o, i, n);
	else if (is_fp8(to) || to == TL_F32)
		want(o, i, from == TL_U64 ? (double)(float)(uint64_t)n : (double)(float)n);
	else if (to == TL_F64)
		want(o, i, int_value(from, n));
	else { /* a 64-bit integer is not a double: make what is below the last place odd */
		uint64_t magnitude = from != TL_U64 && n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
		uint64_t odd = magnitude >> 53 ? (magnitude & ~0x7FFull) | ((magnitude & 0x7FF) != 0) << 11 : magnitude;
		want(o, i, from != TL_U64 && n < 0 ? -(double)odd : (double)odd);
	}
}

static void cast(struct suite *s, tl_dtype from, tl_dtype to)
{
	if (!case_begin(s, file, "%s to %s", tl_dtype_name(from), tl_dtype_name(to)))
		return;
	struct array *x = in(s, "x", from, N), *o = out(s, "o", to, N);
	if (is_float(from) && bits_of(from) <= 16)
		fill_bits(x);
	for (size_t i = 0; i < N; i++) {
		if (is_float(from) && (bits_of(from) > 16 || i % 3 == 0))
			set(x, i, hard_number(to));
		else if (!is_float(from) && i > 2)
			set_int(x, i, hard_int(from, to));
		else if (!is_float(from))
			set_int(x, i, i == 0 ? least(from) : i == 1 ? most(from) : 0);
		want_cast(o, i, x);
	}
	LAUNCH(s, "convert", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(N), tl_int(BLOCK));
	case_end(s);
}

static void rounding(struct suite *s, tl_dtype from, tl_dtype to, bool toward_zero)
{
	const char *name = toward_zero ? "rtz" : "rtne";
	if (!case_begin(s, file, "%s to %s %s", tl_dtype_name(from), tl_dtype_name(to), name))
		return;
	struct array *x = in(s, "x", from, N), *o = out(s, "o", to, N);
	for (size_t i = 0; i < N; i++) {
		set(x, i, hard_number(to));
		want(o, i, toward_zero ? round_toward_zero(to, value(x, i)) : value(x, i));
	}
	LAUNCH(s, "convert_rounding", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(N), tl_str(name), tl_int(BLOCK));
	case_end(s);
}

static void bitcast(struct suite *s, tl_dtype from, tl_dtype to)
{
	if (!case_begin(s, file, "bits of %s as %s", tl_dtype_name(from), tl_dtype_name(to)))
		return;
	struct array *x = in(s, "x", from, N), *o = out(s, "o", to, N);
	fill_bits(x);
	for (size_t i = 0; i < N; i++) {
		uint64_t bits = 0;
		memcpy(&bits, x->raw + x->before + i * tl_dtype_size(from), tl_dtype_size(from));
		if (is_float(to))
			want_number(o, i, decode(to, bits));
		else
			want_int(o, i, (int64_t)bits);
	}
	LAUNCH(s, "convert_bits", CONFIG(.grid = {1}, .num_warps = 2), ptr(x), ptr(o), tl_int(N), tl_int(BLOCK));
	case_end(s);
}

/* Of float8, which has no other arithmetic. */
static void absolute(struct suite *s, tl_dtype t)
{
	enum { ALL = 256 };
	if (!case_begin(s, file, "abs %s", tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, ALL), *o = out(s, "o", t, ALL);
	for (size_t i = 0; i < ALL; i++) {
		x->f[i] = decode(t, i);
		x->raw[x->before + i] = (unsigned char)i;
		want_number(o, i, fabs(x->f[i]));
	}
	LAUNCH(s, "absolute", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(ALL));
	case_end(s);
}

/* --- two types ----------------------------------------------------------------------------------------------- */

static tl_dtype promoted_ints(tl_dtype a, tl_dtype b)
{
	if (is_signed(a) == is_signed(b))
		return bits_of(a) > bits_of(b) ? a : b;
	tl_dtype u = is_signed(a) ? b : a, i = is_signed(a) ? a : b;
	return bits_of(u) >= bits_of(i) ? u : i;
}

static tl_dtype promoted(tl_dtype a, tl_dtype b)
{
	if (a == TL_F64 || b == TL_F64)
		return TL_F64;
	if (a == TL_F32 || b == TL_F32)
		return TL_F32;
	if (a == TL_F16 || b == TL_F16)
		return TL_F16;
	if (a == TL_BF16 || b == TL_BF16)
		return a == b ? TL_BF16 : TL_F32;
	return promoted_ints(a, b);
}

static double as_float(tl_dtype t, const struct array *x, size_t i)
{
	return round_to(t, value(x, i));
}

static void pair(struct suite *s, tl_dtype a, tl_dtype b)
{
	tl_dtype t = promoted(a, b);
	if (!case_begin(s, file, "%s with %s", tl_dtype_name(a), tl_dtype_name(b)))
		return;
	struct array *x = in(s, "x", a, N), *y = in(s, "y", b, N), *sum = out(s, "sum", t, N),
		*less = out(s, "less", TL_I1, N),
		     *which = out(s, "which", t, N);
	if (is_float(t)) { /* small integers, so that they meet */
		fill(x, a == TL_I1 ? 0 : is_float(a) || is_signed(a) ? -20 : 0, a == TL_I1 ? 1 : 20);
		fill(y, b == TL_I1 ? 0 : is_float(b) || is_signed(b) ? -20 : 0, b == TL_I1 ? 1 : 20);
	}
	for (size_t i = 0; i < N; i++) {
		if (is_float(t)) {
			double p = as_float(t, x, i), q = as_float(t, y, i);
			want(sum, i, p + q);
			want(less, i, p < q);
			want(which, i, i % 4 ? q : p);
			continue;
		}
		int64_t p = wrap(t, value_int(x, i)), q = wrap(t, value_int(y, i));
		want_int(sum, i, apply_int("+", t, p, q));
		want_int(less, i, apply_int("<", t, p, q));
		want_int(which, i, i % 4 ? q : p);
	}
	LAUNCH(s, "mixed", CONFIG(.grid = {1}), ptr(x), ptr(y), ptr(sum), ptr(less), ptr(which), tl_int(N),
	       tl_int(BLOCK));
	case_end(s);
}

static void quotient(struct suite *s, tl_dtype a, tl_dtype b)
{
	tl_dtype t = promoted_ints(a, b);
	if (!case_begin(s, file, "%s // %s", tl_dtype_name(a), tl_dtype_name(b)))
		return;
	struct array *x = in(s, "x", a, N), *y = in(s, "y", b, N), *o = out(s, "o", t, N);
	for (size_t i = 0; i < N; i++) {
		if (i % 2)
			set_int(y, i, random_int(-9, 9));
		if (!value_int(y, i) || (is_signed(b) && value_int(y, i) == -1))
			set_int(y, i, 7);
		want_int(o, i, apply_int("/", t, value_int(x, i), value_int(y, i)));
	}
	LAUNCH(s, "divide_mixed", CONFIG(.grid = {1}), ptr(x), ptr(y), ptr(o), tl_int(N), tl_int(BLOCK));
	case_end(s);
}

/* Constants in the type of x, in which everything is computed. */
static void rounded_constants(struct suite *s, tl_dtype t)
{
	enum { MANY = 64 };
	if (!case_begin(s, file, "rounded constants of %s", tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, MANY), *o = out(s, "o", TL_F32, 4 * MANY);
	double tenth = round_to(t, 0.1), most = round_to(t, 0.3);
	for (size_t i = 0; i < MANY; i++) { /* at the constants and beside them */
		double at = i % 2 ? tenth : most, ulps = (int)(i / 2 % 3) - 1,
		       v = round_to(t, at * (1 + 2 * ulps * unit_roundoff(t)));
		set(x, i, i % 7 ? v : uniform(-1, 1));
		v = value(x, i);
		want(o, i, (v < tenth) + 2 * (v == tenth));
		want(o, MANY + i, fmax(v, tenth));
		want(o, 2 * MANY + i, fmin(fmax(v, tenth), most));
		want(o, 3 * MANY + i, round_to(t, tenth * v + most));
	}
	LAUNCH(s, "rounded_constants", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(MANY));
	case_end(s);
}

static void of_fp8(struct suite *s, tl_dtype t)
{
	enum { MANY = 128 };
	if (!case_begin(s, file, "extrema and quotients of %s", tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, MANY), *y = in(s, "y", t, MANY), *o = out(s, "o", t, 3 * MANY),
		     *q = out(s, "q", TL_F32, 2 * MANY);
	for (size_t i = 0; i < MANY; i++) {
		set(x, i, i % 11 == 3 && t != TL_F8E4B15 ? NAN
			  : i % 13 == 5 && t == TL_F8E5M2     ? -INFINITY
							    : uniform(-1.5, 1.5));
		set(y, i, i % 17 == 4 && t == TL_F8E5M2 ? INFINITY : i % 2 ? uniform(-1.5, -0.5) : uniform(0.5, 1.5));
		double a = value(x, i), b = value(y, i);
		want(o, i, fmax(a, b));
		want(o, MANY + i, isnan(a) ? NAN : fmin(a, b));
		want(o, 2 * MANY + i, fmin(isnan(a) ? 0.5 : fmax(a, 0.5), b));
		want(q, i, a / b);
		want(q, MANY + i, fmod(a, b));
	}
	tolerance(q, 0, 0x1p-22); /* div.full.f32 */
	LAUNCH(s, "of_fp8", CONFIG(.grid = {1}), ptr(x), ptr(y), ptr(o), ptr(q), tl_int(MANY));
	case_end(s);
}

static void of_both_signs(struct suite *s, tl_dtype a, tl_dtype b)
{
	enum { MANY = 32 };
	if (!case_begin(s, file, "%s joined with %s", tl_dtype_name(a), tl_dtype_name(b)))
		return;
	struct array *x = in(s, "x", a, MANY), *y = in(s, "y", b, MANY), *pair = out(s, "pair", TL_I64, 2 * MANY),
		     *cat = out(s, "cat", TL_I64, 2 * MANY), *turn = out(s, "turn", TL_I64, 2 * MANY);
	for (size_t i = 0; i < MANY; i++) {
		int64_t p = value_int(x, i), q = wrap(a, value_int(y, i));
		want_int(pair, 2 * i, p), want_int(pair, 2 * i + 1, q);
		want_int(turn, 2 * i, p), want_int(turn, 2 * i + 1, q);
		want_int(cat, i, p), want_int(cat, MANY + i, q);
	}
	LAUNCH(s, "of_both_signs", CONFIG(.grid = {1}), ptr(x), ptr(y), ptr(pair), ptr(cat), ptr(turn), tl_int(MANY));
	case_end(s);
}

static void by_truth(struct suite *s, tl_dtype t, int k)
{
	enum { MANY = 32 };
	if (!case_begin(s, file, "the first %d, and a gather by i1, of %s", k, tl_dtype_name(t)))
		return;
	tl_dtype wide = k == MANY || bits_of(t) >= 32 ? t : is_float(t) ? TL_F32 : TL_I32;
	struct array *x = in(s, "x", t, MANY), *o = out(s, "o", t, MANY), *top = out(s, "top", wide, (size_t)k);
	double sorted[MANY];
	for (int i = 0; i < MANY; i++) {
		sorted[i] = is_float(t) ? value(x, (size_t)i) : (double)value_int(x, (size_t)i);
		for (int j = i; j && sorted[j] > sorted[j - 1]; j--) {
			double swap = sorted[j];
			sorted[j] = sorted[j - 1], sorted[j - 1] = swap;
		}
		if (is_float(t))
			want(o, (size_t)i, value(x, i & 2 ? 1 : 0));
		else
			want_int(o, (size_t)i, value_int(x, i & 2 ? 1 : 0));
	}
	for (int i = 0; i < k; i++)
		if (is_float(t))
			want(top, (size_t)i, sorted[i]);
		else
			want_int(top, (size_t)i, (int64_t)sorted[i]);
	LAUNCH(s, "by_truth", CONFIG(.grid = {1}), ptr(x), ptr(o), ptr(top), tl_int(MANY), tl_int(k));
	case_end(s);
}

static void ignored_type(struct suite *s, tl_dtype t, tl_dtype r)
{
	enum { SIDE = 32 };
	if (!case_begin(s, file, "out_dtype=fp16 of %s", tl_dtype_name(t)))
		return;
	struct array *x = in(s, "x", t, SIDE * SIDE), *o = out(s, "o", r, SIDE * SIDE);
	for (size_t i = 0; i < x->len; i++)
		if (is_float(t))
			set(x, i, random_int(-100, 100)); /* sums beyond what fp16 has, exact in fp32 */
	for (size_t m = 0; m < SIDE; m++)
		for (size_t n = 0; n < SIDE; n++) {
			double sum = 0;
			for (size_t k = 0; k < SIDE; k++)
				sum += is_float(t) ? value(x, m * SIDE + k) * value(x, k * SIDE + n)
						   : (double)(value_int(x, m * SIDE + k) * value_int(x, k * SIDE + n));
			if (is_float(r))
				want(o, m * SIDE + n, sum);
			else
				want_int(o, m * SIDE + n, (int64_t)sum);
		}
	LAUNCH(s, "ignored_type", CONFIG(.grid = {1}), ptr(x), ptr(o), tl_int(SIDE));
	case_end(s);
}

/* An integer for a parameter of type int1, and numbers stored as int1: they are true unless 0. */
static void truth_of(struct suite *s, int64_t n)
{
	if (!case_begin(s, file, "the truth of %lld", (long long)n))
		return;
	struct array *o = out(s, "o", TL_I1, 3);
	want_int(o, 0, n != 0), want_int(o, 1, 1), want_int(o, 2, 1);
	LAUNCH(s, "truth_of", CONFIG(.grid = {1}), ptr(o), tl_int(n));
	LAUNCH(s, "truth_of", CONFIG(.grid = {1}), ptr(o), tl_bool(n != 0));
	case_end(s);
}

static void types_of_triton(struct suite *s)
{
	static const tl_dtype fp8[] = {TL_F8E4M3, TL_F8E5M2, TL_F8E4B15};
	static const tl_dtype top[] = {TL_I8, TL_U16, TL_BF16, TL_F16, TL_I32};
	static const int64_t truths[] = {0, 1, 2, -1, 256, INT64_MIN};
	rounded_constants(s, TL_F16), rounded_constants(s, TL_BF16);
	for (int k = 0; k < 3; k++)
		of_fp8(s, fp8[k]);
	of_both_signs(s, TL_U8, TL_I8), of_both_signs(s, TL_I16, TL_U16);
	of_both_signs(s, TL_I32, TL_U32), of_both_signs(s, TL_U64, TL_I64);
	for (int k = 0; k < COUNT(top); k++)
		by_truth(s, top[k], 1), by_truth(s, top[k], 4), by_truth(s, top[k], 32);
	ignored_type(s, TL_BF16, TL_F32), ignored_type(s, TL_F32, TL_F32), ignored_type(s, TL_F64, TL_F64);
	ignored_type(s, TL_I8, TL_I32);
	for (int k = 0; k < COUNT(truths); k++)
		truth_of(s, truths[k]);
}

void theme_cast(struct suite *s)
{
	types_of_triton(s);
	for (int a = 0; a < DTYPES; a++)
		for (int b = 0; b < DTYPES; b++) {
			tl_dtype from = (tl_dtype)a, to = (tl_dtype)b;
			cast(s, from, to);
			if (is_float(from) && is_float(to) && bits_of(from) > bits_of(to) && bits_of(from) >= 32 &&
			    to != TL_F8E4B15) {
				rounding(s, from, to, false);
				rounding(s, from, to, true);
			}
			if (a != b && bits_of(from) == bits_of(to))
				bitcast(s, from, to);
			if (a == b && is_fp8(from))
				absolute(s, from);
			if (is_fp8(from) || is_fp8(to)) /* no arithmetic */
				continue;
			pair(s, from, to);
			if (a > TL_I1 && b > TL_I1 && !is_float(from) && !is_float(to) &&
			    is_signed(from) == is_signed(to) && a != b)
				quotient(s, from, to);
		}
}

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
		return a == TL_BF16 || b == TL_BF16 ? TL_F32 : TL_F16;
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

void theme_cast(struct suite *s)
{
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

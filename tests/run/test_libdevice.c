/* libdevice: special functions against the C library's in long double, arithmetic and conversions with a direction of
 * rounding against the host's. */
#include <fenv.h>
#include <limits.h>

#include "themes.h"

static const char file[] = "libdevice.tl";
enum { BLOCK = 128, N = 5 * BLOCK };

/* --- references ------------------------------------------------------------------------------------------------ */

typedef long double real;
static const real PI = 3.14159265358979323846264338327950288L, ROOT2 = 1.41421356237309504880168872420969808L;

static real erfcx_of(real x)
{
	if (x < 100)
		return expl(x * x) * erfcl(x);
	real s = 1 / (2 * x * x);
	return (1 - s * (1 - 3 * s * (1 - 5 * s * (1 - 7 * s)))) / (x * sqrtl(PI));
}
static real normcdf_of(real x)
{
	return erfcl(-x / ROOT2) / 2;
}

/* Bisection: of the function that falls, or of its mirror image where that is larger. */
static real erfcinv_of(real q)
{
	if (!(q >= 0 && q <= 2))
		return NAN;
	if (q == 0 || q == 2)
		return q == 0 ? INFINITY : -INFINITY;
	real lo = q < 1 ? 0 : -30, hi = q < 1 ? 30 : 0;
	for (int i = 0; i < 200; i++) {
		real mid = (lo + hi) / 2;
		if (erfcl(mid) > q)
			lo = mid;
		else
			hi = mid;
	}
	return (lo + hi) / 2;
}
static real erfinv_of(real x)
{
	if (fabsl(x) > 0.5L)
		return x < 0 ? -erfcinv_of(1 + x) : erfcinv_of(1 - x);
	real y = x;
	for (int i = 0; i < 8; i++)
		y -= (erfl(y) - x) * sqrtl(PI) / 2 * expl(y * y);
	return y;
}
static real erfcinv_any(real q)
{
	return q > 0.5L && q < 1.5L ? erfinv_of(1 - q) : erfcinv_of(q);
}
static real normcdfinv_of(real p)
{
	return -ROOT2 * erfcinv_any(2 * p);
}
static real sinpi_of(real x)
{
	real r = fmodl(fabsl(x), 2), s = r > 1 ? r - 1 : r, v = s <= 0.25L ? sinl(PI * s)
							   : s < 0.75L  ? cosl(PI * (0.5L - s))
									: sinl(PI * (1 - s));
	return (r > 1) != (x < 0) ? -v : v;
}
static real cospi_of(real x)
{
	real r = fmodl(fabsl(x), 2), s = r > 1 ? 2 - r : r;
	return s <= 0.25L ? cosl(PI * s) : s < 0.75L ? sinl(PI * (0.5L - s)) : -cosl(PI * (1 - s));
}
static real bessel_i(int order, real x)
{
	real term = order ? x / 2 : 1, sum = x != x ? x : 0;
	for (int k = 1; fabsl(term) > fabsl(sum) * 1e-21L; k++) {
		sum += term;
		term *= x * x / 4 / ((real)k * (k + order));
	}
	return sum;
}
static real exp10_of(real x)
{
	return powl(10, x);
}
static real rcbrt_of(real x)
{
	return 1 / cbrtl(x);
}
static real rsqrt_of(real x)
{
	return 1 / sqrtl(x);
}
static real i0_of(real x)
{
	return bessel_i(0, x);
}
static real i1_of(real x)
{
	return bessel_i(1, x);
}

/* --- functions of one argument ----------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	real (*f)(real);
	double lo, hi;
	double ulps;     /* that CUDA's documentation allows for fp64 */
	double absolute; /* allowed near zeros of the function for fp64 */
	double single;   /* ulps that CUDA's documentation allows for fp32; 0: rounded once from fp64 */
	double absolute_single;
} ones[] = {
	{"exp", expl, -110, 90, 1, 0, 1.5, 0}, /* of ex2.approx on a GPU */
	{"exp", expl, -750, 710, 1, 0, 1.5, 0},
	{"exp", expl, -1, 1, 1, 0, 1.5, 0},
	{"exp2", exp2l, -126, 128, 1, 0, 2, 0},
	{"exp10", exp10_of, -46, 39, 1, 0, 1.5, 0},
	{"expm1", expm1l, -20, 89, 1, 0, 1, 0},
	{"expm1", expm1l, -1, 1, 1, 0, 1, 0},
	{"log", logl, 0, 3, 1, 0, 1, 0},
	{"log2", log2l, 0, 3, 1, 0, 1, 0},
	{"log10", log10l, 0, 3, 1, 0, 2, 0},
	{"log10", log10l, 0, 1e38, 1, 0, 2, 0},
	{"log1p", log1pl, -1, 3, 1, 0, 1, 0},
	{"log1p", log1pl, 0, 1e38, 1, 0, 1, 0},
	{"cbrt", cbrtl, -1000, 1000, 1, 0, 1, 0},
	{"cbrt", cbrtl, -1e-38, 1e-38, 1, 0, 1, 0},
	{"rcbrt", rcbrt_of, -1000, 1000, 1, 0, 1, 0},
	{"rsqrt", rsqrt_of, 0, 1000, 1, 0, 2, 0},
	{"sinh", sinhl, -89, 89, 2, 0, 3, 0},
	{"sinh", sinhl, -711, 711, 2, 0, 3, 0},
	{"cosh", coshl, -711, 711, 1, 0, 2, 0},
	{"sinh", sinhl, -2, 2, 2, 0, 3, 0},
	{"cosh", coshl, -89, 89, 1, 0, 2, 0},
	{"asinh", asinhl, -4, 4, 3, 0, 3, 0},
	{"acosh", acoshl, 1, 10, 3, 0, 4, 0},
	{"atanh", atanhl, -1, 1, 2, 0, 3, 0},
	{"asin", asinl, -1, 1, 2, 0, 2, 0},
	{"acos", acosl, -1, 1, 2, 0, 2, 0},
	{"atan", atanl, -3, 3, 2, 0, 2, 0},
	{"sin", sinl, -100, 100, 2, 0, 2, 0},
	{"sin", sinl, -1e10, 1e10, 2, 0, 2, 0},
	{"cos", cosl, -100, 100, 2, 0, 2, 0},
	{"cos", cosl, -1e10, 1e10, 2, 0, 2, 0},
	{"tan", tanl, -100, 100, 2, 0, 4, 0},
	{"tanh", tanhl, -1, 1, 1, 0, 2, 0},
	{"tanh", tanhl, -21, 21, 1, 0, 2, 0},
	{"erf", erfl, -1, 1, 2, 0, 2, 0},
	{"erf", erfl, -6, 6, 2, 0, 2, 0},
	{"erfc", erfcl, -6, 26, 5, 0, 4, 0},
	{"erfcx", erfcx_of, -25, 1000, 4, 0, 4, 0},
	{"normcdf", normcdf_of, -37, 8, 5, 0, 5, 0},
	{"erfinv", erfinv_of, -1, 1, 5, 0, 2, 0},
	{"erfinv", erfinv_of, 0.998, 1, 5, 0, 2, 0},
	{"erfcinv", erfcinv_any, 0, 2, 6, 0, 4, 0},
	{"erfcinv", erfcinv_any, 0, 0.01, 6, 0, 4, 0},
	{"normcdfinv", normcdfinv_of, 0, 1, 8, 0, 5, 0},
	{"normcdfinv", normcdfinv_of, 0, 0.001, 8, 0, 5, 0},
	{"lgamma", lgammal, 0, 30, 4, 0, 6, 0},
	{"lgamma", lgammal, -50, -11, 4, 0, 6, 0},
	{"lgamma", lgammal, -3, 0, 6, 4e-15, 6, 2e-6},
	{"tgamma", tgammal, 0, 171, 10, 0, 5, 0},
	{"tgamma", tgammal, 0, 8, 10, 0, 5, 0},
	{"tgamma", tgammal, -20, 0, 10, 0, 5, 0},
	{"tgamma", tgammal, -180, -100, 10, 0, 5, 0},
	/* from 8 on CUDA allows absolute errors of 2.2e-6 for fp32 and 5e-12 for fp64 */
	{"j0", j0l, -8, 8, 7, 0, 9, 0},
	{"j1", j1l, -8, 8, 7, 0, 9, 0},
	{"j0", j0l, 8, 1000, 7, 1e-15, 9, 5e-7},
	{"j1", j1l, 8, 1000, 7, 1e-15, 9, 5e-7},
	{"j0", j0l, 1e3, 1e6, 7, 1e-15, 9, 5e-7},
	{"j1", j1l, -1e6, -1e3, 7, 1e-15, 9, 5e-7},
	{"y0", y0l, 0, 8, 7, 0, 9, 0},
	{"y1", y1l, 0, 8, 7, 0, 9, 0},
	{"y0", y0l, 0, 0.01, 7, 0, 9, 0},
	{"y1", y1l, 0, 0.01, 7, 0, 9, 0},
	{"y0", y0l, 8, 1000, 7, 1e-15, 9, 5e-7},
	{"y1", y1l, 8, 1000, 7, 1e-15, 9, 5e-7},
	{"cyl_bessel_i0", i0_of, -40, 40, 6, 0, 6, 0},
	{"cyl_bessel_i1", i1_of, -40, 40, 6, 0, 6, 0},
	{"cyl_bessel_i0", i0_of, -9, 9, 6, 0, 6, 0},
	{"cyl_bessel_i1", i1_of, -9, 9, 6, 0, 6, 0},
	{"sinpi", sinpi_of, -20, 20, 2, 0, 1, 0},
	{"cospi", cospi_of, -20, 20, 2, 0, 1, 0},
	{"rint", rintl, -20, 20, 0.5, 0, 0, 0},
	{"round", roundl, -20, 20, 0.5, 0, 0, 0},
	{"round", roundl, -1, 1, 0.5, 0, 0, 0},
	{"trunc", truncl, -20, 20, 0.5, 0, 0, 0},
	{"logb", logbl, -20, 20, 0.5, 0, 0, 0},
};

static const double specials[] = {0.0,   -0.0,  1,      -1,   0.5,      -0.5,      1.5,  2,       -2,    -2.5,  3,
				  1e-8,  1e20,  -1e20,  0.25, 7.5,      -7.5,      30,   1e-30,   -1e-8, 40,    -40,
				  171.5, -5000, 5000.5, 1e8,  INFINITY, -INFINITY, NAN, 2.40625, 0.999, 1e-300, 1e300,
				  1e-40, 1.7e308};

static void launch_call(struct suite *s, const char *name, int count, struct array *const *in, struct array *o)
{
	LAUNCH(s, "call", CONFIG(.grid = {N / BLOCK}), ptr(in[0]), ptr(in[1]), ptr(in[2]), ptr(in[3]), ptr(o),
	       tl_str(name), tl_int(count), tl_int(BLOCK));
}

static void inputs(struct suite *s, tl_dtype t, struct array **in_)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	for (int k = 0; k < 4; k++)
		in_[k] = in(s, names[k], t, N);
}

/* Where is the function's value a matter of convention, or too sensitive to be compared? */
static bool is_left_out(const char *name, double absolute, double x)
{
	bool bessel = (name[0] == 'j' || name[0] == 'y') && fabs(x) > (absolute > 0 ? 1e6 : 8);
	bool series = !strncmp(name, "cyl", 3) && fabs(x) > 700;
	bool flushed = !strcmp(name, "rsqrt") && fabs(x) < 0x1p-126 && x != 0;
	bool pole = !strcmp(name, "tgamma") && x < 0 && (x == floor(x) || x < -200);
	bool zeros = !strcmp(name, "lgamma") && x < -2 && x > -11;
	return bessel || series || flushed || pole || zeros || (!strcmp(name, "erfcx") && x < -26);
}

static void one(struct suite *s, int k, tl_dtype t, bool special)
{
	if (!case_begin(s, file, "%s %s from %g%s", ones[k].name, tl_dtype_name(t), ones[k].lo,
			special ? " special values" : ""))
		return;
	struct array *a[4], *o = out(s, "o", t, N);
	inputs(s, t, a);
	fill(a[0], ones[k].lo, ones[k].hi);
	for (size_t i = 0; i < N; i++) {
		if (special)
			set(a[0], i, specials[i % COUNT(specials)]);
		if (special && is_left_out(ones[k].name, ones[k].absolute, value(a[0], i)))
			set(a[0], i, 1);
		want(o, i, (double)ones[k].f(value(a[0], i)));
	}
	if (t == TL_F32 && ones[k].absolute_single > 0)
		tolerance(o, ones[k].absolute_single, ones[k].single * 0x1p-23);
	else if (t == TL_F32 && ones[k].single > 0)
		tolerance_ulps(o, ones[k].single + 0.5);
	else if (t == TL_F32)
		tolerance(o, 1e-45, 1e-9);
	else if (ones[k].absolute > 0)
		tolerance(o, ones[k].absolute, ones[k].ulps * 0x1p-52);
	else
		tolerance_ulps(o, ones[k].ulps + 0.5);
	launch_call(s, ones[k].name, 1, a, o);
	case_end(s);
}

/* --- of two and more, exact ones --------------------------------------------------------------------------------- */

enum two { NEXTAFTER, REMAINDER, FMOD, LDEXP, SCALBN, POW, POWN, HYPOT, RHYPOT, ATAN2, ILOGB, JN, YN, NORM3D, RNORM3D,
	   NORM4D, RNORM4D };
/* The ulps that CUDA's documentation allows. single: 0 if rounded once from fp64. */
static const struct {
	const char *name;
	double single, wide;
} twos[] = {
	[NEXTAFTER] = {"nextafter", 0, 0}, [REMAINDER] = {"remainder", 0, 0}, [FMOD] = {"fmod", 0, 0},
	[LDEXP] = {"ldexp", 0, 0},	   [SCALBN] = {"scalbn", 0, 0},	      [POW] = {"pow", 4, 2},
	[POWN] = {"pow", 4, 2},		   [HYPOT] = {"hypot", 3, 2},	      [RHYPOT] = {"rhypot", 2, 1},
	[ATAN2] = {"atan2", 3, 2},	   [ILOGB] = {"ilogb", 0, 0},	      [JN] = {"jn", 0, 0},
	[YN] = {"yn", 0, 0},		   [NORM3D] = {"norm3d", 3, 2},	      [RNORM3D] = {"rnorm3d", 2, 1},
	[NORM4D] = {"norm4d", 3, 2},	   [RNORM4D] = {"rnorm4d", 2, 1},
};

static double two_of(enum two kind, tl_dtype t, double a, double b, double c, double d)
{
	real n3 = sqrtl((real)a * a + (real)b * b + (real)c * c), n4 = sqrtl(n3 * n3 + (real)d * d);
	switch (kind) {
	case NEXTAFTER: return t == TL_F32 ? nextafterf((float)a, (float)b) : nextafter(a, b);
	case REMAINDER: return remainder(a, b);
	case FMOD: return fmod(a, b);
	case LDEXP:
	case SCALBN: return ldexp(a, (int)b);
	case ILOGB: return ilogb(a);
	case HYPOT: return (double)hypotl(a, b);
	case RHYPOT: return (double)(1 / hypotl(a, b));
	case ATAN2: return (double)atan2l(a, b);
	case JN: return (double)jnl((int)a, b);
	case YN: return (double)ynl((int)a, b);
	case NORM3D: return (double)n3;
	case RNORM3D: return (double)(1 / n3);
	case NORM4D: return (double)n4;
	case RNORM4D: return (double)(1 / n4);
	default: return (double)powl(a, b);
	}
}

static void several(struct suite *s, enum two kind, tl_dtype t, bool special)
{
	bool first = kind == JN || kind == YN, second = kind == LDEXP || kind == SCALBN || kind == POWN;
	if (!case_begin(s, file, "%s%s %s%s", twos[kind].name, second ? " of integers" : "", tl_dtype_name(t),
			special ? " special values" : ""))
		return;
	struct array *a[4], *o = out(s, "o", kind == ILOGB ? TL_I32 : t, N);
	inputs(s, t, a);
	if (first || second)
		a[first ? 0 : 1] = in(s, "n", TL_I32, N);
	for (size_t i = 0; i < N; i++) {
		double x = special ? specials[i % COUNT(specials)] : uniform(-10, 10),
		       y = special ? specials[i / COUNT(specials) % COUNT(specials)] : uniform(-10, 10);
		if (kind == JN || kind == YN)
			x = (double)random_int(0, 40), y = fabs(y) < 1e6 || y != y ? fabs(y) : 1;
		if (kind == POW && !special)
			x = exp(uniform(-200, 200)), y = uniform(-3, 3);
		if (second)
			y = (double)random_int(kind == POWN ? -20 : -1200, kind == POWN ? 20 : 1200);
		if (kind == REMAINDER && !special && i % 3 == 0)
			x = rint(x) * 0.5, y = rint(y) * 0.25;
		if (special && kind >= NORM3D)
			x = isfinite(x) ? x : 1, y = isfinite(y) ? y : 1;
		if (kind == YN && special && y < x / 10)
			y = 7;
		set(a[0], i, x), set(a[1], i, y);
		double u = a[0]->f ? value(a[0], i) : x, v = a[1]->f ? value(a[1], i) : y;
		double r = two_of(kind, t, u, v, value(a[2], i), value(a[3], i));
		if (kind == ILOGB)
			want_int(o, i, u == u ? (int64_t)r : INT_MIN);
		else
			want(o, i, r);
	}
	if (first)
		tolerance(o, kind == JN ? 2e-14 : 1e-14, 2e-12);
	else if (t == TL_F32 && twos[kind].single > 0)
		tolerance_ulps(o, twos[kind].single + 0.5);
	else if (twos[kind].wide > 0)
		t == TL_F64 ? tolerance_ulps(o, twos[kind].wide + 0.5) : tolerance(o, 1e-45, 1e-9);
	launch_call(s, twos[kind].name, kind == ILOGB ? 1 : kind >= NORM4D ? 4 : kind >= NORM3D ? 3 : 2, a, o);
	case_end(s);
}

/* --- directions of rounding -------------------------------------------------------------------------------------- */

static const int directions[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
static const char *const modes[] = {"rn", "rz", "rd", "ru"};
static const struct {
	const char *name;
	int count;
} arithmetic[] = {{"add", 2}, {"sub", 2}, {"mul", 2}, {"div", 2}, {"sqrt", 1}, {"rcp", 1}, {"fma", 3}};

static double rounded(int op, bool narrow, int direction, double x, double y, double z)
{
	volatile double a = x, b = y, c = z, r;
	volatile float fa = (float)x, fb = (float)y, fc = (float)z, fr;
	fesetround(direction);
	switch (op) {
	case 0: r = a + b, fr = fa + fb; break;
	case 1: r = a - b, fr = fa - fb; break;
	case 2: r = a * b, fr = fa * fb; break;
	case 3: r = a / b, fr = fa / fb; break;
	case 4: r = sqrt(a), fr = sqrtf(fa); break;
	case 5: r = 1 / a, fr = 1 / fa; break;
	default: r = fma(a, b, c), fr = fmaf(fa, fb, fc); break;
	}
	fesetround(FE_TONEAREST);
	return narrow ? (double)fr : r;
}

/* Of all sizes, so that results overflow, vanish and cancel. */
static double of_any_size(tl_dtype t, size_t i)
{
	int most = t == TL_F32 ? (i % 2 ? 149 : 20) : i % 2 ? 1074 : 60;
	return ldexp(uniform(1, 2), (int)random_int(-most, i % 2 ? most * 6 / 7 : most)) * (random_int(0, 1) ? 1 : -1);
}

static void directed(struct suite *s, int op, int mode, tl_dtype t, bool special)
{
	static const double edges[] = {0.0, -0.0, 1, -1, 3, INFINITY, -INFINITY, NAN, 1e300, -1e300, 5e-324, 1e-40};
	char name[16];
	snprintf(name, sizeof name, "%s_%s", arithmetic[op].name, modes[mode]);
	if (!case_begin(s, file, "%s %s%s", name, tl_dtype_name(t), special ? " special values" : ""))
		return;
	struct array *a[4], *o = out(s, "o", t, N);
	inputs(s, t, a);
	for (size_t i = 0; i < N; i++) {
		for (size_t k = 0, at = i; k < 3; k++, at /= COUNT(edges))
			set(a[k], i, special ? edges[at % COUNT(edges)] : of_any_size(t, i));
		if (!special && i % 5 == 0)
			set(a[1], i, value(a[0], i) * (i % 10 ? -1 : 1 + 0x1p-20));
		double x = value(a[0], i);
		if (op == 4 && x < 0)
			set(a[0], i, x = -x);
		want_signed(o, i, rounded(op, t == TL_F32, directions[mode], x, value(a[1], i), value(a[2], i)));
	}
	launch_call(s, name, arithmetic[op].count, a, o);
	case_end(s);
}

static const struct {
	const char *name;
	tl_dtype from, to, as;
} conversions[] = {
	{"float2int", TL_F32, TL_I32, TL_I32},   {"float2uint", TL_F32, TL_U32, TL_I32},
	{"float2ll", TL_F32, TL_I64, TL_I64},    {"float2ull", TL_F32, TL_U64, TL_I64},
	{"double2int", TL_F64, TL_I32, TL_I32},  {"double2uint", TL_F64, TL_U32, TL_I32},
	{"double2ll", TL_F64, TL_I64, TL_I64},   {"double2ull", TL_F64, TL_U64, TL_I64},
	{"int2float", TL_I32, TL_F32, TL_F32},   {"uint2float", TL_U32, TL_F32, TL_F32},
	{"ll2float", TL_I64, TL_F32, TL_F32},    {"ull2float", TL_U64, TL_F32, TL_F32},
	{"ll2double", TL_I64, TL_F64, TL_F64},   {"ull2double", TL_U64, TL_F64, TL_F64},
	{"double2float", TL_F64, TL_F32, TL_F32},
};

static void conversion(struct suite *s, int k, int mode)
{
	char name[24];
	snprintf(name, sizeof name, "%s_%s", conversions[k].name, modes[mode]);
	tl_dtype from = conversions[k].from, to = conversions[k].to;
	if (!case_begin(s, file, "%s", name))
		return;
	struct array *a[4], *o = out(s, "o", conversions[k].as, N);
	inputs(s, from, a);
	for (size_t i = 0; i < N; i++) {
		if (is_float(from))
			set(a[0], i,
			    is_float(to) ? of_any_size(i % 2 ? TL_F32 : TL_F64, i)
					 : ldexp(uniform(-1, 1), (int)(i % 68)));
		volatile double x = is_float(from) ? value(a[0], i) : 0;
		int64_t n = is_float(from) ? 0 : value_int(a[0], i);
		fesetround(directions[mode]);
		volatile float narrow = is_float(from) ? (float)x : is_signed(from) ? (float)n : (float)(uint64_t)n;
		volatile double wide = is_float(from) ? x : is_signed(from) ? (double)n : (double)(uint64_t)n;
		volatile double whole = mode == 1 ? trunc(x) : nearbyint(x);
		fesetround(FE_TONEAREST);
		double top = is_float(to) ? 0 : ldexp(1, bits_of(to) - is_signed(to));
		double bottom = is_signed(to) ? -top : 0;
		if (is_float(to))
			want_number(o, i, to == TL_F32 ? (double)narrow : wide);
		else if (whole >= top || whole < bottom)
			want_int(o, i, wrap(conversions[k].as, whole < bottom ? least(to) : most(to)));
		else
			want_int(o, i, wrap(conversions[k].as, whole < 0 ? (int64_t)whole : (int64_t)(uint64_t)whole));
	}
	launch_call(s, name, 1, a, o);
	case_end(s);
}

/* --- integers ---------------------------------------------------------------------------------------------------- */

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;
enum integer { BYTE_PERM, MUL24, SAD, HADD, RHADD, MULHI };
static const char *const integer_names[] = {"byte_perm", "mul24", "sad", "hadd", "rhadd", "mulhi"};

static int64_t integer_of(enum integer kind, tl_dtype t, int64_t x, int64_t y, int64_t z)
{
	uint64_t both = (uint64_t)(uint32_t)y << 32 | (uint32_t)x, r = 0;
	switch (kind) {
	case BYTE_PERM:
		for (int i = 0; i < 4; i++)
			r |= (both >> 8 * ((uint32_t)z >> 4 * i & 7) & 255) << 8 * i;
		return (int32_t)(uint32_t)r;
	case MUL24:
		return is_signed(t) ? wrap(t, ((int64_t)(int32_t)((uint32_t)x << 8) >> 8) *
						      ((int64_t)(int32_t)((uint32_t)y << 8) >> 8))
				    : wrap(t, (x & 0xFFFFFF) * (y & 0xFFFFFF));
	case SAD: return wrap(t, (x > y ? x - y : y - x) + z);
	case HADD: return (x + y) >> 1;
	case RHADD: return (x + y + 1) >> 1;
	default:
		return bits_of(t) == 32 ? (int64_t)(((wide)x * y) >> 32)
		       : is_signed(t)   ? (int64_t)(((wide)x * y) >> 64)
					: (int64_t)((unsigned_wide)(uint64_t)x * (uint64_t)y >> 64);
	}
}

static void integer(struct suite *s, enum integer kind, tl_dtype t)
{
	if (!case_begin(s, file, "%s %s", integer_names[kind], tl_dtype_name(t)))
		return;
	struct array *a[4], *o = out(s, "o", t, N);
	inputs(s, t, a);
	for (size_t i = 0; i < N; i++) {
		int64_t x = value_int(a[0], i), y = value_int(a[1], i), z = value_int(a[2], i);
		int64_t r = integer_of(kind, t, x, y, z);
		want_int(o, i, t == TL_U32 && kind == MULHI ? (int64_t)((uint64_t)x * (uint64_t)y >> 32) : r);
	}
	launch_call(s, integer_names[kind], kind == BYTE_PERM || kind == SAD ? 3 : 2, a, o);
	case_end(s);
}

static void names(struct suite *s)
{
	if (!case_begin(s, file, "names"))
		return;
	struct array *x = in(s, "x", TL_F32, 1), *o = out(s, "o", TL_F32, 6);
	double v = value(x, 0);
	for (size_t i = 0; i < 4; i++)
		want(o, i, erfc(v));
	want(o, 4, jn(3, v));
	want_number(o, 5, v);
	tolerance(o, 1e-9, 1e-7);
	LAUNCH(s, "names", CONFIG(.grid = {1}), ptr(x), ptr(o));
	case_end(s);
}

void theme_libdevice(struct suite *s)
{
	static const tl_dtype floats[] = {TL_F32, TL_F64}, ints[] = {TL_I32, TL_U32, TL_I64, TL_U64};
	for (int t = 0; t < COUNT(floats); t++) {
		for (int k = 0; k < COUNT(ones); k++)
			for (int special = 0; special < 2; special++)
				one(s, k, floats[t], special);
		for (int kind = 0; kind < COUNT(twos); kind++)
			for (int special = 0; special < 2; special++)
				several(s, kind, floats[t], special);
		for (int op = 0; op < COUNT(arithmetic); op++)
			for (int mode = 0; mode < COUNT(modes); mode++)
				for (int special = 0; special < 2; special++)
					directed(s, op, mode, floats[t], special);
	}
	for (int k = 0; k < COUNT(conversions); k++)
		for (int mode = 0; mode < COUNT(modes); mode++)
			conversion(s, k, mode);
	for (int kind = 0; kind < COUNT(integer_names); kind++)
		for (int t = 0; t < (kind == MULHI ? 4 : kind == BYTE_PERM ? 1 : 2); t++)
			integer(s, kind, ints[t]);
	names(s);
}

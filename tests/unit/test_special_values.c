/* Mathematical functions of special values, on every device without a GPU: zeros and their signs, infinities, NaN, ends
 * of the domain, and both sides of each threshold where a result overflows or vanishes. References are the C library's,
 * in long double where it has none; finite results need only be near, tests/run measures them. */
#include <float.h>
#include <math.h>

#include "test_runtime.h"

typedef long double real;
#define PI 3.14159265358979323846264338327950288L

static real sinpi_of(real x, real y)
{
	(void)y;
	real r = fmodl(fabsl(x), 2);
	if (isnan(r))
		return r;
	real sign = r > 1 ? -1 : 1, part = r > 1 ? r - 1 : r;
	return copysignl(1, x) * (part == 0 || part == 1 ? 0 : sign * sinl(PI * (part > 0.5L ? 1 - part : part)));
}

static real cospi_of(real x, real y)
{
	(void)y;
	real r = fmodl(fabsl(x), 2);
	return r == 0.5L || r == 1.5L ? 0 : r > 0.5L && r < 1.5L ? -cosl(PI * (r - 1)) : cosl(PI * r);
}

static real normcdf_of(real x, real y)
{
	(void)y;
	return 0.5L * erfcl(-x / sqrtl(2));
}

/* y of erfc(y) = q. */
static real erfinv_of(real x, real y);
static real erfcinv_of(real q, real unused)
{
	real low = -200, high = 200;
	if (!(q >= 0 && q <= 2))
		return NAN;
	if (q == 0 || q == 2)
		return q ? -INFINITY : INFINITY;
	if (fabsl(1 - q) < 0.5L)
		return q == 1 ? 0 : erfinv_of(1 - q, unused);
	for (int i = 0; i < 200; i++) {
		real y = (low + high) / 2;
		*(erfcl(y) > q ? &low : &high) = y;
	}
	return low;
}

static real erfinv_of(real x, real y)
{
	real low = 0, high = 200;
	if (x == 0 || isnan(x))
		return x;
	if (fabsl(x) > 0.5L)
		return copysignl(erfcinv_of(1 - fabsl(x), y), x);
	for (int i = 0; i < 16500; i++) { /* down to the least numbers */
		real m = (low + high) / 2;
		*(erfl(m) < fabsl(x) ? &low : &high) = m;
	}
	return copysignl(low, x);
}

static real normcdfinv_of(real p, real y)
{
	return p == 0.5L ? 0 : -sqrtl(2) * erfcinv_of(2 * p, y);
}

static real erfcx_of(real x, real y)
{
	(void)y;
	if (x > 100)
		return 1 / (x * sqrtl(PI)) / (1 + 0.5L / (x * x));
	return expl(x * x) * erfcl(x);
}

static real bessel_i(real x, int order)
{
	real s = x * x / 4, term = order ? x / 2 : 1, sum = term;
	if (isinf(x) || isnan(x))
		return order ? x : fabsl(x);
	if (fabsl(x) > 2000)
		return order ? copysignl(INFINITY, x) : INFINITY;
	for (int k = 1; k < 4000; k++)
		sum += term *= s / k / (k + order);
	return sum;
}

static real i0_of(real x, real y)
{
	(void)y;
	return bessel_i(x, 0);
}

static real i1_of(real x, real y)
{
	(void)y;
	return bessel_i(x, 1);
}

static real rcbrt_of(real x, real y)
{
	(void)y;
	return 1 / cbrtl(x);
}

static real rhypot_of(real x, real y)
{
	return 1 / hypotl(x, y);
}

static real norm3d_of(real x, real y)
{
	return hypotl(hypotl(x, y), x);
}

static real norm4d_of(real x, real y)
{
	return hypotl(norm3d_of(x, y), y);
}

static real rnorm3d_of(real x, real y)
{
	return 1 / norm3d_of(x, y);
}

static real rnorm4d_of(real x, real y)
{
	return 1 / norm4d_of(x, y);
}

static real jn_of(real x, real y)
{
	(void)y;
	return jnl(3, x);
}

static real yn_of(real x, real y)
{
	(void)y;
	return x < 0 ? NAN : ynl(3, x);
}

static real ldexp_of(real x, real y)
{
	return ldexpl(x, isnan(y) ? 0 : (int)fmaxl(-5000, fminl(5000, y)));
}

static real saturate_of(real x, real y)
{
	(void)y;
	return isnan(x) ? 0 : fmaxl(0, fminl(1, x));
}

#define OF_ONE(f)                                                                                                      \
	static real f##_of(real x, real y)                                                                             \
	{                                                                                                              \
		(void)y;                                                                                               \
		return f##l(x);                                                                                        \
	}
OF_ONE(exp)
OF_ONE(exp2)
OF_ONE(exp10)
OF_ONE(expm1)
OF_ONE(log)
OF_ONE(log2)
OF_ONE(log10)
OF_ONE(log1p)
OF_ONE(logb)
OF_ONE(sqrt)
OF_ONE(cbrt)
OF_ONE(sin)
OF_ONE(cos)
OF_ONE(tan)
OF_ONE(asin)
OF_ONE(acos)
OF_ONE(atan)
OF_ONE(sinh)
OF_ONE(cosh)
OF_ONE(tanh)
OF_ONE(asinh)
OF_ONE(acosh)
OF_ONE(atanh)
OF_ONE(erf)
OF_ONE(erfc)
OF_ONE(tgamma)
OF_ONE(lgamma)
OF_ONE(trunc)
OF_ONE(round)
OF_ONE(rint)
OF_ONE(floor)
OF_ONE(ceil)
OF_ONE(j0)
OF_ONE(j1)

static real y0_of(real x, real y)
{
	(void)y;
	return x < 0 ? NAN : y0l(x);
}

static real y1_of(real x, real y)
{
	(void)y;
	return x < 0 ? NAN : y1l(x);
}

static const struct function {
	const char *name, *call; /* an expression of x and y, fp32 or fp64, and n, an integer made of y */
	real (*of)(real x, real y);
	bool both, flushes; /* flushes: fp32 by an instruction of GPUs that takes subnormal numbers for 0 */
} functions[] = {
#define ONE(f)                                                                                                         \
	{                                                                                                              \
#f, "libdevice." #f "(x)", f##_of, false, false                                                        \
	}
#define TWO(f)                                                                                                         \
	{                                                                                                              \
#f, "libdevice." #f "(x, y)", f##l, true, false                                                        \
	}
#define TWO_OF(f)                                                                                                      \
	{                                                                                                              \
#f, "libdevice." #f "(x, y)", f##_of, true, false                                                      \
	}
	ONE(exp10),
	ONE(expm1),
	ONE(log10),
	ONE(log1p),
	ONE(logb),
	ONE(cbrt),
	ONE(rcbrt),
	ONE(sinpi),
	ONE(cospi),
	ONE(tan),
	ONE(asin),
	ONE(acos),
	ONE(atan),
	ONE(sinh),
	ONE(cosh),
	ONE(asinh),
	ONE(acosh),
	ONE(atanh),
	ONE(erfc),
	ONE(erfcx),
	ONE(erfinv),
	ONE(erfcinv),
	ONE(normcdf),
	ONE(normcdfinv),
	ONE(tgamma),
	ONE(lgamma),
	ONE(trunc),
	ONE(round),
	ONE(rint),
	ONE(j0),
	ONE(j1),
	ONE(y0),
	ONE(y1),
	ONE(exp),
	ONE(exp2),
	ONE(log),
	ONE(log2),
	ONE(sin),
	ONE(cos),
	ONE(tanh),
	ONE(erf),
	ONE(floor),
	ONE(ceil),
	TWO(fmod),
	TWO(remainder),
	TWO(pow),
	TWO(hypot),
	TWO(atan2),
	TWO(fdim),
	TWO(copysign),
	TWO_OF(rhypot),
	{"sqrt", "libdevice.sqrt(x)", sqrt_of, false, true},
	{"jn", "libdevice.jn(3, x)", jn_of, false, false},
	{"yn", "libdevice.yn(3, x)", yn_of, false, false},
	{"ldexp", "libdevice.ldexp(x, n)", ldexp_of, true, false},
	{"norm3d", "libdevice.norm3d(x, y, x)", norm3d_of, true, false},
	{"norm4d", "libdevice.norm4d(x, y, x, y)", norm4d_of, true, false},
	{"rnorm3d", "libdevice.rnorm3d(x, y, x)", rnorm3d_of, true, false},
	{"rnorm4d", "libdevice.rnorm4d(x, y, x, y)", rnorm4d_of, true, false},
	{"i0", "libdevice.cyl_bessel_i0(x)", i0_of, false, false},
	{"i1", "libdevice.cyl_bessel_i1(x)", i1_of, false, false},
	{"saturate", "libdevice.saturatef(x)", saturate_of, false, false},
	{"percent", "x % y", fmodl, true, false},
};

/* Each also with a minus. */
static const double values[] = {
	0,
	0x1p-1074,
	0x1p-1060,
	0x1p-1022,
	0x1p-149,
	0x1p-126,
	0x1p-100,
	0x1p-60,
	0x1p-30,
	0.25,
	0.5,
	0.75,
	1,
	0x1.fffffep-1,
	0x1.fffffffffffffp-1,
	1.25,
	1.5,
	2,
	2.5,
	3,
	3.5,
	4,
	5,
	7.5,
	10,
	17,
	23,
	26.5,
	27.3,
	33,
	35,
	37.5,
	38,
	38.4,
	39,
	41,
	44,
	45.5,
	50,
	60,
	87,
	88.7,
	88.8,
	89.4,
	91,
	92,
	94,
	95,
	103.5,
	104.5,
	126,
	127,
	128,
	129,
	148.5,
	149,
	150,
	151,
	170.5,
	171.6,
	171.7,
	178.5,
	184.5,
	307,
	308,
	308.3,
	323,
	324,
	325,
	700,
	705,
	708,
	709,
	709.7,
	709.8,
	710,
	710.4,
	710.5,
	713,
	714,
	716,
	717,
	745,
	745.2,
	746,
	1000,
	1022,
	1023,
	1024,
	1074,
	1075,
	1076,
	1e4,
	0x1p23,
	0x1p24,
	0x1p31,
	0x1p52,
	0x1p53,
	0x1p63,
	1e20,
	1e30,
	0x1p127,
	FLT_MAX,
	0x1p128,
	1e100,
	1e200,
	1e300,
	1e305,
	0x1p1023,
	DBL_MAX,
	INFINITY,
	NAN,
};
static const double second[] = {0,    0x1p-1074, 0x1p-1022, 0x1p-149, 1e-30,   0.3,     0.5,      1,
				1.5,  2,         3,         100,      1023,    2200,    1e10,     0x1p24,
				1e30, 1.1e38,    FLT_MAX,   1e300,    1.1e307, DBL_MAX, INFINITY, NAN};
enum { V = ARRAY_LEN(values), S = ARRAY_LEN(second), N = 16384 };
_Static_assert(2 * V * 2 * S <= N, "all pairs");

static const char *module_text(struct strbuf *sb)
{
	sb_puts(sb, "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n\n");
	for (u32 i = 0; i < ARRAY_LEN(functions); i++)
		sb_printf(sb,
			  "@triton.jit\ndef f_%s(px, py, o, B: tl.constexpr):\n"
			  "    i = tl.program_id(0) * B + tl.arange(0, B)\n    x = tl.load(px + i)\n    y = tl.load(py "
			  "+ i)\n"
			  "    n = tl.where(y == y, tl.clamp(y, -5000.0, 5000.0), tl.zeros_like(y)).to(tl.int32)\n"
			  "    tl.store(o + i, %s)\n\n",
			  functions[i].name, functions[i].call);
	return sb->at;
}

/* The pairs of a function, as numbers of the type. */
static u32 arguments(const struct function *f, bool f32, double *x, double *y)
{
	u32 n = 0;
	for (u32 i = 0; i < 2 * V; i++)
		for (u32 k = 0; k < (f->both ? 2 * S : 1); k++) {
			double a = i % 2 ? -values[i / 2] : values[i / 2], b = k % 2 ? -second[k / 2] : second[k / 2];
			if (!f->both)
				b = 1;
			x[n] = f32 ? (float)a : a;
			y[n++] = f32 ? (float)b : b;
		}
	return n;
}

/* Right: the same kind of value with the same sign, and near. */
static bool agrees(double is, real exact, bool f32)
{
	double wanted = f32 ? (float)exact : (double)exact;
	real least = f32 ? FLT_MIN : DBL_MIN;
	if (isnan(wanted) || isnan(is))
		return isnan(wanted) && isnan(is);
	if (fabsl(exact) < least) /* or it vanishes too soon, with its sign */
		return signbit(is) == signbit(wanted) && fabs(is) <= least && (exact != 0 || is == 0);
	if (isinf(wanted) || isinf(is))
		return is == wanted;
	return fabsl(is - exact) <= 1e-4L * fabsl(exact) && signbit(is) == signbit(wanted);
}

/* J and Y of numbers from 8 on: CUDA documents absolute errors of 2.2e-6 and 5e-12. The modulus bounds the values. */
static bool agrees_as_wave(const struct function *f, double x, double is, real exact, bool f32)
{
	bool bessel = f->name[0] == 'j' || f->name[0] == 'y';
	if (!bessel || !(x >= 8 || (x <= -8 && f->name[0] == 'j')) || isinf(x))
		return false;
	return fabs(is) <= 0.8 / sqrt(fabs(x)) && fabsl(is - exact) <= (f32 ? 2.2e-6L : 5e-12L);
}

static u32 run(const char *device, tl_context *ctx, tl_module *m, const struct function *f, bool f32)
{
	static double x[N], y[N], is[N];
	static float narrow[3][N];
	enum { BLOCK = 256 };
	u32 n = arguments(f, f32, x, y), wrong = 0, programs = (n + BLOCK - 1) / BLOCK;
	size_t bytes = N * (f32 ? sizeof(float) : sizeof(double));
	tl_dtype t = f32 ? TL_F32 : TL_F64;
	tl_buffer *b[3];
	tl_kernel *k;
	char name[32];
	for (u32 i = 0; i < N; i++) {
		x[i] = i < n ? x[i] : 1;
		y[i] = i < n ? y[i] : 1;
		narrow[0][i] = (float)x[i];
		narrow[1][i] = (float)y[i];
	}
	snprintf(name, sizeof name, "f_%s", f->name);
	for (u32 i = 0; i < 3; i++)
		ok(tl_buffer_create(ctx, bytes, &b[i]));
	ok(tl_buffer_write(b[0], 0, f32 ? (void *)narrow[0] : x, bytes));
	ok(tl_buffer_write(b[1], 0, f32 ? (void *)narrow[1] : y, bytes));
	ok(tl_module_kernel(m, name, &k));
	ok(tl_launch(k, &(tl_config){.grid = {programs}},
		     ARGS(tl_buf(t, b[0]), tl_buf(t, b[1]), tl_buf(t, b[2]), tl_int(BLOCK))));
	ok(tl_buffer_read(b[2], 0, f32 ? (void *)narrow[2] : is, bytes));
	for (u32 i = 0; i < n; i++) {
		double r = f32 ? narrow[2][i] : is[i];
		real exact = f->of(x[i], y[i]);
		bool flushed = f->flushes && f32 && fabs(x[i]) < FLT_MIN && r == 0 && signbit(r) == signbit(x[i]);
		bool right = agrees(r, exact, f32) || agrees_as_wave(f, x[i], r, exact, f32);
		if (right || flushed || wrong++ > 7)
			continue;
		if (f->both)
			print_error("%s: %s of %s: %s(%.17g, %.17g) is %g, not %Lg\n", device, f->name,
				    f32 ? "fp32" : "fp64", f->name, x[i], y[i], r, exact);
		else
			print_error("%s: %s of %s: %s(%.17g) is %g, not %Lg\n", device, f->name, f32 ? "fp32" : "fp64",
				    f->name, x[i], r, exact);
	}
	for (u32 i = 0; i < 3; i++)
		tl_buffer_destroy(b[i]);
	return wrong;
}

static void special_values(void **state)
{
	static const char *const kinds[] = {"interp", "cpu", "sim"};
	struct arena a = {0};
	struct strbuf sb = {.arena = &a};
	const char *text = module_text(&sb), *only = getenv("FUNCTION");
	u32 wrong = 0;
	(void)state;
	for (u32 d = 0; d < ARRAY_LEN(kinds); d++) {
		tl_context *ctx;
		tl_module *m;
		ok(tl_context_create(kinds[d], &ctx));
		ok(tl_module_load_source(ctx, "s.tl", text, strlen(text), &m));
		for (u32 i = 0; i < ARRAY_LEN(functions); i++)
			for (u32 f32 = 0; f32 < 2 && (!only || !strcmp(only, functions[i].name)); f32++)
				wrong += run(kinds[d], ctx, m, &functions[i], f32);
		tl_context_destroy(ctx);
	}
	arena_free(&a);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(special_values)};
	setenv("TL_CACHE", "0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

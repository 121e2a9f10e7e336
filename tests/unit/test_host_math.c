/* The CPU's functions of fp32 and fp64, run here, against MPFR: the largest error in units of the last place. */
#include "tests/unit/host_rig.h"

#include <mpfr.h>

#include "tests/unit/random_bits.h"

/* Of -0 it is -infinity, other than mpfr_rec_sqrt's. */
static int inverse_root(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t mode)
{
	mpfr_sqrt(r, x, mode);
	return mpfr_ui_div(r, 1, r, mode);
}

static const struct function {
	enum opcode code;
	int (*exact)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
	double most[2]; /* ulps in fp32, fp64 */
} functions[] = {
	{IR_EXP, mpfr_exp, {2, 2}},   {IR_EXP2, mpfr_exp2, {2, 2}}, {IR_LOG, mpfr_log, {2, 2}},
	{IR_LOG2, mpfr_log2, {2, 2}}, {IR_SIN, mpfr_sin, {4, 4}},   {IR_COS, mpfr_cos, {4, 4}},
	{IR_ERF, mpfr_erf, {4, 2.5}}, {IR_TANH, mpfr_tanh, {4, 1.5}}, {IR_RSQRT, inverse_root, {2, 2}},
	{IR_TAN, mpfr_tan, {4, 4}},
};

enum { N = 16384 };

static double value_of(bool f32, u32 i)
{
	static const double edges[] = {
		0.0,
		0x1p-149,
		0x1p-140,
		0x1p-127,
		0x1p-126,
		0x1p-30,
		0x1p-13,
		0x1p-12,
		0.25,
		0.5,
		0x1.6a09e6p-1,
		0x1.fffffep-1,
		1,
		0x1.000002p0,
		0x1.6a09e6p0,
		2,
		3,
		5,
		7,
		8,
		9,
		10,
		18,
		19,
		20,
		87,
		88,
		88.5,
		0x1.62e42ep6,
		0x1.62e430p6,
		89,
		103,
		103.97,
		104,
		105,
		126,
		127,
		128,
		149,
		150,
		151,
		709,
		709.7,
		709.8,
		745.1,
		746,
		1022,
		1023,
		1024,
		1074,
		1075,
		1076,
		0x1.921fb6p0,
		0x1.921fb6p1,
		0x1.2d97c8p2,
		16384,
		131071,
		131072,
		131073,
		1e6,
		1e9,
		0x1p31,
		0x1p63,
		0x1.f9cbe2p7,
		0x1p100,
		0x1.fffffep127,
		1e300,
		0x1.fffffffffffffp1023,
		INFINITY,
		NAN,
	};
	enum { EDGES = 2 * ARRAY_LEN(edges) };
	u64 bits = random_bits();
	double x;
	if (i < EDGES)
		x = i % 2 ? -edges[i / 2] : edges[i / 2];
	else if (i / 64 % 4 == 0) /* blocks of one kind, since vectors with rare elements have code of their own */
		x = f32 ? (double)fp_f32_bits((u32)bits) : fp_f64_bits(bits);
	else if (i / 64 % 4 == 1) /* around 1 */
		x = 1 + (double)(i64)bits * 0x1p-63 * ldexp(1, -(int)(i % 26));
	else /* of usual sizes */
		x = (double)(i64)bits * 0x1p-63 * ldexp(1, (int)(i % 40) - 20);
	return f32 ? (double)(float)x : x;
}

/* Of `got` in units of the last place that numbers of this size have; MPFR has infinitely many exponents. */
static double error_of(bool f32, double got, mpfr_srcptr want)
{
	double nearest = f32 ? (double)mpfr_get_flt(want, MPFR_RNDN) : mpfr_get_d(want, MPFR_RNDN);
	if (nearest == 0 && signbit(nearest) != signbit(got))
		return INFINITY;
	if (isnan(nearest) || isinf(nearest) || isnan(got) || nearest == got)
		return (isnan(nearest) && isnan(got)) || nearest == got ? 0 : INFINITY;
	int least = f32 ? -149 : -1074, exponent = (int)mpfr_get_exp(want) - (f32 ? 24 : 53);
	if (isinf(got)) /* it is what comes after the largest number */
		got = copysign(f32 ? 0x1p128 : INFINITY, got);
	mpfr_t difference;
	mpfr_init2(difference, 200);
	mpfr_d_sub(difference, got, want, MPFR_RNDN);
	mpfr_mul_2si(difference, difference, -MAX(exponent, least), MPFR_RNDN);
	double r = fabs(mpfr_get_d(difference, MPFR_RNDN));
	mpfr_clear(difference);
	return r;
}

static void check(const struct function *f, bool f32, rig_function *run, u32 lanes, bool extensions)
{
	static _Alignas(64) double in[N], out[N];
	static _Alignas(64) float in32[N], out32[N];
	double worst = 0, at = 0;
	mpfr_t x, y;
	for (u32 i = 0; i < N; i++)
		in32[i] = (float)(in[i] = value_of(f32, i));
	run(f32 ? (void *)out32 : out, (const void *[]){f32 ? (void *)in32 : in}, N);
	mpfr_init2(x, 53);
	mpfr_init2(y, 120);
	for (u32 i = 0; i < N; i++) {
		mpfr_set_d(x, in[i], MPFR_RNDN);
		f->exact(y, x, MPFR_RNDN);
		double error = error_of(f32, f32 ? (double)out32[i] : out[i], y);
		if (error > worst) {
			worst = error;
			at = in[i];
		}
	}
	mpfr_clear(x);
	mpfr_clear(y);
	const char *name = op_info[f->code].name, *type = f32 ? "fp32" : "fp64";
	print_message("%-10s %s, %2u lanes%s: %.2f ulp at %a\n", name, type, lanes, extensions ? ", extensions" : "",
		      worst, at);
	if (worst > f->most[!f32])
		fail_msg("%s of %s is %.2f ulp off at %a, with %u lanes%s", name, type, worst, at, lanes,
			 extensions ? ", extensions" : "");
}

static void test_errors(void **state)
{
	(void)state;
	static const u32 lanes[] = {0, 8, 32, 2};
	for (u32 pass = 0; pass < ARRAY_LEN(lanes); pass++) {
		struct rig *r = rig_new(pass % 2);
		u32 numbers[ARRAY_LEN(functions)][2];
		for (u32 i = 0; i < ARRAY_LEN(functions); i++)
			for (u32 k = 0; k < 2; k++) {
				const struct type *t = type_scalar(&r->ctx, k ? DT_F64 : DT_F32);
				struct op *o = rig_op(r, functions[i].code, 0, t, t, t);
				numbers[i][k] = rig_add(r, o, (struct rig_how){.lanes = lanes[pass]});
			}
		rig_compile(r);
		for (u32 i = 0; i < ARRAY_LEN(functions); i++)
			for (u32 k = 0; k < 2; k++)
				check(&functions[i], k == 0, rig_get(r, numbers[i][k]), lanes[pass], r->target.has_fma);
		rig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

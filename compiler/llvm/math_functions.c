/* Minimax polynomials, computed by linear programming over Chebyshev nodes in the error of the result. The
 * coefficients are rounded to fp32 one after another from the lowest power up, with the remaining ones fitted again
 * after each. The errors named here are the largest over all arguments, with fused multiply-adds and with the target's
 * exp2 and inverse rounded to nearest. */
#include "llvm/math_functions.h"

/* --- building blocks ----------------------------------------------------------------------------------------- */

LLVMValueRef multiply_add(const struct functions *f, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
	LLVMValueRef args[] = {x, y, z};
	return f->has_fma ? intrinsic_on(f->b, "llvm.fma", args, 3)
			  : LLVMBuildFAdd(f->b, LLVMBuildFMul(f->b, x, y, ""), z, "");
}

static LLVMValueRef size_of(const struct functions *f, LLVMValueRef x)
{
	return intrinsic1(f->b, "llvm.fabs", x);
}

LLVMValueRef polynomial_of_degree(const struct functions *f, LLVMValueRef x, const double *c, u32 degree)
{
	LLVMValueRef r = real_as(x, c[degree]);
	for (u32 i = degree; i--;)
		r = multiply_add(f, r, x, real_as(x, c[i]));
	return r;
}

/* A polynomial in x; the coefficient of x^0 comes first. */
#define polynomial(f, x, ...)                                                                                          \
	polynomial_of_degree(f, x, (const double[]){__VA_ARGS__},                                                      \
			     sizeof((const double[]){__VA_ARGS__}) / sizeof(double) - 1)

static LLVMValueRef square(const struct functions *f, LLVMValueRef x)
{
	return LLVMBuildFMul(f->b, x, x, "");
}

static bool is_f32(LLVMValueRef x)
{
	return type_bits(LLVMTypeOf(x)) == 32;
}

static LLVMValueRef sign_bit(LLVMValueRef bits)
{
	return int_as(bits, 1ull << (type_bits(LLVMTypeOf(bits)) - 1));
}

/* r, which must not be negative, with the sign of x. */
static LLVMValueRef with_sign_of(const struct functions *f, LLVMValueRef x, LLVMValueRef r)
{
	LLVMValueRef bits = to_bits(f->b, x), sign = LLVMBuildAnd(f->b, bits, sign_bit(bits), "");
	return from_bits(f->b, LLVMBuildOr(f->b, to_bits(f->b, r), sign, ""), elem_of(LLVMTypeOf(x)));
}

/* --- log, log2 ----------------------------------------------------------------------------------------------- */

/* x = 2^e (1 + y) with 1 + y from sqrt(1/2) to sqrt(2), so that e = ±1 cancels least. Error: log 0.94 ulp, log2 0.97
 * ulp. A CPU without fused multiply-adds rounds the product of y and log2(e), so y is added by itself: log2 1.25 ulp
 * instead of 1.91. */
LLVMValueRef log_f32(const struct functions *f, LLVMValueRef x, bool base2)
{
	LLVMBuilderRef b = f->b;
	LLVMValueRef tiny = LLVMBuildFCmp(b, LLVMRealOLT, x, real_as(x, 0x1p-126), "");
	x = LLVMBuildSelect(b, tiny, LLVMBuildFMul(b, x, real_as(x, 0x1p23), ""), x, "");
	LLVMValueRef bits = to_bits(f->b, x), less = LLVMBuildSub(b, bits, int_as(bits, 0x3F3504F3), "");
	LLVMValueRef power = LLVMBuildAnd(b, less, int_as(bits, 0xFF800000), "");
	LLVMValueRef y = LLVMBuildFAdd(b, from_bits(b, LLVMBuildSub(b, bits, power, ""), elem_of(LLVMTypeOf(x))),
				       real_as(x, -1), "");
	LLVMValueRef scaled = LLVMBuildSelect(b, tiny, real_as(x, -23), real_as(x, 0), ""), r;
	LLVMValueRef e = LLVMBuildSIToFP(b, power, LLVMTypeOf(x), "");
	e = multiply_add(f, e, real_as(x, 0x1p-23), scaled);
	if (base2) {
		r = polynomial(f, y, 0x1.49e45ap-26f, -0x1.71547p-1f, 0x1.ec7096p-2f, -0x1.715bp-2f, 0x1.277ec8p-2f,
			       -0x1.eaa0fep-3f, 0x1.a2dc74p-3f, -0x1.8816fap-3f, 0x1.7eb968p-3f, -0x1.c1e66ap-4f);
		r = multiply_add(f, y, real_as(x, f->has_fma ? 0x1.715476p0 : 0x1.c551d9p-2),
				 LLVMBuildFMul(b, r, y, ""));
		r = f->has_fma ? r : LLVMBuildFAdd(b, y, r, "");
		r = LLVMBuildFAdd(b, e, r, "");
	} else {
		r = polynomial(f, y, -0x1.fffff8p-2f, 0x1.55555p-2f, -0x1.000438p-2f, 0x1.99a41cp-3f, -0x1.5423e8p-3f,
			       0x1.226c84p-3f, -0x1.0f5208p-3f, 0x1.0875p-3f, -0x1.38138ep-4f);
		r = multiply_add(f, LLVMBuildFMul(b, r, y, ""), y, y);
		r = multiply_add(f, e, real_as(x, 0x1.62e43p-1), r);
	}
	return f->log_or_special(f, x, r);
}

/* --- erf, tanh ----------------------------------------------------------------------------------------------- */

/* Both functions are odd: x + x p(x²) near 0. NaN also takes the near path. */
static LLVMValueRef near_or_far(const struct functions *f, LLVMValueRef x, LLVMValueRef size, double limit,
				LLVMValueRef near, LLVMValueRef far)
{
	LLVMValueRef is_far = LLVMBuildFCmp(f->b, LLVMRealOGE, size, real_as(size, limit), "");
	return with_sign_of(f, x, LLVMBuildSelect(f->b, is_far, far, near, ""));
}

/* Far from 0: 1 - erfc(|x|), where the logarithm of erfc is nearly a parabola; its polynomial goes to -inf. Error:
 * 1.22 ulp. */
LLVMValueRef erf_f32(const struct functions *f, LLVMValueRef x)
{
	LLVMValueRef size = size_of(f, x);
	LLVMValueRef p = polynomial(f, square(f, x), 0x1.06eba8p-3f, -0x1.812734p-2f, 0x1.ce2aa6p-4f, -0x1.b7cdep-6f,
				    0x1.52ac24p-8f, -0x1.9a3dep-11f, 0x1.2f80b4p-14f);
	LLVMValueRef q = polynomial(f, size, -0x1.56fe76p-8f, -0x1.9b8e2p0f, -0x1.e660ap-1f, -0x1.fd12c6p-4f,
				    0x1.4b494ap-6f, -0x1.906f78p-10f);
	LLVMValueRef far = LLVMBuildFSub(f->b, real_as(x, 1), f->exp2(f, q), "");
	return near_or_far(f, x, size, (double)1.1f, multiply_add(f, p, size, size), far);
}

/* Far from 0: 1 - 2 / (exp(2|x|) + 1). Error: 1.37 ulp. */
LLVMValueRef tanh_f32(const struct functions *f, LLVMValueRef x)
{
	LLVMValueRef size = size_of(f, x), s = square(f, x);
	LLVMValueRef p = polynomial(f, s, -0x1.555504p-2f, 0x1.11017ap-3f, -0x1.b81626p-5f, 0x1.567e7ep-6f,
				    -0x1.c19618p-8f, 0x1.55d62ap-10f);
	LLVMValueRef power = f->exp2(f, LLVMBuildFMul(f->b, size, real_as(x, 0x1.715476p1), ""));
	LLVMValueRef inverse = f->inverse(f, LLVMBuildFAdd(f->b, power, real_as(x, 1), ""));
	LLVMValueRef near = multiply_add(f, p, LLVMBuildFMul(f->b, s, size, ""), size);
	return near_or_far(f, x, size, (double)0.9f, near, multiply_add(f, inverse, real_as(x, -2), real_as(x, 1)));
}

/* |x|, at most `most`; NaN is unchanged. */
static LLVMValueRef size_up_to(const struct functions *f, LLVMValueRef x, double most)
{
	LLVMValueRef size = size_of(f, x), limit = real_as(x, most);
	return LLVMBuildSelect(f->b, LLVMBuildFCmp(f->b, LLVMRealOGT, size, limit, ""), limit, size, "");
}

/* 2^n of a split of an fp64 number. */
static LLVMValueRef power_of(const struct functions *f, struct exp_parts s)
{
	LLVMValueRef n = to_bits(f->b, s.sum);
	n = LLVMBuildAdd(f->b, shl(f->b, n, 52), int_as(n, 0x3FF0000000000000), "");
	return from_bits(f->b, n, elem_of(LLVMTypeOf(s.r)));
}

/* 1 - erfc(|x|); the polynomial is the logarithm of erfc divided by |x|. */
LLVMValueRef erf_f64(const struct functions *f, LLVMValueRef x)
{
	LLVMValueRef size = size_up_to(f, x, 5.95), one = real_as(x, 1);
	LLVMValueRef p = polynomial(f, size, -0x1.20dd750429b6dp+0, -0x1.45f306dc9c8d9p-1, -0x1.a4f4e2a1a9b47p-4,
				    0x1.396685908d35dp-6, 0x1.b6b6a1caca721p-13, -0x1.bca691dfe533cp-10,
				    0x1.35663bdfdfbc4p-11, -0x1.b29af73649a67p-16, -0x1.0e32f7034f6c3p-14,
				    0x1.f0329b9ca937dp-16, -0x1.a96e2292febe8p-19, -0x1.a47e854b05e01p-19,
				    0x1.116c1f62a3668p-19, -0x1.3257d4b6adc1fp-21, 0x1.91d108f32a279p-27,
				    0x1.1a59c76e51e41p-24, -0x1.2919fea09b547p-25, 0x1.723143bf597e7p-27,
				    -0x1.447275fe81d6dp-29, 0x1.9d85aaf34a1b0p-32, -0x1.7a6a8b1b02befp-35,
				    0x1.d986dd844ed8dp-39, -0x1.6baac77035231p-43, 0x1.02de4dcad2575p-48);
	struct exp_parts s = split_expm1_f64(f, LLVMBuildFMul(f->b, p, size, ""));
	LLVMValueRef power = power_of(f, s), rest = LLVMBuildFSub(f->b, one, power, "");
	return with_sign_of(f, x, multiply_add(f, LLVMBuildFNeg(f->b, power, ""), s.r, rest));
}

/* Far from 0: 1 - 2 / (exp(2|x|) + 1). */
LLVMValueRef tanh_f64(const struct functions *f, LLVMValueRef x)
{
	LLVMValueRef size = size_up_to(f, x, 20), s = square(f, size), one = real_as(x, 1);
	LLVMValueRef p = polynomial(f, s, -0x1.555555555554fp-2, 0x1.111111111079fp-3, -0x1.ba1ba1b97d898p-5,
				    0x1.664f485970c3fp-6, -0x1.226e2f147e963p-7, 0x1.d6d29b976b5b4p-9,
				    -0x1.7d8fd3b38114ap-10, 0x1.3483aebdd0c34p-11, -0x1.e96fc78b4d4b8p-13,
				    0x1.5d745e9966f7dp-14, -0x1.471114b3feadep-16);
	LLVMValueRef near = multiply_add(f, p, LLVMBuildFMul(f->b, s, size, ""), size);
	struct exp_parts e = split_normal_exp_f64(f, LLVMBuildFAdd(f->b, size, size, ""));
	LLVMValueRef sum = multiply_add(f, e.r, power_of(f, e), one);
	LLVMValueRef far = LLVMBuildFSub(f->b, one, f->quotient(f, real_as(x, 2), sum), "");
	return near_or_far(f, x, size, 0.55, near, far);
}

/* --- sin, cos, tan ------------------------------------------------------------------------------------------- */

/* Subtracts k π/2, with π/2 in three parts. The difference to the product with the first part is exact. */
struct reduced reduce_angle(const struct functions *f, LLVMValueRef x)
{
	/* all parts have one sign, so that -0 is preserved */
	static const double parts[2][3] = {{-0x1.921fb54442d18p0, -0x1.1a62633145c06p-54, -0x1.c1cd129024e08p-107},
					   {-0x1.921fb4p0, -0x1.4442dp-24, -0x1.84698ap-48}};
	bool f32 = is_f32(x);
	/* a number with a unit in the last place of 1 */
	LLVMValueRef rounder = real_as(x, f32 ? 0x1.8p23 : 0x1.8p52);
	LLVMValueRef sum = multiply_add(f, x, real_as(x, f32 ? 0x1.45f306p-1 : 0x1.45f306dc9c883p-1), rounder);
	LLVMValueRef k = LLVMBuildFSub(f->b, sum, rounder, ""), r = x;
	for (u32 i = 0; i < 3; i++)
		r = multiply_add(f, k, real_as(x, parts[f32][i]), r);
	return (struct reduced){r, to_bits(f->b, sum)};
}

/* Error: fp32 1.55 ulp, fp64 1.29 ulp, also near zeros. */
static LLVMValueRef sin_cos_of_reduced(const struct functions *f, bool cosine, struct reduced x)
{
	LLVMBuilderRef b = f->b;
	LLVMValueRef r = x.r, quadrant = x.quadrant, s = square(f, r), one = int_as(quadrant, 1), p, q;
	if (is_f32(r)) {
		p = polynomial(f, s, -0x1.555544p-3f, 0x1.1106c2p-7f, -0x1.9919cep-13f);
		q = polynomial(f, s, -0.5f, 0x1.55554ap-5f, -0x1.6c0c0ep-10f, 0x1.99db8ap-16f);
	} else {
		p = polynomial(f, s, -0x1.5555555555549p-3, 0x1.111111110f87ap-7, -0x1.a01a019c11991p-13,
			       0x1.71de3577b65dfp-19, -0x1.ae5e663a5eac6p-26, 0x1.5d9300eda692cp-33);
		q = polynomial(f, s, -0.5, 0x1.5555555555539p-5, -0x1.6c16c16c13b9ap-10, 0x1.a01a019b2c80dp-16,
			       -0x1.27e4f72ac940bp-22, 0x1.1ee96c598c5cep-29, -0x1.8f750d95535d0p-37);
	}
	/* + 0: a product of -0 times the negative polynomial would make 0 of r = -0 */
	LLVMValueRef cubed = multiply_add(f, s, r, real_as(r, 0));
	LLVMValueRef odd = multiply_add(f, p, cubed, r), even = multiply_add(f, q, s, real_as(r, 1));
	if (cosine)
		quadrant = LLVMBuildAdd(b, quadrant, one, "");
	LLVMValueRef turned = LLVMBuildICmp(b, LLVMIntNE, LLVMBuildAnd(b, quadrant, one, ""), int_as(quadrant, 0), "");
	LLVMValueRef sign = shl(b, quadrant, type_bits(LLVMTypeOf(r)) - 2);
	sign = LLVMBuildAnd(b, sign, sign_bit(quadrant), "");
	LLVMValueRef bits = to_bits(b, LLVMBuildSelect(b, turned, even, odd, ""));
	return from_bits(b, LLVMBuildXor(b, bits, sign, ""), elem_of(LLVMTypeOf(r)));
}

/* tan(r), or -1 / tan(r) in every second quadrant, for the tangent falls from pole to pole as its negative reciprocal
 * rises. */
static LLVMValueRef tan_f32_of_reduced(const struct functions *f, struct reduced x)
{
	LLVMBuilderRef b = f->b;
	LLVMValueRef r = x.r, s = square(f, r), one = int_as(x.quadrant, 1);
	LLVMValueRef p = polynomial(f, s, 0x1.5554dep-2f, 0x1.112de8p-3f, 0x1.b58592p-5f, 0x1.906db4p-6f,
				    0x1.96dfdcp-9f, 0x1.33d598p-7f);
	r = multiply_add(f, p, LLVMBuildFMul(b, s, r, ""), r);
	LLVMValueRef odd = LLVMBuildICmp(b, LLVMIntNE, LLVMBuildAnd(b, x.quadrant, one, ""), int_as(one, 0), "");
	return LLVMBuildSelect(b, odd, f->inverse(f, LLVMBuildFNeg(b, r, "")), r, "");
}

LLVMValueRef trigonometric_of_reduced(const struct functions *f, enum trigonometric which, struct reduced x)
{
	if (which == TANGENT && is_f32(x.r))
		return tan_f32_of_reduced(f, x);
	LLVMValueRef r = sin_cos_of_reduced(f, which == COSINE, x);
	return which == TANGENT ? LLVMBuildFDiv(f->b, r, sin_cos_of_reduced(f, true, x), "") : r;
}

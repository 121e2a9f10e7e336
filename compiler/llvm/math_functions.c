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

/* r, which must not be negative, with the sign of x. */
static LLVMValueRef with_sign_of(const struct functions *f, LLVMValueRef x, LLVMValueRef r)
{
	LLVMValueRef bits = to_bits(f->b, x), sign = LLVMBuildAnd(f->b, bits, int_as(bits, 0x80000000), "");
	return from_bits(f->b, LLVMBuildOr(f->b, to_bits(f->b, r), sign, ""), elem_of(LLVMTypeOf(x)));
}

/* --- log, log2 ----------------------------------------------------------------------------------------------- */

/* x = 2^e (1 + y) with 1 + y from sqrt(1/2) to sqrt(2), so that e = ±1 cancels least. Error: log 0.94 ulp, log2 0.97
 * ulp. */
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
		r = multiply_add(f, y, real_as(x, 0x1.715476p0), LLVMBuildFMul(b, r, y, ""));
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

/* --- sin, cos ------------------------------------------------------------------------------------------------ */

/* Subtracts k π/2, with π/2 in three parts. */
struct reduced reduce_f32(const struct functions *f, LLVMValueRef x)
{
	/* a number with a unit in the last place of 1 */
	LLVMValueRef rounder = real_as(x, 0x1.8p23), sum = multiply_add(f, x, real_as(x, 0x1.45f306p-1), rounder);
	LLVMValueRef k = LLVMBuildFSub(f->b, sum, rounder, "");
	/* all parts have one sign, so that -0 is preserved */
	LLVMValueRef r = multiply_add(f, k, real_as(x, -0x1.921fb4p0), x);
	r = multiply_add(f, k, real_as(x, -0x1.4442dp-24), r);
	r = multiply_add(f, k, real_as(x, -0x1.84698ap-48), r);
	return (struct reduced){r, to_bits(f->b, sum)};
}

/* Error: 1.55 ulp, also near zeros. */
LLVMValueRef sin_cos_of_reduced(const struct functions *f, bool cosine, struct reduced x)
{
	LLVMBuilderRef b = f->b;
	LLVMValueRef r = x.r, quadrant = x.quadrant, s = square(f, r), one = int_as(quadrant, 1);
	/* + 0: a product of -0 times the negative polynomial would make 0 of r = -0 */
	LLVMValueRef cubed = multiply_add(f, s, r, real_as(r, 0));
	LLVMValueRef odd =
		multiply_add(f, polynomial(f, s, -0x1.555544p-3f, 0x1.1106c2p-7f, -0x1.9919cep-13f), cubed, r);
	LLVMValueRef p = polynomial(f, s, -0.5f, 0x1.55554ap-5f, -0x1.6c0c0ep-10f, 0x1.99db8ap-16f);
	LLVMValueRef even = multiply_add(f, p, s, real_as(r, 1));
	if (cosine)
		quadrant = LLVMBuildAdd(b, quadrant, one, "");
	LLVMValueRef turned = LLVMBuildICmp(b, LLVMIntNE, LLVMBuildAnd(b, quadrant, one, ""), int_as(quadrant, 0), "");
	LLVMValueRef sign = LLVMBuildShl(b, quadrant, int_as(quadrant, 30), "");
	sign = LLVMBuildAnd(b, sign, int_as(quadrant, 0x80000000), "");
	LLVMValueRef bits = to_bits(b, LLVMBuildSelect(b, turned, even, odd, ""));
	return from_bits(b, LLVMBuildXor(b, bits, sign, ""), elem_of(LLVMTypeOf(r)));
}

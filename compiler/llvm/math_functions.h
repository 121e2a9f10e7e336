/* Functions without an accurate hardware instruction, as straight-line code on scalars or vectors. */
#ifndef TLC_LLVM_MATH_FUNCTIONS_H
#define TLC_LLVM_MATH_FUNCTIONS_H

#include "llvm/float_formats.h"

/* The builder, and the operations that targets implement differently. */
struct functions {
	LLVMBuilderRef b;
	bool has_fma; /* false: a product and a sum are rounded separately */
	void *target;
	/* exp2: 2^x, not negative; may be 0 or infinite if the result is not a normal number. inverse: 1/x. */
	LLVMValueRef (*exp2)(const struct functions *f, LLVMValueRef x);
	LLVMValueRef (*inverse)(const struct functions *f, LLVMValueRef x);
	/* x / y of fp64 for y and 1 / y in the range of normal fp32 numbers and |x| <= y, with an error of 1 ulp */
	LLVMValueRef (*quotient)(const struct functions *f, LLVMValueRef x, LLVMValueRef y);
	/* r, or the logarithm of x if x is not positive and finite */
	LLVMValueRef (*log_or_special)(const struct functions *f, LLVMValueRef x, LLVMValueRef r);
};

LLVMValueRef multiply_add(const struct functions *f, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z);
/* The coefficient of x^0 comes first. */
LLVMValueRef polynomial_of_degree(const struct functions *f, LLVMValueRef x, const double *c, u32 degree);
/* A split of x for exp: x = n log(2) + y; for exp2: x = n + y. n is an integer. sum: n plus a number with a unit in the
 * last place of 1, so that n is in the low bits. r: exp(y) or exp2(y). */
struct exp_parts {
	LLVMValueRef sum, n, r;
};
/* exp, or exp2 if base2, of fp32 or fp64 is exp_of_parts(split_exp(x)). Errors in fp32: exp 1.02 ulp, exp2 0.88 ulp,
 * 1.1 ulp without fused multiply-adds. Errors in fp64, measured for 3 million arguments: 1.04 ulp, 1.3 ulp without. */
struct exp_parts split_exp(const struct functions *f, LLVMValueRef x, bool base2);
LLVMValueRef exp_of_parts(const struct functions *f, struct exp_parts s);
/* As split_exp for exp(x) in the range of normal numbers. */
struct exp_parts split_normal_exp_f64(const struct functions *f, LLVMValueRef x);
/* The same with r = expm1(y). n is 0 for |x| < 0.41, since the sum of 2^n r and 2^n - 1 cancels most for n = 1. */
struct exp_parts split_expm1_f64(const struct functions *f, LLVMValueRef x);
/* exp2 of fp32 with x clamped to -126 … 127, so that the result is a normal number. */
struct exp_parts split_normal_exp2(const struct functions *f, LLVMValueRef x);
LLVMValueRef normal_exp2_of_parts(const struct functions *f, struct exp_parts s);

/* r where x is positive and finite; otherwise the logarithm of x (NaN or an infinity). */
LLVMValueRef log_or_special(const struct functions *f, LLVMValueRef x, LLVMValueRef r);
LLVMValueRef log_f64(const struct functions *f, LLVMValueRef x, bool base2);
LLVMValueRef log_f32(const struct functions *f, LLVMValueRef x, bool base2);
LLVMValueRef erf_f32(const struct functions *f, LLVMValueRef x);
LLVMValueRef tanh_f32(const struct functions *f, LLVMValueRef x);
LLVMValueRef erf_f64(const struct functions *f, LLVMValueRef x);
LLVMValueRef tanh_f64(const struct functions *f, LLVMValueRef x);

/* x = k π/2 + r, |r| at most a little more than π/4; the two lowest bits of `quadrant` are the two lowest of k. */
struct reduced {
	LLVMValueRef r, quadrant;
};
/* The largest |x| of fp32 and of fp64 that reduce_angle reduces to r with an error of its last place, with fused
 * multiply-adds. */
#define MOST_REDUCED 0x1p17
#define MOST_REDUCED_F64 0x1p30
struct reduced reduce_angle(const struct functions *f, LLVMValueRef x);
enum trigonometric { SINE, COSINE, TANGENT };
LLVMValueRef trigonometric_of_reduced(const struct functions *f, enum trigonometric which, struct reduced x);

#endif

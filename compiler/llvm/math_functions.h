/* fp32 functions without an accurate hardware instruction, as straight-line code on scalars or vectors. */
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
	/* r, or the logarithm of x if x is not positive and finite */
	LLVMValueRef (*log_or_special)(const struct functions *f, LLVMValueRef x, LLVMValueRef r);
};

LLVMValueRef multiply_add(const struct functions *f, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z);
/* The coefficient of x^0 comes first. */
LLVMValueRef polynomial_of_degree(const struct functions *f, LLVMValueRef x, const double *c, u32 degree);
LLVMValueRef log_f32(const struct functions *f, LLVMValueRef x, bool base2);
LLVMValueRef erf_f32(const struct functions *f, LLVMValueRef x);
LLVMValueRef tanh_f32(const struct functions *f, LLVMValueRef x);

/* x = k π/2 + r, |r| at most a little more than π/4; the two lowest bits of `quadrant` are the two lowest of k. */
struct reduced {
	LLVMValueRef r, quadrant;
};
/* The largest |x| that reduce_f32 reduces exactly to fp32. reduce_f32 needs fused multiply-adds. */
#define MOST_REDUCED 0x1p17
struct reduced reduce_f32(const struct functions *f, LLVMValueRef x);
LLVMValueRef sin_cos_of_reduced(const struct functions *f, bool cosine, struct reduced x);

#endif

/* fp32 functions that no hardware has an accurate instruction for, as straight-line code on scalars or on vectors. */
#ifndef TLC_LLVM_MATH_FUNCTIONS_H
#define TLC_LLVM_MATH_FUNCTIONS_H

#include "llvm/float_formats.h"

/* Where code goes, and what each target does in its own way. */
struct functions {
	LLVMBuilderRef b;
	LLVMModuleRef mod;
	bool has_fma; /* else products and sums are rounded apart */
	void *target;
	/* 2^x, which is not negative and may be 0 or infinite where it is not a normal number; 1/x */
	LLVMValueRef (*exp2)(const struct functions *f, LLVMValueRef x);
	LLVMValueRef (*inverse)(const struct functions *f, LLVMValueRef x);
	/* r, or where x is not positive and finite its logarithm */
	LLVMValueRef (*log_or_special)(const struct functions *f, LLVMValueRef x, LLVMValueRef r);
};

LLVMValueRef multiply_add(const struct functions *f, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z);
LLVMValueRef log_f32(const struct functions *f, LLVMValueRef x, bool base2);
LLVMValueRef erf_f32(const struct functions *f, LLVMValueRef x);
LLVMValueRef tanh_f32(const struct functions *f, LLVMValueRef x);

/* x = k π/2 + r, |r| at most a little more than π/4; the two lowest bits of `quadrant` are those of k. */
struct reduced {
	LLVMValueRef r, quadrant;
};
/* Needs fused multiply-adds; exact to fp32 up to this |x|. */
#define MOST_REDUCED 0x1p17
struct reduced reduce_f32(const struct functions *f, LLVMValueRef x);
LLVMValueRef sin_cos_of_reduced(const struct functions *f, bool cosine, struct reduced x);

#endif

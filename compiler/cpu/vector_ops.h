/* Elementwise operations, conversions and math functions, for scalars and vectors of any length. */
#ifndef TLC_CPU_VECTOR_OPS_H
#define TLC_CPU_VECTOR_OPS_H

#include "cpu/cpu_internal.h"
#include "llvm/math_functions.h"

static inline LLVMValueRef is_nan(struct cpu_codegen *h, LLVMValueRef x)
{
	return LLVMBuildFCmp(h->b, LLVMRealUNO, x, x, "");
}

/* --- convert.c, math.c, exp_log.c --------------------------------------------------------------------------------- */

/* The result of conversion o of x; NULL if o is not a conversion. */
LLVMValueRef cpu_convert(struct cpu_codegen *h, const struct op *o, LLVMValueRef x);
/* Math function `code` of one argument, f32 or f64. */
LLVMValueRef cpu_math(struct cpu_codegen *h, enum opcode code, LLVMValueRef x);
LLVMValueRef cpu_fmod(struct cpu_codegen *h, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cpu_exp(struct cpu_codegen *h, const struct functions *f, LLVMValueRef x, bool base2);
/* exp2 of fp32 with x clamped to -126 … 127, so that the result is a normal number. */
LLVMValueRef cpu_normal_exp2(struct cpu_codegen *h, const struct functions *f, LLVMValueRef x);
LLVMValueRef cpu_log_f64(struct cpu_codegen *h, const struct functions *f, LLVMValueRef x, bool base2);
/* r where x is positive and finite; otherwise the logarithm of x (NaN or an infinity). */
LLVMValueRef cpu_log_or_special(struct cpu_codegen *h, LLVMValueRef x, LLVMValueRef r);

#endif

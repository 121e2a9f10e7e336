/* Elementwise operations, conversions and math functions, for scalars and vectors of any length. */
#ifndef TLC_CPU_VECTOR_OPS_H
#define TLC_CPU_VECTOR_OPS_H

#include "cpu/cpu_internal.h"
#include "llvm/math_functions.h"

static inline LLVMValueRef is_nan(struct cpu_codegen *h, LLVMValueRef x)
{
	return LLVMBuildFCmp(h->b, LLVMRealUNO, x, x, "");
}

/* --- convert.c, math.c ------------------------------------------------------------------------------------------ */

/* The result of conversion o of x; NULL if o is not a conversion. */
LLVMValueRef cpu_convert(struct cpu_codegen *h, const struct op *o, LLVMValueRef x);
/* Math function `code` of one argument, f32 or f64. */
LLVMValueRef cpu_math(struct cpu_codegen *h, enum opcode code, LLVMValueRef x);
LLVMValueRef cpu_fmod(struct cpu_codegen *h, LLVMValueRef x, LLVMValueRef y);

#endif

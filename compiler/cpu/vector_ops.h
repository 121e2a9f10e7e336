/* Helpers of elementwise.c, convert.c and math.c. All take scalars and vectors of any length: types follow the types
 * of the operands. */
#ifndef TLC_CPU_VECTOR_OPS_H
#define TLC_CPU_VECTOR_OPS_H

#include "cpu/cpu_internal.h"
#include "llvm/math_functions.h"

/* An intrinsic overloaded on the type of x. */
static inline LLVMValueRef cpu_intrinsic1(struct cpu_codegen *h, const char *name, LLVMValueRef x)
{
	LLVMTypeRef t = LLVMTypeOf(x);
	return cpu_intrinsic(h, name, &t, 1, &x, 1);
}

/* `elem`, or a vector of it with the number of elements of x. */
static inline LLVMTypeRef as_many(LLVMValueRef x, LLVMTypeRef elem)
{
	return type_like(LLVMTypeOf(x), elem);
}
static inline LLVMTypeRef elem_of(LLVMTypeRef t)
{
	return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}
static inline u32 bits_of_elem(LLVMTypeRef t)
{
	t = elem_of(t);
	switch (LLVMGetTypeKind(t)) {
	case LLVMHalfTypeKind: return 16;
	case LLVMFloatTypeKind: return 32;
	case LLVMDoubleTypeKind:
	case LLVMPointerTypeKind: return 64;
	default: return LLVMGetIntTypeWidth(t);
	}
}
/* n, or x, in each element. */
static inline LLVMValueRef int_as(LLVMValueRef like, u64 n)
{
	return int_like(LLVMTypeOf(like), n);
}
static inline LLVMValueRef real_as(LLVMValueRef like, double x)
{
	return LLVMConstReal(LLVMTypeOf(like), x);
}
/* The bits of floats as integers, and back. */
static inline LLVMValueRef bits_of(struct cpu_codegen *h, LLVMValueRef x)
{
	LLVMTypeRef t = LLVMIntTypeInContext(h->ctx, bits_of_elem(LLVMTypeOf(x)));
	return LLVMBuildBitCast(h->b, x, as_many(x, t), "");
}
static inline LLVMValueRef of_bits(struct cpu_codegen *h, LLVMValueRef x, LLVMTypeRef elem)
{
	return LLVMBuildBitCast(h->b, x, as_many(x, elem), "");
}
static inline LLVMValueRef is_nan(struct cpu_codegen *h, LLVMValueRef x)
{
	return LLVMBuildFCmp(h->b, LLVMRealUNO, x, x, "");
}

/* --- convert.c, math.c, exp_log.c --------------------------------------------------------------------------------- */

/* NULL: the operation is not a conversion. */
LLVMValueRef cpu_convert(struct cpu_codegen *h, const struct op *o, LLVMValueRef x);
/* A branch for rare elements, taken if any element of `is_rare` is true. rare_end returns the results computed in the
 * branch, for all elements, or `usual`. */
struct rare {
	LLVMValueRef usual;
	LLVMBasicBlockRef from, end;
};
struct rare rare_begin(struct cpu_codegen *h, LLVMValueRef is_rare, LLVMValueRef usual);
LLVMValueRef rare_end(struct cpu_codegen *h, const struct rare *r, LLVMValueRef x);
/* A function of one f32 or f64. */
LLVMValueRef cpu_math(struct cpu_codegen *h, enum opcode code, LLVMValueRef x);
LLVMValueRef cpu_fmod(struct cpu_codegen *h, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cpu_exp(struct cpu_codegen *h, const struct functions *f, LLVMValueRef x, bool base2);
/* exp2 of fp32. A result that is not a normal number is replaced by the least or largest normal power. */
LLVMValueRef cpu_normal_exp2(struct cpu_codegen *h, const struct functions *f, LLVMValueRef x);
LLVMValueRef cpu_log_f64(struct cpu_codegen *h, const struct functions *f, LLVMValueRef x, bool base2);
/* r, or the logarithm of x if x is not positive and finite. */
LLVMValueRef cpu_log_or_special(struct cpu_codegen *h, LLVMValueRef x, LLVMValueRef r);

#endif

/* Helpers of elementwise.c, convert.c and math.c. All take scalars and vectors of any length: types follow the types
 * of the operands. */
#ifndef TLC_CPU_VECTOR_OPS_H
#define TLC_CPU_VECTOR_OPS_H

#include "cpu/cpu_internal.h"
#include "llvm/math_functions.h"

/* Calls an intrinsic that is overloaded on the type of its only argument x. */
static inline LLVMValueRef cpu_intrinsic1(struct cpu_codegen *h, const char *name, LLVMValueRef x)
{
	LLVMTypeRef t = LLVMTypeOf(x);
	return cpu_intrinsic(h, name, &t, 1, &x, 1);
}

/* The type `elem` if x is a scalar; otherwise a vector of `elem` with as many lanes as x. */
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
/* The constant n (or x) of the type of `like`: in each lane if `like` is a vector. */
static inline LLVMValueRef int_as(LLVMValueRef like, u64 n)
{
	return int_like(LLVMTypeOf(like), n);
}
static inline LLVMValueRef real_as(LLVMValueRef like, double x)
{
	return LLVMConstReal(LLVMTypeOf(like), x);
}
/* Bitcasts of each lane: from floats to integers of the same width, and from integers to `elem`. */
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

/* The result of conversion o of x; NULL if o is not a conversion. */
LLVMValueRef cpu_convert(struct cpu_codegen *h, const struct op *o, LLVMValueRef x);
/* A branch for rare elements, taken if any lane of `is_rare` is true. Code between rare_begin and rare_end is in the
 * branch and computes x for all lanes. rare_end returns x if the branch was taken, otherwise `usual`. */
struct rare {
	LLVMValueRef usual;
	LLVMBasicBlockRef from, end;
};
struct rare rare_begin(struct cpu_codegen *h, LLVMValueRef is_rare, LLVMValueRef usual);
LLVMValueRef rare_end(struct cpu_codegen *h, const struct rare *r, LLVMValueRef x);
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

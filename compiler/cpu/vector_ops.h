/* Pieces that elementwise.c, convert.c and math.c build operations from. All of them take scalars, and vectors of any
 * number of elements: types follow those of the operands. */
#ifndef TLC_CPU_VECTOR_OPS_H
#define TLC_CPU_VECTOR_OPS_H

#include "cpu/cpu_internal.h"
#include "llvm/math_functions.h"

/* Overloaded on the type of x. */
static inline LLVMValueRef cpu_intrinsic1(struct cpu_codegen *h, const char *name, LLVMValueRef x)
{
	LLVMTypeRef t = LLVMTypeOf(x);
	return cpu_intrinsic(h, name, &t, 1, &x, 1);
}

/* `elem`, or a vector of it with as many elements as x. */
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
/* The bits of floats, as integers, and back. */
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

/* NULL: the operation is none that converts. */
LLVMValueRef cpu_convert(struct cpu_codegen *h, const struct op *o, LLVMValueRef x);
/* What is rare is computed apart, if one element of `is_rare` is true: rare_end gives the results computed there, for
 * all elements, or `usual`. */
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
/* Of fp32: what is not normal is the least or the largest normal power. */
LLVMValueRef cpu_normal_exp2(struct cpu_codegen *h, const struct functions *f, LLVMValueRef x);
LLVMValueRef cpu_log_f64(struct cpu_codegen *h, const struct functions *f, LLVMValueRef x, bool base2);
/* r, or where x is not positive and finite its logarithm. */
LLVMValueRef cpu_log_or_special(struct cpu_codegen *h, LLVMValueRef x, LLVMValueRef r);

#endif

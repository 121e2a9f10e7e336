#include "llvm/float_formats.h"

#include <math.h>

/* The result is a float of this width whose upper bits are v. */
static LLVMValueRef from_upper_bits(LLVMBuilderRef b, LLVMValueRef v, enum dtype to)
{
	int bits = dtype_bits(to), shift = bits - type_bits(LLVMTypeOf(v));
	v = LLVMBuildZExt(b, v, ints_as(v, bits), "");
	return from_bits(b, shl(b, v, shift), llvm_dtype(LLVMGetTypeContext(LLVMTypeOf(v)), to));
}

LLVMValueRef decode_bf16(LLVMBuilderRef b, LLVMValueRef v)
{
	return from_upper_bits(b, v, DT_F32);
}

LLVMValueRef decode_e5m2(LLVMBuilderRef b, LLVMValueRef v)
{
	return from_upper_bits(b, v, DT_F16);
}

LLVMValueRef set_odd(LLVMBuilderRef b, LLVMValueRef f, LLVMValueRef inexact)
{
	LLVMValueRef bits = to_bits(b, f);
	bits = LLVMBuildOr(b, bits, LLVMBuildZExt(b, inexact, LLVMTypeOf(bits), ""), "");
	return from_bits(b, bits, elem_of(LLVMTypeOf(f)));
}

LLVMValueRef encode_fp8(LLVMBuilderRef b, LLVMValueRef v, enum dtype d, bool toward_zero)
{
	int mant = d == DT_E4M3 ? 3 : 2, bias = d == DT_E4M3 ? 7 : 15;
	u32 max_finite = d == DT_E4M3 ? 0x7E : 0x7B;
	int drop = 23 - mant, scale = bias - 1 + mant;
	LLVMTypeRef f32 = LLVMTypeOf(v), i32 = ints_as(v, 32);
	LLVMValueRef bits = LLVMBuildBitCast(b, v, i32, "");
	LLVMValueRef mag = LLVMBuildAnd(b, bits, int_like(i32, 0x7FFFFFFF), "");
	LLVMValueRef sign = LLVMBuildAnd(b, lshr(b, bits, 24), int_like(i32, 0x80), "");
	LLVMValueRef normal = LLVMBuildSub(b, mag, int_like(i32, (127u - (u32)bias) << 23), ""), sub,
		     f = LLVMBuildBitCast(b, mag, f32, "");
	if (toward_zero) {
		sub = LLVMBuildFPToUI(b, LLVMBuildFMul(b, f, LLVMConstReal(f32, ldexp(1, scale)), ""), i32, "");
	} else {
		normal = LLVMBuildAdd(b, normal, int_like(i32, (1u << (drop - 1)) - 1), "");
		normal = LLVMBuildAdd(b, normal, LLVMBuildAnd(b, lshr(b, mag, drop), int_like(i32, 1), ""), "");
		/* adding this number rounds at its last place, which is the result's smallest step */
		double magic = ldexp(1, 23 - scale);
		f = LLVMBuildFAdd(b, f, LLVMConstReal(f32, magic), "");
		sub = LLVMBuildSub(b, LLVMBuildBitCast(b, f, i32, ""), int_like(i32, fp_bits_f32((float)magic)), "");
	}
	normal = lshr(b, normal, drop);
	LLVMValueRef tiny = LLVMBuildICmp(b, LLVMIntULT, mag, int_like(i32, (128u - (u32)bias) << 23), "");
	LLVMValueRef r = LLVMBuildSelect(b, tiny, sub, normal, "");
	LLVMValueRef over = LLVMBuildICmp(b, LLVMIntUGT, r, int_like(i32, max_finite), "");
	r = LLVMBuildOr(b, LLVMBuildSelect(b, over, int_like(i32, max_finite), r, ""), sign, "");
	LLVMValueRef nan = LLVMBuildICmp(b, LLVMIntUGT, mag, int_like(i32, 0x7F800000), "");
	r = LLVMBuildSelect(b, nan, int_like(i32, 0x7F), r, "");
	return LLVMBuildTrunc(b, r, ints_as(v, 8), "");
}

LLVMValueRef encode_bf16(LLVMBuilderRef b, LLVMValueRef v, bool toward_zero)
{
	LLVMTypeRef i32 = ints_as(v, 32);
	LLVMValueRef bits = LLVMBuildBitCast(b, v, i32, ""), r = bits;
	if (!toward_zero) {
		r = LLVMBuildAdd(b, r, int_like(i32, 0x7FFF), "");
		r = LLVMBuildAdd(b, r, LLVMBuildAnd(b, lshr(b, bits, 16), int_like(i32, 1), ""), "");
	}
	LLVMValueRef mag = LLVMBuildAnd(b, bits, int_like(i32, 0x7FFFFFFF), "");
	LLVMValueRef nan = LLVMBuildICmp(b, LLVMIntUGT, mag, int_like(i32, 0x7F800000), "");
	r = LLVMBuildSelect(b, nan, int_like(i32, 0x7FFF), lshr(b, r, 16), "");
	return LLVMBuildTrunc(b, r, ints_as(v, 16), "");
}

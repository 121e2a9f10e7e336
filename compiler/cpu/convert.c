/* Conversions between float formats, and between floats and integers. */
#include "cpu/vector_ops.h"
#include "llvm/elementwise.h"

#include <math.h>

/* --- float formats ----------------------------------------------------------------------------------------------- */

/* fp16 conversion in integer arithmetic, for CPUs without F16C, where LLVM would call a library function. The method is
 * that of fp_from_f16 and fp_to_f16 in support/small_floats.h. */
static LLVMValueRef f16_to_f32_by_bits(struct cpu_codegen *h, LLVMValueRef v)
{
	LLVMBuilderRef b = h->b;
	LLVMValueRef x = LLVMBuildZExt(b, to_bits(h->b, v), type_as(v, h->i32), "");
	LLVMValueRef sign = LLVMBuildShl(b, LLVMBuildAnd(b, x, int_as(x, 0x8000), ""), int_as(x, 16), "");
	LLVMValueRef mag = LLVMBuildShl(b, LLVMBuildAnd(b, x, int_as(x, 0x7FFF), ""), int_as(x, 13), "");
	LLVMValueRef scaled = from_bits(h->b, mag, h->f32);
	scaled = to_bits(h->b, LLVMBuildFMul(b, scaled, real_as(scaled, 0x1p112), ""));
	LLVMValueRef special = LLVMBuildICmp(b, LLVMIntUGE, mag, int_as(mag, 0x0F800000), "");
	special = LLVMBuildAnd(b, LLVMBuildSExt(b, special, LLVMTypeOf(x), ""), int_as(x, 0x7F800000), "");
	return from_bits(h->b, LLVMBuildOr(b, LLVMBuildOr(b, sign, scaled, ""), special, ""), h->f32);
}

static LLVMValueRef f32_to_f16_by_bits(struct cpu_codegen *h, LLVMValueRef v)
{
	LLVMBuilderRef b = h->b;
	LLVMValueRef x = to_bits(h->b, v), mag = LLVMBuildAnd(b, x, int_as(x, 0x7FFFFFFF), "");
	LLVMValueRef sign = LLVMBuildAnd(b, LLVMBuildLShr(b, x, int_as(x, 16), ""), int_as(x, 0x8000), "");
	LLVMValueRef odd = LLVMBuildAnd(b, LLVMBuildLShr(b, mag, int_as(x, 13), ""), int_as(x, 1), "");
	LLVMValueRef normal = LLVMBuildAdd(b, LLVMBuildSub(b, mag, int_as(x, 0x38000000 - 0xFFF), ""), odd, "");
	normal = LLVMBuildLShr(b, normal, int_as(x, 13), "");
	/* subnormal fp16: adding 0.5 rounds to the last place of 0.5 in fp32, 2^-24, the unit of fp16's subnormals */
	LLVMValueRef sub = LLVMBuildFAdd(b, from_bits(h->b, mag, h->f32), real_as(v, 0.5), "");
	sub = LLVMBuildSub(b, to_bits(h->b, sub), int_as(x, 0x3F000000), "");
	LLVMValueRef tiny = LLVMBuildICmp(b, LLVMIntULT, mag, int_as(x, 0x38800000), "");
	LLVMValueRef r = LLVMBuildSelect(b, tiny, sub, normal, "");
	LLVMValueRef over = LLVMBuildICmp(b, LLVMIntUGE, mag, int_as(x, 0x477FF000), "");
	r = LLVMBuildSelect(b, over, int_as(x, 0x7C00), r, "");
	LLVMValueRef nan = LLVMBuildICmp(b, LLVMIntUGT, mag, int_as(x, 0x7F800000), "");
	r = LLVMBuildOr(b, sign, LLVMBuildSelect(b, nan, int_as(x, 0x7FFF), r, ""), "");
	return from_bits(h->b, LLVMBuildTrunc(b, r, type_as(v, h->i16), ""), h->f16);
}

/* Extends v to `elem`. The arithmetic fence hides the conversion from LLVM. Otherwise LLVM would move a comparison or
 * minimum before it: fp16 vectors are then compared one element after another, and minima lose the signs of zeros. */
static LLVMValueRef extend(struct cpu_codegen *h, LLVMValueRef v, LLVMTypeRef elem)
{
	v = LLVMBuildFPExt(h->b, v, type_as(v, elem), "");
	return LLVMIsConstant(v) ? v : intrinsic1(h->b, "llvm.arithmetic.fence", v);
}

static LLVMValueRef f16_to_f32(struct cpu_codegen *h, LLVMValueRef v)
{
	return h->s->target->has_f16c ? extend(h, v, h->f32) : f16_to_f32_by_bits(h, v);
}

/* Puts the bits of e4m3 at the place of fp32's, and scales by 2^(127 - 7), the difference of the exponent biases:
 * exact, and normalizes subnormals. 0x7F is NaN. */
static LLVMValueRef e4m3_to_f32(struct cpu_codegen *h, LLVMValueRef v)
{
	LLVMBuilderRef b = h->b;
	LLVMValueRef x = LLVMBuildZExt(b, v, type_as(v, h->i32), ""), mag = LLVMBuildAnd(b, x, int_as(x, 0x7F), "");
	LLVMValueRef sign = LLVMBuildShl(b, LLVMBuildXor(b, x, mag, ""), int_as(x, 24), "");
	LLVMValueRef scaled = from_bits(h->b, LLVMBuildShl(b, mag, int_as(x, 20), ""), h->f32);
	scaled = to_bits(h->b, LLVMBuildFMul(b, scaled, real_as(scaled, 0x1p120), ""));
	LLVMValueRef nan = LLVMBuildICmp(b, LLVMIntEQ, mag, int_as(x, 0x7F), "");
	scaled = LLVMBuildSelect(b, nan, int_as(x, 0x7FC00000), scaled, "");
	return from_bits(h->b, LLVMBuildOr(b, sign, scaled, ""), h->f32);
}

LLVMValueRef cpu_widen(struct cpu_codegen *h, LLVMValueRef v, enum dtype d)
{
	LLVMValueRef x = map_get(&h->exact, v);
	if (x)
		return x;
	switch (d) {
	case DT_F32:
	case DT_F64: return v;
	case DT_F16: return f16_to_f32(h, v);
	case DT_BF16: return decode_bf16(h->b, v);
	case DT_E5M2: return f16_to_f32(h, decode_e5m2(h->b, v));
	case DT_E4M3: return e4m3_to_f32(h, v);
	default: tl_unreachable("not a float");
	}
}

/* Turns r, x rounded to nearest, into x rounded toward zero: the next number toward zero if |r| > |x|. Both magnitudes
 * are in the wider type. */
static LLVMValueRef step_back(struct cpu_codegen *h, LLVMValueRef r, LLVMValueRef size_of_r, LLVMValueRef size_of_x)
{
	LLVMValueRef away = LLVMBuildFCmp(h->b, LLVMRealOGT, size_of_r, size_of_x, ""), bits = to_bits(h->b, r);
	bits = LLVMBuildAdd(h->b, bits, LLVMBuildSExt(h->b, away, LLVMTypeOf(bits), ""), "");
	return from_bits(h->b, bits, elem_of(LLVMTypeOf(r)));
}

static LLVMValueRef size(struct cpu_codegen *h, LLVMValueRef x)
{
	return intrinsic1(h->b, "llvm.fabs", x);
}

/* Rounds to bf16 by vcvtneps2bf16, which treats subnormals as zero. Vectors with subnormals, which are rare, branch to
 * a conversion in integer arithmetic. */
static LLVMValueRef f32_to_bf16(struct cpu_codegen *h, LLVMValueRef v)
{
	enum { LANES = 16, SUBNORMAL = 0x20 };
	u32 lanes = lanes_of(v), n = lanes / LANES;
	if (!h->s->target->has_bf16 || !h->s->target->has_avx512 || !n || lanes % LANES)
		return encode_bf16(h->b, v, false);
	LLVMValueRef x[16], special = NULL;
	tl_assert(n <= ARRAY_LEN(x));
	for (u32 i = 0; i < n; i++) {
		x[i] = cpu_lanes(h, v, i * LANES, LANES);
		LLVMValueRef args[] = {x[i], cpu_i32(h, SUBNORMAL)};
		LLVMValueRef is = call_intrinsic(h->b, "llvm.x86.avx512.fpclass.ps.512", NULL, 0, args, 2);
		special = special ? LLVMBuildOr(h->b, special, is, "") : is;
		x[i] = call_intrinsic(h->b, "llvm.x86.avx512bf16.cvtneps2bf16.512", NULL, 0, &x[i], 1);
		x[i] = LLVMBuildBitCast(h->b, x[i], LLVMVectorType(h->i16, LANES), "");
	}
	LLVMValueRef usual = cpu_concat(h, x, n);
	struct guarded rare = begin_if(h->b, cpu_any_lane(h, special, false));
	LLVMValueRef r = encode_bf16(h->b, v, false);
	end_if(h->b, &rare);
	return either(h->b, &rare, usual, r);
}

static LLVMValueRef narrow(struct cpu_codegen *h, LLVMValueRef v, enum dtype d, bool toward_zero)
{
	switch (d) {
	case DT_F32:
	case DT_F64: return v;
	case DT_F16: {
		LLVMValueRef r = h->s->target->has_f16c ? LLVMBuildFPTrunc(h->b, v, type_as(v, h->f16), "")
							: f32_to_f16_by_bits(h, v);
		if (!toward_zero)
			return r;
		LLVMValueRef most = size(h, v);
		return step_back(h, r, size(h, f16_to_f32(h, r)), most);
	}
	case DT_BF16: return toward_zero ? encode_bf16(h->b, v, true) : f32_to_bf16(h, v);
	case DT_E4M3:
	case DT_E5M2: return encode_fp8(h->b, v, d, toward_zero);
	default: tl_unreachable("not a float");
	}
}

LLVMValueRef cpu_narrow(struct cpu_codegen *h, LLVMValueRef v, enum dtype d)
{
	return narrow(h, v, d, false);
}

/* Rounds toward zero, or to odd (set_odd). */
static LLVMValueRef f64_to_f32(struct cpu_codegen *h, LLVMValueRef x, bool to_odd)
{
	LLVMBuilderRef b = h->b;
	LLVMValueRef f = LLVMBuildFPTrunc(b, x, type_as(x, h->f32), "");
	LLVMValueRef back = extend(h, f, h->f64), most = size(h, x);
	f = step_back(h, f, size(h, back), most);
	if (!to_odd)
		return f;
	return set_odd(b, f, LLVMBuildFCmp(b, LLVMRealONE, back, x, ""));
}

static LLVMValueRef float_to_float(struct cpu_codegen *h, LLVMValueRef x, enum dtype from, enum dtype to,
				   bool toward_zero)
{
	if (from == to && !dtype_is_fp8(to)) /* fp8 to itself too: the conversion saturates infinities */
		return x;
	if (from == DT_F64 && to == DT_F32)
		return toward_zero ? f64_to_f32(h, x, false) : LLVMBuildFPTrunc(h->b, x, type_as(x, h->f32), "");
	x = from == DT_F64 ? f64_to_f32(h, x, true) : cpu_widen(h, x, from);
	return to == DT_F64 ? extend(h, x, h->f64) : narrow(h, x, to, toward_zero);
}

/* --- integers ---------------------------------------------------------------------------------------------------- */

/* Rounds an integer to odd if it has more than `mantissa` bits: its low bits become 0, and the lowest remaining bit is
 * set if any of them was set. A second rounding to a narrower float then gives the same result as one rounding. */
static LLVMValueRef cut_to_odd(struct cpu_codegen *h, LLVMValueRef x, u32 mantissa, bool is_signed)
{
	LLVMBuilderRef b = h->b;
	u32 cut = type_bits(LLVMTypeOf(x)) - mantissa;
	LLVMValueRef low = LLVMBuildAnd(b, x, int_as(x, (1ull << cut) - 1), "");
	LLVMValueRef some = LLVMBuildICmp(b, LLVMIntNE, low, int_as(x, 0), "");
	LLVMValueRef last = LLVMBuildShl(b, LLVMBuildZExt(b, some, LLVMTypeOf(x), ""), int_as(x, cut), "");
	LLVMValueRef odd = LLVMBuildOr(b, LLVMBuildXor(b, x, low, ""), last, "");
	LLVMValueRef above = is_signed ? LLVMBuildAdd(b, x, int_as(x, 1ull << mantissa), "") : x;
	LLVMValueRef is_long = LLVMBuildICmp(b, LLVMIntUGT, above, int_as(x, 1ull << (mantissa + is_signed)), "");
	return LLVMBuildSelect(b, is_long, odd, x, "");
}

/* For formats with a largest number below 2^16: clamps x to a range beyond which all integers convert to the same
 * number. */
static LLVMValueRef clamp(struct cpu_codegen *h, LLVMValueRef x, bool is_signed)
{
	enum { FAR = 1 << 17 };
	LLVMBuilderRef b = h->b;
	LLVMIntPredicate less = is_signed ? LLVMIntSLT : LLVMIntULT;
	LLVMValueRef most = int_as(x, FAR), least = int_as(x, (u64) - (i64)FAR);
	x = LLVMBuildSelect(b, LLVMBuildICmp(b, less, x, most, ""), x, most, "");
	if (is_signed)
		x = LLVMBuildSelect(b, LLVMBuildICmp(b, less, x, least, ""), least, x, "");
	return type_bits(LLVMTypeOf(x)) > 32 ? LLVMBuildTrunc(b, x, type_as(x, h->i32), "") : x;
}

/* Whether fp16 or bf16 (`to`) represents all integers in v's range (analysis/ranges.h) exactly. */
static bool is_exact(struct cpu_codegen *h, const struct value *v, enum dtype to, bool is_signed)
{
	const struct range *r = value_range(h->s->ranges, v);
	i64 most = to == DT_F16 ? 1 << 11 : to == DT_BF16 ? 1 << 8 : 0;
	return r->min >= (is_signed ? -most : 0) && r->max <= most;
}

/* Converts an integer to a float with the result of a single rounding: the intermediate type has all bits of the
 * integer, or those that decide the rounding. */
static LLVMValueRef int_to_float(struct cpu_codegen *h, const struct value *v, LLVMValueRef x, enum dtype to,
				 bool is_signed)
{
	u32 bits = type_bits(LLVMTypeOf(x));
	if (to < DT_F32 && is_exact(h, v, to, is_signed)) {
		if (bits > 32)
			x = LLVMBuildTrunc(h->b, x, type_as(x, h->i32), "");
		LLVMTypeRef t = type_as(x, h->f32);
		LLVMValueRef f = is_signed ? LLVMBuildSIToFP(h->b, x, t, "") : LLVMBuildUIToFP(h->b, x, t, "");
		LLVMValueRef r = narrow(h, f, to, false);
		map_put(&h->exact, r, f);
		return r;
	}
	bool by_f64 = to == DT_F64 || (to == DT_BF16 && bits == 64);
	if (to < DT_F32 && to != DT_BF16 && bits > 16) {
		x = clamp(h, x, is_signed);
		is_signed = true;
	} else if (to == DT_BF16 && bits > 16) {
		x = cut_to_odd(h, x, bits == 64 ? 53 : 24, is_signed);
	}
	LLVMTypeRef t = type_as(x, by_f64 ? h->f64 : h->f32);
	x = is_signed ? LLVMBuildSIToFP(h->b, x, t, "") : LLVMBuildUIToFP(h->b, x, t, "");
	if (to == DT_F64)
		return x;
	return narrow(h, by_f64 ? f64_to_f32(h, x, true) : x, to, false);
}

/* Converts toward zero, saturating; NaN becomes 0. LLVM's saturating conversion takes twice as long on x86. */
static LLVMValueRef float_to_int(struct cpu_codegen *h, LLVMValueRef x, LLVMTypeRef to, bool is_signed)
{
	LLVMBuilderRef b = h->b;
	u32 bits = type_bits(to);
	LLVMValueRef limit = real_as(x, ldexp(1, (int)bits - is_signed));
	LLVMValueRef least = is_signed ? LLVMBuildFNeg(b, limit, "") : real_as(x, 0);
	LLVMValueRef fits = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOLT, x, limit, ""), x, real_as(x, 0), "");
	fits = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOLT, fits, least, ""), least, fits, "");
	LLVMTypeRef t = bits < 32 ? type_as(x, h->i32) : to;
	LLVMValueRef r = is_signed || bits < 32 ? LLVMBuildFPToSI(b, fits, t, "") : LLVMBuildFPToUI(b, fits, t, "");
	LLVMValueRef most = int_like(to, is_signed ? (1ull << (bits - 1)) - 1 : ~0ull >> (64 - bits));
	if (bits < 32)
		r = LLVMBuildTrunc(b, r, to, "");
	return LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOGE, x, limit, ""), most, r, "");
}

/* --- all conversions --------------------------------------------------------------------------------------------- */

LLVMValueRef cpu_convert(struct cpu_codegen *h, const struct op *o, LLVMValueRef x)
{
	enum dtype from = type_dtype(operand(o, 0)->type), to = type_dtype(result(o)->type);
	LLVMTypeRef t = cpu_elem_type(h, result(o)->type);
	switch (o->code) {
	case IR_SITOFP:
	case IR_UITOFP: return int_to_float(h, operand(o, 0), x, to, o->code == IR_SITOFP);
	case IR_FPTOSI:
	case IR_FPTOUI: return float_to_int(h, cpu_widen(h, x, from), type_as(x, t), o->code == IR_FPTOSI);
	case IR_EXTF:
	case IR_TRUNCF: return float_to_float(h, x, from, to, false);
	case IR_FP_TO_FP: return float_to_float(h, x, from, to, o->attr[ATTR_ROUNDING] == ROUND_RTZ);
	default: return emit_cast(h->b, o->code, x, t);
	}
}

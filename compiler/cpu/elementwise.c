/* Elementwise operations on a scalar or on a vector of neighbouring elements: ir/elementwise.def in LLVM IR.
 *
 * Masks are applied at stores, so operations run on arbitrary values of masked-off elements: no operation traps or has
 * an undefined result. Floats smaller than fp32 are computed in fp32 and rounded once. */
#include "cpu/vector_ops.h"
#include "llvm/elementwise.h"
#include "ir/scalar.h"

LLVMTypeRef cpu_elem_type(struct cpu_codegen *h, const struct type *t)
{
	const struct type *elem = type_elem(t);
	return elem->kind == TY_PTR ? h->ptr : llvm_dtype(h->ctx, elem->dtype);
}

LLVMTypeRef cpu_vector_type(LLVMTypeRef elem, u32 lanes)
{
	return lanes ? LLVMVectorType(elem, lanes) : elem;
}

/* --- integers ---------------------------------------------------------------------------------------------------- */

static LLVMValueRef equal(struct cpu_codegen *h, LLVMValueRef x, u64 n)
{
	return LLVMBuildICmp(h->b, LLVMIntEQ, x, int_as(x, n), "");
}

/* Divides integers of up to 32 bits in a float format with at least twice their precision. Truncating the float
 * quotient gives the integer quotient: the rounding error is less than the distance of a non-integer quotient to the
 * next integer. x86 has no vector instruction for integer division. */
static LLVMValueRef quotient_by_floats(struct cpu_codegen *h, LLVMValueRef x, LLVMValueRef y, bool is_signed)
{
	LLVMBuilderRef b = h->b;
	LLVMTypeRef f = type_as(x, type_bits(LLVMTypeOf(x)) == 32 ? h->f64 : h->f32), t = LLVMTypeOf(x);
	LLVMValueRef by = is_signed ? LLVMBuildSIToFP(b, y, f, "") : LLVMBuildUIToFP(b, y, f, "");
	LLVMValueRef of = is_signed ? LLVMBuildSIToFP(b, x, f, "") : LLVMBuildUIToFP(b, x, f, "");
	LLVMValueRef q = LLVMBuildFDiv(b, of, by, "");
	return is_signed ? LLVMBuildFPToSI(b, q, t, "") : LLVMBuildFPToUI(b, q, t, "");
}

/* The same method for 64-bit integers in fp64, if each fits 52 bits with its sign, which is usual; otherwise a branch
 * divides as integers. Such an integer is converted to fp64 by adding it to the bits of 1.5 · 2^52, and subtracting
 * that number. */
static LLVMValueRef quotient_of_longs(struct cpu_codegen *h, LLVMValueRef x, LLVMValueRef y, bool is_signed)
{
	LLVMBuilderRef b = h->b;
	LLVMTypeRef t = LLVMTypeOf(x);
	LLVMValueRef rounder = LLVMConstReal(type_as(x, h->f64), 0x1.8p52), bits = int_like(t, 0x4338000000000000);
	LLVMValueRef in[] = {x, y}, wide[2], large[2];
	for (u32 i = 0; i < 2; i++) {
		wide[i] = from_bits(h->b, LLVMBuildAdd(b, in[i], bits, ""), h->f64);
		wide[i] = LLVMBuildFSub(b, wide[i], rounder, "");
		large[i] = is_signed ? LLVMBuildAdd(b, in[i], int_like(t, 1ull << 51), "") : in[i];
		large[i] = LLVMBuildLShr(b, large[i], int_like(t, 51u + is_signed), "");
	}
	LLVMValueRef q = intrinsic1(h->b, "llvm.trunc", LLVMBuildFDiv(b, wide[0], wide[1], ""));
	q = LLVMBuildSub(b, to_bits(h->b, LLVMBuildFAdd(b, q, rounder, "")), bits, "");
	LLVMValueRef some = LLVMBuildOr(b, large[0], large[1], "");
	some = LLVMBuildICmp(b, LLVMIntNE, some, int_like(t, 0), "");
	struct guarded rare = begin_if(b, cpu_any_lane(h, some, false));
	LLVMValueRef r = LLVMBuildBinOp(b, is_signed ? LLVMSDiv : LLVMUDiv, x, y, "");
	end_if(b, &rare);
	return either(b, &rare, q, r);
}

/* Whether the divisor is constant and neither 0 nor -1. */
static bool divides_safely(LLVMValueRef y)
{
	bool vector = LLVMGetTypeKind(LLVMTypeOf(y)) == LLVMVectorTypeKind;
	u32 n = vector ? LLVMGetVectorSize(LLVMTypeOf(y)) : 1;
	if (!LLVMIsConstant(y))
		return false;
	for (u32 i = 0; i < n; i++) {
		LLVMValueRef e = vector ? LLVMGetAggregateElement(y, i) : y;
		if (!e || !LLVMIsAConstantInt(e) || LLVMConstIntGetSExtValue(e) == 0 ||
		    LLVMConstIntGetSExtValue(e) == -1)
			return false;
	}
	return true;
}

static LLVMValueRef divide(struct cpu_codegen *h, const struct op *o, LLVMValueRef x, LLVMValueRef y)
{
	enum opcode code = o->code;
	LLVMBuilderRef b = h->b;
	bool is_signed = code == IR_DIVSI || code == IR_REMSI, rest = code == IR_REMSI || code == IR_REMUI;
	LLVMTypeRef t = LLVMTypeOf(x);
	if (divides_safely(y))
		return emit_operation(b, o, (LLVMValueRef[]){x, y});
	/* A divisor of 0 or (signed) -1, for which LLVM's division is undefined, is replaced by 1. In 1 bit, signed 1
	 * is -1, so each divisor is replaced. */
	LLVMValueRef none = equal(h, y, 0), minus = is_signed ? equal(h, y, ~0ull) : NULL, q;
	LLVMValueRef odd = is_signed ? LLVMBuildOr(b, none, minus, "") : none;
	if (type_bits(t) == 1) {
		q = x;
	} else {
		LLVMValueRef by = LLVMBuildSelect(b, odd, int_as(y, 1), y, "");
		if (LLVMGetTypeKind(t) != LLVMVectorTypeKind)
			q = LLVMBuildBinOp(b, is_signed ? LLVMSDiv : LLVMUDiv, x, by, "");
		else if (type_bits(t) == 64)
			q = quotient_of_longs(h, x, by, is_signed);
		else
			q = quotient_by_floats(h, x, by, is_signed);
	}
	if (rest) /* a divisor replaced by 1 has remainder 0 */
		return LLVMBuildSelect(b, odd, int_as(x, 0), LLVMBuildSub(b, x, LLVMBuildMul(b, q, y, ""), ""), "");
	if (is_signed)
		q = LLVMBuildSelect(b, minus, LLVMBuildNeg(b, x, ""), q, "");
	return LLVMBuildSelect(b, none, int_as(x, 0), q, "");
}

/* A shift by at least the width shifts all bits out; LLVM's result is undefined then. */
static LLVMValueRef shift(struct cpu_codegen *h, const struct op *o, LLVMValueRef x, LLVMValueRef y)
{
	LLVMBuilderRef b = h->b;
	enum opcode code = o->code;
	u32 bits = type_bits(LLVMTypeOf(x));
	const struct range *by = value_range(h->s->ranges, operand(o, 1));
	if (bits > 1 && by->min >= 0 && by->max < bits)
		return emit_operation(b, o, (LLVMValueRef[]){x, y});
	if (bits == 1) /* y is 0 or 1, and a shift by 1 moves out the only bit */
		return code == IR_SHRSI ? x : LLVMBuildAnd(b, x, LLVMBuildNot(b, y, ""), "");
	LLVMValueRef fits = LLVMBuildICmp(b, LLVMIntULT, y, int_as(y, bits), "");
	if (code == IR_SHRSI)
		return LLVMBuildAShr(b, x, LLVMBuildSelect(b, fits, y, int_as(y, bits - 1), ""), "");
	LLVMValueRef r = LLVMBuildBinOp(b, code == IR_SHLI ? LLVMShl : LLVMLShr, x, y, "");
	return LLVMBuildSelect(b, fits, r, int_as(x, 0), "");
}

/* --- floats ------------------------------------------------------------------------------------------------------ */

/* Whether all elements are constants other than 0 and NaN: such a number compares equal only to the same bits. */
static bool is_plain_constant(LLVMValueRef x)
{
	if (!LLVMIsConstant(x))
		return false;
	LLVMTypeRef t = LLVMTypeOf(x);
	bool vector = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
	for (u32 i = 0, n = vector ? LLVMGetVectorSize(t) : 1; i < n; i++) {
		LLVMValueRef e = vector ? LLVMGetAggregateElement(x, i) : x;
		LLVMBool loses;
		if (!e || !LLVMIsAConstantFP(e))
			return false;
		double v = LLVMConstRealGetDouble(e, &loses);
		if (v != v || v == 0)
			return false;
	}
	return true;
}

static LLVMValueRef pick(struct cpu_codegen *h, bool max, LLVMValueRef x, LLVMValueRef y)
{
	return LLVMBuildSelect(h->b, LLVMBuildFCmp(h->b, max ? LLVMRealOGT : LLVMRealOLT, x, y, ""), x, y, "");
}

/* Minimum or maximum. The x86 instructions compute x > y ? x : y, so they return the second operand if both are zeros
 * or one is NaN. The maximum of +0 and -0 must be +0. So the operands are ordered: if y is negative, x is second, and
 * for a minimum y. If one of two zeros is the right one, it is then second. The result with one NaN is the other
 * operand, or the NaN if `propagate`. */
static LLVMValueRef min_max(struct cpu_codegen *h, bool max, bool propagate, LLVMValueRef x, LLVMValueRef y)
{
	LLVMBuilderRef b = h->b;
	if (is_plain_constant(x)) {
		LLVMValueRef other = y;
		y = x;
		x = other;
	}
	if (is_plain_constant(y))
		return propagate ? pick(h, max, y, x) : pick(h, max, x, y);
	LLVMValueRef bits = to_bits(h->b, y), minus = LLVMBuildICmp(b, LLVMIntSLT, bits, int_as(bits, 0), "");
	LLVMValueRef first = LLVMBuildSelect(b, minus, max ? y : x, max ? x : y, "");
	LLVMValueRef second = LLVMBuildSelect(b, minus, max ? x : y, max ? y : x, "");
	LLVMValueRef r = pick(h, max, first, second);
	if (propagate) /* if the second operand is NaN, r is that NaN already */
		return LLVMBuildSelect(b, is_nan(h, first), first, r, "");
	return LLVMBuildSelect(b, is_nan(h, second), first, r, "");
}

static LLVMValueRef float_op(struct cpu_codegen *h, const struct op *o, LLVMValueRef *in)
{
	switch (o->code) {
	case IR_REMF: return cpu_fmod(h, in[0], in[1]);
	case IR_MAXNUMF:
	case IR_MINNUMF: return min_max(h, o->code == IR_MAXNUMF, false, in[0], in[1]);
	case IR_MAXIMUMF:
	case IR_MINIMUMF: return min_max(h, o->code == IR_MAXIMUMF, true, in[0], in[1]);
	case IR_CLAMPF: {
		bool nan = o->attr[ATTR_NAN];
		return min_max(h, false, nan, min_max(h, true, nan, in[0], in[1]), in[2]);
	}
	default: break;
	}
	LLVMValueRef r = emit_operation(h->b, o, in);
	return r ? r : cpu_math(h, o->code, in[0]);
}

/* Negation or absolute value of fp16 and bf16 by the sign bit. fp8 is computed in fp32, as
 * the conversion back saturates infinities. */
static LLVMValueRef set_sign(struct cpu_codegen *h, enum opcode code, LLVMValueRef x)
{
	LLVMValueRef bits = to_bits(h->b, x);
	bits = code == IR_NEGF ? LLVMBuildXor(h->b, bits, int_as(bits, 0x8000), "")
			       : LLVMBuildAnd(h->b, bits, int_as(bits, 0x7FFF), "");
	return from_bits(h->b, bits, elem_of(LLVMTypeOf(x)));
}

static LLVMValueRef any_float_op(struct cpu_codegen *h, const struct op *o, const LLVMValueRef *in, enum dtype d)
{
	LLVMValueRef wide[3];
	if ((o->code == IR_NEGF || o->code == IR_ABSF) && (d == DT_F16 || d == DT_BF16))
		return set_sign(h, o->code, in[0]);
	for (u32 i = 0; i < o->noperands; i++)
		wide[i] = cpu_widen(h, in[i], d);
	if (o->code == IR_CMPF)
		return emit_operation(h->b, o, wide);
	return cpu_narrow(h, float_op(h, o, wide), d);
}

/* --- all operations ---------------------------------------------------------------------------------------------- */

/* Pointer p plus a signed number of elements. */
static LLVMValueRef add_pointer(struct cpu_codegen *h, const struct op *o, LLVMValueRef p, LLVMValueRef offset)
{
	LLVMTypeRef t = type_as(offset, h->i64);
	if (type_bits(LLVMTypeOf(offset)) < 64)
		offset = LLVMBuildSExt(h->b, offset, t, "");
	offset = LLVMBuildMul(h->b, offset, int_like(t, pointee_bytes(operand(o, 0)->type)), "");
	return LLVMBuildGEP2(h->b, h->i8, p, &offset, 1, "");
}

LLVMValueRef cpu_elementwise(struct cpu_codegen *h, const struct op *o, const LLVMValueRef *in)
{
	enum dtype d = type_dtype(operand(o, 0)->type);
	switch (o->code) {
	case IR_ADDPTR: return add_pointer(h, o, in[0], in[1]);
	case IR_DIVSI:
	case IR_DIVUI:
	case IR_REMSI:
	case IR_REMUI: return divide(h, o, in[0], in[1]);
	case IR_SHLI:
	case IR_SHRSI:
	case IR_SHRUI: return shift(h, o, in[0], in[1]);
	default: break;
	}
	LLVMValueRef v = cpu_convert(h, o, in[0]);
	if (v)
		return v;
	bool is_float = op_info[o->code].rule == R_FLOAT || o->code == IR_CMPF;
	return is_float ? any_float_op(h, o, in, d) : emit_operation(h->b, o, in);
}

#include "llvm/elementwise.h"

static LLVMValueRef compare_ints(LLVMBuilderRef b, const struct op *o, const LLVMValueRef *in)
{
	static const LLVMIntPredicate predicates[] = {
		[CMPI_EQ] = LLVMIntEQ,   [CMPI_NE] = LLVMIntNE,   [CMPI_SLT] = LLVMIntSLT, [CMPI_SLE] = LLVMIntSLE,
		[CMPI_SGT] = LLVMIntSGT, [CMPI_SGE] = LLVMIntSGE, [CMPI_ULT] = LLVMIntULT, [CMPI_ULE] = LLVMIntULE,
		[CMPI_UGT] = LLVMIntUGT, [CMPI_UGE] = LLVMIntUGE,
	};
	return LLVMBuildICmp(b, predicates[o->attr[ATTR_PREDICATE]], in[0], in[1], "");
}

static LLVMValueRef compare_floats(LLVMBuilderRef b, const struct op *o, const LLVMValueRef *in)
{
	static const LLVMRealPredicate predicates[] = {
		[CMPF_OEQ] = LLVMRealOEQ, [CMPF_ONE] = LLVMRealONE, [CMPF_OLT] = LLVMRealOLT, [CMPF_OLE] = LLVMRealOLE,
		[CMPF_OGT] = LLVMRealOGT, [CMPF_OGE] = LLVMRealOGE, [CMPF_ORD] = LLVMRealORD, [CMPF_UEQ] = LLVMRealUEQ,
		[CMPF_UNE] = LLVMRealUNE, [CMPF_ULT] = LLVMRealULT, [CMPF_ULE] = LLVMRealULE, [CMPF_UGT] = LLVMRealUGT,
		[CMPF_UGE] = LLVMRealUGE, [CMPF_UNO] = LLVMRealUNO,
	};
	return LLVMBuildFCmp(b, predicates[o->attr[ATTR_PREDICATE]], in[0], in[1], "");
}

/* x if the comparison x, y is true, else y. */
static LLVMValueRef pick(LLVMBuilderRef b, LLVMIntPredicate predicate, LLVMValueRef x, LLVMValueRef y)
{
	return LLVMBuildSelect(b, LLVMBuildICmp(b, predicate, x, y, ""), x, y, "");
}

static LLVMValueRef absolute(LLVMBuilderRef b, LLVMValueRef x)
{
	LLVMValueRef less = LLVMBuildICmp(b, LLVMIntSLT, x, int_as(x, 0), "");
	return LLVMBuildSelect(b, less, LLVMBuildNeg(b, x, ""), x, "");
}

/* The upper half of the product of unsigned integers. */
static LLVMValueRef mulhi(LLVMBuilderRef b, LLVMValueRef x, LLVMValueRef y)
{
	int bits = type_bits(LLVMTypeOf(x));
	LLVMTypeRef wide = ints_as(x, MAX(2 * bits, 8));
	LLVMValueRef right = LLVMBuildZExt(b, y, wide, "");
	LLVMValueRef p = LLVMBuildMul(b, LLVMBuildZExt(b, x, wide, ""), right, "");
	return LLVMBuildTrunc(b, lshr(b, p, bits), LLVMTypeOf(x), "");
}

static LLVMValueRef select_of(LLVMBuilderRef b, const struct op *o, const LLVMValueRef *in)
{
	LLVMValueRef r = LLVMBuildSelect(b, in[0], in[1], in[2], "");
	if (def_if(operand(o, 0), IR_UNLIKELY))
		mark_unlikely(r);
	return r;
}

LLVMValueRef emit_operation(LLVMBuilderRef b, const struct op *o, const LLVMValueRef *in)
{
	static const LLVMOpcode binary[IR_OPCODES] = {
		[IR_ADDI] = LLVMAdd,   [IR_SUBI] = LLVMSub,          [IR_MULI] = LLVMMul,   [IR_DIVSI] = LLVMSDiv,
		[IR_DIVUI] = LLVMUDiv, [IR_REMSI] = LLVMSRem,        [IR_REMUI] = LLVMURem, [IR_ANDI] = LLVMAnd,
		[IR_ORI] = LLVMOr,     [IR_XORI] = LLVMXor,          [IR_SHLI] = LLVMShl,   [IR_SHRSI] = LLVMAShr,
		[IR_SHRUI] = LLVMLShr, [IR_ADDF] = LLVMFAdd,         [IR_SUBF] = LLVMFSub,  [IR_MULF] = LLVMFMul,
		[IR_DIVF] = LLVMFDiv,  [IR_PRECISE_DIVF] = LLVMFDiv,
	};
	switch (o->code) {
	case IR_CMPI: return compare_ints(b, o, in);
	case IR_CMPF: return compare_floats(b, o, in);
	case IR_SELECT: return select_of(b, o, in);
	case IR_UNLIKELY: return in[0];
	case IR_MAXSI: return pick(b, LLVMIntSGT, in[0], in[1]);
	case IR_MAXUI: return pick(b, LLVMIntUGT, in[0], in[1]);
	case IR_MINSI: return pick(b, LLVMIntSLT, in[0], in[1]);
	case IR_MINUI: return pick(b, LLVMIntULT, in[0], in[1]);
	case IR_ABSI: return absolute(b, in[0]);
	case IR_MULHIUI: return mulhi(b, in[0], in[1]);
	case IR_NEGF: return LLVMBuildFNeg(b, in[0], "");
	case IR_ABSF: return intrinsic1(b, "llvm.fabs", in[0]);
	case IR_FLOOR: return intrinsic1(b, "llvm.floor", in[0]);
	case IR_CEIL: return intrinsic1(b, "llvm.ceil", in[0]);
	case IR_RINT: return intrinsic1(b, "llvm.rint", in[0]);
	case IR_TRUNC: return intrinsic1(b, "llvm.trunc", in[0]);
	case IR_FMA: return intrinsic_on(b, "llvm.fma", (LLVMValueRef *)in, 3);
	default: return binary[o->code] ? LLVMBuildBinOp(b, binary[o->code], in[0], in[1], "") : NULL;
	}
}

LLVMValueRef emit_cast(LLVMBuilderRef b, enum opcode code, LLVMValueRef x, LLVMTypeRef t)
{
	static const LLVMOpcode casts[IR_OPCODES] = {
		[IR_EXTSI] = LLVMSExt,          [IR_EXTUI] = LLVMZExt,          [IR_TRUNCI] = LLVMTrunc,
		[IR_PTR_TO_INT] = LLVMPtrToInt, [IR_INT_TO_PTR] = LLVMIntToPtr,
	};
	if (code == IR_BITCAST)
		return LLVMTypeOf(x) == type_as(x, t) ? x : from_bits(b, to_bits(b, x), t);
	return casts[code] ? LLVMBuildCast(b, casts[code], x, type_as(x, t), "") : NULL;
}

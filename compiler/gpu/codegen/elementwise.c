/* Elementwise operations, one element at a time.
 *
 * fp16 uses native arithmetic. bf16 and fp8 values are integers in LLVM IR. bf16 arithmetic is computed in fp32 and
 * rounded once, as in the interpreter. A conversion that the target lacks is computed with integers. */
#include "ir/scalar.h"
#include "llvm/elementwise.h"
#include "llvm/float_formats.h"
#include "gpu/codegen/nvptx_internal.h"

#include <math.h>

/* --- small floats -------------------------------------------------------------------------------------------- */

/* fp8 to fp16, exactly. E5M2 is the upper half of fp16. The magnitude bits of E4M3, at the place of those of fp16, are
 * a number with another exponent bias, so it is scaled by 2^8; 0x7F is NaN. */
static LLVMValueRef fp8_to_f16(struct lower *l, LLVMValueRef v, enum dtype d)
{
	if (d == DT_E5M2)
		return decode_e5m2(l->b, v);
	LLVMValueRef x = LLVMBuildZExt(l->b, v, l->i16, "");
	LLVMValueRef mag = LLVMBuildAnd(l->b, x, LLVMConstInt(l->i16, 0x7F, false), "");
	LLVMValueRef sign = shl(l->b, LLVMBuildAnd(l->b, x, LLVMConstInt(l->i16, 0x80, false), ""), 8);
	LLVMValueRef h = LLVMBuildBitCast(l->b, LLVMBuildOr(l->b, sign, shl(l->b, mag, 7), ""), l->f16, "");
	h = LLVMBuildFMul(l->b, h, LLVMConstReal(l->f16, 256), "");
	LLVMValueRef nan = LLVMBuildICmp(l->b, LLVMIntEQ, mag, LLVMConstInt(l->i16, 0x7F, false), "");
	return LLVMBuildSelect(l->b, nan, LLVMConstReal(l->f16, NAN), h, "");
}

LLVMValueRef small_to_f32(struct lower *l, LLVMValueRef v, enum dtype d)
{
	switch (d) {
	case DT_F32: return v;
	case DT_F16: return LLVMBuildFPExt(l->b, v, l->f32, "");
	case DT_BF16: return decode_bf16(l->b, v);
	case DT_E4M3:
	case DT_E5M2: return LLVMBuildFPExt(l->b, fp8_to_f16(l, v, d), l->f32, "");
	case DT_F64: return LLVMBuildFPTrunc(l->b, v, l->f32, "");
	default: tl_unreachable("not a float");
	}
}

/* Converts two or four fp32 to fp8, packed in one i32 (sm_89 on). ptxas 13.0 crashes if a conversion's result is moved
 * to two different words, so the text moves it to a single word and all uses read that word. */
static LLVMValueRef cvt_fp8(struct lower *l, LLVMValueRef *v, u32 n, enum dtype d)
{
	static const char two[] = "{ .reg .b16 lo; cvt.rn.satfinite.%s.f32 lo, $2, $1; cvt.u32.u16 $0, lo; }",
			  four[] = "{ .reg .b16 lo, hi; cvt.rn.satfinite.%s.f32 lo, $2, $1; "
				   "cvt.rn.satfinite.%s.f32 hi, $4, $3; mov.b32 $0, {lo, hi}; }";
	const char *pair = d == DT_E4M3 ? "e4m3x2" : "e5m2x2";
	return n == 4 ? inline_asm(l, arena_printf(&l->scratch, four, pair, pair), "=r,f,f,f,f", ASM_PURE, l->i32, v, 4)
		      : inline_asm(l, arena_printf(&l->scratch, two, pair), "=r,f,f", ASM_PURE, l->i32, v, 2);
}

LLVMValueRef f32_to_small(struct lower *l, LLVMValueRef v, enum dtype d, enum rounding r)
{
	bool rtz = r == ROUND_RTZ;
	switch (d) {
	case DT_F32: return v;
	case DT_F16:
		if (rtz)
			return LLVMBuildBitCast(
				l->b, inline_asm(l, "cvt.rz.f16.f32 $0, $1;", "=h,f", ASM_PURE, l->i16, &v, 1), l->f16,
				"");
		return LLVMBuildFPTrunc(l->b, v, l->f16, "");
	case DT_BF16:
		if (!l->s->target->has_pair_conversions || rtz)
			return encode_bf16(l->b, v, rtz);
		return inline_asm(l, "cvt.rn.bf16.f32 $0, $1;", "=h,f", ASM_PURE, l->i16, &v, 1);
	case DT_E4M3:
	case DT_E5M2:
		if (l->s->target->has_fp8_conversions && !rtz)
			return LLVMBuildTrunc(
				l->b, cvt_fp8(l, (LLVMValueRef[]){v, LLVMConstReal(l->f32, 0)}, 2, d), l->i8, "");
		return encode_fp8(l->b, v, d, rtz);
	default: tl_unreachable("not a small float");
	}
}

/* --- one element --------------------------------------------------------------------------------------------- */

static LLVMValueRef call2(struct lower *l, const char *name, LLVMValueRef x, LLVMValueRef y)
{
	LLVMValueRef args[] = {x, y};
	return intrinsic(l, name, LLVMTypeOf(x), args, 2);
}

static LLVMValueRef min_max(struct lower *l, enum opcode code, LLVMValueRef x, LLVMValueRef y)
{
	bool max = code == IR_MAXNUMF || code == IR_MAXIMUMF;
	LLVMValueRef r = intrinsic_on(l->b, max ? "llvm.maxnum" : "llvm.minnum", (LLVMValueRef[]){x, y}, 2);
	if (code == IR_MAXNUMF || code == IR_MINNUMF)
		return r;
	LLVMValueRef nan = LLVMBuildFCmp(l->b, LLVMRealUNO, x, y, "");
	return LLVMBuildSelect(l->b, nan, LLVMConstReal(LLVMTypeOf(x), NAN), r, "");
}

/* The functions called for a math operation. f32: the approximate hardware instruction, where Triton uses it, which
 * flushes subnormal numbers to zero; kept: which does not (FTZ_OFF). NULL: tlc's function in math.c. */
static const struct {
	const char *f32, *kept, *f64;
} math[IR_OPCODES] = {
	[IR_EXP2] = {"llvm.nvvm.ex2.approx.ftz.f", "llvm.nvvm.ex2.approx.f", NULL},
	[IR_SQRT] = {"llvm.nvvm.sqrt.approx.ftz.f", "llvm.nvvm.sqrt.approx.f", "llvm.sqrt.f64"},
	[IR_PRECISE_SQRT] = {"llvm.nvvm.sqrt.rn.f", "llvm.nvvm.sqrt.rn.f", "llvm.sqrt.f64"},
	[IR_RSQRT] = {"llvm.nvvm.rsqrt.approx.ftz.f", "llvm.nvvm.rsqrt.approx.f", "llvm.nvvm.rsqrt.approx.d"},
	[IR_LOG2_APPROX] = {"llvm.nvvm.lg2.approx.ftz.f", "llvm.nvvm.lg2.approx.f", NULL},
	[IR_SIN_APPROX] = {"llvm.nvvm.sin.approx.ftz.f", "llvm.nvvm.sin.approx.f", NULL},
	[IR_COS_APPROX] = {"llvm.nvvm.cos.approx.ftz.f", "llvm.nvvm.cos.approx.f", NULL},
};

static const char *function_of(const struct lower *l, enum opcode code, bool f32)
{
	return !f32 ? math[code].f64 : l->s->options.ftz == FTZ_OFF ? math[code].kept : math[code].f32;
}

static bool is_trigonometric(enum opcode code)
{
	return code == IR_SIN || code == IR_COS || code == IR_TAN;
}

static LLVMValueRef math_function(struct lower *l, enum opcode code, LLVMValueRef x)
{
	bool f = LLVMTypeOf(x) == l->f32;
	code = f ? code : accurate_operation(code);
	const char *name = function_of(l, code, f);
	if (is_trigonometric(code)) {
		trigonometric(l, code, &x, 1, &x);
		return x;
	}
	if (code == IR_EXP && f) {
		x = LLVMBuildFMul(l->b, x, LLVMConstReal(l->f32, 1.4426950408889634), "");
		return call1(l, function_of(l, IR_EXP2, true), x);
	}
	if (code == IR_TANH_APPROX)
		return inline_asm(l, "tanh.approx.f32 $0, $1;", "=f,f", ASM_PURE, l->f32, &x, 1);
	if (!name)
		return f ? math_f32(l, code, x) : math_f64(l, code, x);
	return call1(l, name, x);
}

static LLVMValueRef float_op(struct lower *l, const struct op *o, LLVMValueRef *in)
{
	bool f32 = LLVMTypeOf(in[0]) == l->f32;
	switch (o->code) {
	case IR_DIVF:
		if (f32)
			return call2(l, APPROXIMATE_DIVISION, in[0], in[1]);
		break;
	case IR_REMF: return fmod_float(l, in[0], in[1]);
	case IR_MAXNUMF:
	case IR_MINNUMF:
	case IR_MAXIMUMF:
	case IR_MINIMUMF: return min_max(l, o->code, in[0], in[1]);
	case IR_CLAMPF: {
		bool nan = o->attr[ATTR_NAN];
		LLVMValueRef r = min_max(l, nan ? IR_MAXIMUMF : IR_MAXNUMF, in[0], in[1]);
		return min_max(l, nan ? IR_MINIMUMF : IR_MINNUMF, r, in[2]);
	}
	default: break;
	}
	LLVMValueRef r = emit_operation(l->b, o, in);
	return r ? r : math_function(l, o->code, in[0]);
}

/* Whether the operation on fp16 is an fp16 instruction; the others are computed in fp32. */
static bool native_f16(enum opcode code)
{
	return code == IR_ADDF || code == IR_SUBF || code == IR_MULF || code == IR_NEGF || code == IR_ABSF ||
	       code == IR_FMA;
}

static bool is_bf16_multiply_add(const struct lower *l, const struct op *o)
{
	return (o->code == IR_ADDF || o->code == IR_SUBF || o->code == IR_MULF) &&
	       type_dtype(result(o)->type) == DT_BF16 && l->s->target->has_pair_conversions;
}

/* A sum, difference or product of bf16, or of two in a word each, by the multiply-add of bf16. The result equals an
 * fp32 result rounded to bf16. A product of two 8-bit significands is exact in fp32, or less than half of the least
 * bf16. Rounding a sum to 24 bits and then to 8 gives the same as rounding once, because 24 >= 2 * 8 + 2 (S. A.
 * Figueroa, "When is double rounding innocuous?", 1995). The addend of a product is -0, which keeps the sign of a zero
 * product. */
static LLVMValueRef bf16_multiply_add(struct lower *l, enum opcode code, LLVMValueRef x, LLVMValueRef y)
{
	enum { ONE = 0x3F80, MINUS_ONE = 0xBF80, MINUS_ZERO = 0x8000 };
	LLVMTypeRef t = LLVMTypeOf(x);
	bool pair = t == l->i32;
	u64 c = code == IR_MULF ? MINUS_ZERO : code == IR_ADDF ? ONE : MINUS_ONE;
	LLVMValueRef k = LLVMConstInt(t, pair ? c << 16 | c : c, false), product[] = {x, y, k}, sum[] = {x, k, y},
		     difference[] = {y, k, x};
	LLVMValueRef *args = code == IR_MULF ? product : code == IR_ADDF ? sum : difference;
	return pair ? inline_asm(l, "fma.rn.bf16x2 $0, $1, $2, $3;", "=r,r,r,r", ASM_PURE, t, args, 3)
		    : inline_asm(l, "fma.rn.bf16 $0, $1, $2, $3;", "=h,h,h,h", ASM_PURE, t, args, 3);
}

static LLVMValueRef any_float_op(struct lower *l, const struct op *o, LLVMValueRef *in, enum dtype d)
{
	LLVMValueRef wide[3];
	if (d == DT_F32 || d == DT_F64 || (d == DT_F16 && native_f16(o->code)))
		return float_op(l, o, in);
	if (is_bf16_multiply_add(l, o))
		return bf16_multiply_add(l, o->code, in[0], in[1]);
	for (u32 i = 0; i < o->noperands; i++)
		wide[i] = small_to_f32(l, in[i], d);
	return f32_to_small(l, float_op(l, o, wide), d, ROUND_DEFAULT);
}

static LLVMValueRef compare_float(struct lower *l, const struct op *o, LLVMValueRef *in, enum dtype d)
{
	LLVMValueRef wide[] = {in[0], in[1]};
	for (u32 i = 0; i < 2 && (d == DT_BF16 || dtype_is_fp8(d)); i++)
		wide[i] = small_to_f32(l, in[i], d);
	return emit_operation(l->b, o, wide);
}

/* Reassociates x + (y + c) to (x + y) + c. The elements of a tile of offsets then differ by constants from one sum,
 * and loads and stores fold these constants into their addresses. */
static LLVMValueRef add(struct lower *l, LLVMValueRef x, LLVMValueRef y)
{
	if (LLVMIsABinaryOperator(x) && !LLVMIsABinaryOperator(y))
		return add(l, y, x);
	bool offset = LLVMIsABinaryOperator(y) && LLVMGetInstructionOpcode(y) == LLVMAdd &&
		      LLVMIsAConstantInt(LLVMGetOperand(y, 1));
	if (!offset || LLVMIsConstant(x))
		return LLVMBuildAdd(l->b, x, y, "");
	return LLVMBuildAdd(l->b, LLVMBuildAdd(l->b, x, LLVMGetOperand(y, 0), ""), LLVMGetOperand(y, 1), "");
}

/* Compares by x < y: LLVM would merge x > y with an equal comparison, and then emits selects instead of a maximum. */
static LLVMValueRef maximum(struct lower *l, LLVMIntPredicate less, LLVMValueRef x, LLVMValueRef y)
{
	return LLVMBuildSelect(l->b, LLVMBuildICmp(l->b, less, x, y, ""), y, x, "");
}

/* Truncation toward zero that saturates; NaN becomes 0. cvt.rzi does this, except for NaN with a 64-bit operand or
 * result. */
static LLVMValueRef float_to_int(struct lower *l, LLVMValueRef x, enum dtype from, int bits, bool is_signed)
{
	if (from != DT_F32 && from != DT_F64)
		x = small_to_f32(l, x, from);
	bool d = LLVMTypeOf(x) == l->f64;
	int reg = bits < 32 ? 32 : bits;
	const char *text =
		arena_printf(&l->scratch, "cvt.rzi.%c%d.%s $0, $1;", is_signed ? 's' : 'u', reg, d ? "f64" : "f32");
	const char *cons = reg == 64 ? (d ? "=l,d" : "=l,f") : (d ? "=r,d" : "=r,f");
	LLVMValueRef v = inline_asm(l, text, cons, ASM_PURE, int_type(l, reg), &x, 1);
	if (d || reg == 64)
		v = LLVMBuildSelect(l->b, LLVMBuildFCmp(l->b, LLVMRealUNO, x, x, ""), LLVMConstNull(LLVMTypeOf(v)), v,
				    "");
	if (bits == reg)
		return v;
	i64 lo = is_signed ? -(1ll << (bits - 1)) : 0, hi = is_signed ? (1ll << (bits - 1)) - 1 : (1ll << bits) - 1;
	if (is_signed) {
		LLVMValueRef under = LLVMBuildICmp(l->b, LLVMIntSLT, v, c_i32(l, lo), "");
		v = LLVMBuildSelect(l->b, under, c_i32(l, lo), v, "");
	}
	LLVMValueRef over = LLVMBuildICmp(l->b, is_signed ? LLVMIntSGT : LLVMIntUGT, v, c_i32(l, hi), "");
	v = LLVMBuildSelect(l->b, over, c_i32(l, hi), v, "");
	return LLVMBuildTrunc(l->b, v, int_type(l, bits), "");
}

static LLVMValueRef f64_to_f32_odd(struct lower *l, LLVMValueRef x)
{
	LLVMValueRef f = inline_asm(l, "cvt.rz.f32.f64 $0, $1;", "=f,d", ASM_PURE, l->f32, &x, 1);
	LLVMValueRef back = LLVMBuildFPExt(l->b, f, l->f64, "");
	return set_odd(l->b, f, LLVMBuildFCmp(l->b, LLVMRealONE, back, x, ""));
}

static LLVMValueRef int_to_f32_odd(struct lower *l, LLVMValueRef x, bool is_signed)
{
	int bits = type_bits(LLVMTypeOf(x));
	char sign = is_signed ? 's' : 'u', c = bits == 64 ? 'l' : 'r';
	const char *there = arena_printf(&l->scratch, "cvt.rz.f32.%c%d $0, $1;", sign, bits);
	const char *again = arena_printf(&l->scratch, "cvt.rzi.%c%d.f32 $0, $1;", sign, bits);
	LLVMValueRef f = inline_asm(l, there, arena_printf(&l->scratch, "=f,%c", c), ASM_PURE, l->f32, &x, 1);
	LLVMValueRef back = inline_asm(l, again, arena_printf(&l->scratch, "=%c,f", c), ASM_PURE, LLVMTypeOf(x), &f, 1);
	return set_odd(l->b, f, LLVMBuildICmp(l->b, LLVMIntNE, back, x, ""));
}

static LLVMValueRef int_to_float(struct lower *l, LLVMValueRef x, enum dtype to, bool is_signed)
{
	if (to == DT_BF16 && type_bits(LLVMTypeOf(x)) > 16)
		return f32_to_small(l, int_to_f32_odd(l, x, is_signed), to, ROUND_DEFAULT);
	LLVMTypeRef t = to == DT_F64 ? l->f64 : to == DT_F16 ? l->f16 : l->f32;
	LLVMValueRef v = is_signed ? LLVMBuildSIToFP(l->b, x, t, "") : LLVMBuildUIToFP(l->b, x, t, "");
	return to == DT_F64 || to == DT_F16 ? v : f32_to_small(l, v, to, ROUND_DEFAULT);
}

static LLVMValueRef float_to_float(struct lower *l, LLVMValueRef x, enum dtype from, enum dtype to, enum rounding r)
{
	if (from == DT_F64 && to == DT_F16 && r != ROUND_RTZ)
		return LLVMBuildFPTrunc(l->b, x, l->f16, "");
	if (to == DT_F16 && dtype_is_fp8(from))
		return fp8_to_f16(l, x, from);
	if (from == DT_F64 && to == DT_F32 && r == ROUND_RTZ)
		return inline_asm(l, "cvt.rz.f32.f64 $0, $1;", "=f,d", ASM_PURE, l->f32, &x, 1);
	x = from == DT_F64 && to != DT_F32 ? f64_to_f32_odd(l, x) : small_to_f32(l, x, from);
	return to == DT_F64 ? LLVMBuildFPExt(l->b, x, l->f64, "") : f32_to_small(l, x, to, r);
}

static LLVMValueRef convert(struct lower *l, const struct op *o, LLVMValueRef x)
{
	enum dtype from = type_dtype(operand(o, 0)->type), to = type_dtype(result(o)->type);
	switch (o->code) {
	case IR_SITOFP: return int_to_float(l, x, to, true);
	case IR_UITOFP: return int_to_float(l, x, to, false);
	case IR_FPTOSI: return float_to_int(l, x, from, dtype_bits(to), true);
	case IR_FPTOUI: return float_to_int(l, x, from, dtype_bits(to), false);
	case IR_EXTF:
		if (from == DT_F32)
			return LLVMBuildFPExt(l->b, x, l->f64, "");
		return float_to_float(l, x, from, to, ROUND_DEFAULT);
	case IR_TRUNCF: return float_to_float(l, x, from, to, ROUND_DEFAULT);
	case IR_FP_TO_FP: return float_to_float(l, x, from, to, (enum rounding)o->attr[ATTR_ROUNDING]);
	default: return emit_cast(l->b, o->code, x, llvm_type(l, result(o)->type));
	}
}

LLVMValueRef lower_scalar_op(struct lower *l, const struct op *o, LLVMValueRef *in)
{
	enum dtype d = o->noperands ? type_dtype(operand(o, 0)->type) : DT_I32;
	switch (o->code) {
	case IR_CMPF: return compare_float(l, o, in, d);
	case IR_ADDPTR: return pointer_plus(l, type_elem(o->results[0].type), in[0], in[1]);
	case IR_ADDI: return add(l, in[0], in[1]);
	case IR_MAXSI:
	case IR_MAXUI: return maximum(l, o->code == IR_MAXSI ? LLVMIntSLT : LLVMIntULT, in[0], in[1]);
	case IR_MULHIUI:
		if (d == DT_I64) /* not a 128-bit product, which LLVM would combine with other arithmetic */
			return call2(l, "llvm.nvvm.mulhi.ull", in[0], in[1]);
		break;
	default: break;
	}
	LLVMValueRef v = convert(l, o, in[0]);
	if (v)
		return v;
	return op_info[o->code].rule == R_FLOAT ? any_float_op(l, o, in, d) : emit_operation(l->b, o, in);
}

/* By inline PTX: the result of LLVM's intrinsic would need a bitcast to i32, and each such bitcast costs LLVM's NVPTX
 * back end a walk over the whole function. */
LLVMValueRef cvt_f16x2(struct lower *l, LLVMValueRef lo, LLVMValueRef hi, enum dtype d)
{
	LLVMValueRef args[] = {hi, lo};
	const char *text = d == DT_F16 ? "cvt.rn.f16x2.f32 $0, $1, $2;" : "cvt.rn.bf16x2.f32 $0, $1, $2;";
	return inline_asm(l, text, "=r,f,f", ASM_PURE, l->i32, args, 2);
}

/* Conversions to small floats by instructions for two elements: to fp8 from any float but fp64, to fp16 and bf16 from
 * fp32. False: o is no such conversion. */
static bool lower_float_pairs(struct lower *l, const struct op *o)
{
	const struct value *v = result(o), *x = operand(o, 0);
	u32 n = num_elems(v);
	if ((o->code != IR_TRUNCF && o->code != IR_FP_TO_FP) || n % 2 ||
	    (o->code == IR_FP_TO_FP && o->attr[ATTR_ROUNDING] == ROUND_RTZ))
		return false;
	enum dtype from = type_dtype(x->type), to = type_dtype(v->type);
	if (dtype_is_fp8(to) && l->s->target->has_fp8_conversions && from != DT_F64) {
		LLVMValueRef *at = new_tile(l, v), f32[4];
		u32 step = MIN(n, 4);
		for (u32 i = 0; i < n; i += step) {
			for (u32 k = 0; k < step; k++)
				f32[k] = small_to_f32(l, elem(l, x, i + k), from);
			LLVMValueRef word = cvt_fp8(l, f32, step, to);
			unpack(l, &word, 1, l->i8, step, at + i);
		}
		return true;
	}
	if ((to != DT_F16 && to != DT_BF16) || !l->s->target->has_pair_conversions || from != DT_F32)
		return false;
	LLVMValueRef *words = arena_array(&l->scratch, LLVMValueRef, n / 2);
	for (u32 i = 0; i < n; i += 2) {
		LLVMValueRef second = elem(l, x, i + 1);
		words[i / 2] = cvt_f16x2(l, elem(l, x, i), second, to);
	}
	set_words(l, v, words, n / 2);
	return true;
}

/* ptxas 13.0 has a bug: if a mov splits a word whose upper half it knows to be zero, it takes 8 or 16 for that half. So
 * the inline PTX converts the lower half of a register, and for an upper half a shift brings it there. */
LLVMValueRef fp8_pair_to_f16(struct lower *l, const struct value *v, u32 i)
{
	const char *text = arena_printf(
		&l->scratch, "{\n\t.reg .b16 pair;\n\tcvt.u16.u32 pair, $1;\n\tcvt.rn.f16x2.%s $0, pair;\n\t}",
		type_dtype(v->type) == DT_E4M3 ? "e4m3x2" : "e5m2x2");
	LLVMValueRef *words = words_of_tile(l, v), elems[2], pair;
	if (words) {
		pair = i % 2 ? lshr(l->b, words[i / 2], 16) : words[i / 2];
	} else {
		for (u32 k = 0; k < 2; k++)
			elems[k] = elem(l, v, 2 * i + k);
		pack(l, elems, 2, 16, &pair);
		bool of_word = LLVMIsATruncInst(pair) && LLVMTypeOf(LLVMGetOperand(pair, 0)) == l->i32;
		pair = of_word ? LLVMGetOperand(pair, 0) : LLVMBuildZExt(l->b, pair, l->i32, "");
	}
	return inline_asm(l, text, "=r,r", ASM_PURE, l->i32, &pair, 1);
}

/* Conversions from fp8 by the sm_89 instruction for two elements. False: o is no such conversion. */
static bool lower_fp8_pairs(struct lower *l, const struct op *o)
{
	const struct value *v = result(o), *x = operand(o, 0);
	enum dtype from = type_dtype(x->type), to = type_dtype(v->type);
	u32 n = num_elems(v);
	if ((o->code != IR_EXTF && o->code != IR_FP_TO_FP) || !dtype_is_fp8(from) ||
	    !l->s->target->has_fp8_conversions || n % 4 || (to != DT_F16 && to != DT_BF16 && to != DT_F32))
		return false;
	LLVMValueRef *at = arena_array(&l->scratch, LLVMValueRef, n);
	for (u32 i = 0; i < n; i += 2) {
		LLVMValueRef pair = fp8_pair_to_f16(l, x, i / 2), two[2];
		if (to == DT_F16) {
			at[i / 2] = pair;
			continue;
		}
		unpack(l, &pair, 1, l->f16, 2, two);
		for (u32 k = 0; k < 2; k++)
			two[k] = LLVMBuildFPExt(l->b, two[k], l->f32, "");
		if (to == DT_BF16)
			at[i / 2] = cvt_f16x2(l, two[0], two[1], to);
		else
			memcpy(at + i, two, sizeof two);
	}
	if (to == DT_F32)
		set_tile(l, v, at, n);
	else
		set_words(l, v, at, n / 2);
	return true;
}

/* Sums, differences and products of bf16, two elements at a time. False: o is no such operation. */
static bool lower_bf16_pairs(struct lower *l, const struct op *o)
{
	const struct value *v = result(o);
	u32 n = num_elems(v);
	if (!is_bf16_multiply_add(l, o) || n % 2)
		return false;
	LLVMValueRef *words = arena_array(&l->scratch, LLVMValueRef, n / 2);
	for (u32 i = 0; i < n / 2; i++) {
		LLVMValueRef x = word_of(l, operand(o, 0), i), y = word_of(l, operand(o, 1), i);
		words[i] = bf16_multiply_add(l, o->code, x, y);
	}
	set_words(l, v, words, n / 2);
	return true;
}

/* sin, cos and tan. All elements share one branch for large arguments (math.c). False: o is another operation. */
static bool lower_trigonometric(struct lower *l, const struct op *o)
{
	const struct value *v = result(o), *x = operand(o, 0);
	u32 n = num_elems(v), distinct = 1;
	enum dtype d = type_dtype(x->type);
	if (!is_trigonometric(o->code) || (d != DT_F32 && d != DT_F64))
		return false;
	LLVMValueRef *at = arena_array(&l->scratch, LLVMValueRef, n), *in = arena_array(&l->scratch, LLVMValueRef, n);
	for (u32 r = 0; r < n; r++) {
		in[r] = elem(l, x, r);
		if (in[r] != in[0])
			distinct = n;
	}
	trigonometric(l, o->code, in, distinct, at);
	for (u32 r = distinct; r < n; r++)
		at[r] = at[0];
	set_tile(l, v, at, n);
	return true;
}

void lower_elementwise(struct lower *l, const struct op *o)
{
	const struct value *v = result(o);
	if (lower_float_pairs(l, o) || lower_fp8_pairs(l, o) || lower_bit_fields(l, o) || lower_small_integers(l, o) ||
	    lower_bf16_pairs(l, o) || lower_trigonometric(l, o))
		return;
	u32 n = num_elems(v), constant = constant_bits(l, v);
	LLVMValueRef *at = arena_array(&l->scratch, LLVMValueRef, n), in[3] = {0};
	for (u32 r = 0; r < n; r++) {
		bool same = r > 0;
		if (r & constant) {
			at[r] = at[r & ~constant];
			continue;
		}
		for (u32 i = 0; i < o->noperands; i++) {
			in[i] = elem(l, operand(o, i), r);
			same = same && in[i] == elem(l, operand(o, i), 0);
		}
		at[r] = same ? at[0] : lower_scalar_op(l, o, in);
	}
	set_tile(l, v, at, n);
}

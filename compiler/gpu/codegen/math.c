/* Math functions: of fp32, built on the approximate instructions for exp2, the reciprocal and log2; exponentials and
 * logarithms of fp64. */
#include "llvm/math_functions.h"
#include "gpu/codegen/nvptx_internal.h"

#include <math.h>

static LLVMValueRef c_f32(struct lower *l, double x)
{
	return LLVMConstReal(l->f32, x);
}

static LLVMValueRef exp2_approx(const struct functions *f, LLVMValueRef x)
{
	return call1(f->target, "llvm.nvvm.ex2.approx.ftz.f", x);
}

static LLVMValueRef rcp_approx(const struct functions *f, LLVMValueRef x)
{
	return call1(f->target, "llvm.nvvm.rcp.approx.ftz.f", x);
}

/* r if x is positive and finite; else the result of lg2.approx for x (NaN or infinity). */
static LLVMValueRef lg2_of_special(const struct functions *f, LLVMValueRef x, LLVMValueRef r)
{
	struct lower *l = f->target;
	LLVMValueRef from_one = LLVMBuildSub(f->b, to_bits(l->b, x), c_i32(l, 1), "");
	LLVMValueRef special = LLVMBuildICmp(f->b, LLVMIntUGE, from_one, c_i32(l, 0x7F7FFFFF), "");
	return LLVMBuildSelect(f->b, special, call1(l, "llvm.nvvm.lg2.approx.ftz.f", x), r, "");
}

static struct functions functions_of(struct lower *l)
{
	return (struct functions){l->b, true, l, exp2_approx, rcp_approx, NULL, lg2_of_special};
}

LLVMValueRef math_f32(struct lower *l, enum opcode code, LLVMValueRef x)
{
	struct functions f = functions_of(l);
	switch (code) {
	case IR_LOG:
	case IR_LOG2: return log_f32(&f, x, code == IR_LOG2);
	case IR_ERF: return erf_f32(&f, x);
	case IR_TANH: return tanh_f32(&f, x);
	default: tl_unreachable("math function");
	}
}

/* x / y of fp64: the reciprocal's approximation by 20 bits, two Newton steps, and the remainder of the quotient. Half
 * the instructions of a division for all operands. */
static LLVMValueRef quotient_f64(const struct functions *f, LLVMValueRef x, LLVMValueRef y)
{
	LLVMValueRef minus = LLVMBuildFNeg(f->b, y, ""), one = real_as(y, 1);
	LLVMValueRef r = call1(f->target, "llvm.nvvm.rcp.approx.ftz.d", y);
	for (u32 i = 0; i < 2; i++)
		r = multiply_add(f, multiply_add(f, minus, r, one), r, r);
	LLVMValueRef q = LLVMBuildFMul(f->b, x, r, "");
	return multiply_add(f, multiply_add(f, minus, q, x), r, q);
}

LLVMValueRef exp_log_f64(struct lower *l, enum opcode code, LLVMValueRef x)
{
	struct functions f = {.b = l->b, .has_fma = true, .target = l, .quotient = quotient_f64};
	switch (code) {
	case IR_EXP:
	case IR_EXP2: return exp_of_parts(&f, split_exp(&f, x, code == IR_EXP2));
	case IR_LOG:
	case IR_LOG2: return log_f64(&f, x, code == IR_LOG2);
	default: tl_unreachable("math function");
	}
}

/* --- sin, cos ------------------------------------------------------------------------------------------------ */

enum { WORDS = 24 };

/* The address of a table of 2/π in binary, in which bytes 0 to 2 hold the 24 zero bits before its first fraction bit.
 * Word i is the 32 bits from byte i on. reduce_large takes three words that are 4 bytes apart; for the largest x it
 * begins at word 15. */
static LLVMValueRef two_over_pi(struct lower *l)
{
	static const u8 bytes[WORDS + 3] = {0x00, 0x00, 0x00, 0xA2, 0xF9, 0x83, 0x6E, 0x4E, 0x44,
					    0x15, 0x29, 0xFC, 0x27, 0x57, 0xD1, 0xF5, 0x34, 0xDD,
					    0xC0, 0xDB, 0x62, 0x95, 0x99, 0x3C, 0x43, 0x90, 0x41};
	enum { CONSTANT_SPACE = 4 };
	static const char name[] = "two_over_pi";
	LLVMValueRef words[WORDS], table = LLVMGetNamedGlobal(l->mod, name);
	if (table)
		return table;
	for (u32 i = 0; i < WORDS; i++)
		words[i] = c_i32(l, (i64)bytes[i] << 24 | bytes[i + 1] << 16 | bytes[i + 2] << 8 | bytes[i + 3]);
	return add_constant(l->mod, LLVMConstArray2(l->i32, words, WORDS), name, LLVMInternalLinkage, CONSTANT_SPACE);
}

/* Reduces any finite x to quadrant and remainder by π/2 (Payne and Hanek). The mantissa is multiplied by 96 bits of
 * 2/π; earlier bits would only add multiples of 4 quadrants. The product is x / (π/2) modulo 4 as a fixed-point number,
 * of which the upper 64 bits are kept. By inline PTX, since with LLVM instructions the kernel takes three times as long
 * to compile. */
static struct reduced reduce_large(struct lower *l, LLVMValueRef x)
{
	static const char text[] = "{\n\t.reg .pred minus; .reg .b32 place, m, w; .reg .b64 at, p; .reg .f64 f;\n\t"
				   "bfe.u32 place, $2, 23, 8;\n\t"
				   "add.s32 place, place, -128;\n\t"
				   "shr.u32 w, place, 3;\n\t"
				   "min.u32 w, w, 15;\n\t" /* keeps unused results of smaller x inside the table */
				   "mad.wide.u32 at, w, 4, $3;\n\t"
				   "and.b32 m, $2, 0x7FFFFF;\n\t"
				   "or.b32 m, m, 0x800000;\n\t"
				   "and.b32 place, place, 7;\n\t"
				   "shl.b32 m, m, place;\n\t"
				   "ld.const.b32 w, [at+32];\n\t"
				   "mul.hi.u32 w, m, w;\n\t"
				   "cvt.u64.u32 p, w;\n\t"
				   "ld.const.b32 w, [at+16];\n\t"
				   "mad.wide.u32 p, m, w, p;\n\t"
				   "ld.const.b32 w, [at];\n\t"
				   "mul.lo.u32 w, m, w;\n\t"
				   "mov.b64 at, {0, w};\n\t"
				   "add.s64 p, p, at;\n\t"
				   "setp.lt.s32 minus, $2, 0;\n\t"
				   "@minus neg.s64 p, p;\n\t"
				   "mov.b64 {m, w}, p;\n\t"
				   "add.s32 w, w, 0x20000000;\n\t"
				   "shr.u32 $1, w, 30;\n\t"
				   "shl.b64 p, p, 2;\n\t"
				   "cvt.rn.f64.s64 f, p;\n\t"
				   "mul.rn.f64 f, f, 0d3BF921FB54442D18;\n\t" /* π/2 · 2^-64 */
				   "cvt.rn.f32.f64 $0, f;\n\t}";
	LLVMTypeRef parts[] = {l->f32, l->i32}, both = LLVMStructTypeInContext(l->ctx, parts, 2, false);
	LLVMValueRef bits = to_bits(l->b, x), args[] = {bits, two_over_pi(l)};
	LLVMValueRef v = inline_asm(l, text, "=&f,=&r,r,l", ASM_PURE, both, args, 2);
	LLVMValueRef first = LLVMBuildExtractValue(l->b, v, 0, "");
	return (struct reduced){first, LLVMBuildExtractValue(l->b, v, 1, "")};
}

/* i1: one of n |x[i]| is greater than MOST_REDUCED, or infinite. */
static LLVMValueRef any_large(struct lower *l, const LLVMValueRef *x, u32 n)
{
	LLVMValueRef *most = arena_array(&l->scratch, LLVMValueRef, n);
	for (u32 i = 0; i < n; i++)
		most[i] = intrinsic1(l->b, "llvm.fabs", x[i]);
	for (; n > 1; n = (n + 1) / 2)
		for (u32 i = 0; i < n / 2; i++) {
			LLVMValueRef two[] = {most[i], most[n - 1 - i]};
			most[i] = intrinsic_on(l->b, "llvm.maxnum", two, 2);
		}
	return LLVMBuildFCmp(l->b, LLVMRealOGT, most[0], c_f32(l, MOST_REDUCED), "");
}

/* Reduces n arguments of sin or cos. One branch serves all large arguments (reduce_large), which are rare. */
static void reduce_all(struct lower *l, const struct functions *f, const LLVMValueRef *x, u32 n, struct reduced *out)
{
	LLVMBuilderRef b = l->b;
	struct reduced *large = arena_array(&l->scratch, struct reduced, n);
	for (u32 i = 0; i < n; i++)
		out[i] = reduce_f32(f, x[i]);
	LLVMValueRef any = any_large(l, x, n);
	struct guarded g = begin_if(b, any);
	for (u32 i = 0; i < n; i++) {
		struct reduced all = reduce_large(l, x[i]);
		LLVMValueRef size = intrinsic1(l->b, "llvm.fabs", x[i]);
		LLVMValueRef finite = LLVMBuildFCmp(b, LLVMRealOLT, size, c_f32(l, (double)INFINITY), "");
		LLVMValueRef is =
			LLVMBuildAnd(b, finite, LLVMBuildFCmp(b, LLVMRealOGT, size, c_f32(l, MOST_REDUCED), ""), "");
		large[i].r = LLVMBuildSelect(b, is, all.r, out[i].r, ""); /* NaN if x is infinite */
		large[i].quadrant = LLVMBuildSelect(b, is, all.quadrant, out[i].quadrant, "");
	}
	end_if(b, &g);
	for (u32 i = 0; i < n; i++) {
		out[i].r = either(b, &g, out[i].r, large[i].r);
		out[i].quadrant = either(b, &g, out[i].quadrant, large[i].quadrant);
	}
}

void sin_cos_f32(struct lower *l, bool cosine, const LLVMValueRef *x, u32 n, LLVMValueRef *out)
{
	struct functions f = functions_of(l);
	struct reduced *reduced = arena_array(&l->scratch, struct reduced, n);
	reduce_all(l, &f, x, n, reduced);
	for (u32 i = 0; i < n; i++)
		out[i] = sin_cos_of_reduced(&f, cosine, reduced[i]);
}

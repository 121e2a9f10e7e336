/* Math functions of fp32, built on the approximate instructions for exp2, the reciprocal and log2, and of fp64. */
#include "llvm/math_functions.h"
#include "gpu/codegen/nvptx_internal.h"

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

/* 1 / y of fp64: an approximation by 20 bits and two Newton steps. */
static LLVMValueRef reciprocal_f64(const struct functions *f, LLVMValueRef y)
{
	LLVMValueRef minus = LLVMBuildFNeg(f->b, y, ""), one = real_as(y, 1);
	LLVMValueRef r = call1(f->target, "llvm.nvvm.rcp.approx.ftz.d", y);
	for (u32 i = 0; i < 2; i++)
		r = multiply_add(f, multiply_add(f, minus, r, one), r, r);
	return r;
}

/* x / y of fp64, with the remainder of the approximate quotient. Half the instructions of a division for all operands.
 */
static LLVMValueRef quotient_f64(const struct functions *f, LLVMValueRef x, LLVMValueRef y)
{
	LLVMValueRef minus = LLVMBuildFNeg(f->b, y, ""), r = reciprocal_f64(f, y), q = LLVMBuildFMul(f->b, x, r, "");
	return multiply_add(f, multiply_add(f, minus, q, x), r, q);
}

LLVMValueRef math_f64(struct lower *l, enum opcode code, LLVMValueRef x)
{
	struct functions f = {.b = l->b, .has_fma = true, .target = l, .quotient = quotient_f64};
	switch (code) {
	case IR_EXP:
	case IR_EXP2: return exp_of_parts(&f, split_exp(&f, x, code == IR_EXP2));
	case IR_LOG:
	case IR_LOG2: return log_f64(&f, x, code == IR_LOG2);
	case IR_ERF: return erf_f64(&f, x);
	case IR_TANH: return tanh_f64(&f, x);
	default: tl_unreachable("math function");
	}
}

/* --- fmod ---------------------------------------------------------------------------------------------------- */

static LLVMValueRef choose(struct lower *l, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y)
{
	return LLVMBuildSelect(l->b, c, x, y, "");
}

static LLVMValueRef library_fmod(struct lower *l, LLVMValueRef x, LLVMValueRef y)
{
	LLVMValueRef args[] = {x, y};
	return intrinsic(l, LLVMTypeOf(x) == l->f32 ? "_Z4fmodff" : "_Z4fmoddd", LLVMTypeOf(x), args, 2);
}

static LLVMValueRef scaled(struct lower *l, LLVMValueRef x, double by)
{
	return LLVMBuildFMul(l->b, x, real_as(x, by), "");
}

static LLVMValueRef is_below(struct lower *l, LLVMValueRef x, double limit)
{
	return LLVMBuildFCmp(l->b, LLVMRealOLT, intrinsic1(l->b, "llvm.fabs", x), real_as(x, limit), "");
}

/* fmod for all operands by two calls of libclc's functions, all steps of which are exact. The function of fp32 takes
 * subnormal y for 0: x is first reduced to less than 2^64 y. */
static LLVMValueRef fmod_f32(struct lower *l, LLVMValueRef x, LLVMValueRef y)
{
	LLVMValueRef small = is_below(l, y, 0x1p-126), by = choose(l, small, scaled(l, y, 0x1p64), y);
	LLVMValueRef rest = library_fmod(l, x, by);
	rest = library_fmod(l, choose(l, small, scaled(l, rest, 0x1p64), rest), by);
	return choose(l, small, scaled(l, rest, 0x1p-64), rest);
}

/* The function of fp64 multiplies y by powers of 2 until the product is about as large as x. For large x the product
 * may become infinite. So an x of at least 2^900 is first reduced to less than y (to less than 2^512 y if y < 1), with
 * both operands scaled by 2^-64. */
static LLVMValueRef fmod_f64(struct lower *l, LLVMValueRef x, LLVMValueRef y)
{
	LLVMValueRef fits = is_below(l, x, 0x1p900), small = is_below(l, y, 1);
	LLVMValueRef by = choose(l, small, scaled(l, y, 0x1p512), y);
	LLVMValueRef of = choose(l, fits, real_as(x, 0), scaled(l, x, 0x1p-64));
	by = choose(l, fits, real_as(x, 1), scaled(l, by, 0x1p-64));
	LLVMValueRef rest = scaled(l, library_fmod(l, of, by), 0x1p64);
	return library_fmod(l, choose(l, fits, x, rest), y);
}

/* If |x / y| is less than limit, its approximation q by an integer is off by less than 1, and |x| - q |y|, which is at
 * least -|y|, is exact for |x| >= |y|. A branch computes the rest, also if the reciprocal of y is 0 or infinite. */
LLVMValueRef fmod_float(struct lower *l, LLVMValueRef x, LLVMValueRef y)
{
	struct functions f = functions_of(l);
	LLVMBuilderRef b = l->b;
	bool f32 = LLVMTypeOf(x) == l->f32;
	double limit = f32 ? 0x1p22 : 0x1p51;
	LLVMValueRef size = intrinsic1(b, "llvm.fabs", x), by = intrinsic1(b, "llvm.fabs", y);
	LLVMValueRef inverse = f32 ? rcp_approx(&f, by) : reciprocal_f64(&f, by);
	LLVMValueRef rounder = real_as(x, 3 * limit), minus = LLVMBuildFNeg(b, by, "");
	LLVMValueRef sum = multiply_add(&f, size, inverse, rounder), q = LLVMBuildFSub(b, sum, rounder, "");
	LLVMValueRef r = multiply_add(&f, q, minus, size), up = LLVMBuildFAdd(b, r, by, "");
	r = choose(l, LLVMBuildFCmp(b, LLVMRealOLT, r, real_as(x, 0), ""), up, r);
	r = choose(l, LLVMBuildFCmp(b, LLVMRealOLT, size, by, ""), size, r);
	r = intrinsic_on(b, "llvm.copysign", (LLVMValueRef[]){r, x}, 2);
	LLVMValueRef usual = LLVMBuildFCmp(b, LLVMRealOLT, sum, real_as(x, 4 * limit), "");
	usual = LLVMBuildAnd(b, usual, LLVMBuildFCmp(b, LLVMRealOLT, intrinsic1(b, "llvm.fabs", r), by, ""), "");
	struct guarded g = begin_if(b, LLVMBuildNot(b, usual, ""));
	LLVMValueRef rare = f32 ? fmod_f32(l, x, y) : fmod_f64(l, x, y);
	end_if(b, &g);
	return either(b, &g, r, rare);
}

/* --- sin, cos, tan ------------------------------------------------------------------------------------------------ */

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

/* i1: |x| is greater than MOST_REDUCED, or MOST_REDUCED_F64. */
static LLVMValueRef is_large(struct lower *l, LLVMValueRef x)
{
	double most = LLVMTypeOf(x) == l->f32 ? MOST_REDUCED : MOST_REDUCED_F64;
	return LLVMBuildFCmp(l->b, LLVMRealOGT, intrinsic1(l->b, "llvm.fabs", x), real_as(x, most), "");
}

/* sin, cos or tan of a large x. libclc's functions of fp64 look up 2/π by the exponent, and the exponent of infinity is
 * beyond their table. */
static LLVMValueRef trigonometric_of_large(struct lower *l, const struct functions *f, enum trigonometric which,
					   LLVMValueRef x)
{
	LLVMValueRef nan = LLVMBuildFSub(l->b, x, x, ""), zero = real_as(x, 0), r;
	LLVMValueRef finite = LLVMBuildFCmp(l->b, LLVMRealORD, nan, nan, "");
	if (LLVMTypeOf(x) == l->f32)
		r = trigonometric_of_reduced(f, which, reduce_large(l, x));
	else
		r = call1(l, which == COSINE ? "_Z3cosd" : "_Z3sind", LLVMBuildSelect(l->b, finite, x, zero, ""));
	if (which == TANGENT && LLVMTypeOf(x) != l->f32)
		r = LLVMBuildFDiv(l->b, r, call1(l, "_Z3cosd", LLVMBuildSelect(l->b, finite, x, zero, "")), "");
	return LLVMBuildSelect(l->b, finite, r, nan, "");
}

void trigonometric(struct lower *l, enum opcode code, const LLVMValueRef *x, u32 n, LLVMValueRef *out)
{
	enum trigonometric which = code == IR_SIN ? SINE : code == IR_COS ? COSINE : TANGENT;
	struct functions f = functions_of(l);
	LLVMValueRef *large = arena_array(&l->scratch, LLVMValueRef, n), any = NULL;
	for (u32 i = 0; i < n; i++) {
		out[i] = trigonometric_of_reduced(&f, which, reduce_angle(&f, x[i]));
		large[i] = is_large(l, x[i]);
		any = any ? LLVMBuildOr(l->b, any, large[i], "") : large[i];
	}
	/* one branch for all elements: large arguments are rare */
	struct guarded g = begin_if(l->b, any);
	for (u32 i = 0; i < n; i++)
		large[i] = LLVMBuildSelect(l->b, large[i], trigonometric_of_large(l, &f, which, x[i]), out[i], "");
	end_if(l->b, &g);
	for (u32 i = 0; i < n; i++)
		out[i] = either(l->b, &g, out[i], large[i]);
}

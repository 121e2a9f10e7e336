/* fp32 functions that the hardware has no accurate instruction for, as straight-line code.
 *
 * The coefficients are minimax polynomials, by linear programming over Chebyshev nodes in the error of the result,
 * rounded to fp32 one after another from the lowest power up, each time with the others fitted anew. The errors named
 * here are the largest over all arguments, the operations rounded as on the GPU and ex2.approx and rcp.approx to
 * nearest. */
#include "lower/internal.h"

#include <math.h>

/* --- pieces -------------------------------------------------------------------------------------------------- */

static LLVMValueRef c_f32(struct lower *l, double x)
{
	return LLVMConstReal(l->f32, x);
}

static LLVMValueRef fma32(struct lower *l, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
	LLVMValueRef args[] = {x, y, z};
	return intrinsic(l, "llvm.fma.f32", l->f32, args, 3);
}

static LLVMValueRef polynomial_n(struct lower *l, LLVMValueRef x, const float *c, u32 n)
{
	LLVMValueRef r = c_f32(l, (double)c[n - 1]);
	for (u32 i = n - 1; i--;)
		r = fma32(l, r, x, c_f32(l, (double)c[i]));
	return r;
}

/* Of x; the coefficient of x^0 comes first. */
#define polynomial(l, x, ...)                                                                                          \
	polynomial_n(l, x, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

static LLVMValueRef square(struct lower *l, LLVMValueRef x)
{
	return LLVMBuildFMul(l->b, x, x, "");
}

/* r, which is not negative, with the sign of x. */
static LLVMValueRef with_sign_of(struct lower *l, LLVMValueRef x, LLVMValueRef r)
{
	LLVMValueRef sign = LLVMBuildAnd(l->b, to_bits(l, x), c_i32(l, 0x80000000), "");
	return from_bits(l, LLVMBuildOr(l->b, to_bits(l, r), sign, ""), l->f32);
}

/* --- log, log2 ----------------------------------------------------------------------------------------------- */

/* x = 2^e (1 + f), 1 + f from sqrt(1/2) to sqrt(2), so that e = ±1 cancels least. log: 0.94 ulp, log2: 0.97 ulp. */
static LLVMValueRef logarithm(struct lower *l, LLVMValueRef x, bool base2)
{
	LLVMBuilderRef b = l->b;
	LLVMValueRef tiny = LLVMBuildFCmp(b, LLVMRealOLT, x, c_f32(l, 0x1p-126), "");
	x = LLVMBuildSelect(b, tiny, LLVMBuildFMul(b, x, c_f32(l, 0x1p23), ""), x, "");
	LLVMValueRef bits = to_bits(l, x), less = LLVMBuildSub(b, bits, c_i32(l, 0x3F3504F3), "");
	LLVMValueRef power = LLVMBuildAnd(b, less, c_i32(l, 0xFF800000), "");
	LLVMValueRef f = LLVMBuildFAdd(b, from_bits(l, LLVMBuildSub(b, bits, power, ""), l->f32), c_f32(l, -1), "");
	LLVMValueRef scaled = LLVMBuildSelect(b, tiny, c_f32(l, -23), c_f32(l, 0), ""), r;
	LLVMValueRef e = fma32(l, LLVMBuildSIToFP(b, power, l->f32, ""), c_f32(l, 0x1p-23), scaled);
	if (base2) {
		r = polynomial(l, f, 0x1.49e45ap-26f, -0x1.71547p-1f, 0x1.ec7096p-2f, -0x1.715bp-2f, 0x1.277ec8p-2f,
			       -0x1.eaa0fep-3f, 0x1.a2dc74p-3f, -0x1.8816fap-3f, 0x1.7eb968p-3f, -0x1.c1e66ap-4f);
		r = fma32(l, f, c_f32(l, 0x1.715476p0), LLVMBuildFMul(b, r, f, ""));
		r = LLVMBuildFAdd(b, e, r, "");
	} else {
		r = polynomial(l, f, -0x1.fffff8p-2f, 0x1.55555p-2f, -0x1.000438p-2f, 0x1.99a41cp-3f, -0x1.5423e8p-3f,
			       0x1.226c84p-3f, -0x1.0f5208p-3f, 0x1.0875p-3f, -0x1.38138ep-4f);
		r = fma32(l, LLVMBuildFMul(b, r, f, ""), f, f);
		r = fma32(l, e, c_f32(l, 0x1.62e43p-1), r);
	}
	/* of what is not positive and finite the instruction knows the result */
	LLVMValueRef special =
		LLVMBuildICmp(b, LLVMIntUGE, LLVMBuildSub(b, bits, c_i32(l, 1), ""), c_i32(l, 0x7F7FFFFF), "");
	return LLVMBuildSelect(b, special, call1(l, "llvm.nvvm.lg2.approx.ftz.f", x), r, "");
}

/* --- erf, tanh ----------------------------------------------------------------------------------------------- */

/* Both are odd: x + x p(x²) near 0. NaN goes that way too. */
static LLVMValueRef near_or_far(struct lower *l, LLVMValueRef x, LLVMValueRef size, double limit, LLVMValueRef near,
				LLVMValueRef far)
{
	LLVMValueRef is_far = LLVMBuildFCmp(l->b, LLVMRealOGE, size, c_f32(l, limit), "");
	return with_sign_of(l, x, LLVMBuildSelect(l->b, is_far, far, near, ""));
}

/* Else 1 - erfc(|x|), whose logarithm is nearly a parabola; the polynomial goes to -inf. 1.22 ulp. */
static LLVMValueRef error_function(struct lower *l, LLVMValueRef x)
{
	LLVMValueRef size = call1(l, "llvm.fabs.f32", x);
	LLVMValueRef p = polynomial(l, square(l, x), 0x1.06eba8p-3f, -0x1.812734p-2f, 0x1.ce2aa6p-4f, -0x1.b7cdep-6f,
				    0x1.52ac24p-8f, -0x1.9a3dep-11f, 0x1.2f80b4p-14f);
	LLVMValueRef q = polynomial(l, size, -0x1.56fe76p-8f, -0x1.9b8e2p0f, -0x1.e660ap-1f, -0x1.fd12c6p-4f,
				    0x1.4b494ap-6f, -0x1.906f78p-10f);
	LLVMValueRef far = LLVMBuildFSub(l->b, c_f32(l, 1), call1(l, "llvm.nvvm.ex2.approx.ftz.f", q), "");
	return near_or_far(l, x, size, (double)1.1f, fma32(l, p, size, size), far);
}

/* Else 1 - 2 / (exp(2|x|) + 1). 1.37 ulp. */
static LLVMValueRef tangent(struct lower *l, LLVMValueRef x)
{
	LLVMValueRef size = call1(l, "llvm.fabs.f32", x), s = square(l, x);
	LLVMValueRef p = polynomial(l, s, -0x1.555504p-2f, 0x1.11017ap-3f, -0x1.b81626p-5f, 0x1.567e7ep-6f,
				    -0x1.c19618p-8f, 0x1.55d62ap-10f);
	LLVMValueRef power =
		call1(l, "llvm.nvvm.ex2.approx.ftz.f", LLVMBuildFMul(l->b, size, c_f32(l, 0x1.715476p1), ""));
	LLVMValueRef inverse = call1(l, "llvm.nvvm.rcp.approx.ftz.f", LLVMBuildFAdd(l->b, power, c_f32(l, 1), ""));
	LLVMValueRef near = fma32(l, p, LLVMBuildFMul(l->b, s, size, ""), size);
	return near_or_far(l, x, size, (double)0.9f, near, fma32(l, inverse, c_f32(l, -2), c_f32(l, 1)));
}

LLVMValueRef math_f32(struct lower *l, enum opcode code, LLVMValueRef x)
{
	switch (code) {
	case IR_LOG:
	case IR_LOG2: return logarithm(l, x, code == IR_LOG2);
	case IR_ERF: return error_function(l, x);
	case IR_TANH: return tangent(l, x);
	default: tl_unreachable("math function");
	}
}

/* --- sin, cos ------------------------------------------------------------------------------------------------ */

/* x = k π/2 + r, |r| at most a little more than π/4; the two lowest bits of `quadrant` are those of k. */
struct reduced { LLVMValueRef r, quadrant; };

/* Up to here x - k π/2 is exact to fp32 with π/2 in three parts. */
#define MOST 0x1p17

static struct reduced reduce_usual(struct lower *l, LLVMValueRef x)
{
	/* a number so large that its last place is 1 */
	LLVMValueRef rounder = c_f32(l, 0x1.8p23), sum = fma32(l, x, c_f32(l, 0x1.45f306p-1), rounder);
	LLVMValueRef k = LLVMBuildFSub(l->b, sum, rounder, "");
	/* all of one sign, so that -0 stays */
	LLVMValueRef r = fma32(l, k, c_f32(l, -0x1.921fb4p0), x);
	r = fma32(l, k, c_f32(l, -0x1.4442dp-24), r);
	return (struct reduced){fma32(l, k, c_f32(l, -0x1.84698ap-48), r), to_bits(l, sum)};
}

enum { WORDS = 24 };

/* 2/π in binary, after 23 zeros and its own 0: 32 bits from each byte on. A product takes three of them, 4 bytes apart;
 * those of the largest x begin at word 15. */
static LLVMValueRef two_over_pi(struct lower *l)
{
	static const u8 bytes[WORDS + 3] = {0x00, 0x00, 0x00, 0xA2, 0xF9, 0x83, 0x6E, 0x4E, 0x44,
					    0x15, 0x29, 0xFC, 0x27, 0x57, 0xD1, 0xF5, 0x34, 0xDD,
					    0xC0, 0xDB, 0x62, 0x95, 0x99, 0x3C, 0x43, 0x90, 0x41};
	static const char name[] = "two_over_pi";
	LLVMValueRef words[WORDS], table = LLVMGetNamedGlobal(l->mod, name);
	if (table)
		return table;
	for (u32 i = 0; i < WORDS; i++)
		words[i] = c_i32(l, (i64)bytes[i] << 24 | bytes[i + 1] << 16 | bytes[i + 2] << 8 | bytes[i + 3]);
	enum { CONSTANT_SPACE = 4 };
	table = LLVMAddGlobalInAddressSpace(l->mod, LLVMArrayType2(l->i32, WORDS), name, CONSTANT_SPACE);
	LLVMSetInitializer(table, LLVMConstArray2(l->i32, words, WORDS));
	LLVMSetGlobalConstant(table, true);
	LLVMSetLinkage(table, LLVMInternalLinkage);
	return table;
}

/* The same of any finite x: its mantissa times the 96 bits of 2/π that begin where products stop being multiples of 4
 * is x / (π/2) modulo 4 as a fixed-point number, of which the upper 64 bits are kept. Inline PTX, since as instructions
 * of its own LLVM takes three times as long over the kernel. */
static struct reduced reduce_large(struct lower *l, LLVMValueRef x)
{
	static const char text[] = "{\n\t.reg .pred minus; .reg .b32 place, m, w; .reg .b64 at, p; .reg .f64 f;\n\t"
				   "bfe.u32 place, $2, 23, 8;\n\t"
				   "add.s32 place, place, -128;\n\t"
				   "shr.u32 w, place, 3;\n\t"
				   "min.u32 w, w, 15;\n\t" /* x that is not large stays inside the table too */
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
	LLVMValueRef args[] = {to_bits(l, x), two_over_pi(l)};
	LLVMValueRef v = inline_asm(l, text, "=&f,=&r,r,l", ASM_PURE, both, args, 2);
	return (struct reduced){LLVMBuildExtractValue(l->b, v, 0, ""), LLVMBuildExtractValue(l->b, v, 1, "")};
}

/* Is some |x| too large, infinite included? */
static LLVMValueRef any_large(struct lower *l, const LLVMValueRef *x, u32 n)
{
	LLVMValueRef *most = arena_array(&l->scratch, LLVMValueRef, n);
	for (u32 i = 0; i < n; i++)
		most[i] = call1(l, "llvm.fabs.f32", x[i]);
	for (; n > 1; n = (n + 1) / 2)
		for (u32 i = 0; i < n / 2; i++) {
			LLVMValueRef two[] = {most[i], most[n - 1 - i]};
			most[i] = intrinsic(l, "llvm.maxnum.f32", l->f32, two, 2);
		}
	return LLVMBuildFCmp(l->b, LLVMRealOGT, most[0], c_f32(l, MOST), "");
}

/* One branch for all elements: large ones are rare. */
static void reduce_all(struct lower *l, const LLVMValueRef *x, u32 n, struct reduced *out)
{
	LLVMBuilderRef b = l->b;
	struct reduced *large = arena_array(&l->scratch, struct reduced, n);
	for (u32 i = 0; i < n; i++)
		out[i] = reduce_usual(l, x[i]);
	LLVMValueRef any = any_large(l, x, n);
	LLVMBasicBlockRef from[] = {LLVMGetInsertBlock(b), NULL};
	struct guarded g = begin_if(l, any);
	from[1] = LLVMGetInsertBlock(b);
	for (u32 i = 0; i < n; i++) {
		struct reduced all = reduce_large(l, x[i]);
		LLVMValueRef size = call1(l, "llvm.fabs.f32", x[i]);
		LLVMValueRef finite = LLVMBuildFCmp(b, LLVMRealOLT, size, c_f32(l, (double)INFINITY), "");
		LLVMValueRef is = LLVMBuildAnd(b, finite, LLVMBuildFCmp(b, LLVMRealOGT, size, c_f32(l, MOST), ""), "");
		large[i].r = LLVMBuildSelect(b, is, all.r, out[i].r, ""); /* NaN of infinity */
		large[i].quadrant = LLVMBuildSelect(b, is, all.quadrant, out[i].quadrant, "");
	}
	end_if(l, g);
	for (u32 i = 0; i < n; i++) {
		out[i].r = either(l, from, out[i].r, large[i].r);
		out[i].quadrant = either(l, from, out[i].quadrant, large[i].quadrant);
	}
}

/* 1.55 ulp, near zeros too. */
void sin_cos_f32(struct lower *l, bool cosine, const LLVMValueRef *x, u32 n, LLVMValueRef *out)
{
	LLVMBuilderRef b = l->b;
	struct reduced *reduced = arena_array(&l->scratch, struct reduced, n);
	reduce_all(l, x, n, reduced);
	for (u32 i = 0; i < n; i++) {
		LLVMValueRef r = reduced[i].r, quadrant = reduced[i].quadrant, s = square(l, r), one = c_i32(l, 1);
		/* + 0: a product that is -0 would, times the negative polynomial, turn r = -0 into 0 */
		LLVMValueRef cubed = fma32(l, s, r, c_f32(l, 0));
		LLVMValueRef odd =
			fma32(l, polynomial(l, s, -0x1.555544p-3f, 0x1.1106c2p-7f, -0x1.9919cep-13f), cubed, r);
		LLVMValueRef even = fma32(l, polynomial(l, s, -0.5f, 0x1.55554ap-5f, -0x1.6c0c0ep-10f, 0x1.99db8ap-16f),
					  s, c_f32(l, 1));
		if (cosine)
			quadrant = LLVMBuildAdd(b, quadrant, one, "");
		LLVMValueRef turned = LLVMBuildICmp(b, LLVMIntNE, LLVMBuildAnd(b, quadrant, one, ""), c_i32(l, 0), "");
		LLVMValueRef sign =
			LLVMBuildAnd(b, LLVMBuildShl(b, quadrant, c_i32(l, 30), ""), c_i32(l, 0x80000000), "");
		out[i] = from_bits(l, LLVMBuildXor(b, to_bits(l, LLVMBuildSelect(b, turned, even, odd, "")), sign, ""),
				   l->f32);
	}
}

/* exp and exp2 of fp32 and fp64, log and log2 of fp64. The coefficients belong to minimax polynomials of the error of
 * the result (Remez), rounded. */
#include "llvm/math_functions.h"

#include <math.h>

struct format {
	u32 mantissa;   /* bits of mantissa */
	double rounder; /* 1.5 · 2^mantissa: a number added to it is rounded to an integer, in its low bits */
	u64 one;        /* the bits of 1 */
	/* [0]: for exp, [1]: for exp2. The result is 0 below `least`, infinite above `most`. */
	double least[2], most[2];
	double ln2[2]; /* log(2) as a sum of two numbers; the product of the first with an exponent n is exact */
	/* polynomials p of exp(r) = 1 + r + r² p(r), |r| <= log(2)/2, and exp2(r) = 1 + r p(r), |r| <= 1/2 */
	u32 degree[2];
	double coefficients[2][11];
};

static const struct format single = {
	.mantissa = 23,
	.rounder = 0x1.8p23,
	.one = 0x3F800000,
	.least = {-104, -151},
	.most = {89, 129},
	.ln2 = {0x1.62e4p-1, 0x1.7f7d1cp-20},
	.degree = {4, 5},
	.coefficients = {{0x1.fffffcp-2, 0x1.555488p-3, 0x1.555842p-5, 0x1.1240f0p-7, 0x1.6ae9e6p-10},
			 {0x1.62e432p-1, 0x1.ebfbe6p-3, 0x1.c6ada8p-5, 0x1.3b21cap-7, 0x1.5fbe7ap-10, 0x1.4bedc8p-13}},
};

static const struct format wide = {
	.mantissa = 52,
	.rounder = 0x1.8p52,
	.one = 0x3FF0000000000000,
	.least = {-746, -1076},
	.most = {710, 1025},
	.ln2 = {0x1.62e42ffp-1, -0x1.718432a1b0e26p-35},
	.degree = {9, 10},
	.coefficients = {{0x1.000000000000ap-1, 0x1.55555555554f1p-3, 0x1.55555555507a6p-5, 0x1.111111112a382p-7,
			  0x1.6c16c184617a0p-10, 0x1.a01a011c02b2ap-13, 0x1.a019996514c86p-16, 0x1.71df4738bfd31p-19,
			  0x1.28ae1a0838df0p-22, 0x1.ad46fa5bdbc71p-26},
			 {0x1.62e42fefa39f3p-1, 0x1.ebfbdff82c598p-3, 0x1.c6b08d7048f31p-5, 0x1.3b2ab6fba1ddap-7,
			  0x1.5d87fe7bb7f60p-10, 0x1.4309130972703p-13, 0x1.ffcbee5ec6f57p-17, 0x1.62bfd469ce26ap-20,
			  0x1.b540fc75441e2p-24, 0x1.e60663ccd7384p-28, 0x1.c13348dc552f7p-32}},
};

static bool is_single(LLVMValueRef x)
{
	return elem_of(LLVMTypeOf(x)) == LLVMFloatTypeInContext(LLVMGetTypeContext(LLVMTypeOf(x)));
}

/* Clamps x to `least` … `most`; NaN is unchanged. */
static LLVMValueRef clamp(const struct functions *f, LLVMValueRef x, double least, double most)
{
	LLVMValueRef lo = real_as(x, least), hi = real_as(x, most);
	x = LLVMBuildSelect(f->b, LLVMBuildFCmp(f->b, LLVMRealOGT, lo, x, ""), lo, x, "");
	return LLVMBuildSelect(f->b, LLVMBuildFCmp(f->b, LLVMRealOLT, hi, x, ""), hi, x, "");
}

static struct exp_parts split(const struct functions *f, const struct format *t, LLVMValueRef x, bool base2)
{
	LLVMValueRef rounder = real_as(x, t->rounder);
	LLVMValueRef sum = base2 ? LLVMBuildFAdd(f->b, x, rounder, "")
				 : multiply_add(f, x, real_as(x, 0x1.71547652b82fep0), rounder);
	LLVMValueRef n = LLVMBuildFSub(f->b, sum, rounder, "");
	if (base2)
		return (struct exp_parts){sum, n, LLVMBuildFSub(f->b, x, n, "")};
	LLVMValueRef r = multiply_add(f, n, real_as(x, -t->ln2[0]), x);
	return (struct exp_parts){sum, n, multiply_add(f, n, real_as(x, -t->ln2[1]), r)};
}

static LLVMValueRef power_of_rest(const struct functions *f, const struct format *t, LLVMValueRef r, bool base2)
{
	LLVMValueRef p = polynomial_of_degree(f, r, t->coefficients[base2], t->degree[base2]), one = real_as(r, 1);
	if (base2)
		return multiply_add(f, p, r, one);
	return LLVMBuildFAdd(f->b, multiply_add(f, LLVMBuildFMul(f->b, r, r, ""), p, r), one, "");
}

struct exp_parts split_exp(const struct functions *f, LLVMValueRef x, bool base2)
{
	const struct format *t = is_single(x) ? &single : &wide;
	struct exp_parts s = split(f, t, clamp(f, x, t->least[base2], t->most[base2]), base2);
	s.r = power_of_rest(f, t, s.r, base2);
	return s;
}

struct exp_parts split_expm1_f64(const struct functions *f, LLVMValueRef x)
{
	static const double series[] = {0.5,
					0x1.5555555555555p-3,
					0x1.5555555555575p-5,
					0x1.111111111111ap-7,
					0x1.6c16c16c0c470p-10,
					0x1.a01a01a0146b6p-13,
					0x1.a01a01d034c98p-16,
					0x1.71de3a6f129d2p-19,
					0x1.27e48ecd55923p-22,
					0x1.ae63e29d878b4p-26,
					0x1.1fdb7bf854d2dp-29,
					0x1.62221f51a5d99p-33};
	struct exp_parts s = split(f, &wide, x, false);
	LLVMValueRef near = LLVMBuildFCmp(f->b, LLVMRealOLT, intrinsic1(f->b, "llvm.fabs", x), real_as(x, 0.41), "");
	LLVMValueRef zero = real_as(x, 0), r = LLVMBuildSelect(f->b, near, x, s.r, "");
	LLVMValueRef p = polynomial_of_degree(f, r, series, ARRAY_LEN(series) - 1);
	s.sum = LLVMBuildSelect(f->b, near, real_as(x, wide.rounder), s.sum, "");
	s.n = LLVMBuildSelect(f->b, near, zero, s.n, "");
	s.r = multiply_add(f, LLVMBuildFMul(f->b, p, r, ""), r, r);
	return s;
}

struct exp_parts split_normal_exp_f64(const struct functions *f, LLVMValueRef x)
{
	struct exp_parts s = split(f, &wide, x, false);
	s.r = power_of_rest(f, &wide, s.r, false);
	return s;
}

LLVMValueRef exp_of_parts(const struct functions *f, struct exp_parts s)
{
	LLVMBuilderRef b = f->b;
	LLVMTypeRef elem = elem_of(LLVMTypeOf(s.r));
	const struct format *t = is_single(s.r) ? &single : &wide;
	/* Multiplies by 2^n in two steps, 2^(n / 2) and the rest, so that only the second result may be subnormal or
	 * infinite. The bits of s.sum above those of n are shifted out. */
	LLVMValueRef n = to_bits(b, s.sum), bias = int_as(n, t->one >> t->mantissa), r = s.r;
	LLVMValueRef half = lshr(b, n, 1), halves[] = {half, LLVMBuildSub(b, n, half, "")};
	for (u32 i = 0; i < 2; i++) {
		LLVMValueRef power = shl(b, LLVMBuildAdd(b, halves[i], bias, ""), (int)t->mantissa);
		r = LLVMBuildFMul(b, r, from_bits(b, power, elem), "");
	}
	return r;
}

struct exp_parts split_normal_exp2(const struct functions *f, LLVMValueRef x)
{
	struct exp_parts s = split(f, &single, clamp(f, x, -126, 127), true);
	s.r = power_of_rest(f, &single, s.r, true);
	return s;
}

LLVMValueRef normal_exp2_of_parts(const struct functions *f, struct exp_parts s)
{
	LLVMValueRef n = to_bits(f->b, s.sum), up = int_as(n, 23), one = int_as(n, single.one);
	LLVMValueRef scale = LLVMBuildAdd(f->b, LLVMBuildShl(f->b, n, up, ""), one, "");
	return LLVMBuildFMul(f->b, s.r, from_bits(f->b, scale, elem_of(LLVMTypeOf(s.r))), "");
}

LLVMValueRef log_or_special(const struct functions *f, LLVMValueRef x, LLVMValueRef r)
{
	LLVMBuilderRef b = f->b;
	LLVMValueRef zero = real_as(x, 0), infinite = real_as(x, (double)INFINITY);
	LLVMValueRef is_zero = LLVMBuildFCmp(b, LLVMRealOEQ, x, zero, "");
	LLVMValueRef other = LLVMBuildSelect(b, is_zero, real_as(x, -(double)INFINITY), real_as(x, (double)NAN), "");
	r = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOGT, x, zero, ""), r, other, "");
	return LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOEQ, x, infinite, ""), infinite, r, "");
}

/* x = 2^e (1 + y), 1 + y from sqrt(1/2) to sqrt(2). With s = y / (2 + y), log(1 + y) = 2 atanh(s) = 2s + s R(s²)
 *   = y - (y²/2 - s (y²/2 + R)),
 * in which y is exact and the rest is small (as in FreeBSD's e_log.c). */
LLVMValueRef log_f64(const struct functions *f, LLVMValueRef x, bool base2)
{
	static const double series[] = {0x1.5555555555593p-1, 0x1.999999997f9f8p-2, 0x1.249249422a478p-2,
					0x1.c71c51d7ccab4p-3, 0x1.746649b02f3fcp-3, 0x1.39a0957837f52p-3,
					0x1.2f11804379677p-3};
	LLVMBuilderRef b = f->b;
	LLVMValueRef tiny = LLVMBuildFCmp(b, LLVMRealOLT, x, real_as(x, 0x1p-1022), "");
	x = LLVMBuildSelect(b, tiny, LLVMBuildFMul(b, x, real_as(x, 0x1p54), ""), x, "");
	LLVMValueRef bits = to_bits(f->b, x), less = LLVMBuildSub(b, bits, int_as(bits, 0x3FE6A09E667F3BCD), "");
	LLVMValueRef power = LLVMBuildAnd(b, less, int_as(bits, 0xFFF0000000000000), "");
	LLVMValueRef y = from_bits(f->b, LLVMBuildSub(b, bits, power, ""), elem_of(LLVMTypeOf(x)));
	y = LLVMBuildFAdd(b, y, real_as(x, -1), "");
	/* adds 2048 to the exponent, a 12-bit signed number, as the low bits of 2^52 */
	LLVMValueRef e = LLVMBuildLShr(b, less, int_as(bits, 52), "");
	e = LLVMBuildXor(b, e, int_as(bits, 0x4330000000000000 | 2048), "");
	LLVMValueRef offset =
		LLVMBuildSelect(b, tiny, real_as(x, -(0x1p52 + 2048 + 54)), real_as(x, -(0x1p52 + 2048)), "");
	e = LLVMBuildFAdd(b, from_bits(f->b, e, elem_of(LLVMTypeOf(x))), offset, "");
	LLVMValueRef s = f->quotient(f, y, LLVMBuildFAdd(b, y, real_as(x, 2), ""));
	LLVMValueRef z = LLVMBuildFMul(b, s, s, ""),
		     half = LLVMBuildFMul(b, real_as(x, 0.5), LLVMBuildFMul(b, y, y, ""), "");
	LLVMValueRef rest = LLVMBuildFMul(b, z, polynomial_of_degree(f, z, series, ARRAY_LEN(series) - 1), ""), r;
	rest = LLVMBuildFAdd(b, half, rest, "");
	if (base2) {
		LLVMValueRef hi = LLVMBuildFSub(b, y, half, ""), log2e = real_as(x, 0x1.71547652b82fep0);
		LLVMValueRef lost = LLVMBuildFSub(b, LLVMBuildFSub(b, y, hi, ""), half, "");
		r = LLVMBuildFMul(b, multiply_add(f, s, rest, lost), log2e, "");
		r = multiply_add(f, hi, real_as(x, 0x1.777d0ffda0d24p-56), r);
		r = LLVMBuildFAdd(b, e, multiply_add(f, hi, log2e, r), "");
	} else {
		r = multiply_add(f, s, rest, LLVMBuildFMul(b, e, real_as(x, wide.ln2[1]), ""));
		r = LLVMBuildFSub(b, LLVMBuildFSub(b, half, r, ""), y, "");
		r = multiply_add(f, e, real_as(x, wide.ln2[0]), LLVMBuildFNeg(b, r, ""));
	}
	return log_or_special(f, x, r);
}

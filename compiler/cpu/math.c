/* Math functions of fp32 and fp64.
 *
 * Functions are straight-line code. Only sin and cos of fp64, and of fp32 without fused multiply-adds, are calls of the
 * C library's scalar functions or, for vectors of fp32, of its vector functions (libmvec). */
#include "ir/scalar.h"
#include "cpu/vector_ops.h"

#include <math.h>

/* --- calls ------------------------------------------------------------------------------------------------------- */

/* Calls function `name` from t to t of the C library or libmvec, which has no side effects. */
static LLVMValueRef call_library(struct cpu_codegen *h, const char *name, LLVMTypeRef t, LLVMValueRef x)
{
	static const char *const attributes[] = {"memory", "nounwind",   "willreturn",  "nosync",
						 "nofree", "nocallback", "speculatable"};
	LLVMTypeRef type = LLVMFunctionType(t, &t, 1, false);
	LLVMValueRef f = LLVMGetNamedFunction(h->mod, name);
	if (!f) {
		f = LLVMAddFunction(h->mod, name, type);
		for (u32 i = 0; i < ARRAY_LEN(attributes); i++)
			add_attribute(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attributes[i], 0);
	}
	return LLVMBuildCall2(h->b, type, f, &x, 1, "");
}

/* Calls the libmvec function of `name` for parts of x. It has functions for vectors of 16, 32 (AVX2) and 64 bytes
 * (AVX-512): _ZGVbN4v_expf and so on. */
static LLVMValueRef call_vectors(struct cpu_codegen *h, const char *name, LLVMValueRef x)
{
	u32 bytes = type_bits(LLVMTypeOf(x)) / 8, lanes = LLVMGetVectorSize(LLVMTypeOf(x));
	u32 width = MAX(16u, MIN(MIN((u32)h->s->target->vector_bytes, 64u), lanes * bytes)) / bytes, n = 0;
	char isa = width * bytes == 64 ? 'e' : width * bytes == 32 ? 'd' : 'b';
	LLVMTypeRef t = LLVMVectorType(elem_of(LLVMTypeOf(x)), width);
	LLVMValueRef *parts = arena_array(&h->scratch, LLVMValueRef, MAX(lanes / width, 1u));
	name = arena_printf(&h->scratch, "_ZGV%cN%uv_%s%s", isa, width, name, bytes == 4 ? "f" : "");
	for (u32 at = 0; at < lanes; at += width)
		parts[n++] = call_library(h, name, t, cpu_lanes(h, x, at, width));
	return width > lanes ? cpu_lanes(h, parts[0], 0, lanes) : cpu_concat(h, parts, n);
}

/* Calls the scalar function for each lane. */
static LLVMValueRef call_for_each(struct cpu_codegen *h, const char *name, LLVMValueRef x)
{
	LLVMTypeRef elem = elem_of(LLVMTypeOf(x));
	u32 lanes = lanes_of(x);
	LLVMValueRef r = x;
	name = elem == h->f32 ? arena_printf(&h->scratch, "%sf", name) : name;
	for (u32 k = 0; k < lanes; k++) {
		LLVMValueRef lane = call_library(h, name, elem, cpu_lane(h, x, k));
		r = LLVMBuildInsertElement(h->b, r, lane, cpu_i32(h, k), "");
	}
	return lanes ? r : call_library(h, name, elem, x);
}

/* Scalar functions on arm64, where only glibc 2.38 and later has libmvec. */
static LLVMValueRef call(struct cpu_codegen *h, const char *name, LLVMValueRef x)
{
	return lanes_of(x) && h->s->target->level != CPU_NEON ? call_vectors(h, name, x) : call_for_each(h, name, x);
}

/* --- inline code ------------------------------------------------------------------------------------------------ */

static bool has_scalef(const struct cpu_codegen *h, LLVMValueRef x)
{
	return h->s->target->has_avx512 && elem_of(LLVMTypeOf(x)) == h->f32 && lanes_of(x) >= 4;
}

/* x · 2^n, rounded once, by vscalefps. */
static LLVMValueRef scalef(struct cpu_codegen *h, LLVMValueRef x, LLVMValueRef n)
{
	u32 lanes = lanes_of(x), width = MIN(lanes, 16u);
	LLVMValueRef parts[16], all = LLVMConstInt(LLVMIntTypeInContext(h->ctx, MAX(width, 8u)), ~0ull, false);
	const char *name = arena_printf(&h->scratch, "llvm.x86.avx512.mask.scalef.ps.%u", width * 32);
	tl_assert(lanes / width <= ARRAY_LEN(parts));
	for (u32 i = 0; i < lanes / width; i++) {
		LLVMValueRef y = cpu_lanes(h, x, i * width, width), by = cpu_lanes(h, n, i * width, width);
		LLVMValueRef args[] = {y, by, y, all, cpu_i32(h, 4 /* rounding mode of the control register */)};
		parts[i] = call_intrinsic(h->b, name, NULL, 0, args, width == 16 ? 5 : 4);
	}
	return cpu_concat(h, parts, lanes / width);
}

static LLVMValueRef exp_or_exp2(struct cpu_codegen *h, const struct functions *f, LLVMValueRef x, bool base2)
{
	struct exp_parts s = split_exp(f, x, base2);
	return has_scalef(h, x) ? scalef(h, s.r, s.n) : exp_of_parts(f, s);
}

static LLVMValueRef exp2_for_functions(const struct functions *f, LLVMValueRef x)
{
	struct exp_parts s = split_normal_exp2(f, x);
	return has_scalef(f->target, x) ? scalef(f->target, s.r, s.n) : normal_exp2_of_parts(f, s);
}

static LLVMValueRef inverse(const struct functions *f, LLVMValueRef x)
{
	return LLVMBuildFDiv(f->b, real_as(x, 1), x, "");
}

static LLVMValueRef quotient(const struct functions *f, LLVMValueRef x, LLVMValueRef y)
{
	return LLVMBuildFDiv(f->b, x, y, "");
}

/* sin, cos or tan of fp32. Vectors with an argument above MOST_REDUCED, too large for reduce_angle, branch to the C
 * library. */
static LLVMValueRef trigonometric(struct cpu_codegen *h, const struct functions *f, enum trigonometric which,
				  LLVMValueRef x)
{
	LLVMValueRef size = intrinsic1(h->b, "llvm.fabs", x);
	LLVMValueRef large = LLVMBuildFCmp(h->b, LLVMRealOGT, size, real_as(x, MOST_REDUCED), "");
	LLVMValueRef usual = trigonometric_of_reduced(f, which, reduce_angle(f, x));
	struct guarded rare = begin_if(h->b, cpu_any_lane(h, large, false));
	LLVMValueRef r = intrinsic1(h->b, which == COSINE ? "llvm.cos" : "llvm.sin", x);
	if (which == TANGENT)
		r = LLVMBuildFDiv(h->b, r, intrinsic1(h->b, "llvm.cos", x), "");
	end_if(h->b, &rare);
	return either(h->b, &rare, usual, r);
}

/* x mod y, truncated. fp32 is computed in fp64: a quotient less than 2^28 truncates to the correct integer q, since it
 * is an integer or at a relative distance of at least 2^-52 from one, and x - q y is exact. For larger quotients the C
 * library computes the result. */
LLVMValueRef cpu_fmod(struct cpu_codegen *h, LLVMValueRef x, LLVMValueRef y)
{
	LLVMBuilderRef b = h->b;
	if (elem_of(LLVMTypeOf(x)) == h->f64)
		return LLVMBuildFRem(b, x, y, "");
	LLVMTypeRef t = type_as(x, h->f64);
	LLVMValueRef wide = LLVMBuildFPExt(b, x, t, ""), by = LLVMBuildFPExt(b, y, t, "");
	LLVMValueRef q = LLVMBuildFDiv(b, wide, by, ""), size = intrinsic1(h->b, "llvm.fabs", q);
	LLVMValueRef whole = intrinsic1(h->b, "llvm.trunc", q);
	LLVMValueRef left = LLVMBuildFSub(b, wide, LLVMBuildFMul(b, whole, by, ""), "");
	/* if |x / y| < 1 the result is x; also for an infinite y, where x - 0 · y would be NaN */
	LLVMValueRef none = LLVMBuildFCmp(b, LLVMRealOLT, size, real_as(q, 1), "");
	left = LLVMBuildFPTrunc(b, LLVMBuildSelect(b, none, wide, left, ""), LLVMTypeOf(x), "");
	left = intrinsic_on(b, "llvm.copysign", (LLVMValueRef[]){left, x}, 2);
	LLVMValueRef large = LLVMBuildNot(b, LLVMBuildFCmp(b, LLVMRealOLT, size, real_as(q, 0x1p28), ""), "");
	struct guarded rare = begin_if(b, cpu_any_lane(h, large, false));
	LLVMValueRef r = LLVMBuildFRem(b, x, y, "");
	end_if(b, &rare);
	return either(b, &rare, left, r);
}

/* --- erf by tables ----------------------------------------------------------------------------------------------- */

/* The table has PIECES polynomials of degree DEGREE. */
enum { PIECES = 32, DEGREE = 4, APART = 8 /* polynomials for an interval of length 1 */, LANES = 16 };

/* Computes the table: c[i][k] is coefficient i of a polynomial in x - k/8 that approximates erf(x)/x for |x - k/8| <=
 * 1/16. It interpolates erf(x)/x at Chebyshev nodes. */
static void erf_pieces(double c[DEGREE + 1][PIECES])
{
	enum { N = DEGREE + 1 };
	const double pi = 3.14159265358979323846;
	for (int k = 0; k < PIECES; k++) {
		double at[N], d[N], p[N] = {0};
		for (int i = 0; i < N; i++) {
			at[i] = cos(pi * (2 * i + 1) / (2 * N)) / (2 * APART);
			double x = fabs((double)k / APART + at[i]);
			d[i] = erf(x) / x;
		}
		for (int j = 1; j < N; j++) /* divided differences */
			for (int i = N - 1; i >= j; i--)
				d[i] = (d[i] - d[i - 1]) / (at[i] - at[i - j]);
		for (int i = N - 1; i >= 0; i--) { /* p = p · (t - at[i]) + d[i] */
			for (int j = N - 1; j > 0; j--)
				p[j] = p[j - 1] - at[i] * p[j];
			p[0] = d[i] - at[i] * p[0];
		}
		for (int i = 0; i < N; i++)
			c[i][k] = p[i];
	}
}

/* A vector of of[piece] for each lane's `piece`. */
static LLVMValueRef chosen(struct cpu_codegen *h, const double *of, LLVMValueRef piece)
{
	LLVMValueRef table[PIECES];
	for (int k = 0; k < PIECES; k++)
		table[k] = LLVMConstReal(h->f32, of[k]);
	LLVMValueRef args[] = {LLVMConstVector(table, LANES), piece, LLVMConstVector(table + LANES, LANES)};
	return call_intrinsic(h->b, "llvm.x86.avx512.vpermi2var.ps.512", NULL, 0, args, 3);
}

/* erf of 16 lanes of fp32. One AVX-512 permutation of two registers selects a coefficient for all lanes. Fewer
 * instructions than erf_f32. */
static LLVMValueRef erf_by_table(struct cpu_codegen *h, const struct functions *f, LLVMValueRef x)
{
	double c[DEGREE + 1][PIECES], first[PIECES];
	LLVMValueRef rounder = real_as(x, 0x1.8p23), size = intrinsic1(h->b, "llvm.fabs", x);
	LLVMValueRef sum = multiply_add(f, size, real_as(x, APART), rounder), piece = to_bits(h->b, sum);
	LLVMValueRef t = multiply_add(f, LLVMBuildFSub(h->b, sum, rounder, ""), real_as(x, -1.0 / APART), size);
	erf_pieces(c);
	for (int k = 0; k < PIECES; k++) { /* the constant coefficient as a sum of two fp32 numbers */
		first[k] = (float)c[0][k];
		c[0][k] -= first[k];
	}
	LLVMValueRef p = chosen(h, c[DEGREE], piece);
	for (int i = DEGREE - 1; i >= 0; i--)
		p = multiply_add(f, p, t, chosen(h, c[i], piece));
	p = LLVMBuildFMul(h->b, size, p, "");
	p = multiply_add(f, size, chosen(h, first, piece), p);
	/* beyond the last piece, erf rounds to 1 in fp32 */
	LLVMValueRef far = LLVMBuildFCmp(h->b, LLVMRealOGE, size, real_as(x, (PIECES - 0.5) / APART), "");
	LLVMValueRef signs[] = {LLVMBuildSelect(h->b, far, real_as(x, 1), p, ""), x};
	return intrinsic_on(h->b, "llvm.copysign", signs, 2);
}

static LLVMValueRef erf_of_vector(struct cpu_codegen *h, const struct functions *f, LLVMValueRef x)
{
	u32 lanes = lanes_of(x), n = lanes / LANES;
	if (!h->s->target->has_avx512 || !n || lanes % LANES)
		return erf_f32(f, x);
	LLVMValueRef *parts = arena_array(&h->scratch, LLVMValueRef, n);
	for (u32 i = 0; i < n; i++)
		parts[i] = erf_by_table(h, f, cpu_lanes(h, x, i * LANES, LANES));
	return cpu_concat(h, parts, n);
}

/* Function `code` of x as inline code without library calls; NULL if there is none. */
static LLVMValueRef inline_function(struct cpu_codegen *h, enum opcode code, LLVMValueRef x)
{
	bool has_fma = h->s->target->has_fma, f32 = elem_of(LLVMTypeOf(x)) == h->f32;
	struct functions f = {h->b, has_fma, h, exp2_for_functions, inverse, quotient, log_or_special};
	switch (code) {
	case IR_EXP:
	case IR_EXP2: return exp_or_exp2(h, &f, x, code == IR_EXP2);
	case IR_LOG:
	case IR_LOG2: return f32 ? log_f32(&f, x, code == IR_LOG2) : log_f64(&f, x, code == IR_LOG2);
	case IR_SIN: return f32 && has_fma ? trigonometric(h, &f, SINE, x) : NULL;
	case IR_COS: return f32 && has_fma ? trigonometric(h, &f, COSINE, x) : NULL;
	case IR_TAN: return f32 && has_fma ? trigonometric(h, &f, TANGENT, x) : NULL;
	case IR_ERF: return f32 ? erf_of_vector(h, &f, x) : erf_f64(&f, x);
	case IR_TANH: return f32 ? tanh_f32(&f, x) : tanh_f64(&f, x);
	default: tl_unreachable("math function");
	}
}

/* --- all functions ----------------------------------------------------------------------------------------------- */

LLVMValueRef cpu_math(struct cpu_codegen *h, enum opcode code, LLVMValueRef x)
{
	code = accurate_operation(code);
	const char *name = code == IR_COS ? "cos" : "sin";
	switch (code) {
	case IR_SQRT:
	case IR_PRECISE_SQRT: return intrinsic1(h->b, "llvm.sqrt", x);
	case IR_RSQRT: return LLVMBuildFDiv(h->b, real_as(x, 1), intrinsic1(h->b, "llvm.sqrt", x), "");
	default: break;
	}
	LLVMValueRef r = inline_function(h, code, x);
	if (!r && code == IR_TAN) {
		LLVMValueRef sine = cpu_math(h, IR_SIN, x);
		return LLVMBuildFDiv(h->b, sine, cpu_math(h, IR_COS, x), "");
	}
	/* fp64: the errors of the C library's sin and cos are rarely above half an ulp, those of libmvec up to four
	 * ulp */
	if (!r && elem_of(LLVMTypeOf(x)) == h->f64)
		return call_for_each(h, name, x);
	return r ? r : call(h, name, x);
}

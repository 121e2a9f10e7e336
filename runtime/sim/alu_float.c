/* f32 and f64 arithmetic. Rounding to nearest is that of the CPU; other roundings set the CPU's rounding mode.
 * Approximations are more precise than on the hardware. */
#include "runtime/sim/alu.h"

#include <fenv.h>

#include "ir/scalar_math.h"

static inline double get_f64(u64 bits)
{
	return fp_f64_bits(bits);
}
/* The bits of r, the result of an operation on x, or on x, y and z. A NaN result is the operand that is a NaN, made
 * quiet, or the canonical NaN if no operand is one. Of several NaN operands the hardware's choice is taken. */
static inline u64 put_f64(double r, u64 x)
{
	return r == r ? fp_bits_f64(r) : is_nan_f64(x) ? x | QUIET_F64 : CANONICAL_F64;
}
static inline u64 put_f64_2(double r, u64 x, u64 y)
{
	return put_f64(r, is_nan_f64(y) ? y : x);
}
static inline u64 put_f64_3(double r, u64 x, u64 y, u64 z)
{
	return put_f64(r, is_nan_f64(y) ? y : is_nan_f64(z) ? z : x);
}

/* --- rounding to nearest ------------------------------------------------------------------------------------------ */

#define SUM(x, y) ((x) + (y))
#define SUM_OF_NEGATIVE(x, y) ((x) - (y))
#define PRODUCT(x, y) ((x) * (y))
#define QUOTIENT(x, y) ((x) / (y))
#define INVERSE(x) (1 / (x))

#define F32_1(name, f, F) RUN1(name, u32, u32, put_f32(f(get_f32(x, F)), F))
#define F32_2(name, f, F) RUN2(name, u32, u32, put_f32(f(get_f32(x, F), get_f32(y, F)), F))
#define F32_3(name, f, F) RUN3(name, u32, u32, u32, put_f32(f(get_f32(x, F), get_f32(y, F), get_f32(z, F)), F))
#define FOUR(X, name, f) X(name, f, 0) X(name##_ftz, f, F_FTZ) X(name##_sat, f, F_SAT)                                 \
	X(name##_ftz_sat, f, F_FTZ | F_SAT)
#define TWO(X, name, f) X(name, f, 0) X(name##_ftz, f, F_FTZ)

FOUR(F32_2, add_f32, SUM)
FOUR(F32_2, sub_f32, SUM_OF_NEGATIVE)
F32_2(mul_f32, PRODUCT, 0)
F32_2(mul_f32_sat, PRODUCT, F_SAT)
F32_3(fused_f32, fma_f32, 0)
F32_3(fused_f32_sat, fma_f32, F_SAT)
F32_2(div_f32, QUOTIENT, 0)
#define FLUSHED(name, f, F) RUN2(name, u32, u32, put_f32_of(f((double)get_f32(x, F_FTZ), (double)get_f32(y, F_FTZ)), F))
FLUSHED(mul_f32_ftz, PRODUCT, F_FTZ)
FLUSHED(mul_f32_ftz_sat, PRODUCT, F_FTZ | F_SAT)
/* the double quotient of two f32 lies on the correct side of every f32 and of every midpoint */
FLUSHED(div_f32_ftz, QUOTIENT, F_FTZ)
#define FUSED_FLUSHED(name, F)                                                                                         \
	RUN3(name, u32, u32, u32, put_f32_of(odd_fma(get_f32(x, F_FTZ), get_f32(y, F_FTZ), get_f32(z, F_FTZ)), F))
FUSED_FLUSHED(fused_f32_ftz, F_FTZ)
FUSED_FLUSHED(fused_f32_ftz_sat, F_FTZ | F_SAT)
TWO(F32_1, rcp_f32, INVERSE)
TWO(F32_1, square_root_f32, __builtin_sqrtf)
TWO(F32_2, min_f32, minnum_f32)
TWO(F32_2, max_f32, maxnum_f32)
TWO(F32_2, min_nan_f32, minimum_f32)
TWO(F32_2, max_nan_f32, maximum_f32)
TWO(F32_1, neg_f32, -)
TWO(F32_1, abs_f32, __builtin_fabsf)

RUN2(add_f64, u64, u64, put_f64_2(get_f64(x) + get_f64(y), x, y))
RUN2(sub_f64, u64, u64, put_f64_2(get_f64(x) - get_f64(y), x, y))
RUN2(mul_f64, u64, u64, put_f64_2(get_f64(x) * get_f64(y), x, y))
RUN2(div_f64, u64, u64, put_f64_2(get_f64(x) / get_f64(y), y, x))
RUN1(rcp_f64, u64, u64, put_f64(1 / get_f64(x), x))
RUN1(square_root_f64, u64, u64, put_f64(__builtin_sqrt(get_f64(x)), x))
RUN2(min_f64, u64, u64, put_f64_2(minnum_f64(get_f64(x), get_f64(y)), x, y))
RUN2(max_f64, u64, u64, put_f64_2(maxnum_f64(get_f64(x), get_f64(y)), x, y))
RUN1(neg_f64, u64, u64, put_f64(-get_f64(x), x))
RUN1(abs_f64, u64, u64, put_f64(fabs(get_f64(x)), x))

static void fused_f64(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 64);
	SOURCE(b, 2, 64);
	SOURCE(c, 3, 64);
	EACH_LANE(l, mask)
	set_reg(w, &i->ops[0], l, put_f64_3(fma(get_f64(a[l]), get_f64(b[l]), get_f64(c[l])), a[l], b[l], c[l]));
}

#ifdef __x86_64__
/* Fused multiply-add for CPUs with the FMA instruction. */
__attribute__((target("avx2,fma"))) static void fused_f32_native(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	SOURCE(b, 2, 32);
	SOURCE(c, 3, 32);
	RESULT(d, 0);
	ALL(l)
	d[l] = put_f32(__builtin_fmaf(get_f32(a[l], 0), get_f32(b[l], 0), get_f32(c[l], 0)), 0);
	FINISH(d, 0);
}
static bool has_fma(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
#define fused_f32_native fused_f32
static bool has_fma(void)
{
	return false;
}
#endif

/* min and max of the magnitudes, with the xor of the signs. */
static void minmax_xorsign(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	SOURCE(b, 2, 32);
	RESULT(d, 0);
	u32 flags = (u32)i->mods & 0xFF;
	bool max = i->mods >> 16 == A_MAX, nan = flags & F_NAN;
	for (u32 l = 0; l < LANES; l++) {
		float x = fabsf(get_f32(a[l], flags)), y = fabsf(get_f32(b[l], flags));
		float r = max ? (nan ? maximum_f32(x, y) : maxnum_f32(x, y))
			      : (nan ? minimum_f32(x, y) : minnum_f32(x, y));
		d[l] = r != r ? CANONICAL_F32 : put_f32(r, flags) | ((u32)(a[l] ^ b[l]) & 0x80000000);
	}
	FINISH(d, 0);
}

/* --- other roundings
 * ------------------------------------------------------------------------------------------------ */

static const int rounding_modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

/* volatile keeps each operation between the changes of the rounding mode. */
#define COMPUTE(name, T, FMA, SQRT)                                                                                    \
	static T name(enum arith op, T vx, T vy, T vz)                                                                 \
	{                                                                                                              \
		volatile T x = vx, y = vy, z = vz, r;                                                                  \
		switch (op) {                                                                                          \
		case A_ADD: r = x + y; break;                                                                          \
		case A_SUB: r = x - y; break;                                                                          \
		case A_MUL: r = x * y; break;                                                                          \
		case A_FMA: r = FMA(x, y, z); break;                                                                   \
		case A_DIV: r = x / y; break;                                                                          \
		case A_RCP: r = 1 / x; break;                                                                          \
		case A_SQRT: r = SQRT(x); break;                                                                       \
		default: tl_unreachable("rounded operation");                                                          \
		}                                                                                                      \
		return r;                                                                                              \
	}
COMPUTE(compute_f32, float, fmaf, sqrtf)
COMPUTE(compute_f64, double, fma, sqrt)

/* True if r, the smallest normal number, was rounded up from a value that is below it even when rounded with the
 * precision of a normal number. */
static bool tiny_before(enum arith op, float x, float y, float z, float r)
{
	if (fabsf(r) != 0x1p-126f || (op != A_MUL && op != A_FMA && op != A_DIV && op != A_RCP))
		return false;
	double exact = op == A_MUL   ? (double)x * y
		       : op == A_DIV ? (double)x / y
		       : op == A_RCP ? 1 / (double)x
				     : odd_fma(x, y, z);
	return fabs(exact) <= 0x1p-126 - 0x1p-150;
}

static void directed_f32(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	SOURCE(b, MIN(2, i->nops - 1), 32);
	SOURCE(c, MIN(3, i->nops - 1), 32);
	float r[LANES];
	u32 flags = (u32)i->mods & 0xFF;
	enum arith op = (enum arith)(i->mods >> 16);
	int before = fegetround();
	fesetround(rounding_modes[i->mods >> 8 & 3]);
	EACH_LANE(l, mask)
	r[l] = compute_f32(op, get_f32(a[l], flags), get_f32(b[l], flags), get_f32(c[l], flags));
	fesetround(before);
	EACH_LANE(l, mask)
	{
		if (flags & F_FTZ &&
		    tiny_before(op, get_f32(a[l], flags), get_f32(b[l], flags), get_f32(c[l], flags), r[l]))
			r[l] = copysignf(0, r[l]);
		set_reg(w, &i->ops[0], l, put_f32(r[l], flags));
	}
}

static void directed_f64(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 64);
	SOURCE(b, MIN(2, i->nops - 1), 64);
	SOURCE(c, MIN(3, i->nops - 1), 64);
	double r[LANES];
	enum arith op = (enum arith)(i->mods >> 16);
	int before = fegetround();
	fesetround(rounding_modes[i->mods >> 8 & 3]);
	EACH_LANE(l, mask)
	r[l] = compute_f64(op, get_f64(a[l]), get_f64(b[l]), get_f64(c[l]));
	fesetround(before);
	EACH_LANE(l, mask)
	set_reg(w, &i->ops[0], l,
		op == A_DIV   ? put_f64_2(r[l], b[l], a[l])
		: op == A_FMA ? put_f64_3(r[l], a[l], b[l], c[l])
			      : put_f64_2(r[l], a[l], b[l]));
}

/* --- decoding
 * -------------------------------------------------------------------------------------------------------- */

static u32 num_sources(enum arith op)
{
	return op == A_FMA ? 3 : op == A_NEG || op == A_ABS || op == A_RCP || op == A_SQRT ? 1 : 2;
}

static bool decode_minmax(struct decoder *d, enum arith op, bool wide)
{
	static run_fn *const runs[2][2][2] = {{{min_f32, min_f32_ftz}, {min_nan_f32, min_nan_f32_ftz}},
					      {{max_f32, max_f32_ftz}, {max_nan_f32, max_nan_f32_ftz}}};
	if (wide)
		return alu_run(d, op == A_MAX ? max_f64 : min_f64);
	bool ftz = take(d, "ftz"), nan = take(d, "NaN"), xorsign = take(d, "xorsign");
	if ((nan && !need_sm(d, 80)) || (xorsign && !(need_sm(d, 86) && take(d, "abs"))))
		return false;
	d->i->mods = (ftz ? F_FTZ : 0) | (nan ? F_NAN : 0) | (u64)op << 16;
	return alu_run(d, xorsign ? minmax_xorsign : runs[op == A_MAX][nan][ftz]);
}

bool decode_float_arith(struct decoder *d, enum arith op, enum ptx_type t)
{
	static run_fn *const f32[NUM_ARITH][4] = {
		[A_ADD] = {add_f32, add_f32_ftz, add_f32_sat, add_f32_ftz_sat},
		[A_SUB] = {sub_f32, sub_f32_ftz, sub_f32_sat, sub_f32_ftz_sat},
		[A_MUL] = {mul_f32, mul_f32_ftz, mul_f32_sat, mul_f32_ftz_sat},
		[A_FMA] = {fused_f32, fused_f32_ftz, fused_f32_sat, fused_f32_ftz_sat},
		[A_DIV] = {div_f32, div_f32_ftz},
		[A_RCP] = {rcp_f32, rcp_f32_ftz},
		[A_SQRT] = {square_root_f32, square_root_f32_ftz},
		[A_NEG] = {neg_f32, neg_f32_ftz},
		[A_ABS] = {abs_f32, abs_f32_ftz},
	};
	static run_fn *const f64[NUM_ARITH] = {
		[A_ADD] = add_f64,          [A_SUB] = sub_f64, [A_MUL] = mul_f64,
		[A_FMA] = fused_f64,        [A_DIV] = div_f64, [A_RCP] = rcp_f64,
		[A_SQRT] = square_root_f64, [A_NEG] = neg_f64, [A_ABS] = abs_f64,
	};
	const enum ptx_type types[] = {t, t, t, t};
	bool wide = t == PT_F64;
	if (!alu_operands(d, num_sources(op) + 1, types))
		return false;
	if (op == A_MIN || op == A_MAX)
		return decode_minmax(d, op, wide);
	u64 flags = 0;
	int rounding = 0;
	if (op != A_NEG && op != A_ABS) {
		rounding = take_one_of(d, "rn rz rm rp");
		if (rounding < 0 && op != A_ADD && op != A_SUB && op != A_MUL)
			return decode_fail(d, "'%s' needs a rounding", d->i->opcode);
	}
	if (!wide && take(d, "ftz"))
		flags |= F_FTZ;
	if (!wide && op <= A_FMA && take(d, "sat"))
		flags |= F_SAT;
	d->i->mods = flags | (u64)MAX(rounding, 0) << 8 | (u64)op << 16;
	if (op == A_FMA && !wide && !flags && !rounding && has_fma())
		return alu_run(d, fused_f32_native);
	if (rounding > 0)
		return alu_run(d, wide ? directed_f64 : directed_f32);
	return alu_run(d, wide ? f64[op] : f32[op][flags]);
}

/* --- approximations
 * ------------------------------------------------------------------------------------------------- */

static inline float approx_rsqrt(float x)
{
	return (float)(1 / __builtin_sqrt((double)x));
}
/* The reciprocal of a divisor above 2^126 is flushed to zero. */
static inline float approx_div(float x, float y)
{
	float size = __builtin_fabsf(y);
	return size > 0x1p126f && size < __builtin_inff() ? x * __builtin_copysignf(0, y) : x / y;
}
TWO(F32_2, approx_div_f32, approx_div)
TWO(F32_1, rsqrt_f32, approx_rsqrt)
TWO(F32_1, lg2_f32, log2_f32)
TWO(F32_1, ex2_f32, exp2_f32)

#define RUN_LIBM(name, f)                                                                                              \
	static void name(struct warp *w, const struct instr *i, u32 mask)                                              \
	{                                                                                                              \
		SOURCE(a, 1, 32);                                                                                      \
		u32 flags = (u32)i->mods & 0xFF;                                                                       \
		EACH_LANE(l, mask)                                                                                     \
		set_reg(w, &i->ops[0], l, put_f32((float)f((double)get_f32(a[l], flags)), flags));                     \
	}
RUN_LIBM(sine_f32, sin)
RUN_LIBM(cosine_f32, cos)
RUN_LIBM(tangent_f32, tanh)

/* Approximations that use only the upper word of an f64. */
#define UPPER(x) ((x) & ~(u64)UINT32_MAX)
#define FLUSH_F64(x) ((x)&0x7FF0000000000000 ? (x) : (x)&0x8000000000000000)
static inline u64 put_upper(double r) { return r == r ? UPPER(fp_bits_f64(r)) : (u64)CANONICAL_F32 << 32; }
RUN1(rcp_upper_f64, u64, u64, FLUSH_F64(put_upper(1 / get_f64(FLUSH_F64(UPPER(x))))))
RUN1(rsqrt_upper_f64, u64, u64, put_upper(1 / __builtin_sqrt(get_f64(FLUSH_F64(UPPER(x))))))
RUN1(rsqrt_f64, u64, u64, put_f64(1 / __builtin_sqrt(get_f64(x)), x))

static bool approximation(struct decoder *d, run_fn *run, run_fn *ftz)
{
	bool flush = take(d, "ftz");
	d->i->mods = flush ? F_FTZ : 0;
	return OPERANDS(d, PT_F32, PT_F32) && alu_run(d, flush ? ftz : run);
}

bool decode_div(struct decoder *d)
{
	enum ptx_type t = take_type(d);
	if (is_int(t) && ptx_bits(t) >= 16)
		return decode_int_arith(d, A_DIV, t);
	if (t != PT_F32 && t != PT_F64)
		return false;
	bool full = take(d, "full");
	if (t == PT_F32 && (full || take(d, "approx"))) {
		bool ftz = take(d, "ftz");
		static run_fn *const runs[2][2] = {{approx_div_f32, approx_div_f32_ftz}, {div_f32, div_f32_ftz}};
		return OPERANDS(d, t, t, t) && alu_run(d, runs[full][ftz]);
	}
	return !full && decode_float_arith(d, A_DIV, t);
}

bool decode_rcp(struct decoder *d)
{
	enum ptx_type t = take_type(d);
	if (t != PT_F32 && t != PT_F64)
		return false;
	if (!take(d, "approx"))
		return decode_float_arith(d, A_RCP, t);
	if (t == PT_F32)
		return approximation(d, rcp_f32, rcp_f32_ftz);
	return take(d, "ftz") && OPERANDS(d, t, t) && alu_run(d, rcp_upper_f64);
}

bool decode_sqrt(struct decoder *d)
{
	enum ptx_type t = take_type(d);
	if (t != PT_F32 && t != PT_F64)
		return false;
	if (t == PT_F32 && take(d, "approx"))
		return approximation(d, square_root_f32, square_root_f32_ftz);
	return decode_float_arith(d, A_SQRT, t);
}

bool decode_rsqrt(struct decoder *d)
{
	enum ptx_type t = take_type(d);
	if (!take(d, "approx") || (t != PT_F32 && t != PT_F64))
		return false;
	if (t == PT_F32)
		return approximation(d, rsqrt_f32, rsqrt_f32_ftz);
	bool ftz = take(d, "ftz");
	return OPERANDS(d, t, t) && alu_run(d, ftz ? rsqrt_upper_f64 : rsqrt_f64);
}

static bool approx_f32(struct decoder *d, run_fn *run, run_fn *ftz)
{
	return take(d, "approx") && take_type(d) == PT_F32 && approximation(d, run, ftz);
}

bool decode_sin(struct decoder *d)
{
	return approx_f32(d, sine_f32, sine_f32);
}

bool decode_cos(struct decoder *d)
{
	return approx_f32(d, cosine_f32, cosine_f32);
}

bool decode_lg2(struct decoder *d)
{
	return approx_f32(d, lg2_f32, lg2_f32_ftz);
}

bool decode_ex2(struct decoder *d)
{
	enum ptx_type t = take_type(d);
	if (!take(d, "approx"))
		return false;
	return is_half(t) ? decode_half_function(d, false, t) : t == PT_F32 && approximation(d, ex2_f32, ex2_f32_ftz);
}

bool decode_tanh(struct decoder *d)
{
	enum ptx_type t = take_type(d);
	if (!take(d, "approx"))
		return false;
	return is_half(t) ? decode_half_function(d, true, t)
			  : t == PT_F32 && OPERANDS(d, t, t) && alu_run(d, tangent_f32);
}

/* --- classes and signs
 * ------------------------------------------------------------------------------------------------ */

static void run_testp(struct warp *w, const struct instr *i, u32 mask)
{
	bool wide = i->type[0] == PT_F64;
	SOURCE(a, 1, wide ? 64 : 32);
	RESULT(d, 0);
	u64 sign = wide ? (u64)1 << 63 : (u64)1 << 31, inf = wide ? 0x7FF0000000000000 : 0x7F800000,
	    least = wide ? (u64)1 << 52 : (u64)1 << 23;
	u64 from[] = {0, inf, 0, inf + 1, least, 1};
	u64 to[] = {inf - 1, inf, inf, sign - 1, inf - 1, least - 1};
	u64 lo = from[i->mods], hi = to[i->mods], zero = i->mods == 4; /* zero counts as normal */
	ALL(l)
	{
		u64 size = a[l] & (sign - 1);
		d[l] = ((size >= lo) & (size <= hi)) | (zero & (size == 0));
	}
	FINISH(d, 0);
}

bool decode_testp(struct decoder *d)
{
	int which = take_one_of(d, "finite infinite number notanumber normal subnormal");
	enum ptx_type t = d->i->type[0] = take_type(d);
	d->i->mods = (u64)MAX(which, 0);
	return which >= 0 && (t == PT_F32 || t == PT_F64) && OPERANDS(d, PT_PRED, t) && alu_run(d, run_testp);
}

RUN2(copysign_f32, u32, u32, (x & 0x80000000) | (y & 0x7FFFFFFF))
RUN2(copysign_f64, u64, u64, (x & 0x8000000000000000) | (y & 0x7FFFFFFFFFFFFFFF))

bool decode_copysign(struct decoder *d)
{
	enum ptx_type t = take_type(d);
	return (t == PT_F32 || t == PT_F64) && OPERANDS(d, t, t, t) &&
	       alu_run(d, t == PT_F32 ? copysign_f32 : copysign_f64);
}

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

/* --- values of the forms ----------------------------------------------------------------------------------------- */

#define SUM(x, y) ((x) + (y))
#define DIFFERENCE(x, y) ((x) - (y))
#define PRODUCT(x, y) ((x) * (y))
#define RATIO(x, y) ((x) / (y))
#define INVERSE(x) (1 / (x))

/* Loops for a function f of f32 with the flags F. FLUSHED_2 and FUSED_FLUSHED round an exact result, or one rounded to
 * odd, so that it is flushed by its value before rounding. */
#define F32_1(name, f, F) RUN1(name, u32, u32, put_f32(f(get_f32(x, F)), F))
#define F32_2(name, f, F) RUN2(name, u32, u32, put_f32(f(get_f32(x, F), get_f32(y, F)), F))
#define F32_3(name, f, F) RUN3(name, u32, u32, put_f32(f(get_f32(x, F), get_f32(y, F), get_f32(z, F)), F))
#define FLUSHED_2(name, f, F)                                                                                          \
	RUN2(name, u32, u32, put_f32_of(f((double)get_f32(x, F_FTZ), (double)get_f32(y, F_FTZ)), F))
#define FUSED_FLUSHED(name, f, F)                                                                                      \
	RUN3(name, u32, u32, put_f32_of(odd_fma(get_f32(x, F_FTZ), get_f32(y, F_FTZ), get_f32(z, F_FTZ)), F))

/* Only the active lanes, for slow functions. */
#define LIBM(name, f, F)                                                                                               \
	void ptx_##name(struct warp *w, const struct instr *i, u32 mask)                                               \
	{                                                                                                              \
		SOURCE(a, 1, 32);                                                                                      \
		EACH_LANE(l, mask)                                                                                     \
		set_reg(w, &i->ops[0], l, put_f32((float)f((double)get_f32(a[l], F)), F));                             \
	}
#define ACTIVE3(name, T, value)                                                                                        \
	void ptx_##name(struct warp *w, const struct instr *i, u32 mask)                                               \
	{                                                                                                              \
		SOURCE(a, 1, 8 * sizeof(T));                                                                           \
		SOURCE(b, 2, 8 * sizeof(T));                                                                           \
		SOURCE(c, 3, 8 * sizeof(T));                                                                           \
		EACH_LANE(l, mask)                                                                                     \
		{                                                                                                      \
			T x = a[l], y = b[l], z = c[l];                                                                \
			set_reg(w, &i->ops[0], l, value);                                                              \
		}                                                                                                      \
	}

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

/* Approximations that use only the upper word of an f64. */
#define UPPER(x) ((x) & ~(u64)UINT32_MAX)
#define FLUSH_F64(x) ((x)&0x7FF0000000000000 ? (x) : (x)&0x8000000000000000)
static inline u64 put_upper(double r) { return r == r ? UPPER(fp_bits_f64(r)) : (u64)CANONICAL_F32 << 32; }

#define FLOAT(id, text, operands, sm, LOOP, ...) LOOP(id, __VA_ARGS__)
#include "runtime/sim/forms.def"

/* --- other forms ------------------------------------------------------------------------------------------------- */

/* Fused multiply-add for CPUs with the FMA instruction. */
#ifdef __x86_64__
#define HAS_FMA (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
__attribute__((target("avx2,fma"))) F32_3(fma_native, __builtin_fmaf, 0)
#else
#define HAS_FMA false
F32_3(fma_native, fma_f32, 0)
#endif

bool check_fma_native(struct decoder *d)
{
	(void)d;
	return HAS_FMA;
}

/* min and max of the magnitudes, with the xor of the signs. */
void run_minmax_xorsign(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	SOURCE(b, 2, 32);
	RESULT(d, 0);
	u32 flags = float_flags(i);
	bool max = i->operation == A_MAX, nan = flags & F_NAN;
	for (u32 l = 0; l < LANES; l++) {
		float x = fabsf(get_f32(a[l], flags)), y = fabsf(get_f32(b[l], flags));
		float r = max ? (nan ? maximum_f32(x, y) : maxnum_f32(x, y))
			      : (nan ? minimum_f32(x, y) : minnum_f32(x, y));
		d[l] = r != r ? CANONICAL_F32 : put_f32(r, flags) | ((u32)(a[l] ^ b[l]) & 0x80000000);
	}
	FINISH(d, 0);
}

/* --- other roundings --------------------------------------------------------------------------------------------- */

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

void run_directed_f32(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	SOURCE(b, MIN(2, i->nops - 1), 32);
	SOURCE(c, MIN(3, i->nops - 1), 32);
	float r[LANES];
	u32 flags = float_flags(i);
	enum arith op = (enum arith)i->operation;
	int before = fegetround();
	fesetround(rounding_modes[i->mod[M_RND] - 1]);
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

void run_directed_f64(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 64);
	SOURCE(b, MIN(2, i->nops - 1), 64);
	SOURCE(c, MIN(3, i->nops - 1), 64);
	double r[LANES];
	enum arith op = (enum arith)i->operation;
	int before = fegetround();
	fesetround(rounding_modes[i->mod[M_RND] - 1]);
	EACH_LANE(l, mask)
	r[l] = compute_f64(op, get_f64(a[l]), get_f64(b[l]), get_f64(c[l]));
	fesetround(before);
	EACH_LANE(l, mask)
	set_reg(w, &i->ops[0], l,
		op == A_DIV   ? put_f64_2(r[l], b[l], a[l])
		: op == A_FMA ? put_f64_3(r[l], a[l], b[l], c[l])
			      : put_f64_2(r[l], a[l], b[l]));
}

void run_testp(struct warp *w, const struct instr *i, u32 mask)
{
	u32 class = i->mod[M_CLASS] - 1u;
	bool wide = i->type[0] == PT_F64;
	SOURCE(a, 1, wide ? 64 : 32);
	RESULT(d, 0);
	u64 sign = wide ? (u64)1 << 63 : (u64)1 << 31, inf = wide ? 0x7FF0000000000000 : 0x7F800000,
	    least = wide ? (u64)1 << 52 : (u64)1 << 23;
	u64 from[] = {0, inf, 0, inf + 1, least, 1};
	u64 to[] = {inf - 1, inf, inf, sign - 1, inf - 1, least - 1};
	u64 lo = from[class], hi = to[class], zero = class == 4; /* zero counts as normal */
	ALL(l)
	{
		u64 size = a[l] & (sign - 1);
		d[l] = ((size >= lo) & (size <= hi)) | (zero & (size == 0));
	}
	FINISH(d, 0);
}

/* Helpers of the arithmetic instructions: loops over the lanes of a warp, checks of operands, and f32 and f64 as bits
 * of registers. */
#ifndef TL_SIM_ALU_H
#define TL_SIM_ALU_H

#include <math.h>

#include "support/small_floats.h"
#include "runtime/sim/sim.h"

/* --- loops ------------------------------------------------------------------------------------------------------ */

/* begin: the array to which an instruction writes all lanes. It is the register itself, or `space` if the mask is
 * partial; then finish copies the lanes of the mask. So an operation must be defined for arbitrary bits in the other
 * lanes. */
static inline u64 *begin(struct warp *w, const struct operand *o, u32 mask, u64 space[LANES])
{
	return mask == ALL_LANES && o->kind == O_REG ? reg(w, o) : space;
}
static inline void finish(struct warp *w, const struct operand *o, u32 mask, const u64 *result)
{
	if (o->kind != O_REG || result == reg(w, o))
		return;
	u64 *to = reg(w, o);
	EACH_LANE(l, mask)
	to[l] = result[l];
}

/* Loop over all lanes. Lanes are independent, even if source and destination registers coincide. */
#define ALL(l) _Pragma("omp simd") for (u32 l = 0; l < LANES; l++)

#define SOURCE(v, k, bits)                                                                                             \
	u64 v##_space[LANES];                                                                                          \
	const u64 *v = operand_lanes(w, &i->ops[k], bits, v##_space)
#define RESULT(v, k)                                                                                                   \
	u64 v##_space[LANES];                                                                                          \
	u64 *v = begin(w, &i->ops[k], mask, v##_space)
#define FINISH(v, k) finish(w, &i->ops[k], mask, v)

/* Defines the function of a form: ptx_name computes `value` in all lanes and stores it as a U. `sources` declares the
 * operands of all lanes, `inputs` those of lane l. */
#define RUN(name, U, sources, inputs, value)                                                                           \
	void ptx_##name(struct warp *w, const struct instr *i, u32 mask)                                               \
	{                                                                                                              \
		sources;                                                                                               \
		RESULT(d, 0);                                                                                          \
		ALL(l)                                                                                                 \
		{                                                                                                      \
			inputs;                                                                                        \
			d[l] = (U)(value);                                                                             \
		}                                                                                                      \
		FINISH(d, 0);                                                                                          \
	}
#define WIDTH(T) _Generic((T)0, bool: 1, default: 8 * sizeof(T))
#define SOURCES_1(T) SOURCE(a, 1, WIDTH(T))
#define SOURCES_2(T) SOURCES_1(T); SOURCE(b, 2, WIDTH(T))
#define SOURCES_3(T) SOURCES_2(T); SOURCE(c, 3, WIDTH(T))
#define INPUTS_1(T) T x = (T)a[l]
#define INPUTS_2(T) INPUTS_1(T); T y = (T)b[l]
#define INPUTS_3(T) INPUTS_2(T); T z = (T)c[l]
/* The value is one of operands x, y, z of type T. */
#define RUN1(name, T, U, value) RUN(name, U, SOURCES_1(T), INPUTS_1(T), value)
#define RUN2(name, T, U, value) RUN(name, U, SOURCES_2(T), INPUTS_2(T), value)
#define RUN3(name, T, U, value) RUN(name, U, SOURCES_3(T), INPUTS_3(T), value)

/* --- floating point --------------------------------------------------------------------------------------------- */

enum { F_FTZ = 1, F_SAT = 2, F_NAN = 4, F_XORSIGN = 8, F_RELU = 16, F_SATFINITE = 32 };
static inline u32 float_flags(const struct instr *i)
{
	return (i->mod[M_FTZ] ? F_FTZ : 0) | (i->mod[M_SAT] ? F_SAT : 0) | (i->mod[M_NAN] ? F_NAN : 0) |
	       (i->mod[M_XORSIGN] ? F_XORSIGN : 0) | (i->mod[M_RELU] ? F_RELU : 0) |
	       (i->mod[M_SATFINITE] ? F_SATFINITE : 0);
}

#define CANONICAL_F32 0x7FFFFFFFu
/* Result of an invalid operation. An input NaN keeps its payload and becomes quiet. */
#define CANONICAL_F64 0xFFF8000000000000ull
#define QUIET_F64 0x0008000000000000ull
static inline bool is_nan_f64(u64 b)
{
	return (b & ~((u64)1 << 63)) > 0x7FF0000000000000;
}

static inline u32 flush_f32(u32 b)
{
	return b & 0x7F800000 ? b : b & 0x80000000;
}
static inline float get_f32(u64 bits, u32 flags)
{
	return fp_f32_bits(flags & F_FTZ ? flush_f32((u32)bits) : (u32)bits);
}
static inline double saturated(double x)
{
	x = x > 0 ? x : 0;
	return x < 1 ? x : 1;
}
/* With F_SAT, NaN, -0 and negative numbers become +0. */
static inline u32 put_f32(float r, u32 flags)
{
	r = flags & F_SAT ? (float)saturated(r) : r;
	u32 b = fp_bits_f32(r);
	b = flags & F_FTZ ? flush_f32(b) : b;
	return r != r ? CANONICAL_F32 : b;
}

/* x rounded to odd: a second rounding, to 22 bits or fewer, gives the same result as a single rounding of x. */
static inline float odd_f32(double x)
{
	float f = (float)x;
	double back = f;
	u32 b = fp_bits_f32(f);
	u32 step = __builtin_fabs(back) < __builtin_fabs(x) ? 1 : ~0u;
	bool move = (back < x || back > x) && !(b & 1);
	return fp_f32_bits(move ? b + step : b);
}

/* x·y + z rounded to odd (as fma_f32 in ir/scalar_math.h). */
static inline double odd_fma(float x, float y, float z)
{
	double p = (double)x * y, c = z, s = p + c;
	double t = s - p, error = (p - (s - t)) + (c - t);
	u64 b = fp_bits_f64(s);
	bool inexact = (error < 0) | (error > 0);
	u64 away = (error > 0) == (s > 0) ? 1 : ~0ull; /* s is not 0 if the sum is inexact */
	b += (inexact & !(b & 1)) ? away : 0;
	return fp_f64_bits(b);
}

/* Limits below which a result is flushed: it would round to less than the smallest normal number, with the rounding of
 * normal numbers. */
#define TINY_F32 (0x1p-126 - 0x1p-151)
#define TINY_F16 (0x1p-14f - 0x1p-26f)

/* Rounds x, which is exact or rounded to odd. */
static inline u32 put_f32_of(double x, u32 flags)
{
	u32 b = put_f32((float)x, flags);
	return flags & F_FTZ && __builtin_fabs(x) < TINY_F32 ? b & 0x80000000 : b;
}

/* Operations of rounding modes, and of f16 and bf16 with flags. */
enum arith { A_ADD, A_SUB, A_MUL, A_FMA, A_MIN, A_MAX, A_NEG, A_ABS, A_DIV, A_RCP, A_SQRT };
enum half_function { HALF_EX2, HALF_TANH };
enum tf32_rounding { TF32_NEAREST, TF32_ZERO, TF32_AWAY };

/* f16 and bf16. */
static inline float get_half(u64 bits, bool bf, u32 flags)
{
	u16 h = (u16)bits;
	return bf ? fp_from_bf16(h) : fp_from_f16(flags & F_FTZ && !(h & 0x7C00) ? h & 0x8000 : h);
}

#endif

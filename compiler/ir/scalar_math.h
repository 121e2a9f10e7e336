/* The functions that elementwise.def calls, for float (name_f32) and double (name_f64).
 *
 * The functions are inline, and nearly all of them have no branches and no library calls, so that the interpreter's
 * loops over tiles vectorise. The constant folder calls the same functions, so both give the same bits. exp, exp2, log
 * and log2 of floats are computed in double and rounded once: the error is at most 0.6 ulp, including subnormal
 * results, overflow and special values. fma is exact. The other transcendental functions call the C library. */
#ifndef TLC_IR_SCALAR_MATH_H
#define TLC_IR_SCALAR_MATH_H

#include <math.h>

#include "support/small_floats.h"

#pragma STDC FP_CONTRACT OFF

/* --- small formats ------------------------------------------------------------------------------------------- */

/* The high byte of a binary16 number is an E5M2 number. */
static inline float fp_from_e5m2(u8 b) { return fp_from_f16((u16)(b << 8)); }

/* Scaling by 2^(127 - 7) is exact, and normalises subnormals. */
static inline float fp_from_e4m3(u8 b)
{
	u32 sign = (u32)(b & 0x80) << 24, mag = b & 0x7F;
	float scaled = fp_f32_bits(mag << 20) * 0x1p120f;
	u32 nan = mag == 0x7F ? 0x7FC00000 : 0;
	return fp_f32_bits(sign | fp_bits_f32(scaled) | nan);
}

/* Converts to an fp8 format, to nearest even, saturating. `mant` and `bias` describe the format; `max` is its largest
 * finite number. The method is that of fp_to_f16. */
static inline u8 fp_to_fp8(float f, int mant, int bias, u32 max)
{
	u32 b = fp_bits_f32(f), sign = b >> 24 & 0x80, mag = b & 0x7FFFFFFF;
	int drop = 23 - mant;
	u32 least_normal = (u32)(128 - bias) << 23;
	u32 normal = (mag - ((u32)(127 - bias) << 23) + ((1u << (drop - 1)) - 1) + (mag >> drop & 1)) >> drop;
	/* the power of two with an ulp equal to the smallest subnormal */
	u32 magic = (u32)(127 + 1 - bias - mant + 23) << 23;
	u32 sub = fp_bits_f32(fp_f32_bits(mag) + fp_f32_bits(magic)) - magic;
	u32 r = mag < least_normal ? sub : normal;
	r = mag >= 0x7F800000 || r > max ? max : r;
	return (u8)(mag > 0x7F800000 ? 0x7F : sign | r);
}
static inline u8 fp_to_e4m3(float f) { return fp_to_fp8(f, 3, 7, 0x7E); }
static inline u8 fp_to_e5m2(float f) { return fp_to_fp8(f, 2, 15, 0x7B); }

/* Converts double to float toward zero. The conversion rounds to nearest, so at most one step back is needed. */
static inline float fp_round_toward_zero(double x)
{
	float f = (float)x;
	return __builtin_fabs((double)f) > __builtin_fabs(x) ? fp_f32_bits(fp_bits_f32(f) - 1) : f;
}

/* --- integers ------------------------------------------------------------------------------------------------ */

static inline float from_signed_f32(i64 x) { return (float)x; }
static inline double from_signed_f64(i64 x) { return (double)x; }
static inline float from_unsigned_f32(u64 x) { return (float)x; }
static inline double from_unsigned_f64(u64 x) { return (double)x; }

/* x rounded to 24 bits, to odd: a further rounding to 22 bits or fewer gives the same result as rounding x once. */
static inline float from_unsigned_odd(u64 x)
{
	int drop = x >> 24 ? ilog2(x) - 23 : 0;
	u64 kept = x >> drop, rest = x & ((1ull << drop) - 1);
	return (float)(kept | (rest != 0)) * fp_f32_bits((u32)(127 + drop) << 23);
}
static inline float from_signed_odd(i64 x)
{
	return x < 0 ? -from_unsigned_odd(0 - (u64)x) : from_unsigned_odd((u64)x);
}

/* Converts toward zero, saturating; NaN gives 0: PTX `cvt.rzi`. */
static inline i64 to_signed_f64(double x, u32 bits)
{
	double lim = fp_f64_bits((u64)(1023 + bits - 1) << 52); /* 2^(bits - 1) */
	x = x != x ? 0 : x;
	if (bits <= 32) {
		x = x > lim - 1 ? lim - 1 : x;
		x = x < -lim ? -lim : x;
		return (i32)x;
	}
	return x >= lim ? INT64_MAX : x < -lim ? INT64_MIN : (i64)x;
}
static inline u64 to_unsigned_f64(double x, u32 bits)
{
	double lim = fp_f64_bits((u64)(1023 + bits) << 52); /* 2^bits */
	x = x > 0 ? x : 0;
	if (bits <= 32)
		return (u64)(i64)(x > lim - 1 ? lim - 1 : x);
	return x >= lim ? UINT64_MAX : (u64)x;
}
static inline i64 to_signed_f32(float x, u32 bits) { return to_signed_f64(x, bits); }
static inline u64 to_unsigned_f32(float x, u32 bits) { return to_unsigned_f64(x, bits); }

/* --- minimum and maximum ------------------------------------------------------------------------------------- */

/* Equal numbers have equal bits, except for zeros: for them & gives +0 and | gives -0. */
#define SCALAR_MINMAX(T, suffix, bits_of, from_bits)                                                              \
	static inline T maxnum_##suffix(T a, T b)                                                                 \
	{                                                                                                         \
		T r = a > b ? a : b;                                                                              \
		r = a == b ? from_bits(bits_of(a) & bits_of(b)) : r;                                              \
		return b != b ? a : r;                                                                            \
	}                                                                                                         \
	static inline T minnum_##suffix(T a, T b)                                                                 \
	{                                                                                                         \
		T r = a < b ? a : b;                                                                              \
		r = a == b ? from_bits(bits_of(a) | bits_of(b)) : r;                                              \
		return b != b ? a : r;                                                                            \
	}                                                                                                         \
	static inline T maximum_##suffix(T a, T b)                                                                \
	{                                                                                                         \
		T r = maxnum_##suffix(a, b);                                                                      \
		r = b != b ? b : r;                                                                               \
		return a != a ? a : r;                                                                            \
	}                                                                                                         \
	static inline T minimum_##suffix(T a, T b)                                                                \
	{                                                                                                         \
		T r = minnum_##suffix(a, b);                                                                      \
		r = b != b ? b : r;                                                                               \
		return a != a ? a : r;                                                                            \
	}
SCALAR_MINMAX(float, f32, fp_bits_f32, fp_f32_bits)
SCALAR_MINMAX(double, f64, fp_bits_f64, fp_f64_bits)
#undef SCALAR_MINMAX

/* --- functions ----------------------------------------------------------------------------------------------- */

#define SCALAR_LIBM1(name)                                              \
	static inline float name##_f32(float x) { return name##f(x); }  \
	static inline double name##_f64(double x) { return name(x); }
SCALAR_LIBM1(sqrt)
SCALAR_LIBM1(sin)
SCALAR_LIBM1(tan)
SCALAR_LIBM1(cos)
SCALAR_LIBM1(erf)
SCALAR_LIBM1(floor)
SCALAR_LIBM1(ceil)
SCALAR_LIBM1(rint)
SCALAR_LIBM1(trunc)
SCALAR_LIBM1(fabs)
#undef SCALAR_LIBM1
static inline float tanh_f32(float x) { return tanhf(x); }
static inline double tanh_f64(double x) { return (double)tanhl((long double)x); } /* tanh's error is up to 2 ulp */
static inline float fmod_f32(float x, float y) { return fmodf(x, y); }
static inline double fmod_f64(double x, double y) { return fmod(x, y); }
static inline double exp_f64(double x) { return exp(x); }
static inline double exp2_f64(double x) { return exp2(x); }
static inline double log_f64(double x) { return log(x); }
static inline double log2_f64(double x) { return log2(x); }
static inline double fma_f64(double x, double y, double z) { return fma(x, y, z); }

/* The product is exact in double. The sum is rounded to odd there, using its exact error (Knuth's two-sum), which makes
 * the rounding to float the only one (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). */
static inline float fma_f32(float x, float y, float z)
{
	double p = (double)x * y, c = z, s = p + c;
	double t = s - p, error = (p - (s - t)) + (c - t);
	u64 b = fp_bits_f64(s);
	bool inexact = (error < 0) | (error > 0);
	/* toward the neighbour on the side of the error; s is not 0 then */
	u64 away = (error > 0) == (s > 0) ? 1 : ~0ull;
	b += (inexact & !(b & 1)) ? away : 0;
	return (float)fp_f64_bits(b);
}

/* 2^t = 2^n · 2^r. 2^n is built from its exponent. 2^r for |r| <= 1/2 is 1 + r·q(r), with q interpolated at Chebyshev's
 * points (relative error 5e-9). Adding 1.5·2^52 rounds t to an integer, which is then in the low bits of the sum. */
static inline float exp2_of_double(double t)
{
	t = t < -1000 ? -1000 : t;
	t = t > 1000 ? 1000 : t;
	double shifted = t + 0x1.8p52, r = t - (shifted - 0x1.8p52);
	double scale = fp_f64_bits((fp_bits_f64(shifted) + 1023) << 52);
	double q = 0x1.4413896e1ad27p-13;
	q = q * r + 0x1.5f0890162a90ap-10;
	q = q * r + 0x1.3b2a53045179ap-7;
	q = q * r + 0x1.c6af6cdbbdcc7p-5;
	q = q * r + 0x1.ebfbe00e63baep-3;
	q = q * r + 0x1.62e4302fc626ep-1;
	return (float)(scale + scale * (r * q));
}
static inline float exp2_f32(float x) { return exp2_of_double(x); }
static inline float exp_f32(float x) { return exp2_of_double((double)x * 0x1.71547652b82fep+0); }

/* x = 2^e·m with m in [√½, √2); log m = 2·atanh(s) with s = (m - 1)/(m + 1), |s| < 0.172, by its series. Returns
 * e·e_factor + log(m)·m_factor. */
static inline float log_of_double(double x, double e_factor, double m_factor)
{
	const u64 sqrt_half = 0x3FE6A09E667F3BCD;
	u64 b = fp_bits_f64(x), e = (b - sqrt_half) >> 52; /* modulo 2^12 */
	/* the exponent as a number, exactly */
	double exponent = fp_f64_bits(((e + 2048) & 4095) | 0x433ull << 52) - (0x1p52 + 2048);
	double m = fp_f64_bits(b - (e << 52)), s = (m - 1) / (m + 1), z = s * s;
	double p = 2.0 / 11;
	p = p * z + 2.0 / 9;
	p = p * z + 2.0 / 7;
	p = p * z + 2.0 / 5;
	p = p * z + 2.0 / 3;
	double r = exponent * e_factor + (2 * s + s * (z * p)) * m_factor;
	r = x == 0 ? -__builtin_inf() : r;
	r = x < 0 ? __builtin_nan("") : r;
	return (float)(x < __builtin_inf() ? r : x); /* infinity and NaN are returned unchanged */
}
static inline float log_f32(float x) { return log_of_double(x, 0x1.62e42fefa39efp-1, 1); }
static inline float log2_f32(float x) { return log_of_double(x, 1, 0x1.71547652b82fep+0); }

#endif

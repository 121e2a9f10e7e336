/* Small floating-point formats. Decoding is exact. Encoding rounds once, to nearest even or toward zero.
 *
 * fp8 encodings saturate to the largest finite value, infinities included, as PTX `cvt.rn.satfinite` does (PTX ISA,
 * "cvt"). NaN becomes the canonical NaN. Formats: IEEE 754 binary16; bfloat16; OFP8 E4M3 (no infinity, S.1111.111 is
 * NaN) and E5M2 (OCP 8-bit Floating Point Specification 1.0). */
#ifndef TLC_SUPPORT_SMALL_FLOATS_H
#define TLC_SUPPORT_SMALL_FLOATS_H

#include "support/base.h"

enum fp_format { FP_F16, FP_BF16, FP_E4M3, FP_E5M2 };

static inline float fp_f32_bits(u32 b)
{
	float f;
	memcpy(&f, &b, 4);
	return f;
}
static inline u32 fp_bits_f32(float f)
{
	u32 b;
	memcpy(&b, &f, 4);
	return b;
}
static inline double fp_f64_bits(u64 b)
{
	double f;
	memcpy(&f, &b, 8);
	return f;
}
static inline u64 fp_bits_f64(double f)
{
	u64 b;
	memcpy(&b, &f, 8);
	return b;
}

static inline float fp_from_bf16(u16 h) { return fp_f32_bits((u32)h << 16); }

/* Branch-free, so that loops over it are vectorised. Scaling the magnitude by 2^112 is exact and normalises subnormals.
 * Infinities and NaNs get their exponent back. */
static inline float fp_from_f16(u16 h)
{
	u32 sign = (u32)(h & 0x8000) << 16, mag = (u32)(h & 0x7FFF) << 13;
	float scaled = fp_f32_bits(mag) * 0x1p112f;
	u32 special = mag >= 0x0F800000 ? 0x7F800000 : 0;
	return fp_f32_bits(sign | fp_bits_f32(scaled) | special);
}

static inline u16 fp_to_bf16(float f)
{
	u32 b = fp_bits_f32(f);
	u32 rounded = (b + 0x7FFF + (b >> 16 & 1)) >> 16;
	return (u16)((b & 0x7FFFFFFF) > 0x7F800000 ? 0x7FFF : rounded);
}

static inline u16 fp_to_f16(float f)
{
	u32 b = fp_bits_f32(f), sign = b >> 16 & 0x8000, mag = b & 0x7FFFFFFF;
	/* normal results: rebias, round to nearest even in integer arithmetic; a carry into the exponent gives the
	 * right result */
	u32 normal = (mag - 0x38000000 + 0xFFF + (mag >> 13 & 1)) >> 13;
	/* subnormal results: adding 0.5 puts the last kept bit at the end of the mantissa */
	u32 sub = fp_bits_f32(fp_f32_bits(mag) + 0.5f) - 0x3F000000;
	u32 r = mag < 0x38800000 ? sub : normal;
	r = mag >= 0x477FF000 ? 0x7C00 : r;
	r = mag > 0x7F800000 ? 0x7FFF : r;
	return (u16)(sign * (mag <= 0x7F800000) | r);
}

/* To tf32 (10 mantissa bits), toward zero: tensor cores ignore the other 13 bits of an operand. */
static inline float fp_truncate_tf32(float f)
{
	return fp_f32_bits(fp_bits_f32(f) & ~(u32)0x1FFF);
}

double fp_decode(enum fp_format format, u32 bits);
/* `toward_zero`: round toward zero instead of to nearest even. */
u32 fp_encode(enum fp_format format, double x, bool toward_zero);

#endif

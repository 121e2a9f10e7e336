#include "support/small_floats.h"

static const struct {
	int mant, bias, max_exp; /* mantissa bits; exponent bias; largest finite number's exponent */
	u32 max_finite, inf, nan;
	bool saturate;
} formats[] = {
	[FP_F16] = {10, 15, 15, 0x7BFF, 0x7C00, 0x7FFF, false},
	[FP_BF16] = {7, 127, 127, 0x7F7F, 0x7F80, 0x7FFF, false},
	[FP_E4M3] = {3, 7, 8, 0x7E, 0, 0x7F, true},
	[FP_E5M2] = {2, 15, 15, 0x7B, 0x7C, 0x7F, true},
};

double fp_decode(enum fp_format f, u32 bits)
{
	int mant = formats[f].mant, width = f <= FP_BF16 ? 16 : 8;
	u32 sign = bits >> (width - 1) & 1, mag = bits & ((1u << (width - 1)) - 1);
	u32 frac = mag & ((1u << mant) - 1);
	int exp = (int)(mag >> mant);
	double x;
	if (formats[f].inf && mag >= formats[f].inf)
		x = mag == formats[f].inf ? __builtin_inf() : __builtin_nan("");
	else if (!formats[f].inf && mag == formats[f].nan)
		x = __builtin_nan("");
	else if (exp == 0)
		x = __builtin_ldexp(frac, 1 - formats[f].bias - mant);
	else
		x = __builtin_ldexp(frac | 1u << mant, exp - formats[f].bias - mant);
	return sign ? -x : x;
}

u32 fp_encode(enum fp_format f, double x, bool toward_zero)
{
	int mant = formats[f].mant, bias = formats[f].bias, width = f <= FP_BF16 ? 16 : 8;
	u64 b = fp_bits_f64(x), mag = b & ~(1ull << 63);
	u32 sign = (u32)(b >> 63) << (width - 1);
	if (mag > 0x7FF0000000000000ull)
		return formats[f].nan;
	u32 overflow = formats[f].saturate ? formats[f].max_finite : formats[f].inf;
	if (mag == 0x7FF0000000000000ull)
		return sign | overflow;
	if (toward_zero)
		overflow = formats[f].max_finite;
	int exp = (int)(mag >> 52) - 1023;
	if (mag >> 52 == 0) /* a subnormal double is far below every format here */
		return sign;
	u64 frac = (mag & ((1ull << 52) - 1)) | 1ull << 52;
	/* the value is frac * 2^(exp - 52); the unit in the last place of the result is 2^(e - mant) */
	int e = MAX(exp, 1 - bias), drop = 52 - mant + (e - exp);
	if (drop > 54)
		return sign;
	u64 kept = frac >> drop, rest = frac & ((1ull << drop) - 1), half = 1ull << (drop - 1);
	if (!toward_zero && (rest > half || (rest == half && (kept & 1))))
		kept++;
	/* kept is below 2^(mant+1), or equal after a carry, which the addition passes on to the exponent */
	u64 r = kept < (1ull << mant) ? kept : ((u64)(e + bias - 1) << mant) + kept;
	return sign | (r > formats[f].max_finite ? overflow : (u32)r);
}

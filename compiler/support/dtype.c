#include "support/dtype.h"

static const char *const names[][3] = {
#define X(e, sig, tl, ir, bits) {sig, tl, ir},
	DTYPES(X)
#undef X
};

const char *dtype_name(enum dtype d)
{
	return names[d][0];
}

const char *dtype_tl_name(enum dtype d)
{
	return names[d][1];
}

const char *dtype_ir_name(enum dtype d)
{
	return names[d][2];
}

enum dtype dtype_parse(const char *s, size_t len)
{
	static const struct {
		const char *name;
		enum dtype dtype;
	} aliases[] = {
		{"e4m3", DT_E4M3}, {"fp8e4m3", DT_E4M3}, {"float8_e4m3fn", DT_E4M3}, {"f8e4m3fn", DT_E4M3},
		{"e5m2", DT_E5M2}, {"fp8e5m2", DT_E5M2}, {"float8_e5m2", DT_E5M2}, {"f8e5m2", DT_E5M2},
		{"bool", DT_I1}, {"half", DT_F16}, {"float", DT_F32}, {"double", DT_F64}, {"u1", DT_I1},
	};
	for (int d = 0; d < DT_COUNT; d++)
		for (int k = 0; k < 3; k++)
			if (word_is(s, len, names[d][k]))
				return (enum dtype)d;
	for (u32 i = 0; i < ARRAY_LEN(aliases); i++)
		if (word_is(s, len, aliases[i].name))
			return aliases[i].dtype;
	return DT_COUNT;
}

static enum fp_format small_format(enum dtype d)
{
	switch (d) {
	case DT_F16: return FP_F16;
	case DT_BF16: return FP_BF16;
	case DT_E4M3: return FP_E4M3;
	case DT_E5M2: return FP_E5M2;
	default: tl_unreachable("not a small float");
	}
}

/* float8e4b15 is binary16 with four exponent bits and three mantissa bits, without infinities and NaNs. Rounds to
 * nearest, ties away from zero. Magnitudes above 1.75, and NaN, become 1.75. */
static u64 encode_e4b15(double x)
{
	double magnitude = __builtin_fabs(x);
	u64 bits = magnitude < 1.75 ? fp_encode(FP_F16, magnitude, true) : 0x3F00; /* the comparison is false for a
										    * NaN */
	return (__builtin_signbit(x) ? 0x80u : 0) | (2 * bits + 0x80) >> 8;
}

u64 dtype_encode_float(enum dtype d, double x)
{
	if (d == DT_E4B15)
		return encode_e4b15(x);
	if (d == DT_F64)
		return fp_bits_f64(x);
	if (d == DT_F32)
		return fp_bits_f32((float)x);
	return fp_encode(small_format(d), x, false);
}

double dtype_decode_float(enum dtype d, u64 bits)
{
	if (d == DT_E4B15)
		return fp_decode(FP_F16, (u32)((bits & 0x80) << 8 | (bits & 0x7F) << 7));
	if (d == DT_F64)
		return fp_f64_bits(bits);
	if (d == DT_F32)
		return fp_f32_bits((u32)bits);
	return fp_decode(small_format(d), (u32)bits);
}

u64 dtype_encode_int(enum dtype d, i64 x)
{
	int bits = dtype_bits(d);
	return bits == 64 ? (u64)x : (u64)x & ((1ull << bits) - 1);
}

i64 dtype_decode_int(enum dtype d, u64 bits)
{
	int n = dtype_bits(d);
	if (n == 1)
		return bits & 1;
	return (i64)(bits << (64 - n)) >> (64 - n);
}

double dtype_decode_number(enum dtype d, u64 bits)
{
	if (dtype_is_float(d))
		return dtype_decode_float(d, bits);
	return dtype_is_unsigned(d) ? (double)bits : (double)dtype_decode_int(d, bits);
}

/* Conversions to and from the device's formats, and random numbers. Written with ldexp and rint rather than with bits,
 * so that they share no idea (and no mistake) with the library. */
#include <float.h>

#include "run.h"

const tl_dtype float_types[] = {TL_F16, TL_BF16, TL_F32, TL_F64};
const tl_dtype int_types[] = {TL_I8, TL_I16, TL_I32, TL_I64, TL_U8, TL_U16, TL_U32, TL_U64};

/* Mantissa bits without the leading one; exponent of the least normal number; the largest number. */
static const struct {
	int mantissa, least, bits;
	double max;
	bool saturates;
} formats[DTYPES] = {
	[TL_F8E4M3] = {3, -6, 8, 448, true},
	[TL_F8E5M2] = {2, -14, 8, 57344, true},
	[TL_F16] = {10, -14, 16, 65504, false},
	[TL_BF16] = {7, -126, 16, 0x1.FEp127, false},
	[TL_F32] = {23, -126, 32, FLT_MAX, false},
	[TL_F64] = {52, -1022, 64, DBL_MAX, false},
	[TL_F8E4B15] = {3, -14, 8, 1.75, true},
};

bool is_float(tl_dtype t) { return formats[t].bits != 0; }
bool is_signed(tl_dtype t) { return t >= TL_I8 && t <= TL_I64; }
bool is_fp8(tl_dtype t) { return t == TL_F8E4M3 || t == TL_F8E5M2 || t == TL_F8E4B15; }
int bits_of(tl_dtype t) { return t == TL_I1 ? 1 : (int)tl_dtype_size(t) * 8; }

double ulp(tl_dtype t, double v)
{
	int e = v == 0 || !isfinite(v) ? formats[t].least : ilogb(v);
	return ldexp(1, (e < formats[t].least ? formats[t].least : e) - formats[t].mantissa);
}

double unit_roundoff(tl_dtype t) { return ldexp(1, -formats[t].mantissa - 1); }

static double beyond(tl_dtype t, double v, double overflow)
{
	return copysign(formats[t].saturates ? formats[t].max : overflow, v);
}

double round_to(tl_dtype t, double v)
{
	if (t == TL_F8E4B15 && isnan(v)) /* has none */
		return copysign(formats[t].max, v);
	if (t == TL_F64 || isnan(v))
		return v;
	if (isinf(v))
		return beyond(t, v, INFINITY);
	double n = v / ulp(t, v), r = (t == TL_F8E4B15 ? round(n) : rint(n)) * ulp(t, v); /* ties away, or to even */
	return fabs(r) > formats[t].max ? beyond(t, v, INFINITY) : r;
}

double round_toward_zero(tl_dtype t, double v)
{
	if (t == TL_F64 || isnan(v))
		return v;
	if (isinf(v))
		return beyond(t, v, INFINITY);
	double r = trunc(v / ulp(t, v)) * ulp(t, v);
	return fabs(r) > formats[t].max ? beyond(t, v, formats[t].max) : r;
}

double tf32(double v)
{
	if (!isfinite(v) || v == 0)
		return v;
	double unit = ldexp(1, ilogb(v) - 10);
	return trunc(v / unit) * unit;
}

uint64_t encode(tl_dtype t, double v)
{
	int mantissa = formats[t].mantissa, width = formats[t].bits, least = formats[t].least;
	uint64_t sign = signbit(v) ? 1ull << (width - 1) : 0, field = (1ull << (width - 1 - mantissa)) - 1;
	if (isnan(v))
		return t == TL_F8E4M3 ? 0x7F : t == TL_F8E4B15 ? 0x7E : (field << mantissa) | 1ull << (mantissa - 1);
	if (isinf(v))
		return sign | field << mantissa;
	v = fabs(v);
	if (v == 0)
		return sign;
	int e = ilogb(v);
	if (e < least)
		return sign | (uint64_t)ldexp(v, mantissa - least);
	return sign | (((uint64_t)(e - least + 1) << mantissa) + (uint64_t)ldexp(v - ldexp(1, e), mantissa - e));
}

double decode(tl_dtype t, uint64_t bits)
{
	int mantissa = formats[t].mantissa, width = formats[t].bits, least = formats[t].least;
	int field = (int)(bits >> mantissa & ((1ull << (width - 1 - mantissa)) - 1));
	int special = (1 << (width - 1 - mantissa)) - 1;
	uint64_t frac = bits & ((1ull << mantissa) - 1);
	double sign = bits >> (width - 1) & 1 ? -1 : 1;
	if (t == TL_F8E4M3 ? field == special && frac == 7 : t != TL_F8E4B15 && field == special && frac)
		return NAN;
	if (t != TL_F8E4M3 && t != TL_F8E4B15 && field == special)
		return sign * INFINITY;
	if (field == 0)
		return sign * ldexp((double)frac, least - mantissa);
	return sign * ldexp((double)(frac | 1ull << mantissa), field - 1 + least - mantissa);
}

int64_t wrap(tl_dtype t, int64_t v)
{
	int drop = 64 - bits_of(t);
	uint64_t high = (uint64_t)v << drop;
	return is_signed(t) ? (int64_t)high >> drop : (int64_t)(high >> drop);
}

double int_value(tl_dtype t, int64_t v) { return t == TL_U64 ? (double)(uint64_t)v : (double)v; }
int64_t least(tl_dtype t) { return is_signed(t) ? (int64_t)(~0ull << (bits_of(t) - 1)) : 0; }
int64_t most(tl_dtype t) { return is_signed(t) ? ~least(t) : (int64_t)(~0ull >> (64 - bits_of(t))); }

/* splitmix64 (Steele, Lea and Flood, 2014). */
static uint64_t state;

void random_seed(uint64_t seed) { state = seed; }

uint64_t random_bits(void)
{
	uint64_t z = state += 0x9E3779B97F4A7C15;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
	z = (z ^ z >> 27) * 0x94D049BB133111EB;
	return z ^ z >> 31;
}

double uniform(double lo, double hi) { return lo + (hi - lo) * ((double)(random_bits() >> 11) * 0x1p-53); }

int64_t random_int(int64_t lo, int64_t hi)
{
	uint64_t span = (uint64_t)hi - (uint64_t)lo + 1;
	return (int64_t)((uint64_t)lo + (span ? random_bits() % span : random_bits()));
}

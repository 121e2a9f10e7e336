/* cvt. Common pairs of types have dedicated loops; other pairs are converted one value at a time, through a double or
 * 64 bits. */
#include "runtime/sim/alu.h"

#include <fenv.h>

#include "ir/scalar_math.h"

enum rounding { R_NEAREST, R_ZERO, R_DOWN, R_UP };
static enum rounding rounding_of(const struct instr *i)
{
	u32 r = i->mod[M_RND] ? i->mod[M_RND] : i->mod[M_RNDI];
	return r ? (enum rounding)(r - 1) : R_NEAREST;
}

/* Sign bit of a signed type, else 0: (x ^ s) - s sign-extends x. */
static inline u64 sign_of(enum ptx_type t)
{
	return is_signed(t) ? (u64)1 << (ptx_bits(t) - 1) : 0;
}

/* Source values. A register may be wider than its type; the upper bits are ignored. */
static const u64 *source(const struct warp *w, const struct instr *i, u64 space[LANES])
{
	return operand_lanes(w, &i->ops[1],
			     MAX(ptx_bits(i->type[1]), i->ops[1].kind == O_REG ? ptx_bits(i->ops[1].reg_type) : 0),
			     space);
}

/* Extends a result to the width of its register. */
static inline u64 widen(u64 r, const struct instr *i)
{
	enum ptx_type t = i->type[0];
	u64 s = sign_of(t);
	return (((r & ones(ptx_bits(t))) ^ s) - s) &
	       ones(i->ops[0].kind == O_REG ? ptx_bits(i->ops[0].reg_type) : ptx_bits(t));
}

/* --- integer to integer ----------------------------------------------------------------------------------------- */

void run_int_to_int(struct warp *w, const struct instr *i, u32 mask)
{
	u64 space[LANES];
	const u64 *a = source(w, i, space);
	RESULT(d, 0);
	int from = ptx_bits(i->type[1]), to = ptx_bits(i->type[0]);
	u64 in = ones(from), in_sign = sign_of(i->type[1]), out = ones(to), out_sign = sign_of(i->type[0]);
	u64 all = ones(i->ops[0].kind == O_REG ? ptx_bits(i->ops[0].reg_type) : to);
	ALL(l)
	{
		u64 x = ((a[l] & in) ^ in_sign) - in_sign;
		d[l] = (((x & out) ^ out_sign) - out_sign) & all;
	}
	FINISH(d, 0);
}

static u64 clamp_int(i128 x, enum ptx_type t)
{
	int bits = ptx_bits(t);
	i128 least = is_signed(t) ? -((i128)1 << (bits - 1)) : 0, most = ((i128)1 << (bits - is_signed(t))) - 1;
	return (u64)(x < least ? least : x > most ? most : x);
}

static i128 int_value(u64 bits, enum ptx_type t)
{
	u64 s = sign_of(t), x = ((bits & ones(ptx_bits(t))) ^ s) - s;
	return is_signed(t) ? (i128)(i64)x : (i128)x;
}

void run_int_to_int_sat(struct warp *w, const struct instr *i, u32 mask)
{
	u64 space[LANES];
	const u64 *a = source(w, i, space);
	EACH_LANE(l, mask)
	set_reg(w, &i->ops[0], l, widen(clamp_int(int_value(a[l], i->type[1]), i->type[0]), i));
}

/* --- rounding to floating point --------------------------------------------------------------------------------- */

/* A NaN as f16 or bf16: keeps the sign and the upper bits of the mantissa. */
static u16 nan_half(double x, bool bf)
{
	u64 b = fp_bits_f64(x);
	return (u16)((b >> 48 & 0x8000) | (bf ? 0x7FC0 | (b >> 45 & 0x7F) : 0x7E00 | (b >> 42 & 0x3FF)));
}

static u16 round_half(double x, bool bf, enum rounding r)
{
	enum fp_format f = bf ? FP_BF16 : FP_F16;
	u32 h = fp_encode(f, x, r != R_NEAREST);
	double got = fp_decode(f, h);
	if ((r == R_DOWN && got > x) || (r == R_UP && got < x))
		h++; /* next magnitude away from zero: the sign bit is unaffected */
	return (u16)h;
}

/* True if x is flushed as subnormal, although it may round to a normal number. The rounding is that of normal
 * numbers. */
static bool flushes_f32(double x, enum rounding r)
{
	bool away = (r == R_UP && x > 0) || (r == R_DOWN && x < 0);
	return away ? fabs(x) <= 0x1p-126 - 0x1p-150 : r == R_NEAREST ? fabs(x) < TINY_F32 : fabs(x) < 0x1p-126;
}

static float round_f32(double x, enum rounding r)
{
	float f = (float)x;
	bool back = (r == R_ZERO && fabs((double)f) > fabs(x)), below = r == R_DOWN && (double)f > x,
	     above = r == R_UP && (double)f < x;
	if (back)
		return fp_f32_bits(fp_bits_f32(f) - 1);
	return below ? nextafterf(f, -INFINITY) : above ? nextafterf(f, INFINITY) : f;
}

/* v as a double; rounded to odd beyond 53 bits, so that a second rounding to a smaller format is correct. */
static double odd_f64(i128 v)
{
	u64 x = v < 0 ? (u64)-v : (u64)v;
	if (x >> 53)
		x = (x & ~(u64)0x7FF) | (x & 0x7FF ? 0x800 : 0);
	return v < 0 ? -(double)x : (double)x;
}

static double round_integer_f64(i128 v, enum rounding r)
{
	static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
	int before = fegetround();
	fesetround(modes[r]);
	volatile i64 s = (i64)v;
	volatile u64 u = (u64)v;
	volatile double d;
	if (v < 0)
		d = (double)s;
	else
		d = (double)u;
	fesetround(before);
	return d;
}

static double unpack(u64 bits, enum ptx_type t, u32 flags)
{
	switch (t) {
	case PT_F64: return fp_f64_bits(bits);
	case PT_F32: return get_f32(bits, flags);
	case PT_F16: return fp_from_f16((u16)bits);
	default: return fp_from_bf16((u16)bits);
	}
}

/* Bits of x in type t. x is exact or rounded to odd. */
static u64 pack(double x, enum ptx_type t, u32 flags, enum rounding r)
{
	x = flags & F_SAT ? saturated(x) : x;
	switch (t) {
	case PT_F64: return x != x ? fp_bits_f64(x) | QUIET_F64 : fp_bits_f64(x);
	case PT_F32:
		if (flags & F_FTZ && flushes_f32(x, r))
			x = copysign(0, x);
		return x != x ? fp_bits_f32((float)x) : put_f32(round_f32(x, r), flags & F_FTZ);
	default: return round_half(x, t == PT_BF16, r);
	}
}

void run_int_to_float(struct warp *w, const struct instr *i, u32 mask)
{
	u64 space[LANES];
	const u64 *a = source(w, i, space);
	enum rounding r = rounding_of(i);
	EACH_LANE(l, mask)
	{
		i128 v = int_value(a[l], i->type[1]);
		double x = i->type[0] == PT_F64 ? round_integer_f64(v, r) : odd_f64(v);
		set_reg(w, &i->ops[0], l, pack(x, i->type[0], float_flags(i), r));
	}
}

static double to_integral(double x, enum rounding r)
{
	switch (r) {
	case R_NEAREST: return nearbyint(x);
	case R_ZERO: return trunc(x);
	case R_DOWN: return floor(x);
	default: return ceil(x);
	}
}

/* Conversion between floating-point types. From or to f64 a NaN keeps its bits, except from f32 to f64 with .ftz. All
 * other conversions, bf16 included, give the canonical NaN. */
static u64 convert_float(u64 bits, enum ptx_type from, enum ptx_type to, u32 flags, enum rounding r)
{
	if (flags & F_FTZ && to == PT_F16)
		flags &= ~(u32)F_FTZ; /* .ftz has no effect for f16 */
	double x = unpack(bits, from, flags);
	if (x == x || flags & F_SAT)
		return pack(x, to, flags, r);
	if (from == PT_F64 && (to == PT_F16 || to == PT_BF16))
		return nan_half(x, to == PT_BF16);
	if (from == PT_F32 && to == PT_F64 && flags & F_FTZ)
		return fp_bits_f64((double)fp_f32_bits(CANONICAL_F32));
	if (from == PT_F64 || to == PT_F64)
		return pack(x, to, flags, r);
	return to == PT_F32 ? CANONICAL_F32 : 0x7FFF;
}

void run_float_to_float(struct warp *w, const struct instr *i, u32 mask)
{
	u64 space[LANES];
	const u64 *a = source(w, i, space);
	EACH_LANE(l, mask)
	set_reg(w, &i->ops[0], l, convert_float(a[l], i->type[1], i->type[0], float_flags(i), rounding_of(i)));
}

void run_float_to_integral(struct warp *w, const struct instr *i, u32 mask)
{
	u64 space[LANES];
	const u64 *a = source(w, i, space);
	EACH_LANE(l, mask)
	{
		double x = to_integral(unpack(a[l], i->type[1], float_flags(i)), rounding_of(i));
		u64 r = pack(x, i->type[0], float_flags(i), R_NEAREST);
		set_reg(w, &i->ops[0], l,
			x == x || i->type[0] == PT_F64 || float_flags(i) & F_SAT ? r
			: i->type[0] == PT_F32                                  ? CANONICAL_F32
										: 0x7FFF);
	}
}

/* Values out of range are clamped. NaN gives 0, or only the top bit set if either type has 64 bits. */
void run_float_to_int(struct warp *w, const struct instr *i, u32 mask)
{
	u64 space[LANES];
	const u64 *a = source(w, i, space);
	enum ptx_type t = i->type[0];
	int bits = ptx_bits(t);
	bool sign = is_signed(t);
	tl_assert(bits >= 8 && bits <= 64);
	u64 nan = i->type[1] == PT_F64 || bits == 64 ? (u64)1 << (bits - 1) : 0;
	double beyond = ldexp(1, bits - sign), least = sign ? -beyond : 0;
	u64 most = ones(bits - sign), lowest = sign ? (u64)1 << (bits - 1) : 0;
	EACH_LANE(l, mask)
	{
		double x = to_integral(unpack(a[l], i->type[1], float_flags(i)), rounding_of(i));
		u64 r = x != x ? nan : x >= beyond ? most : x < least ? lowest : x < 0 ? (u64)(i64)x : (u64)x;
		set_reg(w, &i->ops[0], l, widen(r, i));
	}
}

/* --- f32 to smaller formats, alone and in pairs; fp8 ------------------------------------------------------------ */

static inline u16 small_half(float x, bool bf, u32 flags, enum rounding r)
{
	u32 most = bf ? 0x7F7F : 0x7BFF;
	if (flags & F_RELU)
		x = x <= 0 ? 0 : x;
	u32 h = r == R_NEAREST ? (bf ? fp_to_bf16(x) : fp_to_f16(x)) : round_half(x, bf, r);
	if (flags & F_SATFINITE && x == x && (h & 0x7FFF) > most)
		h = (h & 0x8000) | most;
	return (u16)h;
}

void run_to_small(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	EACH_LANE(l, mask)
	set_reg(w, &i->ops[0], l, small_half(get_f32(a[l], 0), is_bf(i->type[0]), float_flags(i), rounding_of(i)));
}

void run_to_small_pair(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	SOURCE(b, 2, 32);
	RESULT(d, 0);
	const u32 flags = float_flags(i);
	const enum rounding r = rounding_of(i);
	bool bf = is_bf(i->type[0]);
	ALL(l)
	{
		float x = get_f32(a[l], 0), y = get_f32(b[l], 0);
		d[l] = (u32)small_half(x, bf, flags, r) << 16 | small_half(y, bf, flags, r);
	}
	FINISH(d, 0);
}

/* f32 to tf32, with 10 bits of mantissa. Rounding to nearest with ties away treats a NaN like any other number; with
 * .satfinite it takes the preceding number. */
static u32 small_tf32(u32 b, u32 flags, enum tf32_rounding how)
{
	const u32 cut = ~(u32)0x1FFF;
	bool nan = (b & 0x7FFFFFFF) > 0x7F800000, special = (b & 0x7F800000) == 0x7F800000;
	if (nan && how != TF32_AWAY)
		return CANONICAL_F32 & cut;
	if (flags & F_RELU && b >> 31)
		return 0;
	u32 up = how == TF32_AWAY ? 0x1000 : how == TF32_NEAREST ? 0xFFF + (b >> 13 & 1) : 0;
	u32 kept = special ? b & cut : (b + up) & cut;
	if (flags & F_SATFINITE && (kept & 0x7F800000) == 0x7F800000)
		kept -= 0x2000;
	return kept;
}
void run_tf32(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	EACH_LANE(l, mask)
	set_reg(w, &i->ops[0], l, small_tf32((u32)a[l], float_flags(i), (enum tf32_rounding)i->operation));
}

/* --- values of the forms ----------------------------------------------------------------------------------------- */

#define PAIR_OF(to, high, low, bits) ((u32)to(high) << bits | to(low))
#define GET(x) get_f32(x, 0)
#define RELU(v) relu(v, i)
static inline float relu(float x, const struct instr *i)
{
	return i->mod[M_RELU] && x <= 0 ? 0 : x;
}
#define LOW_HALF(x) fp_from_f16((u16)(x))
#define HIGH_HALF(x) fp_from_f16((u16)((x) >> 16))

#define CONVERT(id, text, operands, sm, LOOP, ...) LOOP(id, __VA_ARGS__)
#include "runtime/sim/forms.def"

/* --- checks ------------------------------------------------------------------------------------------------------ */

/* True if `to` represents all numbers of `from`. */
static bool fits(enum ptx_type from, enum ptx_type to)
{
	int more = ptx_bits(to) - ptx_bits(from);
	return is_signed(from) == is_signed(to) ? more >= 0 : is_signed(to) && more > 0;
}

bool check_int_sat(struct decoder *d)
{
	return !fits(d->i->type[1], d->i->type[0]) ||
	       decode_fail(d, "'.sat' of '%s' can have no effect", d->i->opcode);
}

/* --- cvt.pack ---------------------------------------------------------------------------------------------------- */

/* cvt.pack: two numbers, clamped and packed, the first one above, with the low bits of the third operand above both. */
void run_cvt_pack(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	SOURCE(b, 2, 32);
	SOURCE(c, i->nops - 1, 32);
	enum ptx_type t = i->type[0];
	int bits = ptx_bits(t);
	tl_assert(bits == 8 || bits == 16);
	EACH_LANE(l, mask)
	{
		u64 high = clamp_int(int_value(a[l], i->type[1]), t) & ones(bits),
		    low = clamp_int(int_value(b[l], i->type[1]), t) & ones(bits);
		u64 rest = bits == 16 ? 0 : c[l] << 2 * bits;
		set_reg(w, &i->ops[0], l, (u32)(rest | high << bits | low));
	}
}

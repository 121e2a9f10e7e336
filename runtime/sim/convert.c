/* cvt. Common pairs of types have dedicated loops; other pairs are converted one value at a time, through a double or
 * 64 bits. */
#include "runtime/sim/alu.h"

#include <fenv.h>

#include "ir/scalar_math.h"

typedef unsigned __int128 u128;

enum rounding { R_NEAREST, R_ZERO, R_DOWN, R_UP };
enum { F_SATFINITE = 32 };
#define MODS(flags, rounding) ((u64)(flags) | (u64)(rounding) << 8)
#define MODS_FLAGS(i) ((u32)(i)->mods & 0xFF)
#define MODS_ROUNDING(i) ((enum rounding)((i)->mods >> 8 & 0xFF))

static inline u64 ones(int n)
{
	return n > 63 ? ~(u64)0 : ((u64)1 << n) - 1;
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

static void int_to_int(struct warp *w, const struct instr *i, u32 mask)
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

static void int_to_int_sat(struct warp *w, const struct instr *i, u32 mask)
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
	if (flags & F_SAT) {
		x = x > 0 ? x : 0;
		x = x < 1 ? x : 1;
	}
	switch (t) {
	case PT_F64: return x != x ? fp_bits_f64(x) | QUIET_F64 : fp_bits_f64(x);
	case PT_F32:
		if (flags & F_FTZ && flushes_f32(x, r))
			x = copysign(0, x);
		return x != x ? fp_bits_f32((float)x) : put_f32(round_f32(x, r), flags & F_FTZ);
	default: return round_half(x, t == PT_BF16, r);
	}
}

static void int_to_float(struct warp *w, const struct instr *i, u32 mask)
{
	u64 space[LANES];
	const u64 *a = source(w, i, space);
	enum rounding r = MODS_ROUNDING(i);
	EACH_LANE(l, mask)
	{
		i128 v = int_value(a[l], i->type[1]);
		double x = i->type[0] == PT_F64 ? round_integer_f64(v, r) : odd_f64(v);
		set_reg(w, &i->ops[0], l, pack(x, i->type[0], MODS_FLAGS(i), r));
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

static void float_to_float(struct warp *w, const struct instr *i, u32 mask)
{
	u64 space[LANES];
	const u64 *a = source(w, i, space);
	EACH_LANE(l, mask)
	set_reg(w, &i->ops[0], l, convert_float(a[l], i->type[1], i->type[0], MODS_FLAGS(i), MODS_ROUNDING(i)));
}

static void float_to_integral(struct warp *w, const struct instr *i, u32 mask)
{
	u64 space[LANES];
	const u64 *a = source(w, i, space);
	EACH_LANE(l, mask)
	{
		double x = to_integral(unpack(a[l], i->type[1], MODS_FLAGS(i)), MODS_ROUNDING(i));
		u64 r = pack(x, i->type[0], MODS_FLAGS(i), R_NEAREST);
		set_reg(w, &i->ops[0], l,
			x == x || i->type[0] == PT_F64 || MODS_FLAGS(i) & F_SAT ? r
			: i->type[0] == PT_F32                                  ? CANONICAL_F32
										: 0x7FFF);
	}
}

/* Values out of range are clamped. NaN gives 0, or only the top bit set if either type has 64 bits. */
static void float_to_int(struct warp *w, const struct instr *i, u32 mask)
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
		double x = to_integral(unpack(a[l], i->type[1], MODS_FLAGS(i)), MODS_ROUNDING(i));
		u64 r = x != x ? nan : x >= beyond ? most : x < least ? lowest : x < 0 ? (u64)(i64)x : (u64)x;
		set_reg(w, &i->ops[0], l, widen(r, i));
	}
}

/* --- common pairs ------------------------------------------------------------------------------------------------- */

RUN1(f32_to_f16, u32, u16, fp_to_f16(fp_f32_bits(x)))
RUN1(f32_to_bf16, u32, u16, fp_to_bf16(fp_f32_bits(x)))
RUN1(f16_to_f32, u16, u32, put_f32(fp_from_f16(x), 0))
RUN1(bf16_to_f32, u16, u32, (u32)x << 16)
RUN1(f64_to_f32, u64, u32, fp_bits_f32((float)fp_f64_bits(x)))
RUN1(same_number, u64, u64, x)
RUN1(s32_to_f32, i32, u32, fp_bits_f32((float)x))
RUN1(u32_to_f32, u32, u32, fp_bits_f32((float)x))
RUN1(s32_to_f64, i32, u64, fp_bits_f64((double)x))
RUN1(u32_to_f64, u32, u64, fp_bits_f64((double)x))
RUN1(f32_to_s32, u32, u32, to_signed_f32(fp_f32_bits(x), 32))
RUN1(f32_to_u32, u32, u32, to_unsigned_f32(fp_f32_bits(x), 32))

static run_fn *common_pair(const struct instr *i)
{
	static const struct {
		enum ptx_type to, from;
		enum rounding rounding;
		run_fn *run;
	} pairs[] = {
		{PT_F16, PT_F32, R_NEAREST, f32_to_f16},  {PT_BF16, PT_F32, R_NEAREST, f32_to_bf16},
		{PT_F32, PT_F16, R_NEAREST, f16_to_f32},  {PT_F32, PT_BF16, R_NEAREST, bf16_to_f32},
		{PT_F32, PT_F64, R_NEAREST, f64_to_f32},  {PT_F32, PT_S32, R_NEAREST, s32_to_f32},
		{PT_F32, PT_U32, R_NEAREST, u32_to_f32},  {PT_F64, PT_S32, R_NEAREST, s32_to_f64},
		{PT_F64, PT_U32, R_NEAREST, u32_to_f64},  {PT_F32, PT_F32, R_NEAREST, same_number},
		{PT_F64, PT_F64, R_NEAREST, same_number}, {PT_S32, PT_F32, R_ZERO, f32_to_s32},
		{PT_U32, PT_F32, R_ZERO, f32_to_u32},
	};
	for (u32 k = 0; k < ARRAY_LEN(pairs); k++)
		if (pairs[k].to == i->type[0] && pairs[k].from == i->type[1] && i->mods == MODS(0, pairs[k].rounding) &&
		    (i->ops[0].kind != O_REG || ptx_bits(i->ops[0].reg_type) == ptx_bits(i->type[0])) &&
		    (i->ops[1].kind != O_REG || ptx_bits(i->ops[1].reg_type) == ptx_bits(i->type[1])))
			return pairs[k].run;
	return NULL;
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

static void to_small(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	bool bf = i->type[0] == PT_BF16;
	EACH_LANE(l, mask)
	set_reg(w, &i->ops[0], l, small_half(get_f32(a[l], 0), bf, MODS_FLAGS(i), MODS_ROUNDING(i)));
}

/* Conversion of two numbers to a pair; the first number is the upper half. */
#define RUN_PAIR(name, expr)                                                                                           \
	static void name(struct warp *w, const struct instr *i, u32 mask)                                              \
	{                                                                                                              \
		SOURCE(a, 1, 32);                                                                                      \
		SOURCE(b, 2, 32);                                                                                      \
		RESULT(d, 0);                                                                                          \
		const u32 flags = MODS_FLAGS(i);                                                                       \
		const enum rounding r = MODS_ROUNDING(i);                                                              \
		(void)flags, (void)r;                                                                                  \
		ALL(l)                                                                                                 \
		{                                                                                                      \
			float x = get_f32(a[l], 0), y = get_f32(b[l], 0);                                              \
			d[l] = (u32)(expr);                                                                            \
		}                                                                                                      \
		FINISH(d, 0);                                                                                          \
	}
static inline float relu(float x, u32 flags)
{
	return flags & F_RELU && x <= 0 ? 0 : x;
}
RUN_PAIR(pair_f16, (u32)fp_to_f16(x) << 16 | fp_to_f16(y))
RUN_PAIR(pair_bf16, (u32)fp_to_bf16(x) << 16 | fp_to_bf16(y))
RUN_PAIR(pair_f16_any, (u32)small_half(x, false, flags, r) << 16 | small_half(y, false, flags, r))
RUN_PAIR(pair_bf16_any, (u32)small_half(x, true, flags, r) << 16 | small_half(y, true, flags, r))
RUN_PAIR(pair_e4m3, fp_to_e4m3(relu(x, flags)) << 8 | fp_to_e4m3(relu(y, flags)))
RUN_PAIR(pair_e5m2, fp_to_e5m2(relu(x, flags)) << 8 | fp_to_e5m2(relu(y, flags)))

#define RUN_UNPAIR(name, bits, expr)                                                                                   \
	static void name(struct warp *w, const struct instr *i, u32 mask)                                              \
	{                                                                                                              \
		SOURCE(a, 1, bits);                                                                                    \
		RESULT(d, 0);                                                                                          \
		const u32 flags = MODS_FLAGS(i);                                                                       \
		ALL(l)                                                                                                 \
		{                                                                                                      \
			u32 x = (u32)a[l];                                                                             \
			d[l] = (u32)(expr);                                                                            \
		}                                                                                                      \
		FINISH(d, 0);                                                                                          \
	}
#define LOW_HALF(x) relu(fp_from_f16((u16)(x)), flags)
#define HIGH_HALF(x) relu(fp_from_f16((u16)((x) >> 16)), flags)
#define TO_F16(v) ((u32)fp_to_f16(relu(v, flags)))
RUN_UNPAIR(f16x2_to_e4m3, 32, fp_to_e4m3(HIGH_HALF(x)) << 8 | fp_to_e4m3(LOW_HALF(x)))
RUN_UNPAIR(f16x2_to_e5m2, 32, fp_to_e5m2(HIGH_HALF(x)) << 8 | fp_to_e5m2(LOW_HALF(x)))
RUN_UNPAIR(e4m3_to_f16x2, 16, TO_F16(fp_from_e4m3((u8)(x >> 8))) << 16 | TO_F16(fp_from_e4m3((u8)x)))
RUN_UNPAIR(e5m2_to_f16x2, 16, TO_F16(fp_from_e5m2((u8)(x >> 8))) << 16 | TO_F16(fp_from_e5m2((u8)x)))

/* f32 to tf32, with 10 bits of mantissa. `how`, from the decoder: 0 to nearest even, 1 toward zero, 2 to nearest with
 * ties away. The last treats a NaN like any other number; with .satfinite it takes the preceding number. */
static u32 small_tf32(u32 b, u32 flags, int how)
{
	const u32 cut = ~(u32)0x1FFF;
	bool nan = (b & 0x7FFFFFFF) > 0x7F800000, special = (b & 0x7F800000) == 0x7F800000;
	if (nan && how != 2)
		return CANONICAL_F32 & cut;
	if (flags & F_RELU && b >> 31)
		return 0;
	u32 up = how == 2 ? 0x1000 : how == 0 ? 0xFFF + (b >> 13 & 1) : 0;
	u32 kept = special ? b & cut : (b + up) & cut;
	if (flags & F_SATFINITE && (kept & 0x7F800000) == 0x7F800000)
		kept -= 0x2000;
	return kept;
}
RUN1(f32_to_tf32, u32, u32, small_tf32(x, 0, 2))
static void f32_to_tf32_any(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	EACH_LANE(l, mask)
	set_reg(w, &i->ops[0], l, small_tf32((u32)a[l], MODS_FLAGS(i), (int)MODS_ROUNDING(i)));
}

/* --- decoding
 * ------------------------------------------------------------------------------------------------------- */

static u64 take_relu_satfinite(struct decoder *d)
{
	u64 flags = take(d, "relu") ? F_RELU : 0;
	return flags | (take(d, "satfinite") ? F_SATFINITE : 0);
}

static bool decode_tf32(struct decoder *d)
{
	struct instr *i = d->i;
	bool away = take(d, "rna");
	int r = away ? 2 : take_one_of(d, "rn rz");
	if (r < 0 || !need_sm(d, away ? 80 : 90))
		return false;
	u64 flags = away ? (take(d, "satfinite") ? F_SATFINITE : 0) : take_relu_satfinite(d);
	if (!away && flags & F_SATFINITE && !need_sm(d, 100))
		return false;
	i->mods = MODS(flags, r);
	return OPERANDS(d, PT_B32, PT_F32) && alu_run(d, away && !flags ? f32_to_tf32 : f32_to_tf32_any);
}

static bool decode_fp8(struct decoder *d, enum ptx_type to, enum ptx_type from)
{
	struct instr *i = d->i;
	bool relu = take(d, "relu");
	i->mods = MODS(relu ? F_RELU : 0, R_NEAREST);
	if (!take(d, "rn") || !need_sm(d, 89))
		return false;
	if (to == PT_F16X2)
		return OPERANDS(d, PT_F16X2, PT_B16) && alu_run(d, from == PT_E4M3X2 ? e4m3_to_f16x2 : e5m2_to_f16x2);
	if (!take(d, "satfinite"))
		return false;
	if (from == PT_F32)
		return OPERANDS(d, PT_B16, PT_F32, PT_F32) && alu_run(d, to == PT_E4M3X2 ? pair_e4m3 : pair_e5m2);
	return from == PT_F16X2 && OPERANDS(d, PT_B16, PT_F16X2) &&
	       alu_run(d, to == PT_E4M3X2 ? f16x2_to_e4m3 : f16x2_to_e5m2);
}

static bool decode_pair(struct decoder *d, enum ptx_type to)
{
	int r = take_one_of(d, "rn rz");
	if (r < 0 || !need_sm(d, 80))
		return false;
	d->i->mods = MODS(take_relu_satfinite(d), r);
	bool simple = !d->i->mods, bf = to == PT_BF16X2;
	return OPERANDS(d, to, PT_F32, PT_F32) &&
	       alu_run(d, bf ? (simple ? pair_bf16 : pair_bf16_any) : (simple ? pair_f16 : pair_f16_any));
}

static bool is_scalar_float(enum ptx_type t)
{
	return t == PT_F16 || t == PT_BF16 || t == PT_F32 || t == PT_F64;
}

/* Checks the operands of a conversion of one number between plain types. */
static bool plain_operands(struct decoder *d)
{
	struct instr *i = d->i;
	const struct operand *to = &i->ops[0];
	if (!want_operands(d, 2, 2) || (to->kind != O_REG && to->kind != O_SINK) || i->ops[1].kind == O_SINK)
		return false;
	return alu_operand(d, to, i->type[0], is_int(i->type[0])) &&
	       alu_operand(d, &i->ops[1], i->type[1], is_int(i->type[1]));
}

/* Decodes a conversion with .relu or .satfinite. */
static bool decode_small(struct decoder *d, u64 flags)
{
	struct instr *i = d->i;
	int r = take_one_of(d, "rn rz");
	if (r < 0 || i->type[1] != PT_F32 || (i->type[0] != PT_F16 && i->type[0] != PT_BF16) || !need_sm(d, 80))
		return false;
	i->mods = MODS(flags, r);
	return OPERANDS(d, i->type[0], PT_F32) && alu_run(d, to_small);
}

static bool decode_float_source(struct decoder *d, enum ptx_type to, enum ptx_type from, u64 flags)
{
	struct instr *i = d->i;
	bool same = ptx_bits(to) == ptx_bits(from), smaller = ptx_bits(to) < ptx_bits(from) || (same && to != from);
	if (is_int(to)) {
		int r = take_one_of(d, "rni rzi rmi rpi");
		i->mods = MODS(flags & ~(u64)F_SAT, r);
		run_fn *run = common_pair(i);
		return r >= 0 && alu_run(d, run ? run : float_to_int);
	}
	/* a rounding mode is allowed and has no effect */
	bool from_bf16 = from == PT_BF16 && to != from && !(flags & F_SAT);
	int r = smaller || from_bf16 ? take_one_of(d, "rn rz rm rp") : -1,
	    whole = to == from ? take_one_of(d, "rni rzi rmi rpi") : -1;
	if (smaller && !same && r < 0)
		return decode_fail(d, "'%s' needs a rounding", i->opcode);
	i->mods = MODS(flags, smaller ? MAX(r, 0) : MAX(whole, 0));
	run_fn *run = whole < 0 ? common_pair(i) : float_to_integral;
	return alu_run(d, run ? run : float_to_float);
}

static bool decode_pack(struct decoder *d);

/* True if `to` represents all numbers of `from`. */
static bool fits(enum ptx_type from, enum ptx_type to)
{
	int more = ptx_bits(to) - ptx_bits(from);
	return is_signed(from) == is_signed(to) ? more >= 0 : is_signed(to) && more > 0;
}

static bool decode_cvt(struct decoder *d)
{
	if (take(d, "pack"))
		return decode_pack(d);
	struct instr *i = d->i;
	enum ptx_type to = i->type[0] = take_type(d), from = i->type[1] = take_type(d);
	if (to == PT_TF32 && from == PT_F32)
		return decode_tf32(d);
	if (to == PT_E4M3X2 || to == PT_E5M2X2 || from == PT_E4M3X2 || from == PT_E5M2X2)
		return decode_fp8(d, to, from);
	if ((to == PT_F16X2 || to == PT_BF16X2) && from == PT_F32)
		return decode_pair(d, to);
	bool to_float = is_scalar_float(to), from_float = is_scalar_float(from);
	if ((!to_float && !is_int(to)) || (!from_float && !is_int(from)))
		return false;
	u64 small = take_relu_satfinite(d);
	if (small)
		return decode_small(d, small);
	if ((from == PT_BF16 || (to == PT_BF16 && from != PT_F32)) && !need_sm(d, 90))
		return false;
	if ((to == PT_BF16 && is_int(from) && ptx_bits(from) == 8) ||
	    (from == PT_BF16 && is_int(to) && ptx_bits(to) == 8))
		return false;
	if (!plain_operands(d))
		return false;
	u64 flags = to != PT_BF16 && !(to_float && from == PT_BF16) && take(d, "sat") ? F_SAT : 0;
	flags |= (to == PT_F32 || from == PT_F32) && take(d, "ftz") ? F_FTZ : 0;
	if (from_float)
		return decode_float_source(d, to, from, flags);
	if (!to_float && flags && fits(from, to))
		return decode_fail(d, "'.sat' of '%s' can have no effect", i->opcode);
	if (!to_float)
		return alu_run(d, flags ? int_to_int_sat : int_to_int);
	int r = take_one_of(d, "rn rz rm rp");
	if (r < 0)
		return decode_fail(d, "'%s' needs a rounding", i->opcode);
	i->mods = MODS(flags, r);
	run_fn *run = common_pair(i);
	return alu_run(d, run ? run : int_to_float);
}

/* --- cvt.pack
 * -------------------------------------------------------------------------------------------------------- */

/* cvt.pack: two numbers, clamped and packed, the first one above, with the low bits of the third operand above both. */
static void run_pack(struct warp *w, const struct instr *i, u32 mask)
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

static bool decode_pack(struct decoder *d)
{
	enum ptx_type to = d->i->type[0] = take_type(d), from = d->i->type[1] = take_type(d);
	if (!take(d, "sat") || from != PT_S32 || !need_sm(d, 72))
		return false;
	if (to == PT_U16 || to == PT_S16)
		return OPERANDS(d, PT_B32, PT_S32, PT_S32) && alu_run(d, run_pack);
	return (to == PT_U8 || to == PT_S8) && take_type(d) == PT_B32 && OPERANDS(d, PT_B32, PT_S32, PT_S32, PT_B32) &&
	       alu_run(d, run_pack);
}

const struct isa_row convert_opcodes[] = {{"cvt", decode_cvt}, {0}};

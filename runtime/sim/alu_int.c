/* Integer arithmetic. */
#include "runtime/sim/alu.h"

typedef unsigned __int128 u128;

/* indexed by [width: 16, 32, 64][is signed] */
typedef run_fn *by_type[3][2];
#define BOTH(name)                                                                                                     \
	{                                                                                                              \
		{name##_u16, name##_s16}, {name##_u32, name##_s32},                                                    \
		{                                                                                                      \
			name##_u64, name##_s64                                                                         \
		}                                                                                                      \
	}
#define SAME(name)                                                                                                     \
	{                                                                                                              \
		{name##_u16, name##_u16}, {name##_u32, name##_u32},                                                    \
		{                                                                                                      \
			name##_u64, name##_u64                                                                         \
		}                                                                                                      \
	}
#define ONLY_SIGNED(name)                                                                                              \
	{                                                                                                              \
		{NULL, name##_s16}, {NULL, name##_s32},                                                                \
		{                                                                                                      \
			NULL, name##_s64                                                                               \
		}                                                                                                      \
	}

/* 16-bit operations are computed in 32 bits: registers have zeros above, and the result is truncated. */
#define WRAPPING(X, name, expr) X(name##_u16, u32, u16, expr) X(name##_u32, u32, u32, expr)                            \
	X(name##_u64, u64, u64, expr)
#define EACH_TYPE(X, name, expr)                                                                                       \
	X(name##_u16, u16, u16, expr)                                                                                  \
	X(name##_s16, i16, u16, expr) X(name##_u32, u32, u32, expr) X(name##_s32, i32, u32, expr)                      \
		X(name##_u64, u64, u64, expr)                                                                          \
		X(name##_s64, i64, u64, expr)

static inline u32 saturate_s32(i64 x)
{
	x = x < INT32_MIN ? INT32_MIN : x;
	return (u32)(x > INT32_MAX ? INT32_MAX : x);
}

WRAPPING(RUN2, add, x + y)
WRAPPING(RUN2, sub, x - y)
WRAPPING(RUN2, mul, x *y)
RUN2(add_sat, i32, u32, saturate_s32((i64)x + y))
RUN2(sub_sat, i32, u32, saturate_s32((i64)x - y))
EACH_TYPE(RUN2, min, x < y ? x : y)
EACH_TYPE(RUN2, max, x > y ? x : y)
RUN2(min_relu, i32, u32, MAX(MIN(x, y), 0))
RUN2(max_relu, i32, u32, MAX(MAX(x, y), 0))
RUN1(neg_s16, u32, u16, 0 - x)
RUN1(neg_s32, u32, u32, 0 - x)
RUN1(neg_s64, u64, u64, 0 - x)
RUN1(abs_s16, i16, u16, x < 0 ? -x : x)
RUN1(abs_s32, i32, u32, x < 0 ? 0 - (u32)x : (u32)x)
RUN1(abs_s64, i64, u64, x < 0 ? 0 - (u64)x : (u64)x)

RUN2(mul_hi_u16, u16, u16, (u32)x *y >> 16)
RUN2(mul_hi_s16, i16, u16, x *y >> 16)
RUN2(mul_hi_u32, u32, u32, (u64)x *y >> 32)
RUN2(mul_hi_s32, i32, u32, (i64)x *y >> 32)
RUN2(mul_hi_u64, u64, u64, (u128)x *y >> 64)
RUN2(mul_hi_s64, i64, u64, (i128)x *y >> 64)
RUN2(mul_wide_u16, u16, u32, (u32)x *y)
RUN2(mul_wide_s16, i16, u32, x *y)
RUN2(mul_wide_u32, u32, u64, (u64)x *y)
RUN2(mul_wide_s32, i32, u64, (i64)x *y)

RUN3(mad_u16, u32, u32, u16, x *y + z)
RUN3(mad_u32, u32, u32, u32, x *y + z)
RUN3(mad_u64, u64, u64, u64, x *y + z)
RUN3(mad_hi_u16, u16, u16, u16, ((u32)x * y >> 16) + z)
RUN3(mad_hi_s16, i16, i16, u16, (x * y >> 16) + z)
RUN3(mad_hi_u32, u32, u32, u32, ((u64)x * y >> 32) + z)
RUN3(mad_hi_s32, i32, i32, u32, ((i64)x * y >> 32) + z)
RUN3(mad_hi_u64, u64, u64, u64, ((u128)x * y >> 64) + z)
RUN3(mad_hi_s64, i64, i64, u64, ((i128)x * y >> 64) + z)
RUN3(mad_hi_sat, i32, i32, u32, saturate_s32(((i64)x * y >> 32) + z))
RUN3(mad_wide_u16, u16, u32, u32, (u32)x *y + z)
RUN3(mad_wide_s16, i16, u32, u32, (u32)(x *y) + z)
RUN3(mad_wide_u32, u32, u64, u64, (u64)x *y + z)
RUN3(mad_wide_s32, i32, u64, u64, (u64)((i64)x *y) + z)

#define DIFFERENCE(U) (x < y ? (U)y - (U)x : (U)x - (U)y)
RUN3(sad_u16, u16, u32, u16, DIFFERENCE(u32) + z)
RUN3(sad_s16, i16, u32, u16, DIFFERENCE(u32) + z)
RUN3(sad_u32, u32, u32, u32, DIFFERENCE(u32) + z)
RUN3(sad_s32, i32, u32, u32, DIFFERENCE(u32) + z)
RUN3(sad_u64, u64, u64, u64, DIFFERENCE(u64) + z)
RUN3(sad_s64, i64, u64, u64, DIFFERENCE(u64) + z)

/* Division by zero and its remainder give all ones, as on the hardware. The minimum divided by -1 wraps. */
#define DIVIDE_U(U) (U)(y ? x / y : (U)-1)
#define REMAINDER_U(U) (U)(y ? x % y : (U)-1)
#define DIVIDE_S(U) (y == 0 ? ~(U)0 : y == -1 ? (U)0 - (U)x : (U)(x / y))
#define REMAINDER_S(U) (y == 0 ? ~(U)0 : y == -1 ? 0 : (U)(x % y))
#define RUN_DIV(suffix, T, U, quotient, rest)                                                                          \
	RUN2(div_##suffix, T, U, quotient)                                                                             \
	RUN2(rem_##suffix, T, U, rest)
RUN_DIV(u16, u16, u16, DIVIDE_U(u16), REMAINDER_U(u16))
RUN_DIV(s16, i16, u16, DIVIDE_S(u16), REMAINDER_S(u16))
RUN_DIV(u32, u32, u32, DIVIDE_U(u32), REMAINDER_U(u32))
RUN_DIV(s32, i32, u32, DIVIDE_S(u32), REMAINDER_S(u32))
RUN_DIV(u64, u64, u64, DIVIDE_U(u64), REMAINDER_U(u64))
RUN_DIV(s64, i64, u64, DIVIDE_S(u64), REMAINDER_S(u64))

static inline bool all_types(struct decoder *d, u32 n, enum ptx_type t)
{
	const enum ptx_type types[] = {t, t, t, t};
	return alu_operands(d, n, types);
}

bool decode_int_arith(struct decoder *d, enum arith op, enum ptx_type t)
{
	static const by_type runs[] = {
		[A_ADD] = SAME(add),        [A_SUB] = SAME(sub),        [A_MIN] = BOTH(min), [A_MAX] = BOTH(max),
		[A_NEG] = ONLY_SIGNED(neg), [A_ABS] = ONLY_SIGNED(abs), [A_DIV] = BOTH(div),
	};
	run_fn *run = op < ARRAY_LEN(runs) ? runs[op][width_index(t)][is_signed(t)] : NULL;
	bool relu = (op == A_MIN || op == A_MAX) && t == PT_S32 && take(d, "relu");
	if (relu && !need_sm(d, 90))
		return false;
	if (relu)
		run = op == A_MIN ? min_relu : max_relu;
	if ((op == A_ADD || op == A_SUB) && t == PT_S32 && take(d, "sat"))
		run = op == A_ADD ? add_sat : sub_sat;
	return all_types(d, op == A_NEG || op == A_ABS ? 2 : 3, t) && alu_run(d, run);
}

static bool is_arith_int(enum ptx_type t)
{
	return is_int(t) && ptx_bits(t) >= 16;
}

static bool mul_or_mad(struct decoder *d, bool add)
{
	static const by_type low[2] = {SAME(mul), SAME(mad)}, high[2] = {BOTH(mul_hi), BOTH(mad_hi)};
	static run_fn *const wide[2][2][2] = {{{mul_wide_u16, mul_wide_s16}, {mul_wide_u32, mul_wide_s32}},
					      {{mad_wide_u16, mad_wide_s16}, {mad_wide_u32, mad_wide_s32}}};
	enum ptx_type t = d->i->type[0] = take_type(d);
	if (t == PT_F32 || t == PT_F64)
		return decode_float_arith(d, add ? A_FMA : A_MUL, t);
	if (is_half(t))
		return !add && decode_half_arith(d, A_MUL, t);
	if (!is_arith_int(t))
		return false;
	u32 w = width_index(t), s = is_signed(t);
	switch (take_one_of(d, "lo hi wide")) {
	case 0: return all_types(d, add ? 4 : 3, t) && alu_run(d, low[add][w][s]);
	case 1:
		if (add && t == PT_S32 && take(d, "sat"))
			return all_types(d, 4, t) && alu_run(d, mad_hi_sat);
		return all_types(d, add ? 4 : 3, t) && alu_run(d, high[add][w][s]);
	case 2: {
		if (w == 2)
			return false;
		enum ptx_type twice = (enum ptx_type)(t + 1);
		const enum ptx_type types[] = {twice, t, t, twice};
		return alu_operands(d, add ? 4 : 3, types) && alu_run(d, wide[add][w][s]);
	}
	default: return false;
	}
}

bool decode_mul(struct decoder *d)
{
	return mul_or_mad(d, false);
}

bool decode_mad(struct decoder *d)
{
	return mul_or_mad(d, true);
}

bool decode_rem(struct decoder *d)
{
	static const by_type rem = BOTH(rem);
	enum ptx_type t = take_type(d);
	return is_arith_int(t) && all_types(d, 3, t) && alu_run(d, rem[width_index(t)][is_signed(t)]);
}

bool decode_sad(struct decoder *d)
{
	static const by_type sad = BOTH(sad);
	enum ptx_type t = take_type(d);
	return is_arith_int(t) && all_types(d, 4, t) && alu_run(d, sad[width_index(t)][is_signed(t)]);
}

/* --- 24 bits ---------------------------------------------------------------------------------------------------- */

#define U24(v) ((u64)(v)&0xFFFFFF)
#define S24(v) ((i64)((i32)((u32)(v) << 8) >> 8))
RUN2(mul24_lo_u32, u32, u32, U24(x) * U24(y))
RUN2(mul24_lo_s32, u32, u32, S24(x) * S24(y))
RUN2(mul24_hi_u32, u32, u32, U24(x) * U24(y) >> 16)
RUN2(mul24_hi_s32, u32, u32, S24(x) * S24(y) >> 16)
RUN3(mad24_lo_u32, u32, u32, u32, U24(x) * U24(y) + z)
RUN3(mad24_lo_s32, u32, u32, u32, S24(x) * S24(y) + z)
RUN3(mad24_hi_u32, u32, u32, u32, (U24(x) * U24(y) >> 16) + z)
RUN3(mad24_hi_s32, u32, u32, u32, (S24(x) * S24(y) >> 16) + z)
RUN3(mad24_hi_sat, u32, i32, u32, saturate_s32((i32)(S24(x) * S24(y) >> 16) + (i64)z))

static bool decode_24(struct decoder *d, bool add)
{
	static run_fn *const runs[2][2][2] = {{{mul24_lo_u32, mul24_lo_s32}, {mul24_hi_u32, mul24_hi_s32}},
					      {{mad24_lo_u32, mad24_lo_s32}, {mad24_hi_u32, mad24_hi_s32}}};
	enum ptx_type t = take_type(d);
	int high = take_one_of(d, "lo hi");
	if (high < 0 || (t != PT_U32 && t != PT_S32) || !all_types(d, add ? 4 : 3, t))
		return false;
	bool sat = add && high && t == PT_S32 && take(d, "sat");
	return alu_run(d, sat ? mad24_hi_sat : runs[add][high][t == PT_S32]);
}

bool decode_mul24(struct decoder *d)
{
	return decode_24(d, false);
}

bool decode_mad24(struct decoder *d)
{
	return decode_24(d, true);
}

/* --- dot products ----------------------------------------------------------------------------------------------- */

#define BYTE_U(v, k) ((u32)(u8)((v) >> 8 * (k)))
#define BYTE_S(v, k) ((u32)(i8)((v) >> 8 * (k)))
#define HALF_U(v, k) ((u32)(u16)((v) >> 16 * (k)))
#define HALF_S(v, k) ((u32)(i16)((v) >> 16 * (k)))
#define DOT4(A, B) (z + A(x, 0) * B(y, 0) + A(x, 1) * B(y, 1) + A(x, 2) * B(y, 2) + A(x, 3) * B(y, 3))
#define DOT2(A, B, from) (z + A(x, 0) * B(y, from) + A(x, 1) * B(y, from + 1))
RUN3(dp4a_uu, u32, u32, u32, DOT4(BYTE_U, BYTE_U))
RUN3(dp4a_us, u32, u32, u32, DOT4(BYTE_U, BYTE_S))
RUN3(dp4a_su, u32, u32, u32, DOT4(BYTE_S, BYTE_U))
RUN3(dp4a_ss, u32, u32, u32, DOT4(BYTE_S, BYTE_S))
RUN3(dp2a_lo_uu, u32, u32, u32, DOT2(HALF_U, BYTE_U, 0))
RUN3(dp2a_lo_us, u32, u32, u32, DOT2(HALF_U, BYTE_S, 0))
RUN3(dp2a_lo_su, u32, u32, u32, DOT2(HALF_S, BYTE_U, 0))
RUN3(dp2a_lo_ss, u32, u32, u32, DOT2(HALF_S, BYTE_S, 0))
RUN3(dp2a_hi_uu, u32, u32, u32, DOT2(HALF_U, BYTE_U, 2))
RUN3(dp2a_hi_us, u32, u32, u32, DOT2(HALF_U, BYTE_S, 2))
RUN3(dp2a_hi_su, u32, u32, u32, DOT2(HALF_S, BYTE_U, 2))
RUN3(dp2a_hi_ss, u32, u32, u32, DOT2(HALF_S, BYTE_S, 2))

static bool decode_dot(struct decoder *d, run_fn *const runs[2][2])
{
	enum ptx_type a = take_type(d), b = take_type(d);
	if ((a != PT_U32 && a != PT_S32) || (b != PT_U32 && b != PT_S32))
		return false;
	return OPERANDS(d, PT_B32, PT_B32, PT_B32, PT_B32) && alu_run(d, runs[a == PT_S32][b == PT_S32]);
}

bool decode_dp4a(struct decoder *d)
{
	static run_fn *const runs[2][2] = {{dp4a_uu, dp4a_us}, {dp4a_su, dp4a_ss}};
	return decode_dot(d, runs);
}

bool decode_dp2a(struct decoder *d)
{
	static run_fn *const low[2][2] = {{dp2a_lo_uu, dp2a_lo_us}, {dp2a_lo_su, dp2a_lo_ss}};
	static run_fn *const high[2][2] = {{dp2a_hi_uu, dp2a_hi_us}, {dp2a_hi_su, dp2a_hi_ss}};
	int hi = take_one_of(d, "lo hi");
	return hi >= 0 && decode_dot(d, hi ? high : low);
}

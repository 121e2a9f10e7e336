/* Comparisons and selections. */
#include "runtime/sim/alu.h"

#include <string.h>

/* --- comparing
 * ------------------------------------------------------------------------------------------------------ */

/* Compares all lanes; r is 1 where the comparison holds, else 0. */
typedef void compare_fn(const u64 *a, const u64 *b, u64 *r);

#define COMPARE(name, T, get, expr)                                                                                    \
	static void name(const u64 *a, const u64 *b, u64 *r)                                                           \
	{                                                                                                              \
		ALL(l)                                                                                                 \
		{                                                                                                      \
			T x = get(a[l]), y = get(b[l]);                                                                \
			r[l] = (u64)(expr);                                                                            \
		}                                                                                                      \
	}

#define GET_U32(v) ((u32)(v))
#define GET_S16(v) ((i32)(i16)(v))
#define GET_S32(v) ((i32)(v))
#define GET_U64(v) (v)
#define GET_S64(v) ((i64)(v))
#define GET_F32(v) get_f32(v, 0)
#define GET_F32_FTZ(v) get_f32(v, F_FTZ)
#define GET_F64(v) fp_f64_bits(v)
#define GET_F16(v) fp_from_f16((u16)(v))
#define GET_F16_HIGH(v) fp_from_f16((u16)((v) >> 16))
#define GET_BF16(v) fp_from_bf16((u16)(v))
#define GET_BF16_HIGH(v) fp_from_bf16((u16)((v) >> 16))
static inline float f16_flushed(u16 h)
{
	return fp_from_f16(h & 0x7C00 ? h : h & 0x8000);
}
#define GET_F16_FTZ(v) f16_flushed((u16)(v))
#define GET_F16_FTZ_HIGH(v) f16_flushed((u16)((v) >> 16))

#define COMPARE_INTS(suffix, T, get)                                                                                   \
	COMPARE(eq_##suffix, T, get, x == y)                                                                           \
	COMPARE(ne_##suffix, T, get, x != y)                                                                           \
	COMPARE(lt_##suffix, T, get, x < y)                                                                            \
	COMPARE(le_##suffix, T, get, x <= y)                                                                           \
	COMPARE(gt_##suffix, T, get, x > y)                                                                            \
	COMPARE(ge_##suffix, T, get, x >= y)
/* Ordered comparisons, `ne` too, are false for NaN; the comparisons with the suffix u are true. */
#define COMPARE_FLOATS(suffix, T, get)                                                                                 \
	COMPARE(eq_##suffix, T, get, x == y)                                                                           \
	COMPARE(ne_##suffix, T, get, (x < y) | (x > y))                                                                \
	COMPARE(lt_##suffix, T, get, x < y)                                                                            \
	COMPARE(le_##suffix, T, get, x <= y)                                                                           \
	COMPARE(gt_##suffix, T, get, x > y)                                                                            \
	COMPARE(ge_##suffix, T, get, x >= y)                                                                           \
	COMPARE(equ_##suffix, T, get, !((x < y) | (x > y)))                                                            \
	COMPARE(neu_##suffix, T, get, !(x == y))                                                                       \
	COMPARE(ltu_##suffix, T, get, !(x >= y))                                                                       \
	COMPARE(leu_##suffix, T, get, !(x > y))                                                                        \
	COMPARE(gtu_##suffix, T, get, !(x <= y))                                                                       \
	COMPARE(geu_##suffix, T, get, !(x < y))                                                                        \
	COMPARE(num_##suffix, T, get, (x == x) & (y == y))                                                             \
	COMPARE(nan_##suffix, T, get, (x != x) | (y != y))

COMPARE_INTS(u32, u32, GET_U32)
COMPARE_INTS(s16, i32, GET_S16)
COMPARE_INTS(s32, i32, GET_S32)
COMPARE_INTS(u64, u64, GET_U64)
COMPARE_INTS(s64, i64, GET_S64)
COMPARE_FLOATS(f32, float, GET_F32)
COMPARE_FLOATS(f32_ftz, float, GET_F32_FTZ)
COMPARE_FLOATS(f64, double, GET_F64)
COMPARE_FLOATS(f16, float, GET_F16)
COMPARE_FLOATS(f16_high, float, GET_F16_HIGH)
COMPARE_FLOATS(f16_ftz, float, GET_F16_FTZ)
COMPARE_FLOATS(f16_ftz_high, float, GET_F16_FTZ_HIGH)
COMPARE_FLOATS(bf16, float, GET_BF16)
COMPARE_FLOATS(bf16_high, float, GET_BF16_HIGH)

enum { C_EQ, C_NE, C_LT, C_LE, C_GT, C_GE, C_EQU, NUM_COMPARES = 14, C_LO = 14 };
static const char compare_names[] = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan lo ls hi hs";
enum {
	IN_U32,
	IN_S16,
	IN_S32,
	IN_U64,
	IN_S64,
	IN_F32,
	IN_F32_FTZ,
	IN_F64,
	IN_F16,
	IN_F16_HIGH,
	IN_F16_FTZ,
	IN_F16_FTZ_HIGH,
	IN_BF16,
	IN_BF16_HIGH
};

#define INT_ROW(s)                                                                                                     \
	{                                                                                                              \
		eq_##s, ne_##s, lt_##s, le_##s, gt_##s, ge_##s                                                         \
	}
#define FLOAT_ROW(s)                                                                                                   \
	{                                                                                                              \
		eq_##s, ne_##s, lt_##s, le_##s, gt_##s, ge_##s, equ_##s, neu_##s, ltu_##s, leu_##s, gtu_##s, geu_##s,  \
			num_##s,                                                                                       \
			nan_##s                                                                                        \
	}
static compare_fn *const compares[][NUM_COMPARES] = {
	[IN_U32] = INT_ROW(u32),           [IN_S16] = INT_ROW(s16),
	[IN_S32] = INT_ROW(s32),           [IN_U64] = INT_ROW(u64),
	[IN_S64] = INT_ROW(s64),           [IN_F32] = FLOAT_ROW(f32),
	[IN_F32_FTZ] = FLOAT_ROW(f32_ftz), [IN_F64] = FLOAT_ROW(f64),
	[IN_F16] = FLOAT_ROW(f16),         [IN_F16_HIGH] = FLOAT_ROW(f16_high),
	[IN_F16_FTZ] = FLOAT_ROW(f16_ftz), [IN_F16_FTZ_HIGH] = FLOAT_ROW(f16_ftz_high),
	[IN_BF16] = FLOAT_ROW(bf16),       [IN_BF16_HIGH] = FLOAT_ROW(bf16_high),
};

enum { NO_BOOL, BOOL_AND, BOOL_OR, BOOL_XOR };
static void combine(u64 *r, const u64 *c, u32 how)
{
	ALL(l)
	r[l] = how == BOOL_AND ? r[l] & c[l] : how == BOOL_OR ? r[l] | c[l] : r[l] ^ c[l];
}

static void invert(u64 *r)
{
	ALL(l)
	r[l] ^= 1;
}

/* The predicate operand c after the two numbers, with its negation applied. */
static void third(const struct warp *w, const struct instr *i, u64 c[LANES])
{
	u64 space[LANES];
	struct operand o = i->ops[3];
	o.negated = false;
	memcpy(c, operand_lanes(w, &o, 1, space), LANES * sizeof *c);
	if (i->ops[3].negated)
		invert(c);
}

/* Fields of mods, 8 bits each: the comparison, the input type, the operator for a third predicate. */
#define MODS_COMPARE(m) ((m)&0xFF)
#define MODS_INPUT(m) ((m) >> 8 & 0xFF)
#define MODS_BOOL(m) ((u32)((m) >> 16) & 0xFF)
#define COMPARE_OF(m, high) compares[MODS_INPUT(m) + (high)][MODS_COMPARE(m)]

static void run_setp(struct warp *w, const struct instr *i, u32 mask)
{
	int bits = ptx_bits(i->type[0]);
	SOURCE(a, 1, bits);
	SOURCE(b, 2, bits);
	RESULT(d, 0);
	COMPARE_OF(i->mods, 0)(a, b, d);
	FINISH(d, 0);
}

/* setp with p|q: q is the complement of p; for packed numbers p is the result for the low and q for the high number. */
static void run_setp_full(struct warp *w, const struct instr *i, u32 mask)
{
	int bits = ptx_bits(i->type[0]);
	SOURCE(a, 1, bits);
	SOURCE(b, 2, bits);
	u64 p[LANES], q[LANES], c[LANES];
	bool pair = i->ops[0].kind == O_VECTOR;
	const struct operand *to = pair ? i->ops[0].items : i->ops;
	COMPARE_OF(i->mods, 0)(a, b, p);
	if (is_packed(i->type[0])) {
		COMPARE_OF(i->mods, 1)(a, b, q);
	} else {
		memcpy(q, p, sizeof q);
		invert(q);
	}
	if (MODS_BOOL(i->mods)) {
		third(w, i, c);
		combine(p, c, MODS_BOOL(i->mods));
		combine(q, c, MODS_BOOL(i->mods));
	}
	finish(w, &to[0], mask, p);
	if (pair)
		finish(w, &to[1], mask, q);
}

/* set: all ones or 1.0 where the comparison holds; for packed numbers in each half. */
static void run_set(struct warp *w, const struct instr *i, u32 mask)
{
	int bits = ptx_bits(i->type[1]);
	SOURCE(a, 1, bits);
	SOURCE(b, 2, bits);
	u64 p[LANES], q[LANES] = {0}, c[LANES];
	bool pair = is_packed(i->type[1]), third_operand = MODS_BOOL(i->mods);
	COMPARE_OF(i->mods, 0)(a, b, p);
	if (pair)
		COMPARE_OF(i->mods, 1)(a, b, q);
	if (third_operand) {
		third(w, i, c);
		combine(p, c, MODS_BOOL(i->mods));
		if (pair)
			combine(q, c, MODS_BOOL(i->mods));
	}
	u64 one;
	switch (i->type[0]) {
	case PT_F32: one = 0x3F800000; break;
	case PT_F16:
	case PT_F16X2: one = 0x3C00; break;
	case PT_BF16:
	case PT_BF16X2: one = 0x3F80; break;
	case PT_U16:
	case PT_S16: one = UINT16_MAX; break;
	default: one = UINT32_MAX;
	}
	ALL(l)
	p[l] = p[l] * one + (q[l] * one << 16);
	finish(w, &i->ops[0], mask, p);
}

/* --- decoding
 * -------------------------------------------------------------------------------------------------------- */

/* Takes the comparison, the boolean operator and .ftz for operands of type t. */
static bool take_compare(struct decoder *d, enum ptx_type t)
{
	static const u8 inputs[] = {
		[PT_B16] = IN_U32, [PT_B32] = IN_U32, [PT_B64] = IN_U64,   [PT_U16] = IN_U32,   [PT_U32] = IN_U32,
		[PT_U64] = IN_U64, [PT_S16] = IN_S16, [PT_S32] = IN_S32,   [PT_S64] = IN_S64,   [PT_F32] = IN_F32,
		[PT_F64] = IN_F64, [PT_F16] = IN_F16, [PT_F16X2] = IN_F16, [PT_BF16] = IN_BF16, [PT_BF16X2] = IN_BF16,
	};
	int op = take_one_of(d, compare_names), bool_op = take_one_of(d, "and or xor") + 1;
	bool sized = is_bits(t) || is_int(t),
	     known = sized ? ptx_bits(t) >= 16 && ptx_bits(t) <= 64 : is_half(t) || t == PT_F32 || t == PT_F64;
	if (op < 0 || !known)
		return false;
	bool unsigned_name = op >= C_LO;
	if (unsigned_name)
		op = op - C_LO + C_LT;
	bool allowed = is_bits(t)       ? op <= C_NE
		       : is_unsigned(t) ? op < C_EQU
		       : is_signed(t)   ? op < C_EQU && !unsigned_name
					: !unsigned_name;
	if (!allowed)
		return decode_fail(d, "'%s' does not exist: this comparison is not of .%s", d->i->opcode,
				   ptx_type_name(t));
	u64 input = inputs[t];
	if ((t == PT_BF16 || t == PT_BF16X2) && !need_sm(d, 90))
		return false;
	if ((t == PT_F32 || t == PT_F16 || t == PT_F16X2) && take(d, "ftz"))
		input = t == PT_F32 ? IN_F32_FTZ : IN_F16_FTZ;
	d->i->mods = (u64)op | input << 8 | (u64)bool_op << 16;
	return true;
}

/* Checks the two numbers, and the predicate operand of a boolean operator. */
static bool compare_operands(struct decoder *d, enum ptx_type t)
{
	struct instr *i = d->i;
	bool three = MODS_BOOL(i->mods);
	if (!want_operands(d, three ? 4 : 3, three ? 4 : 3))
		return false;
	for (u32 k = 1; k < 3; k++)
		if (i->ops[k].kind == O_SINK || !alu_operand(d, &i->ops[k], t, false))
			return false;
	if (three && (i->ops[3].kind != O_REG || i->ops[3].reg_type != PT_PRED))
		return decode_fail(d, "'%s' takes a predicate", i->opcode);
	return true;
}

bool decode_setp(struct decoder *d)
{
	struct instr *i = d->i;
	enum ptx_type t = i->type[0] = take_type(d);
	if (!take_compare(d, t) || !compare_operands(d, t))
		return false;
	bool pair = i->ops[0].kind == O_VECTOR;
	if (pair ? i->ops[0].nitems != 2 || (is_half(t) && !is_packed(t)) : is_packed(t))
		return decode_fail(d, "'%s' has %s", i->opcode, pair ? "one result" : "two results");
	for (u32 k = 0; k < (pair ? 2 : 1); k++) {
		const struct operand *o = pair ? &i->ops[0].items[k] : &i->ops[0];
		if (o->negated || (o->kind != O_SINK && (o->kind != O_REG || o->reg_type != PT_PRED)))
			return decode_fail(d, "the result of '%s' is a predicate", i->opcode);
	}
	return alu_run(d, pair || MODS_BOOL(i->mods) ? run_setp_full : run_setp);
}

bool decode_set(struct decoder *d)
{
	struct instr *i = d->i;
	enum ptx_type to = i->type[0] = take_type(d), t = i->type[1] = take_type(d);
	if (!take_compare(d, t) || !compare_operands(d, t))
		return false;
	bool ok;
	if (is_packed(t))
		ok = to == t;
	else if (is_half(t))
		ok = to == t || to == PT_U16 || to == PT_S16 || to == PT_U32 || to == PT_S32;
	else
		ok = to == PT_U32 || to == PT_S32 || to == PT_F32;
	if (i->ops[0].kind != O_REG && i->ops[0].kind != O_SINK)
		return false;
	return ok && alu_operand(d, &i->ops[0], to, false) && alu_run(d, run_set);
}

/* --- selecting
 * ------------------------------------------------------------------------------------------------------ */

static void run_selp(struct warp *w, const struct instr *i, u32 mask)
{
	int bits = ptx_bits(i->type[0]);
	SOURCE(a, 1, bits);
	SOURCE(b, 2, bits);
	SOURCE(c, 3, 1);
	RESULT(d, 0);
	ALL(l)
	{
		u64 yes = 0 - c[l];
		d[l] = (a[l] & yes) | (b[l] & ~yes);
	}
	FINISH(d, 0);
}

static bool is_word(enum ptx_type t)
{
	return ((is_bits(t) || is_int(t)) && ptx_bits(t) >= 16 && ptx_bits(t) <= 64) || t == PT_F32 || t == PT_F64;
}

bool decode_selp(struct decoder *d)
{
	enum ptx_type t = d->i->type[0] = take_type(d);
	return is_word(t) && OPERANDS(d, t, t, t, PT_PRED) && alu_run(d, run_selp);
}

/* slct: a where c >= 0, else b; a NaN counts as negative. */
static void run_slct(struct warp *w, const struct instr *i, u32 mask)
{
	int bits = ptx_bits(i->type[0]);
	SOURCE(a, 1, bits);
	SOURCE(b, 2, bits);
	SOURCE(c, 3, 32);
	RESULT(d, 0);
	bool is_f32 = i->type[1] == PT_F32;
	u32 flags = (u32)i->mods;
	ALL(l)
	d[l] = (is_f32 ? get_f32(c[l], flags) >= 0 : (i32)c[l] >= 0) ? a[l] : b[l];
	FINISH(d, 0);
}

bool decode_slct(struct decoder *d)
{
	enum ptx_type t = d->i->type[0] = take_type(d), c = d->i->type[1] = take_type(d);
	if (c != PT_S32 && c != PT_F32)
		return false;
	d->i->mods = c == PT_F32 && take(d, "ftz") ? F_FTZ : 0;
	return is_word(t) && OPERANDS(d, t, t, t, c) && alu_run(d, run_slct);
}

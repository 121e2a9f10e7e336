/* f16 and bf16 arithmetic, scalar and packed. Each operation rounds once in effect: an f32 has enough bits that
 * rounding sums and products of these types twice is harmless; an fma is rounded to odd first. */
#include "runtime/sim/alu.h"

#include "ir/scalar_math.h"

/* --- one number --------------------------------------------------------------------------------------------------- */

static inline float get_half(u16 h, bool bf, u32 flags)
{
	return bf ? fp_from_bf16(h) : fp_from_f16(flags & F_FTZ && !(h & 0x7C00) ? h & 0x8000 : h);
}

static inline u16 put_half(float r, bool bf, u32 flags)
{
	if (flags & F_SAT) {
		r = r > 0 ? r : 0;
		r = r < 1 ? r : 1;
	}
	if (flags & F_RELU)
		r = r <= 0 ? 0 : r;
	if (flags & F_FTZ && __builtin_fabsf(r) < TINY_F16)
		r = __builtin_copysignf(0, r);
	return bf ? fp_to_bf16(r) : fp_to_f16(r);
}

static inline u16 half_op(enum arith op, u16 a, u16 b, u16 c, bool bf, u32 flags)
{
	float x = get_half(a, bf, flags), y = get_half(b, bf, flags), z = get_half(c, bf, flags), r;
	switch (op) {
	case A_ADD: r = x + y; break;
	case A_SUB: r = x - y; break;
	case A_MUL: r = x * y; break;
	case A_FMA: r = odd_f32(odd_fma(x, y, z)); break;
	case A_NEG: r = -x; break;
	case A_ABS: r = __builtin_fabsf(x); break;
	default:
		if (flags & F_XORSIGN) {
			x = __builtin_fabsf(x);
			y = __builtin_fabsf(y);
		}
		r = op == A_MIN ? (flags & F_NAN ? minimum_f32(x, y) : minnum_f32(x, y))
				: (flags & F_NAN ? maximum_f32(x, y) : maxnum_f32(x, y));
	}
	u16 h = put_half(r, bf, flags);
	return flags & F_XORSIGN && r == r ? h | ((a ^ b) & 0x8000) : h;
}

/* --- loops
 * ---------------------------------------------------------------------------------------------------------- */

/* Missing operands are replaced by the last existing one. */
#define HALF_SOURCES                                                                                                   \
	SOURCE(a, 1, 32);                                                                                              \
	SOURCE(b, MIN(2, i->nops - 1), 32);                                                                            \
	SOURCE(c, MIN(3, i->nops - 1), 32);                                                                            \
	RESULT(d, 0)

#define RUN_ONE(name, op, bf)                                                                                          \
	static void name(struct warp *w, const struct instr *i, u32 mask)                                              \
	{                                                                                                              \
		HALF_SOURCES;                                                                                          \
		ALL(l)                                                                                                 \
		d[l] = half_op(op, (u16)a[l], (u16)b[l], (u16)c[l], bf, 0);                                            \
		FINISH(d, 0);                                                                                          \
	}
/* Two passes, one for each half, so that each loop vectorises. */
#define RUN_PAIR(name, op, bf)                                                                                         \
	static void name(struct warp *w, const struct instr *i, u32 mask)                                              \
	{                                                                                                              \
		HALF_SOURCES;                                                                                          \
		u64 low[LANES];                                                                                        \
		ALL(l)                                                                                                 \
		low[l] = half_op(op, (u16)a[l], (u16)b[l], (u16)c[l], bf, 0);                                          \
		ALL(l)                                                                                                 \
		d[l] = low[l] | (u64)half_op(op, (u16)(a[l] >> 16), (u16)(b[l] >> 16), (u16)(c[l] >> 16), bf, 0) <<    \
			16;                                                                                            \
		FINISH(d, 0);                                                                                          \
	}
#define HALF_RUNS(name, op)                                                                                            \
	RUN_ONE(name##_f16, op, false)                                                                                 \
	RUN_ONE(name##_bf16, op, true)                                                                                 \
	RUN_PAIR(name##_f16x2, op, false)                                                                              \
	RUN_PAIR(name##_bf16x2, op, true)
HALF_RUNS(add, A_ADD)
HALF_RUNS(sub, A_SUB)
HALF_RUNS(mul, A_MUL)
HALF_RUNS(fused, A_FMA)
HALF_RUNS(min, A_MIN)
HALF_RUNS(max, A_MAX)
HALF_RUNS(neg, A_NEG)
HALF_RUNS(abs, A_ABS)

/* Slow path for all flags. */
static void run_flagged(struct warp *w, const struct instr *i, u32 mask)
{
	HALF_SOURCES;
	enum arith op = (enum arith)(i->mods >> 16);
	u32 flags = (u32)i->mods & 0xFF;
	bool bf = i->type[0] == PT_BF16 || i->type[0] == PT_BF16X2, pair = is_packed(i->type[0]);
	for (u32 l = 0; l < LANES; l++) {
		u32 x = (u32)a[l], y = (u32)b[l], z = (u32)c[l];
		d[l] = half_op(op, (u16)x, (u16)y, (u16)z, bf, flags);
		if (pair)
			d[l] |= (u64)half_op(op, (u16)(x >> 16), (u16)(y >> 16), (u16)(z >> 16), bf, flags) << 16;
	}
	FINISH(d, 0);
}

/* --- decoding
 * -------------------------------------------------------------------------------------------------------- */

bool decode_half_arith(struct decoder *d, enum arith op, enum ptx_type t)
{
#define RUNS(name)                                                                                                     \
	{                                                                                                              \
		name##_f16, name##_f16x2, name##_bf16, name##_bf16x2                                                   \
	}
	static run_fn *const runs[NUM_ARITH][4] = {
		[A_ADD] = RUNS(add), [A_SUB] = RUNS(sub), [A_MUL] = RUNS(mul), [A_FMA] = RUNS(fused),
		[A_MIN] = RUNS(min), [A_MAX] = RUNS(max), [A_NEG] = RUNS(neg), [A_ABS] = RUNS(abs),
	};
	const enum ptx_type types[] = {t, t, t, t};
	bool bf = t == PT_BF16 || t == PT_BF16X2, unary = op == A_NEG || op == A_ABS,
	     minmax = op == A_MIN || op == A_MAX;
	if (op >= A_DIV || !alu_operands(d, op == A_FMA ? 4 : unary ? 2 : 3, types))
		return false;
	if (bf && !need_sm(d, op <= A_MUL ? 90 : 80))
		return false;
	u64 flags = !bf && take(d, "ftz") ? F_FTZ : 0;
	if (minmax) {
		flags |= take(d, "NaN") ? F_NAN : 0;
		if (take(d, "xorsign")) {
			if (!need_sm(d, 86) || !take(d, "abs"))
				return false;
			flags |= F_XORSIGN;
		}
	} else if (!unary) {
		if (!take(d, "rn") && op == A_FMA)
			return decode_fail(d, "'%s' needs a rounding", d->i->opcode);
		flags |= op == A_FMA && take(d, "relu") ? F_RELU : 0;
		flags |= !bf && !(flags & F_RELU) && take(d, "sat") ? F_SAT : 0;
	}
	d->i->mods = flags | (u64)op << 16;
	return alu_run(d, flags ? run_flagged : runs[op][t - PT_F16]);
}

/* --- ex2 and tanh
 * ------------------------------------------------------------------------------------------------------ */

static u16 half_function(u16 h, bool tanh, bool bf, u32 flags)
{
	float x = get_half(h, bf, 0);
	x = flags & F_FTZ ? get_f32(fp_bits_f32(x), F_FTZ) : x;
	float r = tanh ? (float)(tanhf)(x) : exp2_f32(x);
	r = flags & F_FTZ ? fp_f32_bits(flush_f32(fp_bits_f32(r))) : r;
	return put_half(r, bf, 0);
}

static void run_function(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	bool tanh = i->mods >> 8, bf = i->type[0] == PT_BF16 || i->type[0] == PT_BF16X2, pair = is_packed(i->type[0]);
	u32 flags = (u32)i->mods & 0xFF;
	EACH_LANE(l, mask)
	{
		u32 r = half_function((u16)a[l], tanh, bf, flags);
		if (pair)
			r |= (u32)half_function((u16)(a[l] >> 16), tanh, bf, flags) << 16;
		set_reg(w, &i->ops[0], l, r);
	}
}

bool decode_half_function(struct decoder *d, bool tanh, enum ptx_type t)
{
	bool bf = t == PT_BF16 || t == PT_BF16X2;
	d->i->type[0] = t;
	if (bf && !need_sm(d, 90))
		return false;
	bool flush = bf && !tanh;
	if (flush && !take(d, "ftz"))
		return false;
	d->i->mods = (flush ? F_FTZ : 0) | (u64)tanh << 8;
	return OPERANDS(d, t, t) && alu_run(d, run_function);
}

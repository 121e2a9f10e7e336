/* f16 and bf16 arithmetic, scalar and packed. Each operation rounds once in effect: an f32 has enough bits that
 * rounding sums and products of these types twice is harmless; an fma is rounded to odd first. */
#include "runtime/sim/alu.h"

#include "ir/scalar_math.h"

/* --- one number --------------------------------------------------------------------------------------------------- */

static inline u16 put_half(float r, bool bf, u32 flags)
{
	r = flags & F_SAT ? (float)saturated(r) : r;
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

/* --- loops ------------------------------------------------------------------------------------------------------- */

/* Missing operands are replaced by the last existing one. */
#define HALF_SOURCES                                                                                                   \
	SOURCE(a, 1, 32);                                                                                              \
	SOURCE(b, MIN(2, i->nops - 1), 32);                                                                            \
	SOURCE(c, MIN(3, i->nops - 1), 32)

#define HALF_ONE(name, op, bf)                                                                                         \
	RUN(name, u16, HALF_SOURCES, , half_op(op, (u16)a[l], (u16)b[l], (u16)c[l], bf, 0))
/* Two passes, one for each half, so that each loop vectorises. */
#define HALF_PAIR(name, op, bf)                                                                                        \
	void ptx_##name(struct warp *w, const struct instr *i, u32 mask)                                               \
	{                                                                                                              \
		HALF_SOURCES;                                                                                          \
		RESULT(d, 0);                                                                                          \
		u64 low[LANES];                                                                                        \
		ALL(l)                                                                                                 \
		low[l] = half_op(op, (u16)a[l], (u16)b[l], (u16)c[l], bf, 0);                                          \
		ALL(l)                                                                                                 \
		d[l] = low[l] | (u64)half_op(op, (u16)(a[l] >> 16), (u16)(b[l] >> 16), (u16)(c[l] >> 16), bf, 0) <<    \
			16;                                                                                            \
		FINISH(d, 0);                                                                                          \
	}

#define HALF(id, text, operands, sm, LOOP, ...) LOOP(id, __VA_ARGS__)
#include "runtime/sim/forms.def"

/* Slow path for all flags. */
void run_half(struct warp *w, const struct instr *i, u32 mask)
{
	HALF_SOURCES;
	RESULT(d, 0);
	enum arith op = (enum arith)i->operation;
	u32 flags = float_flags(i);
	bool bf = is_bf(i->type[0]), pair = is_packed(i->type[0]);
	for (u32 l = 0; l < LANES; l++) {
		u32 x = (u32)a[l], y = (u32)b[l], z = (u32)c[l];
		d[l] = half_op(op, (u16)x, (u16)y, (u16)z, bf, flags);
		if (pair)
			d[l] |= (u64)half_op(op, (u16)(x >> 16), (u16)(y >> 16), (u16)(z >> 16), bf, flags) << 16;
	}
	FINISH(d, 0);
}

/* --- ex2 and tanh ------------------------------------------------------------------------------------------------ */

static u16 half_function(u16 h, bool tanh, bool bf, u32 flags)
{
	float x = get_half(h, bf, 0);
	x = flags & F_FTZ ? get_f32(fp_bits_f32(x), F_FTZ) : x;
	float r = tanh ? (float)(tanhf)(x) : exp2_f32(x);
	r = flags & F_FTZ ? fp_f32_bits(flush_f32(fp_bits_f32(r))) : r;
	return put_half(r, bf, 0);
}

void run_half_function(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	bool tanh = i->operation == HALF_TANH, bf = is_bf(i->type[0]), pair = is_packed(i->type[0]);
	u32 flags = float_flags(i);
	EACH_LANE(l, mask)
	{
		u32 r = half_function((u16)a[l], tanh, bf, flags);
		if (pair)
			r |= (u32)half_function((u16)(a[l] >> 16), tanh, bf, flags) << 16;
		set_reg(w, &i->ops[0], l, r);
	}
}

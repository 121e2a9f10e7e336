/* Comparisons, selections and moves. */
#include "runtime/sim/alu.h"

#include <string.h>

/* --- comparing --------------------------------------------------------------------------------------------------- */

/* Relations of two numbers. A comparison holds for some of them. */
enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };
static const u8 comparisons[] = {
	/* in the order of the modifier CMP: eq ne lt le gt ge */
	EQUAL, LESS | GREATER, LESS, LESS | EQUAL, GREATER, GREATER | EQUAL,
	/* equ neu ltu leu gtu geu */
	EQUAL | UNORDERED, LESS | GREATER | UNORDERED, LESS | UNORDERED, LESS | EQUAL | UNORDERED, GREATER | UNORDERED,
	GREATER | EQUAL | UNORDERED,
	/* num nan */
	LESS | EQUAL | GREATER, UNORDERED,
	/* lo ls hi hs */
	LESS, LESS | EQUAL, GREATER, GREATER | EQUAL,
};

/* Compares all lanes; r is 1 where one of the relations `holds` applies, else 0. */
typedef void compare_fn(const u64 *a, const u64 *b, u32 holds, u64 *r);

#define COMPARE(name, T, get)                                                                                          \
	static void compare_##name(const u64 *a, const u64 *b, u32 holds, u64 *r)                                      \
	{                                                                                                              \
		const bool less = holds & LESS, equal = holds & EQUAL, greater = holds & GREATER,                      \
			   unordered = holds & UNORDERED;                                                              \
		ALL(l)                                                                                                 \
		{                                                                                                      \
			T x = get(a[l]), y = get(b[l]);                                                                \
			bool lt = x < y, eq = x == y, gt = x > y;                                                      \
			r[l] = (lt & less) | (eq & equal) | (gt & greater) | (!(lt | eq | gt) & unordered);            \
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
#define GET_F16(v) get_half(v, false, 0)
#define GET_F16_FTZ(v) get_half(v, false, F_FTZ)
#define GET_BF16(v) get_half(v, true, 0)

COMPARE(u32, u32, GET_U32)
COMPARE(s16, i32, GET_S16)
COMPARE(s32, i32, GET_S32)
COMPARE(u64, u64, GET_U64)
COMPARE(s64, i64, GET_S64)
COMPARE(f32, float, GET_F32)
COMPARE(f32_ftz, float, GET_F32_FTZ)
COMPARE(f64, double, GET_F64)
COMPARE(f16, float, GET_F16)
COMPARE(f16_ftz, float, GET_F16_FTZ)
COMPARE(bf16, float, GET_BF16)

static compare_fn *compare_of(enum ptx_type t, bool ftz)
{
	switch (t) {
	case PT_B64:
	case PT_U64: return compare_u64;
	case PT_S16: return compare_s16;
	case PT_S32: return compare_s32;
	case PT_S64: return compare_s64;
	case PT_F32: return ftz ? compare_f32_ftz : compare_f32;
	case PT_F64: return compare_f64;
	case PT_F16:
	case PT_F16X2: return ftz ? compare_f16_ftz : compare_f16;
	case PT_BF16:
	case PT_BF16X2: return compare_bf16;
	default: return compare_u32;
	}
}

/* Compares operands 1 and 2 of type t. For packed numbers p is the result of the low numbers and q of the high numbers,
 * else q is the complement of p. */
static void compare(const struct warp *w, const struct instr *i, enum ptx_type t, u64 p[LANES], u64 q[LANES])
{
	compare_fn *run = compare_of(t, i->mod[M_FTZ]);
	u32 holds = comparisons[i->mod[M_CMP] - 1];
	SOURCE(a, 1, ptx_bits(t));
	SOURCE(b, 2, ptx_bits(t));
	run(a, b, holds, p);
	if (!is_packed(t)) {
		ALL(l)
		q[l] = p[l] ^ 1;
		return;
	}
	u64 x[LANES], y[LANES];
	ALL(l)
	{
		x[l] = a[l] >> 16;
		y[l] = b[l] >> 16;
	}
	run(x, y, holds, q);
}

/* Combines the results with the predicate operand after the two numbers, if there is one. */
static void combine(const struct warp *w, const struct instr *i, u64 p[LANES], u64 q[LANES])
{
	enum { NONE, AND, OR, XOR };
	u32 how = i->mod[M_BOOL];
	if (how == NONE)
		return;
	SOURCE(c, 3, 1);
	ALL(l)
	{
		p[l] = how == AND ? p[l] & c[l] : how == OR ? p[l] | c[l] : p[l] ^ c[l];
		q[l] = how == AND ? q[l] & c[l] : how == OR ? q[l] | c[l] : q[l] ^ c[l];
	}
}

void run_setp(struct warp *w, const struct instr *i, u32 mask)
{
	u64 p[LANES], q[LANES];
	compare(w, i, i->type[0], p, q);
	combine(w, i, p, q);
	finish(w, operand_items(&i->ops[0]), mask, p);
	if (i->ops[0].kind == O_VECTOR)
		finish(w, &i->ops[0].items[1], mask, q);
}

/* set: all ones or 1.0 where the comparison holds; for packed numbers in each half. */
void run_set(struct warp *w, const struct instr *i, u32 mask)
{
	u64 p[LANES], q[LANES], one;
	bool packed = is_packed(i->type[1]);
	compare(w, i, i->type[1], p, q);
	combine(w, i, p, q);
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
	p[l] = p[l] * one + (packed ? q[l] * one << 16 : 0);
	finish(w, &i->ops[0], mask, p);
}

/* --- selecting and moving ----------------------------------------------------------------------------------------- */

void run_selp(struct warp *w, const struct instr *i, u32 mask)
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

/* slct: a where c >= 0, else b; a NaN counts as negative. */
void run_slct(struct warp *w, const struct instr *i, u32 mask)
{
	int bits = ptx_bits(i->type[0]);
	SOURCE(a, 1, bits);
	SOURCE(b, 2, bits);
	SOURCE(c, 3, 32);
	RESULT(d, 0);
	bool is_f32 = i->type[1] == PT_F32;
	u32 flags = float_flags(i);
	ALL(l)
	d[l] = (is_f32 ? get_f32(c[l], flags) >= 0 : (i32)c[l] >= 0) ? a[l] : b[l];
	FINISH(d, 0);
}

/* mov {a, b, …} → d; the first element is the lowest. */
void run_pack(struct warp *w, const struct instr *i, u32 mask)
{
	const struct operand *from = &i->ops[1];
	int bits = ptx_bits(i->type[0]) / (int)from->nitems;
	u64 sum[LANES] = {0}, space[LANES];
	for (u32 k = 0; k < from->nitems; k++) {
		const u64 *a = operand_lanes(w, &from->items[k], bits, space);
		int by = bits * (int)k;
		ALL(l)
		sum[l] |= a[l] << by;
	}
	finish(w, &i->ops[0], mask, sum);
}

void run_unpack(struct warp *w, const struct instr *i, u32 mask)
{
	const struct operand *to = &i->ops[0];
	int bits = ptx_bits(i->type[0]) / (int)to->nitems;
	SOURCE(a, 1, ptx_bits(i->type[0]));
	u64 low = ((u64)1 << bits) - 1;
	for (u32 k = 0; k < to->nitems; k++) {
		u64 space[LANES], *d = begin(w, &to->items[k], mask, space);
		int by = bits * (int)k;
		ALL(l)
		d[l] = a[l] >> by & low;
		finish(w, &to->items[k], mask, d);
	}
}

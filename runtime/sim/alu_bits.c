/* Logic, shifts, bit fields and byte permutations. */
#include "runtime/sim/alu.h"

static bool any_of(enum ptx_type t, const char *classes)
{
	bool sized = ptx_bits(t) >= 16 && ptx_bits(t) <= 64;
	for (; *classes; classes++)
		if ((*classes == 'b' && sized && is_bits(t)) || (*classes == 'u' && sized && is_unsigned(t)) ||
		    (*classes == 's' && sized && is_signed(t)) || (*classes == 'p' && t == PT_PRED))
			return true;
	return false;
}

/* --- logic ------------------------------------------------------------------------------------------------------ */

RUN2(and_bits, u64, u64, x &y)
RUN2(or_bits, u64, u64, x | y)
RUN2(xor_bits, u64, u64, x ^ y)
RUN1(not_16, u16, u16, ~x)
RUN1(not_32, u32, u32, ~x)
RUN1(not_64, u64, u64, ~x)
RUN1(cnot_any, u64, u64, x == 0)

/* The functions above accept registers of any width; this one truncates constants to the width of the type. */
static void logic_with_constants(struct warp *w, const struct instr *i, u32 mask)
{
	int bits = ptx_bits(i->type[0]);
	SOURCE(a, 1, bits);
	SOURCE(b, 2, bits);
	RESULT(d, 0);
	ALL(l)
	d[l] = i->mods == 0 ? a[l] & b[l] : i->mods == 1 ? a[l] | b[l] : a[l] ^ b[l];
	FINISH(d, 0);
}

static bool logic(struct decoder *d, u32 op)
{
	static run_fn *const runs[] = {and_bits, or_bits, xor_bits};
	struct instr *i = d->i;
	enum ptx_type t = i->type[0] = take_type(d);
	if (!any_of(t, "bp") || !OPERANDS(d, t, t, t))
		return false;
	bool registers = i->ops[1].kind == O_REG && i->ops[2].kind == O_REG;
	i->mods = op;
	return alu_run(d, registers || ptx_bits(t) == 64 ? runs[op] : logic_with_constants);
}

bool decode_and(struct decoder *d)
{
	return logic(d, 0);
}

bool decode_or(struct decoder *d)
{
	return logic(d, 1);
}

bool decode_xor(struct decoder *d)
{
	return logic(d, 2);
}

static void not_pred(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 1);
	RESULT(d, 0);
	ALL(l)
	d[l] = a[l] ^ 1;
	FINISH(d, 0);
}

bool decode_not(struct decoder *d)
{
	static run_fn *const runs[] = {not_16, not_32, not_64};
	enum ptx_type t = take_type(d);
	return any_of(t, "bp") && OPERANDS(d, t, t) && alu_run(d, t == PT_PRED ? not_pred : runs[width_index(t)]);
}

bool decode_cnot(struct decoder *d)
{
	enum ptx_type t = take_type(d);
	if (!any_of(t, "b") || d->i->ops[1].kind != O_REG)
		return false;
	return OPERANDS(d, t, t) && alu_run(d, cnot_any);
}

/* Any boolean function of three inputs: the lookup table holds its results for a = 1111_0000, b = 1100_1100, c =
 * 1010_1010. */
static void run_lop3(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	SOURCE(b, 2, 32);
	SOURCE(c, 3, 32);
	RESULT(d, 0);
	u64 table[8];
	for (u32 k = 0; k < 8; k++)
		table[k] = i->mods >> k & 1 ? UINT32_MAX : 0;
	ALL(l)
	{
		u64 x = a[l], y = b[l], z = c[l], nx = ~x, ny = ~y, nz = ~z;
		d[l] = (table[0] & nx & ny & nz) | (table[1] & nx & ny & z) | (table[2] & nx & y & nz) |
		       (table[3] & nx & y & z) | (table[4] & x & ny & nz) | (table[5] & x & ny & z) |
		       (table[6] & x & y & nz) | (table[7] & x & y & z);
	}
	FINISH(d, 0);
}

bool decode_lop3(struct decoder *d)
{
	struct instr *i = d->i;
	if (take_type(d) != PT_B32 || !OPERANDS(d, PT_B32, PT_B32, PT_B32, PT_B32, PT_B32))
		return false;
	if (i->ops[4].kind != O_INT || i->ops[4].imm > 255)
		return decode_fail(d, "the table of '%s' is not a constant of 8 bits", i->opcode);
	i->mods = i->ops[4].imm;
	return alu_run(d, run_lop3);
}

/* --- shifts: the distance has 32 bits; one too great shifts everything out
 * ------------------------------------------- */

#define RUN_SHIFT(name, T, U, expr)                                                                                    \
	static void name(struct warp *w, const struct instr *i, u32 mask)                                              \
	{                                                                                                              \
		SOURCE(a, 1, 8 * sizeof(T));                                                                           \
		SOURCE(b, 2, 32);                                                                                      \
		RESULT(d, 0);                                                                                          \
		ALL(l)                                                                                                 \
		{                                                                                                      \
			T x = (T)a[l];                                                                                 \
			u32 by = (u32)b[l];                                                                            \
			d[l] = (U)(expr);                                                                              \
		}                                                                                                      \
		FINISH(d, 0);                                                                                          \
	}
RUN_SHIFT(shl_16, u32, u16, by > 15 ? 0 : x << (by & 15))
RUN_SHIFT(shl_32, u32, u32, by > 31 ? 0 : x << (by & 31))
RUN_SHIFT(shl_64, u64, u64, by > 63 ? 0 : x << (by & 63))
RUN_SHIFT(shr_u16, u16, u16, by > 15 ? 0 : x >> (by & 15))
RUN_SHIFT(shr_u32, u32, u32, by > 31 ? 0 : x >> (by & 31))
RUN_SHIFT(shr_u64, u64, u64, by > 63 ? 0 : x >> (by & 63))
RUN_SHIFT(shr_s16, i16, u16, x >> MIN(by, 15))
RUN_SHIFT(shr_s32, i32, u32, x >> MIN(by, 31))
RUN_SHIFT(shr_s64, i64, u64, x >> MIN(by, 63))

bool decode_shl(struct decoder *d)
{
	static run_fn *const runs[] = {shl_16, shl_32, shl_64};
	enum ptx_type t = take_type(d);
	return any_of(t, "b") && OPERANDS(d, t, t, PT_B32) && alu_run(d, runs[width_index(t)]);
}

bool decode_shr(struct decoder *d)
{
	static run_fn *const runs[3][2] = {{shr_u16, shr_s16}, {shr_u32, shr_s32}, {shr_u64, shr_s64}};
	enum ptx_type t = take_type(d);
	return any_of(t, "bus") && OPERANDS(d, t, t, PT_B32) && alu_run(d, runs[width_index(t)][is_signed(t)]);
}

/* The 64 bits y:x. */
#define BOTH_WORDS ((u64)y << 32 | x)
RUN3(shf_l_clamp, u32, u32, u32, BOTH_WORDS << MIN(z, 32) >> 32)
RUN3(shf_l_wrap, u32, u32, u32, BOTH_WORDS << (z & 31) >> 32)
RUN3(shf_r_clamp, u32, u32, u32, BOTH_WORDS >> MIN(z, 32))
RUN3(shf_r_wrap, u32, u32, u32, BOTH_WORDS >> (z & 31))

bool decode_shf(struct decoder *d)
{
	static run_fn *const runs[2][2] = {{shf_l_clamp, shf_l_wrap}, {shf_r_clamp, shf_r_wrap}};
	int right = take_one_of(d, "l r"), wrap = take_one_of(d, "clamp wrap");
	if (right < 0 || wrap < 0 || take_type(d) != PT_B32)
		return false;
	return OPERANDS(d, PT_B32, PT_B32, PT_B32, PT_B32) && alu_run(d, runs[right][wrap]);
}

/* The low n bits of x, sign-extended or zero-extended. */
static inline u32 extend(u32 x, u32 n, bool sign)
{
	u32 up = 32 - n, moved = n ? x << (up & 31) : 0;
	u32 r = sign ? (u32)((i32)moved >> (up & 31)) : moved >> (up & 31);
	return n ? r : 0;
}
RUN2(szext_clamp_u32, u32, u32, extend(x, MIN(y, 32), false))
RUN2(szext_clamp_s32, u32, u32, extend(x, MIN(y, 32), true))
RUN2(szext_wrap_u32, u32, u32, extend(x, y & 31, false))
RUN2(szext_wrap_s32, u32, u32, extend(x, y & 31, true))

bool decode_szext(struct decoder *d)
{
	static run_fn *const runs[2][2] = {{szext_clamp_u32, szext_clamp_s32}, {szext_wrap_u32, szext_wrap_s32}};
	int wrap = take_one_of(d, "clamp wrap");
	enum ptx_type t = take_type(d);
	if (wrap < 0 || (t != PT_U32 && t != PT_S32))
		return false;
	return OPERANDS(d, t, t, PT_U32) && alu_run(d, runs[wrap][t == PT_S32]);
}

/* --- bit fields
 * ----------------------------------------------------------------------------------------------------- */

/* Position and length should be below 256. For a larger one the hardware uses the low 8 bits for 32-bit words, and all
 * bits for 64-bit words. */
#define FIELD_BITS(v, bits) ((bits) == 32 ? (u32)(u8)(v) : (u32)MIN(v, 255))

/* Mask of the low n bits. */
static inline u64 ones(u32 n)
{
	return n > 63 ? ~(u64)0 : ((u64)1 << (n & 63)) - 1;
}

/* Bits beyond the top bit of x are copies of the sign bit, or zeros. */
static inline u64 extract(u64 x, u32 at, u32 len, u32 bits, bool sign)
{
	u32 top = MIN(at + len - 1, bits - 1);
	u64 field = at > bits - 1 ? 0 : x >> (at & 63) & ones(len);
	u32 have = at > bits - 1 ? 0 : MIN(len, bits - at);
	bool negative = sign && len && x >> (top & 63) & 1;
	return negative ? field | ~ones(have) : field;
}

static inline u64 insert(u64 x, u64 into, u32 at, u32 len, u32 bits)
{
	u64 where = at > bits - 1 ? 0 : ones(len) << (at & 63);
	return (into & ~where) | (x << (at & 63) & where);
}

/* Fast path for the common form: constant position and length, with the field inside the word. */
static void bfe_constant(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 64);
	RESULT(d, 0);
	u32 at = (u32)i->ops[2].imm;
	u64 field = ones((u32)i->ops[3].imm);
	ALL(l)
	d[l] = a[l] >> at & field;
	FINISH(d, 0);
}

static void bfi_constant(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 64);
	SOURCE(b, 2, 64);
	RESULT(d, 0);
	u32 at = (u32)i->ops[3].imm;
	u64 where = ones((u32)i->ops[4].imm) << at;
	ALL(l)
	d[l] = (b[l] & ~where) | (a[l] << at & where);
	FINISH(d, 0);
}

#define RUN_BFE(name, bits, sign)                                                                                      \
	static void name(struct warp *w, const struct instr *i, u32 mask)                                              \
	{                                                                                                              \
		SOURCE(a, 1, bits);                                                                                    \
		SOURCE(b, 2, 32);                                                                                      \
		SOURCE(c, 3, 32);                                                                                      \
		RESULT(d, 0);                                                                                          \
		ALL(l)                                                                                                 \
		d[l] = extract(a[l], FIELD_BITS(b[l], bits), FIELD_BITS(c[l], bits), bits, sign) & ones(bits);         \
		FINISH(d, 0);                                                                                          \
	}
RUN_BFE(bfe_u32, 32, false)
RUN_BFE(bfe_s32, 32, true)
RUN_BFE(bfe_u64, 64, false)
RUN_BFE(bfe_s64, 64, true)

static void run_bfi(struct warp *w, const struct instr *i, u32 mask)
{
	int bits = ptx_bits(i->type[0]);
	SOURCE(a, 1, bits);
	SOURCE(b, 2, bits);
	SOURCE(at, 3, 32);
	SOURCE(len, 4, 32);
	RESULT(d, 0);
	ALL(l)
	d[l] = insert(a[l], b[l], FIELD_BITS(at[l], bits), FIELD_BITS(len[l], bits), (u32)bits) & ones((u32)bits);
	FINISH(d, 0);
}

static bool constant_field(const struct operand *at, const struct operand *len, int bits)
{
	return at->kind == O_INT && len->kind == O_INT && at->imm < 64 && len->imm <= 64 &&
	       (int)(at->imm + len->imm) <= bits;
}

bool decode_bfe(struct decoder *d)
{
	static run_fn *const runs[2][2] = {{bfe_u32, bfe_s32}, {bfe_u64, bfe_s64}};
	enum ptx_type t = take_type(d);
	const struct operand *o = d->i->ops;
	if (!any_of(t, "us") || ptx_bits(t) < 32 || !OPERANDS(d, t, t, PT_B32, PT_B32))
		return false;
	bool simple = is_unsigned(t) && o[1].kind == O_REG && constant_field(&o[2], &o[3], ptx_bits(t));
	return alu_run(d, simple ? bfe_constant : runs[ptx_bits(t) == 64][is_signed(t)]);
}

bool decode_bfi(struct decoder *d)
{
	enum ptx_type t = d->i->type[0] = take_type(d);
	const struct operand *o = d->i->ops;
	if (!any_of(t, "b") || ptx_bits(t) < 32 || !OPERANDS(d, t, t, t, PT_B32, PT_B32))
		return false;
	bool simple = o[1].kind == O_REG && o[2].kind == O_REG && constant_field(&o[3], &o[4], ptx_bits(t));
	return alu_run(d, simple ? bfi_constant : run_bfi);
}

/* --- counting and finding
 * ------------------------------------------------------------------------------------------ */

static inline u32 find_top(u64 x)
{
	return x ? 63 - (u32)__builtin_clzll(x) : UINT32_MAX;
}
static inline u64 reversed(u64 x)
{
	x = __builtin_bswap64(x);
	x = (x >> 4 & 0x0F0F0F0F0F0F0F0F) | (x & 0x0F0F0F0F0F0F0F0F) << 4;
	x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;
	return (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
}
/* bfind: position of the highest bit that differs from the sign, or (by) the left shift that moves it to the top. */
#define FROM_TOP(top, place) ((place) == UINT32_MAX ? UINT32_MAX : (top) - (place))
RUN1(bfind_u32, u32, u32, find_top(x))
RUN1(bfind_s32, i32, u32, find_top((u32)(x < 0 ? ~x : x)))
RUN1(bfind_u64, u64, u32, find_top(x))
RUN1(bfind_s64, i64, u32, find_top((u64)(x < 0 ? ~x : x)))
RUN1(bfind_by_u32, u32, u32, FROM_TOP(31, find_top(x)))
RUN1(bfind_by_s32, i32, u32, FROM_TOP(31, find_top((u32)(x < 0 ? ~x : x))))
RUN1(bfind_by_u64, u64, u32, FROM_TOP(63, find_top(x)))
RUN1(bfind_by_s64, i64, u32, FROM_TOP(63, find_top((u64)(x < 0 ? ~x : x))))
RUN1(brev_32, u32, u32, reversed(x) >> 32)
RUN1(brev_64, u64, u64, reversed(x))
RUN1(clz_32, u32, u32, x ? __builtin_clz(x) : 32)
RUN1(clz_64, u64, u32, x ? __builtin_clzll(x) : 64)
RUN1(popc_32, u32, u32, __builtin_popcount(x))
RUN1(popc_64, u64, u32, __builtin_popcountll(x))

bool decode_bfind(struct decoder *d)
{
	static run_fn *const runs[2][2][2] = {{{bfind_u32, bfind_s32}, {bfind_u64, bfind_s64}},
					      {{bfind_by_u32, bfind_by_s32}, {bfind_by_u64, bfind_by_s64}}};
	bool by = take(d, "shiftamt");
	enum ptx_type t = take_type(d);
	if (!any_of(t, "us") || ptx_bits(t) < 32)
		return false;
	return OPERANDS(d, PT_U32, t) && alu_run(d, runs[by][ptx_bits(t) == 64][is_signed(t)]);
}

static bool count(struct decoder *d, run_fn *narrow, run_fn *wide, bool to_u32)
{
	enum ptx_type t = take_type(d);
	if (t != PT_B32 && t != PT_B64)
		return false;
	return OPERANDS(d, to_u32 ? PT_U32 : t, t) && alu_run(d, t == PT_B32 ? narrow : wide);
}

bool decode_brev(struct decoder *d)
{
	return count(d, brev_32, brev_64, false);
}

bool decode_clz(struct decoder *d)
{
	return count(d, clz_32, clz_64, true);
}

bool decode_popc(struct decoder *d)
{
	return count(d, popc_32, popc_64, true);
}

/* --- prmt ------------------------------------------------------------------------------------------------------- */

/* Selects bytes of y:x by the four hex digits of `how`; the digit 8 + k replicates the sign of byte k eight times. */
static inline u32 permute(u32 x, u32 y, u32 how)
{
	u64 from = (u64)y << 32 | x;
	u32 r = 0;
	for (u32 k = 0; k < 4; k++) {
		u32 digit = how >> 4 * k & 15;
		u32 byte = (u32)(from >> 8 * (digit & 7)) & 0xFF;
		u32 sign = byte & 0x80 ? 0xFF : 0;
		r |= (digit & 8 ? sign : byte) << 8 * k;
	}
	return r;
}
RUN3(prmt_any, u32, u32, u32, permute(x, y, z))

/* A constant selector is decoded once for all lanes. */
static void prmt_constant(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	SOURCE(b, 2, 32);
	RESULT(d, 0);
	u32 how = (u32)i->ops[3].imm;
	u32 s0 = (how & 7) * 8, s1 = (how >> 4 & 7) * 8, s2 = (how >> 8 & 7) * 8, s3 = (how >> 12 & 7) * 8;
	ALL(l)
	{
		u64 x = b[l] << 32 | a[l];
		d[l] = (x >> s0 & 0xFF) | (x >> s1 & 0xFF) << 8 | (x >> s2 & 0xFF) << 16 | (x >> s3 & 0xFF) << 24;
	}
	FINISH(d, 0);
}

static void prmt_mode(struct warp *w, const struct instr *i, u32 mask)
{
	static const u16 modes[][4] = {
		{0x3210, 0x4321, 0x5432, 0x6543}, /* f4e */
		{0x5670, 0x6701, 0x7012, 0x0123}, /* b4e */
		{0x0000, 0x1111, 0x2222, 0x3333}, /* rc8 */
		{0x3210, 0x3211, 0x3222, 0x3333}, /* ecl */
		{0x0000, 0x1110, 0x2210, 0x3210}, /* ecr */
		{0x1010, 0x3232, 0x1010, 0x3232}, /* rc16 */
	};
	SOURCE(a, 1, 32);
	SOURCE(b, 2, 32);
	SOURCE(c, 3, 32);
	RESULT(d, 0);
	const u16 *mode = modes[i->mods];
	for (u32 l = 0; l < LANES; l++)
		d[l] = permute((u32)a[l], (u32)b[l], mode[c[l] & 3]);
	FINISH(d, 0);
}

bool decode_prmt(struct decoder *d)
{
	struct instr *i = d->i;
	int mode = take_one_of(d, "f4e b4e rc8 ecl ecr rc16");
	if (take_type(d) != PT_B32 || !OPERANDS(d, PT_B32, PT_B32, PT_B32, PT_B32))
		return false;
	i->mods = (u64)MAX(mode, 0);
	bool simple = i->ops[3].kind == O_INT && !(i->ops[3].imm & 0x8888);
	return alu_run(d, mode >= 0 ? prmt_mode : simple ? prmt_constant : prmt_any);
}

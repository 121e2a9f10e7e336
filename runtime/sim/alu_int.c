/* Integers: arithmetic, logic, shifts, bit fields, byte permutations. */
#include "runtime/sim/alu.h"

typedef unsigned __int128 u128;

/* --- values of the forms ----------------------------------------------------------------------------------------- */

static inline u32 saturate_s32(i64 x)
{
	x = x < INT32_MIN ? INT32_MIN : x;
	return (u32)(x > INT32_MAX ? INT32_MAX : x);
}

#define MINIMUM(T, U, W, bits) (x < y ? x : y)
#define MAXIMUM(T, U, W, bits) (x > y ? x : y)
#define NEGATION(T, U, W, bits) ((U)0 - (U)x)
#define MAGNITUDE(T, U, W, bits) (x < 0 ? (U)0 - (U)x : (U)x)
#define PRODUCT_HIGH(T, U, W, bits) ((W)x * y >> bits)
#define SUM_OF_DIFFERENCE(T, U, W, bits) ((x < y ? (U)y - (U)x : (U)x - (U)y) + (U)z)
/* Division by zero and its remainder give all ones, as on the hardware. The minimum divided by -1 wraps. */
#define IS_MINUS_ONE(T, v) ((T)-1 < 1 && v == (T)-1)
#define QUOTIENT(T, U, W, bits) (y == 0 ? (U)~(U)0 : IS_MINUS_ONE(T, y) ? (U)0 - (U)x : (U)(x / y))
#define REMAINDER(T, U, W, bits) (y == 0 ? (U)~(U)0 : IS_MINUS_ONE(T, y) ? 0 : (U)(x % y))

#define U24(v) ((u64)(v)&0xFFFFFF)
#define S24(v) ((i64)((i32)((u32)(v) << 8) >> 8))
#define BYTE_U(v, k) ((u32)(u8)((v) >> 8 * (k)))
#define BYTE_S(v, k) ((u32)(i8)((v) >> 8 * (k)))
#define HALF_U(v, k) ((u32)(u16)((v) >> 16 * (k)))
#define HALF_S(v, k) ((u32)(i16)((v) >> 16 * (k)))
#define DOT4(A, B) (z + A(x, 0) * B(y, 0) + A(x, 1) * B(y, 1) + A(x, 2) * B(y, 2) + A(x, 3) * B(y, 3))
#define DOT2_LOW(A, B) (z + A(x, 0) * B(y, 0) + A(x, 1) * B(y, 1))
#define DOT2_HIGH(A, B) (z + A(x, 0) * B(y, 2) + A(x, 1) * B(y, 3))

#define RUN_SHIFT(name, T, U, value)                                                                                   \
	RUN(name, U, SOURCES_1(T); SOURCE(b, 2, 32), INPUTS_1(T); u32 by = (u32)b[l], value)
/* The 64 bits y:x. */
#define BOTH_WORDS ((u64)y << 32 | x)

/* The low n bits of x, sign-extended or zero-extended. */
static inline u32 extend(u32 x, u32 n, bool sign)
{
	u32 up = 32 - n, moved = n ? x << (up & 31) : 0;
	u32 r = sign ? (u32)((i32)moved >> (up & 31)) : moved >> (up & 31);
	return n ? r : 0;
}

/* Position and length should be below 256. For a larger one the hardware uses the low 8 bits for 32-bit words, and all
 * bits for 64-bit words. */
#define FIELD_BITS(v, bits) ((bits) == 32 ? (u32)(u8)(v) : (u32)MIN(v, 255))

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
#define FROM_TOP(top, place) ((place) == UINT32_MAX ? UINT32_MAX : (top) - (place))

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

#define INT(id, text, operands, sm, LOOP, ...) LOOP(id, __VA_ARGS__)
#include "runtime/sim/forms.def"

/* --- other forms ------------------------------------------------------------------------------------------------- */

/* Any boolean function of three inputs: the lookup table holds its results for a = 1111_0000, b = 1100_1100, c =
 * 1010_1010. */
void run_lop3(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 32);
	SOURCE(b, 2, 32);
	SOURCE(c, 3, 32);
	RESULT(d, 0);
	u64 table[8];
	for (u32 k = 0; k < 8; k++)
		table[k] = i->ops[4].imm >> k & 1 ? UINT32_MAX : 0;
	ALL(l)
	{
		u64 x = a[l], y = b[l], z = c[l], nx = ~x, ny = ~y, nz = ~z;
		d[l] = (table[0] & nx & ny & nz) | (table[1] & nx & ny & z) | (table[2] & nx & y & nz) |
		       (table[3] & nx & y & z) | (table[4] & x & ny & nz) | (table[5] & x & ny & z) |
		       (table[6] & x & y & nz) | (table[7] & x & y & z);
	}
	FINISH(d, 0);
}

bool check_lop3(struct decoder *d)
{
	return d->i->ops[4].imm <= 255 ||
	       decode_fail(d, "the table of '%s' is not a constant of 8 bits", d->i->opcode);
}

void run_bfe_constant(struct warp *w, const struct instr *i, u32 mask)
{
	SOURCE(a, 1, 64);
	RESULT(d, 0);
	u32 at = (u32)i->ops[2].imm;
	u64 field = ones((u32)i->ops[3].imm);
	ALL(l)
	d[l] = a[l] >> at & field;
	FINISH(d, 0);
}

void run_bfi_constant(struct warp *w, const struct instr *i, u32 mask)
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

void run_bfi(struct warp *w, const struct instr *i, u32 mask)
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
	return at->imm < 64 && len->imm <= 64 && (int)(at->imm + len->imm) <= bits;
}

bool check_bfe(struct decoder *d)
{
	return constant_field(&d->i->ops[2], &d->i->ops[3], ptx_bits(d->i->type[0]));
}

bool check_bfi(struct decoder *d)
{
	return constant_field(&d->i->ops[3], &d->i->ops[4], ptx_bits(d->i->type[0]));
}

/* A constant selector is decoded once for all lanes. */
void run_prmt_constant(struct warp *w, const struct instr *i, u32 mask)
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

void run_prmt_mode(struct warp *w, const struct instr *i, u32 mask)
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
	const u16 *mode = modes[i->mod[M_PRMT] - 1];
	for (u32 l = 0; l < LANES; l++)
		d[l] = permute((u32)a[l], (u32)b[l], mode[c[l] & 3]);
	FINISH(d, 0);
}

bool check_prmt(struct decoder *d)
{
	return !(d->i->ops[3].imm & 0x8888);
}

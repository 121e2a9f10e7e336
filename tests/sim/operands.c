/* What instructions are tried on: numbers at edges, crossed, then random ones of several kinds. */
#include <math.h>
#include <string.h>

#include "support/small_floats.h"
#include "tests/sim/isa.h"

u64 random_u64(u64 *state) /* splitmix64 */
{
	u64 z = *state += 0x9E3779B97F4A7C15u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

/* The first 16 of each are crossed. */
static const u32 edges_f32[] = {
	0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x007FFFFF, 0x00800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF,
		0x7F800000,
	0xFF800000, 0x7FC12345, 0xFFC54321, 0x3F800000, 0xBF800000, 0x3F800001, 0x80000001, 0x7F800001, 0x3F7FFFFF,
		0x3F000000,
	0xBF000000, 0x3FC00000, 0xBFC00000, 0x40200000, 0x40490FDB, 0xC0490FDB, 0x4B000000, 0x4B000001, 0x4B800000,
		0x4F000000,
	0xCF000000, 0x4EFFFFFF, 0xCF000001, 0x4F800000, 0x4F7FFFFF, 0x5F000000, 0xDF000000, 0x5F800000, 0x5EFFFFFF,
		0x5F7FFFFF,
	0x42FE0000, 0x43000000, 0xC3000000, 0xC3010000, 0x437F0000, 0x43800000, 0x46FFFE00, 0x47000000, 0xC7000000,
		0x477FFF00,
	0x47800000, 0x477FE000, 0x477FEFFF, 0x477FF000, 0xC77FF000, 0x33000000, 0x33000001, 0x33800000, 0x33C00000,
		0x387FC000,
	0x387FE000, 0x387FF000, 0x38800000, 0x43E00000, 0x43E80000, 0x43E7FFFF, 0x47600000, 0x47700000, 0x7F7F7FFF,
		0x7F7F8000,
	0x7F7FF000, 0x7E800000, 0x7E800001, 0x7F000000, 0x00400000, 0x3F808000, 0x3F818000, 0x3F801000, 0x3F803000,
		0x3B000000,
	0x3A800000, 0x3A800001, 0x37800000, 0x37000000, 0x37000001, 0x3F880000, 0x3F980000, 0x3FA00000, 0x20000000,
		0x1FFFFFFF,
	0x9F800000, 0x00FFFFFF, 0x00008000, 0x00018000, 0x00010000, 0x44E7F000, 0xC2FC0000, 0xC3150000, 0xC3160000,
};
static const u64 edges_f64[] = {
	0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x800FFFFFFFFFFFFF, 0x000FFFFFFFFFFFFF,
		0x0010000000000000,
	0x8010000000000000, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000,
		0x7FF8123456789ABC,
	0xFFF8CBA987654321, 0x3FF0000000000000, 0xBFF0000000000000, 0x3FF0000000000001, 0x8000000000000001,
		0x7FF0000000000001,
	0x3FEFFFFFFFFFFFFF, 0x3FE0000000000000, 0xBFE0000000000000, 0x3FF8000000000000, 0x4004000000000000,
		0x400921FB54442D18,
	0x4330000000000000, 0x4330000000000001, 0x4340000000000000, 0x41DFFFFFFFC00000, 0x41E0000000000000,
		0xC1E0000000000000,
	0xC1E0000000200000, 0x41EFFFFFFFE00000, 0x41F0000000000000, 0x43E0000000000000, 0xC3E0000000000000,
		0x43DFFFFFFFFFFFFF,
	0x43F0000000000000, 0x43EFFFFFFFFFFFFF, 0x3FF0000010000000, 0x3FF0000030000000, 0x3FF0000010000001,
		0x3FF0020000000000,
	0x3FF0060000000000, 0x3FF0100000000000, 0x3FF0300000000000, 0x47EFFFFFE0000000, 0x47EFFFFFEFFFFFFF,
		0x47EFFFFFF0000000,
	0x3810000000000000, 0x380FFFFFFFFFFFFF, 0x380FFFFFE0000000, 0x36A0000000000000, 0x3690000000000000,
		0x3690000000000001,
	0x36B8000000000000, 0x40EFFC0000000000, 0x40EFFDFFFFFFFFFF, 0x40EFFE0000000000, 0x3E60000000000000,
		0x3E60000000000001,
	0x3F10000000000000, 0x3F0FFC0000000000, 0x3F0FF80000000000, 0x405FC00000000000, 0x4060000000000000,
		0xC060000000000000,
	0x406FE00000000000, 0x4070000000000000, 0x7FF7FFFFFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0x2000000000000000,
		0x1FFFFFFFFFFFFFFF,
	0x000FFFFF00000000, 0x00000000FFFFFFFF, 0x7FE0000000000000, 0x7FD0000000000000, 0x7FD0000000000001,
		0x0020000000000000,
};
static const u16 edges_f16[] = {
	0x0000, 0x8000, 0x0001, 0x83FF, 0x03FF, 0x0400, 0x8400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E12,
	0xFE21, 0x3C00, 0xBC00, 0x3C01, 0x8001, 0x7C01, 0x3BFF, 0x3800, 0xB800, 0x3E00, 0x4100, 0x6400,
	0x6401, 0x6800, 0x57F0, 0x5800, 0xD800, 0x5BF8, 0x5C00, 0x77FF, 0x7800, 0xF800, 0x5F00, 0x5F3F,
	0x5F40, 0x1400, 0x1800, 0x1C00, 0x2400, 0x2001, 0x7F00, 0x7B00, 0x7B01, 0x0200, 0x4248, 0x5640,
};
static const u16 edges_bf16[] = {
	0x0000, 0x8000, 0x0001, 0x807F, 0x007F, 0x0080, 0x8080, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC1, 0xFFC5, 0x3F80,
	0xBF80, 0x3F81, 0x8001, 0x7F81, 0x3F7F, 0x3F00, 0xBF00, 0x3FC0, 0x4020, 0x4049, 0x4300, 0x4301, 0x42FE, 0xC300,
	0xC301, 0x437F, 0x4380, 0x4700, 0xC700, 0x46FF, 0x477F, 0x4780, 0x4F00, 0xCF00, 0x4EFF, 0x4F7F, 0x4F80, 0x5F00,
	0xDF00, 0x5F7F, 0x5F80, 0x0040, 0x3300, 0x3380, 0x3880, 0x7E80, 0x7E81, 0x7F00, 0x00FF, 0x2000, 0x1F80, 0x9FFF,
};

static u32 num_edges(enum ptx_type t)
{
	switch (t) {
	case PT_F32: return ARRAY_LEN(edges_f32);
	case PT_F64: return ARRAY_LEN(edges_f64);
	case PT_F16:
	case PT_F16X2: return ARRAY_LEN(edges_f16);
	case PT_BF16:
	case PT_BF16X2: return ARRAY_LEN(edges_bf16);
	case PT_E4M3X2:
	case PT_E5M2X2: return 256;
	case PT_PRED: return 2;
	default: return 48;
	}
}

/* -2^k … 2^k and neighbours */
static u64 integer_edge(u32 k, int bits)
{
	static const u8 where[] = {0, 31, 15, 7, 63, 8, 16, 32, 24, 3, 1, 53, 62, 30, 12, 48};
	u32 at = where[k / 3 % 16] % (u32)bits;
	u64 x = (u64)1 << at;
	return k % 3 == 0 ? x : k % 3 == 1 ? x - 1 : 0 - x;
}

static u64 edge(enum ptx_type t, u32 k)
{
	int bits = ptx_bits(t);
	u32 n = num_edges(t);
	k %= n;
	switch (t) {
	case PT_F32: return edges_f32[k];
	case PT_F64: return edges_f64[k];
	case PT_F16: return edges_f16[k];
	case PT_BF16: return edges_bf16[k];
	case PT_F16X2: return (u64)edges_f16[(k * 7 + 3) % n] << 16 | edges_f16[k];
	case PT_BF16X2: return (u64)edges_bf16[(k * 5 + 3) % n] << 16 | edges_bf16[k];
	case PT_E4M3X2:
	case PT_E5M2X2: return k << 8 | (255 - k);
	case PT_PRED: return k;
	default: break;
	}
	if (k < 4)
		return k == 3 ? (u64)1 << (bits - 1) : k == 2 ? ((u64)1 << (bits - 1)) - 1 : 0 - (u64)k;
	return integer_edge(k, bits);
}

/* A float of any exponent near an interesting one, its mantissa random, or such that it is a tie for a smaller
 * format. */
static u64 random_float(u64 r, int exponent_bits, int mantissa_bits)
{
	static const i16 about[] = {0,   0,  0,  1,  7,   8,   15,  16,  31,  32,   63,   64,
				    127, -1, -6, -9, -14, -16, -24, -63, -75, -126, -133, -149};
	i32 bias = (1 << (exponent_bits - 1)) - 1;
	i32 exponent = bias + about[r % ARRAY_LEN(about)] + (i32)(r >> 8 & 3) - 2;
	exponent = MAX(0, MIN(exponent, 2 * bias));
	u64 mantissa = r >> 12 & (((u64)1 << mantissa_bits) - 1);
	u32 zeros = (u32)(r >> 6 & 3) == 3 ? (u32)(r >> 58) % (u32)mantissa_bits : 0;
	if (zeros)
		mantissa = (mantissa >> zeros | 1) << zeros;
	return (r >> 11 & 1) << (exponent_bits + mantissa_bits) | (u64)exponent << mantissa_bits |
	       (mantissa & (((u64)1 << mantissa_bits) - 1));
}

static u64 random_of(enum ptx_type t, u64 *state)
{
	u64 r = random_u64(state), s = random_u64(state);
	int bits = ptx_bits(t);
	bool raw = s % 4 == 0;
	switch (raw ? PT_NONE : t) {
	case PT_F32: return random_float(r, 8, 23);
	case PT_F64: return random_float(r, 11, 52);
	case PT_F16: return random_float(r, 5, 10);
	case PT_BF16: return random_float(r, 8, 7);
	case PT_F16X2: return random_float(r, 5, 10) << 16 | random_float(s, 5, 10);
	case PT_BF16X2: return random_float(r, 8, 7) << 16 | random_float(s, 8, 7);
	default: break;
	}
	u64 x = s % 4 == 1 ? r >> (s >> 8) % 64 : s % 4 == 2 ? 0 - (r >> (s >> 8) % 64) : r;
	return bits > 63 ? x : x & (((u64)1 << bits) - 1);
}

static u64 special(int kind, u32 k, u64 *state)
{
	static const u32 counts[] = {0,  1,  7,  8,  15,  16,  17,  24,  31,  32,         33,         40,         47,
				     48, 63, 64, 65, 127, 128, 255, 256, 257, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 288};
	u64 r = random_u64(state);
	switch (kind) {
	case V_COUNT: return k % 3 ? (u32)(r % 72) : counts[(k / 3) % ARRAY_LEN(counts)];
	case V_SELECTOR: return r & (k % 2 ? 0xFFFFFFFF : 0x7777);
	default: return (r % 3 ? (u32)(r >> 8 & 0x1F1F) : (u32)(r >> 8 & 0x1F00) | (r >> 4 & 1 ? 31 : 0)); /* V_CLAMP */
	}
}

/* 64 bits of elements. */
static u64 packed(enum ptx_type t, u64 *state)
{
	u64 v = 0;
	int bits = ptx_bits(t);
	for (int at = 0; at < 64; at += bits) {
		u64 pick = random_u64(state);
		v |= (pick & 3 ? random_of(t, state) : edge(t, (u32)(pick >> 32))) << at;
	}
	return v;
}

static u64 operand(const struct input *s, u32 slot, u32 k, u32 n, u64 *state)
{
	enum ptx_type t = s->type;
	if (s->kind < V_COUNT && s->kind != (int)t)
		return packed((enum ptx_type)s->kind, state);
	if (s->kind >= V_COUNT && s->kind != V_NONZERO)
		return special(s->kind, k, state);
	u32 pick = (u32)(random_u64(state) >> 16);
	u64 v;
	if (n > MAX_CASES / 2 && k < 256)
		v = slot < 2 ? edge(t, slot ? k / 16 : k % 16) : edge(t, pick);
	else if (n <= MAX_CASES / 2 && k < num_edges(t) && !slot)
		v = edge(t, k);
	else
		v = pick & 3 ? random_of(t, state) : edge(t, pick >> 4);
	u64 all = ptx_bits(t) > 63 ? ~(u64)0 : ((u64)1 << ptx_bits(t)) - 1;
	v &= all;
	return s->kind == V_NONZERO && !v ? (pick & 1 ? all : 3) : v;
}

/* -(x·y), which cancels in an fma. */
static u64 cancelling(enum ptx_type t, u64 x, u64 y)
{
	double p = -float_value(t, x) * float_value(t, y);
	return t == PT_F64   ? fp_bits_f64(p)
	       : t == PT_F32 ? fp_bits_f32((float)p)
	       : t == PT_F16 ? fp_to_f16((float)p)
			     : fp_to_bf16((float)p);
}

/* --- matrix products -------------------------------------------------------------------------------------------- */

static double element(enum values values, u64 r)
{
	double unit = (double)(r >> 40) * 0x1p-24, x = 1 + unit;
	if (values == SMALL || values == WIDE)
		x = nearbyint(values == SMALL ? unit * 9 - 4 : unit * 2046 - 1023);
	else if (values == SPREAD)
		x = ldexp(x, (int)(r >> 8 & 7) - 4);
	else if (values == ZEROS)
		x = r >> 8 & 7 ? 0 : 1;
	else if (values == SPECIAL && (r >> 8 & 255) < 12)
		x = (const double[]){0, 0x1p-15, INFINITY,
				     fp_f64_bits(0x7FF8000000001234)}[(r >> 8 & 255) / 4 + ((r >> 8 & 255) == 11)];
	return r & 1 ? -x : x;
}

static u64 encode(enum ptx_type t, double x)
{
	switch (t) {
	case PT_F64: return fp_bits_f64(x);
	case PT_F16: return fp_to_f16((float)x);
	case PT_BF16: return fp_to_bf16((float)x);
	case PT_TF32: return fp_bits_f32((float)x) & ~(u32)0x1FFF;
	case PT_E4M3: return fp_encode(FP_E4M3, x, false);
	case PT_E5M2: return fp_encode(FP_E5M2, x, false);
	default: return fp_bits_f32((float)x);
	}
}

struct exponents {
	int least, most; /* of normal numbers */
};

static struct exponents exponents_of(enum ptx_type t)
{
	switch (t) {
	case PT_F16: return (struct exponents){-14, 15};
	case PT_E5M2: return (struct exponents){-14, 15};
	case PT_E4M3: return (struct exponents){-6, 8};
	default: return (struct exponents){-126, 127};
	}
}

/* An element of A, B or C ('c') of a product of `in` that is summed in `sum`. */
static double extreme_element(enum values values, char matrix, enum ptx_type in, enum ptx_type sum, u64 r)
{
	int below = (int)(r >> 8 & 7), limit = exponents_of(sum).most;
	if (values == TINY)
		return ldexp(element(IN_BINADE, r), matrix == 'b' ? 3 - below : exponents_of(in).least + 2 - below);
	return ldexp(element(IN_BINADE, r),
		     matrix == 'c' ? limit - below : MIN(exponents_of(in).most, limit / 2 + 1 - below / 2));
}

/* As many as 32 bits hold. */
static u64 elements(const struct form *f, enum ptx_type t, char matrix, enum values values, u64 *state)
{
	int bits = ptx_bits(t);
	bool near_overflow = values == SMALL || values == SPECIAL;
	u64 v = 0;
	if (t == PT_S32)
		return (u32)(near_overflow ? 0x7FFFFFFF - (random_u64(state) & 0xFFFF) : random_u64(state) >> 32);
	if (t == PT_U8 || t == PT_S8)
		return (u32)(near_overflow ? 0x7F7F7F7F : random_u64(state));
	for (int at = 0; at < MAX(bits, 32); at += bits) {
		u64 r = random_u64(state);
		bool extreme = values == TINY || values == HUGE;
		double x =
			extreme ? extreme_element(values, matrix, (enum ptx_type)f->sources[f->a0].kind, f->result, r)
				: element(values, r);
		v |= encode(t, x) << at;
	}
	return v;
}

/* Register r of lane l of A. */
static u64 identity_register(enum ptx_type t, u32 r, u32 l)
{
	u32 bits = (u32)ptx_bits(t), per = 32 / bits, row = l / 4 + 8 * (r % 2), col = (l % 4 + r / 2 * 4) * per;
	bool is_int = t == PT_U8 || t == PT_S8;
	return row >= col && row < col + per ? (is_int ? 1 : encode(t, 1)) << (row - col) * bits : 0;
}

static u64 matrix_operand(const struct form *f, u32 s, u32 k, u64 *state)
{
	enum ptx_type t = (enum ptx_type)f->sources[s].kind;
	enum values values = f->values ? f->values : (enum values)(IN_BINADE + k / 32);
	bool is_a = s >= f->a0 && s < f->a0 + f->na, is_b = s >= f->b0 && s < f->b0 + f->nb;
	if (values == IDENTITY && is_a)
		return identity_register(t, s - f->a0, k % 32);
	values = values == IDENTITY ? WIDE : values;
	char matrix = is_a ? 'a' : is_b ? 'b' : 'c';
	u64 v = elements(f, t, matrix, values, state);
	return s < f->image ? v | elements(f, t, matrix, values, state) << 32 : v;
}

void make_operands(struct arena *a, struct form *f)
{
	u64 state = 1;
	for (const char *at = f->name; *at; at++)
		state = (state ^ (u8)*at) * 0x100000001B3;
	f->in = arena_array(a, u64, (size_t)f->nsources * f->ncases);
	for (u32 k = 0; k < f->ncases; k++)
		for (u32 s = 0; s < f->nsources; s++)
			f->in[s * f->ncases + k] = f->is_product ? matrix_operand(f, s, k, &state)
								 : operand(&f->sources[s], s, k, f->ncases, &state);
	enum ptx_type t = f->sources[0].type;
	bool fused = !f->is_product && f->nsources == 3 && f->sources[2].type == t &&
		     (t == PT_F16 || t == PT_BF16 || t == PT_F32 || t == PT_F64);
	for (u32 k = 7; fused && k < f->ncases; k += 8)
		f->in[2 * f->ncases + k] = cancelling(t, f->in[k], f->in[f->ncases + k]);
}

/* Arithmetic and conversions of the simulator: each instruction in a kernel of its own, on edge values and random bits,
 * against references computed another way: 128-bit integers, bit by bit, binary128. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/small_floats.h"
#include "runtime/sim/sim.h"
#include "tests/unit/random_bits.h"

typedef unsigned __int128 u128;
typedef __float128 f128;

/* --- running one instruction ------------------------------------------------------------------------------------- */

enum { N = 1024 };

/* Registers by a letter: p(redicate), h (16 bits), r (32), d (64), f (f32), g (f64); "pp" a pair of predicates. */
static const char *register_type(char c)
{
	return c == 'p' ? "pred" : c == 'h' ? "b16" : c == 'r' ? "b32" : c == 'd' ? "b64" : c == 'f' ? "f32" : "f64";
}

/* The instruction's text with $0 … for its operands, by whose letters they are loaded; the first is stored. */
static const char *kernel_text(struct arena *a, const char *text, const char *letters)
{
	struct strbuf s = {.arena = a};
	sb_puts(&s, ".version 8.3\n.target sm_90a\n.address_size 64\n"
		".visible .entry k(.param .u64 pi, .param .u64 po)\n{\n"
		    ".reg .b64 %in, %out, %a, %w;\n.reg .b32 %i, %c, %b;\n.reg .pred %s9;\n"
		    "ld.param.u64 %in, [pi];\nld.param.u64 %out, [po];\nmov.u32 %i, %tid.x;\nmov.u32 %c, %ctaid.x;\n"
		    "mad.lo.s32 %i, %c, 128, %i;\nmul.wide.u32 %w, %i, 32;\n"
		    "add.s64 %in, %in, %w;\nmul.wide.u32 %w, %i, 8;\n"
		    "add.s64 %out, %out, %w;\n");
	for (u32 k = 0; letters[k]; k++) {
		char c = letters[k];
		sb_printf(&s, ".reg .%s %%s%u;\nld.global.b64 %%a, [%%in + %u];\n", register_type(c), k, 8 * k);
		if (c == 'p')
			sb_printf(&s, "cvt.u32.u64 %%b, %%a;\nand.b32 %%b, %%b, 1;\nsetp.ne.u32 %%s%u, %%b, 0;\n", k);
		else if (c == 'd' || c == 'g')
			sb_printf(&s, "mov.b64 %%s%u, %%a;\n", k);
		else if (c == 'h')
			sb_printf(&s, "cvt.u16.u64 %%s%u, %%a;\n", k);
		else
			sb_printf(&s, "cvt.u32.u64 %%b, %%a;\nmov.b32 %%s%u, %%b;\n", k);
	}
	for (const char *at = text; *at; at++)
		sb_printf(&s, *at == '$' ? "%%s" : "%c", *at);
	char c = letters[0];
	sb_puts(&s, ";\n");
	if (strstr(text, "$0|$9"))
		sb_puts(&s, "selp.b64 %a, 1, 0, %s0;\nselp.b64 %w, 2, 0, %s9;\nor.b64 %a, %a, %w;\n");
	else if (c == 'p')
		sb_puts(&s, "selp.b64 %a, 1, 0, %s0;\n");
	else if (c == 'd' || c == 'g')
		sb_puts(&s, "mov.b64 %a, %s0;\n");
	else if (c == 'h')
		sb_puts(&s, "cvt.u64.u16 %a, %s0;\n");
	else
		sb_puts(&s, "mov.b32 %b, %s0;\ncvt.u64.u32 %a, %b;\n");
	sb_puts(&s, "st.global.b64 [%out], %a;\nret;\n}\n");
	return s.at;
}

/* Four numbers each: the first is what $0 holds before. NULL or what went wrong. */
static const char *run(struct arena *a, const char *text, const char *letters, const u64 in[N][4], u64 out[N])
{
	const char *error = NULL, *kernel = kernel_text(a, text, letters);
	struct ptx_module *m = ptx_read(a, kernel, strlen(kernel), &error);
	if (!m || !sim_decode(a, m, &error))
		return error;
	u64 params[] = {(u64)(uintptr_t)in, (u64)(uintptr_t)out};
	struct launch l = {.module = m,
			   .kernel = m->kernels,
			   .grid = {N / 128, 1, 1},
			   .num_warps = 4,
			   .params = (const char *)params,
			   .open = true,
			   .seed = random_bits()};
	struct strbuf fault = {.arena = a};
	memset(out, 0xEE, N * sizeof *out);
	return sim_run(&l, &fault) ? fault.at : NULL;
}

typedef u64 reference(const u64 *v); /* v[1], v[2], v[3] are the operands, v[0] the old result */
typedef u64 value_maker(void);
#define REF(name, expr)                                                                                                \
	static u64 name(const u64 *v)                                                                                  \
	{                                                                                                              \
		return (u64)(expr);                                                                                    \
	}

static void check(const char *text, const char *letters, value_maker *make, reference *want)
{
	struct arena a = {0};
	static u64 in[N][4], out[N];
	for (u32 i = 0; i < N; i++)
		for (u32 k = 0; k < 4; k++)
			in[i][k] = make();
	const char *error = run(&a, text, letters, in, out);
	if (error)
		fail_msg("%s: %s", text, error);
	for (u32 i = 0; i < N; i++)
		if (out[i] != want(in[i]))
			fail_msg("%s of 0x%llx, 0x%llx, 0x%llx: got 0x%llx, want 0x%llx", text,
				 (unsigned long long)in[i][1], (unsigned long long)in[i][2],
				 (unsigned long long)in[i][3], (unsigned long long)out[i],
				 (unsigned long long)want(in[i]));
	arena_free(&a);
}

/* --- values
 * --------------------------------------------------------------------------------------------------------- */

#define PICK(list) list[random_bits() % ARRAY_LEN(list)]

static u64 make_int(void)
{
	static const u64 edges[] = {0,
				    1,
				    2,
				    7,
				    31,
				    32,
				    33,
				    63,
				    64,
				    0x7F,
				    0x80,
				    0xFF,
				    0x7FFF,
				    0x8000,
				    0xFFFF,
				    0x7FFFFFFF,
				    0x80000000,
				    0xFFFFFFFF,
				    0x7FFFFFFFFFFFFFFF,
				    0x8000000000000000,
				    ~0ull,
				    ~0ull - 1};
	u64 r = random_bits();
	return r % 3 == 0 ? PICK(edges) : r % 3 == 1 ? random_bits() >> random_bits() % 64 : random_bits();
}

static u64 make_f32(void)
{
	static const u32 edges[] = {0,          1,          0x7FFFFF,   0x800000,   0x800001,   0x3F800000, 0x3F7FFFFF,
				    0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x4F000000, 0x4EFFFFFF, 0x5F000000,
				    0x3F000000, 0x477FE000, 0x477FF000, 0x33000000, 0x33000001, 0x43E00000};
	u64 r = random_bits();
	u32 sign = (u32)random_bits() & 0x80000000;
	if (r % 4 == 0)
		return PICK(edges) ^ sign;
	return r % 4 == 1
		       ? (u32)random_bits()
		       : (u32)((0x3F800000 + (random_bits() % 41 - 20) * 0x800000) | (random_bits() & 0x7FFFFF)) ^ sign;
}

static u64 make_f64(void)
{
	static const double edges[] = {
		0,         1,         0.5,      1.5,      2.5,      0x1p31,         0x1p32,   0x1p63, 0x1p64,
		0x1p-1022, 0x1p-1074, INFINITY, 0x1p-126, 0x1p-149, 0x1.FFFFFFp127, 65519.99, 255.5};
	u64 r = random_bits(), sign = random_bits() << 63;
	if (r % 4 == 0)
		return fp_bits_f64(PICK(edges)) ^ sign;
	return r % 4 == 1 ? random_bits() : ((0x3FFull + random_bits() % 81 - 40) << 52 | random_bits() >> 12) ^ sign;
}

static u64 make_half(void)
{
	return random_bits();
}

/* Near enough to 1 for sums in binary128 to be exact. */
static u64 make_bf16(void)
{
	return (random_bits() & 0x807F) | (100 + random_bits() % 50) << 7;
}

/* --- integers
 * -------------------------------------------------------------------------------------------------------- */

#define SIGNED(v, bits) ((i128)((i64)((v) << (64 - (bits))) >> (64 - (bits))))
#define UNSIGNED(v, bits) ((i128)((v) << (64 - (bits)) >> (64 - (bits))))
#define CUT(v, bits) ((u64)(v) << (64 - (bits)) >> (64 - (bits)))

#define INT_REF(name, bits, GET, expr)                                                                                 \
	static u64 name(const u64 *v)                                                                                  \
	{                                                                                                              \
		i128 a = GET(v[1], bits), b = GET(v[2], bits), c = GET(v[3], bits);                                    \
		(void)a, (void)b, (void)c;                                                                             \
		return CUT(expr, bits);                                                                                \
	}
#define INT_REFS(s, bits, GET)                                                                                         \
	INT_REF(add_##s, bits, GET, a + b)                                                                             \
	INT_REF(sub_##s, bits, GET, a - b)                                                                             \
	INT_REF(mul_##s, bits, GET, (u128)a *(u128)b)                                                                  \
	INT_REF(hi_##s, bits, GET, bits == 64 ? high_64(v[1], v[2], #s[0] == 's') : (u64)(a * b >> (bits & 63)))       \
	INT_REF(mad_##s, bits, GET, (u128)a *(u128)b + (u128)c)                                                        \
	INT_REF(div_##s, bits, GET, b ? a / b : -1)                                                                    \
	INT_REF(rem_##s, bits, GET, b ? a % b : -1)                                                                    \
	INT_REF(min_##s, bits, GET, a < b ? a : b)                                                                     \
	INT_REF(max_##s, bits, GET, a > b ? a : b)                                                                     \
	INT_REF(sad_##s, bits, GET, c + (a > b ? a - b : b - a))                                                       \
	static u64 lt_##s(const u64 *v)                                                                                \
	{                                                                                                              \
		return GET(v[1], bits) < GET(v[2], bits);                                                              \
	}                                                                                                              \
	static u64 ge_##s(const u64 *v)                                                                                \
	{                                                                                                              \
		return GET(v[1], bits) >= GET(v[2], bits);                                                             \
	}

/* By halves. */
static u64 high_64(u64 a, u64 b, bool is_signed)
{
	u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
	u64 middle = ah * bl + (al * bl >> 32), other = al * bh + (u32)middle;
	u64 r = ah * bh + (middle >> 32) + (other >> 32);
	return is_signed ? r - (a >> 63 ? b : 0) - (b >> 63 ? a : 0) : r;
}
INT_REFS(u16, 16, UNSIGNED)
INT_REFS(s16, 16, SIGNED)
INT_REFS(u32, 32, UNSIGNED)
INT_REFS(s32, 32, SIGNED)
INT_REFS(u64, 64, UNSIGNED)
INT_REFS(s64, 64, SIGNED)

static void test_integers(void **state)
{
	(void)state;
#define CHECK_INTS(s, d)                                                                                               \
	check("add." #s " $0, $1, $2", d, make_int, add_##s);                                                          \
	check("sub." #s " $0, $1, $2", d, make_int, sub_##s);                                                          \
	check("mul.lo." #s " $0, $1, $2", d, make_int, mul_##s);                                                       \
	check("mul.hi." #s " $0, $1, $2", d, make_int, hi_##s);                                                        \
	check("mad.lo." #s " $0, $1, $2, $3", d, make_int, mad_##s);                                                   \
	check("div." #s " $0, $1, $2", d, make_int, div_##s);                                                          \
	check("rem." #s " $0, $1, $2", d, make_int, rem_##s);                                                          \
	check("min." #s " $0, $1, $2", d, make_int, min_##s);                                                          \
	check("max." #s " $0, $1, $2", d, make_int, max_##s);                                                          \
	check("sad." #s " $0, $1, $2, $3", d, make_int, sad_##s);
	CHECK_INTS(u16, "hhhh")
	CHECK_INTS(s16, "hhhh")
	CHECK_INTS(u32, "rrrr")
	CHECK_INTS(s32, "rrrr")
	CHECK_INTS(u64, "dddd")
	CHECK_INTS(s64, "dddd")
#define CHECK_COMPARES(s, d)                                                                                           \
	check("setp.lt." #s " $0, $1, $2", d, make_int, lt_##s);                                                       \
	check("setp.ge." #s " $0, $1, $2", d, make_int, ge_##s);
	CHECK_COMPARES(u16, "phh")
	CHECK_COMPARES(s16, "phh")
	CHECK_COMPARES(u32, "prr")
	CHECK_COMPARES(s32, "prr")
	CHECK_COMPARES(u64, "pdd")
	CHECK_COMPARES(s64, "pdd")
}

/* --- bits: as the ISA writes them down
 * ----------------------------------------------------------------------------------- */

static u64 ref_bfe(const u64 *v, int bits, bool is_signed)
{
	u64 a = CUT(v[1], bits), r = 0;
	int at = (int)(v[2] & 63), len = (int)(v[3] & 63), top = MIN(at + len - 1, bits - 1);
	u64 sign = is_signed && len ? a >> top & 1 : 0;
	for (int k = 0; k < bits; k++)
		r |= (k < len && at + k < bits ? a >> (at + k) & 1 : sign) << k;
	return r;
}
REF(ref_bfe_u32, ref_bfe(v, 32, false))
REF(ref_bfe_s32, ref_bfe(v, 32, true))
REF(ref_bfe_u64, ref_bfe(v, 64, false))
REF(ref_bfe_s64, ref_bfe(v, 64, true))
static u64 ref_bfi(const u64 *v)
{
	u64 r = (u32)v[2];
	int at = (int)(v[3] & 63), len = 9;
	for (int k = 0; k < len && at + k < 32; k++)
		r = (r & ~((u64)1 << (at + k))) | (v[1] >> k & 1) << (at + k);
	return r;
}
static u64 ref_prmt(const u64 *v)
{
	u8 from[8];
	u64 r = 0, both = (u32)v[1] | v[2] << 32;
	memcpy(from, &both, 8);
	for (u32 k = 0; k < 4; k++) {
		u32 digit = (u32)(v[3] >> 4 * k) & 15;
		u8 b = from[digit & 7];
		r |= (u64)(digit & 8 ? (b >> 7) * 0xFF : b) << 8 * k;
	}
	return r;
}
static u64 ref_lop3(const u64 *v)
{
	u64 r = 0;
	for (u32 k = 0; k < 32; k++)
		r |= (u64)(0xCA >> ((v[1] >> k & 1) * 4 + (v[2] >> k & 1) * 2 + (v[3] >> k & 1)) & 1) << k;
	return r;
}
static u64 ref_shl_32(const u64 *v)
{
	u32 by = (u32)v[2];
	return by > 31 ? 0 : (u32)((u32)v[1] << by);
}
static u64 ref_shr_s16(const u64 *v)
{
	u32 by = MIN((u32)v[2], 15);
	return (u16)((i16)v[1] >> by);
}
REF(ref_shf, (u32)(((u128)(u32)v[2] << 32 | (u32)v[1]) << MIN((u32)v[3], 32) >> 32))
static u64 ref_brev(const u64 *v)
{
	u64 r = 0;
	for (u32 k = 0; k < 64; k++)
		r |= (v[1] >> k & 1) << (63 - k);
	return r;
}
static u64 ref_clz(const u64 *v)
{
	u64 n = 0;
	while (n < 32 && !(v[1] >> (31 - n) & 1))
		n++;
	return n;
}
static u64 ref_bfind(const u64 *v)
{
	for (int k = 30; k >= 0; k--)
		if ((v[1] >> k & 1) != (v[1] >> 31 & 1))
			return (u64)k;
	return UINT32_MAX;
}
static u64 ref_dp4a(const u64 *v)
{
	i64 r = (i32)v[3];
	for (u32 k = 0; k < 4; k++)
		r += (i8)(v[1] >> 8 * k) * (int)(u8)(v[2] >> 8 * k);
	return (u32)r;
}
static u64 make_bits(void)
{
	return random_bits() % 2 ? random_bits() : random_bits() % 70;
}
static u64 make_place(void)
{
	static u32 turn;
	return turn++ % 4 < 2 ? random_bits() : random_bits() % 64;
}

static void test_bits(void **state)
{
	(void)state;
	check("bfe.u32 $0, $1, $2, $3", "rrrr", make_place, ref_bfe_u32);
	check("bfe.s32 $0, $1, $2, $3", "rrrr", make_place, ref_bfe_s32);
	check("bfe.u64 $0, $1, $2, $3", "ddrr", make_place, ref_bfe_u64);
	check("bfe.s64 $0, $1, $2, $3", "ddrr", make_place, ref_bfe_s64);
	check("bfi.b32 $0, $1, $2, $3, 9", "rrrr", make_place, ref_bfi);
	check("prmt.b32 $0, $1, $2, $3", "rrrr", make_bits, ref_prmt);
	check("lop3.b32 $0, $1, $2, $3, 0xCA", "rrrr", make_bits, ref_lop3);
	check("shl.b32 $0, $1, $2", "rrr", make_bits, ref_shl_32);
	check("shr.s16 $0, $1, $2", "hhr", make_bits, ref_shr_s16);
	check("shf.l.clamp.b32 $0, $1, $2, $3", "rrrr", make_bits, ref_shf);
	check("brev.b64 $0, $1", "dd", make_bits, ref_brev);
	check("clz.b32 $0, $1", "rr", make_bits, ref_clz);
	check("bfind.s32 $0, $1", "rr", make_bits, ref_bfind);
	check("dp4a.s32.u32 $0, $1, $2, $3", "rrrr", make_bits, ref_dp4a);
}

/* --- floating point
 * --------------------------------------------------------------------------------------------------- */

#define F32(v) fp_f32_bits((u32)(v))
#define F64(v) fp_f64_bits(v)

static u64 f32_bits(f128 x)
{
	return x != x ? 0x7FFFFFFF : fp_bits_f32((float)x);
}
REF(ref_add_f32, f32_bits((f128)F32(v[1]) + F32(v[2])))
REF(ref_mul_f32, f32_bits((f128)F32(v[1]) * F32(v[2])))
static u64 ref_fma_f32(const u64 *v)
{
	float r = fmaf(F32(v[1]), F32(v[2]), F32(v[3]));
	return r != r ? 0x7FFFFFFF : fp_bits_f32(r);
}
REF(ref_div_f32, f32_bits((f128)F32(v[1]) / F32(v[2])))
static u64 ref_sat_f32(const u64 *v)
{
	f128 x = (f128)F32(v[1]) * F32(v[2]);
	return x > 0 ? f32_bits(x < 1 ? x : 1) : 0;
}
/* From scratch: below 2^-126 after rounding to 24 bits with an unlimited exponent. */
static u64 flushed(u64 b)
{
	return b & 0x7F800000 ? b : b & 0x80000000;
}
static u64 ref_mul_ftz_f32(const u64 *v)
{
	f128 x = (f128)F32(flushed((u32)v[1])) * F32(flushed((u32)v[2])), size = x < 0 ? -x : x;
	bool tiny = size != 0 && (float)(size * 0x1p60) < 0x1p-66f;
	return tiny ? (x < 0) * 0x80000000ull : flushed(f32_bits(x));
}
static u64 ref_min_f32(const u64 *v)
{
	float x = F32(v[1]), y = F32(v[2]);
	return x != x                                ? f32_bits(y)
	       : y != y                              ? f32_bits(x)
	       : x < y || (x == y && v[1] >> 31 & 1) ? f32_bits(x)
						     : f32_bits(y);
}
static u64 ref_max_nan_f32(const u64 *v)
{
	float x = F32(v[1]), y = F32(v[2]);
	return x != x || y != y ? 0x7FFFFFFF : x > y || (x == y && !(v[1] >> 31 & 1)) ? f32_bits(x) : f32_bits(y);
}
REF(ref_ltu, isunordered(F32(v[1]), F32(v[2])) || F32(v[1]) < F32(v[2]))
REF(ref_ne, islessgreater(F32(v[1]), F32(v[2])))
static u64 ref_pair(const u64 *v)
{
	bool less = F32(v[1]) < F32(v[2]), c = !(v[3] & 1);
	return (u64)(less && c) | (u64)(!less && c) << 1;
}

/* Rounded toward -infinity: not above the product, and the next one is. */
static void check_rounding(const char *text, bool down, bool wide)
{
	struct arena a = {0};
	static u64 in[N][4], out[N];
	for (u32 i = 0; i < N; i++)
		for (u32 k = 0; k < 4; k++)
			in[i][k] = wide ? 0x3FF0000000000000 ^ random_bits() >> 5 ^ random_bits() << 63 : make_f32();
	assert_null(run(&a, text, wide ? "ggg" : "fff", in, out));
	for (u32 i = 0; i < N; i++) {
		f128 exact = wide ? (f128)F64(in[i][1]) * F64(in[i][2]) : (f128)F32(in[i][1]) * F32(in[i][2]);
		f128 got = wide ? F64(out[i]) : F32(out[i]), inf = down ? INFINITY : -INFINITY;
		f128 next = wide ? nextafter(F64(out[i]), (double)inf) : nextafterf(F32(out[i]), (float)inf);
		if (exact != exact
			    ? got == got
			    : got != exact && (down ? got > exact || next <= exact : got < exact || next >= exact))
			fail_msg("%s: number %u", text, i);
	}
	arena_free(&a);
}

static double odd(f128 x)
{
	double d = (double)x;
	u64 b = fp_bits_f64(d);
	if ((f128)d == x || x != x || b & 1)
		return d;
	bool up = (x < 0 ? -x : x) > (d < 0 ? -(f128)d : (f128)d);
	return F64(up ? b + 1 : b - 1);
}
REF(ref_add_f16, fp_encode(FP_F16, fp_decode(FP_F16, (u16)v[1]) + fp_decode(FP_F16, (u16)v[2]), false))
static u64 ref_fma_f16(const u64 *v)
{
	return fp_encode(
		FP_F16,
		odd((f128)fp_decode(FP_F16, (u16)v[1]) * fp_decode(FP_F16, (u16)v[2]) + fp_decode(FP_F16, (u16)v[3])),
		false);
}
static u64 ref_fma_bf16(const u64 *v)
{
	return fp_encode(FP_BF16,
			 odd((f128)fp_decode(FP_BF16, (u16)v[1]) * fp_decode(FP_BF16, (u16)v[2]) +
			     fp_decode(FP_BF16, (u16)v[3])),
			 false);
}
static u64 ref_add_f16x2(const u64 *v)
{
	u64 high[3] = {0, v[1] >> 16, v[2] >> 16};
	return ref_add_f16(v) | ref_add_f16(high) << 16;
}

static void test_floats(void **state)
{
	(void)state;
	check("add.rn.f32 $0, $1, $2", "fff", make_f32, ref_add_f32);
	check("mul.f32 $0, $1, $2", "fff", make_f32, ref_mul_f32);
	check("mul.sat.f32 $0, $1, $2", "fff", make_f32, ref_sat_f32);
	check("mul.ftz.f32 $0, $1, $2", "fff", make_f32, ref_mul_ftz_f32);
	check("fma.rn.f32 $0, $1, $2, $3", "ffff", make_f32, ref_fma_f32);
	check("div.rn.f32 $0, $1, $2", "fff", make_f32, ref_div_f32);
	check("min.f32 $0, $1, $2", "fff", make_f32, ref_min_f32);
	check("max.NaN.f32 $0, $1, $2", "fff", make_f32, ref_max_nan_f32);
	check("setp.ltu.f32 $0, $1, $2", "pff", make_f32, ref_ltu);
	check("setp.ne.f32 $0, $1, $2", "pff", make_f32, ref_ne);
	check("setp.lt.and.f32 $0|$9, $1, $2, !$3", "pffp", make_f32, ref_pair);
	check_rounding("mul.rm.f32 $0, $1, $2", true, false);
	check_rounding("mul.rp.f32 $0, $1, $2", false, false);
	check_rounding("mul.rm.f64 $0, $1, $2", true, true);
	check_rounding("mul.rp.f64 $0, $1, $2", false, true);
	check("add.f16 $0, $1, $2", "hhh", make_half, ref_add_f16);
	check("add.f16x2 $0, $1, $2", "rrr", make_half, ref_add_f16x2);
	check("fma.rn.f16 $0, $1, $2, $3", "hhhh", make_half, ref_fma_f16);
	check("fma.rn.bf16 $0, $1, $2, $3", "hhhh", make_bf16, ref_fma_bf16);
}

/* The distance to the exact value, by the ISA's bounds. */
static void check_approximation(const char *text, double (*f)(double), double relative, double absolute)
{
	struct arena a = {0};
	static u64 in[N][4], out[N];
	for (u32 i = 0; i < N; i++)
		in[i][1] = fp_bits_f32((float)(random_bits() % 2000000 + 1) / 500000);
	assert_null(run(&a, text, "ff", in, out));
	for (u32 i = 0; i < N; i++) {
		double want = f(F32(in[i][1])), off = fabs(F32(out[i]) - want);
		if (off > fabs(want) * relative && off > absolute)
			fail_msg("%s of %g: %g, want %g", text, F32(in[i][1]), F32(out[i]), want);
	}
	arena_free(&a);
}

static double inverse(double x)
{
	return 1 / x;
}
static double inverse_root(double x)
{
	return 1 / sqrt(x);
}

static void test_approximations(void **state)
{
	(void)state;
	check_approximation("rcp.approx.f32 $0, $1", inverse, 0x1p-23, 0);
	check_approximation("rsqrt.approx.ftz.f32 $0, $1", inverse_root, 0x1p-22, 0);
	check_approximation("sqrt.approx.f32 $0, $1", sqrt, 0x1p-23, 0);
	check_approximation("ex2.approx.ftz.f32 $0, $1", exp2, 0x1p-22, 0);
	check_approximation("lg2.approx.f32 $0, $1", log2, 0x1p-22, 0x1p-22);
	check_approximation("sin.approx.f32 $0, $1", sin, 0, 0x1p-20);
	check_approximation("cos.approx.f32 $0, $1", cos, 0, 0x1p-20);
	check_approximation("tanh.approx.f32 $0, $1", tanh, 0x1p-11, 0);
}

/* --- conversions
 * ---------------------------------------------------------------------------------------------------------- */

static u64 clamped(f128 x, u64 nan, int bits, bool is_signed)
{
	i128 one = 1, least = is_signed ? -(one << (bits - 1)) : 0, most = (one << (bits - is_signed)) - 1;
	if (x != x)
		return nan;
	return CUT(x >= (f128)most ? most : x <= (f128)least ? least : (i128)x, bits);
}
REF(ref_rzi_s32, clamped(F32(v[1]), 0, 32, true))
REF(ref_rzi_u64, clamped(F32(v[1]), (u64)1 << 63, 64, false))
REF(ref_rmi_s64, clamped(floor(F64(v[1])), (u64)1 << 63, 64, true))
REF(ref_rni_u8, clamped(rintf(F32(v[1])), 0, 8, false))
REF(ref_rpi_s8, (u16)(i8)clamped(ceilf(F32(v[1])), 0, 8, true))
REF(ref_s64_f32, fp_bits_f32((float)(f128)(i64)v[1]))
REF(ref_u64_f64, fp_bits_f64((double)(f128)v[1]))
REF(ref_u64_f16, fp_encode(FP_F16, odd((f128)v[1]), false))
REF(ref_f32_f16, fp_encode(FP_F16, F32(v[1]), false))
REF(ref_f32_bf16_rz, fp_encode(FP_BF16, F32(v[1]), true))
REF(ref_pair_bf16, fp_encode(FP_BF16, F32(v[1]), false) << 16 | fp_encode(FP_BF16, F32(v[2]), false))
static u64 ref_pair_relu(const u64 *v)
{
	float x = F32(v[1]) <= 0 ? 0 : F32(v[1]), y = F32(v[2]) <= 0 ? 0 : F32(v[2]);
	return fp_encode(FP_F16, x, false) << 16 | fp_encode(FP_F16, y, false);
}
REF(ref_pair_e4m3, fp_encode(FP_E4M3, F32(v[1]), false) << 8 | fp_encode(FP_E4M3, F32(v[2]), false))
REF(ref_pair_e5m2, fp_encode(FP_E5M2, F32(v[1]), false) << 8 | fp_encode(FP_E5M2, F32(v[2]), false))
static u64 ref_from_e4m3(const u64 *v)
{
	return fp_encode(FP_F16, fp_decode(FP_E4M3, v[1] >> 8 & 0xFF), false) << 16 |
	       fp_encode(FP_F16, fp_decode(FP_E4M3, v[1] & 0xFF), false);
}
static u64 ref_rz_f64_f32(const u64 *v)
{
	double x = F64(v[1]);
	float f = (float)x;
	if (x != x)
		return fp_bits_f32(f);
	while (fabs((double)f) > fabs(x))
		f = nextafterf(f, 0);
	return fp_bits_f32(f);
}
REF(ref_s16_s8, (u16)(i16)(i8)v[1])
REF(ref_sat_u8_s32, (u64)MAX(0, MIN((i32)v[1], 255)))
REF(ref_wide_s8, (u32)(i32)(i8)v[1])
static u64 ref_pack(const u64 *v)
{
	u64 high = (u8)MAX(-128, MIN((i32)v[1], 127)), low = (u8)MAX(-128, MIN((i32)v[2], 127));
	return (u32)(v[3] << 16) | high << 8 | low;
}

static void test_conversions(void **state)
{
	(void)state;
	check("cvt.rzi.s32.f32 $0, $1", "rf", make_f32, ref_rzi_s32);
	check("cvt.rzi.u64.f32 $0, $1", "df", make_f32, ref_rzi_u64);
	check("cvt.rmi.s64.f64 $0, $1", "dg", make_f64, ref_rmi_s64);
	check("cvt.rni.u8.f32 $0, $1", "hf", make_f32, ref_rni_u8);
	check("cvt.rpi.s8.f32 $0, $1", "hf", make_f32, ref_rpi_s8);
	check("cvt.rn.f32.s64 $0, $1", "fd", make_int, ref_s64_f32);
	check("cvt.rn.f64.u64 $0, $1", "gd", make_int, ref_u64_f64);
	check("cvt.rn.f16.u64 $0, $1", "hd", make_int, ref_u64_f16);
	check("cvt.rn.f16.f32 $0, $1", "hf", make_f32, ref_f32_f16);
	check("cvt.rz.bf16.f32 $0, $1", "hf", make_f32, ref_f32_bf16_rz);
	check("cvt.rn.bf16x2.f32 $0, $1, $2", "rff", make_f32, ref_pair_bf16);
	check("cvt.rn.relu.f16x2.f32 $0, $1, $2", "rff", make_f32, ref_pair_relu);
	check("cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2", "hff", make_f32, ref_pair_e4m3);
	check("cvt.rn.satfinite.e5m2x2.f32 $0, $1, $2", "hff", make_f32, ref_pair_e5m2);
	check("cvt.rn.f16x2.e4m3x2 $0, $1", "rh", make_half, ref_from_e4m3);
	check("cvt.rz.f32.f64 $0, $1", "fg", make_f64, ref_rz_f64_f32);
	check("cvt.s16.s8 $0, $1", "hh", make_int, ref_s16_s8);
	check("cvt.sat.u8.s32 $0, $1", "hr", make_int, ref_sat_u8_s32);
	check("cvt.s8.s32 $0, $1", "rr", make_int, ref_wide_s8);
	check("cvt.pack.sat.s8.s32.b32 $0, $1, $2, $3", "rrrr", make_int, ref_pack);
}

/* --- what a GPU did
 * -------------------------------------------------------------------------------------------------------- */

static void test_observed(void **state)
{
	(void)state;
	static const struct {
		const char *text, *letters;
		u64 in[4], want;
	} rows[] = {
		{"rem.u32 $0, $1, $2", "rrr", {0, 5, 0}, 0xFFFFFFFF},
		{"div.s32 $0, $1, $2", "rrr", {0, 5, 0}, 0xFFFFFFFF},
		{"div.s32 $0, $1, $2", "rrr", {0, 0x80000000, 0xFFFFFFFF}, 0x80000000},
		{"mul.rn.ftz.f32 $0, $1, $2", "fff", {0, 0x800000, 0x3F7FFFFF}, 0},
		{"mul.rn.f32 $0, $1, $2", "fff", {0, 0x800000, 0x3F7FFFFF}, 0x800000},
		{"mul.rm.ftz.f32 $0, $1, $2", "fff", {0, 0x800000, 0xBF7FFFFF}, 0x80000000},
		{"mul.ftz.f16 $0, $1, $2", "hhh", {0, 0x3BFF, 0x400}, 0},
		{"add.f64 $0, $1, $2", "ggg", {0, 0x7FF0000000000001, 0xFFF8000000000000}, 0xFFF8000000000000},
		{"fma.rn.f64 $0, $1, $2, $3",
		 "gggg",
		 {0, 0xFFFFFFFFFFFFFFFF, 0x401C000000000000, 0x7FFFFFFFFFFFFFFF},
		 0x7FFFFFFFFFFFFFFF},
		{"sqrt.rn.f64 $0, $1", "gg", {0, 0xBFF0000000000000}, 0xFFF8000000000000},
		{"neg.f32 $0, $1", "ff", {0, 0x7FC00000}, 0x7FFFFFFF},
		{"cvt.rna.tf32.f32 $0, $1", "rf", {0, 0x7F800001}, 0x7F800000},
		{"cvt.rz.tf32.f32 $0, $1", "rf", {0, 0x7F800001}, 0x7FFFE000},
		{"cvt.f32.bf16 $0, $1", "fh", {0, 0x7F81}, 0x7F810000},
		{"cvt.f32.f16 $0, $1", "fh", {0, 0xFC01}, 0x7FFFFFFF},
		{"cvt.rn.bf16.f64 $0, $1", "hg", {0, 0xFFF0000000000001}, 0xFFC0},
		{"testp.normal.f32 $0, $1", "pf", {0, 0}, 1},
	};
	for (u32 k = 0; k < ARRAY_LEN(rows); k++) {
		struct arena a = {0};
		static u64 in[N][4], out[N];
		for (u32 i = 0; i < N; i++)
			memcpy(in[i], rows[k].in, sizeof in[i]);
		const char *error = run(&a, rows[k].text, rows[k].letters, in, out);
		if (error || out[0] != rows[k].want || out[N - 1] != rows[k].want)
			fail_msg("%s: %s, got 0x%llx", rows[k].text, error ? error : "", (unsigned long long)out[0]);
		arena_free(&a);
	}
}

/* --- lanes, vectors, refusals -------------------------------------------------------------------------------- */

REF(ref_guarded, v[3] & 1 ? (u32)(v[1] + v[2]) : (u32)v[0])
REF(ref_in_place, (u32)(v[0] * v[0] + v[0]))
REF(ref_halves, (v[1] & 0xFFFF) << 16 | (v[2] & 0xFFFF))
REF(ref_upper, v[1] >> 32)
REF(ref_select, v[3] & 1 ? (u32)v[1] : (u32)v[2])

REF(ref_masked, (u32)v[1] & 0x81C081C0)
REF(ref_masked_wide, v[1] & 0x8000000000000003)

/* A number in each base, as in PTX ISA 4.5.1. */
static void test_constants(void **state)
{
	(void)state;
	check("and.b32 $0, $1, 0x81C081C0", "rr", make_int, ref_masked);
	check("and.b32 $0, $1, 2176876992U", "rr", make_int, ref_masked);
	check("and.b32 $0, $1, 020160100700", "rr", make_int, ref_masked);
	check("and.b32 $0, $1, 0b10000001110000001000000111000000", "rr", make_int, ref_masked);
	check("and.b64 $0, $1, 0B1000000000000000000000000000000000000000000000000000000000000011U", "dd", make_int,
	      ref_masked_wide);
}

static void test_lanes(void **state)
{
	(void)state;
	check("@$3 add.s32 $0, $1, $2", "rrrp", make_int, ref_guarded);
	check("mad.lo.s32 $0, $0, $0, $0", "r", make_int, ref_in_place);
	check("mov.b32 $0, {$2, $1}", "rhh", make_int, ref_halves);
	check("mov.b64 {_, $0}, $1", "rd", make_int, ref_upper);
	check("selp.b32 $0, $1, $2, $3", "rrrp", make_int, ref_select);
}

static void test_refused(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{"add.f32 $0, $1, $2", "ffg"},
		{"add.s32 $0, $1, $2", "rrd"},
		{"add.cc.s32 $0, $1, $2", "rrr"},
		{"add.ftz.f64 $0, $1, $2", "ggg"},
		{"fma.f32 $0, $1, $2, $3", "ffff"},
		{"add.rn.s32 $0, $1, $2", "rrr"},
		{"div.f32 $0, $1, $2", "fff"},
		{"setp.ltu.s32 $0, $1, $2", "prr"},
		{"setp.lt.b32 $0, $1, $2", "prr"},
		{"setp.lo.s32 $0, $1, $2", "prr"},
		{"cvt.f16.f32 $0, $1", "hf"},
		{"cvt.rn.f32.f16 $0, $1", "fh"},
		{"cvt.s32.f32 $0, $1", "rf"},
		{"cvt.sat.u32.u16 $0, $1", "rh"},
		{"cvt.rn.e4m3x2.f32 $0, $1, $2", "hff"},
		{"cvt.rn.satfinite.e2m1x2.f32 $0, $1, $2", "hff"},
		{"sin.f32 $0, $1", "ff"},
		{"mov.b32 $0, $1", "rd"},
		{"add.s32 $0, $1", "rr"},
		{"add.f32 $0, $1, 1", "ff"},
		{"lop3.b32 $0, $1, $2, $3, 256", "rrrr"},
	};
	for (u32 k = 0; k < ARRAY_LEN(rows); k++) {
		struct arena a = {0};
		static u64 in[N][4], out[N];
		if (!run(&a, rows[k][0], rows[k][1], in, out))
			fail_msg("%s with %s is taken", rows[k][0], rows[k][1]);
		arena_free(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers),    cmocka_unit_test(test_bits),
		cmocka_unit_test(test_floats),      cmocka_unit_test(test_approximations),
		cmocka_unit_test(test_conversions), cmocka_unit_test(test_observed),
		cmocka_unit_test(test_constants),   cmocka_unit_test(test_lanes),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

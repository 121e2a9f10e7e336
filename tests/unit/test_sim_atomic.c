/* Atomics of the simulator: every operation and type against plain C, in global and in shared memory. */
#include <math.h>

#include "support/small_floats.h"
#include "test_sim_rig.h"

static u64 cut(i128 v, u32 bytes)
{
	return bytes == 8 ? (u64)v : (u64)v & (((u64)1 << bytes * 8) - 1);
}

static u64 as_f16(u64 bits, u64 add)
{
	return fp_encode(FP_F16, fp_decode(FP_F16, (u32)bits) + fp_decode(FP_F16, (u32)add), false);
}

static u64 as_bf16(u64 bits, u64 add)
{
	return fp_encode(FP_BF16, fp_decode(FP_BF16, (u32)bits) + fp_decode(FP_BF16, (u32)add), false);
}

static u64 as_f32(u64 a, u64 b, bool flush)
{
	float x = fp_f32_bits((u32)a), y = fp_f32_bits((u32)b);
	if (flush && fpclassify(x) == FP_SUBNORMAL)
		x = copysignf(0, x);
	if (flush && fpclassify(y) == FP_SUBNORMAL)
		y = copysignf(0, y);
	float r = (float)((double)x + (double)y);
	if (flush && fpclassify(r) == FP_SUBNORMAL)
		r = copysignf(0, r);
	return isnan(r) ? 0x7FFFFFFF : fp_bits_f32(r);
}

static u64 reference(const char *op, const char *type, u32 bytes, u64 old, u64 b, u64 c, bool shared)
{
	bool is_signed = type[0] == 's';
	i128 x = is_signed ? (i128)(i64)(old << (64 - bytes * 8)) >> (64 - bytes * 8) : (i128)old;
	i128 y = is_signed ? (i128)(i64)(b << (64 - bytes * 8)) >> (64 - bytes * 8) : (i128)b;
	bool x2 = strstr(type, "x2");
	u64 (*half)(u64, u64) = strstr(type, "bf16") ? as_bf16 : strstr(type, "f16") ? as_f16 : NULL;
	if (half)
		return half(old & 0xFFFF, b & 0xFFFF) | (x2 ? half(old >> 16, b >> 16) << 16 : 0);
	if (!strcmp(type, "f32"))
		return as_f32(old, b, !shared);
	if (!strcmp(type, "f64"))
		return fp_bits_f64((double)((long double)fp_f64_bits(old) + (long double)fp_f64_bits(b)));
	switch (op[0]) {
	case 'a': return op[1] == 'n' ? old & b : cut(x + y, bytes);
	case 'o': return old | b;
	case 'x': return old ^ b;
	case 'c': return old == b ? c : old;
	case 'e': return b;
	case 'i': return old < b ? old + 1 : 0;
	case 'd': return old >= 1 && old <= b ? old - 1 : b;
	default: return cut(op[1] == 'i' ? MIN(x, y) : MAX(x, y), bytes);
	}
}

static u64 random_operand(const char *type, u32 bytes)
{
	u64 v = random_bits();
	if (!strcmp(type, "f32")) /* of like size, subnormals and zeros among them */
		return (v & 0x807FFFFF) | (v >> 40 & 3 ? (v >> 42 & 3) << 23 : 0);
	if (!strcmp(type, "f64"))
		return (v & 0x801FFFFFFFFFFFFF) | (u64)0x3FE << 52;
	if (strstr(type, "f16"))
		return cut((i128)(v & 0x9FFF9FFF9FFF9FFF), bytes);
	if (v >> 60 == 0)
		v = v >> 59 & 1 ? 0 : ~(u64)0;
	return cut((i128)(v >> 58 & 1 ? v % 7 : v), bytes);
}

/* Each lane does it to one of four words: old values and results against lanes taking turns in order. */
static void check_atomic(const char *op, const char *type, u32 bytes, bool shared, const char *order)
{
	struct rig *r = rig_new();
	bool is_cas = op[0] == 'c', half = strstr(type, "f16");
	struct strbuf s = {.arena = &r->arena};
	const char *reg = bytes == 2 ? "%rs" : bytes == 4 ? "%r" : "%rd";
	u64 words[4], operand[LANES], other[LANES];
	u32 which[LANES];
	for (u32 k = 0; k < 4; k++) {
		words[k] = random_operand(type, bytes);
		memcpy(r->a + 2048 + k * bytes, &words[k], bytes);
	}
	for (u32 l = 0; l < LANES; l++) {
		which[l] = (u32)random_bits() % 4 * bytes;
		operand[l] = is_cas ? (random_bits() & 1 ? words[which[l] / bytes] : 3) : random_operand(type, bytes);
		other[l] = is_cas && random_bits() & 1 ? 3 : random_operand(type, bytes);
		memcpy(r->a + l * 8, &operand[l], 8);
		memcpy(r->a + 512 + l * 8, &other[l], 8);
		memcpy(r->a + 1024 + l * 8, &(u64){which[l]}, 8);
	}
	sb_printf(&s,
		  "mul.wide.u32 %%rd3, %%r1, 8; add.s64 %%rd4, %%rd1, %%rd3; "
		  "ld.global.b%u %s10, [%%rd4]; ld.global.b%u %s11, "
		  "[%%rd4+512]; ld.global.u64 %%rd5, [%%rd4+1024];\n",
		  bytes * 8, reg, bytes * 8, reg);
	sb_printf(&s, "add.s64 %%rd6, %%rd1, %%rd5; add.s64 %%rd6, %%rd6, 2048; add.s64 %%rd8, %%rd9, %%rd5;\n");
	if (shared)
		sb_printf(&s, "ld.global.b%u %s12, [%%rd6]; setp.eq.u32 %%p1, %%r1, %%r1; "
			  "st.shared.b%u [%%rd8], %s12;\n",
			  bytes * 8, reg, bytes * 8, reg);
	sb_printf(&s, "atom%s.%s.%s%s.%s %s13, [%%rd%u], %s10%s%s;\n", order, shared ? "shared" : "global", op,
		  half ? ".noftz" : "", type, reg, shared ? 8 : 6, reg, is_cas ? ", " : "",
		  is_cas ? arena_printf(&r->arena, "%s11", reg) : "");
	sb_printf(&s, "add.s64 %%rd7, %%rd2, %%rd3; st.global.b%u [%%rd7], %s13;\n", bytes * 8, reg);
	if (shared)
		sb_printf(&s, "ld.shared.b%u %s12, [%%rd8]; st.global.b%u [%%rd6], %s12;\n", bytes * 8, reg, bytes * 8,
			  reg);
	expect_ok(r, s.at);
	for (u32 l = 0; l < LANES; l++) {
		u64 got = extended(r->b + l * 8, bytes, false), *word = &words[which[l] / bytes];
		if (got != *word)
			fail_msg("%s: lane %u gets 0x%llx, not 0x%llx", s.at, l, (unsigned long long)got,
				 (unsigned long long)*word);
		*word = reference(op, type, bytes, *word, cut((i128)operand[l], bytes), cut((i128)other[l], bytes),
				  shared);
	}
	for (u32 k = 0; k < 4; k++) {
		u64 got = extended(r->a + 2048 + k * bytes, bytes, false);
		if (got != words[k])
			fail_msg("%s: word %u is 0x%llx, not 0x%llx", s.at, k, (unsigned long long)got,
				 (unsigned long long)words[k]);
	}
	rig_free(r);
}

static const struct {
	const char *op, *types;
} atomics[] = {
	{"and", "b32 b64"},
	{"or", "b32 b64"},
	{"xor", "b32 b64"},
	{"cas", "b16 b32 b64"},
	{"exch", "b32 b64"},
	{"add", "u32 s32 u64 f32 f64 f16 f16x2 bf16 bf16x2"},
	{"inc", "u32"},
	{"dec", "u32"},
	{"min", "u32 s32 u64 s64"},
	{"max", "u32 s32 u64 s64"},
};

static void each_atomic(void (*check)(const char *op, const char *type, u32 bytes, u32 round))
{
	for (u32 k = 0; k < ARRAY_LEN(atomics); k++) {
		char list[64], *save = NULL;
		snprintf(list, sizeof list, "%s", atomics[k].types);
		for (char *t = strtok_r(list, " ", &save); t; t = strtok_r(NULL, " ", &save))
			for (u32 round = 0; round < 12; round++)
				check(atomics[k].op, t, strstr(t, "64") ? 8 : strstr(t, "32") || strstr(t, "x2") ? 4
				      : 2, round);
	}
}

static void check_round(const char *op, const char *type, u32 bytes, u32 round)
{
	static const char *const orders[] = {"", ".relaxed.gpu", ".acq_rel.gpu", ".acquire.cta", ".release.sys",
					     ".cta"};
	check_atomic(op, type, bytes, round % 2, orders[round / 2]);
}

static void test_atomics(void **state)
{
	(void)state;
	each_atomic(check_round);
}

/* Many blocks at once: nothing is lost. */
static void test_contended(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	r->blocks = 64;
	r->warps = 4;
	memset(r->a, 0, 64);
	expect_ok(r, "red.global.add.u32 [%rd1], 3; red.relaxed.gpu.global.add.u64 [%rd1+8], 5; "
		  "red.global.add.f32 [%rd1+16], "
		     "0f3F800000; red.global.inc.u32 [%rd1+20], 0xFFFFFF;\n"
		     "red.global.add.f64 [%rd1+24], 0d3FF0000000000000; "
		     "mul.lo.s32 %r3, %r2, 128; add.s32 %r3, %r3, %r1; "
		     "red.release.gpu.global.max.u32 [%rd1+32], %r3;\n"
		     "mov.b32 %r6, 0x00010000; atom.global.add.noftz.f16x2 %r4, [%rd1+36], %r6; "
		     "red.global.v2.f32.add [%rd1+40], {0f3F800000, "
		     "0f40000000};");
	u32 n = 64 * 128, word;
	u64 wide;
	float f;
	double d;
	memcpy(&word, r->a, 4);
	assert_int_equal(word, n * 3);
	memcpy(&wide, r->a + 8, 8);
	assert_int_equal(wide, n * 5);
	memcpy(&f, r->a + 16, 4);
	assert_true(f == (float)n);
	memcpy(&word, r->a + 20, 4);
	assert_int_equal(word, n);
	memcpy(&d, r->a + 24, 8);
	assert_true(d == n);
	memcpy(&word, r->a + 32, 4);
	assert_int_equal(word, n - 1);
	memcpy(&f, r->a + 44, 4);
	assert_true(f == 2 * (float)n);
	rig_free(r);
}

/* Subnormals, NaN and infinities of f32 sums; vectors of 16-bit floats with min and max. */
static void test_float_atomics(void **state)
{
	(void)state;
	static const u16 in[8] = {0x8000, 0x0000, 0x7E00, 0x3C00, 0x7E01, 0xFC00, 0x0001, 0xBC00},
			 by[8] = {0x0000, 0x8000, 0x3C00, 0x7E00, 0xFE00, 0x7C00, 0x8001, 0xBC01};
	static const u16 least[8] = {0x8000, 0x8000, 0x3C00, 0x3C00, 0x7FFF, 0xFC00, 0x8001, 0xBC01},
			 most[8] = {0, 0, 0x3C00, 0x3C00, 0x7FFF, 0x7C00, 0x0001, 0xBC00};
	struct rig *r = rig_new();
	memcpy(r->a, in, 16);
	memcpy(r->a + 16, by, 16);
	memcpy(r->a + 32, in, 16);
	expect_ok(r,
		  "setp.ne.u32 %p1, %r1, 0;\n@%p1 exit;\n"
		  "ld.global.v4.b16 {%rs0, %rs1, %rs2, %rs3}, [%rd1+16]; "
		  "ld.global.v4.b16 {%rs4, %rs5, %rs6, %rs7}, [%rd1+24];\n"
		  "red.global.v8.f16.min.noftz [%rd1], {%rs0, %rs1, %rs2, %rs3, %rs4, %rs5, %rs6, %rs7};\n"
		  "atom.global.v4.f16.max.noftz {%rs8, %rs9, %rs10, %rs11}, [%rd1+32], {%rs0, %rs1, %rs2, %rs3};\n"
		  "red.global.v4.f16.max.noftz [%rd1+40], {%rs4, %rs5, %rs6, %rs7}; "
		  "st.global.v4.b16 [%rd2], {%rs8, %rs9, %rs10, "
		  "%rs11};");
	assert_memory_equal(r->a, least, 16);
	assert_memory_equal(r->a + 32, most, 16);
	assert_memory_equal(r->b, in, 8);
	static const u32 start[] = {0x00000001, 0x80000001, 0x7F800000, 0x3F800000},
			 want[] = {0, 0x80000000, 0x7FFFFFFF, 0x7FFFFFFF};
	memcpy(r->a, start, 16);
	expect_ok(r, "setp.ne.u32 %p1, %r1, 0;\n@%p1 exit;\n"
		     "red.global.add.f32 [%rd1], 0f00000001; "
		     "red.global.add.f32 [%rd1+4], 0f80000001; red.global.add.f32 "
		     "[%rd1+8], 0fFF800000; red.global.add.f32 [%rd1+12], 0f7FC12345;");
	assert_memory_equal(r->a, want, 16);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_contended),
		cmocka_unit_test(test_float_atomics),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

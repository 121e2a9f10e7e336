/* Loads, stores and asynchronous copies of the simulator: small kernels against plain C, and their faults. */
#include "test_sim_rig.h"

/* --- loads and stores ------------------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	u32 bytes;
	bool is_signed;
} types[] = {{"b8", 1, 0},  {"u8", 1, 0},  {"s8", 1, 1},  {"b16", 2, 0}, {"u16", 2, 0}, {"s16", 2, 1},
	     {"b32", 4, 0}, {"u32", 4, 0}, {"s32", 4, 1}, {"b64", 8, 0}, {"u64", 8, 0}, {"s64", 8, 1}};

/* Every type as a vector of 1, 2 or 4, from global memory through a space to global memory, 64 bits an element. */
static void check_type(u32 t, u32 n, const char *order_ld, const char *order_st)
{
	struct rig *r = rig_new();
	struct strbuf s = {.arena = &r->arena};
	u32 size = types[t].bytes * n;
	const char *to = n == 1   ? "%rd10"
			 : n == 2 ? "{%rd10,%rd11}"
				  : "{%rd10,%rd11,%rd12,%rd13}",
		   *v = n == 1   ? ""
			: n == 2 ? ".v2"
				 : ".v4";
	sb_printf(&s,
		  "mul.wide.u32 %%rd3, %%r1, %u; add.s64 %%rd4, %%rd1, %%rd3; "
		  "xor.b64 %%rd5, %%rd3, %u; add.s64 %%rd5, %%rd5, "
		  "%%rd9;\n",
		  size, size);
	sb_printf(&s, "ld%s.global%s.%s %s, [%%rd4+%u];\n", order_ld, v, types[t].name, to, size);
	sb_printf(&s, "st%s.shared%s.%s [%%rd5], %s;\n", order_st, v, types[t].name, to);
	sb_printf(&s, "ld.shared%s.%s %s, [%%rd5];\n", v, types[t].name, to);
	sb_printf(&s, "mul.wide.u32 %%rd6, %%r1, %u; add.s64 %%rd7, %%rd2, %%rd6;\n", n * 8);
	for (u32 k = 0; k < n; k++)
		sb_printf(&s, "st.global.b64 [%%rd7+%u], %%rd%u;\n", k * 8, 10 + k);
	expect_ok(r, s.at);
	for (u32 k = 0; k < LANES * n; k++) {
		u64 got = extended(r->b + k * 8, 8, false),
		    want = extended(r->a + size + k * types[t].bytes, types[t].bytes, types[t].is_signed);
		if (got != want)
			fail_msg("%s: element %u: 0x%llx, not 0x%llx", s.at, k, (unsigned long long)got,
				 (unsigned long long)want);
	}
	for (u32 k = LANES * n * 8; k < SIZE; k++)
		assert_int_equal((u8)r->b[k], 0xEE);
	rig_free(r);
}

static void test_types(void **state)
{
	(void)state;
	static const char *const lds[] = {"", ".weak", ".volatile", ".relaxed.gpu", ".acquire.sys", ".relaxed.cta"};
	static const char *const sts[] = {"", ".weak", ".volatile", ".relaxed.cta", ".release.cta", ".relaxed.cluster"};
	for (u32 t = 0; t < ARRAY_LEN(types); t++)
		for (u32 n = 1; n <= 4 && n * types[t].bytes <= 16; n *= 2)
			for (u32 o = 0; o < ARRAY_LEN(lds); o++)
				check_type(t, n, lds[o], sts[o]);
}

static void test_narrow_registers(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	r->a[0] = (char)0x80;
	expect_ok(r, "ld.global.s8 %rs1, [%rd1]; ld.global.s8 %r5, [%rd1]; ld.global.u8 %rs2, [%rd1]; "
		     "ld.global.nc.L1::no_allocate.L2::128B.b8 %r6, [%rd1];\n"
		     "st.global.b16 [%rd2], %rs1; st.global.b16 [%rd2+2], %rs2; st.global.v2.b32 [%rd2+8], {%r5, %r6}; "
		     "st.global.b32 [%rd2+4], -2;\n"
		     "st.global.f32 [%rd2+16], 0f3F800000; "
		     "st.global.v4.f32 [%rd2+32], {0f3F800000, 0f40000000, 0f00000000, "
		     "0fBF800000};\n"
		     "ld.global.v2.b32 {_, %r7}, [%rd2+8]; st.global.b32 [%rd2+48], %r7;");
	static const u32 want[] = {0x0080FF80, 0xFFFFFFFE, 0xFFFFFF80, 0x80, 0x3F800000};
	assert_memory_equal(r->b, want, sizeof want);
	static const u32 more[] = {0x3F800000, 0x40000000, 0, 0xBF800000, 0x80};
	assert_memory_equal(r->b + 32, more, sizeof more);
	rig_free(r);
}

static void test_spaces(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	r->number = 0x123456789ABCDEF0;
	r->warps = 2;
	expect_ok(r, "mul.wide.u32 %rd3, %r1, 8; add.s64 %rd4, %rd2, %rd3; "
		  "and.b32 %r3, %r1, 3; mul.wide.u32 %rd5, %r3, 4;\n"
		     /* local memory, directly and through generic addresses */
		     "mov.u64 %rd6, lo; cvta.local.u64 %rd7, %rd6; cvt.u64.u32 %rd8, %r1; "
		     "st.local.u64 [%rd6+8], %rd8; ld.u64 "
		     "%rd10, [%rd7+8];\n"
		     /* shared memory the same way */
		     "cvta.shared.u64 %rd11, sh; add.s64 %rd12, %rd11, %rd3; "
		     "st.u64 [%rd12], %rd10; cvta.to.shared.u64 %rd13, "
		     "%rd12; ld.shared.u64 %rd14, [%rd13];\n"
		     /* constants and variables */
		     "mov.u64 %rd15, table; add.s64 %rd15, %rd15, %rd5; "
		     "ld.const.u32 %rd16, [%rd15]; ld.const.u32 %rd17, "
		     "[table+4]; ld.global.u32 %rd18, [cell+8];\n"
		     /* parameters: part of one, and through the generic space */
		     "ld.param.u32 %rd19, [pn+4]; ld.param.v2.u32 {%r8, %r9}, [pn];\n"
		     "shl.b64 %rd14, %rd14, 40; shl.b64 %rd16, %rd16, 32; "
		     "shl.b64 %rd17, %rd17, 16; add.s64 %rd20, %rd14, %rd16; "
		     "add.s64 %rd20, %rd20, %rd17; add.s64 %rd20, %rd20, %rd18;\n"
		     "xor.b64 %rd20, %rd20, %rd19; st.global.u64 [%rd4], %rd20; "
		     "st.global.v2.u32 [%rd2+1024], {%r8, %r9};");
	static const u64 table[] = {11, 22, 33, 44};
	for (u64 k = 0; k < 64; k++) {
		u64 got, want = ((k << 40) + (table[k % 4] << 32) + (22 << 16) + 7) ^ 0x12345678;
		memcpy(&got, r->b + k * 8, 8);
		assert_int_equal(got, want);
	}
	assert_memory_equal(r->b + 1024, &r->number, 8);
	rig_free(r);
}

/* Lanes of one generic access go to three spaces. */
static void test_generic(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	expect_ok(r,
		  "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3; "
		  "cvta.shared.u64 %rd5, %rd9; add.s64 %rd5, %rd5, %rd3; "
		  "mov.u64 %rd6, lo; cvta.local.u64 %rd6, %rd6;\n"
		  "and.b32 %r3, %r1, 3; setp.eq.u32 %p1, %r3, 1; setp.eq.u32 %p2, %r3, 2; "
		  "selp.b64 %rd7, %rd5, %rd4, %p1; "
		  "selp.b64 %rd7, %rd6, %rd7, %p2;\n"
		  "add.s32 %r4, %r1, 100; st.b32 [%rd7], %r4;\n@%p1 ld.shared.b32 %r5, [%rd9+4];\n"
		  "@%p2 ld.local.b32 %r5, [lo];\n"
		  "ld.b32 %r6, [%rd7]; st.global.b32 [%rd4+256], %r6;");
	for (u32 l = 0; l < LANES; l++) {
		u32 v;
		memcpy(&v, r->b + l * 4, 4);
		assert_int_equal(v, l % 4 == 1 || l % 4 == 2 ? 0xEEEEEEEE : l + 100);
		memcpy(&v, r->b + 256 + l * 4, 4);
		assert_int_equal(v, l + 100);
	}
	expect_fault(r, "mov.u64 %rd6, lo; cvta.local.u64 %rd6, %rd6; atom.add.u32 %r7, [%rd6], 1;",
		     "atomic on local memory");
	rig_free(r);
}

static void test_isspacep(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	expect_ok(r, "cvta.shared.u64 %rd3, %rd9; mov.u64 %rd4, lo; cvta.local.u64 %rd4, %rd4;\n"
		     "isspacep.shared %p1, %rd3; isspacep.global %p2, %rd3; "
		     "isspacep.local %p3, %rd4; isspacep.global %p4, %rd1; "
		     "isspacep.shared %p5, %rd1;\n"
		     "selp.b32 %r3, 1, 0, %p1; selp.b32 %r4, 1, 0, %p2; "
		     "selp.b32 %r5, 1, 0, %p3; selp.b32 %r6, 1, 0, %p4; "
		     "st.global.v4.b32 [%rd2], {%r3, %r4, %r5, %r6};\n"
		     "selp.b32 %r7, 1, 0, %p5; st.global.b32 [%rd2+16], %r7; "
		     "prefetch.global.L2 [%rd1]; prefetchu.L1 [%rd1];\n"
		     "createpolicy.fractional.L2::evict_first.b64 %rd5, 0f3F800000; "
		     "ld.global.L2::cache_hint.b32 %r8, [%rd1], "
		     "%rd5; st.global.L1::evict_first.L2::cache_hint.b32 [%rd2+20], %r8, %rd5;");
	static const u32 want[] = {1, 0, 1, 1, 0};
	assert_memory_equal(r->b, want, sizeof want);
	assert_memory_equal(r->b + 20, r->a, 4);
	rig_free(r);
}

/* --- global memory's faults ------------------------------------------------------------------------------------ */

static void test_global_faults(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	expect_fault(r, "ld.global.b32 %r3, [%rd1+16384];", "load of 4 bytes outside every buffer");
	expect_fault(r, "ld.global.b32 %r3, [%rd1+16384];", "0 bytes past the end of 'a' (16384 bytes)");
	expect_fault(r, "ld.global.b32 %r3, [%rd1+16392];", "8 bytes past the end of 'a'");
	expect_fault(r, "st.global.b32 [%rd2+-4], %r3;", "4 bytes before the start of 'b'");
	expect_fault(r, "st.global.v4.b32 [%rd2+8], {%r3, %r3, %r3, %r3};", "misaligned store of 16 bytes");
	expect_fault(r, "mov.u64 %rd3, 0; ld.global.b8 %r3, [%rd3+16];",
		     "load of 1 byte through a null pointer: address 0x10");
	expect_fault(r, "atom.global.add.u32 %r3, [%rd1+16384], 1;", "atomic of 4 bytes outside every buffer");
	expect_fault(r, "ld.global.b64 %rd3, [%rd2];", "never written: byte 0 of 'b'");
	expect_fault(r, "atom.global.add.u32 %r3, [%rd2], 1;", "never written");
	/* only what was written may be read */
	expect_fault(r,
		     "st.global.b8 [%rd2+64], %rs1; st.global.b16 [%rd2+66], %rs1; "
		     "ld.global.b8 %rs2, [%rd2+64]; ld.global.b16 "
		     "%rs2, [%rd2+66]; ld.global.b32 %r3, [%rd2+64];",
		     "byte 65 of 'b'");
	expect_ok(r, "st.global.b8 [%rd2+65], %rs1; ld.global.b32 %r3, [%rd2+64];");
	expect_fault(r, "ld.global.b64 %rd3, [%rd2+64];", "byte 68 of 'b'");
	/* one lane of many */
	expect_fault(r, "mul.wide.u32 %rd3, %r1, 512; add.s64 %rd4, %rd1, %rd3; "
		     "ld.global.v2.b64 {%rd5, %rd6}, [%rd4+512];",
		     "warp 0, lane 31");
	expect_fault(r, "setp.eq.u32 %p1, %r1, 7; selp.b64 %rd3, 1, 0, %p1; "
		     "add.s64 %rd3, %rd3, %rd1; ld.global.b32 %r4, [%rd3];",
		     "misaligned");
	expect_fault(r, "st.global.b32 [table], %r1;", "decoding");
	expect_fault(r, "mov.u64 %rd3, table; st.global.b32 [%rd3], %r1;", "outside every buffer");
	expect_fault(r, "ld.local.b32 %r3, [lo+64];", "outside local memory");
	expect_fault(r, "ld.shared.b32 %r3, [sh+4096];", "outside shared memory: address 0x1000, which has 4096 bytes");
	expect_fault(r, "st.shared.b32 [sh+2], %r1;", "misaligned store");
	rig_free(r);
}

/* All sizes and positions of the bitmap, against bytes. */
static void test_written(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	u8 model[256] = {0};
	memset(r->written[1], 0, SIZE / 8);
	for (u32 n = 0; n < 400; n++) {
		u32 size = 1u << random_bits() % 4, at = (u32)(random_bits() % (256 / size)) * size,
		    stride = size * (1 + (u32)random_bits() % 2);
		u32 lanes = 1 + (u32)random_bits() % 8;
		bool store = random_bits() % 3 == 0, ok = true;
		lanes = MIN(lanes, (256 - at) / stride);
		if (!lanes)
			continue;
		for (u32 l = 0; l < lanes; l++)
			for (u32 k = 0; k < size; k++) {
				ok &= store || model[at + l * stride + k];
				model[at + l * stride + k] |= store;
			}
		const char *e = run(r, arena_printf(&r->arena,
						    "mul.wide.u32 %%rd3, %%r1, %u; "
						    "add.s64 %%rd4, %%rd2, %%rd3; setp.lt.u32 "
						    "%%p1, %%r1, %u;\n@%%p1 %s;",
						    stride, lanes,
						    arena_printf(&r->arena,
								 store ? "st.global.b%u [%%rd4+%u], %%rd5"
								       : "ld.global.b%u %%rd5, [%%rd4+%u]",
								 size * 8, at)));
		assert_int_equal(!*e, ok);
	}
	for (u32 k = 0; k < 256; k++)
		assert_int_equal(r->written[1][k / 8] >> k % 8 & 1, model[k]);
	rig_free(r);
}

/* --- races ----------------------------------------------------------------------------------------------------- */

#define MINE "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd9, %rd3;\n"
#define NEXT "add.s32 %r3, %r1, 32; and.b32 %r3, %r3, 127; mul.wide.u32 %rd5, %r3, 4; add.s64 %rd6, %rd9, %rd5;\n"

static void test_races(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	r->warps = 4;
	for (u32 round = 0; round < 20; round++) {
		expect_ok(r, MINE NEXT "st.shared.b32 [%rd4], %r1; bar.sync 0; ld.shared.b32 %r4, [%rd6]; bar.sync 0; "
				       "st.shared.b32 [%rd4], %r4;");
		expect_fault(r, MINE NEXT "st.shared.b32 [%rd4], %r1; ld.shared.b32 %r4, [%rd6];",
			     "of shared bytes"); /* a race, or not written yet */
		expect_fault(r,
			     MINE NEXT
			     "st.shared.b32 [%rd4], %r1; bar.sync 0; "
			     "st.shared.b32 [%rd4], %r1; ld.shared.b32 %r4, [%rd6];",
			     "race: ");
		expect_fault(r,
			     MINE NEXT
			     "st.shared.b32 [%rd4], %r1; bar.sync 0; "
			     "ld.shared.b32 %r4, [%rd6]; st.shared.b32 [%rd4], %r4;",
			     "race: ");
		expect_fault(r, "st.shared.b32 [sh], %r1;", "race: lanes ");
		expect_fault(r, "shr.u32 %r3, %r1, 5; st.shared.b32 [sh], %r3;",
			     "race: write of shared bytes 0x0–0x3; the other write is by warp");
		expect_ok(
			r,
			/* equal values */
			"st.shared.v2.b32 [sh], {1, 2}; bar.sync 0; "
			"st.shared.b16 [sh+4], 2; ld.shared.b32 %r3, [sh+4];");
		expect_fault(r,
			     "setp.lt.u32 %p1, %r1, 32;\n@%p1 st.shared.b32 [sh], 5;\n"
			     "bar.sync 0; st.shared.b32 [sh], 5;\n@%p1 "
			     "st.shared.b32 [sh], 6;",
			     "race: ");
		expect_ok(r, MINE "st.shared.b32 [%rd4], 0; bar.sync 0; atom.shared.add.u32 %r3, [sh], 1; bar.sync 0; "
				  "ld.shared.b32 %r4, [sh];");
		expect_fault(
			r, MINE "st.shared.b32 [%rd4], 0; bar.sync 0; "
				"atom.shared.add.u32 %r3, [sh], 1; ld.shared.b32 %r4, [sh];",
			"race: ");
		/* bytes of one word belong to different warps */
		expect_ok(r, "shr.u32 %r3, %r1, 5; and.b32 %r4, %r1, 31; shl.b32 %r4, %r4, 2; "
			  "add.s32 %r3, %r3, %r4; cvt.u64.u32 "
			     "%rd3, %r3; add.s64 %rd3, %rd3, %rd9;\n"
			     "st.shared.b8 [%rd3], %r1; ld.shared.b8 %r5, [%rd3]; bar.sync 0;\n"
			     "cvt.u64.u32 %rd4, %r4; add.s64 %rd4, %rd4, %rd9; ld.shared.b32 %r6, [%rd4];");
		/* a message passed by release and acquire: the last warp may see it or not */
		expect_ok(
			r,
			"mov.u64 %rd3, cell; setp.lt.u32 %p1, %r1, 32; setp.eq.u32 %p3, %r1, 0; "
			"setp.lt.u32 %p4, %r1, 96;\n@%p3 "
			"st.shared.b32 [sh+64], 17;\n"
			"@%p3 red.release.cta.global.add.u32 [%rd1], 0;\n@%p3 st.release.cta.global.b32 [%rd3], 99;\n"
			"@%p4 exit;\n"
			"ld.acquire.cta.global.b32 %r4, [%rd3]; setp.ne.u32 %p2, %r4, 99;\n"
			"@%p2 exit;\nld.shared.b32 %r5, "
			"[sh+64];");
		expect_fault(r,
			     "setp.eq.u32 %p3, %r1, 0;\n@%p3 st.shared.b32 [sh+64], 17;\n"
			     "bar.sync 0;\n@%p3 st.shared.b32 "
			     "[sh+64], 18;\nld.shared.b32 %r5, [sh+64];",
			     "race: ");
	}
	expect_fault(r, "ld.shared.b32 %r4, [sh];", "nothing was written here before: read of shared bytes 0x0–0x3");
	r->warps = 1;
	expect_ok(r, "st.shared.b32 [sh], 7; st.shared.v2.b32 [sh+8], {7, 8}; ld.shared.v2.b32 {%r3, %r4}, [sh+8];");
	expect_fault(r, "st.shared.b16 [sh], %rs1; ld.shared.b32 %r3, [sh];", "nothing was written here before");
	expect_fault(r,
		     MINE "and.b64 %rd4, %rd4, 0x7C; add.s64 %rd4, %rd4, %rd9; "
			     "shr.u64 %rd4, %rd4, 3; shl.b64 %rd4, %rd4, 3; "
			  "st.shared.b64 [%rd4], %rd3;",
		     "race: lanes ");
	rig_free(r);
}

/* --- asynchronous copies --------------------------------------------------------------------------------------- */

#define SOURCE                                                                                                         \
	"shl.b32 %r3, %r1, 4; cvt.u64.u32 %rd3, %r3; add.s64 %rd4, %rd1, %rd3; "                                       \
	"add.s64 %rd5, %rd9, %rd3; cvt.u32.u64 %r5, "                                                                  \
	"%rd5;\n"
#define BACK                                                                                                           \
	"ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%rd5]; add.s64 %rd6, %rd2, %rd3; "                                \
	"st.global.v4.b32 [%rd6], {%r10, %r11, "                                                                       \
	"%r12, %r13};\n"

static void test_copies(void **state)
{
	(void)state;
	for (u32 t = 0; t < 3; t++) {
		struct rig *r = rig_new();
		r->timing = (enum async_timing)t;
		r->warps = 4;
		expect_ok(r, SOURCE "cp.async.cg.shared.global.L2::128B [%r5], [%rd4], 16; cp.async.commit_group; "
				    "cp.async.wait_group 0; bar.sync 0;\n" BACK);
		assert_memory_equal(r->b, r->a, 128 * 16);
		/* zeros behind the source's bytes, from a register; none at all from anywhere */
		expect_ok(r, SOURCE "and.b32 %r6, %r1, 15; setp.eq.u32 %p1, %r6, 0; selp.b64 %rd4, 0, %rd4, %p1;\n"
				    "cp.async.ca.shared::cta.global [%r5], [%rd4], 16, %r6; cp.async.wait_all;\n" BACK);
		for (u32 k = 0; k < 128 * 16; k++)
			assert_int_equal(r->b[k], k % 16 < k / 16 % 16 ? r->a[k] : 0);
		expect_ok(r, SOURCE
			  "setp.gt.u32 %p1, %r1, 9; createpolicy.fractional.L2::evict_last.b64 %rd7, 0f3F800000;\n"
			  "cp.async.cg.shared.global.L2::cache_hint [%r5], [%rd4], 16, %p1, %rd7; cp.async.wait_all;\n"
			  BACK);
		for (u32 k = 0; k < 128 * 16; k++)
			assert_int_equal(r->b[k], k / 16 > 9 ? 0 : r->a[k]);
		/* sizes, in groups of which all but the last are waited for */
		expect_ok(r, SOURCE "cp.async.ca.shared.global [%r5], [%rd4], 4; cp.async.commit_group; "
				    "cp.async.ca.shared.global [%r5+8], [%rd4+8], 8; cp.async.commit_group;\n"
				    "cp.async.ca.shared.global [%r5+4], [%rd4+4], 4, 2; cp.async.commit_group; "
				    "cp.async.ca.shared.global [%r5+2048], [%rd4+16], 4; cp.async.commit_group;\n"
				    "cp.async.wait_group 1;\n" BACK);
		for (u32 k = 0; k < 128 * 16; k++)
			assert_int_equal(r->b[k], k % 16 == 6 || k % 16 == 7 ? 0 : r->a[k]);
		/* lanes in different groups: the odd ones commit once more */
		expect_ok(r,
			  SOURCE "and.b32 %r6, %r1, 1; setp.eq.u32 %p1, %r6, 1; "
				  "cp.async.ca.shared.global [%r5], [%rd4], 16; "
				 "cp.async.commit_group;\n"
				 "@%p1 cp.async.commit_group;\n@%p1 cp.async.wait_group 1;\n"
				 "@!%p1 cp.async.wait_group 0;\n" BACK);
		assert_memory_equal(r->b, r->a, 128 * 16);
		rig_free(r);
	}
}

static void test_copy_faults(void **state)
{
	(void)state;
	for (u32 t = 0; t < 30; t++) {
		struct rig *r = rig_new();
		r->timing = (enum async_timing)(t % 3);
		r->warps = 4;
		expect_fault(r, SOURCE "cp.async.cg.shared.global [%r5], [%rd4], 16; cp.async.commit_group;\n" BACK,
			     "asynchronous copy not waited for: read of shared bytes");
		expect_fault(r,
			     SOURCE
			     "cp.async.cg.shared.global [%r5], [%rd4], 16; "
			     "cp.async.commit_group; cp.async.wait_group 1;\n" BACK,
			     "not waited for");
		expect_fault(r, SOURCE "cp.async.cg.shared.global [%r5], [%rd4], 16; cp.async.wait_group 0;\n" BACK,
			     "not waited for");
		expect_fault(r, SOURCE "cp.async.cg.shared.global [%r5], [%rd4], 16; st.shared.b32 [%r5], 0;",
			     "not waited for: write");
		expect_fault(r,
			     SOURCE "cp.async.cg.shared.global [%r5], [%rd4], 16; "
				     "cp.async.cg.shared.global [%r5], [%rd4], 16;",
			     "not waited for: asynchronous copy");
		expect_fault(r,
			     SOURCE
			     "cp.async.cg.shared.global [%r5+2048], [%rd4], 16; cp.async.commit_group;\n"
			     "cp.async.cg.shared.global [%r5], [%rd4], 16; "
			     "cp.async.commit_group; cp.async.wait_group 1;\n" BACK,
			     "not waited for");
		/* waited for, but not by the warp that reads; the barrier comes too early */
		expect_fault(
			r,
			SOURCE
			"cp.async.cg.shared.global [%r5], [%rd4], 16; cp.async.commit_group; "
			"bar.sync 0; cp.async.wait_group 0;\n"
			"xor.b32 %r5, %r5, 512; ld.shared.b32 %r10, [%r5];",
			": read of shared bytes");
		/* into a buffer that another warp reads */
		expect_fault(r,
			     SOURCE "cp.async.cg.shared.global [%r5], [%rd4], 16; "
				     "cp.async.wait_all; bar.sync 0; xor.b32 %r6, "
				    "%r5, 512; ld.shared.b32 %r10, [%r6];\n"
				    "cp.async.cg.shared.global [%r5], [%rd4], 16;",
			     "of shared bytes");
		expect_fault(r, SOURCE "cp.async.cg.shared.global [%r5], [%rd4+16384], 16;",
			     "copy of 16 bytes outside every buffer");
		expect_fault(r, SOURCE "cp.async.cg.shared.global [%r5], [%rd4+8], 16;", "misaligned copy");
		expect_fault(r, SOURCE "cp.async.cg.shared.global [%r5+8], [%rd4], 16;", "misaligned copy");
		expect_fault(r, SOURCE "cp.async.cg.shared.global [%r5+4096], [%rd4], 16;", "outside shared memory");
		expect_fault(r, SOURCE "add.s64 %rd4, %rd2, 0; cp.async.cg.shared.global [%r5], [%rd4], 16;",
			     "copy of 16 bytes of global memory that was never written");
		expect_fault(r, SOURCE "cp.async.cg.shared.global [%r5], [%rd4], 16, 17;", "reads 17 bytes to copy 16");
		expect_fault(r, SOURCE "cp.async.cg.shared.global [sh], [%rd4], 16;",
			     "race: lanes 0 and 1 copy different data");
		/* nobody reads it; two lanes, the same data */
		expect_ok(r, SOURCE "cp.async.cg.shared.global [%r5], [%rd4], 16; cp.async.commit_group;");
		r->warps = 1;
		expect_ok(r, "cvt.u32.u64 %r5, %rd9; cp.async.cg.shared.global [%r5], [%rd1], 16; cp.async.wait_all; "
			     "ld.shared.b32 %r6, [%r5];");
		rig_free(r);
	}
}

/* Data are read when the copy completes, or when it begins. */
static void test_copy_timing(void **state)
{
	(void)state;
	u32 late = 0;
	for (u32 t = 0; t < 40; t++) {
		struct rig *r = rig_new();
		r->timing = t < 2 ? (enum async_timing)t : ASYNC_MIXED;
		expect_ok(r, SOURCE "st.global.b32 [%rd4], 1; cp.async.cg.shared.global [%r5], [%rd4], 16; "
			  "st.global.b32 [%rd4], "
				    "2; cp.async.wait_all;\n" BACK);
		for (u32 l = 0; l < LANES; l++) {
			if (t < 2)
				assert_int_equal(r->b[l * 16], t == ASYNC_LATE ? 2 : 1);
			late += t >= 2 && r->b[l * 16] == 2;
		}
		rig_free(r);
	}
	assert_in_range(late, 500, 716); /* of 1216 */
}

/* --- cost ------------------------------------------------------------------------------------------------------ */

/* The counters of the first instruction that begins so. */
static struct counters cost(struct rig *r, const char *body, const char *opcode)
{
	r->count = true;
	expect_ok(r, body);
	for (u32 k = 0; k < r->kernel->ncode; k++)
		if (!strncmp(r->kernel->code[k].opcode, opcode, strlen(opcode)))
			return r->counters[k];
	fail_msg("no %s", opcode);
	return (struct counters){0};
}

static void test_counters(void **state)
{
	(void)state;
	static const struct {
		const char *step, *type, *value;
		u32 sectors, waves, conflicts;
	} cases[] = {
		{"4", "b32", "%r1", 4, 1, 0},
		{"8", "b32", "%r1", 8, 2, 1},
		{"128", "b32", "%r1", 32, 32, 31},
		{"8", "b64", "%rd9", 8, 2, 0},
		{"16", "v2.b64", "{%rd9, %rd9}", 16, 4, 0},
		{"32", "v4.b32", "{%r1, %r1, %r1, %r1}", 32, 8, 4},
		{"0", "v4.b32", "{1, 2, 3, 4}", 1, 1, 0},
		{"132", "b32", "%r1", 32, 1, 0},
		{"0", "b32", "1", 1, 1, 0},
		{"1", "b8", "%r1", 1, 1, 0},
	};
	struct rig *r = rig_new();
	for (u32 k = 0; k < ARRAY_LEN(cases); k++) {
		const char *at = arena_printf(&r->arena,
					      "mul.wide.u32 %%rd3, %%r1, %s; "
					      "add.s64 %%rd4, %%rd1, %%rd3; rem.u64 %%rd5, %%rd3, "
					      "4096; add.s64 %%rd5, %%rd5, %%rd9;\n",
					      cases[k].step);
		struct counters g = cost(
			r, arena_printf(&r->arena, "%sst.global.%s [%%rd4], %s;", at, cases[k].type, cases[k].value),
			"st.global");
		struct counters s = cost(
			r, arena_printf(&r->arena, "%sst.shared.%s [%%rd5], %s;", at, cases[k].type, cases[k].value),
			"st.shared");
		assert_int_equal(g.executed, 1);
		assert_int_equal(g.transactions, cases[k].sectors);
		assert_int_equal(g.conflicts, 0);
		assert_int_equal(s.transactions, cases[k].waves);
		assert_int_equal(s.conflicts, cases[k].conflicts);
		assert_int_equal(s.bytes, 0);
	}
	rig_free(r);
}

/* --- what there is not ----------------------------------------------------------------------------------------- */

static void test_refused(void **state)
{
	(void)state;
	static const char *const bodies[] = {
		"ld.global.f16 %rs1, [%rd1];",
		"ld.global.b32 %rs1, [%rd1];",
		"ld.global.f32 %rd3, [%rd1];",
		"ld.global.v3.b32 {%r3, %r4, %r5}, [%rd1];",
		"ld.global.v4.b64 {%rd3, %rd4, %rd5, %rd6}, [%rd1];",
		"ld.global.v2.b32 %r3, [%rd1];",
		"ld.global.b32 {%r3, %r4}, [%rd1];",
		"ld.relaxed.global.b32 %r3, [%rd1];",
		"ld.gpu.global.b32 %r3, [%rd1];",
		"ld.volatile.relaxed.gpu.global.b32 %r3, [%rd1];",
		"ld.release.gpu.global.b32 %r3, [%rd1];",
		"st.acquire.gpu.global.b32 [%rd1], %r3;",
		"ld.shared.nc.b32 %r3, [%rd9];",
		"ld.global.L2::cache_hint.b32 %r3, [%rd1];",
		"ld.global.b32 %r3, [%rd1], %rd3;",
		"ld.global.b128 %rd3, [%rd1];",
		"ld.global.pred %p1, [%rd1];",
		"ld.global.u32 %f1, [%rd1];",
		"st.const.b32 [table], %r3;",
		"st.param.b64 [pa], %rd3;",
		"ld.param.b64 %rd3, [pa+4];",
		"ld.param.b32 %r3, [pa+2];",
		"ld.shared.b32 %r3, [cell];",
		"ld.global.foo.b32 %r3, [%rd1];",
		"ld.global.b32 %r3;",
		"ld.mmio.relaxed.sys.global.b32 %r3, [%rd1];",
		"atom.global.add.s64 %rd3, [%rd1], %rd4;",
		"atom.global.add.b32 %r3, [%rd1], %r4;",
		"atom.global.and.u32 %r3, [%rd1], %r4;",
		"atom.global.inc.s32 %r3, [%rd1], %r4;",
		"atom.global.min.f32 %f3, [%rd1], %f4;",
		"atom.global.add.f16 %rs3, [%rd1], %rs4;",
		"atom.global.add.noftz.f32 %f3, [%rd1], %f4;",
		"atom.global.cas.b32 %r3, [%rd1], %r4;",
		"atom.global.exch.b128 %rd3, [%rd1], %rd4;",
		"atom.global.min.noftz.f16 %rs3, [%rd1], %rs4;",
		"atom.local.add.u32 %r3, [lo], 1;",
		"red.global.exch.b32 [%rd1], %r3;",
		"red.acquire.gpu.global.add.u32 [%rd1], %r3;",
		"red.shared.v2.f32.add [%rd9], {%f1, %f2};",
		"atom.global.v8.f32.add {%f1, %f2}, [%rd1], {%f1, %f2};",
		"cvta.global.u32 %r3, %r4;",
		"cvta.to.shared.u64 %rd3, sh;",
		"cvta.u64 %rd3, %rd4;",
		"prefetch.shared.L1 [%rd9];",
		"discard.global.L2 [%rd1], 128;",
		"cp.async.cg.shared.global [%r3], [%rd1], 8;",
		"cp.async.ca.shared.global [%r3], [%rd1], 12;",
		"cp.async.shared.global [%r3], [%rd1], 16;",
		"cp.async.wait_group;",

		"cp.async.cg.shared.global.L2::cache_hint [%r3], [%rd1], 16;",
		"cp.async.cg.shared.global [%r3], [%rd1], %r4;",
		"st.global.b32 [%rd1], %p1;",
		"ld.global.ca.L1::evict_last.b32 %r3, [%rd1];",
	};
	for (u32 k = 0; k < ARRAY_LEN(bodies); k++) {
		struct rig *r = rig_new();
		expect_fault(r, bodies[k], "decoding: line ");
		rig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),       cmocka_unit_test(test_narrow_registers),
		cmocka_unit_test(test_spaces),      cmocka_unit_test(test_isspacep),
		cmocka_unit_test(test_generic),     cmocka_unit_test(test_global_faults),
		cmocka_unit_test(test_written),     cmocka_unit_test(test_races),
		cmocka_unit_test(test_copies),      cmocka_unit_test(test_copy_faults),
		cmocka_unit_test(test_copy_timing), cmocka_unit_test(test_counters),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

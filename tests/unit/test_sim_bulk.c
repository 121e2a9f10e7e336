/* Bulk copies against memcpy and plain sums, and what goes wrong with them. */
#include "test_sim_rig.h"

#include "support/small_floats.h"

#define LEADER "setp.eq.u32 %p1, %r1, 0; cvt.u32.u64 %r20, %rd9;\n"
/* an mbarrier at sh, and a wait for its first phase */
#define BARRIER LEADER "@%p1 mbarrier.init.shared::cta.b64 [sh], 1; @%p1 fence.mbarrier_init.release.cluster; "        \
	"bar.sync 0;\n"
#define WAIT "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p2, [sh], 0;\n@!%p2 bra AGAIN;\n"
#define EXPECT(n) "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [sh], " #n ";\n"
#define LOAD "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
#define STORE "cp.async.bulk.global.shared::cta.bulk_group"
#define COMMIT "@%p1 cp.async.bulk.commit_group;\n"
/* 1 KB of a at sh + 1024, by 64 threads, through the generic proxy; the same back from there to b */
#define FILL                                                                                                           \
	"shl.b32 %r3, %r1, 4; cvt.u64.u32 %rd3, %r3; add.s64 %rd4, %rd3, %rd1; "                                       \
	"add.s64 %rd5, %rd3, %rd2; add.s32 %r4, %r20, %r3;\n"                                                          \
	"ld.global.v2.b64 {%rd6, %rd7}, [%rd4]; st.shared.v2.b64 [%r4+1024], {%rd6, %rd7};\n"
#define BACK                                                                                                           \
	"shl.b32 %r3, %r1, 4; cvt.u64.u32 %rd3, %r3; add.s64 %rd5, %rd3, %rd2; add.s32 %r4, %r20, %r3;\n"              \
	"ld.shared.v2.b64 {%rd6, %rd7}, [%r4+1024]; st.global.v2.b64 [%rd5], {%rd6, %rd7};\n"
#define FENCE "fence.proxy.async.shared::cta;\n"

static const char *report(struct rig *r, const char *body, enum async_timing timing)
{
	r->warps = 2;
	r->timing = timing;
	return run(r, body);
}

static void check_fault(const char *body, const char *text)
{
	for (u32 timing = 0; timing < 3; timing++) {
		struct rig *r = rig_new();
		const char *e = report(r, body, (enum async_timing)timing);
		if (!strstr(e, text))
			fail_msg("timing %u: want '%s', got '%s'\n%s", timing, text, e, body);
		rig_free(r);
	}
}

/* Runs under each timing; `bytes` of b are those of a at `offset`, and no others. */
static void check_copy(const char *body, u32 bytes, u32 offset)
{
	for (u32 timing = 0; timing < 6; timing++) {
		struct rig *r = rig_new();
		const char *e = report(r, body, (enum async_timing)(timing % 3));
		if (*e)
			fail_msg("timing %u: %s\n%s", timing, e, body);
		assert_memory_equal(r->b, r->a + offset, bytes);
		for (u32 k = bytes; k < SIZE; k++)
			assert_int_equal((u8)r->b[k], 0xEE);
		rig_free(r);
	}
}

/* --- copies ------------------------------------------------------------------------------------------------------ */

static void test_loads(void **state)
{
	(void)state;
	check_copy(BARRIER EXPECT(1024) "@%p1 " LOAD " [sh+1024], [%rd1], 1024, [sh];\n" WAIT BACK, 1024, 0);
	check_copy(BARRIER EXPECT(1024) "createpolicy.fractional.L2::evict_first.b64 %rd8, 1.0; "
		   "add.s32 %r5, %r20, 1024; add.s64 %rd10, %rd1, 48;\n"
					"@%p1 " LOAD ".L2::cache_hint [%r5], [%rd10], 512, [%r20], %rd8; "
					"mov.b32 %r6, 512;\n"
					"@%p1 " LOAD " [%r5+512], [%rd10+512], %r6, [%r20];\n" WAIT BACK,
		   1024, 48);
	/* the copy comes before its bytes are expected */
	check_copy(BARRIER "@%p1 cp.async.bulk.prefetch.L2.global [%rd1], 1024;\n"
			   "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
			   "[sh+1024], [%rd1], 1024, [sh];\n" EXPECT(1024) WAIT BACK,
		   1024, 0);
	/* each lane of a warp copies its part */
	check_copy(BARRIER EXPECT(1024) "setp.lt.u32 %p3, %r1, 32; shl.b32 %r5, %r1, 5; "
		   "add.s32 %r6, %r20, %r5; cvt.u64.u32 %rd10, %r5; "
					"add.s64 %rd10, %rd10, %rd1;\n@%p3 " LOAD " [%r6+1024], [%rd10], 32, [sh];\n"
					WAIT BACK,
		   1024, 0);
	/* within shared memory */
	check_copy(BARRIER EXPECT(1024) "add.s32 %r20, %r20, 1024;\n" FILL FENCE
					"bar.sync 0;\n"
					"@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
					"[sh+1024], [sh+2048], 1024, "
					"[sh];\n" WAIT "add.s32 %r20, %r20, -1024;\n" BACK,
		   1024, 0);
}

static void test_stores(void **state)
{
	(void)state;
	check_copy(LEADER FILL FENCE "bar.sync 0;\n@%p1 " STORE " [%rd2], [sh+1024], 1024;\n" COMMIT
		   "@%p1 cp.async.bulk.wait_group 0;", 1024, 0);
	check_copy(LEADER FILL FENCE "bar.sync 0;\n@%p1 " STORE " [%rd2], [sh+1024], 512;\n" COMMIT "@%p1 " STORE
				     " [%rd2+512], [sh+1536], 512;\n" COMMIT "@%p1 cp.async.bulk.wait_group.read 1;\n"
				     "@%p1 st.shared.b32 [sh+1024], 0; @%p1 cp.async.bulk.wait_group.read 0; "
				     "bar.sync 0; st.shared.b32 [sh+1536], 0;",
		   1024, 0);
	/* the fence of the thread that copies is enough, behind the barrier */
	check_copy(LEADER FILL "bar.sync 0;\n@%p1 " FENCE "@%p1 " STORE " [%rd2], [sh+1024], 1024;\n" COMMIT
		   "@%p1 cp.async.bulk.wait_group 0;", 1024,
		   0);
	/* what a load brought needs no fence */
	check_copy(BARRIER EXPECT(1024) "@%p1 " LOAD " [sh+1024], [%rd1], 1024, [sh];\n" WAIT "@%p1 " STORE
		   " [%rd2], [sh+1024], 1024;\n" COMMIT
					"@%p1 cp.async.bulk.wait_group.read 0;",
		   1024, 0);
	/* read, then overwritten by a load: the mbarrier orders it; two copies read the same bytes */
	check_copy(BARRIER FILL FENCE
		   "bar.sync 0;\n" EXPECT(1024) "@%p1 " STORE " [%rd2], [sh+1024], 1024; @%p1 " STORE
		   " [%rd2+1024], [sh+1024], 16;\n" COMMIT
		   "@%p1 cp.async.bulk.wait_group.read 0;\n@%p1 " LOAD " [sh+1024], [%rd1+2048], 1024, [sh];\n" WAIT
		   "ld.shared.v2.b64 {%rd6, %rd7}, [%r4+1024]; @%p1 cp.async.bulk.wait_group 0; bar.sync 0; "
		   "ld.global.v2.b64 {%rd10, %rd11}, [%rd2+1024];\n"
		   "@%p1 st.global.v2.b64 [%rd2+1024], {0xEEEEEEEEEEEEEEEE, 0xEEEEEEEEEEEEEEEE};",
		   1024, 0);
}

/* From registers: each thread 16 bytes, of the same or other vectors. */
static void test_async_stores(void **state)
{
	(void)state;
#define REGISTERS_LOAD "shl.b32 %r3, %r1, 4; cvt.u64.u32 %rd3, %r3; add.s64 %rd4, %rd3, %rd1; add.s32 %r4, %r20, %r3;\n"
	static const char *const forms[] = {
		"ld.global.v2.b64 {%rd6, %rd7}, [%rd4]; "
		"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u64 [%r4+1024], {%rd6, %rd7}, [%r20];\n",
		"ld.global.v2.b64 {%rd6, %rd7}, [%rd4]; "
		"st.async.mbarrier::complete_tx::bytes.b64 [%r4+1024], %rd6, [sh];\n"
		"st.async.shared::cluster.mbarrier::complete_tx::bytes.s64 [%r4+1032], %rd7, [sh];\n",
		"ld.global.v4.b32 {%r6, %r7, %r8, %r9}, [%rd4]; "
		"st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r4+1024], {%r6, %r7, %r8, %r9}, "
		"[sh];\n",
		"ld.global.v4.f32 {%f6, %f7, %f8, %f9}, [%rd4]; "
		"st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%r4+1024], {%f6, %f7}, [sh];\n"
		"st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%r4+1032], %f8, [sh]; "
		"st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%r4+1036], %f9, [sh];\n",
	};
	struct rig *r = rig_new();
	for (u32 n = 0; n < ARRAY_LEN(forms); n++)
		check_copy(arena_printf(&r->arena, "%s%s%s", BARRIER EXPECT(1024) REGISTERS_LOAD, forms[n], WAIT BACK),
			   1024, 0);
	check_fault(arena_printf(&r->arena, "%s%s%s", BARRIER EXPECT(1024) REGISTERS_LOAD, forms[0],
				 "ld.shared.b32 %r5, [%r4+1024];"),
		    "asynchronous copy not waited for");
	check_fault(BARRIER "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [sh+1028], %rd1, [sh];",
		    "not a multiple of 8");
	assert_null(read_kernel(r, "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b64 [sh], "
				"{%rd1, %rd2, %rd3, %rd4}, [sh];"));
	assert_null(read_kernel(r, "st.async.shared::cluster.mbarrier::complete_tx::bytes.b16 [sh], %rs1, [sh];"));
	assert_null(read_kernel(r, "st.async.shared::cluster.b32 [sh], %r1, [sh];"));
	rig_free(r);
}

/* --- reductions -------------------------------------------------------------------------------------------------- */

static u64 sum(u32 type, u64 a, u64 b)
{
	switch (type) {
	case 0: return fp_encode(FP_F16, fp_decode(FP_F16, (u32)a) + fp_decode(FP_F16, (u32)b), false);
	case 1: return fp_encode(FP_BF16, fp_decode(FP_BF16, (u32)a) + fp_decode(FP_BF16, (u32)b), false);
	case 2: return fp_bits_f32(fp_f32_bits((u32)a) + fp_f32_bits((u32)b));
	default: return fp_bits_f64(fp_f64_bits(a) + fp_f64_bits(b));
	}
}

static const struct {
	const char *op;
	u32 bytes, kind; /* kind: of a sum; 4: integers */
	bool is_signed;
} reductions[] = {
	{"add.noftz.f16", 2, 0, 0}, {"add.noftz.bf16", 2, 1, 0}, {"add.f32", 4, 2, 0}, {"add.f64", 8, 3, 0},
		{"add.u32", 4, 4, 0}, {"add.s32", 4, 4, 1},
	{"add.u64", 8, 4, 0},       {"min.u32", 4, 4, 0},        {"min.s32", 4, 4, 1}, {"min.u64", 8, 4, 0},
		{"min.s64", 8, 4, 1}, {"max.u32", 4, 4, 0},
	{"max.s32", 4, 4, 1},       {"max.u64", 8, 4, 0},        {"max.s64", 8, 4, 1}, {"and.b32", 4, 4, 0},
		{"or.b64", 8, 4, 0},  {"xor.b32", 4, 4, 0},
	{"inc.u32", 4, 4, 0},       {"dec.u32", 4, 4, 0},        {"min.f16", 2, 0, 0}, {"max.bf16", 2, 1, 0},
};

static u64 combine(u32 n, u64 old, u64 with)
{
	const char *op = reductions[n].op;
	u64 mask = reductions[n].bytes == 8 ? ~0ull : ((u64)1 << reductions[n].bytes * 8) - 1;
	bool less = reductions[n].is_signed ? reductions[n].bytes == 4 ? (i32)old < (i32)with : (i64)old < (i64)with
					    : old < with;
	enum fp_format half = reductions[n].kind == 0 ? FP_F16 : FP_BF16;
	if (reductions[n].bytes == 2)
		less = (double)fp_decode(half, (u32)old) < (double)fp_decode(half, (u32)with);
	switch (op[0] << 8 | op[2]) {
	case 'a' << 8 | 'd':
		if (op[1] == 'n')
			return old & with;
		if (reductions[n].kind == 4)
			return (old + with) & mask;
		return sum(reductions[n].kind, old, with);
	case 'm' << 8 | 'n': return less ? old : with;
	case 'm' << 8 | 'x': return less ? with : old;
	case 'o' << 8 | '.': return old | with;
	case 'x' << 8 | 'r': return old ^ with;
	case 'i' << 8 | 'c': return old >= with ? 0 : old + 1;
	default: return !old || old > with ? with : old - 1;
	}
}

static u64 random_operand(u32 n)
{
	double x = (double)(i64)(random_bits() % 2001) / 8 - 125;
	switch (reductions[n].bytes == 2 || reductions[n].op[0] == 'a' ? reductions[n].kind : 4) {
	case 0: return fp_encode(FP_F16, x, false);
	case 1: return fp_encode(FP_BF16, x, false);
	case 2: return fp_bits_f32((float)x);
	case 3: return fp_bits_f64(x);
	default: return random_bits() & (random_bits() & 1 ? ~0ull : 0xF00000000000000Full);
	}
}

static void test_reductions(void **state)
{
	(void)state;
	for (u32 n = 0; n < 3 * ARRAY_LEN(reductions); n++) {
		struct rig *r = rig_new();
		u32 k = n / 3, size = reductions[k].bytes;
		u64 want[512];
		memset(r->written[1], 0xFF, 1024 / 8);
		for (u32 e = 0; e < 1024 / size; e++) {
			u64 a = random_operand(k), b = random_operand(k);
			a &= size == 8 ? ~0ull : ((u64)1 << size * 8) - 1;
			b &= size == 8 ? ~0ull : ((u64)1 << size * 8) - 1;
			memcpy(r->a + e * size, &a, size);
			memcpy(r->b + e * size, &b, size);
			want[e] = combine(k, b, a);
		}
		const char *body = arena_printf(&r->arena, "%s%s%s", LEADER FILL FENCE "bar.sync 0;\n"
						"@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.",
						reductions[k].op, " [%rd2], [sh+1024], 1024;\n" COMMIT
							"@%p1 cp.async.bulk.wait_group 0;");
		const char *e = report(r, body, (enum async_timing)(n % 3));
		if (*e)
			fail_msg("%s\n%s", e, body);
		for (u32 x = 0; x < 1024 / size; x++) {
			u64 got = extended(r->b + x * size, size, false);
			if (got != want[x])
				fail_msg("%s: element %u is 0x%llx, not 0x%llx", reductions[k].op, x,
					 (unsigned long long)got, (unsigned long long)want[x]);
		}
		rig_free(r);
	}
	/* of all blocks together */
	struct rig *r = rig_new();
	r->blocks = 64;
	memset(r->b, 0, 1024);
	memset(r->written[1], 0xFF, 1024 / 8);
	const char *e = report(r, LEADER FILL FENCE "bar.sync 0;\n"
			       "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [sh+1024], "
			       "1024;\n"
				  COMMIT "@%p1 cp.async.bulk.wait_group.read 0;", ASYNC_MIXED);
	assert_string_equal(e, "");
	for (u32 k = 0; k < 256; k++)
		assert_int_equal((u32)extended(r->b + k * 4, 4, false), (u32)(extended(r->a + k * 4, 4, false) * 64));
	rig_free(r);
}

/* --- reports ----------------------------------------------------------------------------------------------------- */

#define LOADED(n) BARRIER EXPECT(n) "@%p1 " LOAD " [sh+1024], [%rd1], 1024, [sh];\n"

static void test_unwaited(void **state)
{
	(void)state;
	/* nobody waits; one warp waits and the other does not; the issuer itself */
	check_fault(LOADED(1024) BACK, "read of shared bytes");
	check_fault(LOADED(1024) "setp.lt.u32 %p3, %r1, 32; @%p3 bra END;\n" WAIT "END:\n" BACK,
		    "read of shared bytes");
	check_fault(LOADED(1024) "@%p1 ld.shared.b32 %r5, [sh+1024];", "asynchronous copy not waited for");
	check_fault(LOADED(1024) "@%p1 st.shared.b32 [sh+1024], 1;", "asynchronous copy not waited for");
	/* a relaxed wait makes nothing visible */
	check_fault(LOADED(1024) "AGAIN: mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p2, [sh], 0;\n"
		    "@!%p2 bra AGAIN;\n" BACK,
		    "asynchronous copy not waited for");
	/* a barrier passes on what one thread has waited for */
	check_copy(LOADED(1024) "setp.lt.u32 %p3, %r1, 32; @%p3 bra END;\n" WAIT "END: bar.sync 0;\n" BACK, 1024, 0);
	/* too few bytes expected, or too many */
	check_fault(LOADED(512) WAIT BACK, "-512 bytes of transactions pending");
	check_fault(LOADED(2048) WAIT BACK, "with 0 of 1 arrivals and 1024 bytes of transactions pending");
	struct rig *r = rig_new();
	assert_non_null(strstr(report(r, LOADED(1024), ASYNC_LATE),
			       "block (0, 0, 0) ends while this copy to its shared bytes"));
	/* a wait for the phase before returns at once */
	assert_non_null(strstr(report(r, LOADED(1024) "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p2, [sh], 1;\n"
				      "@!%p2 bra AGAIN;\n" BACK, ASYNC_LATE),
			       "read of shared bytes"));
	rig_free(r);
	check_fault(BARRIER EXPECT(2048) "@%p1 " LOAD " [sh+1024], [%rd1], 1024, [sh]; @%p1 " LOAD
		    " [sh+1024], [%rd1], 1024, [sh];\n" WAIT,
		    "copy");
}

static void test_sources(void **state)
{
	(void)state;
	static const char *const waits[] = {"", "@%p1 cp.async.bulk.wait_group.read 1;", "bar.sync 0;"};
	for (u32 n = 0; n < ARRAY_LEN(waits); n++) {
		struct rig *r = rig_new();
		check_fault(arena_printf(&r->arena, "%s%s%s", LEADER FILL FENCE "bar.sync 0;\n@%p1 " STORE
					 " [%rd2], [sh+1024], 1024;\n" COMMIT, waits[n],
					 "@%p1 st.shared.b32 [sh+1024], 0; @%p1 cp.async.bulk.wait_group 0;"),
			    "source of an asynchronous copy that was not waited for");
		rig_free(r);
	}
	/* the other warp writes without having heard of the wait */
	check_fault(LEADER FILL FENCE "bar.sync 0;\n@%p1 " STORE " [%rd2], [sh+1024], 1024;\n" COMMIT
		    "@%p1 cp.async.bulk.wait_group 0;\n"
				      "setp.eq.u32 %p3, %r1, 32; @%p3 st.shared.b32 [sh+1024], 0;",
		    "shared bytes 0x400–0x403");
	check_fault(LEADER FILL FENCE "bar.sync 0;\n@%p1 " STORE " [%rd2], [sh+1024], 1024;\n" COMMIT,
		    "ends without having waited");
	check_fault(LEADER FILL FENCE "bar.sync 0;\n@%p1 " STORE " [%rd2], [sh+1024], 1024;\n"
		    "@%p1 cp.async.bulk.wait_group 0;",
		    "ends without having waited");
	check_fault(LEADER "@%p1 " STORE " [%rd2], [sh+1024], 1024;\n" COMMIT "@%p1 cp.async.bulk.wait_group 0;",
		    "nothing was written here");
}

static void test_proxies(void **state)
{
	(void)state;
	const char *missing = "no fence.proxy.async between the generic and the async proxy";
#define STORED "@%p1 " STORE " [%rd2], [sh+1024], 1024;\n" COMMIT "@%p1 cp.async.bulk.wait_group 0;"
	check_fault(LEADER FILL "bar.sync 0;\n" STORED, missing);
	check_fault(LEADER FENCE FILL "bar.sync 0;\n" STORED, missing);
	check_fault(LEADER FILL "bar.sync 0; fence.proxy.async.global;\n" STORED, missing);
	check_fault(LEADER FILL "bar.sync 0; fence.proxy.alias; fence.sc.cta; membar.gl;\n" STORED, missing);
	/* only one of the warps has one, before the barrier */
	check_fault(LEADER FILL "setp.lt.u32 %p3, %r1, 32; @%p3 " FENCE "bar.sync 0;\n" STORED, missing);
	/* of cp.async */
	check_fault(LEADER "shl.b32 %r3, %r1, 4; cvt.u64.u32 %rd3, %r3; "
		    "add.s64 %rd4, %rd3, %rd1; add.s32 %r4, %r20, %r3;\n"
			   "cp.async.cg.shared.global [%r4+1024], [%rd4], 16; cp.async.wait_all; bar.sync 0;\n" STORED,
		    missing);
	check_fault(LEADER "shl.b32 %r3, %r1, 4; cvt.u64.u32 %rd3, %r3; "
		    "add.s64 %rd4, %rd3, %rd1; add.s32 %r4, %r20, %r3;\n"
			   "cp.async.cg.shared.global [%r4+1024], [%rd4], 16;\n" FENCE
			   "cp.async.wait_all; bar.sync 0;\n" STORED,
		    missing);
	check_copy(LEADER "shl.b32 %r3, %r1, 4; cvt.u64.u32 %rd3, %r3; "
		   "add.s64 %rd4, %rd3, %rd1; add.s32 %r4, %r20, %r3;\n"
			  "cp.async.cg.shared.global [%r4+1024], [%rd4], 16; cp.async.wait_all;\n" FENCE "bar.sync 0;\n"
			  STORED,
		   1024, 0);
	/* generic writes, then a load into the same place: without a fence, the async proxy may be overtaken; reads
	 * need none */
	check_fault(BARRIER FILL "bar.sync 0;\n" EXPECT(1024) "@%p1 " LOAD " [sh+1024], [%rd1], 1024, [sh];\n"
		    WAIT BACK, missing);
	check_copy(BARRIER FILL FENCE "bar.sync 0;\n" BACK "bar.sync 0;\n" EXPECT(1024) "@%p1 " LOAD
		   " [sh+1024], [%rd1], 1024, [sh];\n" WAIT BACK, 1024,
		   0);
	check_fault(BARRIER FILL FENCE "bar.sync 0;\n" BACK EXPECT(1024) "@%p1 " LOAD
		    " [sh+1024], [%rd1], 1024, [sh];\n" WAIT, "shared bytes");
	/* an mbarrier */
	check_fault(LEADER "@%p1 mbarrier.init.shared::cta.b64 [sh], 1; bar.sync 0;\n" EXPECT(1024) "@%p1 " LOAD
		    " [sh+1024], [%rd1], 1024, [sh];\n" WAIT,
		    "fence.mbarrier_init or fence.proxy.async is missing");
	check_copy(LEADER "@%p1 mbarrier.init.shared::cta.b64 [sh], 1;\n" FENCE "bar.sync 0;\n" EXPECT(1024) "@%p1 "
		   LOAD
			  " [sh+1024], [%rd1], 1024, [sh];\n" WAIT BACK,
		   1024, 0);
}

static void test_places(void **state)
{
	(void)state;
	check_fault(BARRIER "@%p1 " LOAD " [sh+1024], [%rd1], 1000, [sh];",
		    "copies 1000 bytes, which must be a multiple of 16");
	check_fault(BARRIER "@%p1 " LOAD " [sh+1024], [%rd1+8], 1024, [sh];", "misaligned copy: address");
	check_fault(BARRIER "@%p1 " LOAD " [sh+1032], [%rd1], 1024, [sh];", "misaligned copy: shared address");
	check_fault(BARRIER "@%p1 " LOAD " [sh+3584], [%rd1], 1024, [sh];", "outside shared memory");
	check_fault(BARRIER "@%p1 " LOAD " [sh+1024], [%rd1+15872], 1024, [sh];", "outside every buffer");
	check_fault(BARRIER "@%p1 " LOAD " [sh+1024], [%rd2], 1024, [sh];", "never written");
	check_fault(BARRIER "@%p1 " LOAD " [sh+1024], [%rd1], 1024, [sh+8];", "was not initialised");
	check_fault(BARRIER "@%p1 " LOAD " [sh], [%rd1], 1024, [sh];", "the bytes are an mbarrier");
	check_fault(LEADER FILL FENCE "bar.sync 0;\n@%p1 " STORE " [%rd2+16000], [sh+1024], 1024;",
		    "outside every buffer");
	check_fault(LEADER FILL FENCE "bar.sync 0;\n"
		    "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [sh+1024], 1024;",
		    "never written");
}

static void test_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		LOAD " [sh], [%rd1], 1024;",
		LOAD " [sh], [%rd1], [sh];",
		LOAD " [sh], [%rd1], 1024, [sh], 1;",
		LOAD ".multicast::cluster [sh], [%rd1], 1024, [sh];",
		LOAD ".multicast::cluster [sh], [%rd1], 1024, [sh], %r1;",
		LOAD ".multicast::cluster.L2::cache_hint [sh], [%rd1], 1024, [sh], %rs1;",
		"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster [sh], [%rd1], 1024, "
		"[sh], 1;",
		"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster [sh], [sh], "
		"1024, [sh], 1;",
		LOAD ".L2::cache_hint [sh], [%rd1], 1024, [sh];",
		"cp.async.bulk.shared::cluster.global.bulk_group [sh], [%rd1], 1024, [sh];",
		"cp.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes [%rd1], [sh], 1024, [sh];",
		STORE " [%rd1], [sh];",
		"cp.async.bulk.global.shared::cluster.bulk_group [%rd1], [sh], 16;",
		"cp.async.bulk.wait_group %r1;",
		"cp.async.bulk.wait_group.write 0;",
		"cp.async.bulk.commit_group 0;",
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd1], [sh], 16;",
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.min.noftz.f16 [%rd1], [sh], 16;",
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%rd1], [sh], 16;",
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.s32 [%rd1], [sh], 16;",
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.b32 [%rd1], [sh], 16;",
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.cas.b32 [%rd1], [sh], 16;",
		"cp.async.bulk.prefetch.L2.global [%rd1];",
		"setmaxnreg.inc.sync.aligned.u32 20;",
		"setmaxnreg.inc.sync.aligned.u32 36;",
		"setmaxnreg.inc.sync.aligned.u32 264;",
		"setmaxnreg.sync.aligned.u32 40;",
	};
	struct rig *r = rig_new();
	for (u32 n = 0; n < ARRAY_LEN(bad); n++) {
		r->error = NULL;
		if (read_kernel(r, bad[n]))
			fail_msg("accepted: %s", bad[n]);
	}
	rig_free(r);
}

static void test_registers(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	r->warps = 8;
	expect_ok(r, "setp.lt.u32 %p1, %r1, 128; @%p1 bra FEW; setmaxnreg.inc.sync.aligned.u32 232; ret; "
		  "FEW: setmaxnreg.dec.sync.aligned.u32 40;");
	expect_fault(r, "setp.lt.u32 %p1, %r1, 96; @%p1 bra FEW; setmaxnreg.inc.sync.aligned.u32 232; ret; "
		     "FEW: setmaxnreg.dec.sync.aligned.u32 40;",
		     "alike");
	expect_fault(r, "setp.lt.u32 %p1, %r1, 96; @%p1 ret; setmaxnreg.inc.sync.aligned.u32 232;", "alike");
	expect_fault(r, "setp.eq.u32 %p1, %r1, 5; @%p1 setmaxnreg.inc.sync.aligned.u32 232;", "alike");
	r->warps = 2;
	expect_fault(r, "setmaxnreg.inc.sync.aligned.u32 232;", "needs four warps");
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loads),      cmocka_unit_test(test_stores),   cmocka_unit_test(test_async_stores),
		cmocka_unit_test(test_reductions), cmocka_unit_test(test_unwaited), cmocka_unit_test(test_sources),
		cmocka_unit_test(test_proxies),    cmocka_unit_test(test_places),   cmocka_unit_test(test_refused),
		cmocka_unit_test(test_registers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

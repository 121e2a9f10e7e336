/* Matrix products as Hopper computes them, hand-written: tensor copies into a ring of stages with mbarriers, wgmma, a
 * tensor copy back; and cp.async with wgmma. Against sums in double; then with faults planted, which must be reported
 * or change the result. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "support/small_floats.h"
#include "runtime/sim/sim.h"
#include "runtime/sim/tensormap.h"
#include "tests/unit/random_bits.h"

enum { TILE = 64 };

/* C[m][n] = Σ A[m][k]·B[n][k], fp16 */
struct problem {
	u32 m, n, k;
	u16 *a, *b, *c;
};

static u16 *random_matrix(u32 rows, u32 cols)
{
	u16 *x = aligned_alloc(16, (size_t)rows * cols * 2);
	for (u32 i = 0; i < rows * cols; i++)
		x[i] = (u16)fp_encode(FP_F16, (double)(random_bits() & 0xFFFF) / 32768 - 1, false);
	return x;
}

static struct problem problem_new(u32 m, u32 n, u32 k)
{
	struct problem p = {m, n, k, random_matrix(m, k), random_matrix(n, k), random_matrix(m, n)};
	memset(p.c, 0xEE, (size_t)m * n * 2);
	return p;
}

static void problem_free(struct problem *p)
{
	free(p->a);
	free(p->b);
	free(p->c);
}

/* Elements that are wrong. */
static u32 count_wrong(const struct problem *p)
{
	u32 wrong = 0;
	for (u32 m = 0; m < p->m; m++)
		for (u32 n = 0; n < p->n; n++) {
			double sum = 0;
			for (u32 k = 0; k < p->k; k++)
				sum += (double)fp_from_f16(p->a[m * p->k + k]) *
				       (double)fp_from_f16(p->b[n * p->k + k]);
			double got = (double)fp_from_f16(p->c[m * p->n + n]);
			wrong += !(fabs(got - sum) <= fabs(sum) * 0x1p-10 + 0x1p-13);
		}
	return wrong;
}

static const char *launch(struct arena *a, const char *text, const void *params, struct problem *p, u64 seed, u32 warps,
			  u64 shared, bool strict)
{
	const char *error = NULL;
	struct ptx_module *m = ptx_read(a, text, strlen(text), &error);
	if (!m || !sim_decode(a, m, &error))
		return error;
	struct mem_range ranges[] = {{"a", (char *)p->a, (u64)p->m * p->k * 2},
				     {"b", (char *)p->b, (u64)p->n * p->k * 2},
				     {"c", (char *)p->c, (u64)p->m * p->n * 2}};
	for (u32 k = 1; k < 3; k++)
		for (u32 n = k; n && ranges[n - 1].base > ranges[n].base; n--) {
			struct mem_range r = ranges[n];
			ranges[n] = ranges[n - 1];
			ranges[n - 1] = r;
		}
	struct launch l = {.module = m,
			   .kernel = &m->kernels[0],
			   .grid = {(p->m + TILE - 1) / TILE, (p->n + TILE - 1) / TILE, 1},
			   .num_warps = warps,
			   .params = params,
			   .ranges = ranges,
			   .nranges = 3,
			   .seed = seed,
			   .timing = (enum async_timing)(seed % 3),
			   .dynamic_shared = shared,
			   .strict_proxies = strict};
	struct strbuf out = {.arena = a};
	return sim_run(&l, &out) ? out.at : "";
}

/* --- pieces of text ---------------------------------------------------------------------------------------------- */

#define ACCUMULATORS                                                                                                   \
	"{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8, %f9, %f10, %f11, %f12, %f13, %f14, %f15, "                      \
	"%f16, %f17, %f18, %f19, %f20, %f21, %f22, %f23, %f24, %f25, %f26, %f27, %f28, %f29, %f30, %f31}"

/* A stage of 64 × 64 × 64: A at the shared address %r10, B at %r11, both with rows of 128 bytes, swizzled. */
static void print_products(struct strbuf *s)
{
	sb_puts(s, "shr.u32 %r12, %r10, 4; shr.u32 %r13, %r11, 4; cvt.u64.u32 %rd10, %r12; cvt.u64.u32 %rd11, %r13;\n"
		   "or.b64 %rd10, %rd10, 0x4000004000010000; or.b64 %rd11, %rd11, 0x4000004000010000;\n"
		   "wgmma.fence.sync.aligned;\n");
	for (u32 k = 0; k < 4; k++)
		sb_puts(s, "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " ACCUMULATORS
			", %rd10, %rd11, %p5, 1, 1, 0, 0;\n"
			   "add.s64 %rd10, %rd10, 2; add.s64 %rd11, %rd11, 2; setp.eq.u32 %p5, %r0, %r0;\n");
	sb_puts(s, "wgmma.commit_group.sync.aligned;\n");
}

#define REGISTERS ".reg .pred %p<8>; .reg .b32 %r<60>; .reg .b64 %rd<40>; .reg .f32 %f<32>;\n"

/* --- tensor copies ----------------------------------------------------------------------------------------------- */

enum {
	STAGES = 3,
	STAGE_BYTES = TILE * TILE * 2,
	A_AT = 1024,
	B_AT = A_AT + STAGES * STAGE_BYTES,
	C_AT = B_AT + STAGES * STAGE_BYTES,
	SHARED_BYTES = C_AT + STAGE_BYTES
};
struct tma_params {
	_Alignas(64) char a[TENSOR_MAP_BYTES], b[TENSOR_MAP_BYTES], c[TENSOR_MAP_BYTES];
	u32 steps;
};

/* Warpgroup 0 fills stages, by one thread; warpgroup 1 multiplies. full: at sh, empty: behind. */
static const char *tma_kernel(struct arena *a)
{
	struct strbuf s = {.arena = a};
	sb_puts(&s, ".version 8.4\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 sh[];\n"
		    ".visible .entry k(.param .align 64 .b8 ma[128], .param .align 64 .b8 mb[128], .param .align 64 "
		    ".b8 mc[128], .param .u32 steps)\n{\n"
		REGISTERS "mov.u32 %r0, sh; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; shl.b32 %r2, %r2, 6; "
			"mov.u32 %r3, %ctaid.y; shl.b32 %r3, %r3, 6;\n"
		"ld.param.u32 %r4, [steps]; mov.b64 %rd1, ma; cvta.param.u64 %rd1, %rd1; "
		"mov.b64 %rd2, mb; cvta.param.u64 %rd2, %rd2; "
		"mov.b64 %rd3, mc; cvta.param.u64 %rd3, %rd3;\nsetp.ne.u32 %p1, %r1, 0; @%p1 bra READY;\n");
	for (u32 n = 0; n < STAGES; n++)
		sb_printf(&s, "mbarrier.init.shared::cta.b64 [%%r0+%u], 1; "
			  "mbarrier.init.shared::cta.b64 [%%r0+%u], 4;\n", n * 8, 64 + n * 8);
	sb_puts(&s, "fence.mbarrier_init.release.cluster;\nREADY: bar.sync 0;\n"
		    "mov.u32 %r5, 0; mov.u32 %r6, 0; mov.u32 %r7, 0;\n" /* step, stage, parity */
		    "setp.lt.u32 %p1, %r1, 128; @!%p1 bra CONSUMER;\n"
		    "setmaxnreg.dec.sync.aligned.u32 40;\nsetp.ne.u32 %p1, %r1, 0; @%p1 ret;\n"
		    "PRODUCE: shl.b32 %r8, %r6, 3; add.s32 %r8, %r8, %r0; xor.b32 %r9, %r7, 1;\n"
		    "EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r8+64], %r9;\n@!%p2 bra EMPTY;\n"
		    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r8], 16384;\n"
		    "shl.b32 %r10, %r6, 13; add.s32 %r10, %r10, %r0; shl.b32 %r11, %r5, 6;\n");
	sb_printf(&s, "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%r10+%u], "
		  "[%%rd1, {%%r11, %%r2}], [%%r8];\n",
		  (u32)A_AT);
	sb_printf(&s, "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%r10+%u], "
		  "[%%rd2, {%%r11, %%r3}], [%%r8];\n",
		  (u32)B_AT);
#define NEXT "add.s32 %r6, %r6, 1; setp.eq.u32 %p3, %r6, 3; selp.b32 %r6, 0, %r6, %p3; @%p3 xor.b32 %r7, %r7, 1; "     \
	"add.s32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, %r4;\n"
	sb_puts(&s, NEXT "@%p4 bra PRODUCE;\nret;\n"
			 "CONSUMER: setmaxnreg.inc.sync.aligned.u32 232;\nand.b32 %r20, %r1, 31; "
			 "setp.eq.u32 %p6, %r20, 0; setp.ne.u32 %p5, %r0, %r0;\n"
			 "MULTIPLY: shl.b32 %r8, %r6, 3; add.s32 %r8, %r8, %r0;\n"
			 "FULL: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r8], %r7;\n@!%p2 bra FULL;\n");
	sb_printf(&s, "shl.b32 %%r10, %%r6, 13; add.s32 %%r10, %%r10, %%r0; "
		  "add.s32 %%r11, %%r10, %u; add.s32 %%r10, %%r10, %u;\n", (u32)B_AT, (u32)A_AT);
	print_products(&s);
	sb_puts(&s, "wgmma.wait_group.sync.aligned 0;\n@%p6 mbarrier.arrive.shared::cta.b64 _, [%r8+64];\n" NEXT
		"@%p4 bra MULTIPLY;\n"
		    "and.b32 %r21, %r1, 127; shr.u32 %r22, %r21, 5; shr.u32 %r23, %r20, 2; and.b32 %r24, %r20, 3;\n"
		    "shl.b32 %r25, %r22, 4; add.s32 %r25, %r25, %r23; shl.b32 %r25, %r25, 7; "
		    "shl.b32 %r26, %r24, 2; add.s32 %r25, %r25, %r26; "
		    "add.s32 %r25, %r25, %r0;\n");
	for (u32 v = 0; v < 16; v++)
		sb_printf(&s,
			  "cvt.rn.f16x2.f32 %%r30, %%f%u, %%f%u; xor.b32 %%r31, %%r23, %u; "
			  "shl.b32 %%r31, %%r31, 4; add.s32 %%r31, %%r31, %%r25; "
			  "st.shared.b32 [%%r31+%u], %%r30;\n",
			  v * 2 + 1, v * 2, v / 2, (u32)C_AT + v % 2 * 8 * 128);
	sb_puts(&s, "fence.proxy.async.shared::cta;\nbar.sync 1, 128;\nsetp.ne.u32 %p1, %r1, 128; @%p1 ret;\n");
	sb_printf(&s, "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%%rd3, {%%r3, %%r2}], [%%r0+%u];\n",
		  (u32)C_AT);
	sb_puts(&s, "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\nret;\n}\n");
	return s.at;
}

static void make_map(char *map, u16 *matrix, u32 rows, u32 cols, int swizzle)
{
	struct arena a = {0};
	struct strbuf error = {.arena = &a};
	static const u32 box[] = {TILE, TILE}, steps[] = {1, 1};
	if (!tensor_map_encode(map, TENSOR_FLOAT16, 2, matrix, (u64[]){cols, rows}, (u64[]){(u64)cols * 2}, box, steps,
			       0, swizzle, 0, 0, &error))
		fail_msg("%s", error.at);
	arena_free(&a);
}

static const char *run_tma(struct arena *a, const char *text, struct problem *p, u64 seed, int swizzle)
{
	struct tma_params params = {.steps = (p->k + TILE - 1) / TILE};
	make_map(params.a, p->a, p->m, p->k, swizzle);
	make_map(params.b, p->b, p->n, p->k, TENSOR_SWIZZLE_128B);
	make_map(params.c, p->c, p->m, p->n, TENSOR_SWIZZLE_128B);
	return launch(a, text, &params, p, seed, 8, SHARED_BYTES, true);
}

static void test_tensor_copies(void **state)
{
	(void)state;
	static const u32 sizes[][3] = {{128, 128, 512}, {100, 120, 304}, {64, 64, 64}, {8, 200, 136}};
	for (u32 n = 0; n < ARRAY_LEN(sizes); n++)
		for (u64 seed = 0; seed < 6; seed++) {
			struct arena a = {0};
			struct problem p = problem_new(sizes[n][0], sizes[n][1], sizes[n][2]);
			const char *e = run_tma(&a, tma_kernel(&a), &p, seed, TENSOR_SWIZZLE_128B);
			if (*e)
				fail_msg("%s", e);
			assert_int_equal(count_wrong(&p), 0);
			problem_free(&p);
			arena_free(&a);
		}
}

/* --- planted faults ---------------------------------------------------------------------------------------------- */

static const char *replace(struct arena *a, const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	if (!at)
		fail_msg("the kernel has no '%s'", from);
	return arena_printf(a, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static const struct {
	const char *from, *to, *report; /* report: part of it; NULL: the result is wrong */
} mutants[] = {
	{"fence.proxy.async.shared::cta;", "", "no fence.proxy.async"},
	{"fence.mbarrier_init.release.cluster;", "", "fence.mbarrier_init or fence.proxy.async is missing"},
	{"READY: bar.sync 0;", "READY:", "mbarrier"},
	{"@!%p2 bra FULL;", "", "asynchronous copy not waited for"},
	{"@!%p2 bra EMPTY;", "", "shared bytes"},
	{"16384;", "8192;", ""},
	{"16384;", "16368;", ""},
	{"16384;", "32768;", "deadlock"},
	{"[%r8], %r7;", "[%r8], %r9;", ""},
	{"xor.b32 %r9, %r7, 1;", "mov.b32 %r9, %r7;", "deadlock"},
	{"wgmma.wait_group.sync.aligned 0;", "", ""},
	{"wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;", ""},
	{"@%p6 mbarrier.arrive.shared::cta.b64 _, [%r8+64];", "", "deadlock"},
	{"@%p6 mbarrier.arrive.shared::cta.b64 _, [%r8+64];",
	 "@%p6 mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%r8+64];", "not waited for"},
	{"wgmma.fence.sync.aligned;", "@%p6 mbarrier.arrive.shared::cta.b64 _, [%r8+64];\nwgmma.fence.sync.aligned;",
	 ""},
	{"bar.sync 1, 128;", "", ""},
	{"cp.async.bulk.wait_group.read 0;", "", "ends without having waited"},
	{"cp.async.bulk.commit_group;", "", "ends without having waited"},
	{"wgmma.commit_group.sync.aligned;", "", ""},
	{"0x4000004000010000", "0x8000004000010000", NULL},
	{"0x4000004000010000", "0x4000002000010000", NULL},
	{"{%r11, %r2}", "{%r2, %r11}", NULL},
	{"add.s64 %rd11, %rd11, 2;", "add.s64 %rd11, %rd11, 4;", NULL},
	{"setp.eq.u32 %p3, %r6, 3;", "setp.eq.u32 %p3, %r6, 2;", ""},
	{"setmaxnreg.inc.sync.aligned.u32 232;", "@%p1 setmaxnreg.inc.sync.aligned.u32 232; setp.lt.u32 %p1, %r1, 160; "
	 "@%p1 setmaxnreg.inc.sync.aligned.u32 40;",
	 "alike"},
};

/* Under three schedules: a report with that text, or if there is none, or the text is "", a wrong result. */
static void check_mutant(u32 n, const char *text, int swizzle, const char *report)
{
	bool reported = false, wrong = false;
	const char *last = "";
	struct arena a = {0};
	for (u64 seed = 0; seed < 3 && !reported; seed++) {
		struct problem p = problem_new(64, 128, 512);
		const char *e = run_tma(&a, text, &p, seed, swizzle);
		last = *e ? e : last;
		reported = *e && (!report || strstr(e, report));
		wrong |= !*e && count_wrong(&p);
		problem_free(&p);
	}
	if (!(reported || (wrong && (!report || !*report))))
		fail_msg("mutant %u: want '%s', got '%s'", n, report ? report : "a wrong result", last);
	arena_free(&a);
}

static void test_mutants(void **state)
{
	(void)state;
	struct arena a = {0};
	for (u32 n = 0; n < ARRAY_LEN(mutants); n++)
		check_mutant(n, replace(&a, tma_kernel(&a), mutants[n].from, mutants[n].to), TENSOR_SWIZZLE_128B,
			     mutants[n].report);
	check_mutant(99, tma_kernel(&a), TENSOR_SWIZZLE_NONE, NULL);
	arena_free(&a);
}

/* --- cp.async ---------------------------------------------------------------------------------------------------- */

/* Four warps, two stages; A and B at sh and behind, swizzled by the threads that copy. */
static const char *cp_kernel(struct arena *a, const struct problem *p)
{
	struct strbuf s = {.arena = a};
	sb_puts(&s, ".version 8.4\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 sh[];\n"
		    ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc)\n{\n" REGISTERS
		    "mov.u32 %r0, sh; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; shl.b32 %r2, %r2, 6; "
		    "mov.u32 %r3, %ctaid.y; shl.b32 %r3, %r3, 6;\n"
		    "ld.param.u64 %rd1, [pa]; ld.param.u64 %rd2, [pb]; ld.param.u64 %rd3, [pc];\n"
		    /* this thread's row and chunk: rows r + 16·i */
		    "shr.u32 %r4, %r1, 3; and.b32 %r5, %r1, 7; and.b32 %r6, %r4, 7; "
		    "xor.b32 %r6, %r6, %r5; shl.b32 %r6, %r6, 4;\n"
		    "shl.b32 %r7, %r4, 7; add.s32 %r7, %r7, %r6; add.s32 %r7, %r7, %r0; "
		    "shl.b32 %r8, %r5, 4; cvt.u64.u32 %rd4, %r8;\n");
	sb_printf(&s,
		  "add.s32 %%r9, %%r2, %%r4; mul.wide.u32 %%rd5, %%r9, %u; add.s64 %%rd5, %%rd5, %%rd4; "
		  "add.s64 %%rd5, %%rd5, %%rd1;\n"
		  "add.s32 %%r9, %%r3, %%r4; mul.wide.u32 %%rd6, %%r9, %u; add.s64 %%rd6, %%rd6, %%rd4; "
		  "add.s64 %%rd6, %%rd6, %%rd2;\n",
		  p->k * 2, p->k * 2);
	sb_puts(&s, "setp.ne.u32 %p5, %r0, %r0;\n");
	u32 steps = p->k / TILE;
	for (u32 k = 0; k <= steps; k++) { /* one step ahead */
		for (u32 i = 0; i < 8 && k < steps; i++)
			sb_printf(&s, "cp.async.cg.shared.global [%%r7+%u], [%%rd%u+%u], 16;\n",
				  k % 2 * 16384 + i / 4 * 8192 + i % 4 * 2048, 5 + i / 4,
				  k * 128 + i % 4 * 16 * p->k * 2);
		sb_printf(&s, "cp.async.commit_group;\n");
		if (!k)
			continue;
		sb_printf(&s, "cp.async.wait_group 1;\nfence.proxy.async;\nbar.sync 0;\n"
			  "add.s32 %%r10, %%r0, %u; add.s32 %%r11, %%r10, 8192;\n", (k - 1) % 2 * 16384);
		print_products(&s);
		sb_puts(&s, "wgmma.wait_group.sync.aligned 0;\nbar.sync 0;\n");
	}
	sb_printf(&s,
		  "and.b32 %%r20, %%r1, 31; shr.u32 %%r22, %%r1, 5; shr.u32 %%r23, %%r20, 2; "
		  "and.b32 %%r24, %%r20, 3; shl.b32 %%r25, %%r22, 4;\n"
		  "add.s32 %%r25, %%r25, %%r23; add.s32 %%r25, %%r25, %%r2; mul.wide.u32 %%rd7, %%r25, %u; "
		  "shl.b32 %%r26, %%r24, 1; add.s32 %%r26, %%r26, %%r3;\n"
		  "mul.wide.u32 %%rd8, %%r26, 2; add.s64 %%rd7, %%rd7, %%rd8; add.s64 %%rd7, %%rd7, %%rd3;\n",
		  p->n * 2);
	for (u32 v = 0; v < 16; v++)
		sb_printf(&s, "cvt.rn.f16x2.f32 %%r30, %%f%u, %%f%u; st.global.b32 [%%rd7+%u], %%r30;\n", v * 2 + 1,
			  v * 2, v / 2 * 16 + v % 2 * 16 * p->n);
	sb_puts(&s, "ret;\n}\n");
	return s.at;
}

static void test_copies(void **state)
{
	(void)state;
	for (u64 seed = 0; seed < 3; seed++) {
		struct arena a = {0};
		struct problem p = problem_new(256, 256, 256);
		const void *params[] = {p.a, p.b, p.c};
		struct timespec begin, end;
		clock_gettime(CLOCK_MONOTONIC, &begin);
		const char *e = launch(&a, cp_kernel(&a, &p), params, &p, seed, 4, 32768, true);
		clock_gettime(CLOCK_MONOTONIC, &end);
		if (*e)
			fail_msg("%s", e);
		assert_int_equal(count_wrong(&p), 0);
		double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
		print_message("256 x 256 x 256 with every check: %.2f s\n", seconds);
		assert_true(seconds < 10);
		e = launch(&a, replace(&a, cp_kernel(&a, &p), "fence.proxy.async;", ""), params, &p, seed, 4, 32768,
			   true);
		assert_non_null(strstr(e, "no fence.proxy.async"));
		/* what compilers do without a fence */
		const char *bare = cp_kernel(&a, &p);
		while (strstr(bare, "fence.proxy.async;"))
			bare = replace(&a, bare, "fence.proxy.async;", "");
		memset(p.c, 0xEE, (size_t)p.m * p.n * 2);
		e = launch(&a, bare, params, &p, seed, 4, 32768, false);
		if (*e)
			fail_msg("%s", e);
		assert_int_equal(count_wrong(&p), 0);
		problem_free(&p);
		arena_free(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tensor_copies),
		cmocka_unit_test(test_mutants),
		cmocka_unit_test(test_copies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

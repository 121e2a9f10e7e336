/* Clusters: special registers, shared memory of other blocks, the barrier, and what is reported. */
#include "test_sim_rig.h"

#define PAIR HEAD_OF(".reqnctapercluster 2, 1, 1\n")
#define MEET "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
/* %rd4: this thread's word of the block's 256 bytes of a, and %rd5 of b; %r10: its place in sh; %r11: the neighbour's
 * rank; %r12: its place there */
#define MINE                                                                                                           \
	"mov.u32 %r3, %cluster_ctarank; mul.wide.u32 %rd3, %r1, 4; mul.wide.u32 %rd6, %r2, 256; "                      \
	"add.s64 %rd3, %rd3, %rd6; add.s64 %rd4, "                                                                     \
	"%rd1, %rd3; add.s64 %rd5, %rd2, %rd3; mov.u32 %r9, sh; shl.b32 %r10, %r1, 2; "                                \
	"add.u32 %r10, %r10, %r9; mov.u32 %r8, "                                                                       \
	"%cluster_nctarank; add.u32 %r11, %r3, 1; rem.u32 %r11, %r11, %r8; "                                           \
	"mapa.shared::cluster.u32 %r12, %r10, %r11; ld.global.u32 "                                                    \
	"%r4, [%rd4];\n"

static struct rig *pair_new(void)
{
	struct rig *r = rig_new();
	r->head = PAIR;
	r->blocks = 4;
	r->warps = 2;
	return r;
}

static u32 word(const char *at, u32 n)
{
	u32 v;
	memcpy(&v, at + n * 4, 4);
	return v;
}

static void test_registers(void **state)
{
	(void)state;
	static const char *const names[] = {"cluster_ctaid.x", "cluster_ctaid.y", "cluster_nctaid.x",
					    "cluster_nctaid.y", "clusterid.x",
					    "clusterid.y", "nclusterid.x", "nclusterid.y", "cluster_ctarank",
					    "cluster_nctarank",
					    "cluster_nctaid.z", "clusterid.z"};
	for (u32 shape = 0; shape < 3; shape++) {
		struct rig *r = rig_new();
		static const u32 shapes[3][2] = {{1, 1}, {3, 2}, {2, 4}};
		u32 sx = shapes[shape][0], sy = shapes[shape][1];
		struct strbuf s = {.arena = &r->arena};
		r->blocks = 6;
		r->rows = 4;
		if (shape == 1)
			r->head = HEAD_OF(".explicitcluster .reqnctapercluster 3, 2 .maxclusterrank 8\n");
		else if (shape)
			memcpy(r->cluster, (u32[]){2, 4, 1}, sizeof r->cluster);
		sb_puts(&s, "mov.u32 %r3, %ctaid.y; mad.lo.u32 %r3, %r3, 6, %r2; "
			"mad.wide.u32 %rd3, %r3, 64, %rd2; mov.pred %p1, "
			    "%is_explicit_cluster; selp.b32 %r4, 1, 0, %p1; st.global.b32 [%rd3+48], %r4;\n");
		for (u32 k = 0; k < ARRAY_LEN(names); k++)
			sb_printf(&s, "mov.u32 %%r4, %%%s; st.global.b32 [%%rd3+%u], %%r4;\n", names[k], k * 4);
		expect_ok(r, s.at);
		for (u32 y = 0; y < 4; y++)
			for (u32 x = 0; x < 6; x++) {
				u32 want[] = {x % sx,    y % sy, sx,
					      sy,        x / sx, y / sy,
					      6 / sx,    4 / sy, x % sx + y % sy * sx,
					      sx * sy,   1,      0,
					      shape != 0};
				for (u32 k = 0; k < ARRAY_LEN(want); k++)
					if (word(r->b, (y * 6 + x) * 16 + k) != want[k])
						fail_msg("%%%s of block (%u, %u) is %u, not %u",
							 k < 12 ? names[k] : "is_explicit_cluster", x, y,
							 word(r->b, (y * 6 + x) * 16 + k), want[k]);
			}
		rig_free(r);
	}
}

/* Each block takes what the next one of its cluster has: by address of either kind, by a load, an atomic, or as a
 * store. */
static void test_neighbours(void **state)
{
	(void)state;
	static const char *const bodies[] = {
		MINE "st.shared.u32 [%r10], %r4;\n" MEET
			"ld.shared::cluster.u32 %r5, [%r12]; st.global.u32 [%rd5], %r5;\n" MEET,
		MINE "st.shared.u32 [%r10], %r4;\n" MEET "mov.u64 %rd7, sh; cvta.shared.u64 %rd7, %rd7; "
			"mul.wide.u32 %rd8, %r1, 4; add.s64 %rd7, "
		     "%rd7, %rd8; mapa.u64 %rd8, %rd7, %r11; ld.u32 %r5, [%rd8]; "
		     "st.global.u32 [%rd5], %r5; getctarank.u64 %r6, %rd8; "
		     "setp.ne.u32 %p1, %r6, %r11; @%p1 trap; isspacep.shared::cluster %p1, %rd8; "
		     "@!%p1 trap; isspacep.shared %p1, %rd8; "
		     "setp.eq.u32 %p2, %r11, %r3; xor.pred %p1, %p1, %p2; @%p1 trap; "
		     "isspacep.shared::cta %p1, %rd7; @!%p1 trap;\n" MEET,
		MINE "st.shared::cluster.u32 [%r10], %r4;\n" MEET "atom.shared::cluster.add.u32 %r5, [%r12], "
			"5; st.global.u32 [%rd5], %r5;\n" MEET
		     "ld.shared.u32 %r6, [%r10]; add.u32 %r7, %r4, 5; setp.ne.u32 %p1, %r6, %r7; @%p1 trap;",
		/* the other way round: into the block before */
		MINE "add.u32 %r11, %r3, %r8; sub.u32 %r11, %r11, 1; rem.u32 %r11, %r11, %r8; "
			"mapa.shared::cluster.u32 %r12, %r10, %r11; "
		     "getctarank.shared::cluster.u32 %r6, %r12; setp.ne.u32 %p1, %r6, %r11; @%p1 trap;\n" MEET
		     "st.shared::cluster.u32 [%r12], %r4;\n" MEET
		     "ld.shared.u32 %r5, [%r10]; st.global.u32 [%rd5], %r5;",
		MINE "st.shared.u32 [%r10], %r4; fence.acq_rel.cluster; barrier.cluster.arrive.relaxed; "
			"barrier.cluster.wait.acquire; "
		     "ld.shared::cluster.u32 %r5, [%r12]; st.global.u32 [%rd5], %r5;\n" MEET,
		/* work between arriving and waiting */
		MINE "st.shared.u32 [%r10], %r4; barrier.cluster.arrive.release; add.u32 %r6, %r4, 1; "
			"st.shared.u32 [%r10+2048], %r6; bar.sync 0; "
		     "barrier.cluster.wait; ld.shared::cluster.u32 %r5, [%r12]; st.global.u32 [%rd5], %r5;\n" MEET,
	};
	for (u32 n = 0; n < ARRAY_LEN(bodies); n++)
		for (u32 size = 1; size <= 16; size *= 2) {
			struct rig *r = pair_new();
			r->head = NULL;
			memcpy(r->cluster, (u32[]){size, 1, 1}, sizeof r->cluster);
			r->blocks = 32;
			expect_ok(r, bodies[n]);
			for (u32 b = 0; b < 32; b++)
				for (u32 t = 0; t < 64; t++) {
					u32 from = b / size * size + (b + 1) % size;
					if (word(r->b, b * 64 + t) != word(r->a, from * 64 + t))
						fail_msg("%s: block %u of clusters of %u, thread %u", bodies[n], b,
							 size, t);
				}
			rig_free(r);
		}
}

static void always_faults(struct rig *r, const char *body, const char *text)
{
	for (u32 k = 0; k < 10; k++)
		expect_fault(r, body, text);
}

/* Blocks hand each other words by arrivals at the neighbour's mbarrier, in both directions and by both kinds of
 * address. */
static void test_mbarriers(void **state)
{
	(void)state;
	static const char body[] =
		MINE "mov.u32 %r13, sh; add.u32 %r13, %r13, 2048; mapa.shared::cluster.u32 %r14, %r13, "
			"%r11; cvt.u64.u32 %rd7, %r13; "
		     "cvta.shared.u64 %rd7, %rd7; mapa.u64 %rd7, %rd7, %r11; setp.eq.u32 %p1, %r1, 0;\n"
		     "@%p1 mbarrier.init.shared.b64 [%r13], 64;\n" MEET "st.shared::cluster.u32 [%r12], %r4;\n$\n"
		     "WAIT: mbarrier.try_wait.parity$.shared.b64 %p2, [%r13], 0;\n@!%p2 bra WAIT;\n"
		     "ld.shared.u32 %r5, [%r10]; st.global.u32 [%rd5], %r5;\n" MEET;
	static const char *const arrivals[] = {
		"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r14];",
		"mbarrier.arrive.release.cluster.b64 _, [%rd7];",
		"mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r14], 8;\n"
		"mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r14], 8;",
	};
	struct rig *r = pair_new();
	r->head = NULL;
	r->blocks = 16;
	for (u32 size = 1; size <= 8; size *= 2)
		for (u32 n = 0; n < ARRAY_LEN(arrivals); n++) {
			memcpy(r->cluster, (u32[]){size, 1, 1}, sizeof r->cluster);
			memset(r->b, 0xEE, 16 * 256);
			expect_ok(r, fill(r, body, arrivals[n], ".acquire.cluster"));
			for (u32 b = 0; b < 16; b++)
				for (u32 t = 0; t < 64; t++)
					assert_int_equal(
						word(r->b, b * 64 + t),
						word(r->a, ((b + size - 1) % size + b / size * size) * 64 + t));
		}
	memcpy(r->cluster, (u32[]){2, 1, 1}, sizeof r->cluster);
	always_faults(r, fill(r, body, "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r14];",
			      ".acquire.cluster"), "race: ");
	always_faults(r, fill(r, body, arrivals[0], ".relaxed.cluster"), "race: ");
	always_faults(r, fill(r, body, "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r14], 33;", ""),
		      "more arrivals than expected");
	always_faults(r, fill(r, body, "mbarrier.arrive.shared::cluster.b64 _, [%r14+8];", ""), "was not initialised");
	always_faults(r, fill(r, body, "mbarrier.inval.b64 [%rd7];", ""), "takes mbarriers of the warp's block only");
	always_faults(r, fill(r, body, "mbarrier.test_wait.parity.b64 %p3, [%rd7], 0;", ""),
		      "takes mbarriers of the warp's block only");
	always_faults(r, fill(r, body, "mbarrier.arrive.shared::cluster.b64 _, [%r14+4];", ""), "misaligned mbarrier");
	rig_free(r);
}

/* Bulk copies and st.async by addresses of shared::cluster of the own block; of others they need an mbarrier there (see
 * test_sim_multicast.c). */
static void test_bulk(void **state)
{
	(void)state;
	static const char body[] =
		MINE "mapa.shared::cluster.u32 %r12, %r9, $; add.u32 %r13, %r9, 2048; "
			"mapa.shared::cluster.u32 %r14, %r13, %r3; sub.s64 %rd7, %rd4, "
		     "%rd3; add.s64 %rd7, %rd7, %rd6; setp.eq.u32 %p1, %r1, 0;\n@!%p1 bra READ;\n"
		     "mbarrier.init.shared.b64 [%r13], 1; fence.mbarrier_init.release.cluster;\n"
		     "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r14], 264;\n"
		     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r12], [%rd7], 256, [%r14];\n"
		     "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r12+512], %rd1, [%r14];\n"
		     "READ: barrier.cluster.arrive; barrier.cluster.wait;\n"
		     "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r13], 0;\n@!%p2 bra WAIT;\n"
		     "ld.shared.u32 %r5, [%r10]; st.global.u32 [%rd5], %r5;\n";
	struct rig *r = pair_new();
	for (enum async_timing timing = ASYNC_LATE; timing <= ASYNC_MIXED; timing++) {
		r->timing = timing;
		memset(r->b, 0xEE, 1024);
		expect_ok(r, fill(r, body, "%r3"));
		assert_memory_equal(r->a, r->b, 1024);
		always_faults(r, fill(r, body, "%r11"), "copies to block (");
	}
	rig_free(r);
}

static void test_order(void **state)
{
	(void)state;
	struct rig *r = pair_new();
	r->blocks = 2;
	/* without the barrier before or behind */
	static const char body[] = MINE "st.shared.u32 [%r10], 1;\n$ st.shared.u32 [%r10], 2;\n"
		"$ ld.shared::cluster.u32 %r5, [%r12];\n$";
	for (u32 k = 0; k < 10; k++)
		expect_ok(r, fill(r, body, MEET, MEET, MEET));
	always_faults(r, fill(r, body, MEET, "", MEET), "race: ");
	always_faults(r, fill(r, body, MEET, "", MEET), "of shared bytes 0x");
	always_faults(r, fill(r, body, MEET, "bar.sync 0;", MEET), "race: ");
	always_faults(r, fill(r, body, MEET, MEET, ""), " end");
	always_faults(r, fill(r, body, MEET, "barrier.cluster.arrive.relaxed; barrier.cluster.wait;", MEET), "race: ");
	/* arriving before the store is too early */
	always_faults(r, MINE "st.shared.u32 [%r10], 1;\n" MEET "barrier.cluster.arrive; "
		      "st.shared.u32 [%r10], 2; barrier.cluster.wait; "
			      "ld.shared::cluster.u32 %r5, [%r12];\n" MEET, "race: ");
	/* two blocks into the third */
	r->head = HEAD_OF(".reqnctapercluster 4, 1, 1\n");
	r->blocks = 4;
	static const char third[] = MINE "mapa.shared::cluster.u32 %r12, %r10, 2;\n" MEET
		"$ st.shared::cluster.u32 [%r12], $;\n" MEET;
	expect_ok(r, fill(r, third, "", "7"));
	always_faults(r, fill(r, third, "", "%r3"), "race: write of shared bytes 0x");
	always_faults(r, fill(r, third, "", "%r3"), " of block (2, 0, 0)");
	expect_ok(r, fill(r, third, "shl.b32 %r6, %r3, 8; add.u32 %r12, %r12, %r6;", "%r3"));
	expect_ok(r, MINE "mapa.shared::cluster.u32 %r12, %r10, 2; st.shared.u32 [%r10], 0;\n" MEET
		  "red.shared::cluster.add.u32 [%r12], 1;\n" MEET);
	/* what nobody wrote, and what a store of another block did */
	always_faults(r, MINE MEET "ld.shared::cluster.u32 %r5, [%r12];\n" MEET,
		      "nothing was written here before: read of shared bytes 0x");
	expect_ok(r, MINE MEET "st.shared::cluster.u32 [%r12], %r3;\n" MEET "ld.shared.u32 %r5, [%r10];");
	always_faults(r, MINE MEET "st.shared::cluster.u16 [%r12], 1;\n" MEET "ld.shared.u32 %r5, [%r10];",
		      "nothing was written here before");
	/* copies on their way */
	static const char copy[] = MINE "and.b64 %rd4, %rd4, -16; shl.b32 %r6, %r1, 4; add.u32 %r6, %r6, %r9; "
		"mapa.shared::cluster.u32 %r7, %r6, "
					"%r11; cp.async.cg.shared.global [%r6], [%rd4], 16;\n$" MEET
					"ld.shared::cluster.u32 %r5, [%r7];\n" MEET
					"cp.async.wait_all;";
	expect_ok(r, fill(r, copy, "cp.async.wait_all;"));
	always_faults(r, fill(r, copy, ""), "asynchronous copy not waited for");
	rig_free(r);
}

/* Nor be used before it is known to have begun: a barrier shows that, be it relaxed. */
static void test_begin(void **state)
{
	(void)state;
	struct rig *r = pair_new();
	always_faults(r, MINE "st.shared::cluster.u32 [%r12], 1;\n" MEET, "which may not have begun");
	expect_ok(r, MINE "barrier.cluster.arrive.relaxed; barrier.cluster.wait; st.shared::cluster.u32 [%r12], 1;\n"
		  MEET);
	rig_free(r);
}

/* A block must not end before the others have used its shared memory. */
static void test_end(void **state)
{
	(void)state;
	struct rig *r = pair_new();
	r->blocks = 2;
	static const char body[] = MINE "st.shared.u32 [%r10], %r4;\n" MEET "setp.eq.u32 %p1, %r3, 0;\n"
		"@%p1 bra END;\nld.shared::cluster.u32 %r5, "
					"[%r12];\nEND: $";
	u32 before = 0, behind = 0;
	for (u32 k = 0; k < 60; k++) {
		const char *e = run(r, fill(r, body, ""));
		before += strstr(e, "block (0, 0, 0) may end before its shared memory is "
				 "accessed by block (1, 0, 0), warp ") != NULL;
		behind += strstr(e, "access to shared memory of block (0, 0, 0), which has ended") != NULL;
	}
	assert_int_equal(before + behind, 60);
	assert_true(before && behind);
	for (u32 k = 0; k < 60; k++)
		expect_ok(r, fill(r, body, MEET));
	rig_free(r);
}

static void test_barrier(void **state)
{
	(void)state;
	struct rig *r = pair_new();
	r->blocks = 2;
	expect_fault(r, "barrier.cluster.wait;", "waits at the cluster's barrier without having arrived");
	expect_fault(r, "barrier.cluster.arrive; barrier.cluster.arrive;", "again without having waited");
	expect_fault(r, "setp.lt.u32 %p1, %r1, 7;\n@%p1 bra END;\n" MEET "END: bar.sync 0;", "these do not arrive");
	/* some never come, those that have ended are not waited for */
	const char *stuck = "setp.eq.u32 %p1, %r2, 1;\n@%p1 bra OTHER;\n" MEET "ret;\n"
		"OTHER: setp.ge.u32 %p1, %r1, 32;\n@%p1 ret;\nbar.sync 1, 64;";
	r->warps = 4;
	expect_fault(r, stuck, "deadlock in the cluster from block (0, 0, 0)");
	expect_fault(r, stuck, "block (0, 0, 0), warp 3 waits at the cluster's barrier, where 4 "
		     "of 8 warps have arrived: PTX line");
	expect_fault(r, stuck, "block (1, 0, 0), warp 0 waits at barrier 1, where 1 of 2");
	expect_ok(r, "setp.eq.u32 %p1, %r2, 1;\n@%p1 ret;\n" MEET MEET "bar.sync 0;");
	r->max_steps = 50000;
	expect_fault(r, "setp.eq.u32 %p1, %r2, 1;\nLOOP: @%p1 bra LOOP;\n" MEET, "its cluster has run 100");
	rig_free(r);
}

static void test_refused(void **state)
{
	(void)state;
	struct rig *r = pair_new();
	r->blocks = 3;
	expect_fault(r, "", "the grid (3, 1, 1) is not a multiple of the kernel's clusters of (2, 1, 1) blocks");
	r->blocks = 4;
	expect_ok(r, "");
	r->cluster[0] = 4;
	expect_fault(r, "", "clusters of (4, 1, 1) blocks, but the kernel is compiled for (2, 1, 1)");
	r->head = HEAD_OF(".maxclusterrank 3\n");
	expect_fault(r, "", "clusters of 4 blocks, but the limit is 3");
	r->cluster[0] = 32;
	r->head = NULL;
	expect_fault(r, "", "clusters of 32 blocks, but the limit is 16");
	r->cluster[0] = 0;
	r->head = HEAD_OF(".explicitcluster\n");
	expect_fault(r, "", "the launch has no cluster size");
	r->head = PAIR;
	expect_fault(r, "mov.u32 %r3, sh; mapa.shared::cluster.u32 %r4, %r3, 2;",
		     "block 2 does not exist in a cluster of 2");
	expect_fault(r,
		     "mapa.shared::cluster.u32 %r4, %r1, 1; mov.u32 %r5, 0x3000000; "
		     "ld.shared::cluster.u32 %r6, [%r5];",
		     "is not in shared memory of a block of this cluster");
	expect_fault(r, "mov.u32 %r3, 8192; mapa.shared::cluster.u32 %r4, %r3, 1;",
		     "is not a valid address of shared memory of this cluster");
	expect_fault(r, "mapa.u64 %rd4, %rd1, 1;", "is not a valid generic address of shared memory of this cluster");
	expect_fault(r, "mov.u32 %r3, sh; mapa.shared::cluster.u32 %r4, %r3, 1; st.shared.u32 [%r4], 1;",
		     "outside shared memory");
	expect_fault(r, "mov.u32 %r3, sh; mapa.shared::cluster.u32 %r4, %r3, 1; st.shared::cluster.u32 [%r4+4096], 1;",
		     "outside shared memory");
	expect_fault(r, "mov.u32 %r3, sh; mapa.shared::cluster.u32 %r4, %r3, 1; st.shared::cluster.u32 [%r4+2], 1;",
		     "misaligned");
	expect_ok(r, "bra END;\nmapa.shared::cluster.u32 %r4, sh, 1; "
		  "mapa.shared::cluster.u32 %r4, %r4, %r5; mapa.u64 %rd3, %rd4, 1; "
		     "getctarank.u64 %r4, %rd3; getctarank.shared::cluster.u32 %r4, %r5; "
		     "barrier.cluster.arrive.relaxed; "
		     "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; "
		     "barrier.cluster.wait; fence.acq_rel.cluster; "
		     "fence.sc.sys; fence.mbarrier_init.release.cluster; fence.proxy.async; "
		     "fence.proxy.async.shared::cta; "
		     "atom.acq_rel.cluster.shared::cluster.add.u32 %r4, [%r5], 1; "
		     "red.shared::cluster.add.u32 [%r5], 1; "
		     "ld.acquire.cluster.shared::cluster.u32 %r4, [%r5]; "
		     "st.release.cluster.shared::cluster.u32 [%r5], %r4;\nEND:");
	static const char *const unknown[] = {"mapa.u32 %r3, %r4, 1;", "mapa.shared::cta.u32 %r3, %r4, 1;",
					      "mapa.shared::cluster.u32 %rd3, %r4, 1;",
					      "mapa.shared::cluster.b32 %r3, %r4, 1;", "getctarank.u64 %rd3, %rd4;",
					      "barrier.cluster.sync;",
					      "barrier.cluster.wait.release;", "barrier.cluster.arrive.acquire;",
					      "barrier.cluster.arrive 0;",
					      "fence.acq_rel;",
					      "cp.async.ca.shared::cluster.global [%r4], [%rd1], 4;"};
	for (u32 k = 0; k < ARRAY_LEN(unknown); k++)
		expect_fault(r, unknown[k], "decoding: line ");
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_mbarriers),
		cmocka_unit_test(test_bulk),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_begin),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_barrier),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

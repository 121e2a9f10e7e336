/* Copies to shared memory of other blocks of the cluster, to one or to several: what they bring, what orders them, what
 * is reported. */
#include "test_sim_rig.h"

#define MEET "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n"
#define RELAXED_MEET "barrier.cluster.arrive.relaxed; barrier.cluster.wait;\n"
#define LOAD "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
/* %r20: sh; %r3: this block's rank; %p1: thread 0; %p2: and in block 0; %p3: and in block 1; an mbarrier at sh, which
 * all know of */
#define BEGIN                                                                                                          \
	"cvt.u32.u64 %r20, %rd9; mov.u32 %r3, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0; "                             \
	"setp.eq.and.u32 %p2, %r3, 0, %p1; "                                                                           \
	"setp.eq.and.u32 %p3, %r3, 1, %p1; @%p1 mbarrier.init.shared::cta.b64 [sh], 1; "                               \
	"@%p1 fence.mbarrier_init.release.cluster;\n" MEET
#define EXPECT(n) "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [sh], " #n ";\n"
#define WAIT "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p7, [sh], 0;\n@!%p7 bra AGAIN;\n"
/* 1 KB from sh + 1024 to the block's part of b, by 64 threads */
#define BACK                                                                                                           \
	"shl.b32 %r10, %r1, 4; shl.b32 %r11, %r2, 10; add.s32 %r12, %r10, %r11; "                                      \
	"cvt.u64.u32 %rd3, %r12; add.s64 %rd5, %rd3, %rd2; "                                                           \
	"add.s32 %r13, %r20, %r10; ld.shared.v2.b64 {%rd6, %rd7}, [%r13+1024]; "                                       \
	"st.global.v2.b64 [%rd5], {%rd6, %rd7};\n"

static struct rig *cluster_of(u32 blocks, u32 timing)
{
	struct rig *r = rig_new();
	r->blocks = r->cluster[0] = blocks;
	r->cluster[1] = r->cluster[2] = 1;
	r->warps = 2;
	r->timing = (enum async_timing)timing;
	return r;
}

/* Each timing, several schedules; a run ends with one of these faults. NULL: there is no other. */
static void check_faults(u32 blocks, u32 warps, const char *body, const char *one, const char *other)
{
	for (u32 k = 0; k < 36; k++) {
		struct rig *r = cluster_of(blocks, k % 3);
		r->warps = warps;
		const char *e = run(r, body);
		if (!strstr(e, one) && !(other && strstr(e, other)))
			fail_msg("timing %u: want '%s' or '%s', got '%s'\n%s", k % 3, one, other ? other : one, e,
				 body);
		rig_free(r);
	}
}

static void check_fault(u32 blocks, const char *body, const char *text)
{
	check_faults(blocks, 2, body, text, NULL);
}

/* Block n finds in b + n KB what is in a + from[n] bytes; -1: b is as it was. */
static void check_copy(u32 blocks, const char *body, const int *from)
{
	for (u32 k = 0; k < 24; k++) {
		struct rig *r = cluster_of(blocks, k % 3);
		const char *e = run(r, body);
		if (*e)
			fail_msg("timing %u: %s\n%s", k % 3, e, body);
		for (u32 n = 0; n < blocks; n++)
			for (u32 at = 0; at < 1024; at++)
				if (r->b[n * 1024 + at] != (from[n] < 0 ? (char)0xEE : r->a[(u32)from[n] + at]))
					fail_msg("timing %u, block %u, byte %u\n%s", k % 3, n, at, body);
		rig_free(r);
	}
}

/* --- copies ------------------------------------------------------------------------------------------------------ */

static void test_several(void **state)
{
	(void)state;
	check_copy(4, BEGIN EXPECT(1024) "@%p2 " LOAD ".multicast::cluster [sh+1024], [%rd1], 1024, [sh], 15;\nAGAIN: "
		   WAIT BACK MEET,
		   (int[]){0, 0, 0, 0});
	/* by the addresses of a block that gets nothing, to others; with a policy, the mask in a register */
	check_copy(4, BEGIN "setp.eq.u32 %p4, %r3, 1; setp.eq.u32 %p5, %r3, 3; "
		   "or.pred %p4, %p4, %p5; @!%p4 bra ISSUE;\n" EXPECT(1024) "ISSUE: "
		   "mapa.shared::cluster.u32 %r4, %r20, 2; createpolicy.fractional.L2::evict_first.b64 %rd8, 1.0; "
		   "mov.u16 %rs1, 10;\n"
		   "@%p2 " LOAD ".multicast::cluster.L2::cache_hint [%r4+1024], [%rd1+64], 1024, [%r4], %rs1, %rd8;\n"
		   "@!%p4 bra END;\nAGAIN: " WAIT BACK
		   "END: " MEET, (int[]){-1, 64, -1, 64});
	/* halves from each of two */
	check_copy(2, BEGIN EXPECT(1024) "shl.b32 %r4, %r3, 9; cvt.u64.u32 %rd10, %r4; "
		   "add.s64 %rd10, %rd10, %rd1; add.s32 %r4, %r4, %r20;\n"
		   "@%p1 " LOAD ".multicast::cluster [%r4+1024], [%rd10+32], 512, [sh], 3;\nAGAIN: " WAIT BACK MEET,
		   (int[]){32, 32});
	/* without a cluster it is a cluster of one */
	for (u32 timing = 0; timing < 3; timing++) {
		struct rig *r = cluster_of(1, timing);
		r->cluster[0] = 0;
		r->blocks = 4;
		expect_ok(r, BEGIN EXPECT(1024) "@%p1 " LOAD ".multicast::cluster [sh+1024], [%rd1], 1024, [sh], 1;\n"
			  "AGAIN: " WAIT BACK);
		for (u32 n = 0; n < 4; n++)
			assert_memory_equal(r->b + n * 1024, r->a, 1024);
		expect_fault(r, BEGIN "@%p1 " LOAD ".multicast::cluster [sh+1024], [%rd1], 1024, [sh], 2;",
			     "names block 1 of a cluster of 1");
		rig_free(r);
	}
}

#define NEIGHBOUR "add.u32 %r4, %r3, 1; rem.u32 %r4, %r4, $; mapa.shared::cluster.u32 %r5, %r20, %r4;\n"

/* To the next block. */
static void test_neighbour(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	for (u32 size = 1; size <= 8; size *= 2) {
		int from[8];
		for (u32 n = 0; n < size; n++)
			from[n] = (int)((n + size - 1) % size * 1024);
		const char *number = arena_printf(&r->arena, "%u", size);
		/* what comes from global memory; from shared memory; from registers */
		check_copy(size, fill(r, BEGIN NEIGHBOUR EXPECT(1024) "shl.b32 %r6, %r3, 10; "
				      "cvt.u64.u32 %rd10, %r6; add.s64 %rd10, %rd10, %rd1;\n"
							       "@%p1 " LOAD " [%r5+1024], [%rd10], 1024, [%r5];\n"
							       "AGAIN: " WAIT BACK MEET,
				      number), from);
#define FILL "shl.b32 %r10, %r1, 4; shl.b32 %r11, %r2, 10; add.s32 %r12, %r10, %r11; "                                 \
	"cvt.u64.u32 %rd3, %r12; add.s64 %rd4, %rd3, %rd1; "                                                           \
	     "add.s32 %r13, %r20, %r10; ld.global.v2.b64 {%rd6, %rd7}, [%rd4]; "                                       \
	     "st.shared.v2.b64 [%r13+2048], {%rd6, %rd7};\n"
#define WITHIN "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
		check_copy(size,
			   fill(r,
				BEGIN NEIGHBOUR EXPECT(1024) FILL
				"fence.proxy.async.shared::cta; bar.sync 0;\n@%p1 " WITHIN
				" [%r5+1024], [sh+2048], 1024, [%r5];\nAGAIN: " WAIT BACK MEET,
				number),
			   from);
		check_copy(size,
			   fill(r,
				BEGIN NEIGHBOUR EXPECT(1024) FILL
				"sub.s32 %r6, %r13, %r20; add.s32 %r6, %r6, %r5;\n"
				"st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%r6+1024], {%rd6, "
				"%rd7}, [%r5];\nAGAIN: " WAIT BACK MEET,
				number),
			   from);
	}
	/* the source is not to be written, nor may its block end, before it is read */
	const char *source =
		fill(r,
		     BEGIN NEIGHBOUR EXPECT(1024) FILL "fence.proxy.async.shared::cta; bar.sync 0;\n@%p1 " WITHIN
						       " [%r5+1024], [sh+2048], 1024, [%r5];\n$",
		     "2", "bar.sync 0; st.shared.b32 [%r13+2048], 0;");
	r->blocks = r->cluster[0] = 2;
	r->warps = 2;
	expect_fault(r, source, "source of an asynchronous copy that was not waited for");
	check_fault(2, fill(r, BEGIN NEIGHBOUR EXPECT(1024) "@%p1 " WITHIN " [%r5+1024], [sh+2048], 1024, [%r5];\n",
			    "2"),
		    "nothing was written here before");
	check_fault(2, fill(r, BEGIN NEIGHBOUR EXPECT(1024) FILL "bar.sync 0;\n@%p1 " WITHIN
			    " [%r5+1024], [sh+2048], 1024, [%r5];\n", "2"),
		    "no fence.proxy.async");
	expect_fault(r, BEGIN "@!%p2 bra WAITS; st.shared.b64 [sh+2048], %rd1; "
		     "st.shared.b64 [sh+2056], %rd1; fence.proxy.async; "
			      "mapa.shared::cluster.u32 %r5, %r20, 1;\n" WITHIN " [%r5+1024], [sh+2048], 16, [%r5];\n"
			      "WAITS: setp.eq.u32 %p4, %r3, 0; @%p4 ret;" EXPECT(16) "AGAIN: " WAIT,
			      "ends before this copy has read its shared bytes");
	rig_free(r);
}

/* --- a ring of buffers ------------------------------------------------------------------------------------------- */

/* Eight rounds, two buffers of 512 bytes: each block's warp 0 sends its part to all blocks; warps 1 and 2 of each block
 * read the whole and tell all blocks that the buffer is free. */
enum { ROUNDS = 8, PART = 512 };
struct ring {
	const char *visible, *meet, *free, *waits, *arrivals, *mask, *behind; /* NULL: as it should be */
};

static const char *ring_text(struct rig *r, u32 size, struct ring n)
{
	const char *count = arena_printf(&r->arena, "%u", 2 * size),
		*all = arena_printf(&r->arena, "%u", (1 << size) - 1);
	const char *blocks = arena_printf(&r->arena, "%u", size), *part = arena_printf(&r->arena, "%u", PART / size);
	return fill(r,
		    "cvt.u32.u64 %r20, %rd9; mov.u32 %r3, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0; mov.u32 %r30, 0;\n"
		    "@%p1 mbarrier.init.shared::cta.b64 [sh], 1; @%p1 mbarrier.init.shared::cta.b64 [sh+8], 1;\n"
		    "@%p1 mbarrier.init.shared::cta.b64 [sh+64], $; @%p1 mbarrier.init.shared::cta.b64 [sh+72], $;\n"
		    "$\n$\n"
		    "setp.ge.u32 %p2, %r1, 32; @%p2 bra READ;\n"
		    "SEND: @!%p1 bra NEXT;\n"
		    "and.b32 %r4, %r30, 1; shl.b32 %r5, %r4, 3; add.s32 %r5, %r5, %r20; "
		    "shl.b32 %r6, %r4, 9; add.s32 %r6, %r6, %r20;\n"
		    "setp.lt.u32 %p3, %r30, 2; @%p3 bra GO; shr.u32 %r7, %r30, 1; "
		    "sub.u32 %r7, %r7, 1; and.b32 %r7, %r7, 1;\n"
		    "FREE: $\n"
		    "GO: mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 512;\n"
		    "mul.lo.u32 %r8, %r3, $; add.s32 %r6, %r6, %r8; shl.b32 %r9, %r30, 9; add.s32 %r9, %r9, %r8; "
		    "cvt.u64.u32 %rd3, %r9; add.s64 %rd3, "
		    "%rd3, %rd1;\n" LOAD ".multicast::cluster [%r6+1024], [%rd3], $, [%r5], $;\n"
		    "NEXT: bar.warp.sync -1; add.u32 %r30, %r30, 1; setp.lt.u32 %p3, %r30, 8; @%p3 bra SEND; bra END;\n"
		    "READ: sub.u32 %r10, %r1, 32; shl.b32 %r10, %r10, 3; "
		    "and.b32 %r11, %r1, 31; setp.lt.u32 %p4, %r11, $;\n"
		    "and.b32 %r4, %r30, 1; shl.b32 %r5, %r4, 3; add.s32 %r5, %r5, %r20; shl.b32 %r6, %r4, 9; "
		    "add.s32 %r6, %r6, %r20; shr.u32 %r7, %r30, 1; "
		    "and.b32 %r7, %r7, 1;\n"
		    "FULL: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p5, [%r5], %r7; @!%p5 bra FULL;\n"
		    "add.s32 %r12, %r6, %r10; ld.shared.b64 %rd4, [%r12+1024]; shl.b32 %r13, %r2, 12; "
		    "shl.b32 %r14, %r30, 9; add.s32 %r13, %r13, %r14; "
		    "add.s32 %r13, %r13, %r10; cvt.u64.u32 %rd5, %r13; add.s64 %rd5, %rd5, %rd2; "
		    "st.global.b64 [%rd5], %rd4; bar.warp.sync -1;\n"
		    "@%p4 mapa.shared::cluster.u32 %r15, %r5, %r11; $\n"
		    "add.u32 %r30, %r30, 1; setp.lt.u32 %p3, %r30, 8; @%p3 bra READ;\nEND: $",
		    n.arrivals ? n.arrivals : count, n.arrivals ? n.arrivals : count,
		    n.visible ? n.visible : "@%p1 fence.mbarrier_init.release.cluster;", n.meet ? n.meet : MEET,
		    n.waits ? n.waits
			    : "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p5, [%r5+64], %r7; @!%p5 bra "
			      "FREE;",
		    part, part, n.mask ? n.mask : all, blocks,
		    n.free ? n.free : "@%p4 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r15+64];",
		    n.behind ? n.behind : MEET);
}

static void ring_faults(struct ring n, const char *one, const char *other)
{
	struct rig *r = rig_new();
	check_faults(2, 3, ring_text(r, 2, n), one, other);
	rig_free(r);
}

static void test_ring(void **state)
{
	(void)state;
	static const struct ring good[] = {
		{0},
		{.meet = RELAXED_MEET}, /* the fence of the mbarriers releases them */
		{.visible = "@%p1 fence.proxy.async;"},
		{.visible = "", .meet = MEET "fence.proxy.async;\n"},
		{.free = "@%p4 mbarrier.arrive.shared::cluster.b64 _, [%r15+64];",
		 .waits = "mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r5+64], %r7; @!%p5 bra FREE;"},
		/* instead of a barrier at the end, who sends waits until all have read: then nobody sends it anything
		 * more */
		{.behind = "@!%p1 bra DONE;\nLAST: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
		 "%p5, [sh+64], 1; @!%p5 bra LAST;\n"
			   "MORE: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p5, [sh+72], 1; "
			   "@!%p5 bra MORE;\nDONE:"},
	};
	for (u32 size = 1; size <= 4; size *= 2)
		for (u32 k = 0; k < 12 * ARRAY_LEN(good); k++) {
			struct rig *r = cluster_of(size, k % 3);
			r->warps = 3;
			expect_ok(r, ring_text(r, size, good[k / 12]));
			for (u32 n = 0; n < size; n++)
				assert_memory_equal(r->b + n * 4096, r->a, ROUNDS * PART);
			rig_free(r);
		}
}

static void test_ring_faults(void **state)
{
	(void)state;
	/* nobody tells the other block that its buffers are free; one warp does not; without a release, or an
	 * acquire */
	static const char race[] = "race: asynchronous copy of shared bytes 0x",
		late[] = "asynchronous copy not waited for";
	const char *own = "setp.eq.u32 %p6, %r11, %r3; @%p6 mbarrier.arrive.shared::cta.b64 _, [%r5+64];";
	ring_faults((struct ring){.free = own, .arrivals = "2"}, race, late);
	ring_faults((struct ring){.free = "setp.lt.and.u32 %p6, %r1, 64, %p4; "
				  "@%p6 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r15+64];",
				  .arrivals = "2"}, race, late);
	ring_faults((struct ring){.free = "@%p4 mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r15+64];"},
		    race, late);
	ring_faults((struct ring){.waits = "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p5, "
				  "[%r5+64], %r7; @!%p5 bra FREE;"}, race,
		    late);
	ring_faults((struct ring){.waits = ""}, ": asynchronous copy of shared bytes 0x",
		    "more arrivals than expected");
	/* mbarriers that the others, or the async proxy, do not know of */
	ring_faults((struct ring){.visible = ""}, "may not be visible to the async proxy yet", NULL);
	ring_faults((struct ring){.visible = "", .meet = RELAXED_MEET}, "race: the mbarrier at shared address 0x",
		    "may not be visible to the async proxy yet");
	ring_faults((struct ring){.meet = "bar.sync 0;\n"}, "which may not have begun", NULL);
	/* a block ends before the others have told it, or sent it something */
	ring_faults((struct ring){.behind = "@!%p1 bra DONE;\n"
				  "LAST: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p5, [sh+64], 1; "
					    "@!%p5 bra LAST;\nDONE:"},
		    "may end before its shared memory is accessed by block", "which has ended");
	ring_faults((struct ring){.behind = ""}, "may end before its shared memory is accessed by block",
		    "which has ended");
	ring_faults((struct ring){.mask = "7"}, "the mask 0x7 names block 2 of a cluster of 2", NULL);
	ring_faults((struct ring){.mask = "0"}, "the mask of blocks is 0", NULL);
}

/* --- what orders a copy with others' accesses -------------------------------------------------------------------- */

/* Block 0 sends to both what block 1 has written, read, or has had written by others. */
static void test_proxies(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	static const char body[] = BEGIN "add.u32 %r4, %r1, 0; shl.b32 %r5, %r1, 4; add.s32 %r5, %r5, %r20; "
		"mapa.shared::cluster.u32 %r6, %r5, 1;\n"
					 EXPECT(1024) "setp.ne.u32 %p4, %r3, $; @%p4 bra NONE;\n$\nNONE: $\n$\n"
					 "@%p2 " LOAD ".multicast::cluster [sh+1024], [%rd1], 1024, [sh], 3;\nAGAIN: "
					 WAIT BACK MEET;
	static const char write[] = "st.shared.v2.b64 [%r5+1024], {%rd1, %rd2};",
		visit[] = "st.shared::cluster.v2.b64 [%r6+1024], {%rd1, %rd2};";
	static const char *const fences[] = {"fence.proxy.async;", "fence.proxy.async.shared::cta;",
					     "fence.proxy.async.shared::cluster;"};
	/* by those that write before the barrier, or by the one that copies behind it */
	for (u32 k = 0; k < ARRAY_LEN(fences); k++) {
		check_copy(2, fill(r, body, "1", write, fences[k], MEET), (int[]){0, 0});
		check_copy(2, fill(r, body, "1", write, MEET, fences[k]), (int[]){0, 0});
		check_copy(2, fill(r, body, "0", visit, fences[k], MEET), (int[]){0, 0});
		check_copy(2, fill(r, body, "0", visit, MEET, fences[k]), (int[]){0, 0});
	}
	check_fault(2, fill(r, body, "1", write, MEET, ""),
		    "no fence.proxy.async between the generic and the async proxy: asynchronous copy of shared "
							    "bytes 0x400–0x403 of block (1, 0, 0); "
							    "the other write is by its warp 0");
	check_fault(2, fill(r, body, "1", write, MEET, "fence.proxy.async.global;"), "no fence.proxy.async");
	/* of one warp only */
	check_fault(2, fill(r, body, "1", write, "@%p1 fence.proxy.async;", MEET), "no fence.proxy.async");
	check_fault(2, fill(r, body, "0", visit, MEET, ""), "write, without a fence.proxy.async in between,");
	static const char into[] = "mapa.shared::cluster.u32 %r6, %r5, 0; "
		"st.shared::cluster.v2.b64 [%r6+1024], {%rd1, %rd2};";
	check_copy(2, fill(r, body, "1", into, "fence.proxy.async;", MEET), (int[]){0, 0});
	check_copy(2, fill(r, body, "1", into, MEET, "fence.proxy.async;"), (int[]){0, 0});
	check_fault(2, fill(r, body, "1", into, MEET, ""), "write, without a fence.proxy.async in between,");
	/* the thread that copies has itself written there: that takes no barrier */
	static const char self[] = "@%p2 st.shared::cluster.v2.b64 [%r6+1024], {%rd1, %rd2};";
	check_copy(2, fill(r, body, "0", self, "fence.proxy.async;", ""), (int[]){0, 0});
	check_fault(2, fill(r, body, "0", self, "", ""), "write, without a fence.proxy.async in between,");
	check_faults(2, 2, fill(r, body, "1", write, "fence.proxy.async;", ""), "race: ",
		     "asynchronous copy not waited for");
	check_faults(2, 2, fill(r, body, "0", visit, "fence.proxy.async;", ""), "race: ",
		     "asynchronous copy not waited for");
	/* an old value is read: that needs the barrier, but no fence */
	static const char read[] = BEGIN "shl.b32 %r5, %r1, 4; add.s32 %r5, %r5, %r20;\n"
		EXPECT(1024) "st.shared.v2.b64 [%r5+1024], {%rd1, %rd2}; "
					 "fence.proxy.async;\n" MEET "ld.shared.b64 %rd10, [%r5+1024];\n$\n@%p2 " LOAD
					 ".multicast::cluster [sh+1024], [%rd1], 1024, [sh], 3;\nAGAIN: "
					 WAIT BACK MEET;
	check_copy(2, fill(r, read, MEET), (int[]){0, 0});
	for (u32 warps = 1; warps <= 2; warps++) /* the one that reads may have the number of the one that copies */
		check_faults(2, warps, fill(r, read, "bar.sync 0;"), "race: ", "asynchronous copy not waited for");
	rig_free(r);
}

/* Both warps of block 1 read what block 0 overwrites, the second perhaps much later, and says that it has; the first
 * does not. */
static void test_readers(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	static const char body[] = BEGIN
		"@%p1 mbarrier.init.shared::cta.b64 [sh+8], $; shl.b32 %r5, %r1, 4; add.s32 %r5, %r5, %r20; "
		"st.shared.v2.b64 [%r5+1024], {%rd1, %rd2};\n"
		"fence.proxy.async; mapa.shared::cluster.u32 %r6, %r20, 0;\n"
		MEET EXPECT(1024) "setp.eq.u32 %p4, %r3, 0; @%p4 bra SEND;\n"
		"setp.eq.u32 %p5, %r1, 32; @!%p5 bra READ; fence.acq_rel.cta; fence.acq_rel.cta;\n"
		"READ: ld.shared.b64 %rd10, [sh+1024]; bar.warp.sync -1;\n"
		"@%p5 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6+8];\n$\n"
		"SEND: @!%p2 bra AGAIN;\nFREE: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
		"%p7, [sh+8], 0;\n@!%p7 bra FREE;\n" LOAD
		".multicast::cluster [sh+1024], [%rd1], 1024, [sh], 3;\nAGAIN: " WAIT BACK MEET;
	check_copy(2, fill(r, body, "2", "@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6+8];"),
		   (int[]){0, 0});
	check_faults(2, 2, fill(r, body, "1", ""), "race: asynchronous copy of shared bytes 0x",
		     "asynchronous copy not waited for");
	rig_free(r);
}

/* What has come belongs to those who waited for it, in whatever block. */
static void test_unwaited(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	static const char body[] = BEGIN EXPECT(1024) "@%p2 " LOAD
		".multicast::cluster [sh+1024], [%rd1], 1024, [sh], 3;\n$" BACK MEET;
	check_copy(2, fill(r, body, "AGAIN: " WAIT), (int[]){0, 0});
	check_faults(2, 2, fill(r, body, ""), "asynchronous copy not waited for", "nothing was written here before");
	check_fault(2, fill(r, body, MEET), "asynchronous copy not waited for");
	check_fault(2, fill(r, body, "AGAIN: mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p7, [sh], 0;\n"
			    "@!%p7 bra AGAIN;\n"),
		    "asynchronous copy not waited for");
	/* block 2 reads what block 0 sent to block 1 */
	static const char third[] =
		BEGIN "setp.eq.u32 %p5, %r3, 1; setp.eq.u32 %p6, %r3, 2; "
			"mapa.shared::cluster.u32 %r5, %r20, 1; @!%p5 bra SEND;\n" EXPECT(1024)
		"SEND: @%p2 " LOAD ".multicast::cluster [sh+1024], [%rd1], 1024, [sh], 2;\n@!%p5 bra NEXT;\n"
		"AGAIN: $\nNEXT: $\n@!%p6 bra END;\n"
		"shl.b32 %r10, %r1, 4; shl.b32 %r11, %r2, 10; add.s32 %r12, %r10, %r11; "
		"cvt.u64.u32 %rd3, %r12; add.s64 %rd5, %rd3, %rd2; "
		"add.s32 %r13, %r5, %r10; ld.shared::cluster.v2.b64 {%rd6, %rd7}, [%r13+1024]; "
		"st.global.v2.b64 [%rd5], {%rd6, %rd7};\nEND: " MEET;
	check_copy(4, fill(r, third, WAIT, MEET), (int[]){-1, -1, 0, -1});
	/* a race, of a copy on its way, or of nothing */
	check_fault(4, fill(r, third, WAIT, ""), ": read of shared bytes 0x");
	check_faults(4, 2, fill(r, third, "", MEET), "race: read of shared bytes", "asynchronous copy not waited for");
	rig_free(r);
}

/* Blocks that end too early; those that know of all that comes may end when they want. */
static void test_end(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	static const char body[] = BEGIN EXPECT(1024) "@%p2 " LOAD
		".multicast::cluster [sh+1024], [%rd1], 1024, [sh], 3;\n"
					 "setp.eq.u32 %p4, %r3, $; @%p4 ret;\nAGAIN: " WAIT BACK;
	check_copy(2, fill(r, body, "2"), (int[]){0, 0});
	for (u32 k = 0; k < 60; k++) {
		struct rig *one = cluster_of(2, k % 3);
		/* while it flies; when it has come, but nobody waited; before it is sent */
		const char *e = run(one, fill(r, body, "1"));
		const char *const texts[] = {
			"block (1, 0, 0) ends while this copy to its "
			"shared bytes 0x400–0x7ff is in flight",
			"the block may end before the data that block (0, 0, 0), warp 0, sends it arrives "
			"at the mbarrier at shared address 0x0",
			"access to shared memory of block (1, 0, 0), which has ended"};
		if (!strstr(e, texts[0]) && !strstr(e, texts[1]) && !strstr(e, texts[2]))
			fail_msg("%s", *e ? e : "no fault");
		if (k % 3 == 0 && strstr(e, texts[1]))
			fail_msg("late copies have not come: %s", e);
		rig_free(one);
	}
	rig_free(r);
}

/* --- places and counts ------------------------------------------------------------------------------------------- */

static void test_places(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	static const char body[] = BEGIN "mapa.shared::cluster.u32 %r5, %r20, 1; mov.u32 %r6, 0x5000000;\n@%p2 $;\n"
		MEET;
#define TENSOR "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes"
	check_fault(2, fill(r, body, LOAD " [%r5+1024], [%rd1], 1024, [sh]"),
		    "copies to block (1, 0, 0), but the mbarrier is in block (0, 0, 0): they must be the same");
	check_fault(2, fill(r, body, LOAD " [%r6], [%rd1], 1024, [%r5]"),
		    "address 0x5000000 is not in shared memory of a block of this cluster");
	check_fault(2, fill(r, body, LOAD " [%r5], [%rd1], 1024, [%r6]"), "mbarrier outside shared memory");
	check_fault(2, fill(r, body, LOAD " [%r5+3584], [%rd1], 1024, [%r5]"),
		    "copy of 1024 bytes outside shared memory");
	check_fault(2, fill(r, body, LOAD " [%r5+1032], [%rd1], 1024, [%r5]"), "misaligned copy");
	check_fault(2, fill(r, body, LOAD " [%r5+1024], [%rd1], 1024, [%r5+8]"),
		    "the mbarrier at shared address 0x8 was not initialised");
	check_fault(2, fill(r, body, LOAD " [%r5], [%rd1], 1024, [%r5]"),
		    "the bytes are an mbarrier: asynchronous copy of shared bytes");
	check_fault(2, fill(r, body, LOAD ".multicast::cluster [sh+1024], [%rd1], 1024, [sh], 4"),
		    "the mask 0x4 names block 2 of a cluster of 2");
	check_fault(2, fill(r, body, LOAD ".multicast::cluster [sh+1024], [%rd1], 1024, [sh], 32769"),
		    "the mask 0x8001 names block 15 of a cluster of 2");
	check_fault(2, fill(r, body, LOAD ".multicast::cluster [sh+1024], [%rd1], 1024, [sh], 0"),
		    "the mask of blocks is 0");
	check_fault(2, fill(r, body, "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
			    "[%r5+1024], [%rd1], 1024, [sh]"),
		    "but .shared::cta is that of the warp's block");
	check_fault(2, fill(r, body, "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r5+1024], "
			    "%rd1, [sh]"), "they must be the same");
	check_fault(2, fill(r, body, "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
			    "[sh+1024], [%r5+2048], 16, [sh]"),
		    "but .shared::cta is that of the warp's block");
	/* the other block has not made its mbarrier known to the async proxy */
	check_fault(2, "cvt.u32.u64 %r20, %rd9; mov.u32 %r3, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0; "
		    "setp.eq.and.u32 %p2, %r3, 0, %p1; "
		       "mapa.shared::cluster.u32 %r5, %r20, 1; @%p1 mbarrier.init.shared::cta.b64 [sh], 1; "
		       "@%p2 fence.mbarrier_init.release.cluster;\n"
		    MEET "@%p2 " LOAD " [%r5+1024], [%rd1], 1024, [%r5];\n" MEET,
		    "the initialisation of the mbarrier at shared address 0x0 may not be visible to the async proxy");
	/* what others may not touch, either */
	check_fault(2, BEGIN "mapa.shared::cluster.u32 %r5, %r20, 1; @!%p3 bra NEXT; "
		    "st.shared.v2.b64 [sh+1024], {%rd1, %rd2}; fence.proxy.async; "
			     "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [sh+1024], 16; "
			     "cp.async.bulk.commit_group;\nNEXT: " MEET
			     "@%p2 st.shared::cluster.b32 [%r5+1024], 1;\n" MEET "cp.async.bulk.wait_group 0;",
		    "source of an asynchronous copy that was not waited for: write of shared bytes "
		    "0x400–0x403 of block (1, 0, 0)");
	check_fault(2, fill(r, body, "st.shared::cluster.b32 [%r5], 1"),
		    "the bytes are an mbarrier: write of shared bytes 0x0–0x3 of block (1, 0, 0)");
	rig_free(r);
}

static void test_counts(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	/* block 1 expects the bytes only when they may have come; its arrival is what the phase waits for */
	static const char body[] = BEGIN "mapa.shared::cluster.u32 %r5, %r20, 1;\n@%p2 " LOAD
		" [%r5+1024], [%rd1], 1024, [%r5];\n$" MEET
					 "setp.ne.u32 %p4, %r3, 1; @%p4 bra END;\n$AGAIN: " WAIT BACK "END: " MEET;
	check_copy(2, fill(r, body, "", EXPECT(1024)), (int[]){-1, 0});
	check_copy(2, fill(r, body, "", "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [sh], 1024; "
			   "@%p1 mbarrier.arrive.shared::cta.b64 _, [sh];\n"),
		   (int[]){-1, 0});
	/* the other one may count, too */
	check_copy(2, fill(r, body, "@%p2 mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r5], "
			   "1024;\n", ""), (int[]){-1, 0});
	check_fault(2, fill(r, body, "", EXPECT(512)), "-512 bytes of transactions pending");
	check_fault(2, fill(r, body, "", EXPECT(2048)), "1024 bytes of transactions pending");
	check_fault(2, fill(r, body, "@%p2 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r5], 1048575;\n",
			    ""),
		    "would become -1049599, beyond ±1048575");
	check_fault(2, fill(r, body, "@%p2 mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r5], 1048575;\n",
			    "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [sh], 1048575;\n"), "beyond ±1048575");
	check_fault(2, fill(r, body, MEET, "@%p1 mbarrier.inval.shared::cta.b64 [sh]; bar.sync 0;\n"),
		    "this mbarrier has ");
	rig_free(r);
}

/* --- products ---------------------------------------------------------------------------------------------------- */

/* Twice block 0 brings both blocks the same A (64 × 16) and B (16 × 8) by warp 4; before the second time block 1's
 * warpgroup says that it has read them. */
static void test_products(void **state)
{
	(void)state;
	static const char body[] =
		"cvt.u32.u64 %r20, %rd9; mov.u32 %r3, %cluster_ctarank; "
		"setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 128;\n"
		"@%p1 mbarrier.init.shared::cta.b64 [sh], 1; @%p1 mbarrier.init.shared::cta.b64 [sh+8], 2; "
		"@%p1 fence.mbarrier_init.release.cluster;\n" MEET
		"setp.ge.u32 %p3, %r1, 128; @%p3 bra SENDER;\n"
		"mov.u32 %r30, 0; mov.b32 %f0, 0; mov.b32 %f1, 0; mov.b32 %f2, 0; mov.b32 %f3, 0; "
		"mapa.shared::cluster.u32 %r5, %r20, 0;\n"
		"add.s32 %r6, %r20, 1024; shr.u32 %r6, %r6, 4; cvt.u64.u32 %rd3, %r6; "
		"or.b64 %rd3, %rd3, 0x1000080000; add.s64 %rd4, %rd3, 128;\n"
		"ROUND: mbarrier.try_wait.parity.shared::cta.b64 %p4, [sh], %r30; @!%p4 bra ROUND;\n"
		"wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, "
		"%f3}, %rd3, %rd4, 1, 1, 1, 0, 0; "
		"wgmma.commit_group.sync.aligned;\n$\nbar.sync 1, 128;\n"
		"@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5+8];\n$\n"
		"add.u32 %r30, %r30, 1; setp.lt.u32 %p5, %r30, 2; @%p5 bra ROUND;\n"
		"shl.b32 %r7, %r1, 4; shl.b32 %r8, %r2, 11; add.s32 %r7, %r7, %r8; "
		"cvt.u64.u32 %rd5, %r7; add.s64 %rd5, %rd5, %rd2; "
		"st.global.v4.f32 [%rd5], {%f0, %f1, %f2, %f3}; bra END;\n"
		"SENDER: @!%p2 bra END;\nmov.u32 %r30, 0;\n"
		"SEND: mbarrier.arrive.expect_tx.shared::cta.b64 _, [sh], 2304; "
		"setp.ne.u32 %p4, %r3, 0; @%p4 bra NEXT;\n" LOAD
		".multicast::cluster [sh+1024], [%rd1], 2304, [sh], 3; add.s64 %rd1, %rd1, 4096;\n"
		"NEXT: setp.eq.u32 %p5, %r30, 1; @%p5 bra END; mov.u32 %r30, 1;\n"
		"OWN: mbarrier.try_wait.parity.shared::cta.b64 %p4, [sh], 0; @!%p4 bra OWN; "
		"setp.ne.u32 %p4, %r3, 0; @%p4 bra SEND;\n"
		"FREE: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, [sh+8], 0; "
		"@!%p4 bra FREE; bra SEND;\nEND: " MEET;
	static const char wait[] = "wgmma.wait_group.sync.aligned 0;";
	for (u32 k = 0; k < 60; k++) {
		struct rig *r = cluster_of(2, k % 3);
		bool good = k < 24;
		r->warps = 5;
		for (u32 n = 0; n < SIZE; n += 2) /* bf16 of 1 and more, below 2 */
			memcpy(r->a + n, &(u16){(u16)(0x3F80 | (random_bits() & 0x7F))}, 2);
		const char *e = run(r, good ? fill(r, body, wait, "") : fill(r, body, "", wait));
		if (good) {
			assert_string_equal(e, "");
			assert_memory_equal(r->b, r->b + 2048, 2048); /* both had the same */
			for (u32 n = 0; n < 512; n++) {
				float v;
				memcpy(&v, r->b + n * 4, 4);
				assert_true(v >= 32 && v < 128); /* 32 products of two numbers */
			}
		} else if (!strstr(e, "race: asynchronous copy of shared bytes") && !strstr(e, "not waited for") &&
			   !strstr(e, "changed before")) {
			fail_msg("a copy overwrites what a product reads: '%s'", e);
		}
		rig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several),     cmocka_unit_test(test_neighbour), cmocka_unit_test(test_ring),
		cmocka_unit_test(test_ring_faults), cmocka_unit_test(test_proxies),   cmocka_unit_test(test_readers),
		cmocka_unit_test(test_unwaited),    cmocka_unit_test(test_end),       cmocka_unit_test(test_places),
		cmocka_unit_test(test_counts),      cmocka_unit_test(test_products),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* mbarriers against a plain model of their counters, and what goes wrong with them. */
#include "test_sim_rig.h"

#define INIT(at, count) "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared::cta.b64 [sh+" #at "], " #count            \
	"; bar.sync 0;\n"
#define LEADER "setp.eq.u32 %p1, %r1, 0;\n"
#define AGAIN(wait) "AGAIN: " wait "\n@!%p2 bra AGAIN;\n"

static const char *report(struct rig *r, const char *body)
{
	r->timing = (enum async_timing)(random_bits() % 3);
	return run(r, body);
}

static void check_fault(u32 warps, const char *body, const char *text)
{
	struct rig *r = rig_new();
	r->warps = warps;
	const char *e = report(r, body);
	if (!strstr(e, text))
		fail_msg("want '%s', got '%s'\n%s", text, e, body);
	rig_free(r);
}

static void check_ok(u32 warps, const char *body)
{
	struct rig *r = rig_new();
	r->warps = warps;
	const char *e = report(r, body);
	if (*e)
		fail_msg("%s\n%s", e, body);
	rig_free(r);
}

/* --- counters ---------------------------------------------------------------------------------------------------- */

struct model {
	u32 expected, pending, phase;
	i64 tx;
};

static void model_settle(struct model *m)
{
	if (m->pending || m->tx)
		return;
	m->phase++;
	m->pending = m->expected;
}

/* One random operation that is allowed, by lane 0; what it and a look at the phase return goes to b. */
static void random_operation(struct strbuf *s, struct model *m, u32 slot, u64 *want)
{
	static const char *const sems[] = {"", ".release.cta", ".release.cluster", ".relaxed.cta"};
	static const char *const spaces[] = {"", ".shared", ".shared::cta"};
	const char *sem = sems[random_bits() % 4], *space = spaces[random_bits() % 3],
		*base = *space ? "sh+64" : "%rd8+64";
	u32 n = (u32)(random_bits() % 3) + 1, bytes = (u32)(random_bits() % 100) * 16;
	u32 pending = m->pending, what = pending ? (u32)(random_bits() % 7) : 5 + (u32)(random_bits() & 1);
	bool drops = random_bits() % 8 == 0 && m->expected > 6;
	const char *op = drops ? "arrive_drop" : "arrive";
	want[0] = pending;
	switch (what) {
	case 0:
		n = 1;
		sb_printf(s, "mbarrier.%s%s%s.b64 %%rd10, [%s];\n", op, sem, space, base);
		break;
	case 1:
	case 2:
		n = MIN(n, pending);
		sb_printf(s, "mbarrier.%s%s%s.b64 %%rd10, [%s], %u;\n", op, sem, space, base, n);
		break;
	case 3:
		if (n >= pending)
			n = 0;
		else
			sb_printf(s, "mbarrier.%s.noComplete%s.b64 %%rd10, [%s], %u;\n", op, space, base, n);
		break;
	case 4:
		n = 1;
		m->tx += bytes;
		sb_printf(s, "mov.b32 %%r9, %u;\nmbarrier.%s.expect_tx%s%s.b64 %%rd10, [%s], %%r9;\n", bytes, op, sem,
			  space, base);
		break;
	case 5:
		n = 0;
		m->tx += bytes;
		sb_printf(s, "mbarrier.expect_tx%s%s.b64 [%s], %u;\n", random_bits() & 1 ? ".relaxed.cta" : "", space,
			  base, bytes);
		break;
	default:
		n = 0;
		bytes = random_bits() & 1 && m->tx > 0 ? (u32)m->tx : bytes;
		m->tx -= bytes;
		sb_printf(s, "mbarrier.complete_tx%s%s.b64 [%s], %u;\n", random_bits() & 1 ? ".relaxed.cluster" : "",
			  space, base, bytes);
		break;
	}
	if (drops && n)
		m->expected -= n;
	m->pending -= n;
	u32 before = m->phase;
	model_settle(m);
	want[0] = n ? pending : 0;
	want[1] = n && m->phase != before; /* has the phase of the token completed? */
	want[2] = (m->phase & 1) == 1;
	want[3] = (m->phase & 1) == 0;
	if (n)
		sb_puts(s, "mbarrier.pending_count.b64 %r10, %rd10; mbarrier.test_wait.shared.b64 %p2, [sh+64], "
			"%rd10; selp.b32 %r11, 1, 0, %p2;\n");
	else
		sb_puts(s, "mov.b32 %r10, 0; mov.b32 %r11, 0;\n");
	sb_printf(s,
		  "mbarrier.test_wait.parity.shared::cta.b64 %%p3, [sh+64], 0; selp.b32 %%r12, 1, 0, %%p3;\n"
		  "mbarrier.try_wait.parity.acquire.cta.b64 %%p3, [%%rd8+64], 1, 100; selp.b32 %%r13, 1, 0, %%p3;\n"
		  "st.global.v4.b32 [%%rd2+%u], {%%r10, %%r11, %%r12, %%r13};\n",
		  slot * 16);
}

static void test_counters(void **state)
{
	(void)state;
	enum { OPERATIONS = 100 };
	for (u32 round = 0; round < 60; round++) {
		struct rig *r = rig_new();
		struct strbuf s = {.arena = &r->arena};
		u64 want[OPERATIONS][4];
		u32 expected = 1 + (u32)(random_bits() % 20);
		struct model m = {.expected = expected, .pending = expected};
		sb_printf(&s, "cvta.shared.u64 %%rd8, %%rd9;\nsetp.ne.u32 %%p1, %%r1, 0;\n@%%p1 ret;\n"
			  "mbarrier.init.shared.b64 [sh+64], %u;\n",
			  expected);
		for (u32 n = 0; n < OPERATIONS; n++)
			random_operation(&s, &m, n, want[n]);
		if (m.tx)
			sb_printf(&s, "mbarrier.%s_tx.b64 [%%rd8+64], %u;\n", m.tx > 0 ? "complete" : "expect",
				  (u32)(m.tx > 0 ? m.tx : -m.tx));
		const char *e = report(r, s.at);
		if (*e)
			fail_msg("%s\n%s", e, s.at);
		for (u32 n = 0; n < OPERATIONS; n++)
			for (u32 k = 0; k < 4; k++) {
				u32 got;
				memcpy(&got, r->b + n * 16 + k * 4, 4);
				if (got != want[n][k])
					fail_msg("round %u, operation %u, value %u: %u, not %u\n%s", round, n, k, got,
						 (u32)want[n][k], s.at);
			}
		rig_free(r);
	}
}

/* --- order ------------------------------------------------------------------------------------------------------- */

/* Warp 0 writes 32 words, the others read them, some rounds long, in a ring of two: what a wait and an arrival
 * order. */
#define PING(full, empty, arrive, wait)                                                                                \
	"setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [sh], " full "; "                                      \
	"@%p1 mbarrier.init.shared.b64 [sh+8], " full ";\n"                                                            \
	"@%p1 mbarrier.init.shared.b64 [sh+16], " empty "; @%p1 mbarrier.init.shared.b64 [sh+24], " empty              \
	"; bar.sync 0;\n"                                                                                              \
	"and.b32 %r3, %r1, 31; shl.b32 %r3, %r3, 2; mov.b32 %r4, 0; "                                                  \
	"setp.lt.u32 %p4, %r1, 32; cvt.u32.u64 %r20, %rd9;\n"                                                          \
	"ROUND: and.b32 %r5, %r4, 1; shr.u32 %r6, %r4, 1; and.b32 %r6, %r6, 1; "                                       \
	"shl.b32 %r7, %r5, 3; add.s32 %r7, %r7, %r20;\n"                                                               \
	"shl.b32 %r8, %r5, 7; add.s32 %r8, %r8, %r20; add.s32 %r8, %r8, %r3;\n@!%p4 bra CONSUME;\n"                    \
	"xor.b32 %r9, %r6, 1;\nW1: " wait " %p2, [%r7+16], %r9; @!%p2 bra W1;\n"                                       \
	"add.s32 %r10, %r4, %r3; st.shared.b32 [%r8+512], %r10; " arrive " _, [%r7]; bra NEXT;\n"                      \
	"CONSUME:\nW2: " wait " %p2, [%r7], %r6; @!%p2 bra W2;\n"                                                      \
	"ld.shared.b32 %r11, [%r8+512]; mul.wide.u32 %rd5, %r1, 4; add.s64 %rd5, %rd5, %rd2; shl.b32 %r12, %r4, 9;\n"  \
	"cvt.u64.u32 %rd6, %r12; add.s64 %rd5, %rd5, %rd6; st.global.b32 [%rd5], %r11; " arrive " _, [%r7+16];\n"      \
	"NEXT: add.s32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 8; @%p3 bra ROUND;\n"

static void test_ring(void **state)
{
	(void)state;
	static const char *const waits[] = {"mbarrier.try_wait.parity.shared::cta.b64",
					    "mbarrier.test_wait.parity.acquire.cta.shared.b64"};
	for (u32 n = 0; n < 20; n++) {
		struct rig *r = rig_new();
		r->warps = 4;
		const char *text = n & 1 ? PING("32", "96", "mbarrier.arrive.shared.b64", "WAIT") :
					   PING("32", "96", "mbarrier.arrive.release.cta.shared::cta.b64", "WAIT");
		struct strbuf s = {.arena = &r->arena};
		for (const char *at; (at = strstr(text, "WAIT")); text = at + 4) {
			sb_add(&s, text, (size_t)(at - text));
			sb_puts(&s, waits[n / 2 % 2]);
		}
		sb_puts(&s, text);
		const char *e = report(r, s.at);
		if (*e)
			fail_msg("%s\n%s", e, s.at);
		for (u32 round = 0; round < 8; round++)
			for (u32 t = 32; t < 128; t++) {
				u32 got;
				memcpy(&got, r->b + round * 512 + t * 4, 4);
				assert_int_equal(got, round + t % 32 * 4);
			}
		rig_free(r);
	}
}

#define WAIT "mbarrier.try_wait.parity.shared.b64"

static void test_order(void **state)
{
	(void)state;
	check_fault(4, PING("32", "96", "mbarrier.arrive.relaxed.cta.shared.b64", WAIT), "race");
	check_fault(4, PING("32", "96", "mbarrier.arrive.shared.b64",
			    "mbarrier.try_wait.parity.relaxed.cta.shared.b64"), "race");
	check_fault(4, PING("33", "96", "mbarrier.arrive.shared.b64", WAIT), "deadlock");
	check_fault(4, PING("32", "97", "mbarrier.arrive.shared.b64", WAIT), "deadlock");
	/* only lane 0 arrives: fewer are enough, and order all */
	check_ok(2, INIT(0, 1) "setp.lt.u32 %p4, %r1, 32; mov.b32 %r3, 7; @%p4 st.shared.b32 [sh+64], %r3;\n" LEADER
			       "@%p1 mbarrier.arrive.shared.b64 _, [sh]; @%p4 bra END;\n" AGAIN(WAIT " %p2, [sh], 0;")
			       "ld.shared.b32 %r4, [sh+64]; END:");
	/* a token */
	check_ok(2, INIT(0, 64) "setp.lt.u32 %p4, %r1, 32; mov.b32 %r3, 7; @%p4 st.shared.b32 [sh+64], %r3;\n"
				"mbarrier.arrive.shared.b64 %rd10, [sh];\n"
				AGAIN("mbarrier.try_wait.shared.b64 %p2, [sh], %rd10;")
				"ld.shared.b32 %r4, [sh+64];");
	/* lanes of one warp that wait for each other */
	check_ok(1, INIT(0, 1) LEADER "@!%p1 bra LATER;\n" AGAIN(WAIT " %p2, [sh], 0;") "bra END;\n"
		 "LATER: setp.eq.u32 %p3, %r1, 9; "
				      "@%p3 mbarrier.arrive.shared.b64 _, [sh]; END:");
	/* a wait that gives up, for another to go on */
	check_ok(2, INIT(0, 1) "setp.lt.u32 %p4, %r1, 32; @!%p4 bra OTHER;\n"
		 "mbarrier.test_wait.parity.shared.b64 %p2, [sh], 0; bar.sync 1;\n"
			       "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.arrive.shared.b64 _, [sh]; ret;\n"
			       "OTHER: bar.sync 1;\n" AGAIN(WAIT " %p2, [sh], 0;"));
}

/* --- reports ----------------------------------------------------------------------------------------------------- */

static void test_uses(void **state)
{
	(void)state;
	check_fault(1, "mbarrier.arrive.shared.b64 _, [sh];", "was not initialised");
	check_fault(1, WAIT " %p2, [sh], 0;", "was not initialised");
	check_fault(1, INIT(0, 1) LEADER "@%p1 mbarrier.inval.shared.b64 [sh]; "
		    "@%p1 mbarrier.arrive.shared.b64 _, [sh];", "was not initialised");
	check_fault(1, INIT(0, 1) LEADER "@%p1 mbarrier.init.shared.b64 [sh], 1;", "already");
	check_fault(1, INIT(4, 1), "misaligned mbarrier");
	check_fault(1, INIT(4096, 1), "outside shared memory");
	check_fault(1, INIT(0, 0), "cannot expect 0");
	check_fault(1, INIT(0, 1048576), "cannot expect 1048576");
	check_fault(1, "mov.b64 %rd3, 4096; mbarrier.init.b64 [%rd3], 1;", "not in shared memory");
	check_fault(1, INIT(0, 1) "ld.shared.b32 %r3, [sh+4];", "the bytes are an mbarrier");
	check_fault(1, INIT(0, 1) "st.shared.b64 [sh], 0;", "the bytes are an mbarrier");
	check_fault(1, INIT(0, 1) "atom.shared.add.u32 %r3, [sh], 1;", "the bytes are an mbarrier");
	check_fault(1, INIT(0, 1) "st.shared.b8 [sh+7], 0;", "the bytes are an mbarrier");
	check_ok(1, INIT(0, 1) LEADER "st.shared.b32 [sh+8], 5; "
		 "@%p1 mbarrier.inval.shared.b64 [sh]; st.shared.b32 [sh], 5; "
				      "ld.shared.b32 %r3, [sh]; bar.sync 0; @%p1 mbarrier.init.shared.b64 [sh], 2;");
	check_fault(2, LEADER "@%p1 mbarrier.init.shared.b64 [sh], 64; mbarrier.arrive.shared.b64 _, [sh];",
		    "initialised");
}

/* An mbarrier may end only when nobody can be about to use it: warp 1 has, says so, and releases that or not. */
static void test_end(void **state)
{
	(void)state;
#define END(sem)                                                                                                       \
	INIT(0, 1) INIT(8, 32) "setp.ge.u32 %p3, %r1, 32; @%p3 bra ONE;\n" AGAIN(WAIT " %p2, [sh+8], 0;") LEADER       \
			       "@%p1 mbarrier.inval.shared.b64 [sh]; bra END;\n"                                       \
			       "ONE: mbarrier.test_wait.parity.shared.b64 %p2, [sh], 0; "                              \
			       "mbarrier.arrive" sem ".shared.b64 _, [sh+8];\nEND:\n"
	check_ok(2, END(""));
	check_fault(2, END(".relaxed.cta"), "warp 1 used this mbarrier, which is not ordered before its end");
#undef END
}

static void test_counts(void **state)
{
	(void)state;
	check_fault(1, INIT(0, 31) "mbarrier.arrive.shared.b64 _, [sh], 2;", "more arrivals than expected");
	check_fault(1, INIT(0, 32) "mbarrier.arrive.noComplete.shared.b64 _, [sh], 1;", "this arrival has .noComplete");
	check_ok(1, INIT(0, 33) "mbarrier.arrive.noComplete.shared.b64 %rd3, [sh], 1;");
	check_fault(1, INIT(0, 64) LEADER "@%p1 mbarrier.arrive.shared.b64 _, [sh], 0;", "0 arrivals at once");
	check_fault(1, INIT(0, 1) "mbarrier.expect_tx.shared.b64 [sh], 40000;", "tx-count");
	check_fault(1, INIT(0, 1) "mbarrier.complete_tx.shared.b64 [sh], 40000;", "tx-count");
	check_ok(1, INIT(0, 1) "mbarrier.expect_tx.shared.b64 [sh], 30000; "
		 "mbarrier.complete_tx.shared.b64 [sh], 30000;");
	check_fault(1, INIT(0, 1) LEADER "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [sh], 16;",
		    "still expects 16 bytes");
	check_fault(1, INIT(0, 1) LEADER "@%p1 mbarrier.complete_tx.shared.b64 [sh], 16;",
		    "received more than it expected, by 16");
	check_fault(1, INIT(0, 1) LEADER "@%p1 mbarrier.expect_tx.shared.b64 [sh], 16; "
		    "@%p1 mbarrier.inval.shared.b64 [sh];",
		    "16 bytes of transactions pending");
	check_fault(1, INIT(0, 1) WAIT " %p2, [sh], 2;", "0 or 1");
	check_fault(1, INIT(0, 64) INIT(8, 64) "mbarrier.arrive.shared.b64 %rd3, [sh]; "
		    "mbarrier.test_wait.shared.b64 %p2, [sh+8], %rd3;",
		    "does not belong to the mbarrier");
	check_fault(1,
		    INIT(0, 32) "mbarrier.arrive.shared.b64 %rd3, [sh]; mbarrier.arrive.shared.b64 %rd4, [sh]; "
				"mbarrier.test_wait.shared.b64 %p2, [sh], %rd3;",
		    "neither to the current phase");
}

static void test_deadlock(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	r->warps = 3;
	const char *e = report(r, INIT(0, 2) INIT(8, 1) LEADER
			       "@%p1 mbarrier.arrive.shared.b64 _, [sh]; setp.lt.u32 %p4, %r1, 32; "
			       "@%p4 bra OTHER; setp.lt.u32 %p4, %r1, 64; "
			       "@%p4 ret;\n" AGAIN(WAIT " %p2, [sh], 0;") "ret;\nOTHER: bar.sync 3, 64;");
	static const char *const parts[] = {"deadlock in block (0, 0, 0)",
					    "warp 0 waits at barrier 3, where 1 of 2 warps have arrived: PTX line",
					    "warp 1 has ended",
					    "warp 2 waits at the mbarrier 0x0: PTX line",
					    "(" WAIT ")",
					    "mbarrier 0x0 in phase 0, with 1 of 2 arrivals and "
					    "0 bytes of transactions pending",
					    "mbarrier 0x8 in phase 0, with 1 of 1 arrivals"};
	for (u32 n = 0; n < ARRAY_LEN(parts); n++)
		if (!strstr(e, parts[n]))
			fail_msg("no '%s' in:\n%s", parts[n], e);
	rig_free(r);
}

/* --- cp.async ---------------------------------------------------------------------------------------------------- */

#define COPY "shl.b32 %r3, %r1, 4; cvt.u64.u32 %rd4, %r3; add.s64 %rd4, %rd4, %rd1; "                                  \
	"cvt.u32.u64 %r5, %rd9; add.s32 %r5, %r5, %r3;\n"                                                              \
	     "cp.async.cg.shared.global [%r5+512], [%rd4], 16;\n"
/* the neighbour's data, of the other warp */
#define BACK                                                                                                           \
	"xor.b32 %r6, %r3, 512; cvt.u32.u64 %r7, %rd9; add.s32 %r7, %r7, %r6; "                                        \
	"ld.shared.v2.b64 {%rd5, %rd6}, [%r7+512];\n"                                                                  \
	"cvt.u64.u32 %rd7, %r6; add.s64 %rd7, %rd7, %rd2; st.global.v2.b64 [%rd7], {%rd5, %rd6};\n"

static void test_copies(void **state)
{
	(void)state;
	static const char *const good[] = {
		INIT(0, 64) COPY "cp.async.mbarrier.arrive.noinc.shared.b64 [sh];\n" AGAIN(WAIT " %p2, [sh], 0;") BACK,
		INIT(0, 64) COPY "cp.async.mbarrier.arrive.shared::cta.b64 [sh]; mbarrier.arrive.shared.b64 _, [sh];\n"
			AGAIN(WAIT " %p2, [sh], 0;") BACK,
		INIT(0, 64) COPY "cp.async.commit_group; cp.async.mbarrier.arrive.noinc.b64 [%rd8];\n"
			AGAIN(WAIT " %p2, [sh], 0;") BACK,
	};
	for (u32 n = 0; n < 30; n++) {
		struct rig *r = rig_new();
		r->warps = 2;
		const char *body = arena_printf(&r->arena, "cvta.shared.u64 %%rd8, %%rd9;\n%s", good[n % 3]),
			   *e = report(r, body);
		if (*e)
			fail_msg("%s\n%s", e, body);
		assert_memory_equal(r->a, r->b, 1024);
		rig_free(r);
	}
	for (u32 n = 0; n < 6; n++) {
		/* nothing waits */
		check_fault(2, INIT(0, 64) COPY "cp.async.mbarrier.arrive.noinc.shared.b64 [sh];\n" BACK,
			    "read of shared bytes");
		/* the arrival does not cover the second copy */
		check_fault(2, INIT(0, 64) "cp.async.mbarrier.arrive.noinc.shared.b64 [sh];\n"
			    COPY AGAIN(WAIT " %p2, [sh], 0;") BACK,
			    "read of shared bytes");
	}
	/* it counts the arrival twice without .noinc */
	check_fault(2, INIT(0, 64) COPY "cp.async.mbarrier.arrive.shared.b64 [sh];\n" AGAIN(WAIT " %p2, [sh], 0;") BACK,
		    "deadlock");
}

static void test_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"mbarrier.arrive.shared::cluster.b64 %rd3, [sh];",
		"mbarrier.arrive.b32 _, [sh];",
		"mbarrier.arrive.release.shared.b64 _, [sh];",
		"mbarrier.arrive.cta.shared.b64 _, [sh];",
		"mbarrier.arrive.acquire.cta.shared.b64 _, [sh];",
		"mbarrier.arrive.expect_tx.shared.b64 _, [sh];",
		"mbarrier.arrive.noComplete.shared.b64 _, [sh];",
		"mbarrier.arrive.expect_tx.noComplete.shared.b64 _, [sh], 1;",
		"mbarrier.expect_tx.release.cta.shared.b64 [sh], 1;",
		"mbarrier.init.shared::cluster.b64 [sh], 1;",
		"mbarrier.init.shared.b64 [sh];",
		"mbarrier.init.shared.b64 [sh], %f1;",
		"mbarrier.inval.shared.b64 [sh], 1;",
		"mbarrier.test_wait.parity.shared.b64 %p2, [sh], 0, 100;",
		"mbarrier.test_wait.parity.shared::cluster.b64 %p2, [sh], 0;",
		"mbarrier.try_wait.parity.release.cta.shared.b64 %p2, [sh], 0;",
		"mbarrier.pending_count.b64 %rd3, %rd4;",
		"mbarrier.wait.shared.b64 [sh];",
		"mbarrier.arrive.shared.b64 _, [cell];",
		"cp.async.mbarrier.arrive.b32 [sh];",
		"cp.async.mbarrier.arrive.shared.noinc.b64 [cell];",
		"fence.mbarrier_init.acquire.cluster;",
		"fence.proxy;",
		"fence.proxy.async.alias;",
	};
	for (u32 n = 0; n < ARRAY_LEN(bad); n++) {
		struct rig *r = rig_new();
		if (read_kernel(r, bad[n]))
			fail_msg("accepted: %s", bad[n]);
		rig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters), cmocka_unit_test(test_ring),   cmocka_unit_test(test_order),
		cmocka_unit_test(test_uses),     cmocka_unit_test(test_end),    cmocka_unit_test(test_counts),
		cmocka_unit_test(test_deadlock), cmocka_unit_test(test_copies), cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

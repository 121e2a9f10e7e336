/* What the simulator watches over a whole launch: that it ends. */
#include "test_sim_rig.h"

/* Of what does not end, the position of every warp is told. */
static void test_hang(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	r->warps = 3;
	r->max_steps = 10000;
	const char *body = "setp.lt.u32 %p1, %r1, 32;\n@%p1 ret;\nsetp.lt.u32 %p1, %r1, 64;\n"
		"@%p1 bra WAIT;\nLOOP: bra LOOP;\nWAIT: "
			   "bar.sync 3;";
	expect_fault(r, body, "block (0, 0, 0) does not end: its warps have run 10");
	expect_fault(r, body, "warp 0 has ended\n");
	expect_fault(r, body, "warp 1 waits at barrier 3, where 1 of 3 warps have arrived: PTX line 21 (bar.sync)\n");
	expect_fault(r, body, "warp 2 is at PTX line 20 (bra)");
	/* what ends after as many steps is not reported */
	const char *counted = "mov.u32 %r3, 0;\nLOOP: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r4;\n@%p1 bra LOOP;";
	expect_ok(r, arena_printf(&r->arena, "mov.u32 %%r4, %u;\n%s", 1100, counted));
	expect_fault(r, arena_printf(&r->arena, "mov.u32 %%r4, %u;\n%s", 1200, counted), "does not end");
	r->max_steps = 0;
	expect_ok(r, arena_printf(&r->arena, "mov.u32 %%r4, %u;\n%s", 12000, counted));
	rig_free(r);
}

/* A block may wait for another one for as long as that one has steps left; a fault of that one is what is reported. */
static void test_waiting_block(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	r->blocks = 2;
	r->max_steps = 2000;
	memset(r->a, 0, 4);
	const char *last = "setp.eq.u32 %p1, %r2, 0;\n@%p1 bra WORK;\n"
		"WAIT: ld.acquire.gpu.global.u32 %r3, [%rd1]; setp.eq.u32 %p1, "
			   "%r3, 0;\n@%p1 bra WAIT;\nret;\n"
			   "WORK: mov.u32 %r3, 0;\nLOOP: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 600;\n"
			   "@%p1 bra LOOP;\n";
	expect_ok(r, arena_printf(&r->arena, "%sst.release.gpu.global.u32 [%%rd1], 1;", last));
	memset(r->a, 0, 4);
	expect_fault(r, last, "block (1, 0, 0) does not end");
	expect_fault(r, arena_printf(&r->arena, "%strap;", last), "trap");
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hang),
		cmocka_unit_test(test_waiting_block),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

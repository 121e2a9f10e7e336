/* Spellings of instructions that the decoder of the simulator accepts or refuses, as ptxas does. */
#include "tests/unit/test_sim_rig.h"

#define HEAD_FOR(target)                                                                                               \
	".version 8.6\n.target " target "\n.address_size 64\n.global .align 8 .b32 cell[4] = {5, 6, 7, 8};\n"         \
	".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pn)\n{\n"                                       \
	".reg .pred %p<8>; .reg .b16 %rs<16>; .reg .b32 %r<40>; .reg .b64 %rd<40>; "                                   \
	".reg .f32 %f<16>; .reg .f64 %fd<8>;\n.shared .align 128 .b8 sh[4096];\n"

/* Each body is refused for a reason that contains the text, or is accepted if the text is NULL. */
static void check_rows(const char *head, const char *const (*rows)[2], u32 n)
{
	for (u32 k = 0; k < n; k++) {
		struct rig *r = rig_new();
		r->head = head;
		bool accepted = read_kernel(r, rows[k][0]);
		if (accepted && rows[k][1])
			fail_msg("accepted: %s", rows[k][0]);
		if (!accepted && (!rows[k][1] || !strstr(r->error, rows[k][1])))
			fail_msg("%s: want '%s', got '%s'", rows[k][0], rows[k][1] ? rows[k][1] : "", r->error);
		rig_free(r);
	}
}
#define CHECK_ROWS(target, rows) check_rows(HEAD_FOR(target), rows, ARRAY_LEN(rows))

static void test_special_registers(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{"mov.u32 %r1, %tid.x;", NULL},
		{"mov.u16 %rs1, %tid.x;", NULL},
		{"mov.u64 %rd1, %clock64;", NULL},
		{"mov.u32 %r1, %gridid;", NULL},
		{"mov.b64 %rd1, {%tid.x, %r1};", NULL},
		{"mov.b32 {%rs1, %rs2}, %tid.x;", NULL},
		{"mov.pred %p1, %is_explicit_cluster;", NULL},
		{"cvt.u64.u32 %rd1, %tid.x;", NULL},
		{"cvt.u32.u64 %r1, %clock64;", NULL},
		{"cvt.u32.u32 %r1, %clock64;", NULL},
		{"st.global.v2.u32 [%rd1], {%r1, %tid.x};", NULL},
		{"st.global.u32 [%rd1], %tid.x;", "does not read special registers such as '%tid.x'"},
		{"add.u32 %r1, %tid.x, 1;", "does not read special registers"},
		{"selp.b32 %r1, 1, 2, %is_explicit_cluster;", "does not read special registers"},
		{"shfl.sync.idx.b32 %r1, %r2, %laneid, 31, -1;", "does not read special registers"},
		{"bar.sync %tid.x;", "does not read special registers"},
		{"cvt.rn.f32.u32 %f1, %tid.x;", "does not read special registers"},
		{"mov.u32 %r1, %clock64;", "operand 2 of 'mov.u32' is not a .u32"},
		{"mov.u64 %rd1, %tid.x;", "operand 2 of 'mov.u64' is not a .u64"},
		{"mov.f32 %f1, %tid.x;", "operand 2 of 'mov.f32' is not a .f32"},
		{"mov.b32 %r1, {%tid.x, %rs1};", "does not read special registers"},
		{"mov.b32 %r1, %is_explicit_cluster;", "operand 2 of 'mov.b32' is not a .b32"},
	};
	CHECK_ROWS("sm_90a", rows);
}

static void test_variables(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{"mov.u64 %rd1, sh;", NULL},
		{"mov.u32 %r1, sh;", NULL},
		{"mov.b32 {%rs1, %rs2}, sh;", NULL},
		{"cvta.shared.u64 %rd1, sh;", NULL},
		{"mapa.shared::cluster.u32 %r1, sh, %r2;", NULL},
		{"getctarank.shared::cluster.u32 %r1, sh;", NULL},
		{"add.u32 %r1, sh, 16;", "operand 2 of 'add.u32' is not a .u32"},
		{"st.global.u64 [%rd1], sh;", "operand 2 of 'st.global.u64' is not a .u64"},
		{"cvt.u64.u32 %rd1, sh;", "operand 2 of 'cvt.u64.u32' is not a .u32"},
		{"cvta.global.u64 %rd1, sh;", "'sh' is in another space"},
		{"cvta.to.shared.u64 %rd1, sh;", "operand 2 of 'cvta.to.shared.u64' is not a .u64"},
	};
	CHECK_ROWS("sm_90a", rows);
}

static void test_discarded_results(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{"setp.eq.u32 _, %r1, %r2;", NULL},
		{"setp.eq.u32 _|%p1, %r1, %r2;", NULL},
		{"setp.eq.u32 %p1|_, %r1, %r2;", NULL},
		{"lop3.b32 _, %r1, %r2, %r3, 128;", NULL},
		{"mov.b64 {_, %r1}, %rd1;", NULL},
		{"ld.global.v2.b32 {_, %r1}, [%rd1];", NULL},
		{"atom.global.add.u32 _, [%rd1], 1;", NULL},
		{"shfl.sync.idx.b32 %r1|_, %r2, 0, 31, -1;", NULL},
		{"elect.sync _|%p1, -1;", NULL},
		{"mbarrier.arrive.shared.b64 _, [sh];", NULL},
		{"add.u32 _, %r1, %r2;", "operand 1 of 'add.u32' cannot be '_'"},
		{"mov.u32 _, %r1;", "operand 1 of 'mov.u32' cannot be '_'"},
		{"ld.global.b32 _, [%rd1];", "operand 1 of 'ld.global.b32' cannot be '_'"},
		{"shfl.sync.idx.b32 _, %r2, 0, 31, -1;", "cannot be '_'"},
		{"shfl.sync.idx.b32 _|%p1, %r2, 0, 31, -1;", "cannot be '_'"},
		{"elect.sync %r1|_, -1;", "cannot be '_'"},
		{"vote.sync.all.pred _, %p1, -1;", "cannot be '_'"},
		{"mbarrier.test_wait.shared.b64 _, [sh], %rd1;", "cannot be '_'"},
		{"add.u32 %r1, _, %r2;", "cannot be '_'"},
	};
	CHECK_ROWS("sm_90a", rows);
}

static void test_types(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{"shfl.sync.idx.b32 %f1, %f2, %f3, %f4, -1;", NULL},
		{"shl.b32 %f1, %f2, %r3;", NULL},
		{"add.f64 %fd1, %fd2, 0f3F800000;", NULL},
		{"add.f32 %f1, %f2, 0d3FF0000000000000;", NULL},
		{"atom.global.exch.b32 %f1, [%rd1], 0f3F800000;", NULL},
		{"selp.b32 %r1, %r2, %r3, !%p1;", NULL},
		{"mov.pred %p1, !%p2;", NULL},
		{"and.pred %p1, !%p2, 2;", NULL},
		{"cnot.b32 %r1, 1;", NULL},
		{"fence.gpu;", NULL},
		{"fence.cluster;", NULL},
		{"barrier.cta.sync.aligned 0;", NULL},
		{"bar.cta.sync 0;", NULL},
		{"bar.sync.aligned 0;", "the simulator does not know '.aligned' of 'bar.sync.aligned'"},
		{"cvt.rni.sat.s32.bf16 %r1, %rs1;", "the simulator"},
		{"fence;", "the simulator has no 'fence'"},
		{"fence.acq_rel;", "the simulator has no 'fence.acq_rel'"},
		{"add.u32 %r1, !%p1, %r2;", "operand 2 of 'add.u32' is not a .u32"},
		{"shl.b32 %r1, %r2, %f3;", "operand 3 of 'shl.b32' is not a .u32"},
		{"shr.u64 %rd1, %rd2, %f3;", "operand 3 of 'shr.u64' is not a .u32"},
		{"shf.l.wrap.b32 %r1, %r2, %r3, %f4;", "operand 4 of 'shf.l.wrap.b32' is not a .u32"},
		{"bfe.u32 %r1, %r2, %f3, %r4;", "operand 3 of 'bfe.u32' is not a .u32"},
		{"bfi.b32 %r1, %r2, %r3, %r4, %f5;", "operand 5 of 'bfi.b32' is not a .u32"},
		{"shfl.sync.idx.b32 %r1, %r2, 0, 31, %f5;", "operand 5 of 'shfl.sync.idx.b32' is not a .u32"},
		{"add.f16x2 %r1, %r2, 0f3F800000;", "operand 3 of 'add.f16x2' is not a .f16x2"},
		{"atom.global.add.u32 %r1, [%rd1], %rd2;", "operand 3 of 'atom.global.add.u32' is not a .u32"},
		{"atom.global.exch.b32 %rd1, [%rd1], %r2;", "operand 1 of 'atom.global.exch.b32' is not a .b32"},
		{"atom.global.add.noftz.f16x2 %r1, [%rd1], 1;", "operand 3 of 'atom.global.add.noftz.f16x2' is not"},
		{"redux.sync.and.b32 %r1, %f2, -1;", "operand 2 of 'redux.sync.and.b32' is not a .u32"},
		{"elect.sync %f1|%p1, -1;", "operand 1 of 'elect.sync' is not a .u32"},
		{"cvt.rna.tf32.f32 %f1, %f2;", "operand 1 of 'cvt.rna.tf32.f32' is not a .u32"},
		/* the form that fits best gives the reason */
		{"mbarrier.arrive.shared.b64 _, [sh], %f1;", "operand 3 of 'mbarrier.arrive.shared.b64' is not a .u32"},
		{"cp.async.ca.shared.global [sh], [%rd1], 4, %f1;", "operand 4 of 'cp.async.ca.shared.global' is not"},
	};
	CHECK_ROWS("sm_90a", rows);
}

static void test_architectures(void **state)
{
	(void)state;
	static const char *const since_80[] = {
		"cp.async.ca.shared.global [sh], [%rd1], 4;",
		"cp.async.commit_group;",
		"cp.async.wait_group 0;",
		"cp.async.wait_all;",
		"cp.async.mbarrier.arrive.shared.b64 [sh];",
		"mbarrier.arrive.noComplete.shared.b64 %rd1, [sh], 1;",
		"redux.sync.add.u32 %r1, %r2, -1;",
		"createpolicy.fractional.L2::evict_last.b64 %rd1;",
		"prefetch.global.L2::evict_last [%rd1];",
		"ld.global.L2::256B.b32 %r1, [%rd1];",
		"ld.global.L2::cache_hint.b32 %r1, [%rd1], %rd2;",
		"min.f16 %rs1, %rs2, %rs3;",
		"fma.rn.relu.f16 %rs1, %rs2, %rs3, %rs4;",
		"cvt.rn.bf16.f32 %rs1, %f1;",
	};
	static const char *const since_90[] = {
		"elect.sync _|%p1, -1;",
		"griddepcontrol.wait;",
		"griddepcontrol.launch_dependents;",
		"prefetch.tensormap [%rd1];",
		"fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;",
		"mbarrier.arrive.shared.b64 %rd1, [sh], 1;",
		"mbarrier.arrive.expect_tx.shared.b64 %rd1, [sh], 1;",
		"mbarrier.arrive.relaxed.cta.shared.b64 %rd1, [sh];",
		"atom.global.add.noftz.bf16 %rs1, [%rd1], %rs2;",
		"fence.acq_rel.cluster;",
	};
	for (u32 k = 0; k < ARRAY_LEN(since_80); k++) {
		CHECK_ROWS("sm_75", ((const char *const[][2]){{since_80[k], "needs sm_80"}}));
		CHECK_ROWS("sm_80", ((const char *const[][2]){{since_80[k], NULL}}));
	}
	for (u32 k = 0; k < ARRAY_LEN(since_90); k++) {
		CHECK_ROWS("sm_80", ((const char *const[][2]){{since_90[k], "needs sm_90"}}));
		CHECK_ROWS("sm_90", ((const char *const[][2]){{since_90[k], NULL}}));
	}
}

/* Values of negated predicates and of constants in the place of predicates. */
static void test_predicates(void **state)
{
	(void)state;
	struct rig *r = rig_new();
	expect_ok(r, "setp.eq.u32 %p1, %r1, 3;\nselp.b32 %r3, 1, 0, !%p1;\nmov.pred %p2, !%p1;\n"
		     "selp.b32 %r4, 2, 0, %p2;\nand.pred %p3, !%p1, 2;\nselp.b32 %r5, 4, 0, %p3;\n"
		     "setp.eq.and.u32 %p4, %r1, %r1, !%p1;\nselp.b32 %r6, 8, 0, %p4;\n"
		     "or.b32 %r3, %r3, %r4;\nor.b32 %r3, %r3, %r5;\nor.b32 %r3, %r3, %r6;\n"
		     "mad.wide.u32 %rd3, %r1, 4, %rd2;\nst.global.u32 [%rd3], %r3;");
	for (u32 l = 0; l < 32; l++)
		assert_int_equal(extended(r->b + 4 * l, 4, false), l == 3 ? 0 : 15);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_special_registers), cmocka_unit_test(test_variables),
		cmocka_unit_test(test_discarded_results), cmocka_unit_test(test_types),
		cmocka_unit_test(test_architectures),	  cmocka_unit_test(test_predicates),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The device cpu: what its launches say when they fail, and the threads that share a grid. */
#include "test_runtime.h"

#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "fixture.h"
#include "runtime/device/cpu_pool.h"
#include "llvm/emit_object.h"
#include "runtime/device/object_linker.h"

static const char kernels[] = "import triton\nimport triton.language as tl\n\n"
			      "@triton.jit\ndef add(x, y, n, BLOCK: tl.constexpr):\n"
			      "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
			      "    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)\n\n"
			      "@triton.jit\ndef checks(x, limit):\n"
			      "    i = tl.program_id(0) * 16 + tl.arange(0, 16)\n"
			      "    tl.device_assert(tl.load(x + i) < limit, \"too large\")\n\n"
			      "@triton.jit\ndef in_turn(turn):\n" /* the last one first */
			      "    p = tl.program_id(0)\n"
			      "    while tl.atomic_add(turn, 0) != tl.num_programs(0) - 1 - p:\n        pass\n"
			      "    tl.atomic_add(turn, 1)\n\n"
			      "@triton.jit\ndef waits_for_failed(turn):\n"
			      "    if tl.program_id(0) == 0:\n"
			      "        while tl.atomic_add(turn, 0) == 0:\n            pass\n"
			      "    else:\n        tl.device_assert(tl.program_id(0) == 0, \"not the first\")\n";

static int open_cpu(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	ok(tl_context_create("cpu", &f->ctx));
	ok(tl_module_load_source(f->ctx, "c.tl", kernels, sizeof kernels - 1, &f->module));
	*state = f;
	return 0;
}

/* Names are read as they are printed; code for less runs on more. */
static void test_targets(void **state)
{
	(void)state;
	static const struct {
		const char *of, *on;
		bool runs;
	} pairs[] = {
		{"cpu:baseline", "cpu:avx512+bf16", true},
		{"cpu:avx2+vnni", "cpu:avx2+vnni", true},
		{"cpu:avx2", "cpu:avx2+vnni", true},
		{"cpu:avx2+vnni", "cpu:avx2", false},
		{"cpu:avx512", "cpu:avx2", false},
		{"cpu:avx2+vnni", "cpu:avx512+vnni", false},
		{"cpu:neon", "cpu:avx512", false},
		{"cpu:baseline", "cpu:neon", false},
		{"cpu:neon+dot", "cpu:neon+dot+fp16+bf16", true},
		{"cpu:avx2", "cuda:sm_90a", false},
		{"cpu:avx2", "cpu:avx2+check", false},
		{"cpu:avx2+vnni+check", "cpu:avx2+vnni+check", true},
		{"cpu:avx512+vnni+bf16+vbmi", "cpu:avx512+fp16+amx", true},
		{"cpu:avx512+amx", "cpu:avx512+bf16", false},
	};
	static const char *const wrong[] = {"cpu:",          "cpu:avx3", "cpu:avx2+",      "cpu:avx2+fp16",
					    "cpu:neon+vnni", "cpus",     "cpu:native+fp16"};
	struct arena a = {0};
	struct target of, on;
	for (u32 i = 0; i < ARRAY_LEN(pairs); i++) {
		assert_true(target_parse(pairs[i].of, &of) && target_parse(pairs[i].on, &on));
		assert_string_equal(target_name(&a, &of), pairs[i].of);
		assert_string_equal(target_name(&a, &on), pairs[i].on);
		assert_true(strlen(pairs[i].of) < sizeof((tl_device_info *)0)->target);
		assert_int_equal(target_runs(&on, &of), pairs[i].runs);
	}
	for (u32 i = 0; i < ARRAY_LEN(wrong); i++)
		assert_false(target_parse(wrong[i], &of));
	assert_true(target_parse("cpu", &of) && target_parse("cpu:native", &on));
	assert_string_equal(target_name(&a, &of), target_name(&a, &on));
	arena_free(&a);
}

/* --- launches ------------------------------------------------------------------------------------------------ */

static void test_info(void **state)
{
	const struct fixture *f = *state;
	tl_device_info info;
	struct target target;
	ok(tl_device(f->ctx, &info));
	assert_string_equal(info.kind, "cpu");
	assert_string_equal(info.spec, "cpu");
	assert_true(target_parse(info.target, &target));
	assert_int_equal(target.kind, TARGET_CPU);
	assert_false(target.checks);

	tl_context *checked; /* its spec opens a device that checks, too */
	ok(tl_context_create("cpu:check", &checked));
	ok(tl_device(checked, &info));
	assert_string_equal(info.spec, "cpu:check");
	assert_true(target_parse(info.target, &target));
	assert_true(target.checks);
	tl_context_destroy(checked);
}

static tl_status launch_add(const struct fixture *f, tl_buffer *x, tl_buffer *y, u32 grid)
{
	return tl_launch(get(f, "add"), &(tl_config){.grid = {grid}},
			 ARGS(tl_buf(TL_I32, x), tl_buf(TL_I32, y), tl_int((i64)grid * 64 - 3), tl_int(64)));
}

/* Grids of many sizes, so that they are run alone, shared, and shared after a program turns out to take long. */
static void test_grids(void **state)
{
	const struct fixture *f = *state;
	enum { MOST = 5000 };
	static i32 in[MOST * 64], out[MOST * 64];
	tl_buffer *x, *y;
	ok(tl_buffer_create(f->ctx, sizeof in, &x));
	ok(tl_buffer_create(f->ctx, sizeof in, &y));
	for (u32 i = 0; i < MOST * 64; i++)
		in[i] = (i32)i;
	ok(tl_buffer_write(x, 0, in, sizeof in));
	for (u32 threads = 0; threads < 8; threads += 3)
		for (u32 grid = 1; grid <= MOST; grid = grid * 5 / 2 + 1) {
			ok(tl_context_threads(f->ctx, (int)threads));
			ok(tl_buffer_fill(y, 0));
			ok(launch_add(f, x, y, grid));
			ok(tl_buffer_read(y, 0, out, sizeof out));
			for (u32 i = 0; i < MOST * 64; i++)
				assert_int_equal(out[i], i + 3 < grid * 64 ? in[i] + 1 : 0);
		}
}

static void test_null(void **state)
{
	const struct fixture *f = *state;
	assert_error(tl_launch(get(f, "checks"), &(tl_config){.grid = {1}}, ARGS(tl_ptr(TL_I32, NULL), tl_int(5))),
		     TL_ERR_ARGUMENT, "checks: 'x' is NULL, and the kernel reads memory through it");
}

/* Of several programs that fail, the lowest is told of, as by the interpreter. */
static void test_failure(void **state)
{
	const struct fixture *f = *state;
	enum { PROGRAMS = 400 };
	i32 in[PROGRAMS * 16];
	tl_buffer *x;
	for (u32 i = 0; i < PROGRAMS * 16; i++)
		in[i] = (i32)i;
	ok(tl_buffer_create(f->ctx, sizeof in, &x));
	ok(tl_buffer_write(x, 0, in, sizeof in));
	tl_kernel *k = get(f, "checks");
	for (i32 limit = 7; limit < PROGRAMS * 16; limit += 613) {
		char place[80];
		snprintf(place, sizeof place, "too large (tile element [%d], program (%d, 0, 0))", limit % 16,
			 limit / 16);
		assert_error(tl_launch(k, &(tl_config){.grid = {PROGRAMS}, .debug = true},
				       ARGS(tl_buf(TL_I32, x), tl_int(limit))),
			     TL_ERR_KERNEL, place);
		assert_string_equal(tl_error_details()->file, "c.tl");
		assert_int_equal(tl_error_details()->line, 12);
		assert_non_null(strstr(tl_error(NULL), "   12 |     tl.device_assert(tl.load(x + i) < limit"));
	}
}

/* Programs that wait for later ones, of which there are more than threads. */
static void test_waiting(void **state)
{
	const struct fixture *f = *state;
	tl_buffer *turn;
	i32 end;
	ok(tl_buffer_create(f->ctx, 4, &turn));
	for (int threads = 1; threads < 4; threads++) {
		ok(tl_context_threads(f->ctx, threads));
		ok(tl_buffer_fill(turn, 0));
		ok(tl_launch(get(f, "in_turn"), &(tl_config){.grid = {60}}, ARGS(tl_buf(TL_I32, turn))));
		ok(tl_buffer_read(turn, 0, &end, sizeof end));
		assert_int_equal(end, 60);
	}
	ok(tl_buffer_fill(turn, 0));
	assert_error(tl_launch(get(f, "waits_for_failed"), &(tl_config){.grid = {3}, .debug = true},
			       ARGS(tl_buf(TL_I32, turn))),
		     TL_ERR_KERNEL, "not the first (program (1, 0, 0))");
}

/* --- the pool ------------------------------------------------------------------------------------------------ */

struct count {
	u64 total;
	_Atomic u8 *ran;
	_Atomic u32 misaligned;
};

static void count_programs_of(void *count, u64 from, u64 to, char *scratch)
{
	struct count *c = count;
	if ((uintptr_t)scratch % 64)
		atomic_fetch_add(&c->misaligned, 1);
	memset(scratch, (int)from, 1000);
	for (; from < to; from++)
		atomic_fetch_add(&c->ran[from], 1);
}

struct launcher {
	struct pool *pool;
	u32 seed;
	u32 wrong; /* launches, and programs of them that did not run once */
	pthread_t thread;
};

static void *launch_often(void *launcher)
{
	struct launcher *l = launcher;
	u32 random = l->seed;
	_Atomic u32 cost = 0;
	static const u64 most = 3000;
	_Atomic u8 *ran = calloc(most, 1);
	for (u32 i = 0; i < 3000; i++) {
		random = random * 1664525 + 1013904223;
		struct program_threads *gang;
		struct count c = {.total = 1 + (random >> 8) % (i % 8 ? 20 : most), .ran = ran};
		const struct pool_job job = {.total = c.total,
					     .threads = 1 + (random >> 4) % 6,
					     .scratch_bytes = 1000 + random % 5000,
					     .gang = random % 7 == 0 ? &gang : NULL,
					     .cost = &cost,
					     .run = count_programs_of,
					     .arg = &c};
		l->wrong += !pool_run(l->pool, &job) + c.misaligned;
		for (u64 p = 0; p < most; p++)
			l->wrong += atomic_exchange(&ran[p], 0) != (p < c.total);
	}
	free((void *)ran);
	return NULL;
}

/* Each program runs once, whoever launches meanwhile. */
static void test_pool(void **state)
{
	(void)state;
	struct launcher all[4];
	struct pool *pool = pool_open();
	for (u32 i = 0; i < ARRAY_LEN(all); i++) {
		all[i] = (struct launcher){.pool = pool, .seed = i};
		pthread_create(&all[i].thread, NULL, launch_often, &all[i]);
	}
	for (u32 i = 0; i < ARRAY_LEN(all); i++) {
		pthread_join(all[i].thread, NULL);
		assert_int_equal(all[i].wrong, 0);
	}
	pool_close(pool);
}

/* --- linking ------------------------------------------------------------------------------------------------- */

static const char *object_of(struct arena *a, const char *ir, size_t *len)
{
	struct session s;
	struct target target;
	const char *error = NULL;
	LLVMModuleRef mod;
	char *message;
	assert_true(cpu_here(&target));
	session_open(&s, a, "test");
	LLVMMemoryBufferRef text = LLVMCreateMemoryBufferWithMemoryRangeCopy(ir, strlen(ir), "test");
	if (LLVMParseIRInContext(s.ctx, text, &mod, &message))
		fail_msg("%s", message);
	LLVMLinkModules2(s.mod, mod);
	assert_true(optimize_for_cpu(&s, &target, &error));
	const char *object = emit_for_cpu(&s, LLVMObjectFile, len, &error);
	session_close(&s);
	return object;
}

/* Two objects define the same name; a function of libm is found, one that is nowhere is named. */
static void test_linker(void **state)
{
	(void)state;
	struct arena a = {0};
	const char *error = NULL;
	size_t len[3];
	const char *const objects[] = {
		object_of(&a, "define double @f(double %x) {\n  ret double %x\n}\n", &len[0]),
		object_of(&a,
			  "declare double @cbrt(double)\ndefine double @f(double %x) {\n"
			  "  %y = call double @cbrt(double %x)\n  ret double %y\n}\n",
			  &len[1]),
		object_of(&a,
			  "declare double @nowhere(double)\ndefine double @f(double %x) {\n"
			  "  %y = call double @nowhere(double %x)\n  ret double %y\n}\n",
			  &len[2]),
	};
	for (u32 round = 0; round < 20; round++) {
		void *f[3];
		struct linked *one = link_object(&a, objects[0], len[0], "f", &f[0], &error);
		struct linked *two = link_object(&a, objects[1], len[1], "f", &f[1], &error);
		assert_non_null(one);
		assert_non_null(two);
		assert_true(((double (*)(double))f[0])(27) == 27);
		assert_true(fabs(((double (*)(double))f[1])(27) - 3) < 1e-12);
		assert_null(link_object(&a, objects[2], len[2], "f", &f[2], &error));
		assert_string_equal(error, "the code calls 'nowhere', which libm, libmvec, libc and libgcc_s "
					   "do not have here");
		unlink_object(one);
		assert_true(fabs(((double (*)(double))f[1])(8) - 2) < 1e-12);
		unlink_object(two);
	}
	assert_null(link_object(&a, "no object", 9, "f", &(void *){0}, &error));
	arena_free(&a);
}

/* An object of the cache may be damaged: it is linked or refused, and nothing else is touched. */
static void test_damaged_objects(void **state)
{
	(void)state;
	struct arena a = {0};
	const char *error = NULL;
	size_t len;
	u64 random = 1;
	u32 refused = 0;
	void *f;
	const char *object = object_of(&a,
				       "@k = constant [4 x double] [double 1.0, double 2.0, double 3.0, double 4.0]\n"
				       "declare double @cbrt(double)\ndefine double @f(i64 %i) {\n"
				       "  %p = getelementptr [4 x double], ptr @k, i64 0, i64 %i\n"
				       "  %x = load double, ptr %p\n  %y = call double @cbrt(double %x)\n"
				       "  ret double %y\n}\n",
				       &len);
	for (u32 round = 0; round < 3000; round++) {
		char *copy = arena_dup(&a, object, len);
		size_t kept = len;
		for (u32 i = 0; i < 1 + round % 4; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			copy[(random >> 20) % len] = (char)(random >> 56);
		}
		if (round % 8 == 0)
			kept = (size_t)(random >> 33) % len;
		struct linked *l = link_object(&a, copy, kept, "f", &f, &error);
		refused += !l;
		if (l)
			unlink_object(l);
		else
			assert_non_null(error);
	}
	assert_true(refused > 300);
	struct linked *l = link_object(&a, object, len, "f", &f, &error);
	assert_non_null(l);
	assert_true(((double (*)(i64))f)(0) == 1);
	assert_true(fabs(((double (*)(i64))f)(2) - cbrt(3)) < 1e-12);
	unlink_object(l);
	arena_free(&a);
}

/* Code that is checked: memory that nobody has written; then that which a kernel has. */
static void test_unwritten(void **state)
{
	(void)state;
	static const char text[] = "import triton\nimport triton.language as tl\n\n"
				   "@triton.jit\ndef copy(x, o):\n    i = tl.arange(0, 64)\n"
				   "    tl.store(o + i, tl.load(x + i))\n";
	tl_context *ctx;
	tl_module *m;
	tl_kernel *copy;
	tl_buffer *b[3];
	float x[64], y[64];
	ok(tl_context_create("cpu:check", &ctx));
	ok(tl_module_load_source(ctx, "u.tl", text, sizeof text - 1, &m));
	ok(tl_module_kernel(m, "copy", &copy));
	for (u32 i = 0; i < 3; i++)
		ok(tl_buffer_create(ctx, sizeof x, &b[i]));
	for (u32 i = 0; i < 64; i++)
		x[i] = (float)i * 0.5f;
	ok(tl_buffer_write(b[0], 0, x, 40 * sizeof *x));
	const tl_config one = {.grid = {1}};
	const tl_arg half[] = {tl_buf(TL_F32, b[0]), tl_buf(TL_F32, b[1])};
	const tl_arg on[] = {tl_buf(TL_F32, b[1]), tl_buf(TL_F32, b[2])};
	assert_int_equal(tl_launch(copy, &one, half, 2), TL_ERR_KERNEL);
	assert_non_null(strstr(tl_error(ctx), "u.tl:7:21: error: load of 4 bytes that were never written: byte 160 of "
					      "'x' (tile element [40], program (0, 0, 0))"));
	ok(tl_buffer_write(b[0], 0, x, sizeof x));
	ok(tl_launch(copy, &one, half, 2));
	ok(tl_launch(copy, &one, on, 2));
	ok(tl_buffer_read(b[2], 0, y, sizeof y));
	assert_memory_equal(x, y, sizeof x);
	tl_context_destroy(ctx);
}

/* What a checked launch notes of stores is kept for the next one, in which other programs may store other values to the
 * same places; two programs of one launch may not, in later launches too. */
static void test_later_launches(void **state)
{
	static const char text[] = "import triton\nimport triton.language as tl\n\n@triton.jit\n"
				   "def k(x, turn, clash):\n    pid = tl.program_id(0)\n    i = tl.arange(0, 64)\n"
				   "    tl.store(x + ((pid + turn) % 4 // clash) * 64 + i, pid + 10 * turn)\n";
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	tl_buffer *x;
	i32 got[256];
	(void)state;
	ok(tl_context_create("cpu:check", &ctx));
	ok(tl_module_load_source(ctx, "k.tl", text, sizeof text - 1, &m));
	ok(tl_module_kernel(m, "k", &k));
	ok(tl_buffer_create(ctx, sizeof got, &x));
	const tl_config four = {.grid = {4}};
	for (i32 turn = 0; turn < 40; turn++) {
		ok(tl_launch(k, &four, ARGS(tl_buf(TL_I32, x), tl_int(turn), tl_int(1))));
		ok(tl_buffer_read(x, 0, got, sizeof got));
		for (i32 i = 0; i < 256; i++)
			assert_int_equal(got[i], (i / 64 + 4 - turn % 4) % 4 + 10 * turn);
		if (turn % 8 == 5) {
			assert_int_equal(tl_launch(k, &four, ARGS(tl_buf(TL_I32, x), tl_int(turn), tl_int(2))),
					 TL_ERR_KERNEL);
			assert_non_null(
				strstr(tl_error(ctx),
				       ") has stored another value in line 8, and the two stores are not ordered"));
		}
	}
	tl_context_destroy(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_later_launches),
		cmocka_unit_test_setup_teardown(test_info, open_cpu, shut),
		cmocka_unit_test_setup_teardown(test_grids, open_cpu, shut),
		cmocka_unit_test_setup_teardown(test_null, open_cpu, shut),
		cmocka_unit_test_setup_teardown(test_failure, open_cpu, shut),
		cmocka_unit_test_setup_teardown(test_waiting, open_cpu, shut),
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_linker),
		cmocka_unit_test(test_damaged_objects),
		cmocka_unit_test(test_unwritten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

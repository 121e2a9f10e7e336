/* Tensors of no elements: the pointer may be any that is aligned to its elements. */
#include "test_runtime.h"

static const char text[] = "import triton\nimport triton.language as tl\n\n"
			   "@triton.jit\ndef fill(out, n, B: tl.constexpr):\n"
			   "    for i in range(tl.program_id(0), n, tl.num_programs(0)):\n"
			   "        tl.store(out + i * B + tl.arange(0, B), 1.0)\n\n"
			   "@triton.jit\ndef masked(x, out, n, B: tl.constexpr):\n"
			   "    i = tl.program_id(0) * B + tl.arange(0, B)\n"
			   "    tl.store(out + i, tl.load(x + i, mask=i < n) + 1.0, mask=i < n)\n\n"
			   "@triton.jit\ndef rows(x, out, n, B: tl.constexpr):\n"
			   "    if tl.program_id(0) < n:\n"
			   "        tl.atomic_add(out + tl.program_id(0), tl.sum(tl.load(x + tl.arange(0, B))))\n\n"
			   "@triton.jit\ndef block(x, out, n, B: tl.constexpr):\n"
			   "    p = tl.make_block_ptr(x, [n], [1], [0], [B], [0])\n"
			   "    q = tl.make_block_ptr(out, [n], [1], [0], [B], [0])\n"
			   "    tl.store(q, tl.load(p, boundary_check=(0,)), boundary_check=(0,))\n\n"
			   "@triton.jit\ndef always(x, out, n, B: tl.constexpr):\n"
			   "    tl.store(out + tl.arange(0, B), tl.load(x + tl.arange(0, B)))\n";

enum { BLOCK = 16 };

static tl_status launch(tl_kernel *k, bool prepared, int programs, tl_arg x, tl_arg out, int n)
{
	bool one = !strcmp(k->name, "fill");
	tl_config config = {.grid = {programs}};
	tl_arg args[] = {x, out, tl_int(n), tl_int(BLOCK)};
	tl_prepared *p;
	if (!prepared)
		return tl_launch(k, &config, args + one, 4 - one);
	tl_status s = tl_prepare(k, &config, args + one, 4 - one, &p);
	if (!s) {
		s = tl_prepared_launch(p, NULL, NULL, args + one, 4 - one);
		tl_prepared_destroy(p);
	}
	return s;
}

static void any_pointer(void **state)
{
	static const char *const kinds[] = {"cpu", "cpu:check", "interp", "sim"};
	static const char *const names[] = {"fill", "masked", "rows", "block"};
	u32 refused = 0;
	(void)state;
	for (u32 d = 0; d < ARRAY_LEN(kinds); d++) {
		tl_context *ctx;
		tl_module *m;
		tl_buffer *b, *none, *gone;
		float was[64], is[64];
		for (u32 i = 0; i < 64; i++)
			was[i] = (float)i;
		ok(tl_context_create(kinds[d], &ctx));
		ok(tl_module_load_source(ctx, "e.tl", text, sizeof text - 1, &m));
		ok(tl_buffer_create(ctx, sizeof was, &b));
		ok(tl_buffer_write(b, 0, was, sizeof was));
		ok(tl_buffer_create(ctx, 0, &none));
		ok(tl_buffer_create(ctx, 4096, &gone));
		char *at = tl_buffer_ptr(b), *freed = tl_buffer_ptr(gone);
		tl_buffer_destroy(gone);
		void *const pointers[] = {NULL,
					  at,
					  at + sizeof was,
					  tl_buffer_ptr(none),
					  freed,
					  (void *)(uintptr_t)64,
					  (void *)(uintptr_t)(UINT64_MAX - 15)};
		for (u32 k = 0; k < ARRAY_LEN(names); k++)
			for (u32 i = 0; i < 4 * ARRAY_LEN(pointers); i++) {
				tl_kernel *kernel;
				void *p = pointers[i / 4];
				tl_arg a = i & 1 ? tl_range(TL_F32, p, 0) : tl_ptr(TL_F32, p);
				ok(tl_module_kernel(m, names[k], &kernel));
				if (!launch(kernel, i & 2, 3, a, a, 0))
					continue;
				print_error("%s: %s: %p %u: %s\n", kinds[d], names[k], p, i % 4, tl_error(NULL));
				refused++;
			}
		ok(tl_buffer_read(b, 0, is, sizeof is));
		assert_memory_equal(is, was, sizeof is);
		tl_context_destroy(ctx);
	}
	assert_int_equal(refused, 0);
}

/* An access that each program makes, whatever its arguments are, is refused with NULL; where accesses are checked,
 * others too. */
static void accesses_through_null(void **state)
{
	static const char *const kinds[] = {"cpu", "cpu:check", "interp", "sim"};
	(void)state;
	for (u32 d = 0; d < ARRAY_LEN(kinds); d++) {
		tl_context *ctx;
		tl_module *m;
		tl_kernel *k;
		tl_buffer *b;
		ok(tl_context_create(kinds[d], &ctx));
		ok(tl_module_load_source(ctx, "e.tl", text, sizeof text - 1, &m));
		ok(tl_buffer_create(ctx, 4 * BLOCK, &b));
		ok(tl_buffer_fill(b, 0));
		ok(tl_module_kernel(m, "always", &k));
		for (int way = 0; way < 4; way++) {
			tl_arg none = tl_ptr(TL_F32, NULL), there = tl_buf(TL_F32, b);
			tl_status s = launch(k, way & 1, 1, way & 2 ? none : there, way & 2 ? there : none, 0);
			assert_true(s == TL_ERR_ARGUMENT || s == TL_ERR_KERNEL);
			assert_non_null(strstr(tl_error(NULL), d ? "" : way & 2 ? "'x' is NULL" : "'out' is NULL"));
		}
		if (d) {
			ok(tl_module_kernel(m, "masked", &k));
			assert_int_equal(launch(k, false, 1, tl_buf(TL_F32, b), tl_ptr(TL_F32, NULL), 1),
					 TL_ERR_KERNEL);
		}
		tl_context_destroy(ctx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(any_pointer), cmocka_unit_test(accesses_through_null)};
	setenv("TL_CACHE", "0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

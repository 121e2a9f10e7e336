/* Integers that overflow: with `debug` an error, and with `wraps` allowed although assertions count. And the list of
 * what memory a kernel accesses. */
#include "fixture.h"
#include "support/base.h"

static const char text[] = "import triton, triton.language as tl\n"
			   "@triton.jit\n"
			   "def k(x, y, z, unused, n, BELOW: tl.constexpr):\n"
			   "    i = tl.arange(0, 64)\n"
			   "    v = tl.load(x + i, mask=i < n)\n"
			   "    tl.device_assert(v < BELOW, \"too large\")\n"
			   "    tl.store(y + i, v * 1103515245 + 12345, mask=i < n)\n"
			   "    tl.atomic_add(z + i, 1)\n";

enum { N = 64 };
static const char *const devices[] = {"interp", "cpu", "cpu:check", "sim"};

static tl_kernel *open_kernel(const char *device, tl_context **ctx)
{
	tl_module *m;
	tl_kernel *k;
	ok(tl_context_create(device, ctx));
	ok(tl_module_load_source(*ctx, "k.tl", text, strlen(text), &m));
	ok(tl_module_kernel(m, "k", &k));
	return k;
}

static void overflow(void **state)
{
	(void)state;
	const int32_t most = 1 << 30;
	int32_t x[N], y[N], z[N] = {0};
	for (int i = 0; i < N; i++)
		x[i] = (int32_t)((uint32_t)rand() * 77u % (1u << 30));
	x[5] = most - 1;
	for (u32 d = 0; d < ARRAY_LEN(devices); d++) {
		tl_context *ctx;
		tl_kernel *k = open_kernel(devices[d], &ctx);
		tl_buffer *b[3];
		for (int i = 0; i < 3; i++)
			ok(tl_buffer_create(ctx, sizeof x, &b[i]));
		ok(tl_buffer_write(b[0], 0, x, sizeof x));
		ok(tl_buffer_fill(b[1], 0xAA));
		ok(tl_buffer_write(b[2], 0, z, sizeof z));
		tl_arg args[] = {tl_buf(TL_I32, b[0]), tl_buf(TL_I32, b[1]), tl_buf(TL_I32, b[2]), tl_buf(TL_I32, b[2]),
				 tl_int(N), tl_int(most)};
		assert_error(tl_launch(k, &(tl_config){.grid = {1}, .debug = true}, args, ARRAY_LEN(args)),
			     TL_ERR_KERNEL, "overflow");
		const tl_config wraps = {.grid = {1}, .debug = true, .wraps = 1};
		ok(tl_launch(k, &wraps, args, ARRAY_LEN(args)));
		ok(tl_buffer_read(b[1], 0, y, sizeof y));
		for (int i = 0; i < N; i++)
			assert_int_equal(y[i], (int32_t)((uint32_t)x[i] * 1103515245u + 12345u));
		args[5] = tl_int(most - 1);
		assert_error(tl_launch(k, &wraps, args, ARRAY_LEN(args)), TL_ERR_KERNEL, "too large");
		tl_context_destroy(ctx);
	}
}

static void accesses(void **state)
{
	(void)state;
	for (u32 d = 0; d < ARRAY_LEN(devices); d++) {
		tl_context *ctx;
		char *list;
		tl_kernel *k = open_kernel(devices[d], &ctx);
		int32_t memory[4 * N];
		tl_arg args[] = {tl_range(TL_I32, memory, 4 * N), tl_range(TL_I32, memory + N, 4 * N),
				 tl_range(TL_I32, memory + 2 * N, 4 * N), tl_range(TL_I32, memory + 3 * N, 4 * N),
				 tl_int(N), tl_int(9)};
		ok(tl_kernel_dump(k, NULL, args, ARRAY_LEN(args), "accesses", &list));
		assert_string_equal(list, "x: read\ny: written\nz: read written\nunused:\n");
		tl_free(list);
		tl_context_destroy(ctx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(overflow), cmocka_unit_test(accesses)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

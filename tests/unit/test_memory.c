/* Memory that runs out: each allocation of libtl fails in turn, from creating a context to destroying it, and must end
 * in a status with a text, in nothing lost, and in a context on which the same call then succeeds.
 *
 * The linker gives this program's functions the calls of malloc and its like that libtl makes (--wrap, tests.mk); those
 * inside LLVM and the C library are not touched. operator new is LLVM's: the program's definition takes the place of
 * the C++ library's. */
#include <dirent.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/api/objects.h"

/* --- allocators that fail ------------------------------------------------------------------------------------ */

static struct {
	atomic_long calls;  /* since it was armed */
	atomic_long live;   /* blocks */
	_Atomic(long) fail; /* the call that gets nothing; 0: none */
	atomic_bool on;     /* and so do all behind it */
} heap;

static bool refuses(long call, long fail, bool on)
{
	return fail && (call == fail || (on && call > fail));
}

#define HEAP_REFUSES() refuses(atomic_fetch_add(&heap.calls, 1) + 1, heap.fail, heap.on)

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
char *__real_strdup(const char *s);
void __real_free(void *p);

static void *count(void *p)
{
	atomic_fetch_add(&heap.live, p != NULL);
	return p;
}
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n)
{
	return HEAP_REFUSES() ? NULL : count(__real_malloc(n));
}
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	return HEAP_REFUSES() ? NULL : count(__real_calloc(n, size));
}
void *__wrap_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n)
{
	if (HEAP_REFUSES())
		return NULL;
	return p ? __real_realloc(p, n) : count(__real_realloc(p, n));
}
void *__wrap_aligned_alloc(size_t align, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n)
{
	return HEAP_REFUSES() ? NULL : count(__real_aligned_alloc(align, n));
}
char *__wrap_strdup(const char *s);
char *__wrap_strdup(const char *s)
{
	return HEAP_REFUSES() ? NULL : count(__real_strdup(s));
}
void __wrap_free(void *p);
void __wrap_free(void *p)
{
	atomic_fetch_sub(&heap.live, p != NULL);
	__real_free(p);
}

static void arm(long n, bool on)
{
	atomic_store(&heap.calls, 0);
	atomic_store(&heap.on, on);
	atomic_store(&heap.fail, n);
}

static void disarm(void)
{
	atomic_store(&heap.fail, 0);
}

/* --- kernels ------------------------------------------------------------------------------------------------- */

static const char small[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\ndef scale(x_ptr, out_ptr, n, s, BLOCK: tl.constexpr):\n"
	"    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
	"    x = tl.load(x_ptr + i, mask=i < n)\n"
	"    tl.store(out_ptr + i, x * s, mask=i < n)\n";

static const char large[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\ndef scale(x_ptr, out_ptr, n, s, BLOCK: tl.constexpr):\n"
	"    i = tl.arange(0, 64)\n"
	"    acc = tl.zeros([64, 64], tl.float32)\n"
	"    for k in range(0, 128, 32):\n"
	"        j = k + tl.arange(0, 32)\n"
	"        a = tl.load(x_ptr + (i[:, None] * 0 + j[None, :]) % n)\n"
	"        acc += tl.dot(a.to(tl.float16), tl.trans(a.to(tl.float16)))\n"
	"    row = tl.sum(tl.exp2(acc * 0), 1) / 64\n"
	"    pid = tl.program_id(0)\n"
	"    x = tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK), mask=pid * BLOCK + tl.arange(0, BLOCK) < n)\n"
	"    tl.store(out_ptr + pid * BLOCK + tl.arange(0, BLOCK), x * s * tl.max(row, 0), mask=pid * "
	"BLOCK + tl.arange(0, BLOCK) < n)\n";

enum { N = 200, BLOCK = 64 };

/* A call failed: out of memory, with a text; the same call then succeeds. */
static bool failed_well(tl_status s)
{
	if (!s)
		return false;
	disarm();
	if (s != TL_ERR_MEMORY || !strstr(tl_error(NULL), "memory"))
		fail_msg("status '%s', text '%s'", tl_status_name(s), tl_error(NULL));
	return true;
}

#define STEP(call)                                                                      \
	do {                                                                            \
		if (failed_well(call)) {                                                \
			tl_status again_ = (call);                                      \
			if (again_)                                                     \
				fail_msg("again: %s", tl_error(NULL));                  \
		}                                                                       \
		assert_string_equal(tl_error(NULL), "");                                \
	} while (0)

/* Everything, with the n-th allocation of it failing; true when there was none such. */
static bool run(const char *device, const char *source, long n, bool on)
{
	float x[N], out[N] = {0};
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	tl_buffer *dx, *dout;
	for (int i = 0; i < N; i++)
		x[i] = (float)i;
	arm(n, on);
	STEP(tl_context_create(device, &ctx));
	STEP(tl_module_load_source(ctx, "small.tl", source, strlen(source), &m));
	STEP(tl_module_kernel(m, "scale", &k));
	STEP(tl_buffer_create(ctx, sizeof x, &dx));
	STEP(tl_buffer_create(ctx, sizeof x, &dout));
	STEP(tl_buffer_write(dx, 0, x, sizeof x));
	tl_config config = {.grid = {(N + BLOCK - 1) / BLOCK}};
	tl_arg args[] = {tl_buf(TL_F32, dx), tl_buf(TL_F32, dout), tl_int(N), tl_float(2), tl_int(BLOCK)};
	STEP(tl_launch(k, &config, args, 5));
	STEP(tl_launch(k, &config, args, 5));
	tl_prepared *p;
	STEP(tl_prepare(k, &config, args, 5, &p));
	STEP(tl_prepared_add(p, NULL, args, 5));
	STEP(tl_prepared_launch(p, NULL, NULL, args, 5));
	STEP(tl_synchronize(ctx));
	STEP(tl_buffer_read(dout, 0, out, sizeof out));
	for (int i = 0; i < N; i++)
		assert_float_equal(out[i], 2 * x[i], 0);
	char *text;
	STEP(tl_kernel_dump(k, &config, args, 5, "ttir", &text));
	assert_non_null(strstr(text, "tt.load"));
	tl_free(text);
	tl_resources resources;
	STEP(tl_kernel_resources(k, &config, args, 5, &resources));
	tl_event *event;
	tl_buffer *wrapped, *host;
	STEP(tl_event_create(ctx, &event));
	STEP(tl_buffer_wrap(ctx, x, sizeof x, &wrapped));
	STEP(tl_buffer_create_host(ctx, sizeof x, &host));
	tl_event_destroy(event);
	double ms;
	STEP(tl_time(k, &config, args, 5, 0, 1, &ms));
	bool none = atomic_load(&heap.calls) < n;
	tl_buffer_destroy(dx);
	tl_module_destroy(m);
	tl_context_destroy(ctx);
	disarm();
	return none;
}

/* Each allocation, or one in `step`, alone and with all behind it. */
static void fail_each(const char *device, const char *source, long step)
{
	long n = 1;
	for (int on = 0; on < 2; on++)
		for (n = 1; !run(device, source, n, on); n += step) {
		}
	assert_true(n > 20);
	long live = atomic_load(&heap.live);
	for (n = 1; !run(device, source, n, false); n += step)
		if (atomic_load(&heap.live) != live)
			fail_msg("allocation %ld failed: %ld blocks are lost", n, atomic_load(&heap.live) - live);
	print_message("%s: %ld allocations\n", device, n - 1);
}

static void test_interp(void **state)
{
	(void)state;
	fail_each("interp", small, 1);
}

static void test_sim(void **state)
{
	(void)state;
	fail_each("sim", small, 1);
	fail_each("sim:80", small, 1);
}

static void remove_entries(void)
{
	char command[100];
	snprintf(command, sizeof command, "rm -f %s/*", getenv("TL_CACHE_DIR"));
	assert_int_equal(system(command), 0);
}

static int open_files(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* With a cache on disk: where the kernel is found, and, once a run, where it is not. */
static void test_cached(void **state)
{
	(void)state;
	char folder[] = "/tmp/tlc-memory-XXXXXX";
	assert_non_null(mkdtemp(folder));
	setenv("TL_CACHE_DIR", folder, 1);
	setenv("TL_CACHE", "1", 1);
	assert_true(run("sim", small, LONG_MAX, false));
	int files = open_files();
	fail_each("sim", small, 1);
	long n = 1, live = atomic_load(&heap.live);
	for (; remove_entries(), !run("sim", small, n, false); n++)
		if (atomic_load(&heap.live) != live)
			fail_msg("allocation %ld failed: %ld blocks are lost", n, atomic_load(&heap.live) - live);
	print_message("sim, not cached: %ld allocations\n", n);
	assert_int_equal(open_files(), files);
	remove_entries();
	assert_int_equal(rmdir(folder), 0);
	setenv("TL_CACHE", "0", 1);
}

static void test_large(void **state)
{
	(void)state;
	fail_each("interp", large, 3);
	fail_each("sim", large, 17);
}

static int launched;

static tl_status only_count(struct device *d, const struct device_launch *l)
{
	(void)d, (void)l;
	launched++;
	return TL_OK;
}

/* A launch like the one before it: of the runtime, without what a device does. */
static void test_launches_take_none(void **state)
{
	(void)state;
	static struct device_ops ops;
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	tl_prepared *p;
	float x[N];
	tl_arg args[] = {tl_range(TL_F32, x, 4), tl_range(TL_F32, x + 16, 4), tl_int(N), tl_float(2), tl_int(BLOCK)};
	const tl_config config = {.grid = {4}};
	ops = sim_ops;
	ops.launch = only_count;
	ops.faultless = true;
	assert_int_equal(tl_context_create("sim", &ctx), TL_OK);
	ctx->dev->ops = &ops;
	assert_int_equal(tl_module_load_source(ctx, "small.tl", small, sizeof small - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "scale", &k), TL_OK);
	assert_int_equal(tl_prepare(k, &config, args, 5, &p), TL_OK);
	assert_int_equal(tl_launch(k, &config, args, 5), TL_OK);
	atomic_store(&heap.calls, 0);
	for (int i = 0; i < 4; i++) {
		args[2] = tl_int(N + 8 * i); /* 8 divides it, and 16 every other one */
		assert_int_equal(tl_launch(k, &config, args, 5), TL_OK);
		if (i == 1) /* both have been seen */
			atomic_store(&heap.calls, 0);
		assert_int_equal(tl_prepared_launch(p, NULL, NULL, args, 5), TL_OK);
	}
	assert_int_equal(atomic_load(&heap.calls), 0);
	assert_int_equal(launched, 9);
	tl_context_destroy(ctx);
}

int main(void)
{
	setenv("OMP_NUM_THREADS", "2", 1);
	setenv("TL_CACHE", "0", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interp),
		cmocka_unit_test(test_sim),
		cmocka_unit_test(test_cached),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_launches_take_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Tuning through the public calls on a simulated CUDA driver: order of copies and launches, kernels that do not end,
 * and calls of the driver that fail. */
#include "cache_folder.h"
#include "fake_cuda.h"

struct tuned {
	tl_context *ctx;
	tl_module *module;
	tl_tuner *tuner;
	tl_buffer *buffer;
};

/* Opens a context and creates a tuner. Returns the status of the first call that fails. */
static tl_status open_tuned(struct tuned *t)
{
	static const char source[] =
		"import triton\nimport triton.language as tl\n\n"
		"@triton.autotune(configs=[triton.Config({'B': b}) for b in (128, 256, 512)], key=[])\n@triton.jit\n"
		"def k(x, B: tl.constexpr):\n    i = tl.arange(0, B)\n    tl.store(x + i, tl.load(x + i) + 1)\n";
	static const tl_tuning options = {.threads = 1, .limit_ms = 5, .rep_ms = 1};
	struct device *d;
	tl_kernel *k;
	*t = (struct tuned){.ctx = NULL};
	tl_status s = cuda_device_new(&api, 0, NULL, &d);
	if (!s)
		s = context_new(d, &t->ctx);
	if (!s)
		s = tl_buffer_create(t->ctx, 4096, &t->buffer);
	if (!s)
		s = tl_module_load_source(t->ctx, "k.tl", source, sizeof source - 1, &t->module);
	if (!s)
		s = tl_module_kernel(t->module, "k", &k);
	return s ? s : tl_tuner_create(k, &options, &t->tuner);
}

static void close_tuned(struct tuned *t)
{
	tl_tuner_destroy(t->tuner);
	tl_context_destroy(t->ctx);
}

static tl_status choose(struct tuned *t, tl_choice *c)
{
	const tl_arg x = tl_buf(TL_F32, t->buffer);
	return tl_tuner_choose(t->tuner, &(tl_config){.grid = {1}}, NULL, NULL, &x, 1, c);
}

/* The memory that the kernel writes is saved on the device, and restored before each configuration and at the end. Each
 * configuration is tried by a single launch, then timed. The tuner frees its events and copies. */
static void tuning(void **state)
{
	(void)state;
	struct tuned t;
	tl_choice c;
	assert_int_equal(open_tuned(&t), TL_OK);
	driver.log[0] = 0;
	assert_int_equal(choose(&t, &c), TL_OK);
	assert_int_equal(c.tried, 3);
	assert_true(c.cost > 0);
	const char *save = strstr(driver.log, " copy"), *try = strstr(driver.log, " launch record query");
	assert_non_null(save);
	assert_true(try > save && strstr(save + 5, " copy") < try);
	assert_int_equal(driver.events, 0);
	assert_int_equal(driver.allocations, 2); /* the buffer, and the memory that flushes the L2 cache */
	close_tuned(&t);
	assert_clean(0);
}

/* The first configuration does not end: the device becomes unusable, and the next process skips that configuration. */
static void endless_configuration(void **state)
{
	struct tuned t;
	tl_choice c;
	assert_int_equal(open_tuned(&t), TL_OK);
	driver.never_ends = true;
	assert_error(choose(&t, &c), TL_ERR_KERNEL,
		     "k: the configuration B=128 left the device unusable: the kernel has not ended after 5 ms");
	close_tuned(&t);
	reset(state);
	assert_int_equal(open_tuned(&t), TL_OK);
	assert_int_equal(choose(&t, &c), TL_OK);
	assert_int_equal(c.tried, 2);
	assert_string_not_equal(c.text, "B=128");
	char *report;
	assert_int_equal(tl_tuner_report(t.tuner, &report), TL_OK);
	assert_non_null(strstr(report, "it failed before: the kernel has not ended after 5 ms"));
	tl_free(report);
	close_tuned(&t);
	assert_clean(0);
}

/* A configuration that the driver refuses is dropped. Whichever call of the driver fails, nothing leaks except a copy
 * that the driver does not free. */
static void failing_configurations(void **state)
{
	setenv("TL_CACHE", "0", 1);
	int n = 0, made = 0, chosen = 0;
	do {
		struct tuned t;
		tl_choice c;
		reset(state);
		driver.error = 719;
		driver.fail_at = ++n;
		bool good = !open_tuned(&t) && !choose(&t, &c);
		chosen += good;
		made = driver.calls;
		close_tuned(&t);
		if (good && driver.allocations == 1) /* one of the copies, which are freed before the choice */
			driver.allocations = 0;
		if (n <= made || n > driver.calls)
			assert_clean(0);
	} while (n <= driver.calls);
	unsetenv("TL_CACHE");
	assert_true(n > 100 && chosen > 20 && chosen < n);
}

static int new_driver_and_folder(void **state)
{
	reset(state);
	return new_folder(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tuning, new_driver_and_folder, remove_folder),
		cmocka_unit_test_setup_teardown(endless_configuration, new_driver_and_folder, remove_folder),
		cmocka_unit_test_setup(failing_configurations, reset),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

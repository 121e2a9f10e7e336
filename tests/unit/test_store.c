/* Contexts that share what they compile, as those of several GPUs do: here on simulated ones. */
#include <pthread.h>
#include <unistd.h>

#include "test_runtime.h"

static const char text[] = "import triton\nimport triton.language as tl\n\n"
			   "@triton.jit\ndef affine(x, F: tl.constexpr):\n"
			   "    i = tl.arange(0, 16)\n"
			   "    tl.store(x + i, tl.load(x + i) * F + i)\n\n"
			   "@triton.jit\ndef wrong(x):\n    tl.store(x, undefined_name)\n";

static _Atomic int compiled, refuse;
static struct device_ops ops;

static bool counting_compile(struct device *d, const struct build *b, struct compiled *out)
{
	compiled++;
	usleep(1000);
	if (refuse && refuse--)
		tl_out_of_memory(1);
	const struct target target = sim_ops.target(d);
	return device_compile(&target, b, out);
}

static tl_context *open_context(const char *device)
{
	tl_context *ctx;
	if (tl_context_create(device, &ctx))
		fail_msg("%s", tl_error(NULL));
	ctx->dev->ops = &ops;
	return ctx;
}

static tl_status affine(tl_context *ctx, int64_t factor)
{
	tl_module *m;
	tl_kernel *k;
	tl_buffer *b;
	i32 x[16];
	for (int i = 0; i < 16; i++)
		x[i] = 10 - i;
	assert_int_equal(tl_module_load_source(ctx, "t.tl", text, sizeof text - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "affine", &k), TL_OK);
	assert_int_equal(tl_buffer_create(ctx, sizeof x, &b), TL_OK);
	assert_int_equal(tl_buffer_write(b, 0, x, sizeof x), TL_OK);
	tl_status s = tl_launch(k, &(tl_config){.grid = {1}}, ARGS(tl_buf(TL_I32, b), tl_int(factor)));
	assert_int_equal(tl_buffer_read(b, 0, x, sizeof x), TL_OK);
	for (int i = 0; i < 16 && !s; i++)
		assert_int_equal(x[i], (10 - i) * factor + i);
	tl_buffer_destroy(b);
	return s;
}

static int reset(void **state)
{
	(void)state;
	setenv("TL_CACHE", "0", true);
	ops = sim_ops;
	ops.compile = counting_compile;
	compiled = refuse = 0;
	return 0;
}

static void shared(void **state)
{
	(void)state;
	tl_context *a = open_context("sim"), *b = open_context("sim"), *c = open_context("sim:80"),
		   *alone = open_context("sim");
	assert_int_equal(tl_context_share(b, a), TL_OK);
	assert_int_equal(tl_context_share(b, a), TL_OK);
	assert_int_equal(tl_context_share(c, b), TL_OK);
	assert_int_equal(affine(a, 3), TL_OK);
	assert_int_equal(affine(b, 3), TL_OK);
	assert_int_equal(affine(b, 3), TL_OK); /* another module of the same text */
	assert_int_equal(compiled, 1);
	assert_int_equal(affine(b, 5), TL_OK);
	assert_int_equal(affine(a, 5), TL_OK);
	assert_int_equal(compiled, 2);
	assert_int_equal(affine(c, 3), TL_OK); /* another target */
	assert_int_equal(affine(alone, 3), TL_OK);
	assert_int_equal(compiled, 4);
	assert_error(tl_context_share(alone, a), TL_ERR_ARGUMENT, "the context has compiled kernels already");
	assert_error(tl_context_share(alone, NULL), TL_ERR_ARGUMENT, "the other context is NULL");
	/* what a context took from one that ends is its own */
	tl_context_destroy(a);
	assert_int_equal(affine(b, 5), TL_OK);
	assert_int_equal(compiled, 4);
	tl_context_destroy(c);
	tl_context_destroy(b);
	tl_context_destroy(alone);
}

/* --- all at once ------------------------------------------------------------------------------------------------- */

enum { CONTEXTS = 4, THREADS = 12, VARIANTS = 5 };

struct job {
	pthread_t thread;
	tl_context *ctx;
	int failures;
};

static void *work(void *arg)
{
	struct job *j = arg;
	for (int f = 2; f < 2 + VARIANTS; f++)
		j->failures += affine(j->ctx, f) != TL_OK;
	return NULL;
}

static void cold(int refused)
{
	tl_context *ctx[CONTEXTS];
	struct job jobs[THREADS];
	int failures = 0;
	compiled = 0;
	refuse = refused;
	for (int i = 0; i < CONTEXTS; i++) {
		ctx[i] = open_context("sim");
		if (i)
			assert_int_equal(tl_context_share(ctx[i], ctx[i - 1]), TL_OK);
	}
	for (int i = 0; i < THREADS; i++) {
		jobs[i] = (struct job){.ctx = ctx[i % CONTEXTS]};
		assert_int_equal(pthread_create(&jobs[i].thread, NULL, work, &jobs[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(jobs[i].thread, NULL);
		failures += jobs[i].failures;
	}
	assert_int_equal(compiled, VARIANTS + refused);
	assert_int_equal(failures, refused);
	for (int i = 0; i < CONTEXTS; i++)
		tl_context_destroy(ctx[i]);
}

/* Each variant once; where a compilation runs out of memory, that launch fails, and another makes it. */
static void threads(void **state)
{
	(void)state;
	cold(0);
	cold(3);
}

static void wrong_kernels(void **state)
{
	(void)state;
	tl_context *ctx[2] = {open_context("sim"), open_context("sim")};
	assert_int_equal(tl_context_share(ctx[1], ctx[0]), TL_OK);
	for (int i = 0; i < 2; i++) {
		tl_module *m;
		tl_kernel *k;
		assert_int_equal(tl_module_load_source(ctx[i], "t.tl", text, sizeof text - 1, &m), TL_OK);
		assert_int_equal(tl_module_kernel(m, "wrong", &k), TL_OK);
		assert_error(tl_prepare(k, NULL, ARGS(tl_ptr(TL_F32, x16)), NULL), TL_ERR_COMPILE, "undefined_name");
	}
	tl_context_destroy(ctx[0]);
	tl_context_destroy(ctx[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup(shared, reset),
					   cmocka_unit_test_setup(threads, reset),
					   cmocka_unit_test_setup(wrong_kernels, reset)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

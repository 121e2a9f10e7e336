/* Threads that share a context, a module and a kernel, each doing all that the API allows at once: for the thread
 * sanitizer (make test-threads), and for right results. */
#include <pthread.h>

#include "test_runtime.h"

enum { THREADS = 8, ROUNDS = 6, N = 256 };

static const char text[] = "import triton\nimport triton.language as tl\n\n"
			   "@triton.jit\ndef k(x, n, FACTOR: tl.constexpr):\n"
			   "    i = tl.program_id(0) * 64 + tl.arange(0, 64)\n"
			   "    tl.store(x + i, tl.load(x + i, mask=i < n) * FACTOR, mask=i < n)\n";

static const char wrong[] = "import triton\nimport triton.language as tl\n\n"
			    "@triton.jit\ndef k(x):\n"
			    "    tl.store(x, undefined_name)\n";

struct worker {
	tl_context *ctx;
	tl_module *module;
	int id;
	bool ok;
	pthread_t thread;
};

static void ignore(void *user, const tl_diagnostic *d)
{
	(void)user, (void)d;
}

static bool round_of(struct worker *w, int round)
{
	int32_t x[N], is[N], factor = 2 + (w->id + round) % 3;
	tl_kernel *k, *bad;
	tl_buffer *b, *copy;
	tl_event *e;
	tl_module *m;
	char *said, *ir;
	tl_resources r;
	for (int i = 0; i < N; i++)
		x[i] = i + w->id;
	bool ok = !tl_module_kernel(w->module, "k", &k) && !tl_buffer_create(w->ctx, sizeof x, &b) &&
		  !tl_buffer_create(w->ctx, sizeof x, &copy) && !tl_event_create(w->ctx, &e) &&
		  !tl_buffer_write(b, 0, x, sizeof x);
	if (!ok)
		return false;
	tl_arg args[] = {tl_buf(TL_I32, b), tl_int(N), tl_int(factor)};
	tl_config config = {.grid = {N / 64}, .num_warps = 1};
	ok = !tl_launch(k, &config, args, 3) && !tl_launch(k, &config, args, 3) && !tl_event_record(e, NULL) &&
	     !tl_buffer_copy_async(copy, 0, b, 0, sizeof x, NULL) && !tl_buffer_read(copy, 0, is, sizeof is) &&
	     !tl_kernel_resources(k, &config, args, 3, &r);
	for (int i = 0; i < N && ok; i++)
		ok = is[i] == x[i] * factor * factor;
	/* a module of the thread's own, which fails; what is said of it goes to the callback and the text */
	ok = ok && !tl_context_diagnostics(w->ctx, round % 2 ? ignore : NULL, NULL, false) &&
	     !tl_module_load_source(w->ctx, "w.tl", wrong, sizeof wrong - 1, &m) && !tl_module_kernel(m, "k", &bad) &&
	     tl_launch(bad, &config, args, 1) == TL_ERR_COMPILE && tl_error_details()->line == 6 &&
	     !tl_module_diagnostics(m, &said) && !tl_kernel_dump(k, &config, args, 3, "ttir", &ir);
	if (ok) {
		tl_free(said);
		tl_free(ir);
		tl_module_destroy(m);
	}
	tl_event_destroy(e);
	tl_buffer_destroy(copy);
	tl_buffer_destroy(b);
	return ok;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	w->ok = true;
	for (int i = 0; i < ROUNDS && w->ok; i++)
		w->ok = round_of(w, i);
	if (!w->ok)
		fprintf(stderr, "%s\n", tl_error(NULL));
	return NULL;
}

static void share(const char *device)
{
	struct worker w[THREADS];
	tl_context *ctx;
	tl_module *m;
	assert_int_equal(tl_context_create(device, &ctx), TL_OK);
	assert_int_equal(tl_module_load_source(ctx, "t.tl", text, sizeof text - 1, &m), TL_OK);
	for (int i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.ctx = ctx, .module = m, .id = i};
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		assert_true(w[i].ok);
	}
	tl_context_destroy(ctx);
}

static void on_interp(void **state)
{
	(void)state;
	share("interp");
}

static void on_sim(void **state)
{
	(void)state;
	share("sim");
}

/* The last of them, whichever it is, ends the context. */
static void *destroy(void *buffer)
{
	tl_buffer_destroy(buffer);
	return NULL;
}

static void released(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		tl_context *ctx;
		tl_buffer *b[THREADS];
		pthread_t t[THREADS];
		assert_int_equal(tl_context_create("sim", &ctx), TL_OK);
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(tl_buffer_create(ctx, 64, &b[i]), TL_OK);
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&t[i], NULL, destroy, b[i]), 0);
		tl_context_release(ctx);
		for (int i = 0; i < THREADS; i++)
			pthread_join(t[i], NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(on_interp), cmocka_unit_test(on_sim),
					   cmocka_unit_test(released)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

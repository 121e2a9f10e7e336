/* fork(): the child launches in a context of its own, and in one of its parent, whatever the parent's threads were
 * doing; nothing hangs. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_runtime.h"

static const char text[] = "import triton\nimport triton.language as tl\n\n"
			   "@triton.jit\ndef k(x, n, C: tl.constexpr):\n"
			   "    tl.store(x + tl.program_id(0), n * C + tl.program_id(0))\n\n"
			   "@triton.jit\ndef waits(x, n):\n"
			   "    while tl.atomic_add(x, 0) != n:\n        pass\n";

enum { PROGRAMS = 64, SECONDS = 60 };

static tl_context *open_context(const char *device, tl_module **m)
{
	tl_context *ctx;
	if (tl_context_create(device, &ctx) || tl_module_load_source(ctx, "f.tl", text, sizeof text - 1, m))
		fail_msg("%s", tl_error(NULL));
	assert_int_equal(tl_context_threads(ctx, 3), TL_OK);
	return ctx;
}

/* What went wrong, as an exit status: 0 for nothing, 2 for an error, 3 for a wrong value. */
enum { RIGHT, REFUSED = 2, WRONG };

static int launch(tl_context *ctx, tl_module *m, int n, int factor)
{
	int32_t is[PROGRAMS];
	tl_kernel *k;
	tl_buffer *b;
	tl_status s;
	memset(is, 0xA5, sizeof is);
	if ((s = tl_module_kernel(m, "k", &k)) || (s = tl_buffer_create(ctx, sizeof is, &b)))
		return REFUSED;
	if ((s = tl_buffer_write(b, 0, is, sizeof is)) ||
	    (s = tl_launch(k, &(tl_config){.grid = {PROGRAMS}}, ARGS(tl_buf(TL_I32, b), tl_int(n), tl_int(factor)))) ||
	    (s = tl_buffer_read(b, 0, is, sizeof is)))
		return REFUSED;
	tl_buffer_destroy(b);
	for (int i = 0; i < PROGRAMS; i++)
		if (is[i] != n * factor + i)
			return WRONG;
	return RIGHT;
}

static int launch_in_new(const char *device, int factor)
{
	tl_module *m;
	tl_context *ctx;
	if (tl_context_create(device, &ctx) || tl_module_load_source(ctx, "f.tl", text, sizeof text - 1, &m))
		return REFUSED;
	int is = launch(ctx, m, 11, factor);
	tl_context_destroy(ctx);
	return is;
}

static pid_t fork_child(void)
{
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child)
		alarm(SECONDS);
	return child;
}

/* Its exit status; a child that hangs ends by the alarm. */
static int status_of(pid_t child)
{
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status))
		fail_msg("the child ended by signal %d%s", WTERMSIG(status),
			 WTERMSIG(status) == SIGALRM ? ": it hung" : "");
	return WEXITSTATUS(status);
}

static const char *const kinds[] = {"interp", "cpu", "cpu:check", "sim"};

/* The parent has launched, and does nothing. */
static void idle_parent(void **state)
{
	(void)state;
	for (u32 d = 0; d < ARRAY_LEN(kinds); d++) {
		tl_module *m;
		tl_context *ctx = open_context(kinds[d], &m);
		assert_int_equal(launch(ctx, m, 5, 2), RIGHT);
		pid_t child = fork_child();
		if (!child) {
			int is = launch_in_new(kinds[d], 3);
			is = is ? is : launch(ctx, m, 6, 2);  /* a variant that there was */
			is = is ? is : launch(ctx, m, 7, 33); /* one that there was not */
			pid_t grandchild = is ? 0 : fork();
			if (!is && !grandchild) {
				alarm(SECONDS);
				_exit(launch(ctx, m, 8, 2));
			}
			is = is ? is : status_of(grandchild);
			tl_context_destroy(ctx);
			_exit(is);
		}
		assert_int_equal(launch(ctx, m, 9, 2), RIGHT);
		assert_int_equal(status_of(child), RIGHT);
		tl_context_destroy(ctx);
	}
}

struct busy {
	tl_context *ctx;
	tl_module *m;
	_Atomic bool ends;
	_Atomic int factor; /* a variant each */
	int is;
};

static void *launch_on(void *busy)
{
	struct busy *b = busy;
	while (!atomic_load(&b->ends) && !b->is)
		b->is = launch(b->ctx, b->m, 5, 2 + atomic_fetch_add(&b->factor, 1) % 40);
	return NULL;
}

/* Threads of the parent compile and launch. */
static void busy_parent(void **state)
{
	enum { FORKS = 12, THREADS = 3 };
	u32 refused = 0;
	(void)state;
#ifdef __SANITIZE_ADDRESS__
	/* A thread of the parent may hold the lock of the sanitizer's allocator, for which the child then waits. */
	skip();
#endif
	for (u32 d = 0; d < ARRAY_LEN(kinds); d++) {
		struct busy b = {0};
		tl_module *m;
		tl_context *idle = open_context(kinds[d], &m);
		pthread_t threads[THREADS];
		assert_int_equal(launch(idle, m, 4, 2), RIGHT);
		b.ctx = open_context(kinds[d], &b.m);
		for (u32 i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, launch_on, &b), 0);
		for (u32 i = 0; i < FORKS; i++) {
			usleep(1000 + 700 * i);
			pid_t child = fork_child();
			if (!child) {
				int is = i % 2 ? launch_in_new(kinds[d], 5) : launch(idle, m, 3, 2);
				if (is)
					_exit(is);
				is = launch(b.ctx, b.m, 6, 2);
				if (is == REFUSED && strstr(tl_error(NULL), "when the process was forked"))
					is = 10;
				tl_context_destroy(b.ctx);
				_exit(is);
			}
			int is = status_of(child);
			assert_true(is == RIGHT || is == 10);
			refused += is != RIGHT;
		}
		atomic_store(&b.ends, true);
		for (u32 i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		assert_int_equal(b.is, RIGHT);
		tl_context_destroy(b.ctx);
		tl_context_destroy(idle);
	}
	assert_true(refused); /* the threads were busy */
}

struct waiting {
	tl_module *m;
	tl_buffer *flag;
	tl_status is;
};

static void *wait_on(void *waiting)
{
	struct waiting *w = waiting;
	tl_kernel *k;
	w->is = tl_module_kernel(w->m, "waits", &k);
	if (!w->is)
		w->is = tl_launch(k, &(tl_config){.grid = {2}}, ARGS(tl_buf(TL_I32, w->flag), tl_int(1)));
	return NULL;
}

/* A launch that waits for the parent does not hold fork() up, and its context is refused in the child. */
static void waiting_parent(void **state)
{
	struct waiting w;
	pthread_t thread;
	(void)state;
	tl_context *ctx = open_context("cpu", &w.m);
	assert_int_equal(tl_buffer_create(ctx, 4, &w.flag), TL_OK);
	assert_int_equal(tl_buffer_fill(w.flag, 0), TL_OK);
	assert_int_equal(pthread_create(&thread, NULL, wait_on, &w), 0);
	usleep(100000);
	pid_t child = fork_child();
	if (!child) {
		int is = launch_in_new("cpu", 3);
		_exit(is ? is : launch(ctx, w.m, 1, 1));
	}
	assert_int_equal(status_of(child), REFUSED);
	__atomic_store_n((int32_t *)tl_buffer_ptr(w.flag), 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_int_equal(w.is, TL_OK);
	tl_context_destroy(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(idle_parent), cmocka_unit_test(busy_parent),
					   cmocka_unit_test(waiting_parent)};
	setenv("TL_CACHE", "0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

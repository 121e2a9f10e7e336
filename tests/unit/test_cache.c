/* The disk cache: processes and threads that share a folder, on the simulator; what they find is right or is not used.
 */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache_folder.h"
#include "random_bits.h"
#include "runtime/cache/cache.h"
#include "runtime/tl.h"

enum { N = 64 };

static const char source[] = "import triton\nimport triton.language as tl\n\n"
			     "@triton.jit\ndef affine(x, FACTOR: tl.constexpr):\n"
			     "    i = tl.arange(0, 64)\n"
			     "    tl.store(x + i, tl.load(x + i) * FACTOR + i)\n";

static char *in_folder(const char *name)
{
	static char path[200];
	int n = snprintf(path, sizeof path, "%s/%s", folder, name);
	assert_in_range(n, 1, sizeof path - 1);
	return path;
}

/* One launch, which compiles or finds what it needs. False unless what it leaves is right: each number times `factor`
 * and its place. */
static bool launch_with(tl_module *m, tl_context *ctx, int argument, int factor)
{
	int32_t was[N], is[N];
	tl_buffer *b = NULL;
	tl_kernel *k = NULL;
	for (int i = 0; i < N; i++)
		was[i] = (int32_t)(random_bits() % 1000);
	bool ok = !tl_buffer_create(ctx, sizeof was, &b) && !tl_buffer_write(b, 0, was, sizeof was) &&
		  !tl_module_kernel(m, "affine", &k);
	const tl_arg args[] = {tl_buf(TL_I32, b), tl_int(argument)};
	const tl_config one = {.grid = {1}};
	ok = ok && !tl_launch(k, &one, args, 2) && !tl_buffer_read(b, 0, is, sizeof is);
	for (int i = 0; i < N && ok; i++)
		ok = is[i] == was[i] * factor + i;
	tl_buffer_destroy(b);
	return ok;
}

static bool launch(tl_module *m, tl_context *ctx, int factor)
{
	return launch_with(m, ctx, factor, factor);
}

struct user {
	int first, factors;
	bool ok;
};

static void *use(void *arg)
{
	struct user *u = arg;
	tl_context *ctx = NULL;
	tl_module *m = NULL;
	u->ok = !tl_context_create("sim", &ctx) && !tl_module_load_source(ctx, "a.tl", source, sizeof source - 1, &m);
	for (int i = 0; i < u->factors && u->ok; i++)
		u->ok = launch(m, ctx, 2 + (u->first + i) % u->factors);
	tl_module_destroy(m);
	tl_context_destroy(ctx);
	return NULL;
}

static bool use_all(int factors)
{
	struct user u = {0, factors, false};
	use(&u);
	return u.ok;
}

struct found {
	int usable, damaged;
	char path[200]; /* of one */
};

static void note(void *arg, const char *path, i64 bytes, const struct image *im, const char *why)
{
	struct found *f = arg;
	(void)bytes;
	(void)why;
	*(im ? &f->usable : &f->damaged) += 1;
	assert_in_range(snprintf(f->path, sizeof f->path, "%s", path), 1, sizeof f->path - 1);
}

static struct found entries(void)
{
	struct found f = {0};
	cache_each(note, &f);
	return f;
}

static struct stat stat_of(const char *path)
{
	struct stat st = {0};
	assert_int_equal(stat(path, &st), 0);
	return st;
}

/* Another context finds what the first one left: the entry is not written again, nor where there is no cache. */
static void entries_are_found(void **state)
{
	(void)state;
	assert_true(use_all(1));
	struct found f = entries();
	assert_int_equal(f.usable, 1);
	struct stat before = stat_of(f.path);
	assert_true(use_all(1));
	assert_int_equal(stat_of(f.path).st_ino, before.st_ino);
	assert_int_equal(entries().usable, 1);
	assert_true(use_all(3));
	assert_int_equal(entries().usable, 3);
	setenv("TL_CACHE", "0", 1);
	assert_true(use_all(4));
	unsetenv("TL_CACHE");
	assert_int_equal(entries().usable, 3);
	assert_int_equal(cache_clear(), 3);
	assert_int_equal(entries().usable, 0);
}

static void write_bytes(const char *path, const char *bytes, size_t len)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	fclose(f);
}

/* Bits flipped everywhere, files cut off, another's files: right results, and the entry is made anew. */
static void damage_is_replaced(void **state)
{
	(void)state;
	assert_true(use_all(1));
	struct found f = entries();
	char bytes[65536];
	FILE *in = fopen(f.path, "rb");
	size_t len = fread(bytes, 1, sizeof bytes, in);
	fclose(in);
	for (size_t i = 0; i < len; i += 1 + random_bits() % (len / 64)) {
		bytes[i] ^= (char)(1u << random_bits() % 8);
		write_bytes(f.path, bytes, i % 3 ? len : i);
		assert_int_equal(entries().damaged, 1);
		assert_true(use_all(1));
		assert_int_equal(entries().usable, 1);
		in = fopen(f.path, "rb");
		assert_int_equal(fread(bytes, 1, sizeof bytes, in), len);
		fclose(in);
	}
	write_bytes(in_folder("README"), "mine", 4);
	assert_int_equal(cache_clear(), 1);
	assert_int_equal(access(in_folder("README"), F_OK), 0);
}

static pid_t start(int first, int threads, int factors)
{
	pid_t child = fork();
	if (child)
		return child;
	struct user u[16];
	pthread_t t[16];
	bool ok = true;
	for (int i = 0; i < threads; i++) {
		u[i] = (struct user){first + i * 5, factors, false};
		ok &= !pthread_create(&t[i], NULL, use, &u[i]);
	}
	for (int i = 0; i < threads && ok; i++)
		ok &= !pthread_join(t[i], NULL) && u[i].ok;
	_exit(!ok);
}

/* All begin with an empty folder. */
static void processes_share(void **state)
{
	enum { PROCESSES = 8, THREADS = 4, KERNELS = 10 };
	(void)state;
	pid_t child[PROCESSES];
	for (int i = 0; i < PROCESSES; i++)
		child[i] = start(i, THREADS, KERNELS);
	for (int i = 0; i < PROCESSES; i++) {
		int status;
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	}
	struct found f = entries();
	assert_int_equal(f.usable, KERNELS);
	assert_int_equal(f.damaged, 0);
}

/* Processes killed at random moments leave whole entries, and what they had begun is cleared away later. */
static void killed_processes_leave_whole_entries(void **state)
{
	enum { KILLS = 60, KERNELS = 6 };
	(void)state;
	for (int n = 0; n < KILLS; n++) {
		pid_t child = start(n, 1, KERNELS);
		usleep((useconds_t)(random_bits() % 150000));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		assert_int_equal(entries().damaged, 0);
		if (n % 7 == 6)
			cache_clear();
	}
	assert_true(use_all(KERNELS));
	write_bytes(in_folder("new-left"), "x", 1);
	struct timespec old[2] = {{1000, 0}, {1000, 0}};
	assert_int_equal(utimensat(0, in_folder("new-left"), old, 0), 0);
	assert_int_equal(entries().usable, KERNELS);
	assert_int_not_equal(access(in_folder("new-left"), F_OK), 0);
}

/* Where nothing can be written, or the folder is no folder, kernels run all the same. */
static void folders_that_cannot_be_used(void **state)
{
	(void)state;
	setenv("TL_CACHE_DIR", "/proc/none/tlc", 1);
	assert_true(use_all(1));
	setenv("TL_CACHE_DIR", in_folder("deep/er"), 1);
	assert_true(use_all(1));
	assert_int_equal(entries().usable, 1);
	write_bytes(in_folder("file"), "x", 1);
	setenv("TL_CACHE_DIR", in_folder("file"), 1);
	assert_true(use_all(1));
	assert_int_equal(entries().usable, 0);
}

/* The size is bounded: those used longest ago go first. */
static void old_entries_go(void **state)
{
	enum { WRITES_A_SWEEP = 64 }; /* as in cache.c */
	(void)state;
	assert_true(use_all(1));
	struct found first = entries();
	struct timespec old[2] = {{1000, 0}, {1000, 0}};
	assert_int_equal(utimensat(0, first.path, old, 0), 0);
	assert_true(use_all(1)); /* found: it is in use again */
	assert_true(stat_of(first.path).st_mtime > 2000);
	assert_int_equal(utimensat(0, first.path, old, 0), 0);
	setenv("TL_CACHE_MB", "0 MB", 1); /* no number: the usual size */
	assert_true(use_all(WRITES_A_SWEEP + 1));
	assert_int_equal(entries().usable, WRITES_A_SWEEP + 1);
	setenv("TL_CACHE_MB", "0", 1);
	assert_true(use_all(2 * WRITES_A_SWEEP + 1));
	assert_true(entries().usable < WRITES_A_SWEEP);
	assert_int_not_equal(access(first.path, F_OK), 0);
	unsetenv("TL_CACHE_MB");
}

/* An entry is not used when a file that its kernel imports has changed. */
static void imported_files_count(void **state)
{
	static const char text[] = "import triton\nimport triton.language as tl\nfrom helper import change\n\n"
				   "@triton.jit\ndef k(x):\n    tl.store(x, change(tl.load(x)))\n";
	(void)state;
	write_bytes(in_folder("main.tl"), text, sizeof text - 1);
	for (int by = 1; by < 4; by++) {
		char helper[200];
		int len = snprintf(helper, sizeof helper,
				   "import triton\n\n@triton.jit\ndef change(x):\n    return x + %d\n", by);
		write_bytes(in_folder("helper.py"), helper, (size_t)len);
		for (int again = 0; again < 2; again++) {
			tl_context *ctx;
			tl_module *m;
			tl_kernel *k;
			tl_buffer *b;
			int32_t v = 40;
			assert_int_equal(tl_context_create("sim", &ctx), TL_OK);
			assert_int_equal(tl_module_load(ctx, in_folder("main.tl"), &m), TL_OK);
			assert_int_equal(tl_module_kernel(m, "k", &k), TL_OK);
			assert_int_equal(tl_buffer_create(ctx, sizeof v, &b), TL_OK);
			assert_int_equal(tl_buffer_write(b, 0, &v, sizeof v), TL_OK);
			const tl_arg args[] = {tl_buf(TL_I32, b)};
			assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}}, args, 1), TL_OK);
			assert_int_equal(tl_buffer_read(b, 0, &v, sizeof v), TL_OK);
			assert_int_equal(v, 40 + by);
			tl_buffer_destroy(b);
			tl_module_destroy(m);
			tl_context_destroy(ctx);
			assert_int_equal(entries().usable, 1);
		}
	}
}

/* What a kernel takes from the environment while it is compiled is asked for by each process. */
static void the_environment_counts(void **state)
{
	static const char text[] = "import os\nimport triton\nimport triton.language as tl\n"
				   "GIVEN = os.environ.get('TEST_CACHE_BY', '1')\n"
				   "BY = 3 if GIVEN == '3' else 2 if GIVEN == '2' else 1\n\n"
				   "@triton.jit\ndef affine(x, FACTOR: tl.constexpr):\n"
				   "    i = tl.arange(0, 64)\n"
				   "    tl.store(x + i, tl.load(x + i) * (FACTOR + BY) + i)\n";
	(void)state;
	for (int by = 1; by < 4; by++) {
		char value[] = {(char)('0' + by), 0};
		tl_context *ctx;
		tl_module *m;
		setenv("TEST_CACHE_BY", value, 1);
		assert_int_equal(tl_context_create("sim", &ctx), TL_OK);
		assert_int_equal(tl_module_load_source(ctx, "e.tl", text, sizeof text - 1, &m), TL_OK);
		assert_true(launch_with(m, ctx, 5, 5 + by));
		tl_module_destroy(m);
		tl_context_destroy(ctx);
	}
	assert_int_equal(entries().usable, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, new_folder, remove_folder)
	const struct CMUnitTest tests[] = {TEST(entries_are_found),
					   TEST(damage_is_replaced),
					   TEST(processes_share),
					   TEST(killed_processes_leave_whole_entries),
					   TEST(folders_that_cannot_be_used),
					   TEST(old_entries_go),
					   TEST(imported_files_count),
					   TEST(the_environment_counts)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Configurations that are tried in another process, on the CUDA driver made of the simulator, or with the argument
 * "gpu" on that of a GPU. This program is its own helper. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "random_bits.h"
#include "runtime/tl.h"

enum { N = 300, GAP = 25 };
#define COUNT(x) (sizeof(x) / sizeof *(x))

/* kind 0: right; 1: writes beyond its buffer; 2: has no end; 3: computes something else; 4: does nothing */
static const char source[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\n"
	"def update(x, y, calls, n, BLOCK: tl.constexpr, KIND: tl.constexpr):\n"
	"    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
	"    if KIND == 2:\n"
	"        while tl.atomic_add(calls, 0) >= 0:\n"
	"            pass\n"
	"    at = i.to(tl.int64) + ((1 << 36) if KIND == 1 else 0)\n"
	"    v = tl.load(x + i, mask=i < n) * 3 + tl.load(y + i, mask=i < n) + (1 if KIND == 3 else 0)\n"
	"    tl.store(x + at, v, mask=i < n)\n"
	"    if tl.program_id(0) == 0:\n"
	"        tl.atomic_add(calls, 1)\n\n"
	"@triton.jit\n"
	"def boxes(d, y, BLOCK: tl.constexpr, KIND: tl.constexpr):\n"
	"    i = tl.program_id(0) * BLOCK\n"
	"    at = i.to(tl.int64) + ((1 << 36) if KIND == 1 else 0)\n"
	"    tl.store(y + at + tl.arange(0, BLOCK), d.load([i]))\n";

static const char *const helper[] = {"/proc/self/exe", "serve", NULL};

struct rig {
	tl_context *ctx;
	tl_kernel *kernel;
	tl_tuner *tuner;
	tl_buffer *all; /* y, calls and x, in this order, with gaps */
	int32_t was[3 * N];
	tl_arg args[4];
};

static void open_rig(struct rig *r, const char *kernel, const tl_tuning *options)
{
	tl_module *m;
	*r = (struct rig){.ctx = NULL};
	ok(tl_context_create("cuda", &r->ctx));
	ok(tl_module_load_source(r->ctx, "tune.tl", source, sizeof source - 1, &m));
	ok(tl_module_kernel(m, kernel, &r->kernel));
	ok(tl_tuner_create(r->kernel, options, &r->tuner));
	ok(tl_buffer_create(r->ctx, sizeof r->was, &r->all));
	for (size_t i = 0; i < COUNT(r->was); i++)
		r->was[i] = (int32_t)(random_bits() % 1000);
	ok(tl_buffer_write(r->all, 0, r->was, sizeof r->was));
	int32_t *p = tl_buffer_ptr(r->all);
	r->args[0] = tl_range(TL_I32, p + N + GAP, N * sizeof *p);
	r->args[1] = tl_range(TL_I32, p, N * sizeof *p);
	r->args[2] = tl_range(TL_I32, p + N, sizeof *p);
	r->args[3] = tl_int(N);
}

static void close_rig(struct rig *r)
{
	tl_tuner_destroy(r->tuner);
	tl_context_destroy(r->ctx);
}

static void add(struct rig *r, int block, int kind)
{
	const tl_named_arg values[] = {{"BLOCK", tl_int(block)}, {"KIND", tl_int(kind)}};
	ok(tl_tuner_add(r->tuner, NULL, values, 2));
}

static tl_status plan_update(void *user, tl_config *cfg, tl_arg *args, size_t nargs)
{
	(void)user;
	assert_int_equal(nargs, 6);
	cfg->grid[0] = (uint32_t)((args[3].i + args[4].i - 1) / args[4].i);
	return TL_OK;
}

static tl_status choose(const struct rig *r, tl_choice *c)
{
	return tl_tuner_choose(r->tuner, &(tl_config){.grid = {0}}, plan_update, NULL, r->args, COUNT(r->args), c);
}

/* Of update, launched so often. */
static void assert_updated(struct rig *r, int times)
{
	int32_t is[3 * N];
	ok(tl_buffer_read(r->all, 0, is, sizeof is));
	for (int k = 0; k < times; k++) {
		for (int i = 0; i < N; i++)
			r->was[N + GAP + i] = r->was[N + GAP + i] * 3 + r->was[i];
		r->was[N]++;
	}
	assert_memory_equal(is, r->was, sizeof is);
}

/* What has become of the configuration. */
static void assert_reported(const struct rig *r, int block, int kind, const char *part)
{
	char *report, values[64];
	ok(tl_tuner_report(r->tuner, &report));
	snprintf(values, sizeof values, "{\"BLOCK\":%d,\"KIND\":%d}", block, kind);
	char *line = strstr(report, values);
	assert_non_null(line);
	line[strcspn(line, "\n")] = 0;
	if (!strstr(line, part))
		fail_msg("%s; expected '%s'", line, part);
	tl_free(report);
}

/* Those that fail, wherever they come, end neither the tuning nor the context, and change no memory. */
static void others_go_on(void **state)
{
	(void)state;
	static const int kinds[][5] = {{0, 1, 2, 3, 0}, {1, 2, 1, 0, 3}, {3, 0, 0, 2, 1}};
	for (size_t k = 0; k < COUNT(kinds); k++) {
		struct rig r;
		tl_choice c;
		const tl_tuning options = {
			.helper = helper, .limit_ms = 300, .rep_ms = 1, .warmup_ms = 1, .check = true};
		open_rig(&r, "update", &options);
		for (int i = 0; i < 5; i++)
			add(&r, 16 << i, kinds[k][i]);
		ok(choose(&r, &c));
		assert_updated(&r, 0);
		int first = -1;
		for (int i = 0; i < 5; i++) {
			int kind = kinds[k][i];
			first = first < 0 && kind != 1 && kind != 2 ? kind : first;
			assert_reported(&r, 16 << i, kind,
					kind == 1       ? "cuEventQuery: "
					: kind == 2     ? "the kernel has not ended after 300 ms"
					: kind == first ? "timed"
							: "its results differ: element 0 of 'x' is");
		}
		if (!first) {
			ok(tl_tuner_launch(r.tuner, &(tl_config){.grid = {0}}, plan_update, NULL, r.args, 4));
			assert_updated(&r, 1);
		}
		assert_int_equal(c.tried + c.failed, 5);
		close_rig(&r);
	}
}

static void all_of_them_fail(void **state)
{
	(void)state;
	struct rig r;
	const tl_tuning options = {.helper = helper, .limit_ms = 300};
	open_rig(&r, "update", &options);
	add(&r, 32, 1);
	add(&r, 64, 2);
	assert_error(choose(&r, NULL), TL_ERR_KERNEL,
		     "none of its 2 configurations can run; the first failure, BLOCK=32 KIND=1");
	assert_updated(&r, 0);
	const tl_arg args[] = {r.args[0], r.args[1], r.args[2], r.args[3], tl_int(16), tl_int(0)};
	ok(tl_launch(r.kernel, &(tl_config){.grid = {(N + 15) / 16}}, args, COUNT(args)));
	assert_updated(&r, 1);
	close_rig(&r);
}

static tl_status plan_boxes(void *user, tl_config *cfg, tl_arg *args, size_t nargs)
{
	tl_descriptor *d = user;
	assert_int_equal(nargs, 4);
	*d = *args[0].descriptor;
	d->block_shape[0] = (int32_t)args[2].i;
	args[0] = tl_desc(d);
	cfg->grid[0] = (uint32_t)(256 / args[2].i);
	return TL_OK;
}

/* Tensor maps are of the copies. */
static void descriptors(void **state)
{
	(void)state;
	struct rig r;
	tl_choice c;
	tl_descriptor room;
	int32_t is[3 * N];
	const tl_tuning options = {.helper = helper, .rep_ms = 1, .check = true};
	open_rig(&r, "boxes", &options);
	for (int block = 16; block <= 128; block *= 2)
		add(&r, block, block == 64);
	int32_t *p = tl_buffer_ptr(r.all);
	const tl_descriptor x = tl_describe(TL_I32, p + N, 1, (int64_t[]){256}, (int32_t[]){4});
	const tl_arg args[] = {tl_desc(&x), tl_range(TL_I32, p, 256 * sizeof *p)};
	ok(tl_tuner_choose(r.tuner, &(tl_config){.grid = {0}}, plan_boxes, &room, args, 2, &c));
	assert_int_equal(c.tried, 3);
	assert_reported(&r, 64, 1, "cuEventQuery: ");
	assert_updated(&r, 0);
	ok(tl_tuner_launch(r.tuner, &(tl_config){.grid = {0}}, plan_boxes, &room, args, 2));
	memcpy(r.was, r.was + N, 256 * sizeof *r.was);
	ok(tl_buffer_read(r.all, 0, is, sizeof is));
	assert_memory_equal(is, r.was, sizeof is);
	close_rig(&r);
}

static void wrong_helpers(void **state)
{
	(void)state;
	static const struct {
		const char *words[3], *says;
	} wrong[] = {
		{{"/nowhere/tlc", "serve"}, "'/nowhere/tlc' cannot be started: No such file"},
		{{"true"}, "the helper process 'true' has ended"},
	};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct rig r;
		const tl_tuning options = {.helper = wrong[i].words};
		open_rig(&r, "update", &options);
		add(&r, 16, 0);
		add(&r, 32, 0);
		assert_error(choose(&r, NULL), i ? TL_ERR_DRIVER : TL_ERR_FILE, wrong[i].says);
		assert_updated(&r, 0);
		close_rig(&r);
	}
	struct rig r;
	const tl_tuning options = {.helper = helper};
	open_rig(&r, "update", &options);
	add(&r, 16, 0);
	add(&r, 32, 0);
	r.args[1] = tl_ptr(TL_I32, (void *)(uintptr_t)4096);
	assert_error(choose(&r, NULL), TL_ERR_ARGUMENT,
		     "tuning copies the memory that 'y' points to, and its size is not known: pass it with tl_range");
	tl_tuner *t;
	const char *none = NULL;
	assert_error(tl_tuner_create(r.kernel, &(tl_tuning){.helper = &none}, &t), TL_ERR_ARGUMENT,
		     "helper is an empty command");
	close_rig(&r);
}

static void *serve(void *socket)
{
	tl_tuner_serve(*(int *)socket);
	return NULL;
}

/* A tuner of another version begins with another number, and gets a reply with the reason. A tuner that closes the
 * connection ends the helper. */
static void another_version(void **state)
{
	(void)state;
	const uint32_t versions[] = {1, 1000000};
	for (size_t i = 0; i <= COUNT(versions); i++) {
		int ends[2];
		char reply[4096] = {0};
		size_t len = 0;
		pthread_t thread;
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		assert_int_equal(pthread_create(&thread, NULL, serve, &ends[1]), 0);
		if (i < COUNT(versions))
			assert_int_equal(send(ends[0], &versions[i], sizeof versions[i], 0), sizeof versions[i]);
		else
			shutdown(ends[0], SHUT_WR);
		pthread_join(thread, NULL);
		close(ends[1]);
		for (ssize_t n; len < sizeof reply && (n = read(ends[0], reply + len, sizeof reply - len)) > 0;)
			len += (size_t)n;
		const char *says = "the helper belongs to another version of libtl";
		assert_int_equal(memmem(reply, len, says, strlen(says)) != NULL, i < COUNT(versions));
		close(ends[0]);
	}
}

/* Without a helper, in a process of its own: an error in time, and the context is lost. */
static int try_here(int kind)
{
	struct rig r;
	const tl_tuning options = {.limit_ms = 300};
	open_rig(&r, "update", &options);
	add(&r, 16, 0);
	add(&r, 32, kind);
	add(&r, 64, 0);
	assert_error(choose(&r, NULL), TL_ERR_KERNEL,
		     kind == 1
			     ? "the configuration BLOCK=32 KIND=1 left the device unusable: cuEventQuery: "
			     : "the configuration BLOCK=32 KIND=2 left the device unusable: the kernel has not ended");
	assert_non_null(strstr(tl_error(NULL), "hint: tl_tuning.helper"));
	return 0;
}

static void without_helper(void **state)
{
	(void)state;
	char self[PATH_MAX], command[PATH_MAX + 20];
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
	assert_true(len > 0);
	self[len] = 0;
	for (int kind = 1; kind <= 2; kind++) {
		snprintf(command, sizeof command, "'%s' here %d", self, kind);
		assert_int_equal(system(command), 0);
	}
}

/* Beside the programs of tests. */
static bool open_driver(void)
{
	char path[PATH_MAX + 40];
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);
	while (len > 0 && path[len - 1] != '/')
		len--;
	strcpy(path + (len > 0 ? len : 0), "../simcuda/libcuda.so.1");
	return dlopen(path, RTLD_NOW);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_go_on),  cmocka_unit_test(all_of_them_fail), cmocka_unit_test(descriptors),
		cmocka_unit_test(wrong_helpers), cmocka_unit_test(without_helper),   cmocka_unit_test(another_version),
	};
	setenv("TL_CACHE", "0", 1);
	setenv("TL_SIM_MAX_STEPS", "20000", 1);
	if (argc == 2 && !strcmp(argv[1], "gpu")) {
		setenv("TEST_GPU", "1", 1); /* for the helpers, too */
	} else if (!getenv("TEST_GPU") && !open_driver()) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	if (argc == 2 && !strcmp(argv[1], "serve")) {
		tl_tuner_serve(STDIN_FILENO);
		_exit(0);
	}
	if (argc == 3)
		_exit(try_here(atoi(argv[2])));
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Heuristics and tuning through the C API, on the interpreter and the simulator. */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache_folder.h"
#include "fixture.h"
#include "random_bits.h"
#include "runtime/tl.h"

enum { N = 256 };
#define COUNT(x) (sizeof(x) / sizeof *(x))

static const char source[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.heuristics({'EVEN': lambda args: args['n'] % args['BLOCK'] == 0,\n"
	"                    'KIND': lambda args: f\"n{args['n'] % 7}\"})\n"
	"@triton.jit\n"
	"def update(x, y, calls, n, factor, BLOCK: tl.constexpr, EVEN: tl.constexpr, KIND: tl.constexpr):\n"
	"    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
	"    mask = None if EVEN else i < n\n"
	"    v = tl.load(x + i, mask=mask) * factor + i\n"
	"    tl.store(x + i, v, mask=mask)\n"
	"    tl.store(y + i, v + len(KIND), mask=mask)\n"
	"    tl.atomic_add(calls, 1)\n\n"
	"@triton.autotune(configs=[triton.Config({'BLOCK': b}, num_warps=w) for b in (16, 64) for w in (1, 2)],\n"
	"                 key=['n'], restore_value=['y'], reset_to_zero=['calls'], warmup=1, rep=2)\n"
	"@triton.jit\n"
	"def decorated(x, y, calls, n, BLOCK: tl.constexpr):\n"
	"    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
	"    tl.store(y + i, tl.load(x + i, mask=i < n) + tl.atomic_add(calls, 0), mask=i < n)\n"
	"    tl.atomic_add(calls, 1)\n\n"
	"@triton.jit\n"
	"def boxes(d, y, BLOCK: tl.constexpr):\n"
	"    i = tl.program_id(0) * BLOCK\n"
	"    tl.store(y + i + tl.arange(0, BLOCK), d.load([i]) + BLOCK * 0)\n\n"
	"@triton.jit\n"
	"def plain(x, n, BLOCK: tl.constexpr = 16):\n"
	"    tl.store(x + tl.arange(0, BLOCK), n, mask=tl.arange(0, BLOCK) < n)\n";

/* --- a folder and a device for each test ----------------------------------------------------------------------- */

static const char *const devices[] = {"interp", "sim"};

struct rig {
	tl_context *ctx;
	tl_module *module;
	tl_kernel *kernel;
	tl_buffer *x, *y, *calls;
	int32_t was[N];
};

/* x is random, y counts down, calls is 5. */
static void fill(struct rig *r)
{
	int32_t down[N], five = 5;
	for (int i = 0; i < N; i++) {
		r->was[i] = (int32_t)(random_bits() % 1000);
		down[i] = -i;
	}
	ok(tl_buffer_write(r->x, 0, r->was, sizeof r->was));
	ok(tl_buffer_write(r->y, 0, down, sizeof down));
	ok(tl_buffer_write(r->calls, 0, &five, sizeof five));
}

static void open_rig(struct rig *r, const char *device, const char *kernel)
{
	*r = (struct rig){.ctx = NULL};
	ok(tl_context_create(device, &r->ctx));
	ok(tl_module_load_source(r->ctx, "tune.tl", source, sizeof source - 1, &r->module));
	ok(tl_module_kernel(r->module, kernel, &r->kernel));
	ok(tl_buffer_create(r->ctx, sizeof r->was, &r->x));
	ok(tl_buffer_create(r->ctx, sizeof r->was, &r->y));
	ok(tl_buffer_create(r->ctx, sizeof(int32_t), &r->calls));
	fill(r);
}

static void close_rig(struct rig *r)
{
	tl_context_destroy(r->ctx);
}

static int32_t calls_of(const struct rig *r)
{
	int32_t n;
	ok(tl_buffer_read(r->calls, 0, &n, sizeof n));
	return n;
}

/* Of update, applied `times` times with this factor to the first n. */
static void assert_updated(const struct rig *r, int n, int factor, int times)
{
	int32_t x[N], y[N];
	ok(tl_buffer_read(r->x, 0, x, sizeof x));
	ok(tl_buffer_read(r->y, 0, y, sizeof y));
	for (int i = 0; i < N; i++) {
		int32_t v = r->was[i];
		for (int k = 0; k < times && i < n; k++)
			v = v * factor + i;
		assert_int_equal(x[i], v);
		assert_int_equal(y[i], i < n && times ? v + 2 : -i);
	}
}

/* --- heuristics ------------------------------------------------------------------------------------------------ */

/* Many launches: each has its own values, also those whose values were computed before. */
static void heuristics_of_each_launch(void **state)
{
	(void)state;
	for (size_t d = 0; d < COUNT(devices); d++) {
		struct rig r;
		open_rig(&r, devices[d], "update");
		for (int i = 0; i < 40; i++) {
			int n = 1 + (int)(random_bits() % 20) * 8, factor = (int)(random_bits() % 3);
			const tl_config cfg = {.grid = {(uint32_t)(n + 15) / 16}};
			fill(&r);
			const tl_arg args[] = {tl_buf(TL_I32, r.x), tl_buf(TL_I32, r.y), tl_buf(TL_I32, r.calls),
					       tl_int(n),           tl_int(factor),      tl_int(16)};
			ok(tl_launch(r.kernel, &cfg, args, COUNT(args)));
			assert_updated(&r, n, factor, 1);
		}
		/* what is given goes before */
		const tl_arg given[] = {tl_buf(TL_I32, r.x), tl_buf(TL_I32, r.y), tl_buf(TL_I32, r.calls),
					tl_int(N),           tl_int(1),           tl_int(16),
					tl_open(),           tl_str("four")};
		fill(&r);
		ok(tl_launch(r.kernel, &(tl_config){.grid = {N / 16}}, given, COUNT(given)));
		int32_t x, y;
		ok(tl_buffer_read(r.x, 0, &x, sizeof x));
		ok(tl_buffer_read(r.y, 0, &y, sizeof y));
		assert_int_equal(y, x + 4);
		assert_error(tl_launch(r.kernel, &(tl_config){.grid = {1}}, given, 3), TL_ERR_COMPILE,
			     "the value of 'argument n' is known to the running host program only");
		close_rig(&r);
	}
}

/* --- tuning ---------------------------------------------------------------------------------------------------- */

static tl_status plan_blocks(void *user, tl_config *cfg, tl_arg *args, size_t nargs)
{
	(void)user;
	assert_int_equal(nargs, 8);
	assert_int_equal(args[6].kind, TL_ARG_BOOL); /* of a heuristic */
	cfg->grid[0] = (uint32_t)((args[3].i + args[5].i - 1) / args[5].i);
	return TL_OK;
}

static void add_block(tl_tuner *t, int block, int warps)
{
	ok(tl_tuner_add(t, &(tl_config){.num_warps = warps}, &(tl_named_arg){"BLOCK", tl_int(block)}, 1));
}

static tl_status launch_update(const struct rig *r, tl_tuner *t, int n, int factor)
{
	const tl_arg args[] = {tl_buf(TL_I32, r->x), tl_buf(TL_I32, r->y), tl_buf(TL_I32, r->calls), tl_int(n),
			       tl_int(factor)};
	return tl_tuner_launch(t, &(tl_config){.num_stages = 2}, plan_blocks, NULL, args, COUNT(args));
}

static const char *const by_n[] = {"n"};

/* Random configurations, right ones and such that fail: what the first launch for a key leaves is that of one launch,
 * and so it is with those after it. */
static void memory_is_restored(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++) {
		struct rig r;
		tl_tuner *t;
		open_rig(&r, devices[i % 2], "update");
		const tl_tuning options = {.keys = by_n, .nkeys = 1, .rep_ms = 1, .check = i % 3 == 0};
		ok(tl_tuner_create(r.kernel, &options, &t));
		add_block(t, 8 << random_bits() % 5, 1 << random_bits() % 3);
		for (int k = (int)(random_bits() % 5); k; k--)
			add_block(t, 8 << random_bits() % 5, (int)(random_bits() % 6)); /* of which 3 and 5 are wrong */
		for (int k = 0; k < 4; k++) {
			int n = k == 3 ? N : 1 + (int)(random_bits() % N), factor = (int)(random_bits() % 3);
			fill(&r);
			ok(launch_update(&r, t, n, factor));
			assert_updated(&r, n, factor, 1);
			int first = calls_of(&r) - 5;
			ok(launch_update(&r, t, n, factor));
			assert_updated(&r, n, factor, 2);
			assert_int_equal(calls_of(&r), 5 + 2 * first); /* the same configuration */
		}
		tl_tuner_destroy(t);
		close_rig(&r);
	}
}

static tl_choice choose(const struct rig *r, tl_tuner *t, int n)
{
	const tl_arg args[] = {tl_buf(TL_I32, r->x), tl_buf(TL_I32, r->y), tl_buf(TL_I32, r->calls), tl_int(n),
			       tl_int(1)};
	tl_choice c;
	ok(tl_tuner_choose(t, &(tl_config){.max_ctas = 7}, plan_blocks, NULL, args, COUNT(args), &c));
	return c;
}

static void choices(void **state)
{
	(void)state;
	for (size_t d = 0; d < COUNT(devices); d++)
		for (int second = 0; second < 2; second++) {
			struct rig r;
			tl_tuner *t;
			open_rig(&r, devices[d], "update");
			const tl_tuning options = {.keys = by_n, .nkeys = 1, .rep_ms = 1};
			ok(tl_tuner_create(r.kernel, &options, &t));
			add_block(t, 16, 1);
			add_block(t, 128, 3);
			add_block(t, 64, 1);
			tl_choice c = choose(&r, t, 100);
			assert_int_equal(c.stored, second); /* by the first one's file */
			assert_int_equal(c.tried, second ? 0 : 2);
			assert_int_equal(c.failed, second ? 0 : 1);
			assert_true(!strcmp(c.text, "BLOCK=16 num_warps=1") || !strcmp(c.text, "BLOCK=64 num_warps=1"));
			assert_int_equal(c.config.num_warps, 1);
			assert_int_equal(c.config.max_ctas, 7);
			assert_int_equal(c.config.grid[0], strstr(c.text, "16") ? 7 : 2);
			assert_true(c.cost > 0);
			assert_ptr_equal(choose(&r, t, 100).text, c.text);
			assert_updated(&r, 0, 0, 0);
			assert_int_equal(calls_of(&r), 5);
			char *report;
			choose(&r, t, 99);
			ok(tl_tuner_report(t, &report));
			assert_non_null(strstr(report, "{\"x\":\"*i32\",\"y\":\"*i32\",\"calls\":\"*i32\",\"n\":100}"));
			assert_non_null(strstr(report, "\"n\":99}"));
			assert_non_null(strstr(report, "\"best\": true"));
			tl_free(report);
			tl_tuner_destroy(t);
			close_rig(&r);
		}
}

static tl_status plan_decorated(void *user, tl_config *cfg, tl_arg *args, size_t nargs)
{
	(void)user;
	assert_int_equal(nargs, 5);
	if (args[3].i < 0)
		return TL_ERR_ARGUMENT;
	cfg->grid[0] = (uint32_t)((args[3].i + args[4].i - 1) / args[4].i);
	return TL_OK;
}

/* Of the decorator: configurations, keys, and what is reset and restored. */
static void of_a_decorator(void **state)
{
	(void)state;
	for (size_t d = 0; d < COUNT(devices); d++) {
		struct rig r;
		tl_tuner *t;
		open_rig(&r, devices[d], "decorated");
		ok(tl_tuner_create(r.kernel, NULL, &t));
		const tl_arg args[] = {tl_buf(TL_I32, r.x), tl_buf(TL_I32, r.y), tl_buf(TL_I32, r.calls), tl_int(64)};
		tl_choice c;
		ok(tl_tuner_choose(t, &(tl_config){.grid = {0}}, plan_decorated, NULL, args, COUNT(args), &c));
		assert_int_equal(c.tried, 4);
		assert_int_equal(calls_of(&r), 5);
		ok(tl_tuner_launch(t, &(tl_config){.grid = {0}}, plan_decorated, NULL, args, COUNT(args)));
		assert_int_equal(calls_of(&r), 5 + (int)c.config.grid[0]);
		const tl_arg negative[] = {args[0], args[1], args[2], tl_int(-1)};
		assert_error(tl_tuner_launch(t, &(tl_config){.grid = {0}}, plan_decorated, NULL, negative, 4),
			     TL_ERR_ARGUMENT, "its plan refuses the configuration BLOCK=16 num_warps=1");
		assert_error(tl_launch(r.kernel, &(tl_config){.grid = {1}}, args, COUNT(args)), TL_ERR_ARGUMENT,
			     "argument 5, 'BLOCK', is set by the kernel's configurations");
		const tl_arg given[] = {args[0], args[1], args[2], args[3], tl_int(64)};
		ok(tl_launch(r.kernel, &(tl_config){.grid = {1}}, given, COUNT(given)));
		assert_error(tl_tuner_launch(t, &(tl_config){.grid = {1}}, NULL, NULL, given, COUNT(given)),
			     TL_ERR_ARGUMENT, "argument 5, 'BLOCK', is given, but the kernel's configurations set it");
		tl_tuner_destroy(t);
		close_rig(&r);
	}
}

/* One descriptor for all configurations. */
static tl_status plan_boxes(void *user, tl_config *cfg, tl_arg *args, size_t nargs)
{
	tl_descriptor *d = user;
	assert_int_equal(nargs, 3);
	*d = *args[0].descriptor;
	d->block_shape[0] = (int32_t)args[2].i;
	args[0] = tl_desc(d);
	cfg->grid[0] = (uint32_t)(N / args[2].i);
	return TL_OK;
}

static void descriptors(void **state)
{
	(void)state;
	for (size_t d = 0; d < COUNT(devices); d++) {
		struct rig r;
		tl_tuner *t;
		tl_descriptor room;
		tl_choice c;
		int32_t y[N];
		open_rig(&r, devices[d], "boxes");
		ok(tl_tuner_create(r.kernel, NULL, &t));
		for (int block = 16; block <= 128; block *= 2)
			add_block(t, block, 1);
		const tl_descriptor x = tl_describe(TL_I32, tl_buffer_ptr(r.x), 1, (int64_t[]){N}, (int32_t[]){4});
		const tl_arg args[] = {tl_desc(&x), tl_buf(TL_I32, r.y)};
		ok(tl_tuner_choose(t, &(tl_config){.grid = {0}}, plan_boxes, &room, args, 2, &c));
		assert_int_equal(c.tried, 4);
		ok(tl_tuner_launch(t, &(tl_config){.grid = {0}}, plan_boxes, &room, args, 2));
		ok(tl_buffer_read(r.y, 0, y, sizeof y));
		assert_memory_equal(y, r.was, sizeof y);
		tl_tuner_destroy(t);
		close_rig(&r);
	}
}

/* Handles are for what heuristics give: other values were not prepared. */
static void prepared_heuristics(void **state)
{
	(void)state;
	for (size_t d = 0; d < COUNT(devices); d++) {
		struct rig r;
		tl_prepared *p;
		open_rig(&r, devices[d], "update");
		tl_arg args[] = {tl_buf(TL_I32, r.x), tl_buf(TL_I32, r.y), tl_buf(TL_I32, r.calls),
				 tl_int(48),          tl_int(3),           tl_int(16)};
		ok(tl_prepare(r.kernel, &(tl_config){.grid = {3}}, args, COUNT(args), &p));
		ok(tl_prepared_launch(p, NULL, NULL, args, COUNT(args)));
		assert_updated(&r, 48, 3, 1);
		args[3] = tl_int(48 + 7 * 16); /* n % 7 as before, and 16 divides it */
		fill(&r);
		ok(tl_prepared_launch(p, (uint32_t[]){10, 1, 1}, NULL, args, COUNT(args)));
		assert_updated(&r, 160, 3, 1);
		args[3] = tl_int(32);
		assert_error(tl_prepared_launch(p, NULL, NULL, args, COUNT(args)), TL_ERR_ARGUMENT, "KIND");
		tl_prepared_destroy(p);
		close_rig(&r);
	}
}

static void wrong_calls(void **state)
{
	(void)state;
	struct rig r;
	tl_tuner *t = NULL;
	open_rig(&r, "interp", "plain");
	const tl_arg args[] = {tl_buf(TL_I32, r.x), tl_int(4)};
	const tl_config one = {.grid = {1}};
	assert_error(tl_tuner_create(NULL, NULL, &t), TL_ERR_ARGUMENT, "the kernel is NULL");
	assert_error(tl_tuner_create(r.kernel, NULL, NULL), TL_ERR_ARGUMENT, "out is NULL");
	assert_error(tl_tuner_create(r.kernel, &(tl_tuning){.reserved = {1}}, &t), TL_ERR_ARGUMENT,
		     "a reserved field of tl_tuning is not 0");
	const char *m = "m";
	const tl_tuning of_m = {.restore = &m, .nrestore = 1};
	assert_error(tl_tuner_create(r.kernel, &of_m, &t), TL_ERR_ARGUMENT,
		     "restore names 'm', which is not a parameter of plain");
	assert_null(t);
	ok(tl_tuner_create(r.kernel, NULL, &t));
	assert_error(tl_tuner_launch(t, &one, NULL, NULL, args, 2), TL_ERR_ARGUMENT, "plain has no configurations");
	assert_error(tl_tuner_add(NULL, NULL, NULL, 0), TL_ERR_ARGUMENT, "the tuner is NULL");
	assert_error(tl_tuner_add(t, NULL, NULL, 1), TL_ERR_ARGUMENT, "the values are NULL");
	assert_error(tl_tuner_add(t, NULL, &(tl_named_arg){"m", tl_int(1)}, 1), TL_ERR_ARGUMENT,
		     "'m' is not a parameter of plain");
	assert_error(tl_tuner_add(t, NULL, &(tl_named_arg){"BLOCK", args[0]}, 1), TL_ERR_ARGUMENT,
		     "'BLOCK' cannot have this value");
	assert_error(tl_tuner_add(t, NULL, &(tl_named_arg){"BLOCK", tl_str(NULL)}, 1), TL_ERR_ARGUMENT,
		     "'BLOCK' cannot have this value");
	ok(tl_tuner_add(t, NULL, NULL, 0)); /* the kernel as it is */
	assert_error(tl_tuner_launch(t, NULL, NULL, NULL, args, 2), TL_ERR_ARGUMENT, "the config is NULL");
	assert_error(tl_tuner_launch(t, &one, NULL, NULL, NULL, 2), TL_ERR_ARGUMENT, "the arguments are NULL");
	assert_error(tl_tuner_launch(NULL, &one, NULL, NULL, args, 2), TL_ERR_ARGUMENT, "the tuner is NULL");
	assert_error(tl_tuner_launch(t, &one, NULL, NULL, args, 9), TL_ERR_ARGUMENT,
		     "plain takes 3 arguments, and 9 were given");
	assert_error(tl_tuner_launch(t, &one, NULL, NULL, args, 1), TL_ERR_ARGUMENT,
		     "argument 2, 'n', is left open: it has no default");
	const tl_arg wrong[] = {args[0], tl_str("4")};
	assert_error(tl_tuner_launch(t, &one, NULL, NULL, wrong, 2), TL_ERR_ARGUMENT, "argument 2, 'n', must be");
	assert_error(tl_tuner_report(t, NULL), TL_ERR_ARGUMENT, "json is NULL");
	ok(tl_tuner_launch(t, &one, NULL, NULL, args, 2));
	assert_error(tl_tuner_add(t, NULL, NULL, 0), TL_ERR_ARGUMENT, "plain has been tuned already");
	int32_t x;
	ok(tl_buffer_read(r.x, 12, &x, sizeof x));
	assert_int_equal(x, 4);
	tl_tuner_destroy(t);
	tl_tuner_destroy(NULL);
	close_rig(&r);
}

/* --- threads --------------------------------------------------------------------------------------------------- */

struct user {
	struct rig *rig;
	tl_tuner *tuner;
	int n;
	char text[64];
};

static void *choose_in_thread(void *user)
{
	struct user *u = user;
	for (int i = 0; i < 20; i++)
		snprintf(u->text, sizeof u->text, "%s", choose(u->rig, u->tuner, u->n + i % 2).text);
	return NULL;
}

/* Threads that want the same keys get the same choices, each found once. */
static void threads_share_choices(void **state)
{
	(void)state;
	enum { THREADS = 6 };
	struct rig r;
	tl_tuner *t;
	char *report;
	open_rig(&r, "sim", "update");
	const tl_tuning options = {.keys = by_n, .nkeys = 1};
	ok(tl_tuner_create(r.kernel, &options, &t));
	add_block(t, 16, 1);
	add_block(t, 32, 1);
	add_block(t, 64, 2);
	pthread_t threads[THREADS];
	struct user users[THREADS];
	for (int i = 0; i < THREADS; i++) {
		users[i] = (struct user){&r, t, 70, ""};
		assert_int_equal(pthread_create(&threads[i], NULL, choose_in_thread, &users[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < THREADS; i++)
		assert_string_equal(users[i].text, users[0].text);
	ok(tl_tuner_report(t, &report));
	int n = 0;
	for (const char *s = report; (s = strstr(s, "\"key\"")); s++)
		n++;
	assert_int_equal(n, 2);
	tl_free(report);
	assert_updated(&r, 0, 0, 0);
	tl_tuner_destroy(t);
	close_rig(&r);
}

/* Arguments in memory of the caller, below and above all buffers: tuned on, restored, and updated once. */
static void memory_of_the_caller(void **state)
{
	(void)state;
	enum { BYTES = N * sizeof(int32_t) };
	for (size_t d = 0; d < COUNT(devices); d++) {
		struct rig r;
		tl_tuner *t;
		static int32_t low[N];
		int32_t high[N], was[N], five = 5;
		open_rig(&r, devices[d], "update");
		const tl_tuning options = {.keys = by_n, .nkeys = 1};
		ok(tl_tuner_create(r.kernel, &options, &t));
		add_block(t, 16, 1);
		add_block(t, 32, 1);
		for (int i = 0; i < N; i++) {
			low[i] = was[i] = (int32_t)(random_bits() % 1000);
			high[i] = -i;
		}
		const tl_arg args[] = {tl_range(TL_I32, low, BYTES), tl_range(TL_I32, high, BYTES),
				       tl_range(TL_I32, &five, sizeof five), tl_int(N), tl_int(3)};
		ok(tl_tuner_launch(t, &(tl_config){0}, plan_blocks, NULL, args, COUNT(args)));
		for (int i = 0; i < N; i++) {
			assert_int_equal(low[i], was[i] * 3 + i);
			assert_int_equal(high[i], low[i] + 2);
		}
		tl_tuner_destroy(t);
		close_rig(&r);
	}
}

/* --- on disk --------------------------------------------------------------------------------------------------- */

static bool choice_is_stored(int n)
{
	struct rig r;
	tl_tuner *t;
	open_rig(&r, "sim", "update");
	const tl_tuning options = {.keys = by_n, .nkeys = 1};
	ok(tl_tuner_create(r.kernel, &options, &t));
	add_block(t, 16, 1);
	add_block(t, 32, 1);
	bool stored = choose(&r, t, n).stored;
	tl_tuner_destroy(t);
	close_rig(&r);
	return stored;
}

static const char *tuning_file(void)
{
	static char path[400];
	DIR *d = opendir(folder);
	assert_non_null(d);
	*path = 0;
	for (const struct dirent *e; (e = readdir(d));)
		if (strstr(e->d_name, ".tuning"))
			snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
	closedir(d);
	return path;
}

static size_t read_tunings(char *text, size_t room)
{
	FILE *f = fopen(tuning_file(), "rb");
	assert_non_null(f);
	size_t len = fread(text, 1, room - 1, f);
	fclose(f);
	text[len] = 0;
	return len;
}

static void write_tunings(const char *text, size_t len)
{
	FILE *f = fopen(tuning_file(), "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
}

/* Processes that write one file at the same time lose nothing. */
static void processes_share_a_file(void **state)
{
	(void)state;
	enum { PROCESSES = 8 };
	for (int i = 0; i < PROCESSES; i++)
		if (!fork())
			_exit(choice_is_stored(10 + i) || choice_is_stored(30 + i));
	for (int i = 0, status; i < PROCESSES; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	for (int i = 0; i < PROCESSES; i++)
		assert_true(choice_is_stored(10 + i) && choice_is_stored(30 + i));
}

/* Files of two machines are joined by cat, laid out anew, and damaged: what is whole is used, and nothing else. */
static void files_are_joined_and_damaged(void **state)
{
	(void)state;
	static char one[20000], two[20000], both[80000];
	assert_false(choice_is_stored(50));
	read_tunings(one, sizeof one);
	unlink(tuning_file());
	assert_false(choice_is_stored(60));
	read_tunings(two, sizeof two);
	snprintf(both, sizeof both, "%s%s\n\n{\"kernel\": 5}\n{}\nnonsense\n[1, 2]\n%s", two, one, two);
	write_tunings(both, strlen(both));
	assert_true(choice_is_stored(50) && choice_is_stored(60));
	/* white space between tokens */
	size_t n = 0;
	for (const char *s = one; *s; s++) {
		both[n++] = *s;
		if (strchr(",:{", *s))
			both[n++] = ' ';
	}
	write_tunings(both, n);
	assert_true(choice_is_stored(50));
	/* a process was killed in the last line: the next one writes a line of its own */
	snprintf(both, sizeof both, "%s%.*s", one, (int)strlen(two) / 2, two);
	write_tunings(both, strlen(both));
	assert_true(choice_is_stored(50));
	assert_false(choice_is_stored(60));
	assert_true(choice_is_stored(60));
	/* bytes changed at random: right or not used, and never a crash */
	size_t len = strlen(one);
	for (int i = 0; i < 60; i++) {
		memcpy(both, one, len);
		for (int k = 0; k < 3; k++)
			both[random_bits() % len] = (char)random_bits();
		write_tunings(both, random_bits() % 4 ? len : random_bits() % len);
		choice_is_stored(50);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(processes_share_a_file, new_folder, remove_folder),
		cmocka_unit_test_setup_teardown(heuristics_of_each_launch, new_folder, remove_folder),
		cmocka_unit_test_setup_teardown(memory_is_restored, new_folder, remove_folder),
		cmocka_unit_test_setup_teardown(choices, new_folder, remove_folder),
		cmocka_unit_test_setup_teardown(of_a_decorator, new_folder, remove_folder),
		cmocka_unit_test_setup_teardown(descriptors, new_folder, remove_folder),
		cmocka_unit_test_setup_teardown(prepared_heuristics, new_folder, remove_folder),
		cmocka_unit_test_setup_teardown(wrong_calls, new_folder, remove_folder),
		cmocka_unit_test_setup_teardown(memory_of_the_caller, new_folder, remove_folder),
		cmocka_unit_test_setup_teardown(threads_share_choices, new_folder, remove_folder),
		cmocka_unit_test_setup_teardown(files_are_joined_and_damaged, new_folder, remove_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

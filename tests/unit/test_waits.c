/* Programs that wait: which loops are said to wait, launches of all kinds from several threads at once, and how many
 * threads they start. For the thread sanitizer too (make test-threads). */
#include <pthread.h>
#include <unistd.h>

#include "test_runtime.h"

static const char text[] =
	"import triton\nimport triton.language as tl\n\n"
	/* waiting */
	"@triton.jit\ndef w_flag(x, o, n):\n    k = 0\n"
	"    while tl.atomic_add(x, 0) < n:\n        k += 1\n"
	"    tl.store(o + tl.program_id(0), n + 1)\n\n"
	"@triton.jit\ndef w_limited(x, o, n):\n    k = 0\n"
	"    while tl.atomic_cas(x + n, 0, 0) == 0 and k < n:\n        k += 1\n    tl.store(o, k)\n\n"
	"@triton.jit\ndef w_break(x, o, n):\n"
	"    for i in range(n):\n        if tl.load(x, volatile=True) > 0:\n            break\n"
	"        tl.store(o + i, i)\n\n"
	"@triton.jit\ndef w_carried(x, o, n):\n    f = 0\n"
	"    while f == 0:\n        f = tl.atomic_max(x + tl.program_id(0), 0)\n    tl.store(o, f)\n\n"
	"@triton.jit\ndef w_scan(x, o, n):\n    done = False\n"
	"    while not done:\n        s = 0\n        for i in range(n):\n"
	"            s += tl.load(x + i, volatile=True)\n"
	"        done = s == n\n    tl.store(o, n)\n\n"
	"@triton.jit\ndef w_back(x, o, n):\n    i = tl.program_id(0) - 1\n    s = 0\n"
	"    while i >= 0:\n        f = tl.atomic_add(x + i, 0)\n        if f == 2:\n            s += 1\n"
	"            i = -1\n"
	"        elif f == 1:\n            i -= 1\n    tl.store(o, s)\n\n"
	"@triton.jit\ndef w_found(x, o, n):\n    i = 0\n"
	"    while i < n:\n        i += (tl.atomic_add(x + i, 0) != 0).to(tl.int32)\n    tl.store(o, i)\n\n"
	"@triton.jit\ndef w_tile(x, o, n):\n    r = tl.arange(0, 16)\n"
	"    while tl.sum(tl.load(x + r, volatile=True)) < n:\n        pass\n    tl.store(o + r, r)\n\n"
	/* not waiting */
	"@triton.jit\ndef search(x, o, n):\n    acc = 0\n"
	"    for t in range(0, n):\n        acc += tl.load(x + t % 1024)\n        if acc > 5 * n:\n            break\n"
	"    tl.store(o + tl.program_id(0), acc)\n\n"
	"@triton.jit\ndef halves(x, o, n):\n    lo = 0\n    hi = n\n"
	"    while lo < hi:\n        m = (lo + hi) // 2\n        if tl.load(x + m) < 7:\n            lo = m + 1\n"
	"        else:\n            hi = m\n    tl.store(o, lo)\n\n"
	"@triton.jit\ndef probes(x, o, n):\n    h = n % 64\n"
	"    while tl.load(x + h) != n:\n        h = (h + 1) % 64\n    tl.store(o, h)\n\n"
	"@triton.jit\ndef pointers(x, o, n):\n    p = x\n"
	"    while tl.load(p) != 0:\n        p += 1\n    tl.store(o, 1)\n\n"
	"@triton.jit\ndef numbers(x, o, n):\n    k = 0\n    m = n\n"
	"    while m > 1:\n        m = m // 2 if m % 2 == 0 else 3 * m + 1\n        k += tl.load(x)\n"
	"    tl.store(o, k)\n\n"
	"@triton.jit\ndef tickets(x, o, n):\n    t = tl.atomic_add(x, 1)\n"
	"    while t < n:\n        tl.store(o + t, t)\n        t = tl.atomic_add(x, 1)\n\n"
	/* for the launches below */
	"@triton.jit\ndef barrier(x, o, n):\n    tl.atomic_add(x, 1)\n"
	"    while tl.atomic_add(x, 0) < n:\n        pass\n    tl.store(o + tl.program_id(0), n)\n\n"
	"@triton.jit\ndef gives(x, o, n):\n    tl.store(o + tl.program_id(0), n)\n    tl.atomic_xchg(x, n)\n\n"
	"@triton.jit\ndef short(x, o, n):\n    tl.store(o + tl.program_id(0), n + tl.program_id(0))\n";

static u32 next_random(u32 *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

static tl_kernel *kernel_of(tl_module *m, const char *name)
{
	tl_kernel *k;
	if (tl_module_kernel(m, name, &k))
		fail_msg("%s", tl_error(NULL));
	return k;
}

static tl_module *open_module(const char *device, tl_context **ctx)
{
	tl_module *m;
	if (tl_context_create(device, ctx) || tl_module_load_source(*ctx, "w.tl", text, sizeof text - 1, &m))
		fail_msg("%s", tl_error(NULL));
	return m;
}

static void classified(void **state)
{
	static const char *const names[] = {"w_flag", "w_limited", "w_break", "w_carried", "w_scan",
					    "w_back", "w_found",   "w_tile",  "search",    "halves",
					    "probes", "pointers",  "numbers", "tickets"};
	static const char *const devices[] = {"cpu", "cpu:check", "sim"};
	u32 wrong = 0;
	(void)state;
	for (u32 d = 0; d < ARRAY_LEN(devices); d++) {
		tl_context *ctx;
		tl_buffer *b;
		tl_module *m = open_module(devices[d], &ctx);
		assert_int_equal(tl_buffer_create(ctx, 4096, &b), TL_OK);
		for (u32 i = 0; i < ARRAY_LEN(names); i++) {
			tl_kernel *k = kernel_of(m, names[i]);
			tl_prepared *p;
			if (tl_prepare(k, &(tl_config){.grid = {1}},
				       ARGS(tl_buf(TL_I32, b), tl_buf(TL_I32, b), tl_int(40)), &p))
				fail_msg("%s", tl_error(NULL));
			u32 n = 0;
			while (!k->variants.buckets[n])
				n++;
			if (((struct variant *)k->variants.buckets[n])->image.waits != (names[i][1] == '_')) {
				print_error("%s: %s is said to %s\n", devices[d], names[i],
					    names[i][1] == '_' ? "wait for nobody" : "wait");
				wrong++;
			}
		}
		tl_context_destroy(ctx);
	}
	assert_int_equal(wrong, 0);
}

/* --- launches at once ---------------------------------------------------------------------------------------- */

enum { PAIRS = 2, MOST_PROGRAMS = 300, LENGTH = 1024 };

/* A thread of the host. The one of two that has an odd number waits, in a launch, until the flag that both share says
 * that the other one has come as far. */
struct host {
	tl_context *ctx;
	tl_module *module;
	tl_buffer *flag;
	u32 number, rounds, programs, random;
	i32 length; /* of long loops */
	bool good;
	pthread_t thread;
};

/* Program i of `programs` must leave first + step * i, and the others nothing. */
static bool launch_checked(struct host *h, const char *name, tl_buffer *in, u32 programs, i32 n, i32 first, i32 step)
{
	i32 o[MOST_PROGRAMS];
	tl_buffer *out;
	memset(o, 0xA5, sizeof o);
	if (tl_buffer_create(h->ctx, sizeof o, &out))
		return false;
	bool good = !tl_buffer_write(out, 0, o, sizeof o) &&
		    !tl_launch(kernel_of(h->module, name), &(tl_config){.grid = {programs}},
			       ARGS(tl_buf(TL_I32, in), tl_buf(TL_I32, out), tl_int(n))) &&
		    !tl_buffer_read(out, 0, o, sizeof o);
	if (!good)
		print_error("%s of %u programs: %s\n", name, programs, tl_error(NULL));
	for (u32 i = 0; i < MOST_PROGRAMS && good; i++) {
		i32 wanted = i < programs ? first + step * (i32)i : (i32)0xA5A5A5A5;
		good = o[i] == wanted;
		if (!good)
			print_error("%s of %u programs: %d from program %u, not %d\n", name, programs, o[i], i, wanted);
	}
	tl_buffer_destroy(out);
	return good;
}

static bool launch_any(struct host *h)
{
	i32 x[LENGTH], n = h->length / 2 + (i32)(next_random(&h->random) % (u32)h->length);
	u32 programs = 1 + next_random(&h->random) % h->programs;
	tl_buffer *in;
	if (tl_buffer_create(h->ctx, sizeof x, &in))
		return false;
	for (u32 i = 0; i < LENGTH; i++)
		x[i] = 1;
	bool good = false;
	switch (next_random(&h->random) % 4) {
	case 0:
		good = !tl_buffer_write(in, 0, x, sizeof x) && launch_checked(h, "search", in, programs, n, n, 0);
		break;
	case 1: good = !tl_buffer_write(in, 0, x, sizeof x) && launch_checked(h, "search", in, 1, n, n, 0); break;
	case 2: good = launch_checked(h, "short", in, programs, n, n, 1); break;
	default:
		programs = 1 + programs % 24;
		good = !tl_buffer_fill(in, 0) &&
		       launch_checked(h, "barrier", in, programs, (i32)programs, (i32)programs, 0);
	}
	tl_buffer_destroy(in);
	return good;
}

static void *run_host(void *host)
{
	struct host *h = host;
	h->good = true;
	for (i32 round = 1; round <= (i32)h->rounds && h->good; round++) {
		bool waits = h->number % 2;
		h->good = launch_any(h) && launch_checked(h, waits ? "w_flag" : "gives", h->flag,
							  waits ? 1 + h->random % 3 : 1, round, round + waits, 0);
	}
	if (!h->good) /* whoever waits for it waits no longer */
		__atomic_store_n((i32 *)tl_buffer_ptr(h->flag), INT32_MAX, __ATOMIC_RELEASE);
	return NULL;
}

static void launches_at_once(const char *device, u32 seed, u32 rounds, u32 programs, i32 length)
{
	struct host hosts[2 * PAIRS];
	tl_context *ctx;
	tl_module *m = open_module(device, &ctx);
	assert_int_equal(tl_context_threads(ctx, 3), TL_OK);
	for (u32 i = 0; i < ARRAY_LEN(hosts); i++) {
		hosts[i] = (struct host){.ctx = ctx,
					 .module = m,
					 .number = i,
					 .rounds = rounds,
					 .programs = programs,
					 .random = 4 * seed + i,
					 .length = length};
		if (i % 2) {
			hosts[i].flag = hosts[i - 1].flag;
		} else {
			assert_int_equal(tl_buffer_create(ctx, 4, &hosts[i].flag), TL_OK);
			assert_int_equal(tl_buffer_fill(hosts[i].flag, 0), TL_OK);
		}
	}
	for (u32 i = 0; i < ARRAY_LEN(hosts); i++)
		assert_int_equal(pthread_create(&hosts[i].thread, NULL, run_host, &hosts[i]), 0);
	for (u32 i = 0; i < ARRAY_LEN(hosts); i++) {
		pthread_join(hosts[i].thread, NULL);
		assert_true(hosts[i].good);
	}
	tl_context_destroy(ctx);
}

static void on_cpu(void **state)
{
	(void)state;
	for (u32 seed = 0; seed < 10; seed++) /* any launch may be the first one of a context */
		launches_at_once("cpu", seed, 5, MOST_PROGRAMS, 20000);
}

static void on_cpu_check(void **state)
{
	(void)state;
	launches_at_once("cpu:check", 0, 20, 40, 2000);
}

static void on_interp(void **state)
{
	(void)state;
	launches_at_once("interp", 0, 10, 20, 600);
}

static void on_sim(void **state)
{
	(void)state;
	launches_at_once("sim", 0, 3, 10, 600);
}

/* --- threads ----------------------------------------------------------------------------------------------------- */

static u32 threads_here(void)
{
	char line[128];
	u32 n = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "Threads: %u", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

struct watch {
	_Atomic bool ends;
	u32 most;
};

static void *watch(void *watch)
{
	struct watch *w = watch;
	while (!atomic_load(&w->ends)) {
		w->most = MAX(w->most, threads_here());
		usleep(200);
	}
	return NULL;
}

/* The most threads that there were during a launch, beside those before. */
static u32 most_threads(const char *device, const char *name, u32 programs, i32 n)
{
	struct watch w = {0};
	pthread_t thread;
	tl_context *ctx;
	tl_buffer *in, *out;
	tl_module *m = open_module(device, &ctx);
	u32 before = threads_here() + 1;
	assert_int_equal(tl_context_threads(ctx, 3), TL_OK);
	assert_int_equal(tl_buffer_create(ctx, 4 * LENGTH, &in), TL_OK);
	assert_int_equal(tl_buffer_fill(in, 0), TL_OK);
	assert_int_equal(tl_buffer_create(ctx, 4 * programs, &out), TL_OK);
	assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
	if (tl_launch(kernel_of(m, name), &(tl_config){.grid = {programs}},
		      ARGS(tl_buf(TL_I32, in), tl_buf(TL_I32, out), tl_int(n))))
		fail_msg("%s", tl_error(NULL));
	atomic_store(&w.ends, true);
	pthread_join(thread, NULL);
	tl_context_destroy(ctx);
	return w.most > before ? w.most - before : 0;
}

static void threads_are_few(void **state)
{
	(void)state;
	/* long loops wait for nobody: no thread but the context's */
	assert_in_range(most_threads("cpu", "search", 1500, 20000), 0, 2);
	assert_in_range(most_threads("interp", "search", 200, 600), 0, 2);
	assert_in_range(most_threads("sim", "search", 20, 600), 0, 2);
	/* programs that all wait for the last one: a thread for each, and no more; fewer if the watch came late */
	assert_in_range(most_threads("cpu", "barrier", 60, 60), 0, 59);
	assert_in_range(most_threads("interp", "barrier", 30, 30), 0, 29);
	assert_in_range(most_threads("sim", "barrier", 8, 8), 0, 7);
}

/* More programs wait for one another than threads may run at once. */
static void waits_in_vain(void **state)
{
	tl_context *ctx;
	tl_buffer *b;
	(void)state;
	tl_module *m = open_module("cpu", &ctx);
	assert_int_equal(tl_buffer_create(ctx, 4 * 1200, &b), TL_OK);
	assert_int_equal(tl_buffer_fill(b, 0), TL_OK);
	assert_error(tl_launch(kernel_of(m, "barrier"), &(tl_config){.grid = {1200}},
			       ARGS(tl_buf(TL_I32, b), tl_buf(TL_I32, b), tl_int(1200))),
		     TL_ERR_KERNEL, "the program waits for other programs, but");
	tl_context_destroy(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classified),    cmocka_unit_test(on_cpu), cmocka_unit_test(on_cpu_check),
		cmocka_unit_test(on_interp),     cmocka_unit_test(on_sim), cmocka_unit_test(threads_are_few),
		cmocka_unit_test(waits_in_vain),
	};
	setenv("TL_CACHE", "0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a launch costs the host beside a bare cuLaunchKernel of the same function with the same parameters: 1 to 20
 * arguments, tensor maps, one thread and 16.
 *
 *   build/tests/launch          on a GPU: nanoseconds, medians of batches
 *   build/tests/launch --null   on a driver that does nothing: instructions of this process, counted one by one */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/device/cuda_api.h"
#include "runtime/api/objects.h"

enum { MAX_ARGS = 20, MAX_THREADS = 16, ROUNDS = 41, BATCH = 400 };

static struct cuda_api real; /* the driver, or the one that does nothing */

enum { MAX_PARAMS = MAX_ARGS + GRID_PARAMS + MAX_TENSOR_MAPS };

/* The launch that is watched: what a program of its own would give the driver. */
static struct {
	bool on;
	CUfunction f;
	unsigned grid[3], threads, shared;
	void *params[MAX_PARAMS];
	u64 values[MAX_PARAMS];
	u32 nmaps;
	_Alignas(TENSOR_MAP_ALIGN) u8 maps[MAX_TENSOR_MAPS][TENSOR_MAP_BYTES];
} seen;

static CUresult watch_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
			     unsigned shared, CUstream s, void **params, void **extra)
{
	if (seen.on) {
		seen.f = f;
		seen.grid[0] = gx, seen.grid[1] = gy, seen.grid[2] = gz;
		seen.threads = bx;
		seen.shared = shared;
	}
	return real.launch(f, gx, gy, gz, bx, by, bz, shared, s, params, extra);
}

static tl_status watch_device(struct device *d, const struct device_launch *l)
{
	u32 n = l->nargs - l->nmaps;
	seen.nmaps = l->nmaps;
	for (u32 i = 0; i < l->nargs; i++) {
		seen.values[i] = l->args[i];
		seen.params[i] = i < n ? (void *)&seen.values[i] : seen.maps[i - n];
		if (i >= n)
			memcpy(seen.maps[i - n], (const void *)(uintptr_t)l->args[i], TENSOR_MAP_BYTES);
	}
	return cuda_ops.launch(d, l);
}

static void ok(tl_status s)
{
	if (!s)
		return;
	fprintf(stderr, "%s: %s\n", tl_status_name(s), tl_error(NULL));
	exit(2);
}

/* --- a driver that does nothing ------------------------------------------------------------------------------ */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define X(name, symbol, params)                                                                                        \
	static CUresult no_##name params                                                                               \
	{                                                                                                              \
		return 0;                                                                                              \
	}
CUDA_API(X)
CUDA_API_NEW(X)
#undef X

static CUresult one_device(int *n)
{
	*n = 1;
	return 0;
}
static CUresult attribute_of(int *v, int attribute, CUdevice d)
{
	*v = attribute == CU_DEVICE_COMPUTE_CAPABILITY_MAJOR            ? 9
	     : attribute == CU_DEVICE_MULTIPROCESSOR_COUNT              ? 132
	     : attribute == CU_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 232448
	     : attribute == CU_DEVICE_MAX_REGISTERS_PER_MULTIPROCESSOR  ? 65536
									: 0;
	return 0;
}
static CUresult current(CUcontext *ctx)
{
	*ctx = (CUcontext)&real;
	return 0;
}
static CUresult retain(CUcontext *ctx, CUdevice d)
{
	return current(ctx);
}
static CUresult function_attribute(int *v, int attribute, CUfunction f)
{
	*v = 1024;
	return 0;
}
static CUresult alloc(CUdeviceptr *p, size_t bytes)
{
	*p = (CUdeviceptr)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
	return 0;
}
#pragma GCC diagnostic pop

static const struct cuda_api null_api = {
#define X(name, symbol, params) .name = no_##name,
	CUDA_API(X) CUDA_API_NEW(X)
#undef X
};

static void open_null(void)
{
	real = null_api;
	real.device_count = one_device;
	real.device_attribute = attribute_of;
	real.ctx_current = current;
	real.primary_retain = retain;
	real.func_get_attribute = function_attribute;
	real.mem_alloc = alloc;
}

static tl_context *ctx;
static CUcontext context;
static CUstream stream; /* of all launches */
static bool counting;

/* --- measuring ----------------------------------------------------------------------------------------------- */

/* One way to launch. */
struct way {
	void (*launch)(const struct way *w);
	tl_kernel *kernel;
	tl_prepared *handle;
	const tl_config *config;
	const tl_arg *args;
	size_t nargs;
};

static void through_tl_launch(const struct way *w)
{
	if (tl_launch(w->kernel, w->config, w->args, w->nargs))
		ok(TL_ERR_INTERNAL);
}

static void through_driver(const struct way *w)
{
	(void)w;
	if (real.launch(seen.f, seen.grid[0], seen.grid[1], seen.grid[2], seen.threads, 1, 1, seen.shared, stream,
			seen.params, NULL))
		exit(2);
}

static void through_handle(const struct way *w)
{
	if (tl_prepared_launch(w->handle, NULL, stream, w->args, w->nargs))
		ok(TL_ERR_INTERNAL);
}

static void nothing(const struct way *w)
{
	(void)w;
}

/* Instructions from one stop of a child to the next, with the launch between. */
static long steps(const struct way *w)
{
	pid_t child = fork();
	if (!child) {
		w->launch(w); /* resolves symbols, and fills what is kept of a launch */
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		w->launch(w);
		raise(SIGSTOP);
		_exit(0);
	}
	int status;
	long n = 0;
	waitpid(child, &status, 0);
	do {
		if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL))
			break;
		waitpid(child, &status, 0);
		n++;
	} while (WIFSTOPPED(status) && WSTOPSIG(status) != SIGSTOP);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return n;
}

static double instructions(const struct way *w)
{
	struct way none = *w;
	none.launch = nothing;
	return (double)(steps(w) - steps(&none));
}

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

struct thread {
	pthread_t id;
	const struct way *way;
	pthread_barrier_t *start;
	double ns;
};

static void *launch_batch(void *arg)
{
	struct thread *t = arg;
	CUcontext unused;
	real.ctx_push(context);
	pthread_barrier_wait(t->start);
	double from = now_ns();
	for (int i = 0; i < BATCH; i++)
		t->way->launch(t->way);
	t->ns = (now_ns() - from) / BATCH;
	real.ctx_pop(&unused);
	return NULL;
}

/* Of one batch, the mean of the threads. */
static double batch(const struct way *w, int nthreads)
{
	struct thread t[MAX_THREADS];
	pthread_barrier_t start;
	double sum = 0;
	pthread_barrier_init(&start, NULL, (unsigned)nthreads);
	for (int i = 0; i < nthreads; i++)
		t[i] = (struct thread){.way = w, .start = &start};
	for (int i = 1; i < nthreads; i++)
		pthread_create(&t[i].id, NULL, launch_batch, &t[i]);
	launch_batch(&t[0]);
	for (int i = 0; i < nthreads; i++) {
		if (i)
			pthread_join(t[i].id, NULL);
		sum += t[i].ns;
	}
	pthread_barrier_destroy(&start);
	ok(tl_synchronize(ctx));
	return sum / nthreads;
}

/* --- kernels ------------------------------------------------------------------------------------------------- */

static const char product[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\ndef product(a, b, c, M, N, K, sa, sb, sc):\n"
	"    i, j = tl.program_id(0) * 128 + tl.arange(0, 128), tl.program_id(1) * 256 + tl.arange(0, 256)\n"
	"    acc = tl.zeros((128, 256), tl.float32)\n"
	"    for k in range(0, K, 64):\n"
	"        r = k + tl.arange(0, 64)\n"
	"        x = tl.load(a + i[:, None] * sa + r[None, :])\n"
	"        y = tl.load(b + r[:, None] * sb + j[None, :])\n"
	"        acc = tl.dot(x, y, acc)\n"
	"    tl.store(c + i[:, None] * sc + j[None, :], acc.to(tl.float16))\n";

/* A kernel of n arguments, the first two of them pointers. */
static void write_source(struct strbuf *out, int n)
{
	sb_puts(out, "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(a0");
	for (int i = 1; i < n; i++)
		sb_printf(out, ", a%d", i);
	sb_puts(out, "):\n    i = tl.arange(0, 128)\n    tl.store(a0 + i, ");
	sb_puts(out, n > 1 ? "tl.load(a1 + i)" : "0.0");
	for (int i = 2; i < n; i++)
		sb_printf(out, " + a%d", i);
	sb_puts(out, ")\n");
}

/* Watches one launch. */
static void watch(const char *name, const struct way *w, u32 nmaps)
{
	struct device_ops watched = cuda_ops;
	watched.launch = watch_device;
	ctx->dev->ops = &watched;
	seen.on = true;
	w->launch(w);
	seen.on = false;
	ctx->dev->ops = &cuda_ops;
	ok(tl_synchronize(ctx));
	if (seen.nmaps != nmaps)
		ok(failed(TL_ERR_INTERNAL, "%s: %u tensor maps", name, seen.nmaps));
}

/* One row for each number of threads. The three ways take turns, so that what else the machine does falls on all. */
static void measure(const char *name, tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, u32 nmaps)
{
	tl_prepared *p;
	ok(tl_prepare(k, cfg, args, nargs, &p));
	struct way raw = {through_driver, k, p, cfg, args, nargs}, ours = raw, handle = raw;
	ours.launch = through_tl_launch;
	handle.launch = through_handle;
	watch(name, &ours, nmaps);
	if (counting) {
		printf("%-20s %8.0f %8.0f %8.0f\n", name, instructions(&raw), instructions(&ours),
		       instructions(&handle));
		return;
	}
	for (int n = 1; n <= MAX_THREADS; n *= 16) {
		double a[ROUNDS], b[ROUNDS], c[ROUNDS];
		for (int i = 0; i < ROUNDS; i++) {
			a[i] = batch(&raw, n);
			b[i] = batch(&ours, n);
			c[i] = batch(&handle, n);
		}
		double x = median(a, ROUNDS), y = median(b, ROUNDS), z = median(c, ROUNDS);
		printf("%-20s %2d %8.0f %8.0f %8.0f   %5.3f %5.3f\n", name, n, x, y, z, y / x, z / x);
	}
}

static tl_kernel *kernel_of(const char *text, const char *name)
{
	tl_module *m;
	tl_kernel *k;
	ok(tl_module_load_source(ctx, "bench.tl", text, strlen(text), &m));
	ok(tl_module_kernel(m, name, &k));
	return k;
}

int main(int argc, char **argv)
{
	counting = argc > 1 && !strcmp(argv[1], "--null");
	setenv("TL_CACHE", "0", true);
	bool absent;
	if (counting)
		open_null();
	else
		ok(cuda_api_open(&real, &absent));
	ok(cuda_start(&real));
	struct cuda_api watched = real;
	watched.launch = watch_launch;
	struct device *dev;
	ok(cuda_device_new(&watched, 0, NULL, &dev));
	ok(context_new(dev, &ctx));
	if (real.primary_retain(&context, 0) || real.ctx_push(context) || real.stream_create(&stream, 1))
		return 2;
	if (counting)
		stream = (CUstream)&real;
	tl_buffer *b;
	ok(tl_buffer_create(ctx, 1 << 20, &b));
	puts(counting ? "instructions            driver  tl_launch   handle"
		      : "ns a launch    threads   driver tl_launch  handle   ratios");
	static const int counts[] = {1, 2, 5, 10, 20};
	for (u32 i = 0; i < ARRAY_LEN(counts); i++) {
		struct arena a = {0};
		struct strbuf text = {.arena = &a};
		tl_arg args[MAX_ARGS];
		write_source(&text, counts[i]);
		for (int n = 0; n < counts[i]; n++)
			args[n] = n < 2 ? tl_buf(TL_F32, b) : tl_int(16 * n + 3);
		measure(arena_printf(&a, "%d arguments", counts[i]), kernel_of(text.at, "k"),
			&(tl_config){.grid = {8}, .stream = stream}, args, (size_t)counts[i], 0);
		arena_free(&a);
	}
	tl_arg args[] = {tl_buf(TL_F16, b), tl_buf(TL_F16, b), tl_buf(TL_F16, b), tl_int(256), tl_int(256),
			 tl_int(256),       tl_int(256),       tl_int(256),       tl_int(256)};
	for (u32 i = 0; i < 3; i++)
		args[i] = tl_range(TL_F16, (char *)tl_buffer_ptr(b) + (i << 17), 1 << 17);
	measure("9 arguments, 2 maps", kernel_of(product, "product"),
		&(tl_config){.grid = {2, 1}, .num_warps = 8, .stream = stream}, args, 9, 2);
	real.stream_destroy(stream);
	tl_context_destroy(ctx);
	real.primary_release(0);
	return 0;
}

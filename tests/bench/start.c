/* How long a process takes from CUDA's own initialisation to the first right result, with what the disk cache has.
 *
 *     build/tests/start [DEVICE]        in the project's root; cuda if no device is named
 *
 * Run it twice: the first process compiles examples/softmax.tl, the second finds it in the cache. Prints a line of
 * milliseconds. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/tl.h"

enum { ROWS = 4, COLUMNS = 512 };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* What a program pays without libtl, too. */
static void start_cuda(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *context;
	int (*init)(unsigned) = NULL, (*retain)(void *, int) = NULL;
	if (!lib)
		return;
	*(void **)&init = dlsym(lib, "cuInit");
	*(void **)&retain = dlsym(lib, "cuDevicePrimaryCtxRetain");
	if (init && retain && !init(0))
		retain(&context, 0);
}

static float x[ROWS * COLUMNS], y[ROWS * COLUMNS];

/* The largest difference from a softmax in double precision. */
static double error(void)
{
	double worst = 0;
	for (int r = 0; r < ROWS; r++) {
		double sum = 0;
		for (int i = 0; i < COLUMNS; i++)
			sum += exp(x[r * COLUMNS + i]);
		for (int i = 0; i < COLUMNS; i++)
			worst = fmax(worst, fabs(exp(x[r * COLUMNS + i]) / sum - y[r * COLUMNS + i]));
	}
	return worst;
}

int main(int argc, char **argv)
{
	const char *device = argc > 1 ? argv[1] : "cuda";
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	tl_buffer *in, *out;
	for (int i = 0; i < ROWS * COLUMNS; i++) {
		x[i] = (float)(i * 7 % 1000) * 0.01f;
		y[i] = -1;
	}
	double begin = now();
	if (!strncmp(device, "cuda", 4))
		start_cuda();
	double started = now();
	if (tl_context_create(device, &ctx) || tl_buffer_create(ctx, sizeof x, &in) ||
	    tl_buffer_create(ctx, sizeof y, &out) || tl_buffer_write(in, 0, x, sizeof x) ||
	    tl_buffer_write(out, 0, y, sizeof y)) {
		fprintf(stderr, "%s\n", tl_error(NULL));
		return 1;
	}
	double ready = now();
	const tl_arg args[] = {tl_buf(TL_F32, in), tl_buf(TL_F32, out), tl_int(COLUMNS), tl_int(COLUMNS),
			       tl_int(COLUMNS)};
	tl_status s = tl_module_load(ctx, "examples/softmax.tl", &m);
	if (!s)
		s = tl_module_kernel(m, "softmax_kernel", &k);
	double loaded = now();
	if (!s)
		s = tl_launch(k, &(tl_config){.grid = {ROWS}}, args, sizeof args / sizeof *args);
	double launched = now();
	if (!s)
		s = tl_buffer_read(out, 0, y, sizeof y);
	double end = now();
	if (s || error() > 1e-6) {
		fprintf(stderr, "%s\n", s ? tl_error(ctx) : "wrong results");
		return 1;
	}
	printf("CUDA's start %.1f ms; to the first result %.2f: context and buffers %.2f, module %.2f, launch %.2f, "
	       "read %.2f\n",
	       started - begin, end - started, ready - started, loaded - ready, launched - loaded, end - launched);
	tl_context_destroy(ctx);
	return 0;
}

/* A kernel compiled ahead of time: vector_add.h and vector_add.c are made by
 *
 *   tlc build examples/vector_add.tl --target sm_80 --target sm_90a --target cpu -o vector_add
 *
 * and this program links with them and libtlrt: neither compiler nor CUDA toolkit, the driver alone is needed, and not
 * even that for `add cpu`, which runs it on the processor. */
#include "vector_add.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 3000, BLOCK = 1024 };

static tl_context *ctx;

static void must(tl_status s)
{
	if (!s)
		return;
	fprintf(stderr, "%s: %s\n", tl_status_name(s), tl_error(ctx));
	tl_context_destroy(ctx);
	exit(1);
}

int main(int argc, char **argv)
{
	static float x[N], y[N], sum[N];
	tl_buffer *bx, *by, *bsum;
	tl_compiled *add;
	for (int i = 0; i < N; i++) {
		x[i] = (float)i;
		y[i] = 0.5f;
	}
	must(tl_context_create(argc > 1 ? argv[1] : "cuda", &ctx));
	must(add_kernel_load(ctx, &add));
	must(tl_buffer_create(ctx, sizeof x, &bx));
	must(tl_buffer_create(ctx, sizeof y, &by));
	must(tl_buffer_create(ctx, sizeof sum, &bsum));
	must(tl_buffer_write(bx, 0, x, sizeof x));
	must(tl_buffer_write(by, 0, y, sizeof y));
	tl_config cfg = {.grid = {(N + BLOCK - 1) / BLOCK}};
	must(add_kernel(add, &cfg, tl_buffer_ptr(bx), tl_buffer_ptr(by), tl_buffer_ptr(bsum), N));
	must(tl_buffer_read(bsum, 0, sum, sizeof sum));
	int wrong = 0;
	for (int i = 0; i < N; i++)
		wrong += sum[i] != x[i] + y[i];
	printf("%d of %d sums are wrong; sum[2999] = %g\n", wrong, N, sum[2999]);
	tl_context_destroy(ctx); /* with its kernels and buffers */
	return wrong != 0;
}

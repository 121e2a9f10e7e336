/* A product of bf16 compiled ahead of time for processors with and without tile registers, against a plain loop: the
 * code for those that have them is taken where there are some (tests/amx/model.c says whether they were used). */
#include "tiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 128 };
static _Alignas(64) uint16_t a[N * N], b[N * N], c[N * N];

static float value(uint16_t x)
{
	uint32_t bits = (uint32_t)x << 16;
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

static uint16_t small(void) /* an integer of at most 1: sums are exact */
{
	static const uint16_t bits[] = {0xBF80, 0, 0x3F80};
	return bits[rand() % 3];
}

int main(void)
{
	tl_config cfg = {.grid = {4}};
	tl_context *ctx = NULL;
	tl_compiled *kernel;
	int wrong = 0;
	for (int i = 0; i < N * N; i++) {
		a[i] = small();
		b[i] = small();
		c[i] = 0x7FC0;
	}
	if (tl_context_create("cpu", &ctx) || matmul_kernel_load(ctx, &kernel) ||
	    matmul_kernel(kernel, &cfg, a, b, c, N, N, N, N, 1, N, 1, N, 1)) {
		fprintf(stderr, "%s\n", tl_error(ctx));
		return 2;
	}
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			float sum = 0;
			for (int k = 0; k < N; k++)
				sum += value(a[i * N + k]) * value(b[k * N + j]);
			wrong += value(c[i * N + j]) != sum;
		}
	printf("%d of %d elements are wrong\n", wrong, N * N);
	tl_context_destroy(ctx);
	return wrong != 0;
}

/* A product compiled ahead of time, on the driver that is found: each result against a plain loop, for arguments that
 * the variants were made for and for those that only the generic one takes. "N passed, N failed". */
#include "matmul.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tl_context *ctx;
static tl_compiled *matmul;
static int passed, failed;

struct product {
	const char *what;
	int32_t m, n, k;
	size_t shift;   /* elements in front of each matrix */
	int32_t spare;  /* elements behind each row */
	int transposed; /* B lies by columns */
	int in_place;   /* C takes the place of A */
};

/* Small integers, so that sums are exact in any order: of -2 … 2. */
static uint16_t half_of(int i)
{
	static const uint16_t bits[] = {0xC000, 0xBC00, 0, 0x3C00, 0x4000};
	return bits[i + 2];
}

static int element(size_t i)
{
	return (int)(i * 7 % 5) - 2;
}

static uint16_t half_of_sum(int sum) /* |sum| <= 2048: exact */
{
	uint16_t sign = sum < 0 ? 0x8000 : 0;
	unsigned v = (unsigned)abs(sum), e = 0;
	if (!v)
		return 0;
	while (v >> (e + 1))
		e++;
	return (uint16_t)(sign | (e + 15) << 10 | ((v << 10 >> e) & 0x3FF));
}

static tl_buffer *make(size_t n, int fill)
{
	uint16_t *data = calloc(n, sizeof *data);
	tl_buffer *b = NULL;
	for (size_t i = 0; fill && i < n; i++)
		data[i] = half_of(element(i));
	if (!data || tl_buffer_create(ctx, n * sizeof *data, &b) || tl_buffer_write(b, 0, data, n * sizeof *data)) {
		fprintf(stderr, "%s\n", tl_error(ctx));
		exit(1);
	}
	free(data);
	return b;
}

static uint16_t *at(const tl_buffer *b, size_t shift)
{
	return (uint16_t *)tl_buffer_ptr(b) + shift;
}

static int is_right(const struct product *p, const tl_buffer *c, int32_t rb, int32_t rc)
{
	size_t bytes = tl_buffer_size(c);
	uint16_t *got = malloc(bytes);
	int right = got && !tl_buffer_read((tl_buffer *)c, 0, got, bytes);
	for (int32_t i = 0; i < p->m && right; i++)
		for (int32_t j = 0; j < p->n && right; j++) {
			int sum = 0;
			for (int32_t k = 0; k < p->k; k++) {
				size_t in_b = p->transposed ? (size_t)(j * rb + k) : (size_t)(k * rb + j);
				sum += element(p->shift + (size_t)(i * (p->k + p->spare) + k)) *
				       element(p->shift + in_b);
			}
			right = got[p->shift + (size_t)(i * rc + j)] == half_of_sum(sum);
		}
	free(got);
	return right;
}

static void try_product(const struct product *p)
{
	int32_t ra = p->k + p->spare, rb = (p->transposed ? p->k : p->n) + p->spare, rc = p->n + p->spare;
	tl_buffer *a = make(p->shift + (size_t)(p->m * ra), 1),
		  *b = make(p->shift + (size_t)((p->transposed ? p->n : p->k) * rb), 1),
		  *c = p->in_place ? a : make(p->shift + (size_t)(p->m * rc), 0);
	tl_config cfg = {.grid = {(uint32_t)((p->m + 63) / 64 * ((p->n + 63) / 64))}};
	tl_status s = matmul_kernel(matmul, &cfg, at(a, p->shift), at(b, p->shift), at(c, p->shift), p->m, p->n, p->k,
				    ra, 1, p->transposed ? 1 : rb, p->transposed ? rb : 1, rc, 1);
	int right = !s && is_right(p, c, rb, rc);
	printf("%s%s: %s\n", right ? "" : "FAIL ", p->what, s ? tl_error(ctx) : right ? "right" : "wrong");
	passed += right;
	failed += !right;
	if (!p->in_place)
		tl_buffer_destroy(c);
	tl_buffer_destroy(a);
	tl_buffer_destroy(b);
}

static void refuse(const char *what, tl_status s, const char *words)
{
	int good = s == TL_ERR_ARGUMENT && strstr(tl_error(ctx), words);
	printf("%s%s: %s\n", good ? "" : "FAIL ", what, tl_error(ctx));
	passed += good;
	failed += !good;
}

int main(int argc, char **argv)
{
	static const struct product products[] = {
		{"multiples of 256", 256, 256, 256, 0, 0, 0, 0},
		{"multiples of 16", 64, 80, 96, 0, 0, 0, 0},
		{"odd sizes", 65, 67, 33, 0, 0, 0, 0},
		{"odd strides", 64, 64, 64, 0, 1, 0, 0},
		{"addresses that are not aligned", 64, 64, 64, 1, 0, 0, 0},
		{"a transposed operand", 64, 64, 64, 0, 0, 1, 0},
		{"in place", 64, 64, 64, 0, 0, 0, 1},
	};
	static const tl_blob wrong = {"no image", 8};
	tl_compiled *none;
	if (tl_context_create(argc > 1 ? argv[1] : "cuda", &ctx) || matmul_kernel_load(ctx, &matmul)) {
		fprintf(stderr, "%s\n", tl_error(ctx));
		return 1;
	}
	for (size_t i = 0; i < sizeof products / sizeof *products; i++)
		try_product(&products[i]);
	tl_config cfg = {.grid = {1, 70000, 1}};
	refuse("a grid too large", matmul_kernel(matmul, &cfg, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
	       "the limit is 65535");
	refuse("no config", matmul_kernel(matmul, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), "the config is NULL");
	refuse("no image", tl_compiled_load(ctx, &wrong, 1, &none), "it is not a kernel image");
	tl_compiled_destroy(matmul);
	tl_context_destroy(ctx);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}

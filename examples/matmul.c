/* C = activation(A B) for any sizes, layouts and element types. */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A matrix in memory with contiguous rows or columns, each followed by `padding` unused elements. */
struct matrix {
	struct tensor data;
	size_t stride[2];
};

struct problem {
	tl_dtype in, out;
	size_t m, n, k;
	bool a_transposed, b_transposed;
	size_t padding;
	const char *activation; /* a function of matmul.tl, or NULL */
};

static struct matrix new_matrix(struct demo *d, tl_dtype t, size_t rows, size_t cols, bool transposed, size_t padding,
				bool output)
{
	struct matrix x;
	size_t lines = transposed ? cols : rows, length = (transposed ? rows : cols) + padding;
	bool is_int = t == TL_I8 || t == TL_I32;
	x.stride[0] = transposed ? 1 : length;
	x.stride[1] = transposed ? length : 1;
	x.data =
		output ? tensor_output(d, t, lines * length) : tensor_random(d, t, lines * length, 0, is_int ? 100 : 1);
	return x;
}

static double activate(const char *activation, double x)
{
	return !activation || x >= 0 ? x : activation[0] == 'l' ? 0.01 * x : 0;
}

/* Compares some whole rows of C, spread over the matrix, in a few seconds. */
static void compare_matmul(struct result *r, const struct problem *p, const struct matrix *a, const struct matrix *b,
			   struct matrix *c)
{
	size_t affordable = (size_t)1.1e9 / (p->n * p->k) + 1, rows = affordable < p->m ? affordable : p->m;
	r->samples = rows < p->m ? rows : 0;
	float *values = malloc(p->k * p->n * sizeof *values); /* B in row-major order; exact for all dtypes here */
	double *sum = malloc(p->n * sizeof *sum);
	if (!values || !sum)
		abort();
	for (size_t k = 0; k < p->k; k++)
		for (size_t j = 0; j < p->n; j++)
			values[k * p->n + j] = (float)tensor_get(&b->data, k * b->stride[0] + j * b->stride[1]);
	for (size_t row = 0; row < rows; row++) {
		size_t i = rows > 1 ? row * (p->m - 1) / (rows - 1) : 0;
		for (size_t j = 0; j < p->n; j++)
			sum[j] = 0;
		for (size_t k = 0; k < p->k; k++) {
			double x = tensor_get(&a->data, i * a->stride[0] + k * a->stride[1]);
			for (size_t j = 0; j < p->n; j++)
				sum[j] += x * (double)values[k * p->n + j];
		}
		for (size_t j = 0; j < p->n; j++)
			compare(r, &c->data, i * c->stride[0] + j * c->stride[1], activate(p->activation, sum[j]));
	}
	compare_rest(r, &c->data);
	free(values);
	free(sum);
}

/* Elements have size 1 and their products have random signs, so sums have size sqrt(k). */
static void allow(struct result *r, const struct problem *p)
{
	double size = sqrt((double)p->k);
	if (p->in == TL_I8)
		return; /* exact */
	r->relative = 1.001 * unit_roundoff(p->out);
	r->absolute = size * 2e-6 * fmax(4, size); /* each addition rounds in fp32 */
	if (p->in == TL_F32) /* computed in tf32: 10 bits of mantissa, the rest rounded or truncated */
		r->absolute = size * 0x1p-7;
}

enum way { TILES, PERSISTENT, SPLIT_K, WAYS };

static const char *const names[WAYS] = {"matmul", "matmul_persistent", "matmul_split_k"};

static void test(struct demo *d, tl_kernel *const kernels[WAYS], enum way way, struct problem p)
{
	struct result r = {.kernel = names[way]};
	allow(&r, &p);
	const char *gap = p.activation ? " " : "", *activation = p.activation ? p.activation : "";
	snprintf(r.what, sizeof r.what, "%zux%zux%zu %s%s%s%s%s%s", p.m, p.n, p.k, tl_dtype_name(p.in),
		 p.a_transposed ? " At" : "", p.b_transposed ? " Bt" : "", p.padding ? " padded" : "", gap, activation);
	struct matrix a = new_matrix(d, p.in, p.m, p.k, p.a_transposed, p.padding, false);
	struct matrix b = new_matrix(d, p.in, p.k, p.n, p.b_transposed, p.padding, false);
	struct matrix c = new_matrix(d, p.out, p.m, p.n, false, p.padding, true);

	enum { BLOCK_M = 128, BLOCK_N = 128, GROUP_M = 8, PARTS = 4 };
	size_t block_k = 64 / tl_dtype_size(p.in);
	size_t tiles = (p.m + BLOCK_M - 1) / BLOCK_M * ((p.n + BLOCK_N - 1) / BLOCK_N);
	size_t sms = (size_t)d->device.num_sms, programs = way == PERSISTENT && tiles > sms ? sms : tiles;
	tl_config config = {.grid = {(uint32_t)programs, way == SPLIT_K ? PARTS : 1}, .num_warps = 8, .num_stages = 3};
	/* sums of the parts, and counters, which are 0 */
	size_t in_parts = way == SPLIT_K ? tiles * PARTS * BLOCK_M * BLOCK_N : 1;
	struct tensor parts = tensor_output(d, p.in == TL_I8 ? TL_I32 : TL_F32, in_parts);
	struct tensor arrived = tensor_random(d, TL_I32, tiles, 0, 0);
	tl_arg args[] = {
		tensor_arg(&a.data), tensor_arg(&b.data), tensor_arg(&c.data), tensor_arg(&parts), tensor_arg(&arrived),
		tl_int((int64_t)p.m), tl_int((int64_t)p.n), tl_int((int64_t)p.k),
		tl_int((int64_t)a.stride[0]), tl_int((int64_t)a.stride[1]),
		tl_int((int64_t)b.stride[0]), tl_int((int64_t)b.stride[1]),
		tl_int((int64_t)c.stride[0]), tl_int((int64_t)c.stride[1]),
		tl_int(BLOCK_M), tl_int(BLOCK_N), tl_int((int64_t)block_k), tl_int(GROUP_M),
		way == SPLIT_K ? tl_int(PARTS) : p.activation ? tl_func(p.activation) : tl_none(),
	};
	size_t nargs = COUNT(args);
	if (way != SPLIT_K) { /* the others have no parts, and the persistent kernel has no activation */
		nargs -= 2 + (way == PERSISTENT);
		memmove(args + 3, args + 5, (COUNT(args) - 5) * sizeof *args);
	}
	check(&r, tl_launch(kernels[way], &config, args, nargs));
	check(&r, tl_time(kernels[way], &config, args, nargs, d->warmup, d->repeats, &r.ms));

	read_back(&r, &c.data);
	compare_matmul(&r, &p, &a, &b, &c);
	report(d, &r, 0, 2 * (double)p.m * (double)p.n * (double)p.k);
	tensor_free(&a.data);
	tensor_free(&b.data);
	tensor_free(&c.data);
	tensor_free(&parts);
	tensor_free(&arrived);
}

int main(int argc, char **argv)
{
	struct demo d;
	demo_open(&d, argc, argv);
	tl_kernel *k[WAYS] = {
		load_kernel(&d, "matmul.tl", "matmul_kernel"),
		load_kernel(&d, "matmul_persistent.tl", "matmul_persistent_kernel"),
		load_kernel(&d, "matmul_split_k.tl", "matmul_split_k_kernel"),
	};
	for (tl_dtype t = TL_F16; t <= TL_F32; t++) {
		test(&d, k, TILES, (struct problem){t, t, .m = 512, .n = 512, .k = 512});
		test(&d, k, TILES, (struct problem){t, t, .m = 250, .n = 190, .k = 77, .activation = "leaky_relu"});
	}
	test(&d, k, TILES, (struct problem){TL_F16, TL_F32, .m = 1, .n = 1, .k = 1});
	test(&d, k, TILES, (struct problem){TL_F16, TL_F16, .m = 1000, .n = 1000, .k = 1000, .activation = "relu"});
	test(&d, k, TILES, (struct problem){TL_F16, TL_F16, .m = 320, .n = 256, .k = 192, .a_transposed = true});
	test(&d, k, TILES, (struct problem){TL_F16, TL_F16, .m = 320, .n = 256, .k = 192, .b_transposed = true});
	test(&d, k, TILES,
	     (struct problem){TL_F16, TL_F16, .m = 300, .n = 200, .k = 100, .padding = 12, .activation = "leaky_relu"});
	test(&d, k, TILES,
	     (struct problem){TL_BF16, TL_F32, .m = 299, .n = 131, .k = 65, .a_transposed = true,
			      .b_transposed = true});
	test(&d, k, TILES,
	     (struct problem){TL_F32, TL_F32, .m = 300, .n = 200, .k = 100, .b_transposed = true, .padding = 4});
	test(&d, k, TILES, (struct problem){TL_I8, TL_I32, .m = 384, .n = 256, .k = 320, .b_transposed = true});
	test(&d, k, TILES, (struct problem){TL_I8, TL_I32, .m = 130, .n = 100, .k = 75, .a_transposed = true});
	test(&d, k, PERSISTENT, (struct problem){TL_F16, TL_F16, .m = 1000, .n = 700, .k = 200});
	test(&d, k, PERSISTENT, (struct problem){TL_BF16, TL_F32, .m = 299, .n = 131, .k = 65, .a_transposed = true});
	test(&d, k, PERSISTENT, (struct problem){TL_F32, TL_F32, .m = 300, .n = 200, .k = 100});
	test(&d, k, SPLIT_K, (struct problem){TL_F16, TL_F16, .m = 200, .n = 136, .k = 1000});
	test(&d, k, SPLIT_K, (struct problem){TL_BF16, TL_F32, .m = 99, .n = 131, .k = 65, .a_transposed = true});
	test(&d, k, SPLIT_K, (struct problem){TL_F32, TL_F32, .m = 300, .n = 200, .k = 100});
	test(&d, k, SPLIT_K, (struct problem){TL_I8, TL_I32, .m = 64, .n = 80, .k = 1024, .b_transposed = true});
	if (d.large) {
		test(&d, k, SPLIT_K, (struct problem){TL_F16, TL_F16, .m = 256, .n = 256, .k = 16384});
		test(&d, k, PERSISTENT, (struct problem){TL_F16, TL_F16, .m = 4096, .n = 4096, .k = 4096});
		test(&d, k, PERSISTENT, (struct problem){TL_F16, TL_F16, .m = 8192, .n = 8192, .k = 512});
		test(&d, k, TILES, (struct problem){TL_F16, TL_F16, .m = 4096, .n = 4096, .k = 4096});
		test(&d, k, TILES,
		     (struct problem){TL_F16, TL_F16, .m = 4096, .n = 4096, .k = 4096, .b_transposed = true});
		test(&d, k, TILES, (struct problem){TL_F16, TL_F16, .m = 4095, .n = 4097, .k = 4093});
		test(&d, k, TILES, (struct problem){TL_F16, TL_F16, .m = 8192, .n = 8192, .k = 8192});
		test(&d, k, TILES,
		     (struct problem){TL_BF16, TL_BF16, .m = 4096, .n = 4096, .k = 4096, .activation = "leaky_relu"});
		test(&d, k, TILES, (struct problem){TL_BF16, TL_BF16, .m = 16, .n = 8192, .k = 8192, .padding = 64});
		test(&d, k, TILES, (struct problem){TL_F32, TL_F32, .m = 4096, .n = 4096, .k = 4096});
		test(&d, k, TILES,
		     (struct problem){TL_I8, TL_I32, .m = 4096, .n = 4096, .k = 4096, .b_transposed = true});
	}
	return demo_close(&d);
}

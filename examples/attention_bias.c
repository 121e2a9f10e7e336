/* Attention with a learned bias for each distance between query and key. */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* heads × length × dim elements each; 2 radius + 1 biases for each head. */
struct problem {
	tl_dtype dtype;
	size_t heads, length, dim, radius;
};

struct inputs {
	struct tensor q, k, v, bias;
};

static void attend(const struct problem *p, const struct inputs *in, size_t head, size_t query, double scale,
		   double *weight, double *out)
{
	size_t first = head * p->length * p->dim;
	double largest = -INFINITY, total = 0;
	for (size_t n = 0; n < p->length; n++) {
		double product = 0, radius = (double)p->radius;
		for (size_t i = 0; i < p->dim; i++)
			product += tensor_get(&in->q, first + query * p->dim + i) *
				   tensor_get(&in->k, first + n * p->dim + i);
		double distance = fmax(-radius, fmin(radius, (double)n - (double)query));
		weight[n] = product * scale +
			    tensor_get(&in->bias, head * (2 * p->radius + 1) + (size_t)(distance + radius));
		largest = fmax(largest, weight[n]);
	}
	for (size_t i = 0; i < p->dim; i++)
		out[i] = 0;
	for (size_t n = 0; n < p->length; n++) {
		double w = exp(weight[n] - largest);
		total += w;
		for (size_t i = 0; i < p->dim; i++)
			out[i] += w * tensor_get(&in->v, first + n * p->dim + i);
	}
	for (size_t i = 0; i < p->dim; i++)
		out[i] /= total;
}

/* Compares some queries, spread over all heads and positions, in a few seconds. */
static void compare_attention(struct result *r, const struct problem *p, const struct inputs *in, double scale,
			      struct tensor *out)
{
	size_t all = p->heads * p->length, affordable = (size_t)1.5e8 / (p->length * p->dim) + 1;
	size_t queries = affordable < all ? affordable : all;
	r->samples = queries < all ? queries : 0;
	double *weight = malloc((p->length + p->dim) * sizeof *weight), *want = weight + p->length;
	if (!weight)
		abort();
	for (size_t i = 0; i < queries; i++) {
		size_t query = queries > 1 ? i * (all - 1) / (queries - 1) : 0;
		attend(p, in, query / p->length, query % p->length, scale, weight, want);
		for (size_t k = 0; k < p->dim; k++)
			compare(r, out, query * p->dim + k, want[k]);
	}
	compare_rest(r, out);
	free(weight);
}

static void test(struct demo *d, tl_kernel *kernel, struct problem p)
{
	struct result r = {.kernel = "attention_bias", .relative = 2 * unit_roundoff(p.dtype)};
	/* weights round to the dtype, or all operands to tf32 in the dots */
	r.absolute = p.dtype == TL_BF16 ? 1.6e-2 : p.dtype == TL_F16 ? 2e-3 : 4e-3;
	snprintf(r.what, sizeof r.what, "%zux%zux%zu %s radius %zu", p.heads, p.length, p.dim, tl_dtype_name(p.dtype),
		 p.radius);
	size_t size = p.heads * p.length * p.dim;
	struct inputs in = {
		.q = tensor_random(d, p.dtype, size, 0, 1),
		.k = tensor_random(d, p.dtype, size, 0, 1),
		.v = tensor_random(d, p.dtype, size, 0, 1),
		.bias = tensor_random(d, TL_F32, p.heads * (2 * p.radius + 1), 0, 1),
	};
	struct tensor out = tensor_output(d, p.dtype, size);
	double scale = 1 / sqrt((double)p.dim);

	enum { BLOCK_M = 64 };
	int64_t block_n = p.dtype == TL_F32 || p.dim == 128 ? 32 : 64;
	tl_config config = {
		.grid = {(uint32_t)((p.length + BLOCK_M - 1) / BLOCK_M), (uint32_t)p.heads},
		.num_warps = p.dim == 128 ? 8 : 4,
	};
	tl_arg args[] = {
		tensor_arg(&in.q), tensor_arg(&in.k), tensor_arg(&in.v), tensor_arg(&in.bias), tensor_arg(&out),
		tl_float(scale), tl_int((int64_t)(p.length * p.dim)), tl_int((int64_t)p.dim), tl_int((int64_t)p.length),
		tl_int((int64_t)p.radius), tl_int((int64_t)p.dim), tl_int(BLOCK_M), tl_int(block_n),
	};
	check(&r, tl_launch(kernel, &config, args, COUNT(args)));
	check(&r, tl_time(kernel, &config, args, COUNT(args), d->warmup, d->repeats, &r.ms));

	read_back(&r, &out);
	compare_attention(&r, &p, &in, scale, &out);
	report(d, &r, 0, 4 * (double)size * (double)p.length);
	tensor_free(&in.q);
	tensor_free(&in.k);
	tensor_free(&in.v);
	tensor_free(&in.bias);
	tensor_free(&out);
}

int main(int argc, char **argv)
{
	struct demo d;
	demo_open(&d, argc, argv);
	tl_kernel *kernel = load_kernel(&d, "attention_bias.tl", "attention_bias_kernel");
	test(&d, kernel, (struct problem){TL_F16, 2, 512, 64, .radius = 511});
	test(&d, kernel, (struct problem){TL_F16, 2, 500, 64, .radius = 32});
	test(&d, kernel, (struct problem){TL_F16, 3, 5, 64, .radius = 2});
	test(&d, kernel, (struct problem){TL_BF16, 2, 301, 128, .radius = 300});
	test(&d, kernel, (struct problem){TL_F32, 2, 200, 64, .radius = 16});
	if (d.large) {
		test(&d, kernel, (struct problem){TL_F16, 128, 1024, 64, .radius = 1023});
		test(&d, kernel, (struct problem){TL_F16, 128, 2000, 64, .radius = 128});
		test(&d, kernel, (struct problem){TL_BF16, 64, 2048, 128, .radius = 2047});
	}
	return demo_close(&d);
}

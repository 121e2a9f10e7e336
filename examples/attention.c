/* Attention over all keys, or over the keys up to the query's position. */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct problem {
	tl_dtype dtype;
	size_t batch, heads, length, dim;
	bool causal;
	bool positions_first; /* memory layout is batch × position × head × dim, not batch × head × position × dim */
};

/* Strides of batch entry, head and position. */
struct strides {
	size_t z, h, n;
};

static struct strides strides_of(const struct problem *p)
{
	size_t whole = p->length * p->heads * p->dim;
	if (p->positions_first)
		return (struct strides){whole, p->dim, p->heads * p->dim};
	return (struct strides){whole, p->length * p->dim, p->dim};
}

/* The reference for one query: the weights of the keys and the weighted sum of the values, by definition. */
static void attend(const struct problem *p, const struct tensor *in, size_t head, size_t stride, size_t query,
		   double scale, double *weight, double *out)
{
	size_t visible = p->causal ? query + 1 : p->length;
	double largest = -INFINITY, total = 0;
	for (size_t n = 0; n < visible; n++) {
		weight[n] = 0;
		for (size_t i = 0; i < p->dim; i++)
			weight[n] += tensor_get(&in[0], head + query * stride + i) *
				     tensor_get(&in[1], head + n * stride + i);
		largest = fmax(largest, weight[n] *= scale);
	}
	for (size_t i = 0; i < p->dim; i++)
		out[i] = 0;
	for (size_t n = 0; n < visible; n++) {
		double w = exp(weight[n] - largest);
		total += w;
		for (size_t i = 0; i < p->dim; i++)
			out[i] += w * tensor_get(&in[2], head + n * stride + i);
	}
	for (size_t i = 0; i < p->dim; i++)
		out[i] /= total;
}

/* Compares some queries, spread over all heads and positions, in a few seconds. */
static void compare_attention(struct result *r, const struct problem *p, const struct tensor *in, double scale,
			      struct tensor *out)
{
	struct strides s = strides_of(p);
	size_t all = p->batch * p->heads * p->length, affordable = (size_t)1.5e8 / (p->length * p->dim) + 1;
	size_t queries = affordable < all ? affordable : all;
	r->samples = queries < all ? queries : 0;
	double *weight = malloc((p->length + p->dim) * sizeof *weight), *want = weight + p->length;
	if (!weight)
		abort();
	for (size_t i = 0; i < queries; i++) {
		size_t query = queries > 1 ? i * (all - 1) / (queries - 1) : 0;
		size_t n = query % p->length, h = query / p->length % p->heads, z = query / p->length / p->heads;
		attend(p, in, z * s.z + h * s.h, s.n, n, scale, weight, want);
		for (size_t k = 0; k < p->dim; k++)
			compare(r, out, z * s.z + h * s.h + n * s.n + k, want[k]);
	}
	compare_rest(r, out);
	free(weight);
}

static void test(struct demo *d, tl_kernel *kernel, struct problem p)
{
	struct result r = {.kernel = "attention", .relative = 2 * unit_roundoff(p.dtype)};
	/* queries, scores and weights round to the dtype, or to tf32 in the dots */
	r.absolute = p.dtype == TL_BF16 ? 1.6e-2 : p.dtype == TL_F16 ? 2e-3 : 4e-3;
	snprintf(r.what, sizeof r.what, "%zux%zux%zux%zu %s%s%s", p.batch, p.heads, p.length, p.dim,
		 tl_dtype_name(p.dtype), p.causal ? " causal" : "", p.positions_first ? " strided" : "");
	size_t size = p.batch * p.heads * p.length * p.dim;
	struct strides s = strides_of(&p);
	struct tensor in[3], out = tensor_output(d, p.dtype, size);
	for (int i = 0; i < 3; i++)
		in[i] = tensor_random(d, p.dtype, size, 0, 1);
	double scale = 1 / sqrt((double)p.dim);

	enum { BLOCK_M = 128 };
	int64_t block_n = p.dtype == TL_F32 ? 32 : 64;
	tl_config config = {
		.grid = {(uint32_t)((p.length + BLOCK_M - 1) / BLOCK_M), (uint32_t)(p.batch * p.heads)},
		.num_warps = 8,
		.num_stages = 3,
	};
	tl_arg z = tl_int((int64_t)s.z), h = tl_int((int64_t)s.h), n = tl_int((int64_t)s.n);
	tl_arg args[] = {
		tensor_arg(&in[0]), tensor_arg(&in[1]), tensor_arg(&in[2]), tensor_arg(&out), tl_float(scale),
		z, h, n, z, h, n, z, h, n, z, h, n,
		tl_int((int64_t)p.heads), tl_int((int64_t)p.length), tl_int((int64_t)p.dim), tl_int(BLOCK_M),
		tl_int(block_n), tl_bool(p.causal),
	};
	check(&r, tl_launch(kernel, &config, args, COUNT(args)));
	check(&r, tl_time(kernel, &config, args, COUNT(args), d->warmup, d->repeats, &r.ms));

	read_back(&r, &out);
	compare_attention(&r, &p, in, scale, &out);
	/* two dots for each pair of query and key; in the causal case half of the pairs */
	report(d, &r, 0, 4 * (double)size * (double)p.length * (p.causal ? 0.5 : 1));
	for (int i = 0; i < 3; i++)
		tensor_free(&in[i]);
	tensor_free(&out);
}

int main(int argc, char **argv)
{
	struct demo d;
	demo_open(&d, argc, argv);
	tl_kernel *kernel = load_kernel(&d, "attention.tl", "attention_kernel");
	for (int causal = 0; causal < 2; causal++) {
		test(&d, kernel, (struct problem){TL_F16, 1, 2, 1024, 64, causal, false});
		test(&d, kernel, (struct problem){TL_F16, 2, 2, 500, 64, causal, true});
		test(&d, kernel, (struct problem){TL_F16, 1, 2, 385, 128, causal, false});
		test(&d, kernel, (struct problem){TL_BF16, 1, 2, 500, 128, causal, true});
		test(&d, kernel, (struct problem){TL_F32, 1, 2, 200, 64, causal, false});
		test(&d, kernel, (struct problem){TL_F16, 1, 3, 1, 64, causal, true});
		if (d.large) {
			test(&d, kernel, (struct problem){TL_F16, 4, 32, 1024, 64, causal, false});
			test(&d, kernel, (struct problem){TL_F16, 4, 32, 4096, 64, causal, false});
			test(&d, kernel, (struct problem){TL_F16, 4, 32, 4096, 128, causal, false});
			test(&d, kernel, (struct problem){TL_BF16, 4, 32, 4001, 128, causal, true});
		}
	}
	return demo_close(&d);
}

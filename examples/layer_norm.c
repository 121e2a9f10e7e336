/* Layer normalisation of the rows of a matrix. The means and deviations of the rows are results too. */
#include "common.h"

#include <math.h>
#include <stdio.h>

static const double eps = 1e-3; /* large enough for a visible error if the kernel omits it */

struct data {
	struct tensor x, y, weight, bias, mean, rstd;
};

static void compare_rows(struct result *r, struct data *t, size_t rows, size_t n, size_t stride)
{
	struct result of_sums = *r; /* the sums are fp32 */
	of_sums.relative = 2e-6;
	of_sums.absolute = 2e-6;
	for (size_t row = 0; row < rows; row++) {
		size_t first = row * stride;
		double mean = 0, variance = 0;
		for (size_t i = 0; i < n; i++)
			mean += tensor_get(&t->x, first + i);
		mean /= (double)n;
		for (size_t i = 0; i < n; i++)
			variance += pow(tensor_get(&t->x, first + i) - mean, 2);
		double rstd = 1 / sqrt(variance / (double)n + eps);
		compare(&of_sums, &t->mean, row, mean);
		compare(&of_sums, &t->rstd, row, rstd);
		for (size_t i = 0; i < n; i++) {
			double z = (tensor_get(&t->x, first + i) - mean) * rstd;
			compare(r, &t->y, first + i, z * tensor_get(&t->weight, i) + tensor_get(&t->bias, i));
		}
	}
	compare_rest(r, &t->y);
	compare_rest(&of_sums, &t->mean);
	compare_rest(&of_sums, &t->rstd);
	r->bad += of_sums.bad;
	r->outside += of_sums.outside;
	r->share = fmax(r->share, of_sums.share);
}

/* Rows of n elements, each followed by `padding` unused elements. */
static void test(struct demo *d, tl_kernel *kernel, tl_dtype t, size_t rows, size_t n, size_t padding)
{
	struct result r = {.kernel = "layer_norm", .absolute = 5e-6, .relative = 1.001 * unit_roundoff(t) + 1e-6};
	snprintf(r.what, sizeof r.what, "%zu x %zu %s%s", rows, n, tl_dtype_name(t), padding ? " padded rows" : "");
	size_t stride = n + padding;
	struct data x = {
		.x = tensor_random(d, t, rows * stride, 1, 2),
		.y = tensor_output(d, t, rows * stride),
		.weight = tensor_random(d, t, n, 1, 0.2),
		.bias = tensor_random(d, t, n, 0, 0.2),
		.mean = tensor_output(d, TL_F32, rows),
		.rstd = tensor_output(d, TL_F32, rows),
	};

	int64_t block = 256;
	while (block < (int64_t)n && block < 4096)
		block *= 2;
	tl_config config = {.grid = {(uint32_t)rows}, .num_warps = block >= 2048 ? 8 : 4};
	tl_arg args[] = {
		tensor_arg(&x.x), tensor_arg(&x.y), tensor_arg(&x.weight), tensor_arg(&x.bias),
		tensor_arg(&x.mean), tensor_arg(&x.rstd), tl_int((int64_t)stride), tl_int((int64_t)stride),
		tl_int((int64_t)n), tl_float(eps), tl_int(block),
	};
	check(&r, tl_launch(kernel, &config, args, COUNT(args)));
	check(&r, tl_time(kernel, &config, args, COUNT(args), d->warmup, d->repeats, &r.ms));

	read_back(&r, &x.y);
	read_back(&r, &x.mean);
	read_back(&r, &x.rstd);
	compare_rows(&r, &x, rows, n, stride);
	report(d, &r, 2 * (double)(rows * n) * (double)tl_dtype_size(t), 0);
	tensor_free(&x.x);
	tensor_free(&x.y);
	tensor_free(&x.weight);
	tensor_free(&x.bias);
	tensor_free(&x.mean);
	tensor_free(&x.rstd);
}

int main(int argc, char **argv)
{
	struct demo d;
	demo_open(&d, argc, argv);
	tl_kernel *kernel = load_kernel(&d, "layer_norm.tl", "layer_norm_kernel");
	test(&d, kernel, TL_F32, 1000, 1024, 0);
	test(&d, kernel, TL_F32, 100, 5000, 0);
	test(&d, kernel, TL_F16, 1000, 768, 0);
	test(&d, kernel, TL_F16, 1000, 781, 3);
	test(&d, kernel, TL_BF16, 300, 2000, 16);
	if (d.large) {
		test(&d, kernel, TL_F32, 8192, 4096, 0);
		test(&d, kernel, TL_F16, 8192, 4096, 0);
		test(&d, kernel, TL_F16, 8192, 16384, 0);
		test(&d, kernel, TL_F16, 4000, 5003, 5);
		test(&d, kernel, TL_BF16, 8192, 8192, 0);
	}
	return demo_close(&d);
}

/* The mean over one dimension of a three-dimensional tensor. */
#include "common.h"

#include <stdio.h>

/* Tests the mean over dimension `dim` of a tensor with the given sizes. Its elements are stored in the order of
 * dimensions order[0] (outermost) to order[2] (contiguous). */
static void test(struct demo *d, tl_kernel *kernel, tl_dtype t, const size_t size[3], int dim, const int order[3])
{
	struct result r = {.kernel = "mean", .absolute = 2e-6, .relative = 1.001 * unit_roundoff(t)};
	snprintf(r.what, sizeof r.what, "%zux%zux%zu %s dim %d%s", size[0], size[1], size[2], tl_dtype_name(t), dim,
		 order[2] != 2 ? " permuted" : "");
	size_t stride[3];
	stride[order[2]] = 1;
	stride[order[1]] = size[order[2]];
	stride[order[0]] = size[order[1]] * size[order[2]];
	int before = dim == 0 ? 1 : 0, after = dim == 2 ? 1 : 2; /* the remaining dimensions */
	size_t m = size[before], n = size[dim], k = size[after];
	struct tensor x = tensor_random(d, t, m * n * k, 0.5, 1);
	struct tensor out = tensor_output(d, t, m * k);

	/* The longer side of a tile is along the contiguous dimension. */
	int64_t block_n = stride[dim] == 1 ? 256 : 32, block_k = stride[dim] == 1 ? 4 : 64;
	size_t programs = m * ((k + (size_t)block_k - 1) / (size_t)block_k);
	/* more programs than needed: the others return at once */
	tl_config config = {.grid = {(uint32_t)(programs + 63) / 64 * 64}};
	tl_arg args[] = {
		tensor_arg(&x), tensor_arg(&out), tl_int((int64_t)m), tl_int((int64_t)n), tl_int((int64_t)k),
		tl_int((int64_t)stride[before]), tl_int((int64_t)stride[dim]), tl_int((int64_t)stride[after]),
		tl_int(block_n), tl_int(block_k),
	};
	check(&r, tl_launch(kernel, &config, args, COUNT(args)));
	check(&r, tl_time(kernel, &config, args, COUNT(args), d->warmup, d->repeats, &r.ms));

	read_back(&r, &out);
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < k; j++) {
			double sum = 0;
			for (size_t a = 0; a < n; a++)
				sum += tensor_get(&x, i * stride[before] + a * stride[dim] + j * stride[after]);
			compare(&r, &out, i * k + j, sum / (double)n);
		}
	compare_rest(&r, &out);
	report(d, &r, (double)(m * n * k + m * k) * (double)tl_dtype_size(t), 0);
	tensor_free(&x);
	tensor_free(&out);
}

int main(int argc, char **argv)
{
	static const tl_dtype dtypes[] = {TL_F32, TL_F16, TL_BF16};
	static const size_t small[3] = {130, 100, 77}, large[3] = {512, 500, 384};
	static const int row_major[3] = {0, 1, 2}, permuted[3] = {1, 2, 0};
	struct demo d;
	demo_open(&d, argc, argv);
	tl_kernel *kernel = load_kernel(&d, "mean.tl", "mean_kernel");
	for (int large_too = 0; large_too <= d.large; large_too++)
		for (int dim = 0; dim < 3; dim++) {
			const size_t *size = large_too ? large : small;
			test(&d, kernel, dtypes[dim], size, dim, row_major);
			test(&d, kernel, TL_F32, size, dim, permuted);
		}
	return demo_close(&d);
}

/* Softmax of the rows of a matrix, with a program for each row, and with programs that compute many rows. */
#include "common.h"

#include <math.h>
#include <stdio.h>

struct kernels {
	tl_kernel *rows, *persistent;
};

static void compare_rows(struct result *r, const struct tensor *x, struct tensor *y, size_t rows, size_t cols,
			 size_t stride)
{
	for (size_t row = 0; row < rows; row++) {
		size_t first = row * stride;
		double largest = -INFINITY, sum = 0;
		for (size_t i = first; i < first + cols; i++)
			largest = fmax(largest, tensor_get(x, i));
		for (size_t i = first; i < first + cols; i++)
			sum += exp(tensor_get(x, i) - largest);
		for (size_t i = first; i < first + cols; i++)
			compare(r, y, i, exp(tensor_get(x, i) - largest) / sum);
	}
	compare_rest(r, y);
}

/* Rows of `cols` elements, each followed by `padding` unused elements. */
static void test(struct demo *d, const struct kernels *k, bool persistent, tl_dtype t, size_t rows, size_t cols,
		 size_t padding)
{
	struct result r = {.kernel = persistent ? "softmax_persistent" : "softmax"};
	r.absolute = 6e-8; /* the smallest positive number in fp16 */
	r.relative = 1.001 * unit_roundoff(t) + 3e-6;
	snprintf(r.what, sizeof r.what, "%zu x %zu %s%s", rows, cols, tl_dtype_name(t), padding ? " padded rows" : "");
	size_t stride = cols + padding;
	struct tensor x = tensor_random(d, t, rows * stride, 0, 2);
	struct tensor y = tensor_output(d, t, rows * stride);

	int64_t block = 1; /* the whole row */
	while (block < (int64_t)cols)
		block *= 2;
	int warps = block <= 1024 ? 4 : block <= 8192 ? 8 : 16;
	tl_arg row_args[] = {
		tensor_arg(&x), tensor_arg(&y), tl_int((int64_t)stride), tl_int((int64_t)stride),
		tl_int((int64_t)cols), tl_int(block),
	};
	tl_arg persistent_args[] = {
		tensor_arg(&x), tensor_arg(&y), tl_int((int64_t)stride), tl_int((int64_t)stride),
		tl_int((int64_t)rows), tl_int((int64_t)cols), tl_int(block), tl_int(2),
	};
	tl_kernel *kernel = persistent ? k->persistent : k->rows;
	tl_arg *args = persistent ? persistent_args : row_args;
	size_t nargs = persistent ? COUNT(persistent_args) : COUNT(row_args);
	/* Enough programs to fill the device: a multiprocessor holds 32 to 64 warps. */
	size_t programs = persistent ? (size_t)d->device.num_sms * 32 / (size_t)warps : rows;
	tl_config config = {.grid = {(uint32_t)(programs < rows ? programs : rows)}, .num_warps = warps};
	check(&r, tl_launch(kernel, &config, args, nargs));
	check(&r, tl_time(kernel, &config, args, nargs, d->warmup, d->repeats, &r.ms));

	read_back(&r, &y);
	compare_rows(&r, &x, &y, rows, cols, stride);
	report(d, &r, 2 * (double)(rows * cols) * (double)tl_dtype_size(t), 0);
	tensor_free(&x);
	tensor_free(&y);
}

int main(int argc, char **argv)
{
	struct demo d;
	demo_open(&d, argc, argv);
	struct kernels k = {
		load_kernel(&d, "softmax.tl", "softmax_kernel"),
		load_kernel(&d, "softmax_persistent.tl", "softmax_persistent_kernel"),
	};
	for (int persistent = 0; persistent < 2; persistent++) {
		test(&d, &k, persistent, TL_F32, 1, 1, 0);
		test(&d, &k, persistent, TL_F32, 1000, 1024, 0);
		test(&d, &k, persistent, TL_F32, 1823, 781, 0);
		test(&d, &k, persistent, TL_F32, 500, 1000, 24);
		test(&d, &k, persistent, TL_F16, 300, 4097, 7);
		test(&d, &k, persistent, TL_BF16, 1000, 512, 0);
		if (d.large) {
			test(&d, &k, persistent, TL_F32, 16384, 1024, 0);
			test(&d, &k, persistent, TL_F32, 4096, 8192, 0);
			test(&d, &k, persistent, TL_F32, 4096, 12288, 0);
			test(&d, &k, persistent, TL_F16, 8192, 4096, 64);
			test(&d, &k, persistent, TL_BF16, 4096, 5000, 0);
		}
	}
	return demo_close(&d);
}

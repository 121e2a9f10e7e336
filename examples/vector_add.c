/* The sum of two vectors: a minimal program that launches a kernel. */
#include "common.h"

#include <stdio.h>

enum { BLOCK = 1024 };

/* With `skip`, the vectors start at that element of their buffers, so they are not aligned to 16 bytes. */
static void test(struct demo *d, tl_kernel *kernel, tl_dtype t, size_t n, size_t skip)
{
	struct result r = {.kernel = "vector_add", .relative = 1.001 * unit_roundoff(t)};
	r.absolute = t == TL_I32 ? 0 : 0x1p-25; /* half the distance between the smallest numbers of fp16 */
	snprintf(r.what, sizeof r.what, "%zu %s%s", n, tl_dtype_name(t), skip ? " unaligned" : "");
	struct tensor x = tensor_random(d, t, n + skip, 0, 1);
	struct tensor y = tensor_random(d, t, n + skip, 0, 1);
	struct tensor out = tensor_output(d, t, n + skip);
	size_t bytes = skip * tl_dtype_size(t);

	tl_config config = {.grid = {(uint32_t)((n + BLOCK - 1) / BLOCK)}};
	tl_arg args[] = {
		tl_ptr(t, (char *)tl_buffer_ptr(x.buffer) + bytes),
		tl_ptr(t, (char *)tl_buffer_ptr(y.buffer) + bytes),
		tl_ptr(t, (char *)tl_buffer_ptr(out.buffer) + bytes),
		tl_int((int64_t)n),
		tl_int(BLOCK),
	};
	check(&r, tl_launch(kernel, &config, args, COUNT(args)));
	check(&r, tl_time(kernel, &config, args, COUNT(args), d->warmup, d->repeats, &r.ms));

	read_back(&r, &out);
	for (size_t i = skip; i < n + skip; i++)
		compare(&r, &out, i, tensor_get(&x, i) + tensor_get(&y, i));
	compare_rest(&r, &out);
	report(d, &r, 3 * (double)n * (double)tl_dtype_size(t), 0);
	tensor_free(&x);
	tensor_free(&y);
	tensor_free(&out);
}

int main(int argc, char **argv)
{
	struct demo d;
	demo_open(&d, argc, argv);
	tl_kernel *kernel = load_kernel(&d, "vector_add.tl", "add_kernel");
	test(&d, kernel, TL_F32, 1, 0);
	test(&d, kernel, TL_F32, 1 << 22, 0);
	test(&d, kernel, TL_F32, 1000003, 0);
	test(&d, kernel, TL_F32, 1000003, 1);
	test(&d, kernel, TL_F16, 1000003, 0);
	test(&d, kernel, TL_BF16, 1000003, 3);
	test(&d, kernel, TL_I32, 1000003, 0);
	if (d.large) {
		test(&d, kernel, TL_F32, (size_t)1 << 26, 0);
		test(&d, kernel, TL_F32, 50000017, 0);
		test(&d, kernel, TL_F16, (size_t)1 << 26, 0);
		test(&d, kernel, TL_BF16, 50000017, 1);
	}
	return demo_close(&d);
}

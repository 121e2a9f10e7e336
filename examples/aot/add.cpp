// The same in C++, on a stream and memory of one's own where there are some: tl_config.stream takes a CUstream, and any
// device pointer will do.
#include "vector_add.h"

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

static void must(tl_status s)
{
	if (s)
		throw std::runtime_error(tl_error(nullptr));
}

int main(int argc, char **argv)
try {
	const int n = 3000, block = 1024;
	tl_context *made;
	must(tl_context_create(argc > 1 ? argv[1] : "cuda", &made));
	std::unique_ptr<tl_context, void (*)(tl_context *)> ctx(made, tl_context_destroy);
	std::vector<float> x(n, 2), y(n, 0.5f), sum(n);
	const std::size_t bytes = n * sizeof(float);
	tl_buffer *bx, *by, *bsum;
	must(tl_buffer_create(ctx.get(), bytes, &bx));
	must(tl_buffer_create(ctx.get(), bytes, &by));
	must(tl_buffer_create(ctx.get(), bytes, &bsum));
	must(tl_buffer_write(bx, 0, x.data(), bytes));
	must(tl_buffer_write(by, 0, y.data(), bytes));
	tl_compiled *add;
	must(add_kernel_load(ctx.get(), &add));
	tl_config cfg = tl_config();
	cfg.grid[0] = (n + block - 1) / block;
	must(add_kernel(add, &cfg, static_cast<float *>(tl_buffer_ptr(bx)), static_cast<float *>(tl_buffer_ptr(by)),
			static_cast<float *>(tl_buffer_ptr(bsum)), n));
	must(tl_buffer_read(bsum, 0, sum.data(), bytes));
	int wrong = 0;
	for (float s : sum)
		wrong += s != 2.5f;
	std::printf("%d of %d sums are wrong\n", wrong, n);
	return wrong != 0;
} catch (const std::exception &e) {
	std::fprintf(stderr, "%s\n", e.what());
	return 1;
}

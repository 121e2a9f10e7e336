// A program in C++ with libtl: tests/install.sh builds it against an installed library.
#include <cstdio>
#include <vector>
#include <tl.h>

int main()
{
	const char text[] = "@triton.jit\ndef twice(x, n, BLOCK: tl.constexpr = 64):\n    i = tl.arange(0, BLOCK)\n"
			    "    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)\n";
	tl_context *ctx = nullptr;
	tl_module *module = nullptr;
	tl_kernel *twice = nullptr;
	tl_buffer *x = nullptr;
	std::vector<float> host(50, 21.0f);
	tl_config config = tl_config();
	config.grid[0] = 1;
	const size_t bytes = host.size() * sizeof(float);
	if (tl_context_create("interp", &ctx) || tl_module_load_source(ctx, "twice.tl", text, sizeof text - 1, &module) ||
	    tl_module_kernel(module, "twice", &twice) || tl_buffer_create(ctx, bytes, &x) || tl_buffer_write(x, 0, host.data(), bytes)) {
		std::fprintf(stderr, "%s\n", tl_error(ctx));
		return 1;
	}
	const tl_arg args[] = {tl_buf(TL_F32, x), tl_int(static_cast<int64_t>(host.size()))};
	if (tl_launch(twice, &config, args, 2) || tl_buffer_read(x, 0, host.data(), bytes)) {
		std::fprintf(stderr, "%s\n", tl_error(ctx));
		return 1;
	}
	std::printf("%g %s\n", host[49], TL_VERSION);
	tl_context_destroy(ctx);
}

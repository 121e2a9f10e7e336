// The kernel of the sub-project; prints one element.
#include "scaled.h"

#include <cstdio>
#include <vector>

int main()
{
	tl_context *ctx;
	tl_compiled *scaled;
	std::vector<float> x(1000, 2);
	tl_config cfg = tl_config();
	cfg.grid[0] = 4;
	if (tl_context_create("cpu", &ctx) || my_scaled_load(ctx, &scaled) ||
	    my_scaled(scaled, &cfg, x.data(), static_cast<int32_t>(x.size()), 1.5f) || tl_synchronize(ctx)) {
		std::fprintf(stderr, "%s\n", tl_error(nullptr));
		return 1;
	}
	std::printf("%g\n", x[999]);
	tl_context_destroy(ctx);
}

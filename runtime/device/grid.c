#include "runtime/device/grid.h"

tl_status check_stream(const char *name, const struct device *dev, const void *stream)
{
	if (stream && !dev->ops->has_streams)
		return failed(TL_ERR_ARGUMENT, "%s: the %s device has no streams; the stream must be NULL", name,
			      dev->ops->name);
	return TL_OK;
}

tl_status check_grid(const char *name, const tl_config *cfg)
{
	static const u32 limit[] = {MOST_X, MOST_YZ, MOST_YZ};
	if (cfg->grid_dims < 0 || cfg->grid_dims > 3)
		return failed(TL_ERR_ARGUMENT, "%s: grid_dims is %d; it must be from 0 to 3", name, cfg->grid_dims);
	for (int i = 0; i < 3; i++) {
		if (cfg->grid[i] > limit[i])
			return failed(TL_ERR_ARGUMENT, "%s: the grid has %u programs along axis %d; the limit is %u",
				      name, cfg->grid[i], i, limit[i]);
		if (cfg->grid_dims && i >= cfg->grid_dims && cfg->grid[i] > 1)
			return failed(TL_ERR_ARGUMENT,
				      "%s: the grid has %u programs along axis %d, but grid_dims is %d", name,
				      cfg->grid[i], i, cfg->grid_dims);
	}
	return TL_OK;
}

#include "runtime/device/grid.h"

#include "runtime/device/conditions.h"

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

static tl_status pass_maps(struct device *dev, const struct image *im, struct launch *l)
{
	tl_status s = TL_OK;
	u64 begins = 0;
	l->device.nmaps = im->nmaps;
	for (u32 i = 0; i < im->nmaps && !s; i++) {
		const struct map_values of = map_values(im, i, l->bits);
		begins |= of.base | of.distance;
		const struct tensor_map_shape box = tensor_map_shape_of(im, i, &of);
		s = dev->ops->tensor_map(dev, &box, l->maps[i]);
		l->bits[l->device.nargs++] = (u64)(uintptr_t)l->maps[i];
	}
	pass_pairs(im, begins, l);
	return s;
}

tl_status image_launch(struct device *dev, const struct image *im, void *code, const tl_config *cfg, const u32 *grid,
		       struct launch *l)
{
	tl_status s = pass_grid(im->name, im, grid, most_blocks(dev, cfg), l);
	l->device.kernel = code;
	l->device.args = l->bits;
	l->device.stream = cfg->stream;
	l->device.cooperative = cfg->launch_cooperative_grid;
	l->device.pdl = cfg->launch_pdl;
	return s ? s : pass_maps(dev, im, l);
}

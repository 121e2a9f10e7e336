/* A kernel image that a device has loaded, and its launches. */
#ifndef TL_DEVICE_LOADED_H
#define TL_DEVICE_LOADED_H

#include <stdatomic.h>

#include "runtime/device/device.h"
#include "runtime/image/params.h"

/* The last tensor map of a kernel, for later launches with the same map. Read and written without a lock: the version
 * is odd while the words change. */
struct map_memo {
	_Atomic(u64) version, of[4], map[16];
};

struct condition;
struct loaded {
	void *code;                   /* the device's handle */
	u32 nslots;                   /* of the image */
	bool plain;                   /* a launch passes the slots only: no grid and no tensor maps */
	u32 nconditions;              /* see runtime/device/conditions.h */
	struct condition *conditions;
	const struct image *image;    /* NULL: nothing is loaded */
	struct map_memo *memos;       /* one for each tensor map */
};

/* Loads l->image, and unloads the image that `k` had before. The image must stay valid until loaded_close, which must
 * also be called after an error. `k` must be zeroed before its first load. */
tl_status loaded_open(struct device *dev, const struct device_load *l, struct loaded *k);
/* Unloads the image if it is loaded. */
void loaded_close(struct device *dev, struct loaded *k);

/* A launch. The caller writes the bits of the slots, loaded_fill all other members. */
struct launch {
	struct device_launch device;
	u64 bits[MAX_KERNEL_PARAMS + GRID_PARAMS + MAX_TENSOR_MAPS]; /* of the slots, then of the hidden parameters */
	_Alignas(TENSOR_MAP_ALIGN) u8 maps[MAX_TENSOR_MAPS][TENSOR_MAP_BYTES];
};
/* `grid` and `stream` replace the config's. */
tl_status loaded_fill(struct device *dev, const struct loaded *k, const tl_config *cfg, const u32 *grid, void *stream,
		      struct launch *l);
/* Fills the launch and launches it, unless the grid has no programs. */
tl_status loaded_start(struct device *dev, const struct loaded *k, const tl_config *cfg, const u32 *grid, void *stream,
		       struct launch *l);
/* loaded_start, inlined for kernels that take their slots only. */
static inline tl_status loaded_launch(struct device *dev, const struct loaded *k, const tl_config *cfg,
				      const u32 *grid, void *stream, struct launch *l)
{
	if (!k->plain || !grid[0] || !grid[1] || !grid[2])
		return loaded_start(dev, k, cfg, grid, stream, l);
	l->device = (struct device_launch){.kernel = k->code,
					   .grid = {grid[0], grid[1], grid[2]},
					   .args = l->bits,
					   .nargs = k->nslots,
					   .stream = stream,
					   .cooperative = cfg->launch_cooperative_grid,
					   .pdl = cfg->launch_pdl};
	return dev->ops->launch(dev, &l->device);
}

#endif

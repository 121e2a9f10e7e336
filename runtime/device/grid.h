/* The grid of a launch, and a launch as it is put together: of a kernel image, without anything of the compiler. */
#ifndef TL_DEVICE_GRID_H
#define TL_DEVICE_GRID_H

#include "runtime/device/device.h"
#include "runtime/image/error.h"
#include "runtime/image/params.h"

struct launch {
	struct device_launch device;
	u64 bits[MAX_KERNEL_PARAMS + GRID_PARAMS + MAX_TENSOR_MAPS]; /* of the slots, then of hidden parameters */
	_Alignas(TENSOR_MAP_ALIGN) u8 maps[MAX_TENSOR_MAPS][TENSOR_MAP_BYTES];
};

/* The programs along each axis. */
static inline void grid_of(const tl_config *cfg, u32 *grid)
{
	int set = cfg->grid_dims;
	if (!set) /* x, and what stands in front of the last axis that is not 0 */
		set = cfg->grid[2] ? 3 : cfg->grid[1] ? 2 : 1;
	grid[0] = cfg->grid[0];
	grid[1] = set > 1 ? cfg->grid[1] : 1;
	grid[2] = set > 2 ? cfg->grid[2] : 1;
}

enum { MOST_PROGRAMS = 1 << 30 /* that a block counts, in 32 bits */ };
/* How many programs; 0: more than a block counts. */
static inline u32 count_programs(const u32 *grid)
{
	u64 programs = 1;
	for (int i = 0; i < 3; i++) {
		programs *= grid[i];
		if (programs > MOST_PROGRAMS)
			return 0;
	}
	return (u32)programs;
}

/* For a launch with few blocks. */
static inline u32 most_blocks(const struct device *dev, const tl_config *cfg)
{
	return cfg->max_ctas ? (u32)MAX(cfg->max_ctas, 0) : dev->num_sms;
}

/* The message begins with the kernel's name. */
tl_status check_grid(const char *name, const tl_config *cfg);
/* Would check_grid find nothing wrong with a grid of three axes? */
enum { MOST_X = 0x7FFFFFFF, MOST_YZ = 0xFFFF };
static inline bool grid_fits(const u32 *grid)
{
	return grid[0] <= MOST_X && (grid[1] | grid[2]) <= MOST_YZ; /* one less than a power of two */
}

/* The grid as the image takes it, behind the bits of its slots: programs, or few blocks, `most` where that is not 0,
 * and how many programs these run. */
static inline tl_status pass_grid(const char *name, const struct image *im, const u32 *grid, u32 most, struct launch *l)
{
	memcpy(l->device.grid, grid, sizeof l->device.grid);
	l->device.nargs = im->nslots;
	l->device.pairs = false;
	if (!im->persistent)
		return TL_OK;
	u32 programs = count_programs(grid);
	if (!programs && grid[0] && grid[1] && grid[2])
		return failed(TL_ERR_ARGUMENT,
			      "%s: the grid has more than %d programs, the limit of a persistent kernel", name,
			      MOST_PROGRAMS);
	for (u32 i = 0; i < GRID_PARAMS; i++)
		l->bits[l->device.nargs++] = grid[i];
	l->device.grid[0] = most ? MIN(programs, most) : programs;
	l->device.grid[1] = l->device.grid[2] = 1;
	return TL_OK;
}

/* Behind pass_grid: blocks are clusters of two where their number is even and rows begin within a sector, as `begins`
 * says, the addresses of all maps' tensors and the distances of their rows, or'ed; else sharing boxes gains nothing. */
static inline void pass_pairs(const struct image *im, u64 begins, struct launch *l)
{
	l->device.pairs = im->pairs && l->device.grid[0] % 2 == 0 && begins % SECTOR_BYTES;
}

/* Completes the bits of the slots to a launch of the image, with tensor maps that the device makes, on no stream. */
tl_status image_launch(struct device *dev, const struct image *im, void *code, const tl_config *cfg, const u32 *grid,
		       struct launch *l);

#endif

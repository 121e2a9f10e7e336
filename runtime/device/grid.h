/* The grid of a launch, and the data of a launch, for a kernel image. It does not need the compiler. */
#ifndef TL_DEVICE_GRID_H
#define TL_DEVICE_GRID_H

#include "runtime/device/device.h"
#include "runtime/image/error.h"
#include "runtime/image/params.h"

struct launch {
	struct device_launch device;
	u64 bits[MAX_KERNEL_PARAMS + GRID_PARAMS + MAX_TENSOR_MAPS]; /* of the slots, then of the hidden parameters */
	_Alignas(TENSOR_MAP_ALIGN) u8 maps[MAX_TENSOR_MAPS][TENSOR_MAP_BYTES];
};

/* The programs along each axis. */
static inline void grid_of(const tl_config *cfg, u32 *grid)
{
	int set = cfg->grid_dims;
	if (!set) /* x, and the axes before the last axis that is not 0 */
		set = cfg->grid[2] ? 3 : cfg->grid[1] ? 2 : 1;
	grid[0] = cfg->grid[0];
	grid[1] = set > 1 ? cfg->grid[1] : 1;
	grid[2] = set > 2 ? cfg->grid[2] : 1;
}

enum { MOST_PROGRAMS = 1 << 30 /* that a persistent block counts, in 32 bits */ };
/* The number of programs; 0: more than MOST_PROGRAMS. */
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

/* The most blocks of a persistent kernel; 0: no limit. */
static inline u32 most_blocks(const struct device *dev, const tl_config *cfg)
{
	return cfg->max_ctas ? (u32)MAX(cfg->max_ctas, 0) : dev->num_sms;
}

/* The message begins with the kernel's name. */
tl_status check_grid(const char *name, const tl_config *cfg);
/* True if check_grid accepts a grid of three axes. */
enum { MOST_X = 0x7FFFFFFF, MOST_YZ = 0xFFFF };
static inline bool grid_fits(const u32 *grid)
{
	return grid[0] <= MOST_X && (grid[1] | grid[2]) <= MOST_YZ; /* both are one less than a power of two */
}

/* Sets the launch's grid, and for a persistent kernel the grid parameters after the slots. A persistent kernel has at
 * most `most` blocks; 0 is no limit. */
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

/* To be called after pass_grid. Blocks form clusters of two if their number is even and rows begin inside a sector;
 * else sharing TMA tiles gains nothing. `begins`: the bitwise or of the addresses of all maps' tensors and of their row
 * strides. */
static inline void pass_pairs(const struct image *im, u64 begins, struct launch *l)
{
	l->device.pairs = im->pairs && l->device.grid[0] % 2 == 0 && begins % SECTOR_BYTES;
}

/* Completes a launch of the image after the bits of its slots: grid, tensor maps, stream. */
tl_status image_launch(struct device *dev, const struct image *im, void *code, const tl_config *cfg, const u32 *grid,
		       struct launch *l);

#endif

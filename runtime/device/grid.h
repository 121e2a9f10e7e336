/* The grid and the stream of a launch. */
#ifndef TL_DEVICE_GRID_H
#define TL_DEVICE_GRID_H

#include "runtime/device/device.h"
#include "runtime/image/error.h"
#include "runtime/image/params.h"

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

/* The kind of a grid for a kernel of at most `most` blocks (most_blocks). Grids of more rows than MOST_ROWS_AT_ONCE,
 * and many waves of programs, read more data at once than L2 may hold. For smaller grids computing the program numbers
 * costs 1 to 6 % (H100: 2-bit weights, experts of 20 rows, a convolution). */
static inline enum grid_kind kind_of_programs(u32 multiprocessors, u32 most, const u32 *grid)
{
	enum { MOST_ROWS_AT_ONCE = 32 };
	u32 programs = most ? count_programs(grid) : 0;
	if (programs <= most)
		return GRID_FEW;
	if (programs <= (u64)MANY_WAVES * multiprocessors)
		return GRID_MANY;
	return grid[0] > MOST_ROWS_AT_ONCE && grid[1] > 1 ? GRID_ROWS : GRID_WAVES;
}

/* Messages begin with `name`, of a kernel or a call. */
tl_status check_stream(const char *name, const struct device *dev, const void *stream);
tl_status check_grid(const char *name, const tl_config *cfg);
/* True if check_grid accepts a grid of three axes. */
enum { MOST_X = 0x7FFFFFFF, MOST_YZ = 0xFFFF };
static inline bool grid_fits(const u32 *grid)
{
	return grid[0] <= MOST_X && (grid[1] | grid[2]) <= MOST_YZ; /* both are one less than a power of two */
}

#endif

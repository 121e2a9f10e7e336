#include "runtime/device/loaded.h"

#include <stdlib.h>

#include "runtime/device/conditions.h"
#include "runtime/device/grid.h"

tl_status loaded_open(struct device *dev, const struct device_load *l, struct loaded *k)
{
	const struct image *im = l->image;
	loaded_close(dev, k);
	k->nslots = im->nslots;
	k->plain = !im->nmaps && !im->persistent;
	k->memos = calloc(im->nmaps + 1, sizeof *k->memos);
	k->conditions = conditions_make(im, &k->nconditions);
	if (!k->memos || !k->conditions)
		return failed(TL_ERR_MEMORY, "out of host memory");
	tl_status s = dev->ops->load(dev, l, &k->code);
	if (!s)
		k->image = im;
	return s;
}

void loaded_close(struct device *dev, struct loaded *k)
{
	if (k->image && dev->ops->unload)
		dev->ops->unload(dev, k->code);
	free(k->memos);
	free(k->conditions);
	*k = (struct loaded){.image = NULL};
}

/* --- tensor maps --------------------------------------------------------------------------------------------- */

_Static_assert(sizeof((struct map_memo *)0)->map == TENSOR_MAP_BYTES &&
		       sizeof((struct map_memo *)0)->of == sizeof(struct map_values),
	       "words of a memo");

static inline u64 word_of(const void *p, u32 i)
{
	u64 w;
	memcpy(&w, (const char *)p + i * sizeof w, sizeof w);
	return w;
}

/* False: the memo has another map, or is being written. The acquiring loads keep the second load of the version last.
 * The map is copied word by word to its destination, because wide loads of data that narrow stores have just written
 * are slow. */
static bool recall_map(struct map_memo *memo, const struct map_values *of, u8 *out)
{
	u64 differ = 0, version = atomic_load_explicit(&memo->version, memory_order_acquire);
	for (u32 i = 0; i < ARRAY_LEN(memo->of); i++)
		differ |= atomic_load_explicit(&memo->of[i], memory_order_acquire) ^ word_of(of, i);
	if (differ || version % 2 || !version)
		return false;
#pragma GCC unroll 16
	for (u32 i = 0; i < ARRAY_LEN(memo->map); i++) {
		u64 w = atomic_load_explicit(&memo->map[i], memory_order_acquire);
		memcpy(out + i * sizeof w, &w, sizeof w);
	}
	return atomic_load_explicit(&memo->version, memory_order_relaxed) == version;
}

/* Does nothing while another thread writes the memo. */
static void remember_map(struct map_memo *memo, const struct map_values *of, const u8 *map)
{
	u64 version = atomic_load_explicit(&memo->version, memory_order_relaxed);
	if (version % 2 || !atomic_compare_exchange_strong_explicit(&memo->version, &version, version + 1,
								    memory_order_acq_rel, memory_order_relaxed))
		return;
	for (u32 i = 0; i < ARRAY_LEN(memo->of); i++)
		atomic_store_explicit(&memo->of[i], word_of(of, i), memory_order_release);
	for (u32 i = 0; i < ARRAY_LEN(memo->map); i++)
		atomic_store_explicit(&memo->map[i], word_of(map, i), memory_order_release);
	atomic_store_explicit(&memo->version, version + 2, memory_order_release);
}

/* Sets the launch's grid, and for a persistent kernel the grid parameters after the slots. A persistent kernel has at
 * most `most` blocks; 0 is no limit. */
static tl_status pass_grid(const struct image *im, const u32 *grid, u32 most, struct launch *l)
{
	memcpy(l->device.grid, grid, sizeof l->device.grid);
	l->device.nargs = im->nslots;
	l->device.pairs = false;
	if (!im->persistent)
		return TL_OK;
	u32 programs = count_programs(grid);
	if (!programs && grid[0] && grid[1] && grid[2])
		return failed(TL_ERR_ARGUMENT,
			      "%s: the grid has more than %d programs, the limit of a persistent kernel", im->name,
			      MOST_PROGRAMS);
	for (u32 i = 0; i < GRID_PARAMS; i++)
		l->bits[l->device.nargs++] = grid[i];
	l->device.grid[0] = most ? MIN(programs, most) : programs;
	l->device.grid[1] = l->device.grid[2] = 1;
	return TL_OK;
}

/* To be called after pass_grid. Blocks form clusters of two if their number is even and rows begin inside a sector;
 * else sharing TMA tiles gains nothing. */
static tl_status pass_maps(struct device *dev, const struct loaded *k, struct launch *l)
{
	tl_status s = TL_OK;
	const struct image *im = k->image;
	u64 begins = 0; /* the bitwise or of the addresses of all tensors and of their row strides */
	for (u32 i = 0; i < im->nmaps && !s; i++) {
		const struct map_values of = map_values(im, i, l->bits);
		begins |= of.base | of.distance;
		if (!recall_map(&k->memos[i], &of, l->maps[i])) {
			const struct tensor_map_shape box = tensor_map_shape_of(&im->maps[i], &of);
			s = dev->ops->tensor_map(dev, &box, l->maps[i]);
			if (!s)
				remember_map(&k->memos[i], &of, l->maps[i]);
		}
		l->bits[l->device.nargs++] = (u64)(uintptr_t)l->maps[i];
	}
	l->device.pairs = im->pairs && l->device.grid[0] % 2 == 0 && begins % SECTOR_BYTES;
	return s;
}

/* --- launches ------------------------------------------------------------------------------------------------ */

tl_status loaded_fill(struct device *dev, const struct loaded *k, const tl_config *cfg, const u32 *grid, void *stream,
		      struct launch *l)
{
	tl_status s = pass_grid(k->image, grid, most_blocks(dev, cfg), l);
	l->device.kernel = k->code;
	l->device.args = l->bits;
	l->device.nmaps = k->image->nmaps;
	l->device.stream = stream;
	l->device.cooperative = cfg->launch_cooperative_grid;
	l->device.pdl = cfg->launch_pdl;
	return s || !k->image->nmaps ? s : pass_maps(dev, k, l);
}

tl_status loaded_start(struct device *dev, const struct loaded *k, const tl_config *cfg, const u32 *grid, void *stream,
		       struct launch *l)
{
	if (!grid[0] || !grid[1] || !grid[2])
		return TL_OK;
	tl_status s = loaded_fill(dev, k, cfg, grid, stream, l);
	return s ? s : dev->ops->launch(dev, &l->device);
}

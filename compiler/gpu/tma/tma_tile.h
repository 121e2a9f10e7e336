/* Tiles of pointers that are boxes: rows of contiguous elements at equal distances, which the hardware copies whole
 * (TMA). */
#ifndef TLC_GPU_TMA_TMA_TILE_H
#define TLC_GPU_TMA_TMA_TILE_H

#include "ir/launch_product.h"
#include "analysis/axis.h"
#include "gpu/gpu_passes.h"

struct tma_tile {
	int along;           /* the dimension that rows run along; the other one counts them */
	struct launch_product distance; /* from row to row, in bytes */
	/* The tensor whose bounds the copy respects, which a parameter points to, or to memory in front of where it
	 * begins (NULL: right there); NULL: the box may lie anywhere in memory. Along each dimension it begins at
	 * *start, of which there is a splat (NULL: 0), plus times * *index of the loop around the load (NULL: 0), and
	 * there are so many elements. */
	struct value *tensor, *begin, *start[2], *index[2];
	i64 times[2];
	struct launch_product size[2];
	bool narrow; /* the offset of the tensor's last element must fit 31 bits */
};
/* Where a box begins, by the splat of it: an i32, or an i64 that is one. */
struct value *tma_tile_start(const struct value *splat);
/* Are the addresses in `ptr`, a placed tile of two dimensions, those of a box, which a buffer of layout `mem` can
 * receive? */
bool find_tma_tile(const struct pass_state *s, struct value *ptr, const struct layout *mem, struct tma_tile *out);

/* Does the load read zeros outside of a tensor and the tensor inside, by addresses and a mask that are made of the same
 * row of places along each dimension, as those of a tensor descriptor are? */
bool find_bounded_tile(const struct pass_state *s, const struct op *load, const struct layout *mem,
		       struct tma_tile *out);

/* Can boxes of the tile, in a buffer of this layout, be copied by hardware if rows run along d? */
bool tma_tile_fits(struct layout_pool *pool, const struct type *t, int d, const struct layout *mem);

#endif

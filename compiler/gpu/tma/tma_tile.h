/* TMA tiles: tiles of pointers with rows of contiguous elements and a constant row stride, which TMA copies whole. */
#ifndef TLC_GPU_TMA_TMA_TILE_H
#define TLC_GPU_TMA_TMA_TILE_H

#include "ir/launch_product.h"
#include "analysis/axis.h"
#include "gpu/gpu_passes.h"

struct tma_tile {
	int along;           /* the dimension along which rows are contiguous; the other one counts rows */
	struct launch_product distance; /* the row stride, in bytes */
	/* `tensor`: a parameter that points to the tensor whose bounds the copy respects, or to memory before it; NULL:
	 * no bounds, the tile may be anywhere in memory. `begin`: pointer to the tensor's first element; NULL: `tensor`
	 * is. Along each dimension, the tile begins at *start (NULL: 0), given by a splat of it, plus times * *index of
	 * the loop around the load (NULL: 0). `size`: elements of the tensor along each dimension. */
	struct value *tensor, *begin, *start[2], *index[2];
	i64 times[2];
	struct launch_product size[2];
	bool narrow; /* the offset of the tensor's last element must fit 31 bits */
};
/* The start of a tile, given by a splat of it: an i32, or an i64 with the value of an i32. */
struct value *tma_tile_start(const struct value *splat);
/* True if the addresses in `ptr`, a two-dimensional tile with a layout, form a TMA tile that a buffer of layout `mem`
 * can receive. */
bool find_tma_tile(const struct pass_state *s, struct value *ptr, const struct layout *mem, struct tma_tile *out);

/* True if the load reads a tile of a tensor, and zeros outside the tensor. The addresses and the mask must be made of
 * the same row of coordinates along each dimension, as for a tensor descriptor. */
bool find_bounded_tile(const struct pass_state *s, const struct op *load, const struct layout *mem,
		       struct tma_tile *out);

/* True if TMA can copy a tile of type t, with rows along d, to a buffer of this layout. */
bool tma_tile_fits(struct layout_pool *pool, const struct type *t, int d, const struct layout *mem);

#endif

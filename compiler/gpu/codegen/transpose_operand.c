/* Transposition of an MN-major wgmma operand in shared memory, in place: all threads of the block read it to registers,
 * synchronize, and write it K-major. */
#include "gpu/codegen/nvptx_internal.h"

/* Stores to `out` masks of the bits `low` to `high` - 1 of the coordinate along dimension d, as bits of an element's
 * position (the coordinates of all dimensions, concatenated). Returns the number of masks. */
static int bits_along(const struct layout *lay, int d, int low, int high, u32 *out)
{
	int n = 0;
	for (int i = low; i < MIN(high, lay->log2_size[d]); i++)
		out[n++] = 1u << (layout_dim_shift(lay, d) + i);
	return n;
}

/* Completes the layout: assigns n position bits `rest` to lanes until all lane bits are used, then to warps, then to
 * registers. */
static const struct layout *share_out(struct lower *l, struct layout *lay, const u32 *rest, int n)
{
	int warp_bits = ilog2((u64)l->k->num_warps);
	for (int i = 0; i < n; i++) {
		enum layout_dim dim = lay->bits[LL_LANE] < LANE_BITS   ? LL_LANE
				      : lay->bits[LL_WARP] < warp_bits ? LL_WARP
								       : LL_REG;
		lay->basis[dim][lay->bits[dim]++] = rest[i];
	}
	tl_assert(lay->bits[LL_WARP] == warp_bits);
	return layout_intern(&l->s->ctx->layouts, lay);
}

/* The layout in registers, for elements of 32 bits: each thread holds vectors of four elements along k. Lanes hold
 * neighbours along the other dimension. They read these from one row of the MN-major buffer, and write them to
 * consecutive rows of the K-major buffer, which the swizzle puts in different banks. */
static const struct layout *layout_of_words(struct lower *l, const i32 *shape, int k)
{
	enum { VECTOR_BITS = 2 };
	struct layout lay = layout_empty(2, shape);
	u32 rest[LAYOUT_MAX_BITS];
	lay.bits[LL_REG] = (u8)bits_along(&lay, k, 0, VECTOR_BITS, lay.basis[LL_REG]);
	int n = bits_along(&lay, 1 - k, 0, LANE_BITS, rest);
	n += bits_along(&lay, k, VECTOR_BITS, LAYOUT_MAX_BITS, rest + n);
	n += bits_along(&lay, 1 - k, LANE_BITS, LAYOUT_MAX_BITS, rest + n);
	return share_out(l, &lay, rest, n);
}

/* The layout in registers, for elements of 8 bits: a thread holds words of four elements along k, for two neighbours
 * along the other dimension. ldmatrix loads these words and stmatrix stores them. The 8 rows of a stored matrix must
 * differ modulo 8 to be in different banks, so in lanes with lane bit 4 set the second neighbour comes first. */
static const struct layout *layout_of_bytes(struct lower *l, const i32 *shape, int k)
{
	struct layout lay = layout_empty(2, shape);
	int ik = layout_dim_shift(&lay, k), im = layout_dim_shift(&lay, 1 - k);
	const u32 regs[] = {1u << ik, 2u << ik, 1u << im, 16u << ik},
		  lanes[] = {4u << ik, 8u << ik, 2u << im, 4u << im, 9u << im};
	memcpy(lay.basis[LL_REG], regs, sizeof regs);
	memcpy(lay.basis[LL_LANE], lanes, sizeof lanes);
	lay.bits[LL_REG] = ARRAY_LEN(regs);
	lay.bits[LL_LANE] = LANE_BITS;
	u32 rest[LAYOUT_MAX_BITS];
	int n = bits_along(&lay, 1 - k, 4, LAYOUT_MAX_BITS, rest);
	n += bits_along(&lay, k, 5, LAYOUT_MAX_BITS, rest + n);
	return share_out(l, &lay, rest, n);
}

void turn_in_place(struct lower *l, const struct value *v, int k, const struct layout *to)
{
	const struct type *t = v->type;
	const struct layout *lay = (type_elem_bits(t) == 8 ? layout_of_bytes : layout_of_words)(l, t->shape, k);
	const struct value *held = tile_like(l, v, lay);
	read_shared(l, held, t->layout, elem(l, v, 0));
	barrier(l);
	write_shared(l, held, to, elem(l, v, 0));
	fence_async(l, false);
	barrier(l);
}

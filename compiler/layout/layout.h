/* Linear layouts: where each element of a tile lives, as a matrix over GF(2).
 *
 * A layout maps a hardware index (register, lane, warp; or an offset in shared memory) to a position in a tile. It is
 * linear in the bits: each input bit has a basis vector, and the position is the XOR of the basis vectors of the set
 * bits. Dimensions of tiles are powers of two, so a position is the row-major index with its bits grouped by dimension,
 * the last dimension lowest: reshape leaves positions alone, transpose permutes bits, and a reduction deletes bits.
 * Blocked, mma, dot-operand, sliced and swizzled layouts are all values of this one type; code generation computes with
 * them and never asks which kind one is. A zero basis vector means that both values of that bit hold the same element
 * (broadcast).
 *
 * Source: Zhou et al., "Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2",
 * arXiv:2505.23819. */
#ifndef TLC_LAYOUT_LAYOUT_H
#define TLC_LAYOUT_LAYOUT_H

#include "support/map.h"

enum { MAX_RANK = 12, LAYOUT_MAX_BITS = 20 };

/* The input dimensions. A memory layout uses the first alone, as the offset in elements. */
enum layout_dim { LL_REG, LL_LANE, LL_WARP, LL_DIMS, LL_OFFSET = LL_REG };

struct layout {
	u8 rank;
	u8 log2_size[MAX_RANK]; /* log2 of the tile's shape */
	u8 bits[LL_DIMS];       /* input bits of each dimension */
	u32 basis[LL_DIMS][LAYOUT_MAX_BITS];
};

/* Interned layouts: equal layouts are the same pointer. */
struct layout_pool {
	struct arena *arena;
	const struct layout **at;
	u32 len, cap;
};
const struct layout *layout_intern(struct layout_pool *p, const struct layout *l);

/* Shape helpers. `shape` holds powers of two. */
struct layout layout_empty(int rank, const i32 *shape);
int layout_tile_bits(const struct layout *l);
/* Lowest position bit of dimension d. */
int layout_dim_shift(const struct layout *l, int d);
/* Mask of the position bits of dimension d. */
u32 layout_dim_mask(const struct layout *l, int d);
int layout_num_regs(const struct layout *l);
u32 layout_apply(const struct layout *l, u32 reg, u32 lane, u32 warp);
/* The bits of this input dimension that move an element within `mask` of a position. Of registers, where each moves
 * one bit and `mask` is a position: the register that the element there is in. */
u32 layout_bits_in(const struct layout *l, enum layout_dim dim, u32 mask);

/* Constructors. */

/* The usual distribution: each thread owns size_per_thread elements, a warp and a block tile them in `order` (fastest
 * dimension first); a larger tile repeats in registers, a smaller one is broadcast. Entries are powers of two;
 * threads_per_warp multiplies to 32. */
const struct layout *layout_blocked(struct layout_pool *p, int rank, const i32 *shape, const int *size_per_thread,
				    const int *threads_per_warp, const int *warps_per_block, const int *order);
/* Accumulator of mma.m16n8 (or m8n8) tiles, `warps` warps split over the last two dimensions, rows first. Also that of
 * wgmma, which is four such warps along the rows and instr_n > 8 columns: PTX ISA, "Matrix fragments for mma.m16n8k16",
 * "Register Fragments and Shared Memory Matrix Layouts". */
const struct layout *layout_mma(struct layout_pool *p, int rank, const i32 *shape, const int *warps, int instr_m,
				int instr_n);
/* Operand 0 (M×K) or 1 (K×N) of an mma whose accumulator is distributed by `warps`; elem_bits is the element's
 * width. */
const struct layout *layout_dot_operand(struct layout_pool *p, int rank, const i32 *shape, int operand,
					const int *warps, int instr_m, int elem_bits);
/* Operand 0 (M×K) or 1 (K×N), of this shape, of multiply-adds whose accumulator is acc: each thread has all k of its
 * rows, or columns; k is in the last registers. */
const struct layout *layout_fma_operand(struct layout_pool *p, const struct layout *acc, const i32 *shape, int operand);

/* Shared memory as wgmma and TMA know it: rows of up to 128 bytes of dimension `along`, whose 16-byte units are
 * exchanged by XOR with bits 7 to 9 of the address, one row per index of the other dimensions; longer rows are cut, the
 * pieces one after another. A row has at least 16 bytes. PTX ISA, "Shared Memory Matrix Layout", swizzling modes. */
const struct layout *layout_swizzled(struct layout_pool *p, int rank, const i32 *shape, int along, int elem_bits);

/* Transformations of a distributed layout that follow an operation on the tile. */
const struct layout *layout_trans(struct layout_pool *p, const struct layout *l, const int *perm);
/* Coordinate bit i of dimension d becomes its bit to[i]. */
const struct layout *layout_permute_bits(struct layout_pool *p, const struct layout *l, int d, const int *to);
const struct layout *layout_reshape(struct layout_pool *p, const struct layout *l, int rank, const i32 *shape);
/* Of two halves, which position bit `bit` tells apart, one. */
/* In memory, offset = position. */
const struct layout *layout_row_major(struct layout_pool *p, int rank, const i32 *shape);
const struct layout *layout_half(struct layout_pool *p, const struct layout *l, int bit);
/* The layout of the result of a reduction over `axis`: without that dimension. */
const struct layout *layout_slice(struct layout_pool *p, const struct layout *l, int axis);
/* The layout of a tile of `shape` whose broadcast to l's shape has layout l (dimensions of size 1 lose their bits). */
const struct layout *layout_unbroadcast(struct layout_pool *p, const struct layout *l, const i32 *shape);
/* The layouts before tt.join / after tt.split along the last dimension, and before expand_dims at `axis`. */
const struct layout *layout_drop_dim(struct layout_pool *p, const struct layout *l, int axis);
const struct layout *layout_add_dim(struct layout_pool *p, const struct layout *l, int axis);
/* Copies held by several threads: the lane and warp bits that can be required to be zero without losing an element. */
void layout_redundant(const struct layout *l, u32 *lane_bits, u32 *warp_bits);

/* Linear algebra over GF(2). */

/* A growing set of vectors, reduced; each remembers which of the added vectors it is the sum of. */
struct gf2 {
	u32 vec[32], combo[32];
	int n, added;
};
/* Adds v; false (and not counted as independent) when it already lies in the span. */
bool gf2_add(struct gf2 *g, u32 v);
/* Is v in the span? If so *combo is the set of added vectors (bit i = i-th added) that sums to it. */
bool gf2_solve(const struct gf2 *g, u32 v, u32 *combo);

#endif

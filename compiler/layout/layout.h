/* Linear layouts: the place of each element of a tile, as a matrix over GF(2).
 *
 * A layout maps a hardware index (register, lane, warp; or an offset in shared memory) to a position in a tile. It is
 * linear in the bits: each input bit has a basis vector, and the position is the XOR of the basis vectors of the set
 * bits. Dimensions of tiles are powers of two, so a position is the row-major index with its bits grouped by
 * dimension, the last dimension lowest: reshape keeps positions, transpose permutes bits, and a reduction deletes
 * bits. Blocked, mma, dot-operand, sliced and swizzled layouts are all values of this one type; code generation
 * computes with them and never distinguishes them. A zero basis vector means that both values of that bit hold the
 * same element (broadcast).
 *
 * Source: Zhou et al., "Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2",
 * arXiv:2505.23819. */
#ifndef TLC_LAYOUT_LAYOUT_H
#define TLC_LAYOUT_LAYOUT_H

#include "support/map.h"

enum { MAX_RANK = 12, LAYOUT_MAX_BITS = 20 };

/* The input dimensions. A memory layout uses only the first, as the offset in elements. */
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
/* The set of the bits of input dimension `dim` whose basis vectors have a bit in common with `mask`. If each register
 * bit has one position bit, and `mask` is a position, this is the number of the register that holds the element
 * there. */
u32 layout_bits_in(const struct layout *l, enum layout_dim dim, u32 mask);

/* Constructors. */

/* The blocked distribution, as Triton's BlockedEncoding: for each dimension, a thread holds size_per_thread adjacent
 * elements, threads_per_warp threads of a warp and warps_per_block warps follow. `order`: dimensions, fastest first. If
 * the tile is larger than that, the distribution repeats in further registers; if it is smaller, threads hold copies.
 * Entries are powers of two; the product of threads_per_warp is 32. */
const struct layout *layout_blocked(struct layout_pool *p, int rank, const i32 *shape, const int *size_per_thread,
				    const int *threads_per_warp, const int *warps_per_block, const int *order);
/* Accumulator of mma.m16n8 (or m8n8) tiles, with `warps` warps split over the last two dimensions, rows first. Also
 * the accumulator of wgmma, which is four such warps along the rows and instr_n > 8 columns: PTX ISA, "Matrix
 * fragments for mma.m16n8k16", "Register Fragments and Shared Memory Matrix Layouts". */
const struct layout *layout_mma(struct layout_pool *p, int rank, const i32 *shape, const int *warps, int instr_m,
				int instr_n);
/* Operand 0 (M×K) or 1 (K×N) of an mma whose accumulator is layout_mma with the same `warps` and instr_m. elem_bits:
 * size of an element. */
const struct layout *layout_dot_operand(struct layout_pool *p, int rank, const i32 *shape, int operand,
					const int *warps, int instr_m, int elem_bits);
/* Operand 0 (M×K) or 1 (K×N), with this shape, of a dot by multiply-adds whose result has layout acc. Each thread has
 * all values of K for the rows or columns of its results; the last register bits number K. */
const struct layout *layout_fma_operand(struct layout_pool *p, const struct layout *acc, const i32 *shape, int operand);

/* Shared memory in the swizzled form of wgmma and TMA: rows of up to 128 bytes of dimension `along`, one row for each
 * index of the other dimensions. The 16-byte units of a row are permuted by XOR with bits 7 to 9 of the address.
 * Longer rows are cut, and their pieces follow one another. A row has at least 16 bytes. PTX ISA, "Shared Memory
 * Matrix Layout", swizzling modes. */
const struct layout *layout_swizzled(struct layout_pool *p, int rank, const i32 *shape, int along, int elem_bits);

/* The layout of the result of an operation on a tile of layout l, if each element stays in its register and thread. */
const struct layout *layout_trans(struct layout_pool *p, const struct layout *l, const int *perm);
/* Elements move along dimension d: bit i of a coordinate becomes bit to[i]. */
const struct layout *layout_permute_bits(struct layout_pool *p, const struct layout *l, int d, const int *to);
const struct layout *layout_reshape(struct layout_pool *p, const struct layout *l, int rank, const i32 *shape);
/* A memory layout: offset = position. */
const struct layout *layout_row_major(struct layout_pool *p, int rank, const i32 *shape);
/* The layout of each of the two halves of the tile that position bit `bit` distinguishes. */
const struct layout *layout_half(struct layout_pool *p, const struct layout *l, int bit);
/* The layout of the result of a reduction over `axis`: without that dimension. */
const struct layout *layout_slice(struct layout_pool *p, const struct layout *l, int axis);
/* The layout of a tile of `shape` before a broadcast to layout l: dimensions of size 1 lose their bits. */
const struct layout *layout_unbroadcast(struct layout_pool *p, const struct layout *l, const i32 *shape);
/* The layout without the dimension `axis`, of size 1, and with an additional dimension of size 1 at `axis`. */
const struct layout *layout_drop_dim(struct layout_pool *p, const struct layout *l, int axis);
const struct layout *layout_add_dim(struct layout_pool *p, const struct layout *l, int axis);
/* Sets *lane_bits and *warp_bits to the lane and warp bits that only distinguish copies: a thread with one of these
 * bits set holds the same elements as a thread without it. */
void layout_redundant(const struct layout *l, u32 *lane_bits, u32 *warp_bits);

/* Linear algebra over GF(2). */

/* A set of linearly independent vectors in reduced form. vec[i] is the sum (XOR) of the added vectors whose numbers
 * are the set bits of combo[i]. n: number of vectors; added: number of gf2_add calls so far. */
struct gf2 {
	u32 vec[32], combo[32];
	int n, added;
};
/* Adds v. False if v is in the span already; the set is then unchanged, but v counts as added. */
bool gf2_add(struct gf2 *g, u32 v);
/* Whether v is in the span. If so, *combo is the set of added vectors (bit i = i-th added) that sums to v. */
bool gf2_solve(const struct gf2 *g, u32 v, u32 *combo);

#endif

/* Layout conversions: within a warp by registers and shuffles, or through shared memory without bank conflicts. */
#ifndef TLC_LAYOUT_CONVERSION_H
#define TLC_LAYOUT_CONVERSION_H

#include "layout/layout.h"

enum { LANE_BITS = 5 };

/* The kinds of layout conversion, cheapest first. */
enum conversion_kind {
	CONVERSION_UNKNOWN,
	CONVERSION_REGISTERS,   /* each thread has its elements already; registers are renamed */
	CONVERSION_SHUFFLES,    /* lanes of a warp exchange elements */
	CONVERSION_MEMORY,      /* through shared memory */
	/* through shared memory; each warp reads only elements that it has written (warps_apart) */
	CONVERSION_WARP_MEMORY,
};

/* A conversion by shuffles, as linear maps given by their bases. Shuffle number q brings register reg_of_reg(q) ^
 * sent(s) of lane s = lane_of_reg(q) ^ lane_of_lane(t) to lane t, where it becomes register q ^ moved(t). */
struct conversion {
	enum conversion_kind kind;
	u32 reg_of_reg[LAYOUT_MAX_BITS], lane_of_reg[LAYOUT_MAX_BITS];
	u32 lane_of_lane[LANE_BITS], sent[LANE_BITS], moved[LANE_BITS];
};
/* Whether each warp holds the same elements in both layouts, and no other warp holds any of them. Warps with separate
 * memory then need not wait for each other. */
bool warps_apart(const struct layout *a, const struct layout *b);
struct conversion plan_conversion(const struct layout *src, const struct layout *dst);
/* Value of a linear map at index x. */
static inline u32 linear(const u32 *bases, u32 x)
{
	u32 r = 0;
	for (; x; x &= x - 1)
		r ^= bases[__builtin_ctz(x)];
	return r;
}

/* The bits of i, spread over the bits that are set in mask. */
static inline u32 spread(u32 i, u32 mask)
{
	u32 r = 0;
	for (; mask && i; mask &= mask - 1, i >>= 1)
		if (i & 1)
			r |= mask & -mask;
	return r;
}

/* ldmatrix and stmatrix move 8×8 matrices of 16-bit units between 16-byte rows in memory and 4 bytes of each thread
 * (PTX ISA, "ldmatrix", "stmatrix"). */
enum matrix_kind { MATRIX_NONE, MATRIX_PLAIN, MATRIX_TRANS };
/* Whether threads holding `l` can move it by such matrices: the 16-byte rows run along their registers (PLAIN) or
 * across them (TRANS). */
bool layout_is_matrix(const struct layout *l, int elem_bits, enum matrix_kind kind);

/* How to move a tile from writers with layout src to readers with layout dst: a memory layout (offset in elements →
 * position), and on each side vectors or matrices. The plan takes the fewest instructions on both sides and has the
 * fewest bank conflicts. Algorithm: section 5.4 of the linear layouts paper (see layout.h). */
struct shared_plan {
	const struct layout *mem;
	enum matrix_kind store, load;
};
/* stmatrix: the target has it. */
struct shared_plan plan_shared(struct layout_pool *p, const struct layout *src, const struct layout *dst, int elem_bits,
			       bool stmatrix);

/* A memory layout in which the writers' first registers are adjacent, and readers use the vectors that result. */
const struct layout *plan_for_writers(struct layout_pool *p, const struct layout *src, const struct layout *dst,
				      int elem_bits);

/* A conversion that needs more than `most` bytes of memory is split into pieces, which pass one after another through
 * the same memory. Pieces are counted by position bits that are register bits on both sides. */
enum { MOST_SCRATCH = 65536 /* bytes per kernel */, MAX_PIECE_BITS = 8 };
struct pieces {
	const struct layout *src, *dst; /* of a piece */
	int bits;                       /* log2 of the number of pieces */
	/* register bits that count pieces, each numbered among the bits that remain after removing the earlier ones */
	u8 src_reg[MAX_PIECE_BITS], dst_reg[MAX_PIECE_BITS];
};
struct pieces plan_pieces(struct layout_pool *p, const struct layout *src, const struct layout *dst, int elem_bits,
			  int most);
/* The register of the whole tile that is register r of piece `piece`. */
u32 piece_register(const u8 *regs, int bits, u32 piece, u32 r);

/* Offsets in the memory layout `mem` that each register, lane and warp bit of `l` contributes (by XOR). */
struct memory_map {
	u32 basis[LL_DIMS][LAYOUT_MAX_BITS];
	u8 bits[LL_DIMS];
	int vec_bits;  /* log2 of the elements of a vector access */
	u8 vec_reg[8]; /* register bits that count the elements of a vector */
};
/* max_vec_bits bounds vec_bits. */
struct memory_map map_to_memory(const struct layout *l, const struct layout *mem, int max_vec_bits);

#endif

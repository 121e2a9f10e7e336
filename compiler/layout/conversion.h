/* Moving a tile from one layout to another, and through shared memory without bank conflicts. */
#ifndef TLC_LAYOUT_CONVERSION_H
#define TLC_LAYOUT_CONVERSION_H

#include "layout/layout.h"

enum { LANE_BITS = 5 };

/* The kinds of layout conversion, the cheapest first. */
enum conversion_kind {
	CONVERSION_UNKNOWN,
	CONVERSION_REGISTERS,   /* each thread has its elements: registers are renamed */
	CONVERSION_SHUFFLES,    /* lanes of a warp exchange elements */
	CONVERSION_MEMORY,      /* through shared memory */
	CONVERSION_WARP_MEMORY, /* the same, where each warp reads only elements that it has written: warps_apart */
};

/* Linear maps, given by their bases. The q-th shuffle brings to lane t, from lane
 * s = lane_of_reg(q) ^ lane_of_lane(t), register reg_of_reg(q) ^ sent(s) of s, and it becomes register
 * q ^ moved(t) of t. */
struct conversion {
	enum conversion_kind kind;
	u32 reg_of_reg[LAYOUT_MAX_BITS], lane_of_reg[LAYOUT_MAX_BITS];
	u32 lane_of_lane[LANE_BITS], sent[LANE_BITS], moved[LANE_BITS];
};
/* Does each warp hold the same elements in both, and no other warp any of them? Then warps need not wait for each
 * other, whose memory is apart. */
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
/* Can threads holding `l` move it so, the 16-byte rows running along their registers (PLAIN), or across them
 * (TRANS)? */
bool layout_is_matrix(const struct layout *l, int elem_bits, enum matrix_kind kind);

/* The memory layout (offset in elements → position) between writers with layout src and readers with layout dst that
 * takes the fewest instructions on both sides and has the fewest bank conflicts, and how to write and read it: by
 * vectors, or by matrices. Algorithm: section 5.4 of the linear layouts paper (see layout.h). */
struct shared_plan {
	const struct layout *mem;
	enum matrix_kind store, load;
};
/* `stmatrix`: the writers may use it. */
struct shared_plan plan_shared(struct layout_pool *p, const struct layout *src, const struct layout *dst, int elem_bits,
			       bool stmatrix);

/* One in which what a writer has in its first registers is together, and readers take what they can. */
const struct layout *plan_for_writers(struct layout_pool *p, const struct layout *src, const struct layout *dst,
				      int elem_bits);

/* A conversion that would take more than `most` bytes of memory is done in pieces, one after another through the same
 * memory, as far as registers alone count them on both sides. */
enum { MOST_SCRATCH = 65536 /* bytes, that kernels take */, MAX_PIECE_BITS = 8 };
struct pieces {
	const struct layout *src, *dst;                    /* of one */
	int bits;                                          /* log2 of how many */
	/* register bits that count them, each of what the ones before have left */
	u8 src_reg[MAX_PIECE_BITS], dst_reg[MAX_PIECE_BITS];
};
struct pieces plan_pieces(struct layout_pool *p, const struct layout *src, const struct layout *dst, int elem_bits,
			  int most);
/* The register that is number r of a piece. */
u32 piece_register(const u8 *regs, int bits, u32 piece, u32 r);

/* Offsets in memory layout `mem` of what each register, lane and warp bit of `l` adds (XOR). */
struct memory_map {
	u32 basis[LL_DIMS][LAYOUT_MAX_BITS];
	u8 bits[LL_DIMS];
	int vec_bits;               /* log2 of the elements a thread can move at once */
	u8 vec_reg[8];              /* the register bits that count through a vector */
};
/* max_vec_bits bounds vec_bits. */
struct memory_map map_to_memory(const struct layout *l, const struct layout *mem, int max_vec_bits);

#endif

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

/* A conversion by shuffles, as linear maps given by their bases; an argument is a register number q of the result, or a
 * lane number. Shuffle number q brings register reg_of_reg(q) ^ sent(s) of lane s = lane_of_reg(q) ^ lane_of_lane(t) to
 * lane t, where it becomes register q ^ moved(t). */
struct conversion {
	enum conversion_kind kind;
	u32 reg_of_reg[LAYOUT_MAX_BITS], lane_of_reg[LAYOUT_MAX_BITS];
	u32 lane_of_lane[LANE_BITS], sent[LANE_BITS], moved[LANE_BITS];
};
/* Whether each warp holds the same elements in both layouts, and no other warp holds any of them. If each warp has
 * separate scratch memory, a conversion through memory then needs no barrier between warps. */
bool warps_apart(const struct layout *a, const struct layout *b);
struct conversion plan_conversion(const struct layout *src, const struct layout *dst);
/* The number of select instructions that each register passes through before and after the shuffle. */
int count_selects(const struct conversion *c);
/* The value of a linear map at x: the XOR of the bases of x's set bits. */
static inline u32 linear(const u32 *bases, u32 x)
{
	u32 r = 0;
	for (; x; x &= x - 1)
		r ^= bases[__builtin_ctz(x)];
	return r;
}

/* Bit k of i, moved to the k-th set bit of mask, for all k (as the x86 instruction pdep). */
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
/* Whether a tile of layout l can be moved by such matrices: the 16-byte rows in memory run along the elements of a
 * thread's 4 bytes (PLAIN), or across them (TRANS). */
bool layout_is_matrix(const struct layout *l, int elem_bits, enum matrix_kind kind);

/* How to move a tile through shared memory from writers with layout src to readers with layout dst: a memory layout
 * (offset in elements → position), and on each side plain vector accesses (MATRIX_NONE) or stmatrix and ldmatrix. The
 * plan takes the fewest instructions on both sides together and has the fewest bank conflicts. Algorithm: section 5.4
 * of the linear layouts paper (see layout.h). */
struct shared_plan {
	const struct layout *mem;
	enum matrix_kind store, load;
	int stores, loads; /* instructions of a thread */
};
/* stmatrix: the target has it. */
struct shared_plan plan_shared(struct layout_pool *p, const struct layout *src, const struct layout *dst, int elem_bits,
			       bool stmatrix);

/* A memory layout for writers with layout src that can only store their first registers (up to 16 bytes) as vectors,
 * such as cp.async. Readers with layout dst use vectors as far as these allow. */
const struct layout *plan_for_writers(struct layout_pool *p, const struct layout *src, const struct layout *dst,
				      int elem_bits);

/* The instructions with which a thread reads a tile in layout dst from a buffer that asynchronous copies fill by
 * vectors of layout src. -1: readers need an order of elements that such copies cannot write. */
int buffer_reads(struct layout_pool *p, const struct layout *src, const struct layout *dst, int elem_bits);

/* A conversion that needs more than `most` bytes of shared memory is split into pieces of the tile, which pass one
 * after another through the same memory. The pieces are numbered by position bits that register bits give on both
 * sides. */
enum { MOST_SCRATCH = 65536 /* bytes per kernel */, MAX_PIECE_BITS = 8 };
struct pieces {
	const struct layout *src, *dst; /* the two layouts of a piece */
	int bits;                       /* log2 of the number of pieces */
	/* The register bits of both layouts that number the pieces. Each is numbered among the register bits that
	 * remain after the earlier ones have been removed. */
	u8 src_reg[MAX_PIECE_BITS], dst_reg[MAX_PIECE_BITS];
};
struct pieces plan_pieces(struct layout_pool *p, const struct layout *src, const struct layout *dst, int elem_bits,
			  int most);
/* The register of the whole tile that is register r of piece `piece`. */
u32 piece_register(const u8 *regs, int bits, u32 piece, u32 r);

/* A map from registers, lanes and warps of layout l to offsets in memory layout `mem`, in elements: the XOR of the
 * basis vectors of the set bits. */
struct memory_map {
	u32 basis[LL_DIMS][LAYOUT_MAX_BITS];
	u8 bits[LL_DIMS];
	int vec_bits;  /* log2 of the elements of a vector access */
	u8 vec_reg[8]; /* register bit that gives bit i of an element's index in its vector */
};
/* max_vec_bits bounds vec_bits. */
struct memory_map map_to_memory(const struct layout *l, const struct layout *mem, int max_vec_bits);

#endif

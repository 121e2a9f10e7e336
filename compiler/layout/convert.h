/* Moving a tile from one layout to another, and through shared memory without bank conflicts. */
#ifndef TLC_LAYOUT_CONVERT_H
#define TLC_LAYOUT_CONVERT_H

#include "layout/layout.h"

enum { LANE_BITS = 5 };

/* How a conversion is done, from the cheapest on. */
enum conversion_kind {
	CONVERT_REGISTERS, /* every thread has what it needs: registers are renamed */
	CONVERT_SHUFFLE,   /* within each warp */
	CONVERT_SHARED,    /* through shared memory */
};

/* Linear maps, given by their bases. The q-th shuffle brings to lane t, from lane
 * s = lane_of_reg(q) ^ lane_of_lane(t), register reg_of_reg(q) ^ sent(s) of s, and it becomes register
 * q ^ moved(t) of t. */
struct conversion {
	enum conversion_kind kind;
	u32 reg_of_reg[LAYOUT_MAX_BITS], lane_of_reg[LAYOUT_MAX_BITS];
	u32 lane_of_lane[LANE_BITS], sent[LANE_BITS], moved[LANE_BITS];
};
struct conversion plan_conversion(const struct layout *src, const struct layout *dst);
/* Value of a linear map at index x. */
static inline u32 linear(const u32 *bases, u32 x)
{
	u32 r = 0;
	for (; x; x &= x - 1)
		r ^= bases[__builtin_ctz(x)];
	return r;
}

/* ldmatrix moves 8×8 matrices of 16-bit units: 16-byte rows, each thread gets 4 bytes (PTX ISA, "ldmatrix"). */
enum matrix_load { MATRIX_NONE, MATRIX_PLAIN, MATRIX_TRANS };
/* Can threads holding `dst` read it with ldmatrix from a memory whose 16-byte rows run along its registers (PLAIN), or
 * across them (TRANS)? */
bool layout_is_matrix(const struct layout *dst, int elem_bits, enum matrix_load kind);

/* The memory layout (offset in elements → position) between writers with layout src and readers with layout dst that
 * has the widest vectors both can use and the fewest bank conflicts; *how says how to read it. With `src` fixed to
 * copies of at least 16 bytes (cp.async), matrix loads are used when the 16-byte rows suit the reader.
 * Algorithm: section 5.4 of the linear layouts paper (see layout.h). */
const struct layout *plan_shared(struct layout_pool *p, const struct layout *src, const struct layout *dst, int elem_bits,
				 enum matrix_load *how);

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

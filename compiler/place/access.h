/* How a placed load, store or copy touches memory: used by the pipeliner and by the code generator. */
#ifndef TLC_PLACE_ACCESS_H
#define TLC_PLACE_ACCESS_H

#include "opt/axis.h"
#include "opt/pass.h"

/* The mask of a load, store or atomic operation, or NULL. */
struct value *mask_of(const struct op *o);

/* The register bits that walk through one vector: bit i of the element's index in it is register bit reg[i]. */
struct access_vector {
	int bits;   /* log2 of the elements */
	u8 reg[5];
};
/* The widest vector with which a thread can access memory through `ptr` (placed) under `mask` (or NULL). */
struct access_vector access_vector(const struct axis_analysis *a, const struct value *ptr, const struct value *mask);

/* The widest that goes on in shared memory too. More may be known of one copy's address than of those that the memory
 * was laid out for. */
struct access_vector copied_together(const struct axis_analysis *a, const struct value *ptr, const struct value *mask,
				     const struct layout *mem);

/* A run of elements read through `ptr` under `mask` (or NULL): see axis_run_length. No bits where there is none in a
 * thread's registers. */
struct access_vector access_run(const struct axis_analysis *a, const struct value *ptr, const struct value *mask,
				int *unit);

/* The floats that one instruction adds to memory: 16 bytes from sm_90 on, two halves before, if nobody asks what was
 * there; else none. */
struct access_vector added_together(const struct pass_state *s, const struct op *o);

/* The coordinates beside `axis` of a position in layout `from`, as a position in `to`, whose other dimensions are as
 * long. */
u32 beside_axis(const struct layout *from, const struct layout *to, int axis, u32 position);

/* Has each warp all that the lanes of it take from the source of this tt.gather, so that shuffles bring it? And not in
 * so many registers that shared memory is faster: each is shuffled, as the lane that has it does not know which is
 * meant. */
bool gathers_in_warp(const struct op *o);

/* May something in the block write what is loaded from addresses of this base, or tell that somebody else has? */
bool may_be_written(struct pass_state *s, const struct block *b, const struct value *base);

/* Can o, of the block or of one around it, be done at another time, and by others, too? It has no effects, or loads
 * what nothing in the block writes. */
bool can_be_repeated(struct pass_state *s, const struct op *o, const struct block *b);

#endif

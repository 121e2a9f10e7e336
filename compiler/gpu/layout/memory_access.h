/* How a load, store or copy with a layout accesses memory. The pipeliner uses these functions in advance.
 * pass_vectorize stores the final choice in attributes. */
#ifndef TLC_GPU_LAYOUT_MEMORY_ACCESS_H
#define TLC_GPU_LAYOUT_MEMORY_ACCESS_H

#include "analysis/axis.h"
#include "ir/pass.h"

/* The register bits of one vector: bit i of an element's index in the vector is register bit reg[i]. */
struct access_vector {
	int bits;   /* log2 of the elements, which are adjacent along dim */
	int dim;
	u8 reg[5];
};
/* The widest vector with which a thread can access memory through `ptr` (with a layout) under `mask` (or NULL), and
 * that is contiguous in shared memory of layout `mem` (or NULL), too. This copy's address may be known to be more
 * aligned than the addresses for which `mem` was chosen. */
struct access_vector access_vector(const struct axis_analysis *a, const struct value *ptr, const struct value *mask,
				   const struct layout *mem);
/* The same for `ptr` in layout l, without a memory layout. */
struct access_vector vector_in_layout(const struct axis_analysis *a, const struct value *ptr, const struct value *mask,
				      const struct layout *l);

/* An unaligned vector load through `ptr` under `mask` (or NULL): see axis_run_length. No bits if no thread's registers
 * hold such a vector. */
struct access_vector access_run(const struct axis_analysis *a, const struct value *ptr, const struct value *mask,
				int *unit);

/* Sets the vector attributes of a load, store, copy or atomic addition; `state`: a struct pass_state. */
void choose_vectors(struct op *o, void *state);
/* The vector that one of these attributes of o describes: `sizes` has the log2 of its elements along each dimension. */
struct access_vector vector_of(const struct op *o, i64 sizes);

/* The warps along the axis of a reduction or scan. Each leaves a partial result in shared memory: partial_bytes is the
 * size of the partial results of the first `operands` operands. */
u32 warps_along_axis(const struct op *o);
i32 partial_bytes(const struct op *o, u32 operands);

/* The layout of the result of o, a transposition of a tile or buffer of layout l. */
const struct layout *transposed(struct layout_pool *pool, const struct op *o, const struct layout *l);
/* For an operation that only moves elements: the position in its operand (tt.join: in one of them) of the element at
 * this position of its result (tt.split: of the first result). */
u32 source_position(const struct op *o, u32 position);
/* The position in layout `to` that has the coordinates of a position in layout `from`, except along `axis`, where it is
 * 0. The other dimensions of both layouts are equally long. */
u32 beside_axis(const struct layout *from, const struct layout *to, int axis, u32 position);

/* True if o, or an operation inside it, may write memory at addresses of this base, or may observe that another program
 * has. */
bool op_may_write(struct pass_state *s, const struct op *o, const struct value *base);
/* The same for the operations of a block. */
bool may_be_written(struct pass_state *s, const struct block *b, const struct value *base);

/* True if o, in the block or in a block around it, may be executed at another time, and by other threads, too: it has
 * no effects, or loads memory that no operation in the block writes. */
bool can_be_repeated(struct pass_state *s, const struct op *o, const struct block *b);

#endif

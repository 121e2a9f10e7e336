/* How a placed load, store or copy touches memory. The pipeliner asks; what is chosen in the end (pass_vectorize) is
 * kept in attributes. */
#ifndef TLC_GPU_LAYOUT_MEMORY_ACCESS_H
#define TLC_GPU_LAYOUT_MEMORY_ACCESS_H

#include "analysis/axis.h"
#include "ir/pass.h"

/* The mask of a load, store or atomic operation, or NULL. */
struct value *mask_of(const struct op *o);

/* What an atomic operation orders; of others SEM_RELAXED. */
enum mem_sem memory_order_of(const struct op *o);

/* The register bits that walk through one vector: bit i of the element's index in it is register bit reg[i]. */
struct access_vector {
	int bits;   /* log2 of the elements, neighbours along dim */
	int dim;
	u8 reg[5];
};
/* The widest vector with which a thread can access memory through `ptr` (placed) under `mask` (or NULL), and that goes
 * on in shared memory laid out like `mem` (or NULL) too. More may be known of one copy's address than of those that the
 * memory was laid out for. */
struct access_vector access_vector(const struct axis_analysis *a, const struct value *ptr, const struct value *mask,
				   const struct layout *mem);

/* A run of elements read through `ptr` under `mask` (or NULL): see axis_run_length. No bits where there is none in a
 * thread's registers. */
struct access_vector access_run(const struct axis_analysis *a, const struct value *ptr, const struct value *mask,
				int *unit);

/* Sets the attributes of a load, store, copy or atomic addition that say so; `state`: a struct pass_state. */
void choose_vectors(struct op *o, void *state);
/* The vector that one of these attributes of o says, with so many elements along each dimension. */
struct access_vector vector_of(const struct op *o, i64 sizes);

/* Warps that share one element along the axis of a reduction or scan. Each leaves a partial result in shared memory: so
 * many bytes of those of the first operands. */
u32 warps_along_axis(const struct op *o);
i32 partial_bytes(const struct op *o, u32 operands);

/* The layout of what o, a transposition, makes of a tile or buffer of layout l. */
const struct layout *transposed(struct layout_pool *pool, const struct op *o, const struct layout *l);
/* Of an operation that only moves elements: the position in its operand (tt.join: in one of them) of what is at this
 * position of its result (tt.split: the first one). */
u32 source_position(const struct op *o, u32 position);
/* The coordinates beside `axis` of a position in layout `from`, as a position in `to`, whose other dimensions are as
 * long. */
u32 beside_axis(const struct layout *from, const struct layout *to, int axis, u32 position);

/* May something in the block write what is loaded from addresses of this base, or tell that somebody else has? */
bool may_be_written(struct pass_state *s, const struct block *b, const struct value *base);

/* Can o, of the block or of one around it, be done at another time, and by others, too? It has no effects, or loads
 * what nothing in the block writes. */
bool can_be_repeated(struct pass_state *s, const struct op *o, const struct block *b);

#endif

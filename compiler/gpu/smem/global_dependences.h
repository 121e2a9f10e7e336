/* Dependences between a program's accesses to global memory.
 *
 * The operations of a program execute in order, but its threads do not run in step. If a thread may access memory that
 * another thread of the same program has accessed before, and one of the two accesses is a write, a barrier is needed
 * in between. */
#ifndef TLC_GPU_SMEM_GLOBAL_DEPENDENCES_H
#define TLC_GPU_SMEM_GLOBAL_DEPENDENCES_H

#include "ir/pass.h"

/* An access that other threads may not have executed yet. */
struct pending_access {
	const struct op *op;   /* NULL: any access to any memory */
	const struct op *loop; /* NULL, or a loop: the access was in an earlier iteration of it */
	bool of_products;      /* the loop has dots */
};

/* Cached properties of accesses. */
struct access_order {
	struct pass_state *s;
	struct map extents; /* access → struct extent */
};

/* True if o accesses global memory. An asynchronous copy reads it when the copy is issued; the pipeliner adds the
 * wait. */
bool touches_memory(const struct op *o);
/* True if o may write; NULL stands for any access. Two accesses that do not write need no order. */
bool may_write(const struct op *o);
/* True if a barrier of all threads is needed between the earlier access and o. */
bool must_meet(struct access_order *w, const struct pending_access *before, const struct op *o);

#endif

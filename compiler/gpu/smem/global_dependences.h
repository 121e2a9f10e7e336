/* The order of a program's accesses to global memory.
 *
 * A program reads as if it did one operation after the other; its threads do not. Where a thread may touch memory
 * that another thread of the same program has touched before, and one of them writes, the threads must meet in
 * between. */
#ifndef TLC_GPU_SMEM_GLOBAL_DEPENDENCES_H
#define TLC_GPU_SMEM_GLOBAL_DEPENDENCES_H

#include "ir/pass.h"

/* An access that other threads may not have done yet. */
struct pending_access {
	const struct op *op;   /* NULL: any access to any memory */
	const struct op *loop; /* NULL, or a loop: the access was in an earlier iteration of it */
	bool of_products;      /* the loop has dots */
};

/* What is known of accesses. */
struct access_order {
	struct pass_state *s;
	struct map extents; /* access → where it is */
};

/* Is o an access to global memory? Copies read it when they are issued; that they are waited for is the pipeliner's. */
bool touches_memory(const struct op *o);
/* May o write, or is it any access? Two accesses that do not need no order. */
bool may_write(const struct op *o);
/* Must the threads meet between the earlier access and o? */
bool must_meet(struct access_order *w, const struct pending_access *before, const struct op *o);

#endif

/* Alias analysis: which accesses may touch the same memory, and the assumptions about a launch that the answers rely
 * on.
 *
 * Addresses are distinguished by the pointer parameter that they are computed from. The source does not say whether two
 * parameters overlap. If a pass relies on two parameters not overlapping, the pair is recorded in kernel.apart. A
 * launch with overlapping arguments compiles the kernel again without that assumption (struct codegen_options). */
#ifndef TLC_ANALYSIS_ALIAS_H
#define TLC_ANALYSIS_ALIAS_H

#include "ir/pass.h"

/* True if addresses computed from x and from y (see pointer_base; NULL if not known) may denote the same memory. If the
 * answer is false and relies on it, records the pair in kernel.apart. `equal_is_fine`: the transformation of the caller
 * is also correct if x and y are the same address. */
bool may_overlap(struct pass_state *s, const struct value *x, const struct value *y, bool equal_is_fine);

/* True if o writes to global memory. */
static inline bool writes_memory(const struct op *o)
{
	return o->code == IR_STORE || o->code == IR_ATOMIC_RMW || o->code == IR_ATOMIC_CAS;
}

#endif

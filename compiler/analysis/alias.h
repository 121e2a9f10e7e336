/* Which accesses may touch the same memory, and the promises about a launch that the answers rely on.
 *
 * Addresses are distinguished by the pointer parameter that they are computed from. The source does not say whether two
 * parameters overlap: where a pass relies on it, the kernel notes the pair, and a launch whose arguments overlap
 * compiles the kernel again without that promise (struct compile_options). */
#ifndef TLC_ANALYSIS_ALIAS_H
#define TLC_ANALYSIS_ALIAS_H

#include "ir/pass.h"

/* May addresses computed from x and from y (see pointer_base; NULL: not known) denote the same memory?
 * `equal_is_fine`: the caller's transformation is also right where x and y are the same address. */
bool may_overlap(struct pass_state *s, const struct value *x, const struct value *y, bool equal_is_fine);

/* Does o write to global memory? */
static inline bool writes_memory(const struct op *o)
{
	return o->code == IR_STORE || o->code == IR_ATOMIC_RMW || o->code == IR_ATOMIC_CAS;
}

#endif

/* Inline assembly on devices other than GPUs: the simulator runs a PTX kernel that contains the text. */
#ifndef TL_DEVICE_INLINE_ASM_RUN_H
#define TL_DEVICE_INLINE_ASM_RUN_H

#include "support/index_range.h"
#include "ir/inline_asm.h"

/* Runs the assembly for all elements. `tiles` has the elements of each result, then of each operand, row-major. The
 * text may access the buffers in `ranges`, and memory at more than `guard` bytes from all of them. Returns NULL, or the
 * reason of a failure, in `a`. */
const char *assembly_run(struct arena *a, const struct asm_call *c, char *const *tiles, const struct mem_range *ranges,
			 u32 nranges, u64 guard);

#endif

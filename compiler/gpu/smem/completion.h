/* Completion of asynchronous dots and copies: see completion.c. */
#ifndef TLC_GPU_SMEM_COMPLETION_H
#define TLC_GPU_SMEM_COMPLETION_H

#include "ir/pass.h"

/* Sets how many groups each wait on tokens or tiles leaves running, and removes waits for complete groups. */
void count_pending(struct pass_state *s);

/* Verifies that no wait leaves a group of its operands running, and that only waits, and dots that add to it, use the
 * result of a dot in flight. Returns the first wrong operation, with the reason in *what, or NULL. */
const struct op *find_incomplete(struct kernel *k, const char **what);

#endif

/* The completion of what is asynchronous: see completion.c. */
#ifndef TLC_GPU_SMEM_COMPLETION_H
#define TLC_GPU_SMEM_COMPLETION_H

#include "ir/pass.h"

/* Sets how many groups each wait that names tokens or tiles leaves running, and removes waits for nothing. */
void count_pending(struct pass_state *s);

/* Does each wait leave no group running that it is for, and does nothing but a wait, or a dot that adds to it, use the
 * result of a dot in flight? The operation that is wrong, and why, or NULL. */
const struct op *find_incomplete(struct kernel *k, const char **what);

#endif

/* Persistent blocks, each of which runs several programs: see persistent.c. */
#ifndef TLC_GPU_PIPELINE_PERSISTENT_H
#define TLC_GPU_PIPELINE_PERSISTENT_H

#include "ir/pass.h"

/* True if the kernel may gain from persistent blocks, so that it is compiled for large grids too. */
bool may_persist(const struct pass_state *s);
/* Wraps the whole kernel in a loop over programs, s->cuda.programs, which takes `group` rows of programs at a time (0:
 * all). True if it does so in groups. part_programs removes the loop. */
bool join_programs(struct pass_state *s, i64 group);
void part_programs(struct pass_state *s);
bool is_loop_of_programs(const struct pass_state *s, const struct op *loop);

#endif

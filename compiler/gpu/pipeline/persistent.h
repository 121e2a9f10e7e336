/* One block for many programs: see persistent.c. */
#ifndef TLC_GPU_PIPELINE_PERSISTENT_H
#define TLC_GPU_PIPELINE_PERSISTENT_H

#include "ir/pass.h"

/* Could the kernel gain by it? Then it is worth while to compile it for many programs too. */
bool may_persist(const struct pass_state *s);
/* Puts all of the kernel into a loop over programs, s->cuda.programs, in groups of so many rows, or, if that is 0, of
 * all: does it take them in groups? And takes that away again. */
bool join_programs(struct pass_state *s, i64 group);
void part_programs(struct pass_state *s);
bool is_loop_of_programs(const struct pass_state *s, const struct op *loop);

#endif

/* Persistent blocks, each of which runs several programs: see persistent.c. */
#ifndef TLC_GPU_PIPELINE_PERSISTENT_H
#define TLC_GPU_PIPELINE_PERSISTENT_H

#include "ir/pass.h"

/* True if the kernel may gain from persistent blocks, so that it is compiled for large grids too. */
bool may_persist(const struct pass_state *s);
/* Wraps the whole kernel in a loop over programs, s->cuda.programs, which runs `group` rows of programs (all x of a y)
 * before the next ones (0: program by program along x). Returns true if it uses groups. remove_program_loop removes the
 * loop. */
bool add_program_loop(struct pass_state *s, i64 group);
void remove_program_loop(struct pass_state *s);
/* True if `loop` is that loop. */
bool is_program_loop(const struct pass_state *s, const struct op *loop);

#endif

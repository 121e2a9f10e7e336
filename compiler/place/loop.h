/* What passes that run parts of a loop ahead share. */
#ifndef TLC_PLACE_LOOP_H
#define TLC_PLACE_LOOP_H

#include "ir/ir.h"

/* The loop again, with n more carried values, whose first values are `inits`; returns the loop that takes its place. The
 * new values must be yielded later. */
struct op *loop_extend(struct ir_context *ctx, struct op *loop, struct value *const *inits, u32 n);
/* index + n·step. */
struct value *loop_step(struct builder *b, const struct op *loop, struct value *index, int n);
/* Is index + n·step below the loop's end? Computed in 64 bits, where it cannot wrap. */
struct value *loop_inside(struct builder *b, const struct op *loop, struct value *index, int n);

#endif

/* The order in which programs run: see program_order.c. */
#ifndef TLC_TRANSFORM_PROGRAM_ORDER_H
#define TLC_TRANSFORM_PROGRAM_ORDER_H

#include "ir/pass.h"

/* True if programs, or the threads of a program, may communicate: by atomics, volatile loads, barriers. */
bool kernel_talks(const struct kernel *k);
/* True if they may communicate before `last`, which is in no loop, or inside it. */
bool talks_until(const struct op *last);
/* The axes of the grid (bit i for axis i) that v depends on through program ids. For a loaded value, the axes of its
 * address, and `memory` in addition. */
u32 axes_behind(struct ir_context *ctx, const struct value *v, u32 memory);
/* The number of rows of programs in a group; 0 for no groups. `many`: the launch has many rows. */
i64 rows_in_group(struct pass_state *s, bool many);
/* Row and column of program number `linear` in a grid of rows × cols programs, at most INT32_MAX, in groups of `group`
 * rows. */
void split_by_groups(struct builder *b, struct value *linear, struct value *rows, struct value *cols, i64 group,
		     struct value **row, struct value **col);
/* Replaces the program ids of the kernel by the grouped order. False in a variant for any number of programs. */
bool group_programs(struct pass_state *s, i64 group);

#endif

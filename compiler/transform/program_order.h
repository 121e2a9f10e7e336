/* The order in which programs run: see program_order.c. */
#ifndef TLC_TRANSFORM_PROGRAM_ORDER_H
#define TLC_TRANSFORM_PROGRAM_ORDER_H

#include "ir/pass.h"

/* May its programs talk to each other, or their threads among themselves: by atomics, volatile loads, barriers? */
bool kernel_talks(const struct kernel *k);
/* The axes (bit i: axis i) of which the program's number tells v; `memory` where what is loaded does, beside those that
 * tell its address. */
u32 axes_behind(struct ir_context *ctx, const struct value *v, u32 memory);
/* How many rows of programs to take at a time, in a launch of `many` or not; 0: all. */
i64 rows_in_group(struct pass_state *s, bool many);
/* Row and column of program number `linear` of rows × cols, at most INT32_MAX, in groups of so many rows. */
void split_by_groups(struct builder *b, struct value *linear, struct value *rows, struct value *cols, i64 group,
		     struct value **row, struct value **col);
/* Lets the kernel's programs be those of this order. False: not in a variant for any number of programs. */
bool group_programs(struct pass_state *s, i64 group);

#endif

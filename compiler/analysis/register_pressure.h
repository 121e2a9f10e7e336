/* Register pressure: 32-bit registers of a thread. What a pass lets a thread hold must leave what the rest of the code
 * needs, a constant of support/thresholds.h for each purpose, of what the target has for a thread. */
#ifndef TLC_ANALYSIS_REGISTER_PRESSURE_H
#define TLC_ANALYSIS_REGISTER_PRESSURE_H

#include "ir/pass.h"

/* Registers that hold v: of a placed tile as its layout says, before placement an equal part of the tile; of a scalar
 * one or two. */
i64 registers_of(const struct pass_state *s, const struct value *v);
/* Registers that the loop carries from one iteration to the next. */
i64 carried_registers(const struct pass_state *s, const struct op *loop);
/* Registers that a thread can have where so many blocks of so many warps share a multiprocessor. */
int most_registers(const struct pass_state *s, int num_warps, int blocks);

#endif

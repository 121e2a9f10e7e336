/* Register pressure, in 32-bit registers of a thread. A pass that keeps values in registers must leave enough registers
 * for the rest of the code. Each such pass has a constant for this in support/thresholds.h. */
#ifndef TLC_ANALYSIS_REGISTER_PRESSURE_H
#define TLC_ANALYSIS_REGISTER_PRESSURE_H

#include "ir/pass.h"

/* Registers of each thread for v: by its layout; for a tile without a layout, an equal share of the tile; for a scalar,
 * one or two. */
i64 registers_of(const struct pass_state *s, const struct value *v);
/* Registers of each thread for the values that the loop carries from one iteration to the next. */
i64 carried_registers(const struct pass_state *s, const struct op *loop);

#endif

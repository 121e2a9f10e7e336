/* An estimate of the registers of a thread that hold data of tiles, in a kernel with layouts. */
#ifndef TLC_GPU_PIPELINE_LIVE_REGISTERS_H
#define TLC_GPU_PIPELINE_LIVE_REGISTERS_H

#include "ir/pass.h"

/* The registers of v if it is a tile with data. Index arithmetic and masks take few registers in the generated code,
 * which computes them from the thread's position. Copies of a scalar or of a smaller tile take none. */
i64 data_registers(const struct pass_state *s, const struct value *v);
/* The registers that hold data during each operation, by its number, and the largest. */
struct live_registers {
	i64 *at;
	u32 n;
	i64 most;
};
/* Numbers the operations (number_ops). */
struct live_registers count_live_registers(const struct pass_state *s, struct arena *a);

#endif

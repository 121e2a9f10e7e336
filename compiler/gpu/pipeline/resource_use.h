/* Estimates for a kernel with layouts: the registers of a thread that hold data of tiles, and the shared memory of a
 * block in use, during each operation. */
#ifndef TLC_GPU_PIPELINE_RESOURCE_USE_H
#define TLC_GPU_PIPELINE_RESOURCE_USE_H

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

/* The registers of a thread for the data of a kernel with loops that load into registers one iteration ahead: the
 * largest number that live tiles take, and the loads of an iteration as a margin. Tiles of integers are not counted.
 * 0: the kernel has dots, or no loop loads at least MIN_LOADED_AHEAD registers ahead. */
i64 registers_for_loads_ahead(const struct pass_state *s);

/* Shared memory of a block: buffers, and the scratch memory of operations. */
struct used_memory {
	i64 *at;      /* bytes used during each operation, by its number (number_ops) */
	i64 of_block; /* bytes for each block, if the registers alone limit the number of resident blocks */
};

struct used_memory count_used_memory(const struct pass_state *s, const struct live_registers *live, struct arena *a);
/* Adds bytes to those used during the operations from number `first` to `last`. */
void use_memory(struct used_memory *m, u32 first, u32 last, i64 bytes);
i64 most_used(const struct used_memory *m, u32 first, u32 last);

#endif

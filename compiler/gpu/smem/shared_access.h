/* What an operation reads and writes in shared memory, and what each of two warpgroups has of it for itself. */
#ifndef TLC_GPU_SMEM_SHARED_ACCESS_H
#define TLC_GPU_SMEM_SHARED_ACCESS_H

#include "gpu/gpu_passes.h"

struct shared_access {
	const struct op *memory; /* the allocation; or the operation, whose scratch it is */
	bool write;              /* perhaps besides reading */
	bool within_warps;       /* each warp has bytes of its own */
	int operand;             /* of a product, or -1 */
};
/* At most two; their number. */
u32 shared_accesses(const struct op *o, struct shared_access *out);
/* Where two warpgroups take turns, finds memory of which each has a half for itself: to all accesses, and in all that
 * shares bytes with it. Keys are struct shared_access.memory. After placement. */
void find_halves(struct pass_state *s, struct map *halves);
/* Do warpgroups take turns in the block? */
bool has_turns(const struct block *b);
/* Is operand i of a dot turned where it lies? */
bool is_transposed(const struct op *o, u32 i);

#endif

/* Accesses of an operation to shared memory, and the half of it that each of two warpgroups uses. */
#ifndef TLC_GPU_SMEM_SHARED_ACCESS_H
#define TLC_GPU_SMEM_SHARED_ACCESS_H

#include "gpu/gpu_passes.h"

struct shared_access {
	const struct op *memory; /* the allocation, or the operation itself for its scratch */
	bool write;              /* and perhaps a read, too */
	bool within_warps;       /* each warp uses separate bytes */
	int operand;             /* number of a dot's operand, or -1 */
};
/* Stores o's accesses, at most two, to `out`. Returns their number. */
u32 shared_accesses(const struct op *o, struct shared_access *out);
/* In a kernel with ping-pong scheduling, finds the memory of which each of two warpgroups uses a separate half, in all
 * accesses, and in all memory that overlaps. Keys are struct shared_access.memory. Needs the offsets of
 * pass_allocate. */
void find_halves(struct pass_state *s, struct map *halves);
/* True if the block has ping-pong scheduling. */
bool has_turns(const struct block *b);
/* True if operand i of the dot o is transposed in place in shared memory. */
bool is_transposed(const struct op *o, u32 i);

#endif

/* Clusters: blocks that run together and share their shared memory. */
#ifndef TL_SIM_CLUSTER_H
#define TL_SIM_CLUSTER_H

#include "support/recover.h"
#include "runtime/sim/sim.h"

/* Addresses of shared::cluster: below 1 << WINDOW_LOG2 the block's own shared memory, above it rank + 1 in the upper
 * bits. */
enum { WINDOW_LOG2 = 24 };
static inline u64 cluster_address(u32 rank, u64 within) { return ((u64)(rank + 1) << WINDOW_LOG2) + within; }

struct cluster {
	struct arena *arena;      /* arena of the first block */
	struct cta *blocks;       /* by rank, x first */
	u32 nblocks, shape[3];
	u64 random;               /* state of the schedule's random generator */
	const struct known *came; /* versions that the warps arrived at the cluster barrier released to other blocks */
	struct map records;       /* releases at addresses of shared memory (sync.c) */
	struct races *races;      /* races in its shared memory; NULL: a cluster of one block */
	struct held sync_held;    /* see sync_lock; one is enough, because one warp runs at a time */
};

/* `for` over the warps of all blocks. */
#define EACH_WARP(w, c)                                                                                                \
	for (u32 w##_block = 0; w##_block < (c)->nblocks; w##_block++)                                                 \
		for (struct warp *w = (c)->blocks[w##_block].warps, *w##_end = w + (c)->blocks[w##_block].nwarps;      \
		     w < w##_end; w++)

/* Resolves an address of shared::cluster to its block and the address there; NULL if there is no such block. */
struct cta *cluster_block(const struct cta *b, u64 address, u64 *within);

/* Faults, and returns false, if `owner`, the block of an accessed address, may not have begun or has ended. */
bool cluster_reaches(struct warp *w, const struct instr *i, u32 lane, const struct cta *owner);
/* As cluster_reaches, and records the access, so that `owner` must not end before it. False after a fault. */
bool cluster_access(struct warp *w, const struct instr *i, u32 lane, struct cta *owner);

/* Called after the end of a warp: completes the cluster barrier if possible, and checks the block if this was its last
 * warp. */
void cluster_end_warp(struct warp *w);
/* Number of warps that have arrived at the cluster barrier. */
u32 cluster_arrived(const struct cluster *c);

#endif

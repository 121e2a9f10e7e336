/* Blocks that run together. */
#ifndef TL_SIM_CLUSTER_H
#define TL_SIM_CLUSTER_H

#include "support/recover.h"
#include "runtime/sim/sim.h"

/* Addresses of shared::cluster: below this the block's own shared memory, else that of the block with this rank. */
enum { WINDOW_LOG2 = 24 };
static inline u64 cluster_address(u32 rank, u64 within) { return ((u64)(rank + 1) << WINDOW_LOG2) + within; }

struct cluster {
	struct arena *arena;      /* lives as long as its blocks */
	struct cta *blocks;       /* by rank, x first */
	u32 nblocks, shape[3];
	u64 random;               /* of the schedule */
	const struct known *came; /* what warps that arrived at its barrier released to other blocks */
	struct map records;       /* releases at addresses of shared memory: sync.c */
	struct races *races;      /* in its shared memory; NULL: it has one block only */
	struct held sync_held;    /* see sync_lock: one warp at a time runs */
};

/* The block whose shared memory an address of shared::cluster is in, and where; NULL if there is none. */
struct cta *cluster_block(const struct cta *b, u64 address, u64 *within);

/* Faults if a block whose shared memory is used may not have begun, or has ended. */
bool cluster_reaches(struct warp *w, const struct instr *i, u32 lane, const struct cta *owner);
/* The same of an access now, which is recorded: the owner must not end before. False after a fault. */
bool cluster_access(struct warp *w, const struct instr *i, u32 lane, struct cta *owner);

/* A warp has ended, and perhaps its block. */
void cluster_end_warp(struct warp *w);
/* How many warps have arrived at the barrier. */
u32 cluster_arrived(const struct cluster *c);

/* barrier.cluster; that the target has clusters. */
bool decode_cluster_barrier(struct decoder *d);
bool needs_clusters(struct decoder *d);

#endif

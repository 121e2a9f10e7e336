/* Order between blocks, by memory: what one releases at an address happened before what another does after it acquired
 * there.
 *
 * A block that releases for others gives its state a version number: the times its warps had then, and what it knew of
 * other blocks. A warp knows, of each other block, the version up to which everything happened before, and the one up
 * to which the async proxy sees that. Versions of one block count as ordered with each other, and a warp that knows
 * more than a few hundred blocks as knowing all: so an order may be assumed that is not there, but none is
 * overlooked. */
#ifndef TL_SIM_SYNC_H
#define TL_SIM_SYNC_H

#include "runtime/sim/sim.h"

struct places;

/* nagents: of a block; all AGENTS for clusters. */
struct sync *sync_new(u32 nagents);
void sync_free(struct sync *s);

enum scope { SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU };
/* A release or an acquire of the lanes' addresses, by one instruction. Order within the block is exact. */
void sync_release(struct warp *w, u32 mask, const struct places *p, enum scope scope);
void sync_acquire(struct warp *w, u32 mask, const struct places *p, enum scope scope);
/* Relaxed accesses: a fence before a write makes it release, a fence behind a read makes it acquire. */
void sync_relaxed(struct warp *w, u32 mask, const struct places *p, u32 flags);
/* Around an atomic and its release or acquire, which are one for other threads. */
void sync_lock(struct warp *w);
void sync_unlock(struct warp *w);

/* Did what an agent of another block did at a time happen before, or as the async proxy sees it? */
bool sync_happened(const struct warp *w, u64 block, u32 agent, u32 time, bool fenced);
/* What happened before now in a block of the cluster: the warp's own clock, or `space`, filled. */
const struct clock *sync_clock(const struct warp *w, const struct cta *block, struct clock *space);

/* A release at a barrier of several blocks: what happened so far (or up to the last fence), for warps of this block
 * (may be NULL) and of others. */
void sync_publish(struct warp *w, bool of_fence, struct clock *own, const struct known **others);

/* Fences pass through barriers. */
void fence_join(struct arena *a, struct fence **into, const struct fence *from);

#endif

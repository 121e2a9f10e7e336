/* Order between blocks through memory: everything before a release at an address happened before everything after an
 * acquire that reads it.
 *
 * A release that is visible to other blocks gives the state of the block a version number. A version holds the times of
 * the block's agents and the versions that it knew of other blocks. A warp knows, for each other block, the version up
 * to which everything happened before, and the version up to which that holds for the async proxy. Versions of one
 * block count as ordered. A warp that knows more than 512 blocks counts as knowing all blocks. So an order may be
 * assumed that does not exist, but an existing order is never missed. */
#ifndef TL_SIM_SYNC_H
#define TL_SIM_SYNC_H

#include "runtime/sim/sim.h"

struct places;

/* Choices of the modifier ORDER. */
enum order { WEAK, VOLATILE, RELAXED, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST };
enum scope { SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU };
static inline bool acquires(const struct instr *i)
{
	return i->mod[M_ORDER] == ACQUIRE || i->mod[M_ORDER] > RELEASE;
}
static inline bool releases(const struct instr *i) { return i->mod[M_ORDER] >= RELEASE; }
static inline enum scope scope_of(const struct instr *i)
{
	static const enum scope scopes[] = {SCOPE_GPU, SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_GPU};
	return scopes[i->mod[M_SCOPE]];
}

/* nagents: agents of a block; AGENTS in launches with clusters. */
struct sync *sync_new(u32 nagents);
void sync_free(struct sync *s);

/* Release or acquire by one instruction at the addresses of its lanes. Order within the block is exact. */
void sync_release(struct warp *w, u32 mask, const struct places *p, enum scope scope);
void sync_acquire(struct warp *w, u32 mask, const struct places *p, enum scope scope);
/* Relaxed accesses: a preceding fence makes a write a release, a following fence makes a read an acquire. */
void sync_relaxed(struct warp *w, u32 mask, const struct places *p, u32 flags);
/* Lock held around an atomic and its release or acquire, which are one step for other threads. */
void sync_lock(struct warp *w);
void sync_unlock(struct warp *w);

/* True if the action of an agent of another block at `time` happened before; `fenced`: for the async proxy. */
bool sync_happened(const struct warp *w, u64 block, u32 agent, u32 time, bool fenced);
/* Clock of what happened before now in a block of the cluster: the warp's own clock, or `space`, filled. */
const struct clock *sync_clock(const struct warp *w, const struct cta *block, struct clock *space);

/* Release at a barrier of several blocks. Joins what happened before now (`of_fence`: before the last fence) into
 * `own`, for warps of this block (may be NULL), and into `others`. */
void sync_publish(struct warp *w, bool of_fence, struct clock *own, const struct known **others);

/* Joins the fences of two warps at a barrier: a fence before a barrier also covers the warps after it. */
void fence_join(struct arena *a, struct fence **into, const struct fence *from);

#endif

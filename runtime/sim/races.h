/* Races in memory that several blocks use: global memory of a launch, shared memory of a cluster.
 *
 * Kept are, of each byte: the last write, the warps of one block that read it last, and the last readers of another
 * block. Accesses that nothing orders, of which one is a write, are a race, unless both are volatile, relaxed or
 * atomic, or the write leaves what is there. Of more readers the earlier ones are forgotten: a race with them is not
 * seen then, another run may see it. A read by a warp before a write by another one of the same block is let pass, one
 * behind is a fault if its value is used (stale.c). Safe from several threads. */
#ifndef TL_SIM_RACES_H
#define TL_SIM_RACES_H

#include "runtime/sim/sim.h"

struct places;

/* `bytes`: about how many there will be. NULL: out of memory. */
struct races *races_new(u64 bytes, bool locks);
void races_free(struct races *r);
/* A thread has left with a fault, perhaps with locks: whoever waits for one leaves, too. */
void races_abandon(struct races *r);

struct race_locks {
	struct races *races; /* NULL: none held */
	u32 n;
	u32 at[LANES + 1];
};

/* Accesses of the lanes at p->host, `bytes` each, none across pages of 1024 bytes. False after a fault. With `locks`,
 * after a plain write nobody else may touch this memory until races_end, so that what is there can be compared with
 * what is written. */
bool races_access(struct races *r, struct warp *w, const struct instr *i, u32 mask, struct places *p, u32 bytes,
		  u32 flags, struct race_locks *locks);
void races_end(struct race_locks *locks);
/* A copy that a lane began has come to shared memory of `owner`, written by an agent of that block at its time
 * `when`. */
void races_arrive(struct races *r, struct warp *w, const struct instr *i, u32 lane, const struct cta *owner, u64 at,
		  u32 bytes, u32 agent, u32 when);

#endif

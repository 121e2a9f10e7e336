/* Race detection in memory that several blocks access: global memory of a launch, shared memory of a cluster.
 *
 * The table holds, for each byte: the last write, the warps of one block that read it last, and the last readers of
 * another block. Two accesses that nothing orders race if at least one is a write, unless both are volatile, relaxed or
 * atomic, or the write stores the value that is already there. Further readers are dropped. A race with a dropped
 * reader is missed in this run; another run may find it. A read that is unordered with a later write by another warp of
 * the same block is not reported. A read that is unordered with an earlier write of the same block is a fault only if
 * its value is used (stale.c). Thread-safe. */
#ifndef TL_SIM_RACES_H
#define TL_SIM_RACES_H

#include "runtime/sim/sim.h"

struct places;

/* `bytes`: estimate of the bytes accessed, for the size of the table. `locks`: several threads use the table. NULL: out
 * of memory. */
struct races *races_new(u64 bytes, bool locks);
void races_free(struct races *r);
/* A thread has left with a fault and may hold locks: threads that wait for a lock raise a fault too. */
void races_abandon(struct races *r);

struct race_locks {
	struct races *races; /* NULL: none held */
	u32 n;
	u32 at[LANES + 1];
};

/* Checks and records accesses of the lanes at p->host, `bytes` each, none across a page of 1024 bytes. False after a
 * fault. With `locks`, a plain write keeps its memory locked until races_end, so that the stored values can be compared
 * with the bytes already there. */
bool races_access(struct races *r, struct warp *w, const struct instr *i, u32 mask, struct places *p, u32 bytes,
		  u32 flags, struct race_locks *locks);
void races_end(struct race_locks *locks);
/* Records the delivery of a copy that a lane issued: the bytes of `owner`'s shared memory count as written by `agent`
 * of that block at its time `when`. */
void races_arrive(struct races *r, struct warp *w, const struct instr *i, u32 lane, const struct cta *owner, u64 at,
		  u32 bytes, u32 agent, u32 when);

#endif

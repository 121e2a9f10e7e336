/* Asynchronous operations of a block: bulk copies, and the arrivals at mbarriers that cp.async triggers. The seed and
 * the timing decide when each step happens: at once (ASYNC_EARLY), only when no warp can continue or a wait needs it
 * (ASYNC_LATE), or at any time between (ASYNC_MIXED). */
#ifndef TL_SIM_ENGINE_H
#define TL_SIM_ENGINE_H

#include "runtime/sim/mbarrier.h"

struct flight {
	/* Performs the next step. True if the operation is complete. Faults are reported for `w`, which may have
	 * ended. */
	bool (*step)(struct flight *f);
	/* Called when a block of the cluster ends while the operation is outstanding. May fault. NULL: no check. */
	void (*end_block)(struct flight *f, const struct cta *ended);
	struct warp *w;
	const struct instr *i;
	u32 lane;
};

/* Starts an operation in the block of its warp. The operation lives in the arena of that block. */
void engine_add(struct flight *f);
/* Performs all remaining steps of f and removes it. */
void engine_finish(struct flight *f);

/* Performs one step of a random outstanding operation; false if there is none. */
bool engine_step(struct cta *k);
/* ASYNC_MIXED only: performs a step in one of four calls, as the seed decides. */
void engine_perhaps_step(struct cta *k);
/* engine_end_block: the last warp of a block has ended. engine_end: all blocks of the cluster have ended. */
void engine_end_block(const struct warp *last);
void engine_end(struct cta *k);

/* An engine is an agent of the async proxy, with a separate entry in the vector clocks of race detection. Each mbarrier
 * is assigned to an engine, which writes the data of the copies that signal the mbarrier. engine_tick: advances the
 * clock of the mbarrier's engine, and returns the time of the write. engine_complete_tx: completes the copy's bytes of
 * transactions at the mbarrier, which releases the write made at time `when`. */
u32 engine_tick(struct mbarrier *b);
bool engine_complete_tx(const struct flight *f, struct mbarrier *b, u32 when, u32 bytes);

#endif

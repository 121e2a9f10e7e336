/* What happens in a block by itself, sooner or later: bulk copies, and arrivals at mbarriers when copies are done. A
 * seed decides when: at once (ASYNC_EARLY), when nothing else can go on or a wait needs it (ASYNC_LATE), or any time
 * between (ASYNC_MIXED). */
#ifndef TL_SIM_ENGINE_H
#define TL_SIM_ENGINE_H

#include "runtime/sim/mbarrier.h"

struct flight {
	/* The next thing happens. True: nothing is left to happen. Faults are of `w`, which may have ended. */
	bool (*step)(struct flight *f);
	/* A block of the cluster has ended. May fault. NULL: allowed. */
	void (*end_block)(struct flight *f, const struct cta *ended);
	struct warp *w;
	const struct instr *i;
	u32 lane;
};

/* It is on its way from now on, in the block of its warp. Lives in the block's arena. */
void engine_add(struct flight *f);
/* Runs f to its end; it is forgotten. */
void engine_finish(struct flight *f);

/* Something happens; false: nothing is on its way. */
bool engine_step(struct cta *k);
/* Perhaps, if the seed wants so. */
void engine_perhaps_step(struct cta *k);
/* The last warp of a block has ended; all blocks of the cluster have. */
void engine_end_block(const struct warp *last);
void engine_end(struct cta *k);

/* A time, at which the engine of an mbarrier writes what a copy brings; complete: and its transactions, which release
 * that. */
u32 engine_tick(struct mbarrier *b);
bool engine_complete_tx(const struct flight *f, struct mbarrier *b, u32 when, u32 bytes);

#endif

/* mbarrier objects (PTX ISA, "mbarrier"). A phase completes when no arrivals are pending and the tx-count is zero. */
#ifndef TL_SIM_MBARRIER_H
#define TL_SIM_MBARRIER_H

#include "runtime/sim/sim.h"

struct flight; /* (engine.h) */

enum { MBARRIER_BYTES = 8, MBARRIER_MAX = (1 << 20) - 1 }; /* maximum of arrivals and of the tx-count */

/* Operations of the forms that run_mbarrier executes. */
enum mbarrier_operation {
	MBARRIER_INIT, MBARRIER_INVAL, MBARRIER_ARRIVE, MBARRIER_ARRIVE_DROP, MBARRIER_EXPECT_TX, MBARRIER_COMPLETE_TX,
};

struct mbarrier {
	struct cta *block;     /* block with the mbarrier in its shared memory */
	u32 at;                /* address in that memory */
	u32 expected, pending; /* arrivals: per phase; still pending in the current phase */
	i32 tx;                /* tx-count: bytes expected minus bytes completed */
	u32 phase;             /* number of the current phase, from 0 */
	struct clock clock;    /* join of the clocks released by arrivals */
	struct clock done;     /* value of `clock` at completion of the last phase */
	u32 waiting;           /* mask of the warps asleep at this mbarrier */
	u32 used[MAX_WARPS];   /* time of each warp's last use, other than by copies (see `flying`); 0: never */
	u32 engine;            /* agent that writes the data of its copies; 0: none yet */
	u32 flying;            /* outstanding copies that it counts */
	const struct flight *came; /* last copy from another block, and the time of its completion; NULL: none yet */
	u32 came_when;
	const struct instr *init;
	u32 init_warp, init_time;
	u32 fence_warp, fence_time; /* of a later fence.mbarrier_init; time 0: none */
};

/* The block's own mbarrier at the address, shared or generic, in a lane of `o`. NULL after a fault. */
struct mbarrier *mbarrier_of(struct warp *w, const struct instr *i, u32 lane, const struct operand *o,
			     enum ptx_space space);
/* Resolves the address in a lane of `o` to its block and *at, the address there, which is aligned for an mbarrier. NULL
 * after a fault. */
struct cta *mbarrier_place(struct warp *w, const struct instr *i, u32 lane, const struct operand *o,
			   enum ptx_space space, u64 *at);
/* The mbarrier at an address of block `owner`. Faults, and returns NULL, unless its initialization happened before. */
struct mbarrier *mbarrier_at(struct warp *w, const struct instr *i, u32 lane, const struct cta *owner, u64 at);
/* Faults unless a proxy fence or fence.mbarrier_init lies between the initialization and this use by the async
 * proxy. */
bool mbarrier_is_fenced(struct warp *w, const struct instr *i, u32 lane, const struct mbarrier *b);
/* Arrival of a lane; false after a fault. `clock`: the clock that it releases, or NULL. */
bool mbarrier_arrive(struct warp *w, const struct instr *i, u32 lane, struct mbarrier *b, u32 count,
		     const struct clock *clock);
/* Adds `bytes` to the tx-count: positive for expected, negative for completed bytes. False after a fault. */
bool mbarrier_transact(struct warp *w, const struct instr *i, u32 lane, struct mbarrier *b, i64 bytes);
/* Executes fence.mbarrier_init in this warp. */
void mbarrier_fence_init(struct warp *w);

/* Expires the waits of all sleeping lanes. False if no lane sleeps, or after 1000 expirations without progress. */
bool mbarrier_expire(struct cta *k);
/* mbarrier_end_block, after the last warp of a block: faults if a copy from another block may complete after the end.
 * mbarrier_end, after all blocks of the cluster: faults if a tx-count is not zero. */
void mbarrier_end_block(struct warp *last);
void mbarrier_end(struct cta *k);
/* Print, for a report, the mbarriers at which a warp sleeps, and the state of all mbarriers. */
void mbarrier_print(const struct cta *k, u32 warp, struct strbuf *out);
void mbarrier_print_all(const struct cta *k, struct strbuf *out);

#endif

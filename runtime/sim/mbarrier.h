/* mbarrier objects (PTX ISA, "mbarrier"): a phase completes when as many arrivals as expected have come and its
 * transactions are balanced. */
#ifndef TL_SIM_MBARRIER_H
#define TL_SIM_MBARRIER_H

#include "runtime/sim/sim.h"

struct flight; /* (engine.h) */

enum { MBARRIER_BYTES = 8, MBARRIER_MAX = (1 << 20) - 1 }; /* the most arrivals and transactions */

struct mbarrier {
	struct cta *block;     /* in whose shared memory it is */
	u32 at;                /* there */
	u32 expected, pending; /* arrivals: of a phase, and still to come in this one */
	i32 tx;                /* transactions expected less those completed */
	u32 phase;             /* the number of this one, from 0 */
	struct clock clock;    /* joined of those that arrived */
	struct clock done;     /* the same when the last phase completed */
	u32 waiting;           /* warps asleep here */
	u32 used[MAX_WARPS];   /* when each warp of the block last used it, but for copies, which it counts; 0: never */
	u32 engine;            /* agent that writes what its transactions bring; 0: none yet */
	u32 flying;            /* copies on their way that it counts */
	const struct flight *came; /* the last one that another block sent, and when it came; NULL: none yet */
	u32 came_when;
	const struct instr *init;
	u32 init_warp, init_time;
	u32 fence_warp, fence_time; /* of a fence.mbarrier_init since; time 0: none */
};

/* The block's own mbarrier whose address, shared or generic, is in a lane of `o`. NULL after a fault. */
struct mbarrier *mbarrier_of(struct warp *w, const struct instr *i, u32 lane, const struct operand *o,
			     enum ptx_space space);
/* The block in whose shared memory a lane of `o` points, and where there: a place for mbarriers. NULL after a fault. */
struct cta *mbarrier_place(struct warp *w, const struct instr *i, u32 lane, const struct operand *o,
			   enum ptx_space space, u64 *at);
/* The mbarrier there, which the warp knows to be initialised. NULL after a fault. */
struct mbarrier *mbarrier_at(struct warp *w, const struct instr *i, u32 lane, const struct cta *owner, u64 at);
/* Faults unless a proxy fence or fence.mbarrier_init lies between the init and this use by the async proxy. */
bool mbarrier_is_fenced(struct warp *w, const struct instr *i, u32 lane, const struct mbarrier *b);
/* A lane's arrival; false after a fault. `clock`: what it releases, or NULL. */
bool mbarrier_arrive(struct warp *w, const struct instr *i, u32 lane, struct mbarrier *b, u32 count,
		     const struct clock *clock);
/* Adds to the transactions that this phase waits for: negative ones have completed. False after a fault. */
bool mbarrier_transact(struct warp *w, const struct instr *i, u32 lane, struct mbarrier *b, i64 bytes);
/* fence.mbarrier_init by this warp. */
void mbarrier_fence_init(struct warp *w);

/* The waits of sleeping lanes expire. False if nobody sleeps, or all have done nothing else for long. */
bool mbarrier_expire(struct cta *k);
/* The last warp of a block has ended: does the block know that what others sent it has come? All blocks of the cluster
 * have ended. */
void mbarrier_end_block(struct warp *last);
void mbarrier_end(struct cta *k);
/* The state of each, for a report. */
void mbarrier_print(const struct cta *k, u32 warp, struct strbuf *out);
void mbarrier_print_all(const struct cta *k, struct strbuf *out);

#endif

/* Proxy fences, and the checks of setmaxnreg. */
#include "runtime/sim/mbarrier.h"

#include <string.h>

/* Everything that happened before now happened before for the async proxy too. The clock advances, so that later
 * actions of the warp are not covered. */
void run_async_fence(struct warp *w, const struct instr *i, u32 mask)
{
	(void)i, (void)mask;
	clock_fence(w);
	w->clock.at[w->id]++;
}

/* --- setmaxnreg -------------------------------------------------------------------------------------------------- */

/* Faults if an ended warp of the warpgroup executed another sequence of setmaxnreg instructions. */
void setmaxnreg_end(struct warp *w)
{
	u32 first = w->id / GROUP_WARPS * GROUP_WARPS;
	for (u32 n = first; n < MIN(first + GROUP_WARPS, w->block->nwarps); n++) {
		const struct warp *o = &w->block->warps[n];
		if (o->state == WARP_DONE && o->registers != w->registers)
			fault(w, w->setmaxnreg ? w->setmaxnreg : o->setmaxnreg, ALL_LANES,
			      "all warps of a warpgroup must run setmaxnreg alike, and warps %u and %u did not", w->id,
			      n);
	}
}

void run_setmaxnreg(struct warp *w, const struct instr *i, u32 mask)
{
	(void)mask; /* setmaxnreg_end checks the lanes */
	if (!needs_warpgroup(w, i, ALL_LANES))
		return;
	w->setmaxnreg = i;
	w->registers = hash_bytes(&i->ops[0].imm, sizeof i->ops[0].imm, w->registers + i->mod[M_NREG]);
}

bool check_setmaxnreg(struct decoder *d)
{
	u64 count = d->i->ops[0].imm;
	return (count >= 24 && count <= 256 && count % 8 == 0) ||
	       decode_fail(d, "'%s': a multiple of 8 from 24 to 256", d->i->opcode);
}

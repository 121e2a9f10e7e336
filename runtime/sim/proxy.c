/* Proxy fences, and the checks of setmaxnreg. */
#include "runtime/sim/mbarrier.h"

#include <string.h>

enum { GROUP_WARPS = 4 };

/* Everything that happened before now happened before for the async proxy too. The clock advances, so that later
 * actions of the warp are not covered. */
static void run_async_fence(struct warp *w, const struct instr *i, u32 mask)
{
	(void)i, (void)mask;
	clock_fence(w);
	w->clock.at[w->id]++;
}

static void run_nothing(struct warp *w, const struct instr *i, u32 mask)
{
	(void)w, (void)i, (void)mask;
}

/* fence.proxy.async with an optional state space, fence.proxy.alias, and fence.proxy.tensormap, which has no effect
 * here because tensor maps do not change. */
bool decode_proxy_fence(struct decoder *d)
{
	struct instr *i = d->i;
	bool is_async = take(d, "async");
	if (take(d, "tensormap::generic")) {
		int order = take_one_of(d, "acquire release");
		i->run = run_nothing;
		return order >= 0 && take_one_of(d, "cta cluster gpu sys") >= 0 &&
		       want_operands(d, order ? 0 : 2, order ? 0 : 2);
	}
	if (is_async == take(d, "alias"))
		return false;
	if (is_async && d->module->sm < 90)
		return decode_fail(d, "'%s' needs sm_90", i->opcode);
	int space = is_async ? take_one_of(d, "global shared::cta shared::cluster") : -1;
	if (is_async && space != 0) /* a fence for global memory only does not order shared memory */
		i->run = run_async_fence;
	return want_operands(d, 0, 0);
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

static void run_setmaxnreg(struct warp *w, const struct instr *i, u32 mask)
{
	(void)mask;
	if ((w->id | (GROUP_WARPS - 1)) >= w->block->nwarps)
		fault(w, i, mask, "needs four warps, and the block has %u", w->block->nwarps);
	w->setmaxnreg = i;
	w->registers = hash_bytes(&i->ops[0].imm, sizeof i->ops[0].imm, w->registers + i->mods);
}

bool decode_setmaxnreg(struct decoder *d)
{
	struct instr *i = d->i;
	int way = take_one_of(d, "inc dec");
	i->run = run_setmaxnreg;
	i->is_sync = true;
	i->mods = (u64)way;
	if (way < 0 || !take(d, "sync") || !take(d, "aligned") || !take(d, "u32") || !want_operands(d, 1, 1))
		return false;
	if (d->module->sm != 90 || !d->module->arch_specific)
		return decode_fail(d, "'%s' needs sm_90a", i->opcode);
	u64 count = i->ops[0].imm;
	if (i->ops[0].kind != O_INT || count < 24 || count > 256 || count % 8)
		return decode_fail(d, "'%s': a multiple of 8 from 24 to 256", i->opcode);
	return true;
}

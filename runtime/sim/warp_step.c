/* Execution of a warp: choice of the lanes that execute the next instruction, and its execution. */
#include "runtime/sim/bulk.h"
#include "runtime/sim/cluster.h"
#include "runtime/sim/mbarrier.h"
#include "runtime/sim/sync.h"

/* Lanes to execute next: those at the lowest program counter of all lanes that do not wait. *join: the next higher
 * program counter of a lane. */
static u32 lowest(const struct warp *w, u32 *pc, u32 *join)
{
	u32 least = UINT32_MAX, mask = 0, next = UINT32_MAX;
	EACH_LANE (l, w->alive & ~w->parked & ~w->asleep)
		least = MIN(least, w->pc[l]);
	EACH_LANE (l, w->alive & ~w->parked & ~w->asleep) {
		if (w->pc[l] == least)
			mask |= 1u << l;
		else
			next = MIN(next, w->pc[l]);
	}
	*pc = least;
	*join = next;
	return mask;
}

static u32 guarded(const struct warp *w, const struct instr *i, u32 mask)
{
	if (i->pred < 0)
		return mask;
	const u64 *p = &w->regs[(size_t)i->pred * LANES];
	u32 yes = 0;
	for (u32 l = 0; l < LANES; l++)
		yes |= (u32)(p[l] & 1) << l;
	return mask & (i->pred_negated ? ~yes : yes);
}

static void put_pc(struct warp *w, u32 mask, u32 pc)
{
	EACH_LANE (l, mask)
		w->pc[l] = pc;
}

/* Lanes that must execute an instruction together with `active`. */
static u32 needed(const struct warp *w, const struct instr *i, u32 active)
{
	if (i->is_sync)
		return w->alive;
	return i->members ? (u32)operand_value(w, &i->ops[i->members], (u32)__builtin_ctz(active), 32) & w->alive
			  : active;
}

/* Called when all running lanes are parked at instructions that need more lanes together. Unparks the lanes of one
 * instruction that has all of its lanes; a fault if there is none. */
static bool complete_one(struct warp *w, u32 *pc, u32 *mask)
{
	const struct instr *code = w->block->launch->kernel->code;
	EACH_LANE (l, w->parked) {
		u32 here = 0;
		EACH_LANE (m, w->parked)
			here |= (u32)(w->pc[m] == w->pc[l]) << m;
		const struct instr *i = &code[w->pc[l]];
		u32 active = guarded(w, i, here), want = needed(w, i, active);
		if ((want & ~active) == 0) {
			w->parked &= ~here;
			*pc = w->pc[l];
			*mask = here;
			return true;
		}
	}
	u32 first = (u32)__builtin_ctz(w->parked), here = 0;
	EACH_LANE (m, w->parked)
		here |= (u32)(w->pc[m] == w->pc[first]) << m;
	const struct instr *i = &code[w->pc[first]];
	return fault(w, i, needed(w, i, here) & ~here,
		     "all lanes of the warp must arrive here together, and these do not arrive");
}

static void end_warp(struct warp *w)
{
	w->state = WARP_DONE;
	w->block->expired = 0;
	async_end(w);
	wgmma_end(w);
	bulk_end(w);
	setmaxnreg_end(w);
	for (u32 n = 0; n < ARRAY_LEN(w->block->barriers); n++)
		barrier_check(w->block, &w->block->barriers[n]);
	cluster_end_warp(w);
}

void run_warp(struct warp *w, u32 turns)
{
	struct cta *b = w->block;
	const struct ptx_kernel *k = b->launch->kernel;
	u32 pc, join, mask = lowest(w, &pc, &join);
	for (; turns && (mask || w->parked || w->asleep); turns--) {
		if (!mask && w->asleep) {
			w->state = WARP_ASLEEP;
			return;
		}
		if (!mask && !complete_one(w, &pc, &mask))
			return;
		if (pc >= k->ncode) {
			fault(w, w->at, mask, "runs past the end of the kernel");
			return;
		}
		const struct instr *i = &k->code[pc++];
		u32 active = guarded(w, i, mask);
		w->at = i;
		b->steps++;
		if (i->is_control)
			put_pc(w, mask, pc);
		if (w->stale && !stale_step(w, i, mask, active))
			return;
		if (active) {
			if (needed(w, i, active) & ~active) { /* the missing lanes may still arrive */
				put_pc(w, active, pc - 1);
				put_pc(w, mask & ~active, pc);
				w->parked |= active;
				mask = lowest(w, &pc, &join);
				continue;
			}
			if (b->counters)
				b->counters[i - k->code].executed++;
			i->run(w, i, active);
			if (b->failed)
				return;
		}
		if (i->is_control) {
			mask = lowest(w, &pc, &join);
		} else if (pc >= join || w->asleep & mask) {
			put_pc(w, mask, pc);
			mask = lowest(w, &pc, &join);
		}
		/* after one instruction of the gathered lanes, the lanes that are still parked may retry */
		if (w->parked) {
			w->parked = 0;
			put_pc(w, mask, pc);
			mask = lowest(w, &pc, &join);
		}
		if (w->state != WARP_READY)
			break;
	}
	if (!w->alive)
		end_warp(w);
	else
		put_pc(w, mask, pc);
}

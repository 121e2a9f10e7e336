/* Taint of values that a warp read while another warp of its block may write them.
 *
 * Every thread that holds a copy of a value loads it, and only one thread stores the updated value. Without a barrier
 * between, the other threads may load the updated value. That is a race only if they use it. So the registers of such
 * lanes are tainted, the taint follows the values, and a use with a visible effect is a fault. */
#include <string.h>

#include "runtime/sim/memory.h"

struct stale {
	u32 *marked;     /* per register: mask of tainted lanes */
	u32 nmarked;     /* registers with a tainted lane */
	const struct instr *read;
	const char *what;
};

static void mark(struct stale *s, u32 reg, u32 lanes, u32 of)
{
	u32 before = s->marked[reg], after = (before & ~of) | lanes;
	s->marked[reg] = after;
	s->nmarked += (after != 0) - (u32)(before != 0);
}

static void mark_all(struct stale *s, const struct operand *o, u32 lanes, u32 of)
{
	if (o->kind == O_REG)
		mark(s, o->reg, lanes, of);
	for (u32 k = 0; o->kind == O_VECTOR && k < o->nitems; k++)
		mark_all(s, &o->items[k], lanes, of);
}

static u32 marked(const struct stale *s, const struct operand *o)
{
	u32 lanes = o->kind == O_REG || (o->kind == O_ADDRESS && o->has_reg) ? s->marked[o->reg] : 0;
	for (u32 k = 0; k < o->nitems; k++)
		lanes |= marked(s, &o->items[k]);
	return lanes;
}

void stale_begin(struct warp *w, const struct instr *i, u32 lanes, const char *what)
{
	struct stale *s = w->stale;
	struct arena *a = &w->block->arena;
	if (!s) {
		s = w->stale = arena_new(a, struct stale);
		s->marked = arena_array(a, u32, w->block->launch->kernel->nregs + 1);
	}
	s->read = i;
	s->what = what;
	mark_all(s, &i->ops[0], lanes, lanes);
}

bool stale_step(struct warp *w, const struct instr *i, u32 mask, u32 active)
{
	struct stale *s = w->stale;
	bool has_result = i->has_result, seen = !has_result;
	u32 used = i->pred < 0 ? 0 : s->marked[i->pred] & mask, from = 0;
	if (!s->nmarked)
		return true;
	for (u32 k = 0; k < i->nops; k++) {
		if (i->ops[k].kind == O_ADDRESS)
			seen = true;
		if (k || !has_result)
			from |= marked(s, &i->ops[k]);
	}
	if (seen)
		used |= from & active;
	if (used) {
		struct strbuf text = {.arena = &w->block->arena};
		sb_puts(&text, s->what);
		sb_puts(&text, "; the value read is used at ");
		print_place(&text, w->block->launch, i);
		return fault(w, s->read, used, "%s", text.at);
	}
	if (has_result) {
		u32 lanes = from & active;
		if (lanes && (i->members || i->is_sync)) /* the instruction moves values between lanes */
			lanes = active;
		mark_all(s, &i->ops[0], lanes, active);
	}
	return true;
}

/* What stands in front of a pipelined loop, and better stands elsewhere: loads that wait, and what only the results need.
 *
 * Attention loads its queries, scales them and stores them where a dot will read them, all before the loop over the keys. If the
 * keys were asked for only then, memory's latency would pass twice. So such loads and what waits for them come after the first
 * copies, if these need none of it. The loads come too, because ptxas moves all that computes up to where it can begin.
 * Only what needs no scratch memory moves: the buffers are in use by then. */
#include "place/pipeline.h"

struct front {
	struct pipe *p;
	struct map waits;       /* op → itself */
	VEC(struct op *) moves; /* these, in program order */
};

static bool waits(const struct front *f, const struct op *o)
{
	for (u32 i = 0; i < o->noperands; i++) {
		const struct op *def = operand(o, i)->def;
		if (def && map_get(&f->waits, def))
			return true;
	}
	for (u32 i = 0; i < o->nblocks; i++)
		for (const struct op *in = o->blocks[i]->first; in; in = in->next)
			if (waits(f, in))
				return true;
	return o->code == IR_FENCE_ASYNC && o->prev && o->prev->code == IR_LOCAL_STORE && map_get(&f->waits, o->prev);
}

static bool may_move(const struct op *o)
{
	return o->code == IR_LOCAL_STORE || o->code == IR_FENCE_ASYNC || (op_has(o, PURE) && !op_has(o, SYNC) && o->code != IR_CONVERT_LAYOUT);
}

/* Nothing passes these. */
static bool is_end(const struct op *o)
{
	bool own = o->code == IR_LOCAL_ALLOC || o->code == IR_LOCAL_STORE || o->code == IR_FENCE_ASYNC;
	return o->nblocks || (op_has(o, WRITE) && !own) || o->code == IR_BARRIER;
}

/* Finds what waits among the operations up to `last`. */
static bool find_waiting(struct front *f, struct op *last)
{
	struct op *first = NULL;
	bool stores = false;
	for (struct op *o = last; o && !is_end(o); o = o->prev)
		first = o;
	for (struct op *o = first; o && o != last->next; o = o->next) {
		if (o->code == IR_LOAD) {
			if (waits(f, o) || o->attr[ATTR_VOLATILE])
				return false;
			map_put(&f->waits, o, o);
			vec_push(&f->p->scratch, &f->moves, o);
		} else if (waits(f, o)) {
			if (!may_move(o))
				return false;
			map_put(&f->waits, o, o);
			vec_push(&f->p->scratch, &f->moves, o);
			stores |= o->code == IR_LOCAL_STORE;
		}
	}
	return stores;
}

/* The operations behind `last`, up to the loop, are those that issue the first copies. */
void pipeline_issue_first(struct pipe *p, struct op *last)
{
	struct front f = {.p = p, .waits = {.arena = &p->scratch}};
	if (!p->async || !last || !find_waiting(&f, last))
		return;
	for (const struct op *o = last->next; o != p->loop; o = o->next)
		if (waits(&f, o))
			return;
	for (u32 i = 0; i < f.moves.len; i++)
		op_insert_before(f.moves.at[i], p->loop);
	if (!p->tma)
		return; /* the loop begins with a barrier */
	struct builder b = builder_before(p->ctx, p->loop);
	build(&b, IR_BARRIER, NULL, 0, NULL, 0, 0);
}

/* --- what the results need ----------------------------------------------------------------------------------- */

static bool used_behind(const struct op *o, const struct op *loop)
{
	bool yes = !value_unused(result(o));
	for (const struct use *u = result(o)->uses; u && yes; u = u->next) {
		const struct op *user = u->user;
		while (user->block != loop->block)
			user = user->block->parent;
		yes = user != loop && comes_behind(user, loop);
	}
	return yes;
}

/* Does only what comes behind the loop need o, and would no tile have to be kept for it meanwhile? */
static bool can_follow(const struct op *o, const struct op *loop)
{
	bool yes = o->block == loop->block && op_has(o, PURE) && !op_has(o, SYNC) && !o->nblocks && o->nresults == 1 && o->code != IR_CONVERT_LAYOUT &&
		   used_behind(o, loop);
	for (u32 i = 0; i < o->noperands && yes; i++) {
		const struct value *v = operand(o, i);
		yes = !type_is_tensor(v->type) || value_defined_outside(v, loop->block) || (v->def && v->def->code == IR_SPLAT);
	}
	return yes;
}

void pipeline_defer(struct op *loop)
{
	struct op *end = loop->next;
	for (struct op *o = loop->prev, *prev; o; o = prev) {
		prev = o->prev;
		if (!can_follow(o, loop))
			continue;
		op_insert_before(o, end);
		end = o;
	}
}

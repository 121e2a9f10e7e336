/* What stands in front of a pipelined loop, and better stands elsewhere: loads that wait, and what is only needed
 * behind it.
 *
 * Attention loads its queries, scales them and stores them where a dot will read them, all before the loop over the
 * keys. If the keys were asked for only then, memory's latency would pass twice. So such loads and what waits for them
 * come after the first copies, if these need none of it. The loads come too, because ptxas moves all that computes up
 * to where it can begin. Only what needs no scratch memory moves: the buffers are in use by then.
 *
 * What is only needed behind a loop with dots, such as the pointers of its rest, would hold registers all the while: it
 * moves there. */
#include "pipeline/schedule.h"

struct front {
	struct schedule *p;
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
	return o->code == IR_LOCAL_STORE || o->code == IR_FENCE_ASYNC ||
	       (op_has(o, PURE) && !op_has(o, SYNC) && o->code != IR_CONVERT_LAYOUT);
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
			if (o->code == IR_LOCAL_STORE) { /* and so does who reads the buffer */
				map_put(&f->waits, operand(o, 1)->def, o);
				stores = true;
			}
		}
	}
	return stores;
}

/* The operations behind `last`, up to the loop, are those that issue the first copies. */
void pipeline_issue_first(struct schedule *p, struct op *last)
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

/* --- what is needed behind the loop -------------------------------------------------------------------------- */

enum { STAYS, MOVES, BEHIND };

/* The operation in b that o is, or is part of. */
static struct op *within(struct op *o, const struct block *b)
{
	while (o->block != b)
		o = o->block->parent;
	return o;
}

/* A tile that is known from the thread's place alone. */
static bool is_place(const struct value *v)
{
	const struct op *o = v->def;
	while (o && op_is_shape(o))
		o = operand(o, 0)->def;
	return o && (o->code == IR_MAKE_RANGE || o->code == IR_SPLAT || o->code == IR_CONSTANT);
}

/* Is nothing lost if v is there behind the loop? */
static bool may_be_kept(const struct value *v, const struct block *b)
{
	bool yes = !type_is_tensor(v->type) || value_defined_outside(v, b) || is_place(v) ||
		   (v->def && v->def->mark == MOVES);
	for (const struct use *u = v->uses; u && !yes; u = u->next)
		yes = within(u->user, b)->mark == BEHIND;
	return yes;
}

static bool can_follow(const struct op *o)
{
	bool yes = op_is_orderless(o) && o->nresults == 1 && o->code != IR_CONVERT_LAYOUT && !value_unused(result(o));
	for (const struct use *u = yes ? result(o)->uses : NULL; u && yes; u = u->next)
		yes = within(u->user, o->block)->mark != STAYS;
	for (u32 i = 0; i < o->noperands && yes; i++)
		yes = may_be_kept(operand(o, i), o->block);
	return yes;
}

/* What stays takes with it what it needs: until nothing changes. */
void pipeline_defer(struct op *loop)
{
	struct block *b = loop->block;
	struct op *end = loop->next;
	bool more = true;
	for (struct op *o = b->first; o != loop; o = o->next)
		o->mark = MOVES;
	loop->mark = STAYS;
	for (struct op *o = end; o; o = o->next)
		o->mark = BEHIND;
	while (more) {
		more = false;
		for (struct op *o = loop->prev; o; o = o->prev)
			if (o->mark == MOVES && !can_follow(o)) {
				o->mark = STAYS;
				more = true;
			}
	}
	for (struct op *o = b->first, *next; o != loop; o = next) {
		next = o->next;
		if (o->mark == MOVES)
			op_insert_before(o, end);
	}
}

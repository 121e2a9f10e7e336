/* Operations before a pipelined loop that are better placed elsewhere: loads and the operations that wait for them, and
 * operations needed only after the loop.
 *
 * Attention loads its queries, scales them and stores them for a dot, all before the loop over the keys. If the copies
 * of keys were issued only then, the latency of memory would count twice. So such loads, and the operations that wait
 * for them, move after the first copies, if these do not depend on them. The loads move too, because ptxas hoists
 * computation to the point where its operands are ready. Only operations without scratch memory move, since the
 * multi-buffers are in use by then.
 *
 * Values that are used only after a loop with dots, such as the pointers of a remainder loop, would hold registers
 * during the loop: their operations sink past it. */
#include "gpu/pipeline/plan.h"

struct front {
	struct plan *p;
	struct map waits; /* load, or operation or buffer allocation that needs a load's result → an operation */
	VEC(struct op *) moves; /* the operations of `waits` that move, in program order */
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

/* True if no operation may move past o. */
static bool is_end(const struct op *o)
{
	bool own = o->code == IR_LOCAL_ALLOC || o->code == IR_LOCAL_STORE || o->code == IR_FENCE_ASYNC;
	return o->nblocks || (op_has(o, WRITE) && !own) || o->code == IR_BARRIER;
}

/* Fills f->waits and f->moves from the operations that end with `last`. False: no store to shared memory is among those
 * to move, or they cannot move. */
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
			if (o->code == IR_LOCAL_STORE) { /* readers of the buffer wait too */
				map_put(&f->waits, operand(o, 1)->def, o);
				stores = true;
			}
		}
	}
	return stores;
}

/* last: the last operation before the prologue. The operations after it, up to the loop, issue the first copies. */
void sink_past_first_copies(struct plan *p, struct op *last)
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

/* --- deferral past loops --------------------------------------------------------------------------------------- */

/* The loops with dots divide a block into segments, numbered in program order. An operation may sink into a later
 * segment if its users are there or sink as well, and if no operand must stay in registers longer for it. The limit of
 * an operation is the last segment that it may sink into: at most the limit of each user, and at most the last segment
 * in which each operand is live anyway. Propagation only lowers limits, so the result does not depend on the order: it
 * is the largest limits that satisfy all conditions. */
struct segments {
	struct block *b;
	struct arena scratch;
	u32 *home, *limit; /* the segment and the limit of each operation, by its mark */
	op_vec work;       /* the operations with limits to propagate */
};

/* The operation of b that is o or contains it. */
static struct op *within(struct op *o, const struct block *b)
{
	while (o->block != b)
		o = o->block->parent;
	return o;
}

/* True if v is cheap to recompute: from the thread's position in the tile (tt.make_range) and from scalars only. */
static bool is_cheap(const struct value *v)
{
	const struct op *o = v->def;
	while (o && op_is_shape(o))
		o = operand(o, 0)->def;
	return o && (o->code == IR_MAKE_RANGE || o->code == IR_SPLAT || o->code == IR_CONSTANT);
}

static bool can_move(const struct op *o)
{
	return op_is_orderless(o) && o->nresults == 1 && o->code != IR_CONVERT_LAYOUT && !value_unused(result(o));
}

static bool is_dot_loop(const struct op *o)
{
	return o->code == IR_FOR && block_has(o->blocks[0], op_is_dot);
}

static void limit(struct segments *g, struct op *o, u32 to)
{
	if (to < g->limit[o->mark]) {
		g->limit[o->mark] = to;
		vec_push(&g->scratch, &g->work, o);
	}
}

/* Lowers limits for a value v whose definition sinks no further than segment `to`, so that v is live from there to its
 * last user. */
static void limit_users(struct segments *g, const struct value *v, u32 to)
{
	if (!type_is_tensor(v->type) || is_cheap(v))
		return;
	for (const struct use *u = v->uses; u; u = u->next)
		to = MAX(to, g->home[within(u->user, g->b)->mark]);
	for (const struct use *u = v->uses; u; u = u->next)
		limit(g, within(u->user, g->b), to);
}

static void propagate_limit(struct segments *g, struct op *o)
{
	u32 to = g->limit[o->mark];
	for (u32 i = 0; i < o->nresults; i++)
		limit_users(g, &o->results[i], to);
	for (u32 i = 0; i < o->noperands && !o->nblocks; i++)
		if (operand(o, i)->def && operand(o, i)->def->block == g->b)
			limit(g, operand(o, i)->def, to);
}

/* The initial limit of o. Operations with regions do not move. */
static u32 first_limit(const struct segments *g, const struct op *o, u32 last)
{
	if (!can_move(o))
		return g->home[o->mark];
	for (const struct use *u = result(o)->uses; u; u = u->next)
		if (u->user->block != g->b || u->user->nblocks)
			last = MIN(last, g->home[within(u->user, g->b)->mark]);
	return last;
}

static void sink_to_limits(struct segments *g, const op_vec *loops)
{
	VEC(struct op *) firsts = {0}; /* of each segment */
	for (u32 i = 0; i < loops->len; i++)
		vec_push(&g->scratch, &firsts, loops->at[i]->next);
	for (struct op *o = g->b->first, *next; o; o = next) {
		u32 home = g->home[o->mark], to = g->limit[o->mark];
		next = o->next;
		g->home[o->mark] = to;
		if (to > home)
			op_insert_before(o, firsts.at[to - 1]);
	}
}

/* Sinks operations past loops with dots to the segments of their users. */
static void sink_in_block(struct block *b)
{
	struct segments g = {.b = b};
	op_vec loops = {0};
	u32 n = 0;
	for (struct op *o = b->first; o; o = o->next) {
		o->mark = n++;
		if (is_dot_loop(o))
			vec_push(&g.scratch, &loops, o);
	}
	if (loops.len) {
		u32 segments = loops.len + 1, home = 0;
		g.home = arena_array(&g.scratch, u32, n);
		g.limit = arena_array(&g.scratch, u32, n);
		for (struct op *o = b->first; o; o = o->next) {
			g.home[o->mark] = home;
			g.limit[o->mark] = segments;
			home += home < loops.len && o == loops.at[home];
		}
		for (struct op *o = b->last; o; o = o->prev)
			limit(&g, o, first_limit(&g, o, loops.len));
		for (u32 i = 0; i < b->nargs; i++)
			limit_users(&g, b->args[i], 0);
		while (g.work.len)
			propagate_limit(&g, g.work.at[--g.work.len]);
		sink_to_limits(&g, &loops);
	}
	arena_free(&g.scratch);
}

void sink_past_dot_loops(struct block *b)
{
	sink_in_block(b);
	for (struct op *o = b->first; o; o = o->next)
		for (u32 k = 0; k < o->nblocks; k++)
			sink_past_dot_loops(o->blocks[k]);
}

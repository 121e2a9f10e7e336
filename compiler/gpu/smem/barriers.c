/* Barriers: a data-flow over what has been done to memory since the last one.
 *
 * Before an operation that reads what another thread may have written, or overwrites what another may still read, all
 * threads meet. An operation with scratch writes it, synchronises inside, and reads it; so before it only earlier
 * accesses matter, and after it only its reads are pending. Where each warp has a part of that memory it synchronises
 * warps only, and what was pending still is. Rings of buffers filled by asynchronous copies bring their own waits and
 * barriers (gpu/pipeline/schedule.c), so within one ring accesses do not count against each other;
 * gpu/smem/model_checker.c asks whether they need to.
 *
 * Global memory is the same: global_dependences.h says which accesses have an order that threads do not keep by
 * themselves.
 *
 * Of two warpgroups each may have a part of the memory for itself: the rows of an operand that it alone multiplies, and
 * the scratch of its warps. Then it is enough that the warps of a warpgroup meet, and the other one may be anywhere.
 *
 * Where a program runs on several blocks, each writes to the shared memory of all of them. That needs all to have
 * begun: at the start everything is pending. */
#include "ir/inline_asm.h"
#include "gpu/layout/register_operand.h"
#include "gpu/smem/global_dependences.h"
#include "gpu/gpu_passes.h"
#include "gpu/smem/shared_access.h"

enum meeting { NOBODY, WARPGROUPS /* each for itself */, EVERYBODY };

struct shared_use {
	i32 start, end;
	bool apart; /* each warpgroup has a half of its own (shared_access.h) */
	bool write;
	/* by a dot that no wait has finished, which may go on behind a barrier: 1 and the groups of dots issued since
	 */
	u8 in_flight;
	bool met;       /* the warps of each warpgroup have met since */
	/* the allocation, when it is a ring of buffers; or the conversion, when each warp has a part of its own */
	const struct op *ring;
};

typedef VEC(struct pending_access) touches;

/* What has been done since all threads met, each access once. */
struct pending {
	VEC(struct shared_use) shared;
	touches reads, writes; /* of global memory */
};

/* Accesses to global memory are compared with all that are pending: where so many are, all threads meet, which costs
 * little after as many accesses, so that the time for a kernel grows with its size. */
enum { MOST_READS = 1024, MOST_WRITES = 256 };

struct barriers {
	struct pass_state *s;
	struct arena scratch; /* of all that is pending somewhere */
	struct access_order order;
	struct map halves;    /* see find_halves */
	struct map runs;      /* the first operation of a run (gpu/layout/register_operand.h) → its dot */
	VEC(struct pending) free;
	bool placed;          /* every barrier: what is visited now needs no other */
};

static void met(struct pending *p, enum meeting who)
{
	u32 left = 0;
	for (u32 i = 0; i < p->shared.len; i++) {
		struct shared_use a = p->shared.at[i];
		a.met |= !a.in_flight;
		if (who == WARPGROUPS || a.in_flight)
			p->shared.at[left++] = a;
	}
	p->shared.len = left;
	if (who == EVERYBODY)
		p->reads.len = p->writes.len = 0;
}

/* None but the last so many groups of dots is in flight any more. */
static void finish_dots(struct pending *p, i64 but)
{
	for (u32 i = 0; i < p->shared.len; i++)
		if (p->shared.at[i].in_flight > but)
			p->shared.at[i].in_flight = 0;
}

/* More groups of dots are issued. */
static void issue_dots(struct pending *p, int groups)
{
	enum { MOST = 8 /* every wait finishes those */ };
	for (u32 i = 0; i < p->shared.len; i++)
		if (p->shared.at[i].in_flight)
			p->shared.at[i].in_flight = (u8)MIN(p->shared.at[i].in_flight + groups, MOST);
}

/* Who must meet before the access. */
static enum meeting conflict(const struct pending *p, const struct shared_use *a)
{
	enum meeting who = NOBODY;
	for (u32 i = 0; i < p->shared.len; i++) {
		const struct shared_use *b = &p->shared.at[i];
		if (a->start >= b->end || b->start >= a->end || (!a->write && !b->write) ||
		    (a->ring && a->ring == b->ring))
			continue;
		who = MAX(who, !a->apart ? EVERYBODY : b->met ? NOBODY : WARPGROUPS);
	}
	return who;
}

static void add(struct barriers *w, struct pending *p, const struct shared_use *a)
{
	for (u32 i = 0; i < p->shared.len; i++) {
		const struct shared_use *b = &p->shared.at[i];
		if (b->start == a->start && b->end == a->end && b->apart == a->apart && b->write == a->write &&
		    b->ring == a->ring && b->in_flight == a->in_flight && b->met == a->met)
			return;
	}
	vec_push(&w->scratch, &p->shared, *a);
}

static void add_touch(struct barriers *w, touches *all, const struct pending_access *t)
{
	for (u32 i = 0; i < all->len; i++)
		if (all->at[i].op == t->op && all->at[i].loop == t->loop)
			return;
	vec_push(&w->scratch, all, *t);
}

static void add_global(struct barriers *w, struct pending *p, const struct pending_access *t)
{
	add_touch(w, may_write(t->op) ? &p->writes : &p->reads, t);
}

/* Most often the one begins as the other does. */
static void merge_touches(struct barriers *w, touches *into, const touches *from)
{
	u32 i = 0;
	while (i < into->len && i < from->len && into->at[i].op == from->at[i].op &&
	       into->at[i].loop == from->at[i].loop)
		i++;
	for (; i < from->len; i++)
		add_touch(w, into, &from->at[i]);
}

/* Did `into` change? */
static bool merge(struct barriers *w, struct pending *into, const struct pending *from)
{
	u32 before = into->shared.len + into->reads.len + into->writes.len;
	for (u32 i = 0; i < from->shared.len; i++)
		add(w, into, &from->shared.at[i]);
	merge_touches(w, &into->reads, &from->reads);
	merge_touches(w, &into->writes, &from->writes);
	return into->shared.len + into->reads.len + into->writes.len > before;
}

/* What is pending where the kernel's paths part: a copy that each path changes for itself. */
static struct pending copy(struct barriers *w, const struct pending *p)
{
	struct pending q = w->free.len ? w->free.at[--w->free.len] : (struct pending){0};
	q.shared.len = q.reads.len = q.writes.len = 0;
	for (u32 i = 0; i < p->shared.len; i++)
		vec_push(&w->scratch, &q.shared, p->shared.at[i]);
	for (u32 i = 0; i < p->reads.len; i++)
		vec_push(&w->scratch, &q.reads, p->reads.at[i]);
	for (u32 i = 0; i < p->writes.len; i++)
		vec_push(&w->scratch, &q.writes, p->writes.at[i]);
	return q;
}

/* Nobody looks at the copy any more. */
static void release(struct barriers *w, struct pending *p)
{
	vec_push(&w->scratch, &w->free, *p);
}

static void barrier_before(struct barriers *w, struct pending *p, struct op *o, enum meeting who)
{
	if (who == NOBODY)
		return;
	tl_assert(!w->placed);
	struct builder b = builder_before(w->s->ctx, o);
	build(&b, IR_BARRIER, NULL, 0, NULL, 0, 0)->attr[ATTR_WARPGROUP] = who == WARPGROUPS;
	met(p, who);
}

static bool must_wait(struct barriers *w, const touches *all, const struct op *o)
{
	bool wait = false;
	for (u32 i = 0; i < all->len && !wait; i++)
		wait = must_meet(&w->order, &all->at[i], o);
	return wait;
}

/* Must all threads meet between what is pending and o? */
static bool must_wait_for_global(struct barriers *w, const struct pending *p, const struct op *o)
{
	return must_wait(w, &p->writes, o) || (may_write(o) && must_wait(w, &p->reads, o));
}

/* Where too much is pending, all threads meet, unless one thread alone does o. Also in front of a branch or loop, since
 * what is pending there would remain so on the other way. */
static void keep_few(struct barriers *w, struct pending *p, struct op *o)
{
	bool full = p->reads.len >= MOST_READS || p->writes.len >= MOST_WRITES;
	if (full && !(o->block->parent && o->block->parent->code == IR_ONE_THREAD))
		barrier_before(w, p, o, EVERYBODY);
}

static void touch_global(struct barriers *w, struct pending *p, struct op *o)
{
	keep_few(w, p, o);
	barrier_before(w, p, o, must_wait_for_global(w, p, o) ? EVERYBODY : NOBODY);
	add_global(w, p, &(struct pending_access){.op = o});
}

/* Assembly may do anything to memory. The same text in the iteration before is not waited for: where each thread waits
 * for memory to change, they leave the loop one by one. */
static void touch_anything(struct barriers *w, struct pending *p, struct op *o)
{
	bool wait = p->reads.len;
	if (!op_is_opaque(o))
		return;
	for (u32 i = 0; i < p->writes.len; i++)
		wait |= p->writes.at[i].op != o;
	barrier_before(w, p, o, wait ? EVERYBODY : NOBODY);
	add_global(w, p, &(struct pending_access){.op = o});
}

static struct shared_use access_of(const struct barriers *w, const struct op *o, struct shared_access a)
{
	bool ring = a.memory->code == IR_LOCAL_ALLOC && result(a.memory)->type->nbuf;
	return (struct shared_use){
		.start = a.memory->scratch_offset,
		.end = a.memory->scratch_offset + a.memory->scratch_size,
		.apart = map_get(&w->halves, a.memory),
		.write = a.write,
		.in_flight = o->code == IR_WARP_GROUP_DOT,
		.ring = a.within_warps || ring ? a.memory : NULL,
	};
}

/* Who must meet before o, for its accesses. */
static enum meeting conflict_of(const struct barriers *w, const struct pending *p, const struct op *o)
{
	enum meeting who = NOBODY;
	struct shared_access at[2];
	for (u32 n = shared_accesses(o, at); n--;) {
		struct shared_use a = access_of(w, o, at[n]);
		who = MAX(who, conflict(p, &a));
	}
	return who;
}

/* o makes its accesses to shared memory, all at once. */
static void touch(struct barriers *w, struct pending *p, struct op *o)
{
	struct shared_access at[2];
	barrier_before(w, p, o, conflict_of(w, p, o));
	for (u32 n = shared_accesses(o, at); n--;) {
		struct shared_use a = access_of(w, o, at[n]);
		add(w, p, &a);
	}
}

static void visit_block(struct barriers *w, struct pending *p, struct block *b);

static bool is_inside(const struct op *o, const struct op *loop)
{
	while (o && o != loop)
		o = o->block->parent;
	return o;
}

/* What was done in the body of `loop` was done in an earlier iteration when the next one begins. */
static void carry(touches *all, const struct op *loop)
{
	bool dots = false;
	for (u32 i = 0; i < loop->nblocks && all->len; i++)
		dots |= block_has(loop->blocks[i], op_is_dot);
	for (u32 i = 0; i < all->len; i++)
		if (is_inside(all->at[i].op, loop)) {
			all->at[i].loop = loop;
			all->at[i].of_products = dots;
		}
}

/* A region that may run again: what is pending at its end is pending at its start too, until that adds nothing. There
 * is an end to it: what is pending at the start only grows, and a kernel has so many accesses. The rest of a split
 * loop, which often does not run at all, synchronises at its end instead of where it begins again, so that nothing is
 * left to those who come after; unless something was left in front of it when the barriers were placed. */
static void visit_loop(struct barriers *w, struct pending *p, struct op *o)
{
	struct pending in = copy(w, p), out, again;
	bool more;
	do {
		out = copy(w, &in);
		for (u32 k = 0; k < o->nblocks; k++)
			visit_block(w, &out, o->blocks[k]);
		if (!w->placed && o->code == IR_FOR && o->attr[ATTR_STAGES] == 1 && !in.shared.len && out.shared.len)
			barrier_before(w, &out, o->blocks[0]->last, EVERYBODY);
		again = copy(w, &out);
		carry(&again.reads, o);
		carry(&again.writes, o);
		more = merge(w, &in, &again);
		if (!more)
			merge(w, &in, &out);
		release(w, &out);
		release(w, &again);
	} while (more);
	release(w, p);
	*p = in;
}

/* What one thread does to mbarriers and buffers: all threads meet in front of it. */
static void visit_alone(struct barriers *w, struct pending *p, struct op *o)
{
	enum meeting who = NOBODY;
	for (const struct op *in = o->blocks[0]->first; in; in = in->next) {
		who = MAX(who, conflict_of(w, p, in));
		who = op_is_tensor_copy(in) && must_wait_for_global(w, p, in) ? EVERYBODY : who;
	}
	barrier_before(w, p, o, who);
	visit_block(w, p, o->blocks[0]);
}

/* The loop in which warpgroups take turns, the first of which o awaits; or NULL. */
static struct op *loop_behind(const struct op *o)
{
	struct op *next = o->code == IR_PINGPONG_WAIT ? o->next : NULL;
	while (next && op_has(next, PURE) && !op_has(next, SYNC))
		next = next->next;
	return next && next->code == IR_FOR ? next : NULL;
}

/* Where warpgroups wait for their turns, no warp may wait for others: who must meet in front of the loop for what is
 * done in it. */
static enum meeting conflict_in(const struct barriers *w, const struct pending *p, const struct block *b)
{
	enum meeting who = NOBODY;
	for (const struct op *o = b->first; o; o = o->next) {
		who = MAX(who, conflict_of(w, p, o));
		for (u32 i = 0; i < o->nblocks; i++)
			who = MAX(who, conflict_in(w, p, o->blocks[i]));
	}
	return who;
}

static void add_reads(struct barriers *w, struct pending *p, const struct op *o)
{
	struct shared_access at[2];
	for (u32 n = shared_accesses(o, at); n--;) {
		struct shared_use a = access_of(w, o, at[n]);
		a.write = false;
		add(w, p, &a);
	}
}

static op_vec run_of(struct barriers *w, const struct op *o)
{
	bool fetches = o->code == IR_WARP_GROUP_DOT && o->attr[ATTR_FETCHED];
	return fetches ? operand_run(&w->scratch, o) : (op_vec){0};
}

/* What o, whose accesses have been added, reads of them behind a barrier of its own, and its run with it. */
static void read_behind(struct barriers *w, struct pending *p, const struct op *o)
{
	op_vec run = run_of(w, o);
	met(p, EVERYBODY);
	add_reads(w, p, o);
	for (u32 i = 0; i < run.len; i++)
		add_reads(w, p, run.at[i]);
}

/* The operations of a run read memory with its dot. */
static void meet_before_run(struct barriers *w, struct pending *p, struct op *first, const struct op *dot)
{
	enum meeting who = conflict_of(w, p, dot);
	for (const struct op *o = first; o != dot; o = o->next)
		who = MAX(who, conflict_of(w, p, o));
	barrier_before(w, p, first, who);
}

static void note_run(struct op *o, void *arg)
{
	struct barriers *w = arg;
	op_vec run = run_of(w, o);
	if (run.len)
		map_put(&w->runs, run.at[0], o);
}

static void visit_op(struct barriers *w, struct pending *p, struct op *o)
{
	if (map_get(&w->runs, o))
		meet_before_run(w, p, o, map_get(&w->runs, o));
	if (touches_memory(o))
		touch_global(w, p, o);
	if (o->code == IR_FOR || o->code == IR_WHILE || o->code == IR_IF)
		keep_few(w, p, o);
	switch (o->code) {
	case IR_BARRIER:
		if (!o->attr[ATTR_WARP])
			met(p, o->attr[ATTR_WARPGROUP] ? WARPGROUPS : EVERYBODY);
		return;
	case IR_INLINE_ASM: touch_anything(w, p, o); return;
	case IR_FOR:
	case IR_WHILE: visit_loop(w, p, o); return;
	case IR_ONE_THREAD: visit_alone(w, p, o); return;
	case IR_IF: {
		struct pending no = copy(w, p);
		visit_block(w, p, o->blocks[0]);
		visit_block(w, &no, o->blocks[1]);
		merge(w, p, &no);
		release(w, &no);
		return;
	}
	case IR_PINGPONG_WAIT:
		if (o->attr[ATTR_FIRST])
			return;
		met(p, WARPGROUPS); /* its warps wait together */
		if (loop_behind(o))
			barrier_before(w, p, o, conflict_in(w, p, loop_behind(o)->blocks[0]));
		return;
	case IR_WARP_GROUP_WAIT: finish_dots(p, o->attr[ATTR_PENDING]); return;
	case IR_WARP_GROUP_DOT:
		if (o->attr[ATTR_FETCHED] && o->attr[ATTR_ASYNC]) /* as it goes, it waits for all before it */
			finish_dots(p, 0);
		issue_dots(p, wgmma_groups(o)); /* fallthrough */
	default: touch(w, p, o); break;
	}
	struct shared_access at[2];
	bool scratch = shared_accesses(o, at) && at[0].memory == o && !at[0].within_warps;
	if (scratch || is_transposed(o, 0) || is_transposed(o, 1))
		read_behind(w, p, o);
	if (o->code == IR_WARP_GROUP_DOT && !o->attr[ATTR_ASYNC])
		finish_dots(p, 0);
}

static void visit_block(struct barriers *w, struct pending *p, struct block *b)
{
	for (struct op *o = b->first; o; o = o->next)
		visit_op(w, p, o);
}

static bool is_for_all(const struct op *o)
{
	return (o->code == IR_BARRIER && !o->attr[ATTR_WARP] && !o->attr[ATTR_WARPGROUP]) || is_transposed(o, 0) ||
	       is_transposed(o, 1);
}

static bool is_turn(const struct op *o)
{
	return o->code == IR_PINGPONG_WAIT || o->code == IR_PINGPONG_ARRIVE;
}

/* The next operation behind o, or in front of it, that passes or awaits a turn; NULL: there is none. */
static struct op *find_turn(struct op *o, bool back)
{
	do
		o = back ? o->prev : o->next;
	while (o && !is_turn(o));
	return o;
}

static void erase_turn(struct op *o)
{
	tl_assert(o);
	op_erase(o);
}

static void erase_turns(struct block *b)
{
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		for (u32 i = 0; i < o->nblocks; i++)
			erase_turns(o->blocks[i]);
		if (is_turn(o))
			op_erase(o);
	}
}

/* Two warpgroups of which one waits for its turn, and the other for all threads, would wait for ever: a loop in which
 * all threads meet has no turns, nor has the loop over tiles around it. In front of it the first turn is passed and
 * awaited, and behind it the last one passed; the turns of all loops in one over tiles are passed first in front of
 * that, and awaited last behind it. */
static bool part_turns(struct pass_state *s, struct op *await)
{
	struct op *loop = loop_behind(await);
	if (!loop || !block_has(loop->blocks[0], is_for_all))
		return false;
	struct op *first = find_turn(await, true);
	if (first && first->attr[ATTR_ONLY] == 2) {
		erase_turn(first);
		erase_turn(await);
		erase_turn(find_turn(loop, false));
		erase_turns(loop->blocks[0]);
	} else {
		struct op *tiles = loop->block->parent;
		erase_turn(find_turn(tiles, true));
		erase_turn(find_turn(tiles, false));
		erase_turns(tiles->blocks[0]);
	}
	if (s->remarks)
		diag(s->diags, R_NO_TURNS, loop->loc);
	return true;
}

/* Have any been parted? */
static bool part_turns_in(struct pass_state *s, struct block *b)
{
	bool any = false;
	for (struct op *o = b->first, *next; o; o = next) {
		for (u32 i = 0; i < o->nblocks; i++)
			any |= part_turns_in(s, o->blocks[i]);
		next = loop_behind(o) ? loop_behind(o) : o->next; /* o itself may go */
		any |= part_turns(s, o);
	}
	return any;
}

static void visit_kernel(struct barriers *w)
{
	struct pending p = {0};
	if (w->s->k->cuda.cluster > 1)
		add(w, &p, &(struct shared_use){.end = INT32_MAX, .write = true});
	visit_block(w, &p, w->s->k->body);
}

/* A second visit finds every barrier in its place, or the first one has stopped too early. */
void pass_barriers(struct pass_state *s)
{
	struct barriers w = {.s = s, .order.s = s};
	w.halves.arena = w.runs.arena = w.order.extents.arena = &w.scratch;
	walk(s->k->body, note_run, &w);
	find_halves(s, &w.halves);
	visit_kernel(&w);
	if (part_turns_in(s, s->k->body)) { /* where warps have met no more */
		w.halves = (struct map){.arena = &w.scratch};
		find_halves(s, &w.halves);
		visit_kernel(&w);
	}
#ifndef NDEBUG
	w.placed = true;
	visit_kernel(&w);
#endif
	arena_free(&w.scratch);
}

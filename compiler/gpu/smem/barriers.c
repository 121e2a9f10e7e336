/* Barrier insertion: a data-flow analysis of the memory accesses since the last barrier.
 *
 * Threads synchronise before an operation that reads memory another thread may have written, or that overwrites memory
 * another thread may still read. An operation with scratch memory writes the scratch, synchronises inside, and reads
 * it. So only earlier accesses conflict with the write, and only the reads are pending after the operation. If each
 * warp has a part of the scratch, the operation synchronises only within warps, and earlier accesses remain pending.
 * Multi-buffered allocations that asynchronous copies fill come with the waits and barriers of the pipeliner
 * (gpu/pipeline/schedule.c), so accesses to the same such allocation do not conflict here. gpu/smem/model_checker.c
 * proves that they are synchronised.
 *
 * Accesses to global memory are treated alike: global_dependences.h decides which pairs need a barrier in between.
 *
 * Each of two warpgroups may use a separate part of shared memory: the rows of an operand that only this warpgroup
 * multiplies, and the scratch of its warps. Then a barrier of each warpgroup is enough, and the other warpgroup may be
 * anywhere.
 *
 * In a cluster, each block writes to the shared memory of all blocks, so all blocks must have started before. At kernel
 * entry, a write of all shared memory is therefore pending. */
#include "ir/inline_asm.h"
#include "gpu/layout/register_operand.h"
#include "gpu/smem/global_dependences.h"
#include "gpu/gpu_passes.h"
#include "gpu/smem/shared_access.h"

enum meeting { NO_THREADS, WARPGROUPS /* one barrier for each */, ALL_THREADS };

struct shared_use {
	i32 start, end;
	bool apart; /* each warpgroup uses a separate half (shared_access.h) */
	bool write;
	/* read by a dot that no wait has completed, so that the read may continue after a barrier: 1 + the groups of
	 * dots issued since; 0: any other access */
	u8 in_flight;
	bool met;       /* the warps of each warpgroup have synchronised since */
	/* a multi-buffered allocation, or a conversion with a part of the scratch for each warp; NULL: neither. Two
	 * accesses with the same `exempt` do not conflict. */
	const struct op *exempt;
};

typedef VEC(struct pending_access) touches;

/* The accesses since the last barrier of all threads, each access once. */
struct pending {
	VEC(struct shared_use) shared;
	touches reads, writes; /* of global memory */
};

/* Each access to global memory is compared with all pending accesses. With this many pending, a barrier is inserted:
 * after that many accesses it costs little, and compile time stays proportional to the size of the kernel. */
enum { MOST_READS = 1024, MOST_WRITES = 256 };

struct barriers {
	struct pass_state *s;
	struct arena scratch; /* memory of all `struct pending` */
	struct access_order order;
	struct map halves;    /* see find_halves */
	struct map runs;      /* first operation of an operand's run (gpu/layout/register_operand.h) → the dot */
	VEC(struct pending) free;
	bool placed;          /* all barriers are inserted: a visit must find no conflict */
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
	if (who == ALL_THREADS)
		p->reads.len = p->writes.len = 0;
}

/* At most the last `but` groups of dots remain in flight. */
static void finish_dots(struct pending *p, i64 but)
{
	for (u32 i = 0; i < p->shared.len; i++)
		if (p->shared.at[i].in_flight > but)
			p->shared.at[i].in_flight = 0;
}

/* Issues `groups` more groups of dots. */
static void issue_dots(struct pending *p, int groups)
{
	enum { MOST = 8 /* every wait completes groups of this age */ };
	for (u32 i = 0; i < p->shared.len; i++)
		if (p->shared.at[i].in_flight)
			p->shared.at[i].in_flight = (u8)MIN(p->shared.at[i].in_flight + groups, MOST);
}

/* The threads that must synchronise before the access. */
static enum meeting conflict(const struct pending *p, const struct shared_use *a)
{
	enum meeting who = NO_THREADS;
	for (u32 i = 0; i < p->shared.len; i++) {
		const struct shared_use *b = &p->shared.at[i];
		if (a->start >= b->end || b->start >= a->end || (!a->write && !b->write) ||
		    (a->exempt && a->exempt == b->exempt))
			continue;
		who = MAX(who, !a->apart ? ALL_THREADS : b->met ? NO_THREADS : WARPGROUPS);
	}
	return who;
}

static void add(struct barriers *w, struct pending *p, const struct shared_use *a)
{
	for (u32 i = 0; i < p->shared.len; i++) {
		const struct shared_use *b = &p->shared.at[i];
		if (b->start == a->start && b->end == a->end && b->apart == a->apart && b->write == a->write &&
		    b->exempt == a->exempt && b->in_flight == a->in_flight && b->met == a->met)
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

/* Skips the common prefix first: most often `into` begins like `from`. */
static void merge_touches(struct barriers *w, touches *into, const touches *from)
{
	u32 i = 0;
	while (i < into->len && i < from->len && into->at[i].op == from->at[i].op &&
	       into->at[i].loop == from->at[i].loop)
		i++;
	for (; i < from->len; i++)
		add_touch(w, into, &from->at[i]);
}

/* True if `into` has changed. */
static bool merge(struct barriers *w, struct pending *into, const struct pending *from)
{
	u32 before = into->shared.len + into->reads.len + into->writes.len;
	for (u32 i = 0; i < from->shared.len; i++)
		add(w, into, &from->shared.at[i]);
	merge_touches(w, &into->reads, &from->reads);
	merge_touches(w, &into->writes, &from->writes);
	return into->shared.len + into->reads.len + into->writes.len > before;
}

/* A copy of the pending accesses, for one path where control flow splits. */
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

/* Returns a copy to the free list. */
static void release(struct barriers *w, struct pending *p)
{
	vec_push(&w->scratch, &w->free, *p);
}

static void barrier_before(struct barriers *w, struct pending *p, struct op *o, enum meeting who)
{
	if (who == NO_THREADS)
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

/* True if all threads must synchronise between the pending accesses and o. */
static bool must_wait_for_global(struct barriers *w, const struct pending *p, const struct op *o)
{
	return must_wait(w, &p->writes, o) || (may_write(o) && must_wait(w, &p->reads, o));
}

/* Inserts a barrier of all threads if too many accesses are pending, unless a single thread executes o. Called before a
 * branch or loop, too: accesses pending there would remain pending on the path without a barrier. */
static void keep_few(struct barriers *w, struct pending *p, struct op *o)
{
	bool full = p->reads.len >= MOST_READS || p->writes.len >= MOST_WRITES;
	if (full && !(o->block->parent && o->block->parent->code == IR_ONE_THREAD))
		barrier_before(w, p, o, ALL_THREADS);
}

static void touch_global(struct barriers *w, struct pending *p, struct op *o)
{
	keep_few(w, p, o);
	barrier_before(w, p, o, must_wait_for_global(w, p, o) ? ALL_THREADS : NO_THREADS);
	add_global(w, p, &(struct pending_access){.op = o});
}

/* Inline assembly may access any memory. It does not wait for its own execution in an earlier iteration: in a loop in
 * which each thread polls memory, the threads leave one by one. */
static void touch_anything(struct barriers *w, struct pending *p, struct op *o)
{
	bool wait = p->reads.len;
	if (!op_is_opaque(o))
		return;
	for (u32 i = 0; i < p->writes.len; i++)
		wait |= p->writes.at[i].op != o;
	barrier_before(w, p, o, wait ? ALL_THREADS : NO_THREADS);
	add_global(w, p, &(struct pending_access){.op = o});
}

static struct shared_use access_of(const struct barriers *w, const struct op *o, struct shared_access a)
{
	bool multi_buffered = a.memory->code == IR_LOCAL_ALLOC && result(a.memory)->type->nbuf;
	return (struct shared_use){
		.start = a.memory->scratch_offset,
		.end = a.memory->scratch_offset + a.memory->scratch_size,
		.apart = map_get(&w->halves, a.memory),
		.write = a.write,
		.in_flight = o->code == IR_WARP_GROUP_DOT,
		.exempt = a.within_warps || multi_buffered ? a.memory : NULL,
	};
}

/* The threads that must synchronise before o, for its accesses to shared memory. */
static enum meeting conflict_of(const struct barriers *w, const struct pending *p, const struct op *o)
{
	enum meeting who = NO_THREADS;
	struct shared_access at[2];
	for (u32 n = shared_accesses(o, at); n--;) {
		struct shared_use a = access_of(w, o, at[n]);
		who = MAX(who, conflict(p, &a));
	}
	return who;
}

/* Adds o's accesses to shared memory, all at once, with a barrier before o if they conflict with pending ones. */
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

/* Marks accesses in the body of `loop` as accesses of an earlier iteration. */
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

/* A region that may run again: accesses pending at its end are pending at its start, too, until that adds nothing. The
 * iteration ends, because the set at the start only grows and a kernel has a finite number of accesses. The remainder
 * of a split loop (ATTR_STAGES 1), which often has no iterations, synchronises at its end instead of its start, so that
 * no accesses remain pending after it, unless some were pending before it when the barriers were inserted. */
static void visit_loop(struct barriers *w, struct pending *p, struct op *o)
{
	struct pending in = copy(w, p), out, again;
	bool more;
	do {
		out = copy(w, &in);
		for (u32 k = 0; k < o->nblocks; k++)
			visit_block(w, &out, o->blocks[k]);
		if (!w->placed && o->code == IR_FOR && o->attr[ATTR_STAGES] == 1 && !in.shared.len && out.shared.len)
			barrier_before(w, &out, o->blocks[0]->last, ALL_THREADS);
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

/* A region that one thread executes, on mbarriers and buffers: the barrier goes before the region. */
static void visit_alone(struct barriers *w, struct pending *p, struct op *o)
{
	enum meeting who = NO_THREADS;
	for (const struct op *in = o->blocks[0]->first; in; in = in->next) {
		who = MAX(who, conflict_of(w, p, in));
		who = op_is_tensor_copy(in) && must_wait_for_global(w, p, in) ? ALL_THREADS : who;
	}
	barrier_before(w, p, o, who);
	visit_block(w, p, o->blocks[0]);
}

/* The loop with ping-pong scheduling that follows o, a ping-pong wait; or NULL. */
static struct op *pingpong_loop_after(const struct op *o)
{
	struct op *next = o->code == IR_PINGPONG_WAIT ? o->next : NULL;
	while (next && op_has(next, PURE) && !op_has(next, SYNC))
		next = next->next;
	return next && next->code == IR_FOR ? next : NULL;
}

/* Inside a loop with ping-pong scheduling, where warpgroups wait for each other at named barriers, no warp may wait at
 * another barrier. Returns the threads that must synchronise before the loop, for the accesses inside. */
static enum meeting conflict_in(const struct barriers *w, const struct pending *p, const struct block *b)
{
	enum meeting who = NO_THREADS;
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
	bool fetches = o->code == IR_WARP_GROUP_DOT && o->attr[ATTR_REGISTER_GROUPS];
	return fetches ? operand_run(&w->scratch, o) : (op_vec){0};
}

/* Adds the reads of o and of its run that follow the barrier inside o. o's accesses have been added before. */
static void add_reads_after_barrier(struct barriers *w, struct pending *p, const struct op *o)
{
	op_vec run = run_of(w, o);
	met(p, ALL_THREADS);
	add_reads(w, p, o);
	for (u32 i = 0; i < run.len; i++)
		add_reads(w, p, run.at[i]);
}

/* Inserts the barrier for a run before its first operation: the operations of a run read memory together with their
 * dot. */
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
			met(p, o->attr[ATTR_WARPGROUP] ? WARPGROUPS : ALL_THREADS);
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
		met(p, WARPGROUPS); /* its warps synchronise at the named barrier */
		if (pingpong_loop_after(o))
			barrier_before(w, p, o, conflict_in(w, p, pingpong_loop_after(o)->blocks[0]));
		return;
	case IR_WARP_GROUP_WAIT: finish_dots(p, o->attr[ATTR_PENDING]); return;
	case IR_WARP_GROUP_DOT:
		if (o->attr[ATTR_REGISTER_GROUPS] && o->attr[ATTR_ASYNC]) /* its code waits for all earlier dots */
			finish_dots(p, 0);
		issue_dots(p, wgmma_groups(o)); /* fallthrough */
	default: touch(w, p, o); break;
	}
	struct shared_access at[2];
	bool scratch = shared_accesses(o, at) && at[0].memory == o && !at[0].within_warps;
	if (scratch || is_transposed(o, 0) || is_transposed(o, 1))
		add_reads_after_barrier(w, p, o);
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

static bool is_pingpong(const struct op *o)
{
	return o->code == IR_PINGPONG_WAIT || o->code == IR_PINGPONG_ARRIVE;
}

/* The next ping-pong wait or arrive after o in its block, or with `back` the last one before o; NULL: there is none. */
static struct op *find_pingpong(struct op *o, bool back)
{
	do
		o = back ? o->prev : o->next;
	while (o && !is_pingpong(o));
	return o;
}

static void erase_op(struct op *o)
{
	tl_assert(o);
	op_erase(o);
}

static void erase_pingpong(struct block *b)
{
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		for (u32 i = 0; i < o->nblocks; i++)
			erase_pingpong(o->blocks[i]);
		if (is_pingpong(o))
			op_erase(o);
	}
}

/* Removes ping-pong scheduling from a loop that contains a barrier of all threads, and from the loop over tiles around
 * it. Otherwise one warpgroup would wait at its named barrier, and the other at the barrier of all threads: a deadlock.
 * Without a loop over tiles, the first arrive and its wait precede the loop, and the last arrive follows it. With a
 * loop over tiles, the first arrive of all loops inside precedes that loop, and the last wait follows it. */
static bool remove_pingpong(struct pass_state *s, struct op *await)
{
	struct op *loop = pingpong_loop_after(await);
	if (!loop || !block_has(loop->blocks[0], is_for_all))
		return false;
	struct op *first = find_pingpong(await, true);
	if (first && first->attr[ATTR_ONLY] == 2) {
		erase_op(first);
		erase_op(await);
		erase_op(find_pingpong(loop, false));
		erase_pingpong(loop->blocks[0]);
	} else {
		struct op *tiles = loop->block->parent;
		erase_op(find_pingpong(tiles, true));
		erase_op(find_pingpong(tiles, false));
		erase_pingpong(tiles->blocks[0]);
	}
	if (s->remarks)
		diag(s->diags, R_NO_PINGPONG, loop->loc);
	return true;
}

/* True if ping-pong scheduling was removed from any loop. */
static bool remove_pingpong_in(struct pass_state *s, struct block *b)
{
	bool any = false;
	for (struct op *o = b->first, *next; o; o = next) {
		for (u32 i = 0; i < o->nblocks; i++)
			any |= remove_pingpong_in(s, o->blocks[i]);
		next = pingpong_loop_after(o) ? pingpong_loop_after(o) : o->next; /* o itself may be erased */
		any |= remove_pingpong(s, o);
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

/* In debug builds, another visit verifies that no barrier is missing. */
void pass_barriers(struct pass_state *s)
{
	struct barriers w = {.s = s, .order.s = s};
	w.halves.arena = w.runs.arena = w.order.extents.arena = &w.scratch;
	walk(s->k->body, note_run, &w);
	find_halves(s, &w.halves);
	visit_kernel(&w);
	if (remove_pingpong_in(s, s->k->body)) { /* the ping-pong waits that were erased had synchronised warps, too */
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

/* Barriers: a data-flow over what has been done to memory since the last one.
 *
 * Before an operation that reads what another thread may have written, or overwrites what another may still read, all
 * threads meet. An operation with scratch writes it, synchronises inside, and reads it; so before it only earlier
 * accesses matter, and after it only its reads are pending. Where each warp has a part of that memory it synchronises
 * warps only, and what was pending still is. Rings of buffers filled by asynchronous copies bring their own waits and
 * barriers (pipeline/schedule.c), so within one ring accesses do not count against each other; check/rings.c asks
 * whether they need to.
 *
 * Global memory is the same: order.h says which accesses have an order that threads do not keep by themselves.
 *
 * Where a program runs on several blocks, each writes to the shared memory of all of them. That needs all to have
 * begun: at the start everything is pending. */
#include "ir/inline_asm.h"
#include "layout/convert.h"
#include "place/order.h"
#include "place/place.h"

struct access {
	i32 start, end;
	bool write;
	bool in_flight; /* by a dot that no wait has finished: it may go on behind a barrier */
	/* the allocation, when it is a ring of buffers; or the conversion, when each warp has a part of its own */
	const struct op *ring;
};

/* What has been done since all threads met, each access once. */
struct pending {
	VEC(struct access) shared;
	VEC(struct touched) global;
};

struct barriers {
	struct pass_state *s;
	struct arena scratch; /* of all that is pending somewhere */
	bool placed;          /* every barrier: what is visited now needs no other */
};

static void met(struct pending *p)
{
	u32 left = 0;
	for (u32 i = 0; i < p->shared.len; i++)
		if (p->shared.at[i].in_flight)
			p->shared.at[left++] = p->shared.at[i];
	p->shared.len = left;
	p->global.len = 0;
}

/* No dot is in flight any more. */
static void finish_dots(struct pending *p)
{
	for (u32 i = 0; i < p->shared.len; i++)
		p->shared.at[i].in_flight = false;
}

static bool conflicts(const struct pending *p, const struct access *a)
{
	for (u32 i = 0; i < p->shared.len; i++) {
		const struct access *b = &p->shared.at[i];
		if (a->start < b->end && b->start < a->end && (a->write || b->write) &&
		    !(a->ring && a->ring == b->ring))
			return true;
	}
	return false;
}

static void add(struct barriers *w, struct pending *p, const struct access *a)
{
	for (u32 i = 0; i < p->shared.len; i++) {
		const struct access *b = &p->shared.at[i];
		if (b->start == a->start && b->end == a->end && b->write == a->write && b->ring == a->ring &&
		    b->in_flight == a->in_flight)
			return;
	}
	vec_push(&w->scratch, &p->shared, *a);
}

static void add_global(struct barriers *w, struct pending *p, const struct touched *t)
{
	for (u32 i = 0; i < p->global.len; i++)
		if (p->global.at[i].op == t->op && p->global.at[i].loop == t->loop)
			return;
	vec_push(&w->scratch, &p->global, *t);
}

/* Did `into` change? */
static bool merge(struct barriers *w, struct pending *into, const struct pending *from)
{
	u32 before = into->shared.len + into->global.len;
	for (u32 i = 0; i < from->shared.len; i++)
		add(w, into, &from->shared.at[i]);
	for (u32 i = 0; i < from->global.len; i++)
		add_global(w, into, &from->global.at[i]);
	return into->shared.len + into->global.len > before;
}

/* What is pending where the kernel's paths part: a copy that each path changes for itself. */
static struct pending copy(struct barriers *w, const struct pending *p)
{
	struct pending q = {0};
	for (u32 i = 0; i < p->shared.len; i++)
		vec_push(&w->scratch, &q.shared, p->shared.at[i]);
	for (u32 i = 0; i < p->global.len; i++)
		vec_push(&w->scratch, &q.global, p->global.at[i]);
	return q;
}

static void barrier_before(struct barriers *w, struct pending *p, struct op *o)
{
	tl_assert(!w->placed);
	struct builder b = builder_before(w->s->ctx, o);
	build(&b, IR_BARRIER, NULL, 0, NULL, 0, 0);
	met(p);
}

static void touch_global(struct barriers *w, struct pending *p, struct op *o)
{
	bool wait = false;
	for (u32 i = 0; i < p->global.len && !wait; i++)
		wait = must_meet(w->s, &p->global.at[i], o);
	if (wait)
		barrier_before(w, p, o);
	add_global(w, p, &(struct touched){.op = o});
}

/* Assembly may do anything to memory. The same text in the iteration before is not waited for: where each thread waits
 * for memory to change, they leave the loop one by one. */
static void touch_anything(struct barriers *w, struct pending *p, struct op *o)
{
	bool wait = false;
	if (!op_is_opaque(o))
		return;
	for (u32 i = 0; i < p->global.len; i++)
		wait |= p->global.at[i].op != o;
	if (wait)
		barrier_before(w, p, o);
	add_global(w, p, &(struct touched){.op = o});
}

/* o makes these accesses, all at once. */
static void touch(struct barriers *w, struct pending *p, struct op *o, const struct access *a, u32 n)
{
	bool wait = false;
	for (u32 i = 0; i < n; i++)
		wait |= conflicts(p, &a[i]);
	if (wait)
		barrier_before(w, p, o);
	for (u32 i = 0; i < n; i++)
		add(w, p, &a[i]);
}

static const struct op *allocation(const struct value *v)
{
	while (v->def->code == IR_MEMDESC_INDEX || v->def->code == IR_MEMDESC_TRANS)
		v = operand(v->def, 0);
	return v->def;
}

static struct access access_of(const struct op *alloc, bool write)
{
	return (struct access){
		.start = alloc->scratch_offset,
		.end = alloc->scratch_offset + alloc->scratch_size,
		.write = write,
		.ring = alloc->code == IR_LOCAL_ALLOC && result(alloc)->type->nbuf ? alloc : NULL,
	};
}

static void visit_block(struct barriers *w, struct pending *p, struct block *b);

static bool is_inside(const struct op *o, const struct op *loop)
{
	while (o && o != loop)
		o = o->block->parent;
	return o;
}

/* What was done in the body of `loop` was done in an earlier iteration when the next one begins. */
static void carry(struct pending *p, const struct op *loop)
{
	for (u32 i = 0; i < p->global.len; i++)
		if (is_inside(p->global.at[i].op, loop))
			p->global.at[i].loop = loop;
}

/* A region that may run again: what is pending at its end is pending at its start too, until that adds nothing. There
 * is an end to it: what is pending at the start only grows, and a kernel has so many accesses. The rest of a split
 * loop, which often does not run at all, synchronises at its end instead of where it begins again, so that nothing is
 * left to those who come after. */
static void visit_loop(struct barriers *w, struct pending *p, struct op *o)
{
	struct pending in = copy(w, p), out, again;
	do {
		out = copy(w, &in);
		for (u32 k = 0; k < o->nblocks; k++)
			visit_block(w, &out, o->blocks[k]);
		if (o->code == IR_FOR && o->attr[ATTR_STAGES] == 1 && !in.shared.len && out.shared.len)
			barrier_before(w, &out, o->blocks[0]->last);
		again = copy(w, &out);
		carry(&again, o);
	} while (merge(w, &in, &again));
	merge(w, &in, &out);
	*p = in;
}

/* Is a dot's operand turned where it lies? */
static bool is_turned(const struct op *o, u32 i)
{
	return o->code == IR_WARP_GROUP_DOT && o->attr[ATTR_TURNED] && i != o->attr[ATTR_EXCHANGED];
}

/* What one thread does to mbarriers and buffers: all threads meet in front of it. */
static void visit_alone(struct barriers *w, struct pending *p, struct op *o)
{
	bool wait = false;
	for (const struct op *in = o->blocks[0]->first; in; in = in->next)
		if (in->code == IR_INIT_BARRIER || in->code == IR_INVAL_BARRIER || op_is_tensor_copy(in)) {
			struct access a = access_of(allocation(operand(in, op_is_tensor_copy(in))), true);
			wait |= conflicts(p, &a);
			for (u32 i = 0; op_is_tensor_copy(in) && i < p->global.len; i++)
				wait |= must_meet(w->s, &p->global.at[i], in);
		}
	if (wait)
		barrier_before(w, p, o);
	visit_block(w, p, o->blocks[0]);
}

static void visit_op(struct barriers *w, struct pending *p, struct op *o)
{
	struct access a, both[2];
	u32 n = 0;
	if (touches_memory(o))
		touch_global(w, p, o);
	switch (o->code) {
	case IR_BARRIER:
		if (!o->attr[ATTR_WARP])
			met(p);
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
		return;
	}
	case IR_LOCAL_LOAD:
		a = access_of(allocation(operand(o, 0)), false);
		touch(w, p, o, &a, 1);
		return;
	case IR_LOCAL_STORE:
	case IR_ASYNC_COPY:
	case IR_TMA_COPY:
	case IR_TMA_TENSOR_COPY:
		a = access_of(allocation(operand(o, 1)), true);
		touch(w, p, o, &a, 1);
		return;
	case IR_INIT_BARRIER:
	case IR_INVAL_BARRIER:
		a = access_of(allocation(operand(o, 0)), true);
		touch(w, p, o, &a, 1);
		return;
	case IR_DOT:
	case IR_WARP_GROUP_DOT:
		for (u32 i = 0; i < 2; i++)
			if (operand(o, i)->type->kind == TY_MEMDESC)
				both[n++] = access_of(allocation(operand(o, i)), is_turned(o, i));
		for (u32 i = 0; i < n; i++)
			both[i].in_flight = o->code == IR_WARP_GROUP_DOT;
		touch(w, p, o, both, n);
		if (is_turned(o, 0) || is_turned(o, 1)) {
			met(p); /* between its writes and what it reads then */
			for (u32 i = 0; i < n; i++) {
				both[i].write = false;
				add(w, p, &both[i]);
			}
		}
		if (o->code == IR_WARP_GROUP_DOT && !o->attr[ATTR_ASYNC])
			finish_dots(p);
		return;
	case IR_WARP_GROUP_WAIT:
		if (!o->attr[ATTR_PENDING])
			finish_dots(p);
		return;
	default: break;
	}
	if (o->code == IR_LOCAL_ALLOC || !o->scratch_size)
		return;
	a = access_of(o, true);
	if (o->code == IR_CONVERT_LAYOUT && o->attr[ATTR_WAY] == WAY_WARP_MEMORY) {
		a.ring = o;
		touch(w, p, o, &a, 1);
		return;
	}
	if (conflicts(p, &a))
		barrier_before(w, p, o);
	met(p); /* the barrier inside */
	a.write = false;
	add(w, p, &a);
}

static void visit_block(struct barriers *w, struct pending *p, struct block *b)
{
	for (struct op *o = b->first; o; o = o->next)
		visit_op(w, p, o);
}

static bool is_for_all(const struct op *o)
{
	return (o->code == IR_BARRIER && !o->attr[ATTR_WARP]) || is_turned(o, 0) || is_turned(o, 1);
}

static bool is_turn(const struct op *o)
{
	return o->code == IR_AWAIT_TURN || o->code == IR_PASS_TURN;
}

/* The first of the operations from o on, or back from it, that passes a turn to `only`; NULL: there is none. */
static struct op *find_pass(struct op *o, bool back, i64 only)
{
	while (o && (o->code != IR_PASS_TURN || o->attr[ATTR_ONLY] != only))
		o = back ? o->prev : o->next;
	return o;
}

/* Two warpgroups of which one waits for its turn, and the other for all threads, would wait for ever: a loop in which
 * all threads meet has no turns. */
static void part_turns(struct pass_state *s, struct op *loop)
{
	struct block *body = loop->code == IR_FOR ? loop->blocks[0] : NULL;
	if (!body || !find_pass(body->first, false, 0) || !block_has(body, is_for_all))
		return;
	struct op *begin = find_pass(loop, true, 2), *end = find_pass(loop, false, 1);
	tl_assert(begin && end && begin->next->code == IR_AWAIT_TURN);
	op_erase(begin->next);
	op_erase(begin);
	op_erase(end);
	for (struct op *o = body->first, *next; o; o = next) {
		next = o->next;
		if (is_turn(o))
			op_erase(o);
	}
	if (s->remarks)
		diag(s->diags, R_NO_TURNS, loop->loc);
}

static void part_turns_in(struct pass_state *s, struct block *b)
{
	for (struct op *o = b->first; o; o = o->next) {
		for (u32 i = 0; i < o->nblocks; i++)
			part_turns_in(s, o->blocks[i]);
		part_turns(s, o);
	}
}

static void visit_kernel(struct barriers *w)
{
	struct pending p = {0};
	if (w->s->k->cuda.cluster > 1)
		add(w, &p, &(struct access){.end = INT32_MAX, .write = true});
	visit_block(w, &p, w->s->k->body);
}

/* A second visit finds every barrier in its place, or the first one has stopped too early. */
void pass_barriers(struct pass_state *s)
{
	struct barriers w = {.s = s};
	visit_kernel(&w);
	part_turns_in(s, s->k->body);
#ifndef NDEBUG
	w.placed = true;
	visit_kernel(&w);
#endif
	arena_free(&w.scratch);
}

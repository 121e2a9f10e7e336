/* Barriers: a data-flow over what has been done to memory since the last one.
 *
 * Before an operation that reads what another thread may have written, or overwrites what another may still read, all
 * threads meet. An operation with scratch writes it, synchronises inside, and reads it; so before it only earlier
 * accesses matter, and after it only its reads are pending. Where each warp has a part of that memory it synchronises warps
 * only, and what was pending still is. Rings of buffers filled by asynchronous copies bring their own waits and barriers
 * (pipeline.c), so within one ring accesses do not count against each other.
 *
 * Global memory is the same: order.h says which accesses have an order that threads do not keep by themselves.
 *
 * Where a program runs on several blocks, each writes to the shared memory of all of them. That needs all to have begun:
 * at the start everything is pending. */
#include "layout/convert.h"
#include "place/order.h"
#include "place/place.h"

struct access {
	i32 start, end;
	bool write;
	const struct op *ring; /* the allocation, when it is a ring of buffers; or the conversion, when each warp has a part of its own */
};

struct pending {
	struct access at[64];
	u32 n;
	struct touched global[64];
	u32 nglobal;
};

static void met(struct pending *p)
{
	p->n = p->nglobal = 0;
}

static bool conflicts(const struct pending *p, const struct access *a)
{
	for (u32 i = 0; i < p->n; i++) {
		const struct access *b = &p->at[i];
		if (a->start < b->end && b->start < a->end && (a->write || b->write) && !(a->ring && a->ring == b->ring))
			return true;
	}
	return false;
}

/* False when there is no room: the caller then needs a barrier. */
static bool add(struct pending *p, const struct access *a)
{
	for (u32 i = 0; i < p->n; i++) {
		const struct access *b = &p->at[i];
		if (b->start == a->start && b->end == a->end && b->write == a->write && b->ring == a->ring)
			return true;
	}
	if (p->n == ARRAY_LEN(p->at))
		return false;
	p->at[p->n++] = *a;
	return true;
}

static void barrier_before(struct pass_state *s, struct pending *p, struct op *o)
{
	struct builder b = builder_before(s->ctx, o);
	build(&b, IR_BARRIER, NULL, 0, NULL, 0, 0);
	met(p);
}

static bool add_global(struct pending *p, const struct touched *t)
{
	for (u32 i = 0; i < p->nglobal; i++)
		if (p->global[i].op == t->op && p->global[i].loop == t->loop)
			return true;
	if (p->nglobal == ARRAY_LEN(p->global))
		return false;
	p->global[p->nglobal++] = *t;
	return true;
}

static void touch_global(struct pass_state *s, struct pending *p, struct op *o)
{
	bool wait = p->nglobal == ARRAY_LEN(p->global);
	for (u32 i = 0; i < p->nglobal; i++)
		wait |= must_meet(s, &p->global[i], o);
	if (wait)
		barrier_before(s, p, o);
	add_global(p, &(struct touched){.op = o});
}

/* o makes these accesses, all at once. */
static void touch(struct pass_state *s, struct pending *p, struct op *o, const struct access *a, u32 n)
{
	bool wait = p->n + n > ARRAY_LEN(p->at);
	for (u32 i = 0; i < n; i++)
		wait |= conflicts(p, &a[i]);
	if (wait)
		barrier_before(s, p, o);
	for (u32 i = 0; i < n; i++)
		add(p, &a[i]);
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

static void visit_block(struct pass_state *s, struct pending *p, struct block *b);

/* Did `into` change? */
static bool merge(struct pending *into, const struct pending *from)
{
	u32 before = into->n, globals = into->nglobal;
	bool full = false;
	for (u32 i = 0; i < from->n; i++)
		if (!add(into, &from->at[i])) {
			into->at[0] = (struct access){.end = INT32_MAX, .write = true}; /* everything */
			full = true;
		}
	for (u32 i = 0; i < from->nglobal; i++)
		if (!add_global(into, &from->global[i])) {
			full |= into->global[0].op != NULL;
			into->global[0] = (struct touched){0}; /* everything */
		}
	return full || into->n > before || into->nglobal > globals;
}

static bool is_inside(const struct op *o, const struct op *loop)
{
	while (o && o != loop)
		o = o->block->parent;
	return o;
}

/* What was done in the body of `loop` was done in an earlier iteration when the next one begins. */
static void carry(struct pending *p, const struct op *loop)
{
	for (u32 i = 0; i < p->nglobal; i++)
		if (p->global[i].op && is_inside(p->global[i].op, loop))
			p->global[i].loop = loop;
}

/* A region that may run again: what is pending at its end is pending at its start too. The rest of a split loop, which often does
 * not run at all, synchronises at its end instead of where it begins again, so that nothing is left to those who come after. */
static void visit_loop(struct pass_state *s, struct pending *p, struct op *o)
{
	struct pending in = *p, out;
	for (;;) { /* what is pending only grows */
		out = in;
		for (u32 k = 0; k < o->nblocks; k++)
			visit_block(s, &out, o->blocks[k]);
		if (o->code == IR_FOR && o->attr[ATTR_STAGES] == 1 && !in.n && out.n)
			barrier_before(s, &out, o->blocks[0]->last);
		struct pending again = out;
		carry(&again, o);
		if (!merge(&in, &again))
			break;
	}
	*p = in;
	merge(p, &out);
}

/* What one thread does to mbarriers and buffers: all threads meet in front of it. */
static void visit_alone(struct pass_state *s, struct pending *p, struct op *o)
{
	bool wait = false;
	for (const struct op *in = o->blocks[0]->first; in; in = in->next)
		if (in->code == IR_INIT_BARRIER || in->code == IR_INVAL_BARRIER || in->code == IR_TMA_COPY) {
			struct access a = access_of(allocation(operand(in, in->code == IR_TMA_COPY)), true);
			wait |= conflicts(p, &a);
		}
	if (wait)
		barrier_before(s, p, o);
	visit_block(s, p, o->blocks[0]);
}

static void visit_op(struct pass_state *s, struct pending *p, struct op *o)
{
	struct access a, both[2];
	u32 n = 0;
	switch (o->code) {
	case IR_BARRIER:
		if (!o->attr[ATTR_WARP])
			met(p);
		return;
	case IR_FOR:
	case IR_WHILE: visit_loop(s, p, o); return;
	case IR_ONE_THREAD: visit_alone(s, p, o); return;
	case IR_IF: {
		struct pending yes = *p, no = *p;
		visit_block(s, &yes, o->blocks[0]);
		visit_block(s, &no, o->blocks[1]);
		*p = yes;
		merge(p, &no);
		return;
	}
	case IR_LOCAL_LOAD:
		a = access_of(allocation(operand(o, 0)), false);
		touch(s, p, o, &a, 1);
		return;
	case IR_LOCAL_STORE:
	case IR_ASYNC_COPY:
	case IR_TMA_COPY:
		a = access_of(allocation(operand(o, 1)), true);
		touch(s, p, o, &a, 1);
		return;
	case IR_INIT_BARRIER:
	case IR_INVAL_BARRIER:
		a = access_of(allocation(operand(o, 0)), true);
		touch(s, p, o, &a, 1);
		return;
	case IR_DOT:
	case IR_WARP_GROUP_DOT:
		for (u32 i = 0; i < 2; i++)
			if (operand(o, i)->type->kind == TY_MEMDESC)
				both[n++] = access_of(allocation(operand(o, i)), false);
		touch(s, p, o, both, n);
		return;
	default: break;
	}
	if (touches_memory(o))
		touch_global(s, p, o);
	if (o->code == IR_LOCAL_ALLOC || !o->scratch_size)
		return;
	a = access_of(o, true);
	if (o->code == IR_CONVERT_LAYOUT && warps_apart(operand(o, 0)->type->layout, result(o)->type->layout)) {
		a.ring = o;
		touch(s, p, o, &a, 1);
		return;
	}
	if (conflicts(p, &a))
		barrier_before(s, p, o);
	met(p); /* the barrier inside */
	a.write = false;
	add(p, &a);
}

static void visit_block(struct pass_state *s, struct pending *p, struct block *b)
{
	for (struct op *o = b->first; o; o = o->next)
		visit_op(s, p, o);
}

void pass_barriers(struct pass_state *s)
{
	struct pending p = {0};
	if (s->k->cuda.cluster > 1)
		p = (struct pending){.at = {{.end = INT32_MAX, .write = true}}, .n = 1};
	visit_block(s, &p, s->k->body);
}

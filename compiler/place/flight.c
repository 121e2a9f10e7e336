#include "place/flight.h"

/* The operation of the body that v's use is in. */
static struct op *in_body(struct op *o, const struct block *body)
{
	while (o->block != body)
		o = o->block->parent;
	return o;
}

static u32 dots_in(const struct block *b)
{
	u32 n = 0;
	for (const struct op *o = b->first; o; o = o->next) {
		n += o->code == IR_WARP_GROUP_DOT;
		for (u32 i = 0; i < o->nblocks; i++)
			n += dots_in(o->blocks[i]);
	}
	return n;
}

/* Dots of the body between two operations of it: `from` excluded (NULL: from the start), `to` excluded (NULL: to the end). */
static u32 dots_between(const struct block *body, const struct op *from, const struct op *to)
{
	u32 n = 0;
	for (const struct op *o = from ? from->next : body->first; o && o != to; o = o->next)
		n += o->code == IR_WARP_GROUP_DOT;
	return n;
}

static struct flight plan(const struct block *body, struct op *dot, u32 index)
{
	const struct value *arg = body->args[1 + index];
	struct flight f = {.dot = dot, .index = index, .end = FLIGHT_USE};
	if (value_has_one_use(arg) && operand(dot, 2) == arg) {
		f.end = FLIGHT_CHAIN;
		return f;
	}
	for (const struct use *u = arg->uses; u; u = u->next) {
		struct op *o = in_body(u->user, body);
		if (o->mark >= dot->mark)
			f.end = FLIGHT_YIELD;
		if (!f.use || o->mark < f.use->mark)
			f.use = o;
	}
	if (!f.use)
		f.end = FLIGHT_YIELD;
	return f;
}

void flights_find(struct flights *f, struct arena *a, struct op *loop, bool (*stays)(void *arg, const struct value *memory), void *arg)
{
	struct block *body = loop->blocks[0];
	u32 n = 0, direct = dots_between(body, NULL, NULL);
	f->ndots = dots_in(body);
	for (struct op *o = body->first; o; o = o->next)
		o->mark = ++n;
	for (struct op *o = body->first; o && f->ndots == direct; o = o->next) {
		if (o->code != IR_WARP_GROUP_DOT || !value_has_one_use(result(o)) || result(o)->uses->user != body->last)
			continue;
		bool in_registers = operand(o, 0)->type->kind != TY_MEMDESC;
		if ((!in_registers && !stays(arg, operand(o, 0))) || !stays(arg, operand(o, 1)))
			continue;
		struct flight one = plan(body, o, (u32)(result(o)->uses - body->last->operands));
		vec_push(a, &f->at, one);
	}
}

/* A wait that leaves the last `pending` dots running; v, if any, passes through it. */
static struct op *wait(struct builder *b, struct value *v, u32 pending)
{
	struct op *o = build(b, IR_WARP_GROUP_WAIT, &v, v != NULL, v ? &v->type : NULL, v != NULL, 0);
	o->attr[ATTR_PENDING] = pending;
	return o;
}

struct op *flights_wait(struct ir_context *ctx, struct op *loop, struct flights *f)
{
	struct block *body = loop->blocks[0];
	struct op *chain = NULL, *last = NULL;
	for (u32 i = 0; i < f->at.len; i++) {
		struct flight *at = &f->at.at[i];
		at->dot->attr[ATTR_ASYNC] = true;
		if (at->end == FLIGHT_CHAIN) {
			chain = at->dot;
		} else if (at->end == FLIGHT_YIELD) {
			struct builder b = builder_before(ctx, body->last);
			struct op *w = wait(&b, result(at->dot), dots_between(body, at->dot, NULL));
			op_set_operand(body->last, at->index, result(w));
		} else {
			struct value *arg = body->args[1 + at->index];
			struct builder b = builder_before(ctx, at->use);
			struct op *w = wait(&b, arg, dots_between(body, at->dot, NULL) + dots_between(body, NULL, at->use));
			replace_uses(arg, result(w));
			op_set_operand(w, 0, arg);
			w->mark = at->use->mark;
			if (!last || last->mark <= w->mark)
				last = w;
		}
	}
	if (!chain)
		return last;
	struct builder b = builder_after(ctx, chain);
	struct op *w = wait(&b, NULL, f->ndots);
	return last && last->mark > chain->mark ? last : w;
}

void flights_finish(struct builder *b, struct op *loop, const struct flights *f)
{
	for (u32 i = 0; i < f->at.len; i++) {
		struct value *v = &loop->results[f->at.at[i].index];
		if (f->at.at[i].end == FLIGHT_YIELD)
			continue;
		struct op *w = wait(b, v, 0);
		replace_uses(v, result(w));
		op_set_operand(w, 0, v);
	}
}

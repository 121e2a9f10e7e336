/* Two loops, one pipeline.
 *
 * Attention walks over the keys in two loops, since only the last ones need masks. The second goes on with the buffers
 * of the first, which has its first boxes issued too: else it would begin by waiting for memory. */
#include "place/pipeline.h"

/* Are x and y computed alike from the indices of their loops? `found`: the y of each x that is. */
static bool same_function(const struct value *x, const struct value *y, const struct pipe *p, const struct pipe *q,
			  struct map *found)
{
	const struct block *in = p->loop->blocks[0];
	if (x == y)
		return value_defined_outside(x, in);
	if (x == for_index(p->loop))
		return y == for_index(q->loop);
	if (map_get(found, x) == y)
		return true;
	const struct op *a = x->def, *b = y->def;
	if (!a || !b || a->code != b->code || a->noperands != b->noperands || !op_has(a, PURE) || a->nblocks ||
	    x->type != y->type || memcmp(a->attr, b->attr, sizeof a->attr) != 0)
		return false;
	for (u32 i = 0; i < a->noperands; i++)
		if (!same_function(operand(a, i), operand(b, i), p, q, found))
			return false;
	map_put(found, x, (void *)y);
	return true;
}

static bool same_loads(const struct pipe *p, const struct pipe *q)
{
	struct map found = {.arena = p->ctx->arena};
	bool same = p->loads.len == q->loads.len && !p->args.len && !q->args.len;
	for (u32 i = 0; same && i < p->loads.len; i++) {
		const struct op *a = p->loads.at[i], *b = q->loads.at[i];
		const struct box *x = &p->boxes.at[i], *y = &q->boxes.at[i];
		same = x->along == y->along && x->stride == y->stride && x->factor == y->factor &&
		       result(a)->type == result(b)->type && ring_layout(p, a) == ring_layout(q, b) &&
		       same_function(operand(a, 0), operand(b, 0), p, q, &found);
	}
	return same;
}

/* Can v be computed before `at`, an operation of the same block? */
static bool can_come_before(const struct value *v, const struct op *at)
{
	const struct op *o = v->def;
	if (!o || o->block != at->block || !comes_behind(o, at))
		return true;
	if (!op_has(o, PURE) || op_has(o, SYNC) || o->nblocks || op_may_trap(o))
		return false;
	for (u32 i = 0; i < o->noperands; i++)
		if (!can_come_before(operand(o, i), at))
			return false;
	return true;
}

static void bring_before(struct value *v, struct op *at)
{
	struct op *o = v->def;
	if (!o || o->block != at->block || !comes_behind(o, at))
		return;
	for (u32 i = 0; i < o->noperands; i++)
		bring_before(operand(o, i), at);
	op_insert_before(o, at);
}

/* Does the second loop take the very next steps? A third one may not: the first would have to issue boxes for it
 * too. */
static bool takes_next_steps(const struct pipe *p, const struct pipe *q)
{
	i64 first, step;
	struct value *end = for_upper(p->loop);
	if (p->before || !p->tma || !q->tma || q->producer || p->stages != q->stages || !p->late != !q->late ||
	    p->turns != q->turns || for_lower(q->loop) != end || for_step(q->loop) != for_step(p->loop) ||
	    !value_const_int(for_lower(p->loop), &first) || !value_const_int(for_step(p->loop), &step))
		return false;
	return step > 0 && first % step == 0 && axis_of(p->s->axis, end)->divisibility[0] % step == 0 &&
	       same_loads(p, q) && can_come_before(q->end, p->loop);
}

void pipeline_join(struct pipe *p, struct pipe *q)
{
	if (!takes_next_steps(p, q))
		return;
	bring_before(q->end, p->loop);
	struct builder b = builder_before(p->ctx, p->loop);
	p->end = build2(&b, IR_MAXSI, p->end->type, p->end, q->end);
	p->goes_on = true;
	q->before = p;
}

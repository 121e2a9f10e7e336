/* Chained loops: two loops, one pipeline.
 *
 * Attention walks over the keys in two loops, since only the last keys need masks. The second loop continues with the
 * multi-buffers of the first loop, which issues the second loop's first TMA copies too: otherwise the second loop would
 * begin with a wait for memory. If a producer issues the copies, it runs through both loops. */
#include "ir/graph.h"
#include "gpu/pipeline/plan.h"

/* True if x, in p's loop, and y, in q's, are the same function of the loops' indices. */
static bool same_function(const struct value *x, const struct value *y, const struct plan *p, const struct plan *q)
{
	const struct block *in = p->loop->blocks[0];
	struct pair_walk w = {0};
	struct value_pair at;
	bool same = true;
	visit_pair(&w, x, y);
	while (same && next_pair(&w, &at)) {
		if (at.x == at.y)
			same = value_defined_outside(at.x, in);
		else if (at.x == for_index(p->loop))
			same = at.y == for_index(q->loop);
		else
			same = at.x->def && op_has(at.x->def, PURE) && visit_operand_pairs(&w, at);
	}
	return end_pair_walk(&w, same);
}

static bool same_loads(const struct plan *p, const struct plan *q)
{
	bool same = p->loads.len == q->loads.len && !p->args.len && !q->args.len;
	for (u32 i = 0; same && i < p->loads.len; i++) {
		const struct op *a = p->loads.at[i], *b = q->loads.at[i];
		const struct tma_tile *x = &p->tiles.at[i], *y = &q->tiles.at[i];
		same = x->along == y->along && same_product(&x->distance, &y->distance) && x->tensor == y->tensor &&
		       x->begin == y->begin && !memcmp(x->size, y->size, sizeof x->size) &&
		       is_read_late(p, a) == is_read_late(q, b) && result(a)->type == result(b)->type &&
		       multibuffer_layout(p, a) == multibuffer_layout(q, b) &&
		       same_function(operand(a, 0), operand(b, 0), p, q);
	}
	return same;
}

/* True if q->end, the end of q's copies, can be computed before p's loop. Adds that value, and those that it depends
 * on, to `needed`, which is empty at first. */
static bool can_hoist_before(const struct plan *p, const struct plan *q, struct value_set *needed)
{
	set_add(needed, q->end);
	for (const struct op *o = q->loop->prev; o != p->loop->prev; o = o->prev)
		if (!take_along(needed, o))
			return false;
	return true;
}

static void hoist_before(const struct plan *p, const struct plan *q, const struct value_set *needed)
{
	for (struct op *o = p->loop->next, *next; o != q->loop; o = next) {
		next = o->next;
		if (set_has_result(needed, o))
			op_insert_before(o, p->loop);
	}
}

/* True if q's loop begins at the index where p's ends, with the same step, number of stages and kind of copies. False
 * if a loop is already chained before p: that loop would have to issue copies for q too. */
static bool continues_iterations(const struct plan *p, const struct plan *q)
{
	i64 step;
	struct value *first = for_lower(p->loop), *end = for_upper(p->loop);
	if (p->prev_chained || !p->tma || !q->tma || q->producer || p->stages != q->stages ||
	    !p->deferred != !q->deferred || p->pingpong != q->pingpong || for_lower(q->loop) != end ||
	    for_step(q->loop) != for_step(p->loop) || !value_const_int(for_step(p->loop), &step) || step <= 0)
		return false;
	return axis_of(p->s->axis, first)->divisibility[0] % step == 0 &&
	       axis_of(p->s->axis, end)->divisibility[0] % step == 0;
}

void chain_loops(struct plan *p, struct plan *q)
{
	struct value_set needed = {0};
	if (!continues_iterations(p, q))
		return;
	if ((p->bulk_copies || q->bulk_copies) &&
	    !same_loads(p, q)) { /* for example if only one of the loops masks them */
		remove_bulk_copies(p);
		remove_bulk_copies(q);
	}
	bool joined = same_loads(p, q) && can_hoist_before(p, q, &needed);
	if (joined)
		hoist_before(p, q, &needed);
	arena_free(&needed.scratch);
	if (!joined)
		return;
	struct builder b = builder_before(p->ctx, p->loop);
	/* the next loop begins at this loop's end, even if that is less than this loop's start */
	p->start = build2(&b, IR_MINSI, p->end->type, p->start, p->end);
	p->end = build2(&b, IR_MAXSI, p->end->type, p->end, q->end);
	p->next_chained = q;
	q->prev_chained = p;
}

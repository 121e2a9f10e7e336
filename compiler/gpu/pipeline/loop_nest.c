/* The loops across which the copies of a pipelined loop run ahead. The code that issues these copies contains only the
 * bounds of the loops and the addresses of the copies. It runs in the same threads at another time (flatten_loops.c),
 * or in a producer warp (warp_specialize.c). */
#include "gpu/layout/memory_access.h"
#include "gpu/pipeline/plan.h"

static bool is_on_path(const struct loop_nest *n, const struct block *b)
{
	bool yes = false;
	for (u32 i = 0; i < n->path.len; i++)
		yes |= n->path.at[i]->block == b;
	return yes;
}

/* Adds the operations that compute v to n->needed. False: they cannot be executed a second time, later or in another
 * warp. */
static bool need(struct plan *p, struct loop_nest *n, struct value *v)
{
	value_vec work = {0};
	vec_push(&p->scratch, &work, v);
	while (work.len) {
		v = work.at[--work.len];
		struct op *o = v->def;
		if (value_defined_outside(v, n->top) || (o && map_get(&n->needed, o)))
			continue;
		/* v is the result of an operation, or a kernel parameter, or a loop's index */
		bool can = is_on_path(n, o ? o->block : v->block);
		if (!can || (o ? !can_be_repeated(p->s, o, n->top) : v->block->parent && v->index))
			return false;
		if (o)
			map_put(&n->needed, o, o);
		for (u32 i = 0; o && i < o->noperands; i++)
			vec_push(&p->scratch, &work, operand(o, i));
	}
	return true;
}

static bool need_operands(struct plan *p, struct loop_nest *n, const struct op *o, u32 count)
{
	const struct block *body = p->loop->blocks[0];
	bool ok = true;
	for (u32 i = 0; i < MIN(count, o->noperands); i++)
		ok = ok && (!value_defined_outside(operand(o, i), body) || need(p, n, operand(o, i)));
	return ok;
}

static bool find_path(struct plan *p, struct loop_nest *n, struct op *loop)
{
	struct op *around = loop->block->parent;
	bool ok = loop->block == n->top || (around && around->code == IR_FOR && find_path(p, n, around));
	vec_push(&p->scratch, &n->path, loop);
	return ok;
}

/* True if memory at addresses of this base may change while copies run ahead. They run ahead of the operations of `top`
 * up to the end of the outermost loop. If `top` is the body of a loop, they run ahead of all its operations, since the
 * next iteration's copies follow. */
static bool may_change(struct plan *p, const struct loop_nest *n, const struct value *base)
{
	const struct op *end = n->top->parent && op_is_loop(n->top->parent) ? NULL : n->path.at[0]->next;
	bool yes = false;
	for (const struct op *o = n->top->first; o != end && !yes; o = o->next)
		yes = op_may_write(p->s, o, base);
	return yes;
}

bool find_loop_nest(struct plan *p, struct loop_nest *n, const struct block *top, u32 load_operands)
{
	*n = (struct loop_nest){.top = top, .needed.arena = &p->scratch};
	bool ok = find_path(p, n, p->loop);
	for (u32 i = 0; ok && i < n->path.len; i++)
		ok = need_operands(p, n, n->path.at[i], FOR_INITS);
	ok = ok && need(p, n, p->start) && need(p, n, p->end); /* of chained loops: the second loop's end */
	for (u32 i = 0; ok && i < p->args.len; i++)
		ok = need(p, n, for_init(p->loop, p->args.at[i]));
	for (u32 i = 0; ok && i < p->slice.len; i++) {
		const struct op *o = p->slice.at[i];
		ok = op_is_orderless(o) && need_operands(p, n, o, o->noperands);
	}
	for (u32 i = 0; ok && i < p->loads.len; i++) {
		const struct op *o = p->loads.at[i];
		ok = !may_change(p, n, pointer_base(operand(o, 0))) && need_operands(p, n, o, load_operands);
	}
	return ok;
}

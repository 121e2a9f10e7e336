/* Layout assignment: fallback layouts of values that inference has not reached. Each value gets the layout that one of
 * its users needs. */
#include "gpu/layout/assign_layouts.h"

/* The layout in which the user needs its operand, or NULL. Then *next may be a value whose users determine the
 * layout. */
static const struct layout *wanted_by(struct placer *p, const struct use *u, const struct value **next)
{
	const struct op *o = u->user;
	u32 i = (u32)(u - o->operands);
	*next = NULL;
	if (is_memory_op(o))
		return map_get(&p->memory, o);
	if (o->code == IR_DOT) {
		const struct dot_plan *plan = map_get(&p->dots, o);
		return i == 0 ? plan->a : i == 1 ? plan->b : plan->acc;
	}
	if (o->code == IR_YIELD && o->block->parent && o->block->parent->code == IR_FOR)
		return assigned_layout(p, for_arg(o->block->parent, i));
	if (!o->nresults || !type_is_tensor(o->results[0].type) || !(op_is_shape(o) || op_has(o, ELEM)))
		return NULL;
	const struct layout *assigned = op_is_shape(o) ? NULL : assigned_layout(p, result(o));
	*next = assigned ? NULL : result(o);
	return assigned;
}

/* The layout needed by the first of v's users that needs one, depth first. */
static const struct layout *wanted(struct placer *p, const struct value *v)
{
	u32 walk = begin_walk(p->ctx);
	VEC(const struct use *) path = {0};
	const struct layout *l = NULL;
	const struct use *u = first_visit(v, walk) ? v->uses : NULL;
	while (!l && (u || path.len)) {
		const struct value *next;
		if (!u) {
			u = path.at[--path.len]->next;
			continue;
		}
		l = wanted_by(p, u, &next);
		bool down = next && first_visit(next, walk);
		if (down)
			vec_push(&p->scratch, &path, u);
		u = down ? next->uses : u->next;
	}
	while (l && path.len) {
		const struct op *o = path.at[--path.len]->user;
		l = op_is_shape(o) ? operand_layout(p, o, l) : l;
	}
	return l;
}

/* Assigns a layout to a value that must have one: a loop-carried value, a result of a branch, a scattered load, or an
 * operand of a reduction. */
static void assign_default(struct placer *p, struct value *v)
{
	if (!type_is_tensor(v->type) || assigned_layout(p, v))
		return;
	const struct layout *l = wanted(p, v);
	assign_layout(p, v, l ? l : default_layout(p, v->type));
}

static void assign_fallback(struct placer *p, struct value *v)
{
	if (!type_is_tensor(v->type) || assigned_layout(p, v))
		return;
	assign_default(p, v);
	infer(p);
}

static bool needs_layout(const struct op *o)
{
	switch (o->code) {
	case IR_LOAD:
	case IR_ATOMIC_RMW:
	case IR_ATOMIC_CAS:
	case IR_JOIN:
	case IR_HISTOGRAM:
	case IR_GATHER: return true;
	default: return op_is_control(o) || op_is_asm(o);
	}
}

void assign_fallback_block(struct placer *p, struct block *b)
{
	for (struct op *o = b->first; o; o = o->next) {
		for (u32 k = 0; op_is_control(o) && k < o->nblocks; k++) {
			for (u32 i = 0; i < o->blocks[k]->nargs; i++)
				assign_fallback(p, o->blocks[k]->args[i]);
			assign_fallback_block(p, o->blocks[k]);
		}
		if (o->code == IR_MAP && !assigned_layout(p, &o->results[0])) {
			for (u32 i = 0; i < o->nresults; i++)
				assign_default(p, &o->results[i]);
			infer(p);
		}
		for (u32 i = 0; needs_layout(o) && i < o->nresults; i++)
			assign_fallback(p, &o->results[i]);
		if (o->code == IR_REDUCE && !input_layout(p, o)) {
			assign_layout(p, operand(o, 0), default_layout(p, operand(o, 0)->type));
			infer(p);
		}
	}
}

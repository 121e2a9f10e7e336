/* Dead-code elimination, including loop-carried values.
 *
 * Marks what is needed, starting from operations with effects, and removes the rest. A carried value is needed only if
 * its result is needed, or if something needed in the loop uses it. So a counter that is used only by its own increment
 * is removed. */
#include "ir/pass.h"

struct marker {
	struct arena scratch;
	VEC(struct value *) work;
};

static void need(struct marker *m, struct value *v)
{
	if (v->mark)
		return;
	v->mark = 1;
	vec_push(&m->scratch, &m->work, v);
}

static void need_operands(struct marker *m, const struct op *o)
{
	for (u32 i = 0; i < o->noperands; i++)
		need(m, operand(o, i));
}

/* True if o is needed only if operations in its regions are needed. */
static bool is_control(const struct op *o)
{
	return o->code == IR_FOR || o->code == IR_IF || o->code == IR_WHILE || o->code == IR_ONE_THREAD ||
	       o->code == IR_PARTITION;
}

/* True if o must stay even if its results are unused. */
static bool has_effect(const struct op *o)
{
	if (o->code == IR_LOAD)
		return o->attr[ATTR_VOLATILE];
	return (!op_has(o, PURE) || op_reports_inside(o)) && o->code != IR_LOCAL_LOAD && o->code != IR_LOCAL_ALLOC &&
	       o->code != IR_YIELD && !is_control(o);
}

static bool block_has_effect(const struct block *b)
{
	for (const struct op *o = b->first; o; o = o->next) {
		if (has_effect(o) && o->code != IR_CONDITION && op_info[o->code].rule != R_COMBINED)
			return true;
		for (u32 i = 0; i < o->nblocks; i++)
			if (block_has_effect(o->blocks[i]))
				return true;
	}
	return false;
}

/* A loop or branch with effects needs its bounds or condition; a while loop is kept whole, since it may not end. */
static void mark_control(struct marker *m, struct op *o)
{
	if (o->code == IR_WHILE) {
		need_operands(m, o);
		need_operands(m, o->blocks[0]->last);
		need_operands(m, o->blocks[1]->last);
	} else {
		for (u32 i = 0; i < MIN(o->code == IR_FOR ? (u32)FOR_INITS : 1u, o->noperands); i++)
			need(m, operand(o, i));
	}
	o->mark = 1;
}

static void clear_marks(struct block *b)
{
	for (u32 i = 0; i < b->nargs; i++)
		b->args[i]->mark = 0;
	for (struct op *o = b->first; o; o = o->next) {
		o->mark = 0;
		for (u32 i = 0; i < o->nresults; i++)
			o->results[i].mark = 0;
		for (u32 i = 0; i < o->nblocks; i++)
			clear_marks(o->blocks[i]);
	}
}

/* Marks everything in regions that run on elements, such as a combine function. */
static void mark_regions(struct marker *m, struct op *o)
{
	for (u32 i = 0; i < o->nblocks; i++)
		for (struct op *in = o->blocks[i]->first; in; in = in->next) {
			in->mark = 1;
			need_operands(m, in);
			mark_regions(m, in);
		}
}

static void mark_effects(struct marker *m, struct block *b)
{
	for (struct op *o = b->first; o; o = o->next) {
		bool control = is_control(o);
		if (has_effect(o) && o->code != IR_CONDITION) {
			o->mark = 1;
			need_operands(m, o);
			mark_regions(m, o);
		}
		if (o->code == IR_WHILE || (control && (block_has_effect(o->blocks[0]) ||
							(o->code == IR_IF && block_has_effect(o->blocks[1])))))
			mark_control(m, o);
		for (u32 i = 0; control && i < o->nblocks; i++)
			mark_effects(m, o->blocks[i]);
	}
}

/* Marks what the result v of an operation, or a carried value, needs. */
static void follow(struct marker *m, const struct value *v)
{
	struct op *o = v->def;
	struct use *from[2];
	u32 n = operands_passed_to(v, from);
	for (u32 i = 0; i < n; i++)
		need(m, from[i]->value);
	if (n) {
		mark_control(m, o ? o : v->block->parent);
	} else if (o) {
		need_operands(m, o);
		mark_regions(m, o);
		o->mark = 1;
	}
	if (o && o->code == IR_FOR)
		need(m, for_arg(o, v->index));
}

static bool carried_dead(const struct op *o, u32 i)
{
	return !o->results[i].mark && !(o->code == IR_FOR && for_arg(o, i)->mark);
}

static void remove_dead_results(struct op *o)
{
	for (u32 i = o->nresults; i-- > 0;) {
		if (!carried_dead(o, i))
			continue;
		if (o->code == IR_FOR) {
			for_remove_carried(o, i);
			continue;
		}
		for (u32 k = 0; k < o->nblocks; k++)
			op_remove_operand(o->blocks[k]->last, i);
		op_remove_result(o, i);
	}
}

/* Erases unmarked operations, bottom up, so that an operation is erased after its users. */
static void sweep(struct block *b)
{
	for (struct op *o = b->last, *prev; o; o = prev) {
		prev = o->prev;
		if (op_has(o, END))
			continue;
		if (!o->mark) {
			op_erase(o);
			continue;
		}
		if (op_runs_on_elements(o))
			continue;
		if (o->code == IR_IF)
			remove_dead_results(o);
		/* cut the cycle through a dead carried value before the body is swept */
		for (u32 i = 0; o->code == IR_FOR && i < o->nresults; i++)
			if (carried_dead(o, i))
				op_set_operand(o->blocks[0]->last, i, for_init(o, i));
		for (u32 i = 0; i < o->nblocks; i++)
			sweep(o->blocks[i]);
		if (o->code == IR_FOR)
			remove_dead_results(o);
	}
}

void remove_dead_code(struct kernel *k)
{
	struct marker m = {0};
	clear_marks(k->body);
	mark_effects(&m, k->body);
	while (m.work.len) {
		const struct value *v = m.work.at[--m.work.len];
		follow(&m, v);
	}
	sweep(k->body);
	arena_free(&m.scratch);
}

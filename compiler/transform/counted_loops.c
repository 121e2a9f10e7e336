/* Counted loops: an scf.while that counts up to a bound becomes an scf.for, so that its loads can be issued ahead.
 *
 *     while (i < n) { …; i += c }            for i0 to n step c { … }
 *
 * The index after the last iteration must fit its type. Otherwise it wraps to a negative index, from which the
 * scf.while would continue. For a step greater than 1 this may add a launch bound (analysis/launch_bounds.h). */
#include "ir/pass.h"
#include "analysis/launch_bounds.h"

/* Number of the argument of the first region that counts up to *end in steps of *step; -1 if none. */
static int counter_of(const struct op *loop, struct value **end, struct value **step)
{
	const struct block *before = loop->blocks[0], *body = loop->blocks[1];
	const struct op *cmp = before->first, *condition = before->last, *next;
	if (cmp->next != condition || cmp->code != IR_CMPI || operand(condition, 0) != cmp->results)
		return -1;
	bool less = cmp->attr[ATTR_PREDICATE] == CMPI_SLT, greater = cmp->attr[ATTR_PREDICATE] == CMPI_SGT;
	struct value *i = operand(cmp, greater);
	*end = operand(cmp, !greater);
	if ((!less && !greater) || i->def || i->block != before || type_is_tensor(i->type) ||
	    !value_defined_outside(*end, before))
		return -1;
	next = def_if(operand(body->last, i->index), IR_ADDI);
	for (u32 k = 0; next && k < body->nargs; k++) {
		if (operand(condition, k + 1) != i)
			continue;
		for (u32 side = 0; side < 2; side++) {
			*step = operand(next, 1 - side);
			if (operand(next, side) == body->args[k] && value_defined_outside(*step, body))
				return (int)i->index;
		}
	}
	return -1;
}

static bool passes_arguments_on(const struct op *loop)
{
	const struct op *condition = loop->blocks[0]->last;
	for (u32 i = 1; i < condition->noperands; i++)
		if (operand(condition, i)->def || operand(condition, i)->block != loop->blocks[0])
			return false;
	return true;
}

static struct op *make_for(struct pass_state *s, struct op *loop, int counter, struct value *end, struct value *step)
{
	const struct op *condition = loop->blocks[0]->last;
	struct block *old = loop->blocks[1];
	u32 n = loop->noperands;
	struct arena scratch = {0};
	struct builder b = builder_before(s->ctx, loop);
	struct value **passed = arena_array(&scratch, struct value *, n);
	for (u32 i = 0; i < n; i++)
		passed[i] = operand(loop, i);
	struct op *made = build_for(&b, operand(loop, (u32)counter), end, step, passed, n);
	for (u32 i = 0; i < loop->nresults; i++) {
		u32 of = operand(condition, i + 1)->index;
		made->results[of].name = loop->results[i].name;
		struct value *now = (int)of == counter ? for_index(made) : for_arg(made, of);
		now->name = old->args[i]->name;
		replace_uses(old->args[i], now);
		replace_uses(&loop->results[i], &made->results[of]);
	}
	for (u32 i = 0; i < n; i++)
		passed[i] = operand(old->last, i);
	struct builder in = builder_at_end(s->ctx, made->blocks[0]);
	struct op *yield = build(&in, IR_YIELD, passed, n, NULL, 0, 0);
	while (old->first != old->last)
		op_insert_before(old->first, yield);
	op_erase(loop);
	arena_free(&scratch);
	return made;
}

static void visit(struct op *o, void *arg)
{
	struct pass_state *s = arg;
	struct value *end, *step;
	int counter = o->code == IR_WHILE && passes_arguments_on(o) ? counter_of(o, &end, &step) : -1;
	i64 by;
	if (counter < 0 || !value_const_int(step, &by) || by <= 0)
		return;
	i64 most = type_elem_bits(step->type) == 64 ? INT64_MAX : INT32_MAX;
	if (type_elem_bits(step->type) >= 32 && (value_range(s->ranges, end)->max <= most - (by - 1) ||
						 bounds_keep_bounded(s->k, s->ranges, end, most - (by - 1))))
		walk(make_for(s, o, counter, end, step)->blocks[0], visit, s);
}

void pass_counted_loops(struct pass_state *s)
{
	walk(s->k->body, visit, s);
}

/* Pointer strength reduction: a tile of pointers that a loop carries and advances by the same distance in every element
 * becomes the tile before the loop plus a carried scalar offset. One register instead of two for each element, and
 * addresses that differ by constants. */
#include "opt/pass.h"

/* The scalar that all elements of v equal, defined outside of the loop; NULL if there is none. */
static struct value *uniform_scalar(struct pass_state *s, struct op *loop, struct value *v)
{
	i64 constant;
	if (value_const_int(v, &constant)) {
		struct builder b = builder_before(s->ctx, loop);
		return build_int(&b, type_scalar(s->ctx, type_dtype(v->type)), constant);
	}
	if (!def_if(v, IR_SPLAT) || !value_defined_outside(operand(v->def, 0), loop->blocks[0]))
		return NULL;
	return operand(v->def, 0);
}

static struct value *advanced(struct builder *b, struct value *ptr, struct value *by)
{
	struct value *all = build1(b, IR_SPLAT, type_with_dtype(b->ctx, ptr->type, type_dtype(by->type)), by);
	return build2(b, IR_ADDPTR, ptr->type, ptr, all);
}

static void reduce_pointer(struct pass_state *s, struct op *loop, u32 i)
{
	struct block *body = loop->blocks[0];
	struct value *arg = for_arg(loop, i), *next = for_yielded(loop, i), *init = for_init(loop, i),
		     *out = &loop->results[i];
	struct op *add = def_if(next, IR_ADDPTR);
	if (!type_is_tensor(arg->type) || !add || operand(add, 0) != arg)
		return;
	struct value *step = uniform_scalar(s, loop, operand(add, 1));
	if (!step)
		return;
	const struct type *t = type_scalar(s->ctx, DT_I64);
	struct builder before = builder_before(s->ctx, loop), in = builder_before(s->ctx, body->first),
		       end = builder_before(s->ctx, body->last), after = builder_after(s->ctx, loop);
	before.loc = in.loc = end.loc = after.loc = add->loc;
	op_set_operand(loop, FOR_INITS + i, build_int(&before, t, 0));
	if (step->type != t)
		step = build1(&before, IR_EXTSI, t, step);
	struct value *here = advanced(&in, init, arg), *there = advanced(&after, init, out);
	here->name = arg->name;
	/* every use but those just built */
	struct value *offset = operand(here->def, 1), *total = operand(there->def, 1);
	replace_uses(arg, here);
	op_set_operand(offset->def, 0, arg);
	replace_uses(out, there);
	op_set_operand(total->def, 0, out);
	op_set_operand(body->last, i, build2(&end, IR_ADDI, t, arg, step));
	arg->type = out->type = t;
}

static void visit_loop(struct op *o, void *arg)
{
	for (u32 i = 0; o->code == IR_FOR && i < o->nresults; i++)
		reduce_pointer(arg, o, i);
}

void pass_strength_reduction(struct pass_state *s)
{
	walk(s->k->body, visit_loop, s);
	remove_dead_code(s->k);
}

/* The value that carried value number i is added to in each iteration, or NULL. */
static const struct value *increment(const struct op *loop, u32 i)
{
	const struct block *body = loop->blocks[0];
	const struct op *add = def_if(for_yielded(loop, i), IR_ADDI);
	const struct value *arg = for_arg(loop, i);
	if (!add || add->block != body || type_is_tensor(arg->type))
		return NULL;
	return operand(add, 0) == arg ? operand(add, 1) : operand(add, 1) == arg ? operand(add, 0) : NULL;
}

static bool equal_values(const struct value *a, const struct value *b)
{
	i64 x, y;
	return a == b || (a && b && value_const_int(a, &x) && value_const_int(b, &y) && x == y);
}

/* Is carried value i read by the code behind the loop only? */
static bool only_result_used(const struct op *loop, u32 i)
{
	return !value_unused(&loop->results[i]) && value_has_one_use(for_arg(loop, i)) &&
	       value_has_one_use(for_yielded(loop, i));
}

/* The loop, or the last of the operations with effects right behind it, such as waits, that do not read v. */
static struct op *end_of_effects(struct op *loop, const struct value *v)
{
	struct op *last = loop;
	for (struct op *o = loop->next; !op_has(o, PURE) && !op_has(o, END) && !o->nblocks; o = o->next) {
		for (u32 i = 0; i < o->noperands; i++)
			if (operand(o, i) == v)
				return last;
		last = o;
	}
	return last;
}

static void merge_increments(struct op *loop, void *arg)
{
	struct ir_context *ctx = arg;
	for (u32 i = 0; loop->code == IR_FOR && i < loop->nresults; i++) {
		const struct value *step = increment(loop, i);
		if (!step || !only_result_used(loop, i))
			continue;
		for (u32 k = 0; k < loop->nresults; k++) {
			struct value *mine = &loop->results[i], *other = &loop->results[k];
			if (k == i || other->type != mine->type || only_result_used(loop, k) ||
			    !equal_values(step, increment(loop, k)))
				continue;
			struct builder after = builder_after(ctx, end_of_effects(loop, mine));
			struct value *ahead =
				build2(&after, IR_SUBI, mine->type, for_init(loop, k), for_init(loop, i));
			replace_uses(mine, build2(&after, IR_SUBI, mine->type, other, ahead));
			break;
		}
	}
}

void merge_induction_variables(struct kernel *k, struct ir_context *ctx)
{
	walk(k->body, merge_increments, ctx);
	remove_dead_code(k);
}

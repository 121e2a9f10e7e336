#include "place/loop.h"

struct op *loop_extend(struct ir_context *ctx, struct op *old, struct value *const *inits, u32 n)
{
	struct block *from = old->blocks[0];
	struct arena scratch = {0};
	VEC(struct value *) ops = {0};
	VEC(const struct type *) types = {0};
	for (u32 i = 0; i < old->noperands; i++)
		vec_push(&scratch, &ops, operand(old, i));
	for (u32 i = 0; i < n; i++)
		vec_push(&scratch, &ops, inits[i]);
	for (u32 i = 3; i < ops.len; i++)
		vec_push(&scratch, &types, ops.at[i]->type);
	struct builder b = builder_before(ctx, old);
	struct op *loop = build(&b, IR_FOR, ops.at, ops.len, types.at, types.len, 1);
	struct block *to = loop->blocks[0];
	memcpy(loop->attr, old->attr, sizeof loop->attr);
	for (u32 i = 0; i < from->nargs; i++) {
		struct value *arg = block_add_arg(ctx, to, from->args[i]->type);
		arg->name = from->args[i]->name;
		replace_uses(from->args[i], arg);
	}
	for (u32 i = 0; i < n; i++)
		block_add_arg(ctx, to, inits[i]->type);
	for (struct op *o = from->first, *next; o; o = next) {
		next = o->next;
		op_unlink(o);
		o->block = to;
		o->prev = to->last;
		*(to->last ? &to->last->next : &to->first) = o;
		to->last = o;
	}
	for (u32 i = 0; i < old->nresults; i++) {
		loop->results[i].name = old->results[i].name;
		replace_uses(&old->results[i], &loop->results[i]);
	}
	struct builder in = builder_at_end(ctx, from); /* the emptied loop is erased whole */
	build(&in, IR_YIELD, NULL, 0, NULL, 0, 0);
	op_erase(old);
	arena_free(&scratch);
	return loop;
}

static struct value *to_i64(struct builder *b, struct value *v)
{
	const struct type *t = type_scalar(b->ctx, DT_I64);
	return v->type == t ? v : build1(b, IR_EXTSI, t, v);
}

struct value *loop_inside(struct builder *b, const struct op *loop, struct value *index, int n)
{
	const struct type *t = type_scalar(b->ctx, DT_I64);
	struct value *by = build2(b, IR_MULI, t, to_i64(b, operand(loop, 2)), build_int(b, t, n));
	struct value *at = build2(b, IR_ADDI, t, to_i64(b, index), by);
	return build_cmpi(b, CMPI_SLT, at, to_i64(b, operand(loop, 1)));
}

struct value *loop_step(struct builder *b, const struct op *loop, struct value *index, int n)
{
	struct value *step = operand(loop, 2);
	return build2(b, IR_ADDI, index->type, index, build2(b, IR_MULI, step->type, step, build_int(b, step->type, n)));
}

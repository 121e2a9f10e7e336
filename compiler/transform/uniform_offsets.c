/* Uniform offsets: the part of an offset that is equal in all elements moves to the pointer that the offset is added
 * to.
 *
 *     splat(p) + (rows * stride + columns + splat(batch * size))    splat(p + batch * size) + (rows * stride + columns)
 *
 * Then each matrix of a batch begins at a scalar pointer, as TMA copies need (gpu/tma/bounded_tiles.c). A 32-bit sum
 * must not wrap. If that depends on sizes, it adds a launch bound. */
#include "ir/pass.h"
#include "analysis/launch_bounds.h"

/* The operand of the sum that is a splat of a scalar and not constant; NULL if none. *rest is the other operand. */
static struct value *uniform_part(const struct op *sum, struct value **rest)
{
	i64 c;
	for (u32 i = 0; i < 2; i++) {
		const struct op *splat = def_if(operand(sum, i), IR_SPLAT);
		*rest = operand(sum, 1 - i);
		if (splat && !value_const_int(operand(splat, 0), &c))
			return operand(splat, 0);
	}
	return NULL;
}

static void visit(struct op *o, void *arg)
{
	struct pass_state *s = arg;
	const struct op *splat = o->code == IR_ADDPTR ? def_if(operand(o, 0), IR_SPLAT) : NULL;
	struct value *offset = splat ? operand(o, 1) : NULL, *rest, *part;
	if (!splat || !type_is_tensor(result(o)->type) || result(o)->type->rank != 2)
		return;
	struct value *base = operand(splat, 0);
	struct builder b = builder_before(s->ctx, o);
	while (def_if(offset, IR_ADDI) && (part = uniform_part(offset->def, &rest)) &&
	       bounds_keep_exact(s->k, s->ranges, offset)) {
		base = build2(&b, IR_ADDPTR, base->type, base, part);
		offset = rest;
	}
	if (base == operand(splat, 0))
		return;
	op_set_operand(o, 0, build1(&b, IR_SPLAT, result(o)->type, base));
	op_set_operand(o, 1, offset);
}

void pass_uniform_offsets(struct pass_state *s)
{
	if (s->target->has_tensor_copy && block_has(s->k->body, op_is_dot))
		walk(s->k->body, visit, s);
}

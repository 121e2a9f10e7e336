/* The flow of values through control operations, and of pointers from parameters. */
#include "ir/graph.h"

struct value *value_passed_to(const struct op *o, u32 i)
{
	const struct op *in = op_has(o, END) ? o->block->parent : o;
	bool enters = in == o;
	switch (in ? in->code : IR_OPCODES) {
	case IR_FOR: return !enters ? for_arg(in, i) : i >= FOR_INITS ? for_arg(in, i - FOR_INITS) : NULL;
	case IR_IF: return enters ? NULL : (struct value *)&in->results[i];
	case IR_WHILE:
		if (o->code == IR_CONDITION)
			return i ? in->blocks[1]->args[i - 1] : NULL;
		return in->blocks[0]->args[i];
	default: return NULL;
	}
}

u32 operands_passed_to(const struct value *v, struct use *from[2])
{
	const struct op *o = v->def ? v->def : v->block->parent;
	u32 i = v->index;
	switch (o ? o->code : IR_OPCODES) {
	case IR_FOR:
		if (!v->def && !i--)
			return 0;
		from[0] = &o->operands[FOR_INITS + i];
		from[1] = &o->blocks[0]->last->operands[i];
		return 2;
	case IR_IF:
		from[0] = &o->blocks[0]->last->operands[i];
		from[1] = &o->blocks[1]->last->operands[i];
		return 2;
	case IR_WHILE:
		from[0] = &o->blocks[0]->last->operands[1 + i];
		if (v->def || v->block == o->blocks[1])
			return 1;
		from[0] = &o->operands[i];
		from[1] = &o->blocks[1]->last->operands[i];
		return 2;
	default: return 0;
	}
}

struct value *result_passed_by(const struct op *o, u32 i)
{
	return o->code == IR_FOR     ? for_arg(o, i)
	       : o->code == IR_WHILE ? o->blocks[1]->args[i]
				     : (struct value *)&o->results[i];
}

/* True for operations on pointers that at most move and repeat them. Bitcasts change only the type, as from int1 to
 * int8 for a load of booleans. */
static bool keeps_base(const struct op *o)
{
	switch (o->code) {
	case IR_ADDPTR:
	case IR_BITCAST:
	case IR_SPLAT:
	case IR_CONVERT_LAYOUT: return true;
	default: return op_is_shape(o);
	}
}

/* The pointer v without offsets, bitcasts and shape operations. */
static const struct value *without_offsets(const struct value *v)
{
	while (v->def && keeps_base(v->def))
		v = operand(v->def, 0);
	return v;
}

/* Adds the values from which v is passed in one step. False if v is not a pointer carried by the loops and branches
 * around it. */
static bool add_origins(struct value_set *seen, const struct value *v)
{
	struct use *from[2];
	u32 n = operands_passed_to(v, from);
	for (struct op *choice = def_if(v, IR_SELECT); choice && n < 2; n++)
		from[n] = &choice->operands[1 + n];
	for (u32 k = 0; k < n; k++) {
		const struct value *origin = without_offsets(from[k]->value);
		if (set_add(seen, origin))
			vec_push(&seen->scratch, &seen->work, origin);
	}
	return n;
}

/* The parameter from which a pointer is passed through loops and branches. */
static const struct value *only_base(const struct value *v)
{
	struct value_set seen = {0};
	const struct value *found = NULL;
	bool known = true;
	vec_push(&seen.scratch, &seen.work, v);
	while (known && seen.work.len) {
		v = seen.work.at[--seen.work.len];
		bool is_param = !v->def && !v->block->parent;
		known = is_param ? !found || found == v : add_origins(&seen, v);
		found = is_param ? v : found;
	}
	arena_free(&seen.scratch);
	return known ? found : NULL;
}

const struct value *pointer_base(const struct value *v)
{
	v = without_offsets(v);
	return !v->def && !v->block->parent ? v : only_base(v);
}

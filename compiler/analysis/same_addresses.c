#include "analysis/same_addresses.h"

#include "ir/graph.h"
#include "analysis/axis.h"
#include "analysis/index_forms.h"
#include "ir/scalar.h"

bool keeps_elements(const struct op *o)
{
	if (o->code == IR_BITCAST)
		return type_is_ptr(result(o)->type) &&
		       pointee_bytes(result(o)->type) == pointee_bytes(operand(o, 0)->type);
	return op_is_shape(o) || o->code == IR_SPLAT || o->code == IR_CONVERT_LAYOUT;
}

/* True if one loop advances the pointers x and y by the same value. */
static bool same_step(const struct value *x, const struct value *y)
{
	return x->block == y->block && increment_of(x) && increment_of(x) == increment_of(y);
}

static bool adds_the_same(const struct op *a, const struct op *b)
{
	return a->code == b->code && !memcmp(a->attr, b->attr, sizeof a->attr) &&
	       (keeps_elements(a) || (a->code == IR_ADDPTR && operand(a, 1) == operand(b, 1)));
}

bool same_addresses(const struct value *x, const struct value *y)
{
	while (x != y) {
		if (x->def && y->def) {
			if (!adds_the_same(x->def, y->def))
				return false;
			x = operand(x->def, 0);
			y = operand(y->def, 0);
			continue;
		}
		if (x->def || y->def)
			return false;
		if (!x->block->parent && !y->block->parent)
			return type_is_ptr(x->type) && type_is_ptr(y->type);
		if (!same_step(x, y))
			return false;
		const struct op *loop = x->block->parent;
		x = for_init(loop, for_arg_number(x));
		y = for_init(loop, for_arg_number(y));
	}
	return true;
}

/* v if it is a parameter; its initial value if a loop carries v and adds the same value to all its elements; otherwise
 * NULL. */
static const struct value *start_of_moved(const struct value *v)
{
	const struct op *loop = v->block->parent;
	const struct value *by = increment_of(v);
	u64 bits;
	if (!loop)
		return v; /* a parameter */
	return by && (def_if(by, IR_SPLAT) || value_const_bits(by, &bits)) ? for_init(loop, for_arg_number(v)) : NULL;
}

static bool keeps_apart(const struct op *o)
{
	switch (o->code) {
	case IR_CONSTANT:
	case IR_MAKE_RANGE:
	case IR_ADDPTR:
	case IR_ADDI:
	case IR_SUBI:
	case IR_MULI:
	case IR_EXTSI:
	case IR_EXTUI: return true;
	default: return keeps_elements(o);
	}
}

/* True if the tile is computed from element numbers, by operations that keep different numbers different. Loaded
 * indices and remainders may repeat. Repetitions that axis analysis knows of are left to the caller. */
static bool is_each_once(struct ir_context *ctx, const struct value *v)
{
	struct value_walk w = {.id = begin_walk(ctx)};
	visit_later(&w, v);
	while ((v = visit_next(&w))) {
		if (!type_is_tensor(v->type))
			continue;
		const struct value *start = v->def ? NULL : start_of_moved(v);
		if (v->def ? !keeps_apart(v->def) : !start)
			return end_walk(&w, false);
		if (v->def)
			visit_operands(&w, v->def);
		else
			visit_later(&w, start);
	}
	return true;
}

bool are_each_once(const struct pass_state *s, const struct value *pointers)
{
	const struct type *t = pointers->type;
	for (i32 d = 0; d < t->rank; d++)
		if (t->shape[d] > 1 && axis_of(s->axis, pointers)->constancy[d] > 1)
			return false;
	return is_each_once(s->ctx, pointers);
}

/* The first element of a tile as a scalar, computed by the same operations as the tile. */
#include "transform/first_element.h"

#include "support/thresholds.h"
#include "ir/graph.h"

static bool renames(const struct op *o)
{
	return o->code == IR_EXPAND_DIMS || o->code == IR_BROADCAST || o->code == IR_TRANS ||
	       o->code == IR_CONVERT_LAYOUT;
}

bool has_first_element(struct ir_context *ctx, const struct value *v)
{
	struct value_walk w = {.id = begin_walk(ctx)};
	u32 operations = 0;
	u64 bits;
	visit_later(&w, v);
	while ((v = visit_next(&w))) {
		const struct op *o = v->def;
		if (!type_is_tensor(v->type) || value_const_bits(v, &bits))
			continue;
		bool has = o && (o->code == IR_MAKE_RANGE || o->code == IR_SPLAT || renames(o) ||
				 (op_has(o, ELEM) && op_has(o, PURE)));
		if (!has || ++operations > MAX_INDEX_OPERATIONS)
			return end_walk(&w, false);
		visit_operands(&w, o);
	}
	return true;
}

struct value *first_element(struct builder *b, struct op *loop, struct map *made, struct value *v)
{
	struct value *known = type_is_tensor(v->type) ? map_get(made, v) : v, *ops[3] = {0};
	const struct op *o = v->def;
	struct builder before, *at = b;
	u64 bits;
	if (known)
		return known;
	tl_assert(o->noperands <= ARRAY_LEN(ops));
	for (u32 i = 0; i < o->noperands; i++)
		ops[i] = first_element(b, loop, made, operand(o, i));
	if (loop && value_defined_outside(v, loop->blocks[0])) {
		before = builder_before(b->ctx, loop);
		before.loc = b->loc;
		at = &before;
	}
	if (value_const_bits(v, &bits)) {
		known = build_constant(at, type_elem(v->type), bits);
	} else if (o->code == IR_MAKE_RANGE) {
		known = build_int(at, type_elem(v->type), o->attr[ATTR_START]);
	} else if (o->code == IR_SPLAT || renames(o)) {
		known = ops[0];
	} else {
		const struct type *t = type_elem(v->type);
		struct op *scalar = build(at, o->code, ops, o->noperands, &t, 1, 0);
		memcpy(scalar->attr, o->attr, sizeof o->attr);
		known = result(scalar);
	}
	map_put(made, v, known);
	return known;
}

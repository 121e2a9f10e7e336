/* The first element of a tile as a scalar, computed by the same operations as the tile. */
#include "transform/first_element.h"

#include "ir/graph.h"

static bool renames(const struct op *o)
{
	return o->code == IR_EXPAND_DIMS || o->code == IR_BROADCAST || o->code == IR_TRANS ||
	       o->code == IR_CONVERT_LAYOUT;
}

bool has_first_element(struct ir_context *ctx, const struct value *v)
{
	struct value_walk w = {.id = begin_walk(ctx)};
	u64 bits;
	visit_later(&w, v);
	while ((v = visit_next(&w))) {
		const struct op *o = v->def;
		if (!type_is_tensor(v->type) || value_const_bits(v, &bits))
			continue;
		if (!o || !(o->code == IR_MAKE_RANGE || o->code == IR_SPLAT || renames(o) ||
			    (op_has(o, ELEM) && op_has(o, PURE))))
			return end_walk(&w, false);
		visit_operands(&w, o);
	}
	return true;
}

struct first_elements {
	struct builder *b;
	struct op *loop; /* or NULL */
	struct map *made;
};

static struct value *known_element(const struct first_elements *f, struct value *v)
{
	return type_is_tensor(v->type) ? map_get(f->made, v) : v;
}

static bool find_missing_element(void *arg, struct demand at, struct demand *first)
{
	const struct first_elements *f = arg;
	const struct op *o = at.v->def;
	for (u32 i = 0; i < o->noperands; i++)
		if (!known_element(f, operand(o, i))) {
			*first = (struct demand){operand(o, i), 0};
			return true;
		}
	return false;
}

static void make_element(void *arg, struct demand d)
{
	const struct first_elements *f = arg;
	struct value *v = d.v, *known, *ops[3] = {0};
	const struct op *o = v->def;
	struct builder before, *at = f->b;
	u64 bits;
	if (f->loop && value_defined_outside(v, f->loop->blocks[0])) {
		before = builder_before(f->b->ctx, f->loop);
		before.loc = f->b->loc;
		at = &before;
	}
	if (value_const_bits(v, &bits)) {
		known = build_constant(at, type_elem(v->type), bits);
	} else if (o->code == IR_MAKE_RANGE) {
		known = build_int(at, type_elem(v->type), o->attr[ATTR_START]);
	} else if (o->code == IR_SPLAT || renames(o)) {
		known = known_element(f, operand(o, 0));
	} else {
		tl_assert(o->noperands <= ARRAY_LEN(ops));
		for (u32 i = 0; i < o->noperands; i++)
			ops[i] = known_element(f, operand(o, i));
		const struct type *t = type_elem(v->type);
		struct op *scalar = build(at, o->code, ops, o->noperands, &t, 1, 0);
		memcpy(scalar->attr, o->attr, sizeof o->attr);
		known = result(scalar);
	}
	map_put(f->made, v, known);
}

struct value *first_element(struct builder *b, struct op *loop, struct map *made, struct value *v)
{
	struct first_elements f = {b, loop, made};
	if (!known_element(&f, v))
		meet_demand((struct demand){v, 0}, find_missing_element, make_element, &f);
	return known_element(&f, v);
}

#include "place/boxes.h"

/* --- distances ----------------------------------------------------------------------------------------------- */

/* From an element to the next along a dimension: factor · by. */
struct stride {
	struct value *by; /* a parameter; NULL: 1 */
	i64 factor;
};

/* The scalar that every element of v equals. */
static bool uniform(struct value *v, struct stride *out)
{
	*out = (struct stride){NULL, 1};
	if (value_const_int(v, &out->factor))
		return true;
	while (v->def && (op_is_shape(v->def) || v->def->code == IR_SPLAT || v->def->code == IR_EXTSI ||
			  v->def->code == IR_CONVERT_LAYOUT))
		v = operand(v->def, 0);
	out->by = v;
	return !v->def && !type_is_tensor(v->type) && !v->block->parent;
}

static bool stride_of(const struct axis_analysis *axis, struct value *v, int d, struct stride *out);

static bool stride_of_sum(const struct axis_analysis *axis, const struct op *o, int d, struct stride *out)
{
	struct stride x, y;
	if (!stride_of(axis, operand(o, 0), d, &x) || !stride_of(axis, operand(o, 1), d, &y))
		return false;
	if (o->code == IR_SUBI)
		y.factor = -y.factor;
	if (x.factor && y.factor && x.by != y.by)
		return false;
	*out = (struct stride){x.factor ? x.by : y.by, x.factor + y.factor};
	return true;
}

static bool stride_of_product(const struct axis_analysis *axis, const struct op *o, int d, struct stride *out)
{
	for (u32 i = 0; i < 2; i++) {
		struct stride x, y;
		if (!uniform(operand(o, 1 - i), &y) || !stride_of(axis, operand(o, i), d, &x) || (x.by && y.by) ||
		    __builtin_mul_overflow(x.factor, y.factor, &out->factor))
			continue;
		out->by = x.by ? x.by : y.by;
		return true;
	}
	return false;
}

/* False when the distance is not the same everywhere, or not known to the host. As in axis.h, index arithmetic is taken
 * not to wrap. */
static bool stride_of(const struct axis_analysis *axis, struct value *v, int d, struct stride *out)
{
	const struct type *t = v->type;
	tl_assert(d >= 0);
	*out = (struct stride){NULL, 0};
	if (!type_is_tensor(t) || t->shape[d] == 1 || axis_of(axis, v)->constancy[d] >= t->shape[d])
		return true;
	if (axis_of(axis, v)->contiguity[d] >= t->shape[d]) {
		out->factor = 1;
		return true;
	}
	if (!v->def)
		return false;
	const struct op *o = v->def;
	switch (o->code) {
	case IR_ADDPTR:
	case IR_ADDI:
	case IR_SUBI: return stride_of_sum(axis, o, d, out);
	case IR_MULI: return stride_of_product(axis, o, d, out);
	case IR_EXTSI:
	case IR_BROADCAST:
	case IR_CONVERT_LAYOUT: return stride_of(axis, operand(o, 0), d, out);
	case IR_EXPAND_DIMS: return stride_of(axis, operand(o, 0), d - (d > o->attr[ATTR_AXIS]), out);
	case IR_TRANS: return stride_of(axis, operand(o, 0), perm_get(o->attr[ATTR_ORDER], d), out);
	default: return false;
	}
}

/* --- the first element --------------------------------------------------------------------------------------- */

static bool renames(const struct op *o)
{
	return o->code == IR_EXPAND_DIMS || o->code == IR_BROADCAST || o->code == IR_TRANS ||
	       o->code == IR_CONVERT_LAYOUT;
}

static bool has_first_element(const struct value *v)
{
	i64 c;
	if (!type_is_tensor(v->type) || value_const_int(v, &c))
		return true;
	const struct op *o = v->def;
	if (!o ||
	    !(o->code == IR_MAKE_RANGE || o->code == IR_SPLAT || renames(o) || (op_has(o, ELEM) && op_has(o, PURE))))
		return false;
	for (u32 i = 0; i < o->noperands; i++)
		if (!has_first_element(operand(o, i)))
			return false;
	return true;
}

struct value *first_element(struct builder *b, struct op *loop, struct map *made, struct value *v)
{
	i64 c;
	if (!type_is_tensor(v->type))
		return v;
	struct value *known = map_get(made, v);
	if (known)
		return known;
	struct builder before = builder_before(b->ctx, loop), *at = b;
	if (value_defined_outside(v, loop->blocks[0])) {
		before.loc = b->loc;
		at = &before;
	}
	const struct op *o = v->def;
	struct value *ops[3] = {0};
	if (type_elem(v->type)->kind == TY_SCALAR && value_const_int(v, &c)) {
		known = build_int(at, type_elem(v->type), c);
	} else if (o->code == IR_MAKE_RANGE) {
		known = build_int(at, type_elem(v->type), o->attr[ATTR_START]);
	} else if (o->code == IR_SPLAT) {
		known = operand(o, 0);
	} else if (renames(o)) {
		known = first_element(b, loop, made, operand(o, 0));
	} else {
		tl_assert(o->noperands <= ARRAY_LEN(ops));
		for (u32 i = 0; i < o->noperands; i++)
			ops[i] = first_element(b, loop, made, operand(o, i));
		const struct type *t = type_elem(v->type);
		struct op *scalar = build(at, o->code, ops, o->noperands, &t, 1, 0);
		memcpy(scalar->attr, o->attr, sizeof o->attr);
		known = result(scalar);
	}
	map_put(made, v, known);
	return known;
}

/* --- boxes --------------------------------------------------------------------------------------------------- */

bool find_box(const struct pass_state *s, struct value *ptr, const struct layout *mem, struct box *out)
{
	enum { MOST_ROWS = 256, PERIOD = 8 }; /* of a box; of a swizzle */
	const struct type *t = ptr->type;
	const struct type *elem = type_elem(t)->elem;
	if (t->rank != 2 || elem->kind != TY_SCALAR || !has_first_element(ptr))
		return false;
	i64 bytes = dtype_bytes(elem->dtype);
	for (int d = 0; d < 2; d++) {
		struct stride along, rows;
		const struct axis_info *info = axis_of(s->axis, ptr);
		if (t->shape[d] * bytes < 32 || t->shape[1 - d] < PERIOD || t->shape[1 - d] > MOST_ROWS ||
		    info->contiguity[d] < t->shape[d] || info->divisibility[d] < 16 ||
		    mem != layout_swizzled(&s->ctx->layouts, 2, t->shape, d, (int)bytes * 8))
			continue;
		if (stride_of(s->axis, ptr, d, &along) && !along.by && along.factor == 1 &&
		    stride_of(s->axis, ptr, 1 - d, &rows) && rows.factor >= 0) {
			*out = (struct box){d, rows.factor ? rows.by : NULL, rows.factor * bytes};
			return true;
		}
	}
	return false;
}

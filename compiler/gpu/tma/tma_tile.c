#include "gpu/tma/tma_tile.h"

#include "transform/first_element.h"

#include "ir/graph.h"

/* --- strides ---------------------------------------------------------------------------------------------------- */

/* Strides from an element to the next along a dimension, computed on demand. */
struct strides {
	const struct pass_state *s;
	struct arena scratch;
	struct map known; /* value plus dimension → struct launch_product; &no_stride: none */
};
static const struct launch_product no_stride;

static const void *key_of(struct demand at)
{
	return (const char *)at.v + at.aspect;
}

/* True if the stride of the value at.v along the dimension at.aspect depends on the stride of the value's operand i.
 * *part then names that operand and dimension. */
static bool part_of_stride(const struct strides *s, struct demand at, u32 i, struct demand *part)
{
	const struct op *o = at.v->def;
	const struct type *t = at.v->type;
	int d = (int)at.aspect;
	struct launch_product unused;
	if (!o || i >= o->noperands || !type_is_tensor(t) || t->shape[d] == 1 ||
	    axis_of(s->s->axis, at.v)->constancy[d] >= t->shape[d] ||
	    axis_proved(s->s->axis, at.v)->contiguity[d] >= t->shape[d])
		return false;
	*part = (struct demand){operand(o, i), d};
	switch (o->code) {
	case IR_ADDPTR:
	case IR_ADDI:
	case IR_SUBI:
	case IR_EXTSI:
	case IR_BROADCAST:
	case IR_CONVERT_LAYOUT: return true;
	case IR_MULI: return is_launch_product(s->s->k, operand(o, 1 - i), &unused);
	case IR_EXPAND_DIMS: part->aspect = d - (d > o->attr[ATTR_AXIS]); return true;
	case IR_TRANS: part->aspect = perm_get(o->attr[ATTR_ORDER], d); return true;
	default: return false;
	}
}

static bool find_unknown_stride(void *arg, struct demand at, struct demand *first)
{
	const struct strides *s = arg;
	for (u32 i = 0; i < 2; i++)
		if (part_of_stride(s, at, i, first) && !map_get(&s->known, key_of(*first)))
			return true;
	return false;
}

static bool add_strides(const struct launch_product *x, const struct launch_product *y, bool subtract,
			struct launch_product *out)
{
	struct launch_product alike = *y;
	*out = x->times ? *x : *y;
	alike.times = x->times;
	return (!x->times || !y->times || same_product(x, &alike)) &&
	       !(subtract ? __builtin_sub_overflow(x->times, y->times, &out->times)
			  : __builtin_add_overflow(x->times, y->times, &out->times));
}

/* The stride of a product: at's operand i, with stride x, times a scalar. */
static bool scale_stride(const struct strides *s, struct demand at, u32 i, const struct launch_product *x,
			 struct launch_product *out)
{
	struct launch_product y;
	return x != &no_stride && is_launch_product(s->s->k, operand(at.v->def, 1 - i), &y) &&
	       multiply_products(x, &y, out);
}

/* The stride of at, from the strides of its operands. */
static bool combine_strides(const struct strides *s, struct demand at, struct launch_product *out)
{
	const struct launch_product *x[2] = {&no_stride, &no_stride};
	enum opcode code = at.v->def ? at.v->def->code : IR_OPCODES;
	for (u32 i = 0; i < 2; i++) {
		struct demand part;
		if (part_of_stride(s, at, i, &part))
			x[i] = map_get(&s->known, key_of(part));
	}
	if (code == IR_MULI)
		return scale_stride(s, at, 0, x[0], out) || scale_stride(s, at, 1, x[1], out);
	if (code == IR_ADDPTR || code == IR_ADDI || code == IR_SUBI)
		return x[0] != &no_stride && x[1] != &no_stride && add_strides(x[0], x[1], code == IR_SUBI, out);
	*out = *x[0];
	return x[0] != &no_stride;
}

static void make_stride(void *arg, struct demand at)
{
	struct strides *s = arg;
	const struct type *t = at.v->type;
	int d = (int)at.aspect;
	struct launch_product made = {0};
	bool found = true;
	if (type_is_tensor(t) && t->shape[d] > 1 && axis_of(s->s->axis, at.v)->constancy[d] < t->shape[d]) {
		if (axis_proved(s->s->axis, at.v)->contiguity[d] >= t->shape[d])
			made.times = 1;
		else
			found = combine_strides(s, at, &made);
	}
	map_put(&s->known, key_of(at), found ? arena_dup(&s->scratch, &made, sizeof made) : (void *)&no_stride);
}

/* The stride of v along d. False if it is not the same everywhere, or not known to the host. As in axis.h, index
 * arithmetic is assumed not to wrap. */
static bool stride_of(const struct pass_state *state, struct value *v, int d, struct launch_product *out)
{
	struct strides s = {.s = state};
	tl_assert(d >= 0);
	s.known.arena = &s.scratch;
	meet_demand((struct demand){v, d}, find_unknown_stride, make_stride, &s);
	const struct launch_product *found = map_get(&s.known, key_of((struct demand){v, d}));
	bool yes = found != &no_stride;
	*out = *found;
	arena_free(&s.scratch);
	return yes;
}

/* --- TMA tiles -------------------------------------------------------------------------------------------------- */

bool tma_tile_fits(struct layout_pool *pool, const struct type *t, int d, const struct layout *mem)
{
	/* the least bytes of a row; the most rows of a tile (boxDim); the rows after which a swizzle repeats */
	enum { LEAST_BYTES = 32, MOST_ROWS = 256, PERIOD = 8 };
	int bytes = dtype_bytes(type_elem(t)->elem->dtype);
	return t->shape[d] * bytes >= LEAST_BYTES && t->shape[1 - d] >= PERIOD && t->shape[1 - d] <= MOST_ROWS &&
	       mem == layout_swizzled(pool, 2, t->shape, d, bytes * 8);
}

bool find_tma_tile(const struct pass_state *s, struct value *ptr, const struct layout *mem, struct tma_tile *out)
{
	const struct type *t = ptr->type;
	const struct type *elem = type_elem(t)->elem;
	if (t->rank != 2 || elem->kind != TY_SCALAR || !has_first_element(s->ctx, ptr))
		return false;
	i64 bytes = dtype_bytes(elem->dtype);
	const struct launch_product one = {.times = 1};
	for (int d = 0; d < 2; d++) {
		struct launch_product along, rows;
		const struct axis_info *info = axis_of(s->axis, ptr);
		if (axis_proved(s->axis, ptr)->contiguity[d] < t->shape[d] || info->divisibility[d] < 16 ||
		    !tma_tile_fits(&s->ctx->layouts, t, d, mem))
			continue;
		*out = (struct tma_tile){.along = d};
		if (stride_of(s, ptr, d, &along) && same_product(&along, &one) && stride_of(s, ptr, 1 - d, &rows) &&
		    rows.times > 0 &&
		    multiply_products(&rows, &(struct launch_product){.times = bytes}, &out->distance))
			return true;
	}
	return false;
}

#include "gpu/tma/tma_tile.h"

#include "support/thresholds.h"
#include "transform/first_element.h"

/* --- strides ---------------------------------------------------------------------------------------------------- */

struct strides {
	const struct pass_state *s;
	u32 operations; /* operations visited */
};

static bool find_stride(struct strides *s, const struct value *v, int d, struct launch_product *out);

/* The stride of a sum or difference. */
static bool add_strides(struct strides *s, const struct op *o, int d, struct launch_product *out)
{
	struct launch_product x, y, alike;
	if (!find_stride(s, operand(o, 0), d, &x) || !find_stride(s, operand(o, 1), d, &y))
		return false;
	*out = x.times ? x : y;
	alike = y;
	alike.times = x.times;
	return (!x.times || !y.times || same_product(&x, &alike)) &&
	       !(o->code == IR_SUBI ? __builtin_sub_overflow(x.times, y.times, &out->times)
				    : __builtin_add_overflow(x.times, y.times, &out->times));
}

/* The stride of a product of a tile and a number that the host knows. */
static bool scale_stride(struct strides *s, const struct op *o, int d, struct launch_product *out)
{
	struct launch_product x, y;
	for (u32 i = 0; i < 2; i++)
		if (is_launch_product(s->s->k, operand(o, 1 - i), &y) && find_stride(s, operand(o, i), d, &x) &&
		    multiply_products(&x, &y, out))
			return true;
	return false;
}

static bool find_stride(struct strides *s, const struct value *v, int d, struct launch_product *out)
{
	const struct op *o = v->def;
	*out = (struct launch_product){0};
	if (v->type->shape[d] == 1 || axis_of(s->s->axis, v)->constancy[d] >= v->type->shape[d])
		return true;
	if (axis_proved(s->s->axis, v)->contiguity[d] >= v->type->shape[d]) {
		out->times = 1;
		return true;
	}
	if (!o || ++s->operations > MAX_INDEX_OPERATIONS)
		return false;
	switch (o->code) {
	case IR_ADDPTR:
	case IR_ADDI:
	case IR_SUBI: return add_strides(s, o, d, out);
	case IR_MULI: return scale_stride(s, o, d, out);
	case IR_EXTSI:
	case IR_CONVERT_LAYOUT: return find_stride(s, operand(o, 0), d, out);
	case IR_BROADCAST:
	case IR_EXPAND_DIMS:
	case IR_TRANS: {
		int from = operand_dim(o, d);
		return from < 0 || find_stride(s, operand(o, 0), from, out);
	}
	default: return false;
	}
}

/* The stride of v from an element to the next along d. False if it is not the same everywhere, or not known to the
 * host. As in axis.h, index arithmetic is assumed not to wrap. */
static bool stride_of(const struct pass_state *s, const struct value *v, int d, struct launch_product *out)
{
	return find_stride(&(struct strides){.s = s}, v, d, out);
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

/* Gathers and histograms: elements selected, or counted, by the indices in a tile. */
#include "interp/interp_internal.h"

struct gather_plan {
	enum dtype dtype; /* type of the indices */
	u32 bytes;        /* size of a gathered element */
	i32 extent;       /* length of the source's axis */
	/* inner: product of the dimensions after the axis, in source and result; row: product of the index's dimensions
	 * from the axis on, including it */
	i64 inner, row;
	bool masked;
};

/* The index stored in element k of a tile. */
static inline i64 number_at(const char *tile, enum dtype d, i64 k)
{
	u64 bits = 0;
	memcpy(&bits, tile + k * dtype_bytes(d), (size_t)dtype_bytes(d));
	return dtype_decode_int(d, bits);
}

/* An index is reduced modulo the length of the axis, a power of two. */
static bool run_gather(struct env *e, const struct inst *i)
{
	const struct gather_plan *w = i->plan;
	const char *from = e->at[i->in[0]], *index = e->at[i->in[1]];
	char *to = e->at[i->out[0]];
	for (i64 k = 0; k < i->n; k++) {
		i64 at = number_at(index, w->dtype, k) & (w->extent - 1);
		i64 source = (k / w->row * w->extent + at) * w->inner + k % w->inner;
		memcpy(to + k * w->bytes, from + source * w->bytes, w->bytes);
	}
	return true;
}

static bool run_histogram(struct env *e, const struct inst *i)
{
	const struct gather_plan *w = i->plan;
	const char *numbers = e->at[i->in[0]];
	const mem8 *mask = w->masked ? e->at[i->in[1]] : NULL;
	mem32 *count = e->at[i->out[0]];
	memset(count, 0, (size_t)i->n * sizeof *count);
	for (i64 k = 0; k < w->row; k++) {
		i64 bin = number_at(numbers, w->dtype, k);
		if (bin >= 0 && bin < i->n && (!mask || mask[k]))
			count[bin]++;
	}
	return true;
}

void plan_gather(struct planner *p, const struct op *o, struct inst *i)
{
	struct gather_plan *w = plan_alloc(p, sizeof *w);
	const struct type *from = operand(o, 0)->type;
	i->plan = w;
	w->masked = o->noperands > 1;
	if (o->code == IR_HISTOGRAM) {
		w->dtype = type_dtype(from);
		w->row = type_numel(from);
		i->run = run_histogram;
		return;
	}
	const struct type *index = operand(o, 1)->type;
	int axis = (int)o->attr[ATTR_AXIS];
	w->dtype = type_dtype(index);
	w->bytes = elem_bytes(from);
	w->extent = from->shape[axis];
	w->inner = 1;
	for (int d = axis + 1; d < from->rank; d++)
		w->inner *= from->shape[d];
	w->row = w->inner * index->shape[axis];
	i->run = run_gather;
}

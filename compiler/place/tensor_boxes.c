/* Boxes of tensors: loads whose mask says no more than that the place lies in the tensor. The copy engine compares
 * places with a tensor's sizes itself and fills in zeros outside, so such a load needs neither addresses nor a mask.
 *
 * A descriptor's load of the block at (i, j) is, after the passes before,
 *
 *     rows    = splat(i) + arange(0, M)                 columns = splat(j) + arange(0, N)
 *     address = base + rows[:, None] * stride + columns[None, :]
 *     mask    = (rows >= 0 & rows < m)[:, None] & (columns >= 0 & columns < n)[None, :]
 *
 * where comparisons that always hold are gone. Rows in addresses and in the mask may be different values, since each
 * has the layout of its own: they are the same if they begin at the same scalar. */
#include "opt/ranges.h"
#include "place/boxes.h"

/* A tile and the dimension of the load's that each of its own is. */
struct part {
	struct value *v;
	u8 dims[2];
};

/* A row of places along a dimension: start, start + 1, …, as they are without a width; start is *by, an i32, or c. */
struct places {
	struct value *by, *splat; /* of by */
	i64 c;
	int dim;
};

struct finder {
	const struct pass_state *s;
	const struct type *tile;
	struct arena scratch;
	VEC(struct part) work;
	struct places rows[2];
	bool known[2], at_least_0[2], bounded[2];
	struct value *stride_by[2];
	i64 stride[2];
	struct box *out;
};

/* Without operations that only change the shape. */
static struct part peel(struct part p)
{
	const struct op *o;
	while ((o = p.v->def) &&
	       (o->code == IR_EXPAND_DIMS || o->code == IR_BROADCAST || o->code == IR_CONVERT_LAYOUT)) {
		if (o->code == IR_EXPAND_DIMS && o->attr[ATTR_AXIS] == 0)
			p.dims[0] = p.dims[1];
		p.v = operand(o, 0);
	}
	return p;
}

/* Does it wrap nowhere? What is wider than an index of 32 bits does not. */
static bool is_exact(const struct finder *f, const struct value *v)
{
	return type_elem_bits(v->type) == 64 || !value_range(f->s->ranges, v)->wraps;
}

static struct part without_extension(struct part p)
{
	p = peel(p);
	if (p.v->def && p.v->def->code == IR_EXTSI) {
		p.v = operand(p.v->def, 0);
		p = peel(p);
	}
	return p;
}

struct value *box_start(const struct value *splat)
{
	struct value *v = operand(splat->def, 0);
	return v->def && v->def->code == IR_EXTSI ? operand(v->def, 0) : v;
}

/* Is it the same number everywhere, and one of 32 bits? */
static bool is_start(struct part p, struct places *out)
{
	p = peel(p);
	*out = (struct places){0};
	if (value_const_int(p.v, &out->c))
		return out->c == (i32)out->c;
	if (!p.v->def || p.v->def->code != IR_SPLAT)
		return false;
	out->c = 0;
	out->splat = p.v;
	out->by = box_start(p.v);
	return out->by->type->kind == TY_SCALAR && type_elem_bits(out->by->type) == 32;
}

static bool is_row(const struct finder *f, struct part p, struct places *out)
{
	*out = (struct places){0};
	p = without_extension(p);
	const struct op *o = p.v->def;
	if (o && o->code == IR_ADDI) {
		struct part x = {operand(o, 0), {p.dims[0], p.dims[1]}}, y = {operand(o, 1), {p.dims[0], p.dims[1]}};
		bool first = is_start(x, out);
		if (!is_exact(f, p.v) || (!first && !is_start(y, out)))
			return false;
		p = without_extension(first ? y : x);
		o = p.v->def;
	}
	out->dim = p.dims[0];
	return o && o->code == IR_MAKE_RANGE && !o->attr[ATTR_START] && o->attr[ATTR_END] == f->tile->shape[out->dim];
}

static void ask(struct finder *f, struct value *v, struct part whole)
{
	whole.v = v;
	vec_push(&f->scratch, &f->work, whole);
}

/* --- addresses ----------------------------------------------------------------------------------------------- */

static bool add_row(struct finder *f, const struct places *row, struct value *by, i64 stride)
{
	int d = row->dim;
	if (f->known[d])
		return false;
	f->known[d] = true;
	f->rows[d] = *row;
	f->stride_by[d] = by;
	f->stride[d] = stride;
	return true;
}

/* A part of the offsets: a row of places times a stride, or a sum. */
static bool add_offset(struct finder *f, struct part p)
{
	struct places row;
	struct value *by;
	i64 stride;
	p = peel(p);
	const struct op *o = p.v->def;
	if (is_row(f, p, &row))
		return add_row(f, &row, NULL, 1);
	if (!o || !is_exact(f, o->code == IR_EXTSI ? operand(o, 0) : p.v))
		return false;
	if (o->code == IR_EXTSI || o->code == IR_ADDI) {
		for (u32 i = 0; i < o->noperands; i++)
			ask(f, operand(o, i), p);
		return true;
	}
	for (u32 i = 0; o->code == IR_MULI && i < 2; i++) {
		struct part x = {operand(o, i), {p.dims[0], p.dims[1]}};
		if (same_scalar(operand(o, 1 - i), &by, &stride) && is_row(f, x, &row))
			return add_row(f, &row, by, stride);
	}
	return false;
}

static bool read_addresses(struct finder *f, struct value *ptr)
{
	struct part p = {ptr, {0, 1}};
	const struct op *o;
	for (;;) {
		p = peel(p);
		o = p.v->def;
		if (!o || (o->code != IR_ADDPTR && o->code != IR_SPLAT))
			return false;
		if (o->code == IR_SPLAT)
			break;
		ask(f, operand(o, 1), p);
		while (f->work.len)
			if (!add_offset(f, f->work.at[--f->work.len]))
				return false;
		p.v = operand(o, 0);
	}
	f->out->tensor = operand(o, 0);
	return !f->out->tensor->def && !f->out->tensor->block->parent && f->known[0] && f->known[1];
}

/* --- the mask ------------------------------------------------------------------------------------------------ */

static bool add_comparison(struct finder *f, const struct op *o, struct part p)
{
	struct value *by;
	struct places row;
	i64 c;
	p.v = operand(o, 0);
	if (!is_row(f, p, &row) || !same_scalar(operand(o, 1), &by, &c))
		return false;
	const struct places *place = &f->rows[row.dim];
	if (place->by != row.by || place->c != row.c)
		return false;
	if (o->attr[ATTR_PREDICATE] == CMPI_SGE && !by && c == 0)
		return f->at_least_0[row.dim] = true;
	if (o->attr[ATTR_PREDICATE] != CMPI_SLT || f->bounded[row.dim])
		return false;
	f->bounded[row.dim] = true;
	f->out->size[row.dim] = by;
	f->out->most[row.dim] = c;
	return true;
}

static bool read_mask(struct finder *f, struct value *mask)
{
	if (mask)
		ask(f, mask, (struct part){.dims = {0, 1}});
	while (f->work.len) {
		struct part p = peel(f->work.at[--f->work.len]);
		const struct op *o = p.v->def;
		if (o && o->code == IR_ANDI) {
			ask(f, operand(o, 0), p);
			ask(f, operand(o, 1), p);
		} else if (!o || o->code != IR_CMPI || !add_comparison(f, o, p)) {
			return false;
		}
	}
	return true;
}

/* Does the tensor begin where the mask does, and is there a size of the tensor that says as much as the mask? */
static bool settle_bounds(struct finder *f)
{
	for (int d = 0; d < 2; d++) {
		const struct places *p = &f->rows[d];
		if (!f->at_least_0[d] && (p->by ? value_range(f->s->ranges, p->by)->min : p->c) < 0)
			return false;
		if (!f->bounded[d])
			f->out->most[d] = (i64)1 << 31; /* no place is further on */
		if (!f->out->size[d] && (f->out->most[d] < 1 || f->out->most[d] > (i64)1 << 31))
			return false;
		f->out->start[d] = p->splat;
		if (!p->by && p->c)
			return false;
	}
	return true;
}

/* Does the box begin at a multiple of 16 bytes of its row? An H100 calls others illegal instructions. */
static bool begins_aligned(const struct finder *f, int d, i64 bytes)
{
	const struct value *start = f->out->start[d];
	return !start || axis_of(f->s->axis, start)->divisibility[0] * bytes % 16 == 0;
}

static bool find(struct finder *f, const struct op *load, const struct layout *mem)
{
	const struct type *t = f->tile;
	if (!read_addresses(f, operand(load, 0)) || !read_mask(f, load->noperands > 1 ? operand(load, 1) : NULL) ||
	    !settle_bounds(f))
		return false;
	i64 bytes = dtype_bytes(type_elem(t)->elem->dtype);
	for (int d = 0; d < 2; d++) {
		struct value *by = f->stride_by[1 - d];
		i64 rows = f->stride[1 - d];
		if (f->stride_by[d] || f->stride[d] != 1 || rows <= 0 || rows > INT32_MAX ||
		    (!by && rows * bytes % 16) || !begins_aligned(f, d, bytes) ||
		    !box_fits(&f->s->ctx->layouts, t, d, mem))
			continue;
		f->out->along = d;
		f->out->stride = by;
		f->out->factor = rows * bytes;
		return true;
	}
	return false;
}

bool find_tensor_box(const struct pass_state *s, const struct op *load, const struct layout *mem, struct box *out)
{
	const struct type *t = operand(load, 0)->type;
	struct finder f = {.s = s, .tile = t, .out = out};
	*out = (struct box){0};
	bool found = type_is_tensor(t) && t->rank == 2 && type_elem(t)->elem->kind == TY_SCALAR &&
		     load_fills_zero(load) && find(&f, load, mem);
	arena_free(&f.scratch);
	if (!found)
		*out = (struct box){0};
	return found;
}

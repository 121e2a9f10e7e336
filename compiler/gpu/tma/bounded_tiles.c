/* TMA tiles of tensors: loads with a mask that only says that the coordinates are inside the tensor. TMA compares
 * coordinates with the tensor's sizes itself and fills in zeros outside, so such a load needs neither addresses nor a
 * mask.
 *
 * A descriptor's load of the block at (i, j) is, after the earlier passes,
 *
 *     rows    = splat(i) + arange(0, M)                 columns = splat(j) + arange(0, N)
 *     address = base + rows[:, None] * stride + columns[None, :]
 *     mask    = (rows >= 0 & rows < m)[:, None] & (columns >= 0 & columns < n)[None, :]
 *
 * without comparisons that always hold. A loop that advances pointers loads the block at (0, j) plus an offset that it
 * carries, which grows from 0 in equal steps, and compares with the rest of the tensor: columns < n - index. That is
 * the block at (index, j), or at a multiple of the index. If the loop begins at another number than 0, its pointers
 * must begin at the block of that number. The rows in addresses and in the mask may be different values, since each has
 * a separate layout: they are the same rows if they begin at the same scalar. */
#include "analysis/index_forms.h"
#include "analysis/launch_bounds.h"
#include "gpu/tma/tma_tile.h"

/* A tile of the load's shape, or a one-dimensional tile along dimension `dim` of the load. */
struct address_part {
	struct value *v;
	int dim;
};

/* A row of coordinates along a dimension: start, start + 1, …, as unbounded integers. start is *by or c, plus times *
 * *index. */
struct coordinates {
	struct value *by, *splat; /* splat of `by` */
	struct value *index;      /* of a loop; NULL: 0 */
	i64 times, c;
	int dim;
	struct launch_product stride; /* in elements */
	bool known;               /* the addresses have such a row */
	bool at_least_0, bounded; /* the mask excludes coordinates below 0; from the tensor's size on */
};

/* An offset that a loop carries: (index - from) * stride. */
struct advance {
	struct value *index, *from; /* from: the loop's lower bound; NULL: 0 */
	struct launch_product stride;
};

struct finder {
	const struct pass_state *s;
	const struct type *tile;
	struct arena scratch;
	VEC(struct address_part) work;
	VEC(struct advance) advances;
	struct coordinates rows[2]; /* of each dimension */
	struct tma_tile *out;
};

/* Skips operations that change only the shape or the layout. */
static struct address_part peel(struct address_part p)
{
	const struct op *o;
	while ((o = p.v->def) &&
	       (o->code == IR_EXPAND_DIMS || o->code == IR_BROADCAST || o->code == IR_CONVERT_LAYOUT)) {
		if (o->code == IR_EXPAND_DIMS)
			p.dim = !o->attr[ATTR_AXIS];
		p.v = operand(o, 0);
	}
	return p;
}

static bool is_exact(const struct finder *f, const struct value *v)
{
	return bounds_keep_exact(f->s->k, f->s->ranges, v);
}

/* Sets `narrow` if v, a part of an offset with fewer than 64 bits, may wrap. The launch then checks that the offset of
 * the tensor's last element fits 31 bits, so that no part wraps. A product of two variables always counts as a part
 * that may wrap, because range analysis treats it as a separate variable. */
static void note_width(struct finder *f, const struct value *v)
{
	const struct op *o = v->def;
	i64 c;
	bool unknown =
		o && o->code == IR_MULI && !value_const_int(operand(o, 0), &c) && !value_const_int(operand(o, 1), &c);
	f->out->narrow |= type_elem_bits(v->type) < 64 && (unknown || value_range(f->s->ranges, v)->wraps);
}

static struct address_part without_extension(struct address_part p)
{
	p = peel(p);
	if (def_if(p.v, IR_EXTSI))
		p.v = operand(p.v->def, 0);
	return peel(p);
}

struct value *tma_tile_start(const struct value *splat)
{
	struct value *v = operand(splat->def, 0);
	return def_if(v, IR_EXTSI) ? operand(v->def, 0) : v;
}

/* True if all elements are the same number, which fits 32 bits in launches within the kernel's launch bounds. Kernels
 * for Triton's launcher have no bounds: a larger number is clamped, and is outside the tensor. */
static bool is_start(const struct finder *f, struct value *v, struct coordinates *out)
{
	v = peel((struct address_part){.v = v}).v;
	*out = (struct coordinates){0};
	if (value_const_int(v, &out->c))
		return out->c == (i32)out->c;
	if (!def_if(v, IR_SPLAT))
		return false;
	out->splat = v;
	out->by = tma_tile_start(v);
	return out->by->type->kind == TY_SCALAR &&
	       (type_elem_bits(out->by->type) == 32 ||
		(type_elem_bits(out->by->type) == 64 &&
		 (is_foreign(f->s->k) || bounds_keep_within(f->s->k, f->s->ranges, out->by, INT32_MAX))));
}

static bool is_row(const struct finder *f, struct address_part p, struct coordinates *out)
{
	*out = (struct coordinates){0};
	p = without_extension(p);
	const struct op *sum = def_if(p.v, IR_ADDI);
	if (sum) {
		bool first = is_start(f, operand(sum, 0), out);
		if (!is_exact(f, p.v) || (!first && !is_start(f, operand(sum, 1), out)))
			return false;
		p.v = operand(sum, first);
		p = without_extension(p);
	}
	const struct op *range = def_if(p.v, IR_MAKE_RANGE);
	out->dim = p.dim;
	return range && !range->attr[ATTR_START] && range->attr[ATTR_END] == f->tile->shape[p.dim];
}

static void ask(struct finder *f, struct value *v, int dim)
{
	vec_push(&f->scratch, &f->work, ((struct address_part){v, dim}));
}

/* --- addresses ----------------------------------------------------------------------------------------------- */

static bool add_row(struct finder *f, const struct coordinates *row, struct launch_product stride)
{
	struct coordinates *out = &f->rows[row->dim];
	if (out->known)
		return false;
	*out = *row;
	out->known = true;
	out->stride = stride;
	return true;
}

/* True if v, the step that a loop adds to an offset, is a product known at launch. No product inside may wrap. */
static bool is_scaled(struct finder *f, struct value *v, struct launch_product *by)
{
	bool yes = is_launch_product(f->s->k, v, by); /* with few factors */
	value_vec work = {0};
	vec_push(&f->scratch, &work, v);
	while (yes && work.len) {
		v = work.at[--work.len];
		note_width(f, v);
		for (u32 i = 0;
		     v->def && (v->def->code == IR_EXTSI || v->def->code == IR_MULI) && i < v->def->noperands; i++)
			vec_push(&f->scratch, &work, operand(v->def, i));
	}
	return yes;
}

/* True if the scalar v is an offset that a loop carries. Then it is added to f->advances. */
static bool add_advance(struct finder *f, struct value *v)
{
	struct value *by = increment_of(v);
	const struct op *loop = by ? v->block->parent : NULL;
	i64 step;
	if (!loop || type_elem_bits(for_index(loop)->type) != 32 || type_elem_bits(v->type) != 64 ||
	    !value_is_int(for_init(loop, for_arg_number(v)), 0) || !value_const_int(for_step(loop), &step) || step <= 0)
		return false;
	struct value *from = for_lower(loop);
	struct advance a = {.index = for_index(loop), .from = value_is_int(from, 0) ? NULL : from};
	if (!is_scaled(f, by, &a.stride) || a.stride.times % step)
		return false;
	a.stride.times /= step;
	vec_push(&f->scratch, &f->advances, a);
	return true;
}

static bool is_multiple_of(struct launch_product x, const struct launch_product *y, i64 *times)
{
	bool positive = x.times > 0 && y->times > 0 && x.times % y->times == 0;
	*times = positive ? x.times / y->times : 0;
	x.times = y->times;
	return positive && same_product(&x, y);
}

/* Adds each carried offset to the row of coordinates whose stride divides the offset's step: the quotient, times the
 * loop's index, is added to the row's start. Where the loop begins at another number than 0, the row must begin there
 * too and advance as the index does: its start is then the index. */
static bool settle_advances(struct finder *f)
{
	for (u32 i = 0; i < f->advances.len; i++) {
		const struct advance *a = &f->advances.at[i];
		bool found = false;
		for (int d = 0; d < 2 && !found; d++) {
			struct coordinates *row = &f->rows[d];
			i64 times;
			found = is_multiple_of(a->stride, &row->stride, &times) && !row->index && !row->c &&
				(!a->from || (times == 1 && row->by == a->from));
			if (found && a->from)
				row->by = row->splat = NULL;
			if (found) {
				row->index = a->index;
				row->times = times;
			}
		}
		if (!found)
			return false;
	}
	return true;
}

/* Reads a part of the offsets: a row of coordinates times a stride, or a sum. */
static bool add_offset(struct finder *f, struct address_part p)
{
	struct coordinates row;
	struct launch_product stride = {.times = 1};
	p = peel(p);
	const struct op *o = p.v->def;
	if (is_row(f, p, &row))
		return add_row(f, &row, stride);
	if (!o)
		return false;
	if (o->code == IR_SPLAT)
		return add_advance(f, operand(o, 0));
	note_width(f, o->code == IR_EXTSI ? operand(o, 0) : p.v);
	if (o->code == IR_EXTSI || o->code == IR_ADDI) {
		for (u32 i = 0; i < o->noperands; i++)
			ask(f, operand(o, i), p.dim);
		return true;
	}
	for (u32 i = 0; o->code == IR_MULI && i < 2; i++) {
		struct address_part x = {operand(o, i), p.dim};
		if (is_launch_product(f->s->k, operand(o, 1 - i), &stride) && is_row(f, x, &row))
			return add_row(f, &row, stride);
	}
	return false;
}

/* True if v is not negative in launches within the kernel's launch bounds. */
static bool is_not_negative(const struct finder *f, const struct value *v)
{
	return bounds_keep_within(f->s->k, f->s->ranges, v, INT64_MAX);
}

/* is_not_negative for an offset in elements, which may exceed 2^31: all its terms and factors are not negative. A
 * 64-bit offset does not wrap if the memory exists. */
static bool is_forward(const struct finder *f, const struct value *v)
{
	const struct op *o = v->def;
	bool parts = o && (o->code == IR_ADDI || o->code == IR_MULI || o->code == IR_EXTSI);
	for (u32 i = 0; parts && i < o->noperands; i++)
		parts = is_forward(f, operand(o, i));
	return (parts && is_exact(f, v)) || is_not_negative(f, v);
}

/* From a pointer that is defined before the loop and aligned to 16 bytes, back to the parameter that it is computed
 * from; NULL: none. The parameter points to the same memory, or to memory before it. */
static struct value *read_moves(struct finder *f, const struct op *load, struct value *ptr)
{
	if (type_is_tensor(ptr->type) || axis_of(f->s->axis, ptr)->divisibility[0] % 16 ||
	    !value_defined_outside(ptr, load->block))
		return NULL;
	f->out->begin = ptr;
	while (def_if(ptr, IR_ADDPTR)) {
		if (!is_forward(f, operand(ptr->def, 1)))
			return NULL;
		ptr = operand(ptr->def, 0);
	}
	return ptr;
}

/* The parameter from which the load's pointers are computed, as a tile or as one scalar; NULL: none. */
static struct value *read_base(struct finder *f, const struct op *load)
{
	struct address_part p = {operand(load, 0), 0};
	const struct op *o;
	for (p = peel(p); (o = p.v->def) && (o->code == IR_ADDPTR || o->code == IR_SPLAT); p = peel(p)) {
		if (o->code == IR_ADDPTR && !type_is_tensor(p.v->type) && !add_advance(f, operand(o, 1))) {
			p.v = read_moves(f, load, p.v);
			break;
		}
		if (o->code == IR_ADDPTR && type_is_tensor(p.v->type))
			ask(f, operand(o, 1), p.dim);
		while (f->work.len)
			if (!add_offset(f, f->work.at[--f->work.len]))
				return NULL;
		p.v = operand(o, 0);
	}
	return p.v && !p.v->def && !p.v->block->parent ? p.v : NULL;
}

static bool read_addresses(struct finder *f, const struct op *load)
{
	f->out->tensor = read_base(f, load);
	return f->out->tensor && f->rows[0].known && f->rows[1].known && settle_advances(f);
}

/* --- the mask ------------------------------------------------------------------------------------------------ */

/* True if v is the term that the loop adds to the row's start. */
static bool is_advance(const struct finder *f, struct value *v, const struct coordinates *row)
{
	const struct op *o = v ? def_if(v, IR_MULI) : NULL;
	i64 c;
	for (u32 i = 0; o && i < 2; i++)
		if (operand(o, i) == row->index && value_const_int(operand(o, 1 - i), &c))
			return c == row->times && is_exact(f, v);
	return v == row->index && row->times == 1;
}

/* The scalar x if v is size - x in all elements; otherwise NULL. */
static struct value *subtracted(const struct finder *f, struct value *v, struct launch_product *size)
{
	v = peel((struct address_part){.v = v}).v;
	const struct op *splat = def_if(v, IR_SPLAT), *o = splat ? def_if(operand(splat, 0), IR_SUBI) : NULL;
	return o && is_exact(f, result(o)) && is_launch_product(f->s->k, operand(o, 0), size) ? operand(o, 1) : NULL;
}

static bool add_comparison(struct finder *f, const struct op *o, struct address_part p)
{
	struct launch_product size;
	struct coordinates row;
	p.v = operand(o, 0);
	if (!is_row(f, p, &row))
		return false;
	struct coordinates *place = &f->rows[row.dim];
	struct value *x = row.by, *y = subtracted(f, operand(o, 1), &size);
	bool same = place->index
			    ? (x == place->by && is_advance(f, y, place)) || (y == place->by && is_advance(f, x, place))
			    : (x == place->by && !y) || (y == place->by && !x);
	if (!same || place->c != row.c || (!y && !is_launch_product(f->s->k, operand(o, 1), &size)))
		return false;
	if (o->attr[ATTR_PREDICATE] == CMPI_SGE && !size.times)
		return place->at_least_0 = true;
	if (o->attr[ATTR_PREDICATE] != CMPI_SLT || place->bounded)
		return false;
	place->bounded = true;
	f->out->size[row.dim] = size;
	return true;
}

static bool read_mask(struct finder *f, struct value *mask)
{
	if (mask)
		ask(f, mask, 0);
	while (f->work.len) {
		struct address_part p = peel(f->work.at[--f->work.len]);
		const struct op *o = p.v->def;
		if (o && o->code == IR_ANDI) {
			ask(f, operand(o, 0), p.dim);
			ask(f, operand(o, 1), p.dim);
		} else if (!o || o->code != IR_CMPI || !add_comparison(f, o, p)) {
			return false;
		}
	}
	return true;
}

/* The value x where v is x, x / by, or (x + *more) / by; NULL: unknown. */
static struct value *counted_by(const struct finder *f, struct value *v, i64 by, i64 *more)
{
	i64 c;
	const struct op *div = def_if(v, IR_DIVSI);
	struct value *up = divided_up(v, &c);
	*more = 0;
	if (by == 1 || value_const_int(v, &c))
		return v;
	if (!div || !value_is_int(operand(div, 1), by))
		return NULL;
	if (up)
		*more = is_known_multiple(f->s->k, up, by) ? 0 : by - 1;
	return up ? up : operand(div, 0);
}

/* The value x where v = max(x, 0); otherwise v. */
static struct value *without_floor_of_0(struct value *v)
{
	const struct op *most = def_if(v, IR_MAXSI);
	return most && value_is_int(operand(most, 1), 0) ? operand(most, 0) : v;
}

/* Sets the tensor's size from the bound of a loop, for coordinates from times * index to a tile length later. The tile
 * of the last index ends where the loop does, or up to a tile length later. */
static void bound_by_loop(struct finder *f, int d, const struct op *loop, i64 times)
{
	struct launch_product size;
	i64 from, step, more, by, to = 1, places = f->tile->shape[d];
	if (!loop || !value_const_int(for_lower(loop), &from) || !value_const_int(for_step(loop), &step) || step <= 0 ||
	    times <= 0 || __builtin_mul_overflow(step, times, &by))
		return;
	struct value *end = for_upper(loop), *whole = times == 1 ? rounded_down(end, &to) : NULL;
	if (whole)
		end = without_floor_of_0(whole);
	struct value *all = counted_by(f, end, times, &more);
	if (!all || !is_launch_product(f->s->k, all, &size))
		return;
	bool counts = !size.nparams; /* a bound of the index, not of coordinates */
	if (counts && __builtin_mul_overflow(size.times, times, &size.times))
		return;
	/* the loop's range is a multiple of its step, so the last iteration ends exactly at the upper bound */
	bool steps = step == 1 || (from % step == 0 &&
				   (counts ? size.times % by == 0
					   : times == 1 && (to % step == 0 || is_known_multiple(f->s->k, all, step))));
	more += steps && places <= by ? 0 : MAX(places - times, 0);
	i64 *sum = counts ? &size.times : &size.plus;
	if (__builtin_add_overflow(*sum, more, sum))
		return;
	f->out->size[d] = size;
	f->rows[d].bounded = true;
}

/* Sets a bound without a mask: the coordinates are constant, or follow from a loop's index. */
static void bound_without_mask(struct finder *f, int d)
{
	struct coordinates *row = &f->rows[d];
	struct value *index = row->by ? row->by : row->index;
	i64 times = row->by ? 1 : row->times;
	if (row->bounded || (row->by && row->index))
		return;
	if (!index) {
		f->out->size[d].times = row->c + f->tile->shape[d];
		row->bounded = true;
		return;
	}
	if (def_if(index, IR_MULI) && value_const_int(operand(index->def, 1), &times))
		index = operand(index->def, 0);
	bound_by_loop(f, d, loop_of_index(index), times);
}

/* Sets the tile's start and size. True if no coordinate is negative without a mask, and the sizes of the tensor express
 * the rest of the mask. */
static bool settle_bounds(struct finder *f)
{
	for (int d = 0; d < 2; d++) {
		const struct coordinates *p = &f->rows[d];
		if (f->out->narrow || p->index)
			bound_without_mask(f, d);
		const struct value *start = p->by;
		if (!start && p->index)
			start = for_lower(loop_of_index(p->index));
		if (!p->at_least_0 && !(start ? is_not_negative(f, start) : p->c >= 0))
			return false;
		if (!p->bounded)
			f->out->size[d].times = (i64)1 << 31; /* larger than all coordinates */
		const struct launch_product *size = &f->out->size[d];
		if (!size->nparams && (size->times < 1 || size->times > (i64)1 << 31))
			return false;
		if (p->index && !p->bounded && (p->by || p->times != 1)) /* the sum may wrap */
			return false;
		f->out->start[d] = p->splat;
		f->out->index[d] = p->index;
		f->out->times[d] = p->times;
		if (!p->by && p->c)
			return false;
	}
	return true;
}

/* True if the tile begins at a multiple of 16 bytes in its row. On an H100, other tiles raise an illegal
 * instruction. */
static bool begins_aligned(const struct finder *f, int d, i64 bytes)
{
	const struct value *start = f->out->start[d], *index = f->out->index[d];
	return (!start || axis_of(f->s->axis, start)->divisibility[0] * bytes % 16 == 0) &&
	       (!index || axis_of(f->s->axis, index)->divisibility[0] * f->out->times[d] * bytes % 16 == 0);
}

static bool find(struct finder *f, const struct op *load, const struct layout *mem)
{
	const struct type *t = f->tile;
	if (!read_addresses(f, load) || !read_mask(f, load->noperands > 1 ? operand(load, 1) : NULL) ||
	    !settle_bounds(f))
		return false;
	i64 bytes = dtype_bytes(type_elem(t)->elem->dtype);
	const struct launch_product one = {.times = 1}, elem = {.times = bytes};
	for (int d = 0; d < 2; d++) {
		const struct launch_product *rows = &f->rows[1 - d].stride;
		if (!same_product(&f->rows[d].stride, &one) || rows->times <= 0 || rows->times > INT32_MAX ||
		    (!rows->nparams && rows->times * bytes % 16) || !begins_aligned(f, d, bytes) ||
		    !tma_tile_fits(&f->s->ctx->layouts, t, d, mem))
			continue;
		f->out->along = d;
		return multiply_products(rows, &elem, &f->out->distance) &&
		       (!f->out->narrow || (f->rows[0].bounded && f->rows[1].bounded));
	}
	return false;
}

bool find_bounded_tile(const struct pass_state *s, const struct op *load, const struct layout *mem,
		       struct tma_tile *out)
{
	const struct type *t = operand(load, 0)->type;
	struct finder f = {.s = s, .tile = t, .out = out};
	*out = (struct tma_tile){0};
	bool found = type_is_tensor(t) && t->rank == 2 && type_elem(t)->elem->kind == TY_SCALAR &&
		     load_fills_zero(load) && find(&f, load, mem);
	arena_free(&f.scratch);
	if (!found)
		*out = (struct tma_tile){0};
	return found;
}

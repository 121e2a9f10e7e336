/* Modulo to mask: a load from `ptr + (index % size) * stride` becomes a load under the mask `index < size`, if the
 * elements with indices beyond the size are not demanded. Same for `where(index < size, index, 0)` and `minimum(index,
 * size - 1)`.
 *
 * Tutorials keep the rows of a tile inside the matrix by a modulo, and store only the rows of the result below the
 * size. A mask has the same effect. The rows are then consecutive, so that TMA can load them as a tile, and a CPU loads
 * contiguous elements. */
#include "ir/graph.h"
#include "analysis/axis.h"
#include "analysis/demanded_rows.h"
#include "ir/pass.h"
#include "analysis/launch_bounds.h"

/* A scalar v, or the constant c if v is NULL. */
struct number {
	struct value *v;
	i64 c;
};

/* The addresses and loads that depend on a wrapped index, each with the dimension that the dimension of the index
 * becomes there. */
struct reach {
	const struct op *kept;      /* the remainder, select or minimum, of `index` and `size` */
	struct value *index;
	struct number size;
	struct arena scratch;
	VEC(struct tile_dim) at; /* worklist; each value enters once */
	VEC(struct tile_dim) loads; /* results of the loads */
	struct map seen;
	bool fails;
};

static void push(struct reach *r, const struct value *v, int dim)
{
	size_t known = (size_t)map_get(&r->seen, v);
	r->fails |= dim < 0 || (known && known != 1 + (size_t)dim);
	if (known || dim < 0)
		return;
	map_put(&r->seen, v, (void *)(1 + (size_t)dim));
	vec_push(&r->scratch, &r->at, ((struct tile_dim){v, dim}));
}

/* Follows a use to the addresses and loads. Other uses, such as addresses of stores, keep the wrapped index. */
static void follow(struct reach *r, const struct op *o, u32 k, int d)
{
	bool address = o->code == IR_ADDI || o->code == IR_MULI || o->code == IR_EXTSI || o->code == IR_ADDPTR;
	if (address)
		push(r, result(o), d);
	else if (op_is_shape(o) && o->code != IR_RESHAPE)
		push(r, result(o), result_dim(o, d));
	else if (o->code == IR_LOAD && k == 0 && !o->attr[ATTR_VOLATILE])
		vec_push(&r->scratch, &r->loads, ((struct tile_dim){result(o), d}));
}

/* v before sign extensions. */
static struct value *without_extension(const struct value *v)
{
	while (def_if(v, IR_EXTSI))
		v = operand(v->def, 0);
	return (struct value *)v;
}

/* Sets *out to the number that all elements of the tile equal. False if there is none. */
static bool get_number(const struct value *tile, struct number *out)
{
	const struct op *splat = def_if(without_extension(tile), IR_SPLAT);
	*out = (struct number){0};
	if (value_const_int(tile, &out->c))
		return true;
	out->v = splat ? without_extension(operand(splat, 0)) : NULL;
	return splat != NULL;
}

static bool compares_the_same(const struct op *cmp, int d, const void *arg)
{
	const struct reach *r = arg;
	(void)d;
	struct number size;
	return cmp->attr[ATTR_PREDICATE] == CMPI_SLT &&
	       without_extension(operand(cmp, 0)) == without_extension(r->index) &&
	       get_number(operand(cmp, 1), &size) && size.v == r->size.v && size.c == r->size.c;
}

/* True if the load is faster with a mask. On a GPU, a mask costs as much as the remainder, unless TMA replaces both.
 * Indices from a select or minimum are not consecutive, so a mask is always faster than they are. */
static bool is_worth_while(const struct pass_state *s, const struct reach *r, const struct op *load)
{
	const struct type *t = result(load)->type;
	const struct op *around = load->block->parent;
	if (type_elem(t)->kind != TY_SCALAR)
		return false;
	if (s->target->kind == TARGET_CPU || r->kept->code != IR_REMSI)
		return true;
	if (!s->target->has_tensor_copy || t->rank != 2 || !around || around->code != IR_FOR ||
	    !block_has(around->blocks[0], op_is_dot))
		return false;
	int width = MAX(axis_vector_width(s->axis, operand(load, 0), NULL, 0),
			axis_vector_width(s->axis, operand(load, 0), NULL, 1));
	return width * dtype_bytes(type_dtype(t)) == s->target->vector_bytes;
}

/* True if o is a remainder, a select or a minimum of a one-dimensional index tile and a uniform size. Sets *r. */
static bool stays_inside(const struct op *o, struct reach *r)
{
	const struct op *from = o;
	u32 at = 0;
	i64 less = 0;
	*r = (struct reach){.kept = o};
	if (o->code == IR_SELECT)
		from = def_if(operand(o, 0), IR_CMPI);
	else if (o->code == IR_MINSI)
		at = get_number(operand(o, 0), &r->size);
	else if (o->code != IR_REMSI)
		return false;
	if (!from || !get_number(operand(from, 1 - at), &r->size))
		return false;
	r->index = operand(from, at);
	if (o->code == IR_SELECT && (from->attr[ATTR_PREDICATE] != CMPI_SLT || operand(o, 1) != r->index))
		return false;
	if (o->code == IR_REMSI && !r->size.v && r->size.c <= 0)
		return false;
	if (o->code == IR_MINSI && r->size.v) {
		const struct op *last = r->size.v->def;
		if (!last || (last->code != IR_SUBI && last->code != IR_ADDI) ||
		    !value_const_int(operand(last, 1), &less) || less != (last->code == IR_SUBI ? 1 : -1))
			return false;
		r->size.v = operand(last, 0);
	} else if (o->code == IR_MINSI && r->size.c < INT32_MAX) {
		r->size.c++;
	} else if (o->code == IR_MINSI) {
		return false;
	}
	return type_is_tensor(r->index->type) && r->index->type->rank == 1;
}

/* True if the index wraps between tiles only. A hint of contiguity does not prove this: it may be false for the last
 * tile. */
static bool keeps_tiles(const struct pass_state *s, const struct reach *r)
{
	i32 n = r->index->type->shape[0];
	const struct axis_info *index = axis_of(s->axis, r->index);
	bool whole = !r->size.v && r->size.c % n == 0 && index->contiguity[0] >= n && index->divisibility[0] % n == 0;
	return whole || (axis_of(s->axis, result(r->kept))->contiguity[0] >= n && !r->kept->hints);
}

static bool can_mask(const struct pass_state *s, struct reach *r)
{
	if (keeps_tiles(s, r))
		return false;
	push(r, result(r->kept), 0);
	for (u32 i = 0; i < r->at.len && !r->fails; i++)
		for (const struct use *u = r->at.at[i].v->uses; u; u = u->next)
			follow(r, u->user, (u32)(u - u->user->operands), r->at.at[i].dim);
	u32 kept = 0;
	for (u32 i = 0; i < r->loads.len && !r->fails; i++) {
		struct tile_dim p = r->loads.at[i];
		if (is_worth_while(s, r, p.v->def) && demanded_under(p.v, p.dim, compares_the_same, r).v)
			r->loads.at[kept++] = p;
	}
	r->loads.len = kept;
	return !r->fails && r->loads.len &&
	       (r->kept->code != IR_REMSI || bounds_keep_within(s->k, s->ranges, r->index, INT64_MAX));
}

/* Expands a mask along dimension d to the shape of the load's tile. */
static struct value *spread(struct builder *b, struct value *mask, const struct type *tile, int d)
{
	const struct type *elem = type_elem(mask->type);
	i32 shape[MAX_RANK] = {mask->type->shape[0]};
	for (int i = 0; i < tile->rank; i++) {
		if (i == d)
			continue;
		int rank = mask->type->rank;
		memmove(shape + (i < d), shape, sizeof *shape * (size_t)(MAX_RANK - 1));
		shape[i < d ? 0 : rank] = 1;
		mask = build1(b, IR_EXPAND_DIMS, type_tensor(b->ctx, elem, rank + 1, shape), mask);
		mask->def->attr[ATTR_AXIS] = i < d ? 0 : rank;
	}
	return build1(b, IR_BROADCAST, type_with_dtype(b->ctx, tile, DT_I1), mask);
}

static void add_mask(struct pass_state *s, struct op *load, struct value *mask)
{
	struct builder b = builder_before(s->ctx, load);
	if (load->noperands > 1)
		op_set_operand(load, 1, build2(&b, IR_ANDI, mask->type, operand(load, 1), mask));
	else
		op_add_operand(s->ctx, load, mask);
	if (load->noperands == 2)
		op_add_operand(s->ctx, load, build_constant(&b, result(load)->type, 0));
}

struct addresses {
	struct pass_state *s;
	const struct reach *of;
	struct map map; /* value → the same value computed from the index without the wrap */
};

static void make_address(struct op *o, void *arg)
{
	struct addresses *a = arg;
	if (o->nresults != 1 || !map_get(&a->of->seen, result(o)) || map_get(&a->map, result(o)))
		return;
	struct builder b = builder_after(a->s->ctx, o);
	op_clone(&b, o, &a->map);
}

static void visit(struct op *o, void *arg)
{
	struct pass_state *s = arg;
	struct reach r;
	if (!stays_inside(o, &r))
		return;
	r.seen.arena = &r.scratch;
	if (can_mask(s, &r)) {
		struct builder b = builder_after(s->ctx, o);
		const struct type *t = r.index->type, *number = type_scalar(s->ctx, type_dtype(t));
		struct value *size =
			r.size.v && r.size.v->type != number ? build1(&b, IR_EXTSI, number, r.size.v) : r.size.v;
		size = size ? build1(&b, IR_SPLAT, t, size) : build_int(&b, t, r.size.c);
		struct value *mask = build_cmpi(&b, CMPI_SLT, r.index, size);
		struct addresses a = {.s = s, .of = &r, .map.arena = &r.scratch};
		map_put(&a.map, result(o), r.index);
		walk(s->k->body, make_address, &a);
		for (u32 i = 0; i < r.loads.len; i++) {
			struct op *load = r.loads.at[i].v->def;
			add_mask(s, load, spread(&b, mask, result(load)->type, r.loads.at[i].dim));
			op_set_operand(load, 0, mapped(&a.map, operand(load, 0)));
		}
	}
	arena_free(&r.scratch);
}

void pass_modulo_to_mask(struct pass_state *s)
{
	walk(s->k->body, visit, s);
}

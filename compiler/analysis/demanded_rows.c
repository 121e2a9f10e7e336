#include "analysis/demanded_rows.h"

#include "ir/graph.h"

struct uses {
	is_limit *fits;
	const void *arg;
	struct arena scratch;
	VEC(struct tile_dim) at; /* worklist; each value and dimension enters once */
	struct map seen;      /* value → bit set of dimensions, shifted left by 1; bit 0 marks a present entry */
	struct tile_dim mask;    /* the comparison that guards all stores so far; .v is NULL if none was found */
	VEC(const struct op *) around; /* loops that carry demanded values to their next iteration */
	bool all;                      /* all elements are demanded */
};

static void push(struct uses *u, const struct value *v, int dim)
{
	size_t seen = (size_t)map_get(&u->seen, v);
	if (seen >> (1 + dim) & 1)
		return;
	map_put(&u->seen, v, (void *)(seen | 1 | (size_t)2 << dim));
	vec_push(&u->scratch, &u->at, ((struct tile_dim){v, dim}));
}

/* A comparison of an index along dimension d that is true wherever the mask is true; .v is NULL if not known. */
static struct tile_dim comparison(const struct uses *u, const struct value *mask, int d)
{
	struct tile_dim none = {0};
	const struct op *o = mask->def;
	if (d < 0 || !o)
		return none;
	if (o->code == IR_ANDI) {
		struct tile_dim p = comparison(u, operand(o, 0), d);
		return p.v ? p : comparison(u, operand(o, 1), d);
	}
	if (op_is_shape(o))
		return comparison(u, operand(o, 0), operand_dim(o, d));
	bool tiles = o->code == IR_CMPI && type_is_tensor(mask->type) && !type_is_ptr(operand(o, 0)->type);
	return tiles && u->fits(o, d, u->arg) ? (struct tile_dim){mask, d} : none;
}

static void ask_store(struct uses *u, const struct value *mask, int d)
{
	struct tile_dim p = mask ? comparison(u, mask, d) : (struct tile_dim){0};
	u->all |= !p.v || (u->mask.v && (u->mask.v != p.v || u->mask.dim != p.dim));
	u->mask = p;
}

/* Adds to the worklist the values that operand k of a control operation or terminator is passed to. */
static void ask_control(struct uses *u, const struct op *o, u32 k, int d)
{
	const struct op *in = op_has(o, END) ? o->block->parent : o;
	const struct value *v = value_passed_to(o, k);
	u->all |= !v;
	if (!v)
		return;
	push(u, v, d);
	if (o->code == IR_YIELD && op_is_loop(in))
		vec_push(&u->scratch, &u->around, in);
	if (in->code == IR_FOR)
		push(u, &in->results[for_arg_number(v)], d);
	else if (o->code == IR_CONDITION)
		push(u, &in->results[k - 1], d);
}

static void ask(struct uses *u, const struct op *o, u32 k, int d)
{
	int r = o->nresults ? result(o)->type->rank : 0, axis = (int)o->attr[ATTR_AXIS];
	switch (o->code) {
	case IR_STORE:
		u->all |= k != 1;
		ask_store(u, o->noperands > 2 ? operand(o, 2) : NULL, d);
		return;
	case IR_DOT:
		if (k == 2 || d == r - 3 || (k == 0 ? d == r - 2 : d == r - 1))
			push(u, result(o), d);
		else
			u->all = true;
		return;
	case IR_REDUCE:
		u->all |= d == axis || op_reports_inside(o);
		for (u32 i = 0; i < o->nresults && d != axis; i++)
			push(u, &o->results[i], d - (d > axis));
		return;
	default: break;
	}
	if (op_is_control(o) || op_has(o, END))
		ask_control(u, o, k, d);
	else if (op_is_shape(o) && result_dim(o, d) >= 0)
		push(u, result(o), result_dim(o, d));
	else if (op_has(o, ELEM) && !op_may_trap(o))
		push(u, result(o), d);
	else
		u->all = true;
}

/* True if the loop changes an operand of the comparison. */
static bool changes_in(const struct op *loop, const struct op *cmp)
{
	bool changes = false;
	for (u32 i = 0; i < loop->nblocks; i++)
		for (u32 k = 0; k < cmp->noperands; k++)
			changes |= !value_defined_outside(operand(cmp, k), loop->blocks[i]);
	return changes;
}

struct tile_dim demanded_under(const struct value *v, int dim, is_limit *fits, const void *arg)
{
	struct uses u = {.fits = fits, .arg = arg};
	u.seen.arena = &u.scratch;
	push(&u, v, dim);
	for (u32 i = 0; i < u.at.len && !u.all; i++)
		for (const struct use *use = u.at.at[i].v->uses; use; use = use->next)
			ask(&u, use->user, (u32)(use - use->user->operands), u.at.at[i].dim);
	for (u32 i = 0; i < u.around.len && u.mask.v; i++)
		u.all |= changes_in(u.around.at[i], u.mask.v->def);
	struct tile_dim p = u.all ? (struct tile_dim){0} : u.mask;
	arena_free(&u.scratch);
	return p;
}

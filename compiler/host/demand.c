/* How many of a tile's first rows or columns are asked for by what uses it: see host_demanded.
 *
 * A kernel whose tile hangs over the edge of a matrix, or that takes sixteen rows where there is one, stores its result
 * under a mask `index < size`. What that leaves out is asked for nowhere if each use of a value ends in such stores, by
 * operations that keep the elements' places along the dimension. Dots do not compute it (dot.c): the accumulator keeps
 * what it was there. */
#include "host/internal.h"

struct place {
	const struct value *v;
	int dim;
};

struct uses {
	struct host *h;
	VEC(struct place) at; /* to be looked at, each once */
	struct map seen;      /* value → a bit for each dimension, + 1 */
	struct place mask;    /* the comparison under which all stores so far are made; v NULL: there was none */
	bool all;             /* something asks for everything */
};

static void push(struct uses *u, const struct value *v, int dim)
{
	size_t seen = (size_t)map_get(&u->seen, v);
	if (seen >> (1 + dim) & 1)
		return;
	map_put(&u->seen, v, (void *)(seen | 1 | (size_t)2 << dim));
	vec_push(&u->h->scratch, &u->at, ((struct place){v, dim}));
}

/* The operand's dimension that is dimension d of the result of an operation on shapes; -1: none. */
static int dim_before(const struct op *o, int d)
{
	switch (o->code) {
	case IR_EXPAND_DIMS: return d == o->attr[ATTR_AXIS] ? -1 : d - (d > o->attr[ATTR_AXIS]);
	case IR_TRANS: return perm_get(o->attr[ATTR_ORDER], d);
	case IR_BROADCAST: return operand(o, 0)->type->shape[d] == result(o)->type->shape[d] ? d : -1;
	default: return -1;
	}
}

static int dim_behind(const struct op *o, int d)
{
	for (int k = 0; k < result(o)->type->rank; k++)
		if (dim_before(o, k) == d)
			return k;
	return -1;
}

/* Is v an index along dimension d (`counts`), or the same along it, and the same along all others? */
static bool runs_along(struct host *h, const struct value *v, int d, bool counts)
{
	const struct axis_info *a = axis_proved(h->s->axis, v);
	for (int k = 0; k < v->type->rank; k++)
		if ((k == d && counts ? a->contiguity : a->constancy)[k] < v->type->shape[k])
			return false;
	return info_of(h, v)->free;
}

/* A comparison of an index along dimension d that must hold where the mask does; v NULL: none is known. */
static struct place comparison(struct host *h, const struct value *mask, int d)
{
	struct place none = {0};
	const struct op *o = mask->def;
	if (d < 0 || !o)
		return none;
	if (o->code == IR_ANDI) {
		struct place p = comparison(h, operand(o, 0), d);
		return p.v ? p : comparison(h, operand(o, 1), d);
	}
	if (op_is_shape(o))
		return comparison(h, operand(o, 0), dim_before(o, d));
	if (o->code != IR_CMPI || !type_is_tensor(mask->type) || type_is_ptr(operand(o, 0)->type))
		return none;
	bool turned = !runs_along(h, operand(o, 0), d, true);
	bool is_limit = runs_along(h, operand(o, turned), d, true) && runs_along(h, operand(o, !turned), d, false);
	return is_limit ? (struct place){mask, d} : none;
}

static void ask_store(struct uses *u, const struct value *mask, int d)
{
	struct place p = mask ? comparison(u->h, mask, d) : (struct place){0};
	u->all |= !p.v || (u->mask.v && (u->mask.v != p.v || u->mask.dim != p.dim));
	u->mask = p;
}

/* v or what it becomes behind a control operation */
static void ask_control(struct uses *u, const struct op *o, u32 k, int d)
{
	const struct op *in = op_has(o, END) ? o->block->parent : o;
	const struct value *v = value_passed_to(o, k);
	u->all |= !v;
	if (!v)
		return;
	push(u, v, d);
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
	else if (op_is_shape(o) && dim_behind(o, d) >= 0)
		push(u, result(o), dim_behind(o, d));
	else if (op_has(o, ELEM) && !op_may_trap(o))
		push(u, result(o), d);
	else
		u->all = true;
}

/* Can v, computed anew at an index, be computed in block b, here? */
static bool is_known(struct host *h, const struct value *v, const struct block *b, u32 walk)
{
	if (!type_is_tensor(v->type)) {
		const struct block *home = v->def ? v->def->block : v->block;
		bool constant = v->def && v->def->code == IR_CONSTANT;
		return constant || (info_of(h, v)->scalar && block_contains(home, b));
	}
	bool again = !first_visit(v, walk);
	for (u32 k = 0; !again && k < v->def->noperands; k++)
		if (!is_known(h, operand(v->def, k), b, walk))
			return false;
	return true;
}

LLVMValueRef host_demanded(struct host *h, const struct value *v, int dim, const struct block *b)
{
	struct uses u = {.h = h, .seen = {.arena = &h->scratch}};
	push(&u, v, dim);
	for (u32 i = 0; i < u.at.len && !u.all; i++)
		for (const struct use *use = u.at.at[i].v->uses; use; use = use->next)
			ask(&u, use->user, (u32)(use - use->user->operands), u.at.at[i].dim);
	if (u.all || !u.mask.v || h->debug || !is_known(h, u.mask.v, b, begin_walk(h->k->ctx)))
		return NULL;
	struct at at = {.along = u.mask.dim, .lanes = 1};
	for (int d = 0; d < u.mask.v->type->rank; d++)
		at.i[d] = host_i64(h, 0);
	host_forget(h);
	LLVMValueRef n = host_count_true(h, u.mask.v, &at);
	host_forget(h);
	return n;
}

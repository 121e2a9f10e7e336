/* Conversion of values to lists of SSA values and back. Branches and loops of the IR carry tuples and objects as their
 * parts. */
#include "frontend/control_flow.h"

void flatten(struct eval *e, const struct val *v, value_vec *out)
{
	if (v->kind == V_TENSOR)
		vec_push(e->arena, out, v->ssa);
	for (u32 i = 0; val_has_parts(v) && i < v->nitems; i++)
		flatten(e, &v->items[i], out);
}

struct val rebuild(struct eval *e, struct val v, struct value *const **next)
{
	if (v.kind == V_TENSOR)
		v.ssa = *(*next)++;
	if (val_has_parts(&v)) {
		struct val *items = arena_array(e->arena, struct val, v.nitems);
		for (u32 i = 0; i < v.nitems; i++)
			items[i] = rebuild(e, v.items[i], next);
		v.items = items;
	}
	return v;
}

bool has_run_time_part(const struct val *v)
{
	if (v->kind == V_TENSOR)
		return true;
	for (u32 i = 0; val_has_parts(v) && i < v->nitems; i++)
		if (has_run_time_part(&v->items[i]))
			return true;
	return false;
}

bool same_type(const struct val *a, const struct val *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == V_TENSOR)
		return a->ssa->type == b->ssa->type && a->dtype == b->dtype && a->pointers == b->pointers &&
		       a->is_const == b->is_const;
	if (val_has_parts(a)) {
		if (a->nitems != b->nitems || a->class != b->class)
			return false;
		for (u32 i = 0; i < a->nitems; i++)
			if (!same_type(&a->items[i], &b->items[i]))
				return false;
		return true;
	}
	return val_equal(a, b);
}

scope copy_scope(struct eval *e, const scope *s)
{
	scope c = {0};
	c.at = arena_dup(e->arena, s->at, s->len * sizeof *s->at);
	c.len = c.cap = s->len;
	return c;
}

const struct binding *lookup(const scope *s, const char *name)
{
	for (u32 i = s->len; i-- > 0;)
		if (s->at[i].name == name)
			return &s->at[i];
	return NULL;
}

void build_yield(struct eval *e, struct block *b, const value_vec *v)
{
	struct builder at = builder_at_end(e->ctx, b);
	at.loc = e->b.loc;
	build(&at, IR_YIELD, v->at, v->len, NULL, 0, 0);
}

const struct type **types_of(struct eval *e, const value_vec *v)
{
	const struct type **t = arena_array(e->arena, const struct type *, v->len);
	for (u32 i = 0; i < v->len; i++)
		t[i] = v->at[i]->type;
	return t;
}

void result_values(struct eval *e, struct op *o, value_vec *out)
{
	for (u32 i = 0; i < o->nresults; i++)
		vec_push(e->arena, out, &o->results[i]);
}

/* Compile-time tuples and lists, both V_TUPLE: slices and comprehensions. Changes of lists are in mutation.c. */
#include <string.h>

#include "frontend/frontend_internal.h"

/* Sets *tuple to the items over which a loop over v iterates. False, without a message, if v is not a sequence known at
 * compile time. */
bool sequence_items(struct eval *e, const struct val *v, struct val *tuple)
{
	if (v->kind == V_TUPLE) {
		*tuple = *v;
		return true;
	}
	if (v->kind == V_DICT) {
		struct val *keys = arena_array(e->arena, struct val, v->nitems / 2);
		for (u32 i = 0; i < v->nitems; i += 2)
			keys[i / 2] = v->items[i];
		*tuple = val_tuple(keys, v->nitems / 2);
		return true;
	}
	if (v->kind == V_STR) { /* the characters of a string */
		struct val *items = arena_array(e->arena, struct val, MAX(v->len, 1));
		for (u32 i = 0; i < v->len; i++)
			items[i] = val_str(arena_str(e->arena, v->text + i, 1), 1);
		e->steps += v->len;
		*tuple = val_tuple(items, v->len);
		return true;
	}
	if (v->kind != V_RANGE)
		return false;
	const struct val lo = known_number(v->range->start), hi = known_number(v->range->end),
			 by = known_number(v->range->step);
	if (lo.kind != V_INT || hi.kind != V_INT || by.kind != V_INT || !by.integer)
		return false;
	VEC(struct val) items = {0};
	for (i128 i = lo.integer; by.integer > 0 ? i < hi.integer : i > hi.integer; i += by.integer) {
		if (items.len >= MAX_PARTS)
			return false;
		e->steps++;
		vec_push(e->arena, &items, val_int(i));
	}
	*tuple = val_tuple(items.at, items.len);
	return true;
}

/* The bound x of a slice of n elements, or its step (n < 0); `otherwise` if it is absent or None. */
static bool slice_bound(struct eval *e, const struct expr *x, i128 n, i128 otherwise, i128 *out)
{
	struct val v = x ? known_number(eval_expr(e, x)) : val_none();
	*out = otherwise;
	if (v.kind == V_NONE)
		return true;
	if (v.kind != V_INT) {
		if (v.kind != V_ERROR)
			eval_error(e, E_TUPLE_INDEX, x->loc, describe(e, &v));
		return false;
	}
	*out = n >= 0 && v.integer < 0 ? v.integer + n : v.integer;
	return true;
}

/* A slice t[a:b:c], as in Python. */
struct val slice_tuple(struct eval *e, struct val v, const struct expr *s)
{
	i128 from, to, by, n = v.kind == V_STR ? v.len : v.nitems;
	if (!slice_bound(e, s->c, -1, 1, &by))
		return val_error();
	if (!by)
		return eval_error(e, E_ZERO_STEP, s->c->loc);
	if (!slice_bound(e, s->a, n, by > 0 ? 0 : n - 1, &from) || !slice_bound(e, s->b, n, by > 0 ? n : -1, &to))
		return val_error();
	from = by > 0 ? MAX(from, 0) : MIN(from, n - 1);
	to = by > 0 ? MIN(to, n) : MAX(to, -1);
	u32 len = 0;
	if (v.kind == V_STR ? !count_text(e, (u64)n, s->loc) : !count_made(e, (u64)n, s->loc))
		return val_error();
	if (v.kind == V_STR) {
		char *text = arena_alloc(e->arena, (size_t)n + 1);
		for (i128 i = from; by > 0 ? i < to : i > to; i += by)
			text[len++] = v.text[i];
		text[len] = 0;
		return val_str(text, len);
	}
	struct val *items = arena_array(e->arena, struct val, MAX(v.nitems, 1));
	for (i128 i = from; by > 0 ? i < to : i > to; i += by)
		items[len++] = part_of(v.items[i]);
	struct val r = val_tuple(items, len);
	r.list = v.list ? LIST_OWNED : LIST_NOT;
	return r;
}

/* --- comprehensions ------------------------------------------------------------------------------------------ */

typedef VEC(struct val) val_vec;

void bind_target(struct eval *e, const struct expr *target, struct val v)
{
	if (target->kind == EX_NAME) {
		if (keep_value(e, &v, target->loc))
			set_var(e, target->name, v);
		return;
	}
	bool fits = v.kind == V_TUPLE && v.nitems == target->nitems;
	if (!fits && v.kind != V_ERROR)
		eval_error(e, E_UNPACK, target->loc, target->nitems, PLURAL(target->nitems), describe(e, &v));
	for (u32 i = 0; i < target->nitems; i++)
		bind_target(e, target->items[i], fits ? part_of(v.items[i]) : val_error());
}

/* Collects the elements of comprehension x, from clause number `clause` on. False after an error. */
static bool run_clauses(struct eval *e, const struct expr *x, u32 clause, val_vec *out)
{
	if (clause == x->nitems) {
		struct val v = eval_expr(e, x->a);
		vec_push(e->arena, out, v);
		if (x->b && v.kind != V_ERROR)
			vec_push(e->arena, out, v = eval_expr(e, x->b));
		return v.kind != V_ERROR;
	}
	const struct expr *c = x->items[clause];
	struct val v = eval_expr(e, c->kind == EX_FOR ? c->b : c->a), all;
	if (c->kind == EX_IF) {
		struct value *cond;
		int known = truth(e, known_number(v), c->a->loc, &cond);
		if (known == -1)
			eval_error(e, E_COMPREHENSION_CONDITION, c->a->loc, describe(e, &v));
		return known == 0 || (known == 1 && run_clauses(e, x, clause + 1, out));
	}
	if (!sequence_items(e, &v, &all)) {
		if (v.kind != V_ERROR)
			eval_error(e, E_COMPREHENSION_OVER, c->b->loc, describe(e, &v));
		return false;
	}
	for (u32 i = 0; i < all.nitems; i++) {
		bind_target(e, c->a, part_of(all.items[i]));
		if (!step(e, x->loc) || !run_clauses(e, x, clause + 1, out))
			return false;
	}
	return true;
}

/* Removes the targets, which are variables of the comprehension only, as in Python. Variables assigned by := stay. */
static void restore_targets(struct eval *e, const struct expr *target, const scope *before)
{
	for (u32 i = 0; target->kind != EX_NAME && i < target->nitems; i++)
		restore_targets(e, target->items[i], before);
	if (target->kind != EX_NAME)
		return;
	for (u32 i = 0; i < before->len; i++)
		if (before->at[i].name == target->name) {
			*find_var(e->frame, target->name) = before->at[i];
			return;
		}
	struct binding *b = find_var(e->frame, target->name);
	if (b)
		b->val = (struct val){.kind = V_UNSET, .reason = "it is a variable of a comprehension"};
}

struct val eval_comprehension(struct eval *e, const struct expr *x)
{
	scope before = {0};
	before.at = arena_dup(e->arena, e->frame->vars.at, e->frame->vars.len * sizeof *before.at);
	before.len = before.cap = e->frame->vars.len;
	val_vec items = {0};
	bool ok = run_clauses(e, x, 0, &items);
	for (u32 i = 0; i < x->nitems; i++)
		if (x->items[i]->kind == EX_FOR)
			restore_targets(e, x->items[i]->a, &before);
	struct val v = val_tuple(items.at, items.len);
	v.kind = x->b ? V_DICT : V_TUPLE;
	v.list = LIST_OWNED;
	return ok ? v : val_error();
}

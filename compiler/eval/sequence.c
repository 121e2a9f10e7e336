/* Tuples and lists at compile time: slices, comprehensions, lists that grow.
 *
 * Both are V_TUPLE, values without identity. A list can be changed through the one variable that it was made for; what
 * reads the variable gets a tuple, so no other variable sees, or misses, a change. */
#include <string.h>

#include "eval/internal.h"

/* *tuple: what a loop over v meets; false, without a message, if v is no sequence known at compile time. */
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
	if (v->kind != V_RANGE)
		return false;
	const struct val lo = known_number(v->range->start), hi = known_number(v->range->end),
			 by = known_number(v->range->step);
	if (lo.kind != V_INT || hi.kind != V_INT || by.kind != V_INT || !by.integer)
		return false;
	VEC(struct val) items = {0};
	for (i128 i = lo.integer; by.integer > 0 ? i < hi.integer : i > hi.integer; i += by.integer) {
		if (items.len >= MAX_OPS)
			return false;
		vec_push(e->arena, &items, val_int(i));
	}
	*tuple = val_tuple(items.at, items.len);
	return true;
}

/* The bound x of a slice of n elements, or its step (n < 0); `otherwise` where it is left out or None. */
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

/* t[a:b:c], as in Python */
struct val slice_tuple(struct eval *e, struct val v, const struct expr *s)
{
	i128 from, to, by, n = v.nitems;
	if (!slice_bound(e, s->c, -1, 1, &by))
		return val_error();
	if (!by)
		return eval_error(e, E_ZERO_STEP, s->c->loc);
	if (!slice_bound(e, s->a, n, by > 0 ? 0 : n - 1, &from) || !slice_bound(e, s->b, n, by > 0 ? n : -1, &to))
		return val_error();
	from = by > 0 ? MAX(from, 0) : MIN(from, n - 1);
	to = by > 0 ? MIN(to, n) : MAX(to, -1);
	struct val *items = arena_array(e->arena, struct val, v.nitems);
	u32 len = 0;
	for (i128 i = from; by > 0 ? i < to : i > to; i += by)
		items[len++] = v.items[i];
	return val_tuple(items, len);
}

/* --- comprehensions ------------------------------------------------------------------------------------------ */

typedef VEC(struct val) val_vec;

void bind_target(struct eval *e, const struct expr *target, struct val v)
{
	if (target->kind == EX_NAME) {
		set_var(e, target->name, v);
		return;
	}
	bool fits = v.kind == V_TUPLE && v.nitems == target->nitems;
	if (!fits && v.kind != V_ERROR)
		eval_error(e, E_UNPACK, target->loc, target->nitems, PLURAL(target->nitems), describe(e, &v));
	for (u32 i = 0; i < target->nitems; i++)
		bind_target(e, target->items[i], fits ? v.items[i] : val_error());
}

/* The elements for the clauses of x from `clause` on. False after an error. */
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
		bind_target(e, c->a, all.items[i]);
		if (!step(e, x->loc) || !run_clauses(e, x, clause + 1, out))
			return false;
	}
	return true;
}

/* The targets are variables of the comprehension only, as in Python; what := assigns is not. */
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
	v.is_list = !x->b;
	return ok ? v : val_error();
}

/* --- lists that change --------------------------------------------------------------------------------------- */

/* The variable that x names, if it holds a list or a tuple. */
static struct binding *sequence_variable(struct eval *e, const struct expr *x)
{
	struct binding *b = x->kind == EX_NAME ? find_var(e->frame, x->name) : NULL;
	return b && b->val.kind == V_TUPLE ? b : NULL;
}

/* Lists have room for twice as many where no run-time branch can hold an older state of the variable. */
static bool add_items(struct eval *e, struct val *list, const struct val *more, struct loc at)
{
	enum { MOST = 1 << 20, MOST_IN_KERNEL = 1 << 12 };
	bool in_place = e->frame->func->kind == FUNC_CONSTEXPR;
	u64 total = (u64)list->nitems + more->nitems;
	if (total > (in_place ? MOST : MOST_IN_KERNEL)) {
		e->stopped = true;
		eval_error(e, E_TOO_LARGE, at);
		return false;
	}
	struct val *items = (struct val *)list->items;
	if (!in_place || !list->log_room || total > (u64)1 << list->log_room) {
		list->log_room = in_place ? (u8)(ilog2(total | 4) + 1) : 0;
		items = arena_array(e->arena, struct val, in_place ? 1u << list->log_room : total);
		for (u32 i = 0; i < list->nitems; i++)
			items[i] = list->items[i];
	}
	for (u32 i = 0; i < more->nitems; i++)
		items[list->nitems + i] = more->items[i];
	list->items = items;
	list->nitems = (u32)total;
	return true;
}

bool change_list(struct eval *e, const struct expr *x, struct val *out)
{
	if (x->a->kind != EX_ATTR || x->nkeywords || x->nitems != 1)
		return false;
	bool append = !strcmp(x->a->name, "append");
	struct binding *b = append || !strcmp(x->a->name, "extend") ? sequence_variable(e, x->a->a) : NULL;
	if (!b)
		return false;
	*out = val_error();
	if (!b->val.is_list) {
		eval_error(e, E_LIST_SHARED, x->a->loc, x->a->a->name, x->a->name);
		return true;
	}
	struct val v = eval_expr(e, x->items[0]), more = val_tuple(&v, 1);
	b = sequence_variable(e, x->a->a); /* the argument may have assigned */
	if (v.kind == V_ERROR || !b)
		return true;
	if (!append && !sequence_items(e, &v, &more)) {
		eval_error(e, E_COMPREHENSION_OVER, x->items[0]->loc, describe(e, &v));
		return true;
	}
	if (!add_items(e, &b->val, &more, x->loc))
		return true;
	*out = val_none();
	return true;
}

void assign_item(struct eval *e, const struct expr *target, struct val v)
{
	struct binding *b = sequence_variable(e, target->a);
	const struct binding *any = target->a->kind == EX_NAME ? find_var(e->frame, target->a->name) : NULL;
	if (any && any->val.kind == V_TENSOR && any->val.pointers) {
		eval_error(e, E_ASSIGN_POINTER, target->loc);
		diag_hint(e->diags, "write tl.store(%s + %s, value)", any->name, source_text(e, target->b->loc));
		return;
	}
	if (!b) {
		eval_error(e, E_ASSIGN_SUBSCRIPT, target->loc);
		return;
	}
	if (!b->val.is_list || e->frame->func->kind != FUNC_CONSTEXPR) {
		eval_error(e, E_ASSIGN_ITEM, target->loc, describe(e, &b->val));
		return;
	}
	struct val index = known_number(eval_expr(e, target->b));
	b = sequence_variable(e, target->a);
	if (index.kind == V_ERROR || v.kind == V_ERROR || !b)
		return;
	if (index.kind != V_INT) {
		eval_error(e, E_TUPLE_INDEX, target->b->loc, describe(e, &index));
		return;
	}
	i128 i = index.integer < 0 ? index.integer + b->val.nitems : index.integer;
	if (i < 0 || i >= b->val.nitems) {
		eval_error(e, E_TUPLE_RANGE, target->b->loc, (long long)index.integer, b->val.nitems);
		return;
	}
	e->steps += b->val.nitems; /* bounds the memory that copies take */
	if (!step(e, target->loc))
		return;
	struct val *items = arena_dup(e->arena, b->val.items, b->val.nitems * sizeof *items);
	items[i] = v;
	b->val.items = items;
	b->val.log_room = 0;
}

/* Changes of lists, dicts and objects during compilation.
 *
 * Lists and dicts are values without identity. A list can be changed only through the one variable that it was created
 * for. An expression that reads the variable yields a value marked as shared. Once such a value is stored elsewhere,
 * neither holder can be changed. So no variable sees, or misses, a change that Python would make through another
 * variable.
 *
 * A change happens once, at compile time. It is rejected if a run-time branch or loop decides whether, or how often,
 * the change is reached while the changed value was created outside that branch or loop: see the regions of struct
 * eval. */
#include <string.h>

#include "frontend/frontend_internal.h"

/* A call of a method that changes a list or a dict. */
struct change {
	const char *name;
	struct val *of;
	const struct val *args;
	u32 n;
	const struct named_val *named;
	u32 nnamed;
	struct loc at;
};

/* --- parts of values ---------------------------------------------------------------------------------------- */

bool count_made(struct eval *e, u64 n, struct loc at)
{
	e->steps += (u32)MIN(n, (u64)MAX_PARTS);
	if (n <= MAX_PARTS)
		return step(e, at);
	if (!e->stopped)
		eval_error(e, E_TOO_MANY_PARTS, at, MAX_PARTS);
	e->stopped = true;
	return false;
}

bool count_text(struct eval *e, u64 len, struct loc at)
{
	enum { BYTES_OF_STEP = 16 };
	return count_made(e, len > MAX_PARTS ? len : len / BYTES_OF_STEP, at);
}

/* Marks the list v as shared in all variables of the function that hold it. */
static void share(struct eval *e, const struct val *v)
{
	for (u32 i = 0; i < e->frame->vars.len; i++) {
		struct val *held = &e->frame->vars.at[i].val;
		if ((held->kind == V_TUPLE || held->kind == V_DICT) && held->list && held->items == v->items)
			held->list = LIST_SHARED;
	}
}

static bool is_composite(const struct val *v)
{
	return val_has_parts(v) || v->kind == V_DICT;
}

/* The number of parts of v, or a number above the limit. A part that is held several times counts each time. keeps: see
 * keep_value. */
static u32 parts_of(struct eval *e, const struct val *v, bool keeps)
{
	u32 n = 1;
	if (keeps && v->list == LIST_SHARED)
		share(e, v);
	for (u32 i = 0; i < v->nitems && n <= MAX_PARTS; i++)
		n += is_composite(&v->items[i]) ? parts_of(e, &v->items[i], keeps) : 1;
	return n;
}

bool keep_value(struct eval *e, const struct val *v, struct loc at)
{
	return !is_composite(v) || count_made(e, parts_of(e, v, true), at);
}

bool count_parts(struct eval *e, const struct val *v, struct loc at)
{
	return !is_composite(v) || count_made(e, parts_of(e, v, false), at);
}

/* --- regions ------------------------------------------------------------------------------------------------ */

u32 enter_region(struct eval *e)
{
	u32 outer = e->region;
	e->region = ++e->regions;
	return outer;
}

void leave_region(struct eval *e, u32 outer)
{
	e->region = outer;
}

bool may_change(struct eval *e, const struct binding *b, const char *what, struct loc at)
{
	if (b->region == e->region)
		return true;
	eval_error(e, E_CHANGE_RUN_TIME, at, b->name, what);
	return false;
}

static bool is_owned(struct eval *e, const struct binding *b, const char *what, struct loc at)
{
	if (b->val.list != LIST_OWNED) {
		eval_error(e, E_LIST_SHARED, at, b->name, what);
		return false;
	}
	return may_change(e, b, what, at);
}

void extend_list(struct eval *e, const struct stmt *s)
{
	struct val more, v;
	if (!is_owned(e, find_var(e->frame, s->target->name), operator_text(s->op), s->loc))
		return;
	v = eval_expr(e, s->value); /* the evaluation may change the list, too */
	if (s->op == OP_ADD && sequence_items(e, &v, &more))
		v = val_tuple(more.items, more.nitems);
	v = binary_values(e, s->op, eval_name(e, s->target->name, s->target->loc), v, s->loc);
	if (v.kind != V_ERROR)
		assign(e, s->target, v, s->loc);
}

/* --- lists -------------------------------------------------------------------------------------------------- */

/* The variable that x names, if it holds a list, a tuple or a dict. */
static struct binding *sequence_variable(struct eval *e, const struct expr *x)
{
	struct binding *b = x->kind == EX_NAME ? find_var(e->frame, x->name) : NULL;
	return b && (b->val.kind == V_TUPLE || b->val.kind == V_DICT) ? b : NULL;
}

/* An array for `total` items that begins with the present items of the list. Functions that run at compile time add
 * items in place, and the capacity is a power of two above the number of items. This is safe because no run-time
 * branch in such functions can refer to an earlier version of the list. */
static struct val *make_room(struct eval *e, struct val *list, u64 total, struct loc at)
{
	enum { MOST_IN_KERNEL = 1 << 12 };
	bool in_place = e->frame->func->kind == FUNC_CONSTEXPR;
	struct val *items = (struct val *)list->items;
	if (total > (in_place ? (u64)MAX_PARTS : MOST_IN_KERNEL)) {
		count_made(e, (u64)MAX_PARTS + 1, at);
		return NULL;
	}
	if (in_place && list->log_room && total <= (u64)1 << list->log_room)
		return items;
	if (!count_made(e, total, at))
		return NULL;
	list->log_room = in_place ? (u8)(ilog2(total | 4) + 1) : 0;
	items = arena_array(e->arena, struct val, in_place ? 1u << list->log_room : MAX(total, 1));
	for (u32 i = 0; i < list->nitems; i++)
		items[i] = list->items[i];
	list->items = items;
	return items;
}

/* Inserts `more` before item `at`. */
static bool insert_items(struct eval *e, struct val *list, u32 at, const struct val *more, struct loc loc)
{
	struct val *items = make_room(e, list, (u64)list->nitems + more->nitems, loc);
	if (!items)
		return false;
	memmove(items + at + more->nitems, items + at, (list->nitems - at) * sizeof *items);
	for (u32 i = 0; i < more->nitems; i++)
		items[at + i] = part_of(more->items[i]);
	e->steps += list->nitems - at;
	list->nitems += more->nitems;
	return true;
}

static void remove_items(struct eval *e, struct val *list, u32 at, u32 n)
{
	struct val *items = arena_array(e->arena, struct val, MAX(list->nitems, 1));
	u32 len = 0;
	for (u32 i = 0; i < list->nitems; i++)
		if (i < at || i >= at + n)
			items[len++] = list->items[i];
	e->steps += list->nitems;
	list->items = items;
	list->nitems = len;
	list->log_room = 0;
}

static struct val bad_argument(struct eval *e, const struct change *c, const char *wanted, const struct val *v)
{
	return eval_error(e, E_ARG_KIND, c->at, "argument", c->name, wanted, describe(e, v));
}

/* Reads an index as Python's list.insert and list.pop do. */
static bool list_index(struct eval *e, const struct change *c, struct val v, i128 otherwise, i128 *out)
{
	v = known_number(v);
	*out = v.kind == V_NONE ? otherwise : v.integer;
	if (v.kind != V_INT && v.kind != V_NONE) {
		bad_argument(e, c, "a compile-time integer", &v);
		return false;
	}
	*out += *out < 0 ? c->of->nitems : 0;
	return true;
}

static struct val list_insert(struct eval *e, const struct change *c)
{
	i128 at;
	if (!list_index(e, c, c->args[0], 0, &at))
		return val_error();
	const struct val one = val_tuple(&c->args[1], 1);
	at = MIN(MAX(at, 0), (i128)c->of->nitems);
	return insert_items(e, c->of, (u32)at, &one, c->at) ? val_none() : val_error();
}

static struct val list_append(struct eval *e, const struct change *c)
{
	const struct val one = val_tuple(&c->args[0], 1);
	return insert_items(e, c->of, c->of->nitems, &one, c->at) ? val_none() : val_error();
}

static struct val list_extend(struct eval *e, const struct change *c)
{
	struct val more;
	if (!sequence_items(e, &c->args[0], &more))
		return eval_error(e, E_COMPREHENSION_OVER, c->at, describe(e, &c->args[0]));
	return insert_items(e, c->of, c->of->nitems, &more, c->at) ? val_none() : val_error();
}

static struct val list_pop(struct eval *e, const struct change *c)
{
	i128 at;
	if (!list_index(e, c, c->n ? c->args[0] : val_none(), (i128)c->of->nitems - 1, &at))
		return val_error();
	if (at < 0 || at >= c->of->nitems)
		return eval_error(e, E_TUPLE_RANGE, c->at, (long long)at, c->of->nitems);
	const struct val v = c->of->items[at];
	remove_items(e, c->of, (u32)at, 1);
	return v;
}

static struct val list_remove(struct eval *e, const struct change *c)
{
	for (u32 i = 0; i < c->of->nitems; i++) {
		struct val same = compare_values(e, OP_EQ, c->of->items[i], c->args[0], c->at);
		if (same.kind != V_BOOL)
			return same.kind == V_ERROR ? same : bad_argument(e, c, "a compile-time value", &c->args[0]);
		if (same.boolean) {
			remove_items(e, c->of, i, 1);
			return val_none();
		}
	}
	e->raised++;
	return eval_error(e, E_RAISED, c->at, "list.remove(x): x not in list");
}

static struct val list_reverse(struct eval *e, const struct change *c)
{
	struct val old = *c->of;
	remove_items(e, c->of, 0, 0);
	for (u32 i = 0; i < old.nitems; i++)
		((struct val *)c->of->items)[i] = old.items[old.nitems - 1 - i];
	return val_none();
}

static struct val list_sort(struct eval *e, const struct change *c)
{
	struct val sorted = sort_values(e, c->of, c->named, c->nnamed, c->at);
	if (sorted.kind == V_ERROR)
		return sorted;
	c->of->items = sorted.items;
	c->of->log_room = 0;
	return val_none();
}

static struct val list_clear(struct eval *e, const struct change *c)
{
	remove_items(e, c->of, 0, c->of->nitems);
	return val_none();
}

/* --- dicts -------------------------------------------------------------------------------------------------- */

static bool set_key(struct eval *e, struct val *dict, const struct val *key, const struct val *v, struct loc at)
{
	const struct val *old = dict_find(dict, key), pair[] = {*key, *v}, more = val_tuple(pair, 2);
	e->steps += dict->nitems;
	if (!old)
		return insert_items(e, dict, dict->nitems, &more, at);
	u32 i = (u32)(old - dict->items);
	remove_items(e, dict, 0, 0);
	((struct val *)dict->items)[i] = part_of(*v);
	return true;
}

static struct val dict_update(struct eval *e, const struct change *c)
{
	if (c->n && c->args[0].kind != V_DICT)
		return bad_argument(e, c, "a dict", &c->args[0]);
	for (u32 i = 0; c->n && i < c->args[0].nitems; i += 2)
		if (!set_key(e, c->of, &c->args[0].items[i], &c->args[0].items[i + 1], c->at))
			return val_error();
	for (u32 i = 0; i < c->nnamed; i++) {
		const struct val key = val_str(c->named[i].name, (u32)strlen(c->named[i].name));
		if (!set_key(e, c->of, &key, &c->named[i].val, c->at))
			return val_error();
	}
	return val_none();
}

static struct val dict_setdefault(struct eval *e, const struct change *c)
{
	const struct val *found = dict_find(c->of, &c->args[0]), v = c->n > 1 ? c->args[1] : val_none();
	if (found)
		return part_of(*found);
	return set_key(e, c->of, &c->args[0], &v, c->at) ? v : val_error();
}

static struct val dict_pop(struct eval *e, const struct change *c)
{
	const struct val *found = dict_find(c->of, &c->args[0]);
	if (!found && c->n > 1)
		return c->args[1];
	if (!found)
		return eval_error(e, E_DICT_KEY, c->at, describe(e, &c->args[0]), describe(e, c->of));
	const struct val v = *found;
	remove_items(e, c->of, (u32)(found - c->of->items) - 1, 2);
	return v;
}

/* --- changes ------------------------------------------------------------------------------------------------ */

static const struct mutator {
	enum val_kind of;
	const char *name;
	u32 least, most;
	struct val (*run)(struct eval *e, const struct change *c);
} mutators[] = {
	{V_TUPLE, "append", 1, 1, list_append},	  {V_TUPLE, "extend", 1, 1, list_extend},
	{V_TUPLE, "insert", 2, 2, list_insert},	  {V_TUPLE, "pop", 0, 1, list_pop},
	{V_TUPLE, "remove", 1, 1, list_remove},	  {V_TUPLE, "reverse", 0, 0, list_reverse},
	{V_TUPLE, "sort", 0, 0, list_sort},	  {V_TUPLE, "clear", 0, 0, list_clear},
	{V_DICT, "update", 0, 1, dict_update},	  {V_DICT, "setdefault", 1, 2, dict_setdefault},
	{V_DICT, "pop", 1, 2, dict_pop},	  {V_DICT, "clear", 0, 0, list_clear},
};

static const struct mutator *find_mutator(enum val_kind of, const char *name)
{
	for (u32 i = 0; i < ARRAY_LEN(mutators); i++)
		if (mutators[i].of == of && !strcmp(mutators[i].name, name))
			return &mutators[i];
	return NULL;
}

bool change_list(struct eval *e, const struct expr *x, struct val *out)
{
	enum { MOST_KEYWORDS = 8 };
	struct val args[2];
	struct named_val named[MOST_KEYWORDS];
	struct binding *b = x->a->kind == EX_ATTR ? sequence_variable(e, x->a->a) : NULL;
	const struct mutator *m = b && !b->val.class ? find_mutator(b->val.kind, x->a->name) : NULL;
	bool takes_names = m && (m->run == list_sort || m->run == dict_update);
	if (!m || (x->nkeywords && !takes_names) || x->nkeywords > MOST_KEYWORDS)
		return false;
	*out = val_error();
	if (x->nitems < m->least || x->nitems > m->most) {
		wrong_count(e, m->name, m->least, m->most, x->nitems, x->loc);
		return true;
	}
	if (!is_owned(e, b, m->name, x->a->loc))
		return true;
	for (u32 i = 0; i < x->nitems; i++) {
		args[i] = eval_expr(e, x->items[i]);
		/* x.extend(x) stores no second reference to x */
		bool spread = m->run == list_extend || m->run == dict_update;
		if (args[i].kind == V_ERROR || (!spread && !keep_value(e, &args[i], x->items[i]->loc)))
			return true;
	}
	for (u32 i = 0; i < x->nkeywords; i++) {
		const struct keyword *k = &x->keywords[i];
		named[i] = (struct named_val){k->name, eval_expr(e, k->value), k->loc};
		if (!k->name || named[i].val.kind == V_ERROR)
			return true;
	}
	b = sequence_variable(e, x->a->a); /* look up again: evaluating the arguments may have assigned the variable */
	if (!b || b->val.kind != m->of)
		return true;
	struct loc at = x->nitems ? x->items[0]->loc : x->loc;
	struct change c = {m->name, &b->val, args, x->nitems, named, x->nkeywords, at};
	*out = m->run(e, &c);
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
	if (!b->val.list || e->frame->func->kind != FUNC_CONSTEXPR) {
		eval_error(e, E_ASSIGN_ITEM, target->loc, describe(e, &b->val));
		return;
	}
	if (!is_owned(e, b, "[]", target->loc))
		return;
	struct val index = known_number(eval_expr(e, target->b));
	b = sequence_variable(e, target->a);
	if (index.kind == V_ERROR || v.kind == V_ERROR || !b)
		return;
	if (b->val.kind == V_DICT) {
		set_key(e, &b->val, &index, &v, target->loc);
		return;
	}
	if (index.kind != V_INT) {
		eval_error(e, E_TUPLE_INDEX, target->b->loc, describe(e, &index));
		return;
	}
	i128 i = index.integer < 0 ? index.integer + b->val.nitems : index.integer;
	if (i < 0 || i >= b->val.nitems) {
		eval_error(e, E_TUPLE_RANGE, target->b->loc, (long long)index.integer, b->val.nitems);
		return;
	}
	remove_items(e, &b->val, 0, 0);
	((struct val *)b->val.items)[i] = part_of(v);
}

#include "ir/graph.h"

void visit_later(struct value_walk *w, const struct value *v)
{
	if (v->walk != w->id)
		vec_push(&w->scratch, &w->work, v);
}

void visit_operands(struct value_walk *w, const struct op *o)
{
	for (u32 i = o->noperands; i--;)
		visit_later(w, operand(o, i));
}

bool end_walk(struct value_walk *w, bool answer)
{
	arena_free(&w->scratch);
	w->work.len = w->work.cap = 0;
	return answer;
}

const struct value *visit_next(struct value_walk *w)
{
	while (w->work.len) {
		const struct value *v = w->work.at[--w->work.len];
		if (first_visit(v, w->id))
			return v;
	}
	end_walk(w, true);
	return NULL;
}

struct partner {
	const struct value *y;
	const struct partner *next;
};

void visit_pair(struct pair_walk *w, const struct value *x, const struct value *y)
{
	w->partners.arena = &w->scratch;
	const struct partner *first = map_get(&w->partners, x), *at = first;
	while (at && at->y != y)
		at = at->next;
	if (at)
		return;
	struct partner made = {y, first};
	map_put(&w->partners, x, arena_dup(&w->scratch, &made, sizeof made));
	vec_push(&w->scratch, &w->work, ((struct value_pair){x, y}));
}

bool visit_operand_pairs(struct pair_walk *w, struct value_pair at)
{
	const struct op *a = at.x->def, *b = at.y->def;
	if (!a || !b || at.x->index != at.y->index || !same_operation(a, b))
		return false;
	for (u32 i = 0; i < a->noperands; i++)
		visit_pair(w, operand(a, i), operand(b, i));
	return true;
}

bool end_pair_walk(struct pair_walk *w, bool answer)
{
	arena_free(&w->scratch);
	return answer;
}

u32 count_ops(const struct op *o, u32 most)
{
	u32 n = 0;
	for (; o && n <= most; o = o->next) {
		n++;
		for (u32 i = 0; i < o->nblocks && n <= most; i++)
			n += count_ops(o->blocks[i]->first, most - n);
	}
	return n;
}

/* Adds the values that block b stores in visited buffers. False if all of them have been visited. */
static bool visit_stored(struct value_walk *w, const struct block *b)
{
	bool any = false;
	for (const struct op *o = b->first; o; o = o->next) {
		for (u32 i = 0; i < o->nblocks; i++)
			any |= visit_stored(w, o->blocks[i]);
		if (o->code != IR_LOCAL_STORE || operand(o, 1)->walk != w->id || operand(o, 0)->walk == w->id)
			continue;
		visit_later(w, operand(o, 0));
		any = true;
	}
	return any;
}

bool chains_dots(struct ir_context *ctx, const struct block *b)
{
	struct value_walk w = {.id = begin_walk(ctx)};
	bool yes = false;
	for (const struct op *o = b->first; o; o = o->next)
		for (u32 i = 0; op_is_dot(o) && i < 2; i++)
			visit_later(&w, operand(o, i));
	do {
		for (const struct value *v; !yes && (v = visit_next(&w));) {
			yes = v->def && op_is_dot(v->def);
			if (v->def && v->def->block == b)
				visit_operands(&w, v->def);
		}
	} while (!yes && visit_stored(&w, b));
	return end_walk(&w, yes);
}

bool same_operation(const struct op *a, const struct op *b)
{
	bool same = a->code == b->code && a->noperands == b->noperands && a->nresults == b->nresults && !a->nblocks &&
		    !b->nblocks && !memcmp(a->attr, b->attr, sizeof a->attr) && a->text == b->text;
	for (u32 i = 0; same && i < a->nresults; i++)
		same = a->results[i].type == b->results[i].type;
	return same;
}

bool next_pair(struct pair_walk *w, struct value_pair *next)
{
	if (!w->work.len)
		return end_pair_walk(w, false);
	*next = w->work.at[--w->work.len];
	return true;
}

void meet_demand(struct demand root, bool (*missing)(void *arg, struct demand d, struct demand *first),
		 void (*make)(void *arg, struct demand d), void *arg)
{
	struct arena scratch = {0};
	VEC(struct demand) stack = {0};
	struct demand d = root;
	for (;;) {
		struct demand first;
		if (missing(arg, d, &first)) {
			vec_push(&scratch, &stack, d);
			d = first;
			continue;
		}
		make(arg, d);
		if (!stack.len)
			break;
		d = stack.at[--stack.len];
	}
	arena_free(&scratch);
}

bool set_has(const struct value_set *set, const struct value *v)
{
	return map_get(&set->map, v) != NULL;
}

bool set_add(struct value_set *set, const struct value *v)
{
	set->map.arena = &set->scratch;
	bool added = !set_has(set, v);
	if (added)
		map_put(&set->map, v, (void *)v);
	return added;
}

static void add_operands(struct value_set *set, const struct op *o)
{
	for (u32 i = 0; i < o->noperands; i++)
		set_add(set, operand(o, i));
}

bool set_has_result(const struct value_set *set, const struct op *o)
{
	bool yes = false;
	for (u32 i = 0; i < o->nresults; i++)
		yes |= set_has(set, &o->results[i]);
	return yes;
}

void add_sources(struct value_set *set, const struct value *v, bool (*through)(const struct op *o))
{
	vec_push(&set->scratch, &set->work, v);
	while (set->work.len) {
		v = set->work.at[--set->work.len];
		if (!set_add(set, v) || !v->def || !through(v->def))
			continue;
		for (u32 i = 0; i < v->def->noperands; i++)
			vec_push(&set->scratch, &set->work, operand(v->def, i));
	}
}

bool take_along(struct value_set *needed, const struct op *o)
{
	if (!set_has_result(needed, o))
		return true;
	if (!op_has(o, PURE) || op_has(o, SYNC) || o->nblocks || op_may_trap(o))
		return false;
	add_operands(needed, o);
	return true;
}

/* Liveness of a loop index after its loop, by a backward walk over the source of the function. */
#include <string.h>

#include "frontend/control_flow.h"

struct liveness {
	const char *name;
	struct map *behind; /* loop over the name → whether the name is live at the end of the loop */
	bool next, out;     /* whether the name is live at the target of `continue` and of `break` */
};

static const char is_read, not_read; /* values of the map */

static bool reads(const struct expr *x, const char *name);

static bool any_reads(struct expr *const *x, u32 n, const char *name)
{
	for (u32 i = 0; i < n; i++)
		if (reads(x[i], name))
			return true;
	return false;
}

static bool reads(const struct expr *x, const char *name)
{
	if (!x)
		return false;
	if (x->kind == EX_NAME)
		return x->name == name;
	if (x->kind == EX_FSTR && !x->nitems) { /* the fields of an f-string are parsed when it is evaluated */
		size_t len = strlen(name);
		for (u32 i = 0; i + len <= x->text_len; i++)
			if (!memcmp(x->text + i, name, len))
				return true;
		return false;
	}
	if (expr_has_operands(x->kind) && (reads(x->a, name) || reads(x->b, name) || reads(x->c, name)))
		return true;
	for (u32 i = 0; i < x->nkeywords; i++)
		if (reads(x->keywords[i].value, name))
			return true;
	return x->kind == EX_LAMBDA || any_reads(x->items, x->nitems, name);
}

/* True if an assignment to x sets the name on every path. */
static bool assigns(const struct expr *x, const char *name)
{
	bool found = x && x->kind == EX_NAME && x->name == name;
	for (u32 i = 0; x && (x->kind == EX_TUPLE || x->kind == EX_LIST) && i < x->nitems && !found; i++)
		found = assigns(x->items[i], name);
	return found;
}

/* True if the target reads the name, as a[i] = … reads i. */
static bool target_reads(const struct expr *x, const char *name)
{
	return x && x->kind != EX_NAME && !assigns(x, name) && reads(x, name);
}

static bool body_live(struct liveness *l, const struct body *b, bool behind);

static bool loop_live(struct liveness *l, const struct stmt *s, bool behind)
{
	struct liveness outer = *l;
	bool otherwise = body_live(l, &s->orelse, behind), head = otherwise, at_head;
	if (s->kind == ST_FOR && s->target->kind == EX_NAME && s->target->name == l->name &&
	    map_get(l->behind, s) != &is_read)
		map_put(l->behind, s, (void *)(otherwise || behind ? &is_read : &not_read));
	for (;;) { /* iterate: a name that is live at the head is live at the end of the body */
		l->out = behind;
		l->next = head;
		at_head = body_live(l, &s->body, head);
		at_head &= s->kind != ST_FOR || !assigns(s->target, l->name);
		at_head |= otherwise || (s->kind == ST_WHILE && reads(s->value, l->name));
		if (at_head == head)
			break;
		head = at_head;
	}
	l->out = outer.out;
	l->next = outer.next;
	return head || reads(s->value, l->name);
}

/* True if the name is live before s, given whether it is live after s. */
static bool stmt_live(struct liveness *l, const struct stmt *s, bool behind)
{
	bool live = behind;
	switch (s->kind) {
	case ST_FOR:
	case ST_WHILE: return loop_live(l, s, behind);
	case ST_IF: {
		bool some = false, whole = false;
		for (u32 i = 0; i < s->narms; i++) {
			some |= body_live(l, &s->arms[i].body, behind) || reads(s->arms[i].test, l->name);
			whole |= !s->arms[i].test;
		}
		return some || (!whole && behind);
	}
	case ST_BREAK: return l->out;
	case ST_CONTINUE: return l->next;
	case ST_RETURN:
	case ST_RAISE: return reads(s->value, l->name);
	default: break;
	}
	bool sets = assigns(s->kind == ST_ANN || s->kind == ST_WITH ? s->target : NULL, l->name) && s->value;
	for (u32 i = 0; i < s->ntargets; i++)
		sets |= assigns(s->targets[i], l->name);
	live = body_live(l, &s->body, live && !sets);
	for (u32 i = 0; i < s->ntargets; i++)
		live |= target_reads(s->targets[i], l->name);
	live |= s->kind == ST_AUG && reads(s->target, l->name);
	return live || target_reads(s->target, l->name) || reads(s->value, l->name) || reads(s->message, l->name);
}

static bool body_live(struct liveness *l, const struct body *b, bool behind)
{
	for (u32 i = b->len; i-- > 0;)
		behind = stmt_live(l, b->at[i], behind);
	return behind;
}

/* One walk answers the question for all loops over the same name. */
bool index_is_used_behind(const struct func *f, const struct stmt *loop, struct map *known)
{
	struct liveness l = {.name = loop->target->name, .behind = known};
	if (!map_get(known, loop))
		body_live(&l, &f->body, false);
	return map_get(known, loop) == &is_read;
}

/* The functions that a jit function refers to, directly or through other jit functions, determined from the source. */
#include "lang/ast.h"

struct call_search {
	const char *name;
	struct map seen; /* visited functions */
	const struct func *func; /* the function under the search */
	bool found;
};

static void search_func(struct call_search *s, const struct func *f);

static void search_all(struct call_search *s, const struct module *m)
{
	for (u32 i = 0; i < m->funcs.len; i++)
		search_func(s, m->funcs.at[i]);
}

static bool is_param(const struct func *f, const char *name)
{
	for (u32 i = 0; i < f->nparams; i++)
		if (f->params[i].name == name)
			return true;
	return false;
}

/* Visits a name: a function of the module, an import, or a parameter, which may hold any function. */
static void search_name(struct call_search *s, const struct expr *x, bool called)
{
	const struct module *m = s->func->module;
	if (called && is_param(s->func, x->name)) {
		search_all(s, m);
		return;
	}
	const struct func *f = map_get(&m->by_name, x->name);
	if (f)
		search_func(s, f);
	/* the methods of a class are not searched; they are assumed to refer to s->name */
	const struct definition *d = map_get(&m->definitions, x->name);
	s->found |= d && d->kind == DEF_CLASS;
	const char *target = imported_name(m, x->name), *last = target ? strrchr(target, '.') : NULL;
	/* functions of other files are not searched; they are assumed to refer to s->name */
	s->found |= (last && !strcmp(last + 1, s->name)) || (called && target && strncmp(target, "triton", 6) != 0);
}

static void search_expr(struct call_search *s, const struct expr *x)
{
	if (!x || s->found)
		return;
	switch (x->kind) {
	case EX_NAME: search_name(s, x, false); return;
	case EX_ATTR:
		s->found |= !strcmp(x->name, s->name);
		search_expr(s, x->a);
		return;
	case EX_CALL:
		if (x->a->kind == EX_NAME)
			search_name(s, x->a, true);
		else
			search_expr(s, x->a);
		break;
	case EX_SLICE:
	case EX_IFEXP: search_expr(s, x->c); /* fallthrough */
	case EX_SUBSCRIPT:
	case EX_NAMED:
	case EX_COMPREHENSION:
	case EX_FOR:
	case EX_BINARY: search_expr(s, x->b); /* fallthrough */
	case EX_IF:
	case EX_STAR:
	case EX_UNARY: search_expr(s, x->a); break;
	default: break;
	}
	for (u32 i = 0; i < x->nitems; i++)
		search_expr(s, x->items[i]);
	for (u32 i = 0; i < x->nkeywords; i++)
		search_expr(s, x->keywords[i].value);
}

static void search_body(struct call_search *s, const struct body *b)
{
	for (u32 i = 0; i < b->len && !s->found; i++) {
		const struct stmt *t = b->at[i];
		search_expr(s, t->target);
		search_expr(s, t->value);
		search_expr(s, t->message);
		for (u32 k = 0; k < t->ntargets; k++)
			search_expr(s, t->targets[k]);
		for (u32 k = 0; k < t->narms; k++) {
			search_expr(s, t->arms[k].test);
			search_body(s, &t->arms[k].body);
		}
		search_body(s, &t->body);
	}
}

static void search_func(struct call_search *s, const struct func *f)
{
	if (s->found || map_get(&s->seen, f))
		return;
	const struct func *outer = s->func;
	map_put(&s->seen, f, s);
	s->func = f;
	search_body(s, &f->body);
	s->func = outer;
}

bool func_calls(struct arena *a, const struct func *f, const char *name)
{
	struct call_search s = {.name = name, .seen = {.arena = a}};
	search_func(&s, f);
	return s.found;
}

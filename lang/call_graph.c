/* The functions that a jit function refers to, directly or through other jit functions, determined from the source. */
#include "lang/ast.h"

struct call_search {
	const char *name;
	struct map seen; /* visited functions */
	const struct import_files *others;
	const struct func *func; /* the function under the search */
	bool found;
};

static void search_func(struct call_search *s, const struct func *f);
static void search_expr(struct call_search *s, const struct expr *x);

static const struct module *find_module(const struct call_search *s, const struct module *m, const char *dotted)
{
	return s->others && *dotted ? s->others->find(s->others->arg, m, dotted) : NULL;
}

static const struct definition *last_definition(const struct module *m, const char *name)
{
	for (u32 i = 0; i < m->definitions.cap; i++)
		if (m->definitions.keys[i] && !strcmp(m->definitions.keys[i], name))
			return m->definitions.vals[i];
	return NULL;
}

/* Visits the function that m imports with the target "a.b.name", if its module is searched. Returns that module or
 * NULL. */
static const struct module *search_from(struct call_search *s, const struct module *m, const char *target, int depth)
{
	enum { DEEPEST = 32 }; /* imports of imports */
	const char *last = strrchr(target, '.');
	size_t n = last ? MAX((size_t)(last - target), strspn(target, ".")) : 0;
	const struct module *other = find_module(s, m, arena_str(s->seen.arena, target, n));
	const struct definition *d = other ? last_definition(other, last + 1) : NULL;
	if (d && d->kind == DEF_JIT)
		search_func(s, d->func);
	else if (d && d->kind == DEF_FROM && depth < DEEPEST)
		return search_from(s, other, d->target, depth + 1);
	return d && (d->kind == DEF_CLASS || d->kind == DEF_VALUE) ? NULL : other;
}

/* Visits the functions that m has or imports. */
static void search_all(struct call_search *s, const struct module *m)
{
	for (u32 i = 0; i < m->funcs.len; i++)
		search_func(s, m->funcs.at[i]);
	for (u32 i = 0; i < m->definitions.cap; i++) {
		const struct definition *d = m->definitions.keys[i] ? m->definitions.vals[i] : NULL;
		if (d && d->kind == DEF_FROM)
			search_from(s, m, d->target, 0);
	}
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
	s->found |= last && !strcmp(last + 1, s->name);
	if (!target || s->found || search_from(s, m, target, 0))
		return;
	/* functions of modules that are not searched are assumed to refer to s->name */
	s->found |= called && strncmp(target, "triton", 6) != 0;
}

/* Visits module.name. */
static void search_attribute(struct call_search *s, const struct expr *x)
{
	const char *target = x->a->kind == EX_NAME ? imported_name(s->func->module, x->a->name) : NULL;
	const struct module *other = target ? find_module(s, s->func->module, target) : NULL;
	s->found |= !strcmp(x->name, s->name);
	if (other)
		search_from(s, s->func->module, arena_printf(s->seen.arena, "%s.%s", target, x->name), 0);
	else
		search_expr(s, x->a);
}

static void search_expr(struct call_search *s, const struct expr *x)
{
	if (!x || s->found)
		return;
	switch (x->kind) {
	case EX_NAME: search_name(s, x, false); return;
	case EX_ATTR: search_attribute(s, x); return;
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

bool func_calls(struct arena *a, const struct func *f, const char *name, const struct import_files *others)
{
	struct call_search s = {.name = name, .seen = {.arena = a}, .others = others};
	search_func(&s, f);
	return s.found;
}

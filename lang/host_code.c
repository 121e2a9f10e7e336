/* Host code: the definitions of names at module level in the lines outside jit functions.
 *
 * Logical lines are dropped, with two exceptions: decorators mark the following function, and imports, simple
 * assignments and names of functions are recorded as definitions, together with the enclosing `if` and `try`. The
 * evaluator decides which definition of a name applies (frontend/python/names.c). */
#include "lang/parse.h"
#include "parser.h"

const char *imported_name(const struct module *m, const char *name)
{
	const struct definition *d = map_get(&m->definitions, name);
	while (d && d->kind != DEF_IMPORT && d->kind != DEF_FROM)
		d = d->before;
	return d ? d->target : NULL;
}

static void define(struct parser *p, struct definition d)
{
	struct map *all = &p->module->definitions;
	d.branch = p->branch;
	d.before = map_get(all, d.name);
	map_put(all, d.name, arena_dup(p->arena, &d, sizeof d));
}

static void skip_line(struct parser *p)
{
	struct token t;
	do
		t = raw_token(p);
	while (t.kind && t.kind != NEWLINE);
}

/* Reads `a.b.c` or `..a.b` with first token t. The token after it is not consumed. */
static const char *dotted_name(struct parser *p, struct token t)
{
	struct strbuf sb = sb_empty(p->arena);
	for (; t.kind == '.' || t.kind == ELLIPSIS; t = raw_token(p))
		sb_puts(&sb, t.kind == '.' ? "." : "...");
	while (t.kind == NAME) {
		sb_puts(&sb, t.value.name);
		if ((t = raw_token(p)).kind != '.')
			break;
		if ((t = raw_token(p)).kind == NAME)
			sb_puts(&sb, ".");
	}
	unread_token(p, t);
	return intern_str(p->names, sb.at);
}

/* Records an import. An import inside a host function is recorded only if the module does not define the name: kernels
 * may need it too. */
static void add_import(struct parser *p, struct loc loc, const char *alias, const char *target, bool whole)
{
	if (p->host_scope >= 0 && map_get(&p->module->definitions, alias))
		return;
	enum definition_kind kind = whole ? DEF_IMPORT : DEF_FROM;
	define(p, (struct definition){.kind = kind, .name = alias, .loc = loc, .target = target});
	if (p->branch && p->branch->kind == BRANCH_TRY) {
		struct tried *t = arena_new(p->arena, struct tried);
		*t = (struct tried){target, whole, p->branch->tried};
		p->branch->tried = t;
	}
}

static const char *first_part(struct parser *p, const char *dotted)
{
	const char *dot = strchr(dotted, '.');
	return intern(p->names, dotted, dot ? (size_t)(dot - dotted) : strlen(dotted));
}

/* Reads `import a.b as c, d`, which binds c and d, or `import a.b`, which binds a. */
static void read_import(struct parser *p)
{
	struct token t;
	do {
		struct token first = t = raw_token(p);
		if (t.kind != NAME)
			break;
		const char *target = dotted_name(p, t);
		t = raw_token(p);
		if (t.kind == AS) {
			t = raw_token(p);
			if (t.kind == NAME)
				add_import(p, t.loc, t.value.name, target, true);
			t = raw_token(p);
		} else {
			add_import(p, first.loc, first_part(p, target), first_part(p, target), true);
		}
	} while (t.kind == ',');
	unread_token(p, t);
	skip_line(p);
}

/* Reads `from a.b import c as d, (e)` or `from .a import *`. */
static void read_from(struct parser *p)
{
	struct token t = raw_token(p);
	if (t.kind != NAME && t.kind != '.' && t.kind != ELLIPSIS) {
		unread_token(p, t);
		skip_line(p);
		return;
	}
	const char *base = dotted_name(p, t);
	size_t n = strlen(base);
	const char *dot = n && base[n - 1] == '.' ? "" : ".";
	t = raw_token(p);
	while (t.kind && t.kind != NEWLINE) {
		if (t.kind == '*') {
			define(p, (struct definition){.kind = DEF_STAR, .name = intern_str(p->names, "*"), .loc = t.loc,
						      .target = base});
			t = raw_token(p);
			continue;
		}
		if (t.kind != NAME) {
			t = raw_token(p);
			continue;
		}
		struct token alias = t;
		const char *target = intern_str(p->names, arena_printf(p->arena, "%s%s%s", base, dot, t.value.name));
		t = raw_token(p);
		if (t.kind == AS) {
			alias = raw_token(p);
			t = raw_token(p);
		}
		if (alias.kind == NAME)
			add_import(p, alias.loc, alias.value.name, target, false);
	}
}

static bool is_augmented(int kind)
{
	static const int kinds[] = {ADD_EQ, SUB_EQ, MUL_EQ, DIV_EQ, FLOORDIV_EQ, MOD_EQ, AND_EQ, OR_EQ, XOR_EQ, SHL_EQ,
				    SHR_EQ, POW_EQ, MATMUL_EQ};
	for (u32 i = 0; i < ARRAY_LEN(kinds); i++)
		if (kinds[i] == kind)
			return true;
	return false;
}

/* Records an assignment to the name by a statement that is not evaluated: its value is unknown. */
static void note_changed(struct parser *p, const struct token *name)
{
	define(p, (struct definition){.kind = DEF_CHANGED, .name = name->value.name, .loc = name->loc});
}

/* True if NAME.method(…) changes the contents of the global NAME. */
static bool is_change(const char *method)
{
	static const char *const all[] = {"append", "extend", "insert", "pop", "remove", "sort", "reverse", "clear",
					  "update", "setdefault", "add", "discard", "popitem"};
	for (u32 i = 0; i < ARRAY_LEN(all); i++)
		if (!strcmp(all[i], method))
			return true;
	return false;
}

/* Records a change of a global that an earlier line assigned. */
static void note_value_changed(struct parser *p, const struct token *name)
{
	const struct definition *d = map_get(&p->module->definitions, name->value.name);
	if (d && d->kind == DEF_VALUE)
		note_changed(p, name);
}

/* State for finding changes of globals in a line of host code: NAME.append(…), NAME[i] = …, del NAME[i]. `name` is the
 * name to which the previous tokens refer. */
struct object_state {
	struct token name; /* kind 0: no name */
	bool part, deleted;
	int depth;
};

static void note_changes(struct parser *p, struct object_state *s, struct token t, int before)
{
	s->deleted |= t.kind == DEL;
	if (t.kind == NAME && before == '.' && s->name.kind && is_change(t.value.name))
		note_value_changed(p, &s->name);
	if ((t.kind == '=' || is_augmented(t.kind)) && s->depth == 0 && s->part && s->name.kind)
		note_value_changed(p, &s->name);
	if (t.kind == NAME && before != '.' && s->depth == 0) {
		s->name = t;
		s->part = false;
	} else if (t.kind != '.' && t.kind != '[' && t.kind != NAME && s->depth == 0) {
		s->name.kind = 0;
	}
	s->part |= t.kind == '[' || t.kind == '.';
	s->depth += (t.kind == '[' || t.kind == '(' || t.kind == '{') -
		    (t.kind == ']' || t.kind == ')' || t.kind == '}');
	if (s->deleted && t.kind == '[' && s->name.kind)
		note_value_changed(p, &s->name);
}

/* Records the globals that a line of host code with first token t assigns: `N *= 2`, `A, B = …`, `for N in …`, also in
 * the body of an `if` or `with`, on a separate line or after its ':'. */
static void note_assignments(struct parser *p, struct token t)
{
	VEC(struct token) names = {0};
	bool compound = t.kind != NAME, typed = false, loop = false;
	int depth = 0, before = NEWLINE;
	struct object_state object = {0};
	for (; t.kind && t.kind != NEWLINE && t.kind != LAMBDA; before = t.kind, t = raw_token(p)) {
		depth += (t.kind == '[' || t.kind == '(' || t.kind == '{') -
			 (t.kind == ']' || t.kind == ')' || t.kind == '}');
		note_changes(p, &object, t, before);
		if (t.kind == NAME && before != '.' && !typed) {
			vec_push(p->arena, &names, t);
		} else if (t.kind == '=' || is_augmented(t.kind) || (t.kind == IN && loop)) {
			for (u32 i = 0; i < names.len && depth == 0; i++)
				note_changed(p, &names.at[i]);
			names.len = 0;
			typed = loop = false;
		} else if (t.kind == ':' && depth == 0) {
			typed = !compound;
			compound = false;
			names.len = typed ? names.len : 0;
		} else if (!typed && t.kind != ',' && t.kind != '(' && t.kind != ')') {
			names.len = 0;
			loop |= t.kind == FOR;
		}
	}
	if (t.kind == LAMBDA)
		skip_line(p);
}

/* Reads `NAME = …` or `NAME: … = …` at module level and records the source range of the expression. */
static void read_global(struct parser *p, struct token name)
{
	struct token t = raw_token(p);
	int depth = 0;
	if (t.kind == ':') /* skip the annotation */
		do {
			t = raw_token(p);
			depth += (t.kind == '[' || t.kind == '(') - (t.kind == ']' || t.kind == ')');
		} while (t.kind && t.kind != NEWLINE && (t.kind != '=' || depth));
	if (t.kind != '=') {
		unread_token(p, t);
		note_assignments(p, name);
		return;
	}
	struct definition d = {
		.kind = DEF_VALUE, .name = name.value.name, .loc = name.loc, .start = t.end, .end = t.end};
	for (t = raw_token(p); t.kind && t.kind != NEWLINE; t = raw_token(p))
		d.end = t.end;
	if (d.end > d.start)
		define(p, d);
}

/* Reads a `def NAME` at module level without @triton.jit. The name is recorded for the error in a kernel that calls
 * it. */
static void read_host_function(struct parser *p, u32 start)
{
	struct token t = raw_token(p);
	if (t.kind == NAME)
		define(p, (struct definition){.kind = DEF_HOST, .name = t.value.name, .loc = t.loc, .start = start});
	else
		unread_token(p, t);
	skip_line(p);
}

/* A dotted name in which the target of its import replaces the first part: T.jit → triton.jit. */
static const char *resolved(struct parser *p, const char *name)
{
	const char *first = first_part(p, name);
	const char *target = imported_name(p->module, first);
	return target ? arena_printf(p->arena, "%s%s", target, name + strlen(first)) : name;
}

/* Recognises triton.jit, also when re-exported by another module, as in vllm.triton_utils.triton, and the decorators of
 * functions that run at compile time: constexpr_function, triton.language.core.builtin, and PyTorch's name for it. */
static bool decorator_kind(struct parser *p, const char *name, enum func_kind *kind)
{
	name = resolved(p, name);
	const char *last = strrchr(name, '.'), *module = last;
	while (module > name && module[-1] != '.')
		module--;
	bool of_triton = !last || !strncmp(name, "triton", 6) || !strncmp(module, "tl.", 3) ||
			 !strncmp(module, "triton", 6);
	last = last ? last + 1 : name;
	if (!strcmp(last, "jit") && of_triton)
		*kind = FUNC_JIT;
	else if (!strcmp(last, "constexpr_function") || !strcmp(last, "triton_builtin") ||
		 (!strcmp(last, "builtin") && of_triton && last != name))
		*kind = FUNC_CONSTEXPR;
	else
		return false;
	return true;
}

/* --- compound statements at module level --------------------------------------------------------------------- */

static struct branch *enter(struct parser *p, enum branch_kind kind, struct branch *before, struct loc loc, int indent)
{
	struct branch *b = arena_new(p->arena, struct branch);
	*b = (struct branch){.kind = kind, .loc = loc, .before = before, .outer = p->branch};
	if (p->nopen < (int)ARRAY_LEN(p->open_branches))
		p->open_branches[p->nopen++] = (struct open_branch){indent, b};
	p->branch = b;
	return b;
}

/* Closes the statements that end before a line of this indentation. Returns the last closed part with the same
 * indentation, or NULL. */
static struct branch *leave(struct parser *p, int indent)
{
	struct branch *same = NULL;
	while (p->nopen && p->open_branches[p->nopen - 1].indent >= indent) {
		struct open_branch *o = &p->open_branches[--p->nopen];
		same = o->indent == indent ? o->branch : NULL;
		p->branch = o->branch->outer;
	}
	return same;
}

/* Reads the test of b: the tokens up to the ':' at bracket depth 0. */
static void read_test(struct parser *p, struct branch *b)
{
	int depth = 0;
	struct token t = raw_token(p);
	b->start = b->end = t.start;
	for (; t.kind && t.kind != NEWLINE && (t.kind != ':' || depth); t = raw_token(p)) {
		depth += (t.kind == '[' || t.kind == '(' || t.kind == '{') -
			 (t.kind == ']' || t.kind == ')' || t.kind == '}');
		b->end = t.end;
	}
	if (t.kind == NEWLINE)
		unread_token(p, t);
}

/* Reads a statement at module level, or inside an `if` or `try` there, with first token t. */
static void host_statement(struct parser *p, struct token t, int indent, struct branch *same)
{
	bool in_loop = p->branch && p->branch->kind == BRANCH_LOOP;
	switch (t.kind) {
	case IF: enter(p, BRANCH_IF, NULL, t.loc, indent); break;
	case ELIF: enter(p, BRANCH_IF, same, t.loc, indent); break;
	case ELSE: enter(p, same && same->kind == BRANCH_LOOP ? BRANCH_LOOP : BRANCH_ELSE, same, t.loc, indent); break;
	case TRY: enter(p, BRANCH_TRY, NULL, t.loc, indent); break;
	case EXCEPT: enter(p, BRANCH_EXCEPT, same, t.loc, indent); break;
	case FINALLY: enter(p, BRANCH_ALWAYS, NULL, t.loc, indent); break;
	case WITH: enter(p, BRANCH_ALWAYS, NULL, t.loc, indent); break;
	case FOR:
	case WHILE:
		enter(p, BRANCH_LOOP, NULL, t.loc, indent);
		note_assignments(p, t);
		return;
	case NAME:
		if (in_loop)
			note_assignments(p, t);
		else
			read_global(p, t);
		return;
	case DEF: read_host_function(p, t.start); return;
	case IMPORT: read_import(p); return;
	case FROM: read_from(p); return;
	default: note_assignments(p, t); return;
	}
	read_test(p, p->branch);
	t = raw_token(p);
	if (t.kind && t.kind != NEWLINE) /* a statement after the ':' */
		host_statement(p, t, indent + 1, NULL);
}

/* --- lines --------------------------------------------------------------------------------------------------- */

static void read_decorator(struct parser *p)
{
	struct token name = raw_token(p), t;
	enum func_kind kind;
	if (name.kind != NAME) {
		unread_token(p, name);
		skip_line(p);
		return;
	}
	const char *dotted = dotted_name(p, name), *last = strrchr(resolved(p, dotted), '.');
	p->pending_class |= last && (!strcmp(last, "._aggregate") || !strcmp(last, ".aggregate"));
	struct decorator d = {.name = dotted, .loc = name.loc, .start = name.start, .end = name.end};
	for (t = raw_token(p); t.kind && t.kind != NEWLINE; t = raw_token(p))
		d.end = t.end;
	if (decorator_kind(p, dotted, &kind)) {
		p->pending_kind = true;
		p->kind = kind;
		p->jit = d;
	} else {
		d.name = resolved(p, dotted);
		vec_push(p->arena, &p->decorators, d);
	}
}

/* Reads the rest of a line of a class, and extends the class to its end. */
static void read_class_line(struct parser *p)
{
	for (struct token t = raw_token(p); t.kind && t.kind != NEWLINE; t = raw_token(p))
		p->class_line->end = t.end;
}

/* True if this token in the parentheses of a class names a class that kernels can use. */
static bool is_known_base(struct parser *p, const struct token *t)
{
	const struct definition *d = t->kind == NAME ? map_get(&p->module->definitions, t->value.name) : NULL;
	return t->kind == NAME && (!strcmp(t->value.name, "NamedTuple") || (d && d->kind == DEF_CLASS) ||
				   (d && d->target && !strcmp(d->target, "typing.NamedTuple")));
}

/* Reads a class after `class`. False, with the line consumed, if kernels cannot use the class. */
static bool read_class(struct parser *p, int indent, bool aggregate)
{
	struct token name = raw_token(p), t = name;
	struct definition d = {.kind = DEF_CLASS, .name = name.value.name, .loc = name.loc, .start = name.start};
	if (name.kind != NAME) {
		unread_token(p, name);
		return false;
	}
	bool known = aggregate;
	int depth = 0;
	for (t = raw_token(p); t.kind && t.kind != NEWLINE; t = raw_token(p)) {
		depth += (t.kind == '(') - (t.kind == ')');
		known |= depth == 1 && is_known_base(p, &t);
		d.end = t.end;
	}
	unread_token(p, t);
	if (!known || (p->host_scope >= 0 && map_get(&p->module->definitions, d.name)))
		return false;
	define(p, d);
	p->class_line = map_get(&p->module->definitions, d.name);
	p->class_indent = indent;
	return true;
}

bool host_line(struct parser *p, struct token t)
{
	int alt, indent = indentation(p, &t, &alt);
	bool same_line = p->same_line;
	indent = same_line ? p->host_indent : indent;
	p->host_indent = indent;
	if ((indent > p->class_indent || same_line) && p->class_indent >= 0) {
		unread_token(p, t);
		read_class_line(p);
		return false;
	}
	p->class_indent = -1;
	if (indent <= p->host_scope && !same_line)
		p->host_scope = -1;
	struct branch *same = p->host_scope < 0 && !same_line ? leave(p, indent) : NULL;
	if (t.kind == '@') {
		read_decorator(p);
		return false;
	}
	bool pending = p->pending_kind;
	p->pending_kind = false;
	bool aggregate = p->pending_class;
	p->pending_class = false;
	if (t.kind != DEF || !pending)
		p->decorators.len = 0;
	if (t.kind == DEF && pending) {
		vec_push(p->arena, &p->starts,
			 ((struct def_start){t.loc.line, t.start, diags_point(p->diags)}));
		p->in_kernel = true;
		p->base_indent = indent;
		p->indents[0] = indent;
		p->alt_indents[0] = alt;
		p->nindents = 1;
		return true;
	}
	bool of_module = p->host_scope < 0;
	if (t.kind == CLASS && read_class(p, indent, aggregate))
		return false;
	if (of_module && (t.kind == DEF || t.kind == CLASS || t.kind == ASYNC))
		p->host_scope = indent;
	if (of_module && t.kind != CLASS && t.kind != ASYNC) {
		host_statement(p, t, indent, same);
	} else if (t.kind == IMPORT) {
		read_import(p);
	} else if (t.kind == FROM) {
		read_from(p);
	} else {
		unread_token(p, t);
		skip_line(p);
	}
	return false;
}

/* Line structure: raw tokens → the token stream of the grammar.
 *
 * A file is host Python with jit functions in it. Outside jit functions whole logical lines are dropped, except that
 * decorators announce a function, and imports, simple assignments and the names of functions are recorded. Inside,
 * indentation becomes INDENT and DEDENT as in Python ("Indentation" in its Lexical analysis): tabs advance to the next
 * multiple of 8, and a comparison that would come out differently with tabs of width 1 is an error. */
#include "lang/parse.h"
#include "parser.h"

static struct token raw_token(struct parser *p)
{
	if (p->npeeked)
		return p->peeked[--p->npeeked];
	struct token t = scan_token(p);
	/* in host code a stray quote is not ours to judge, but an open triple quote hides the rest of the file */
	if (t.kind == UNTERMINATED_STRING && !p->in_kernel && t.end == p->src->len && t.loc.line != p->line)
		diag(p->diags, E_UNTERMINATED_STRING, t.loc);
	return t;
}

static void unread(struct parser *p, struct token t)
{
	tl_assert(p->npeeked < (int)ARRAY_LEN(p->peeked));
	p->peeked[p->npeeked++] = t;
}

/* Width of the white space before a line's first token, with tabs of 8 and of 1. */
static int indentation(const struct parser *p, const struct token *t, int *alt)
{
	const char *s = p->src->text + p->src->line_start[t->loc.line - 1];
	int width = 0;
	*alt = 0;
	for (int i = 0; i < t->loc.col - 1; i++) {
		width = s[i] == '\t' ? (width / 8 + 1) * 8 : width + 1;
		++*alt;
	}
	return width;
}

static void skip_line(struct parser *p)
{
	struct token t;
	do
		t = raw_token(p);
	while (t.kind && t.kind != NEWLINE);
}

/* Reads `a.b.c` after its first name; the token after it is left unread. */
static const char *dotted_name(struct parser *p, struct token first)
{
	struct strbuf sb = {.arena = p->arena};
	sb_puts(&sb, first.kind == NAME ? first.value.name : "");
	for (;;) {
		struct token t = raw_token(p);
		if (t.kind != '.') {
			unread(p, t);
			break;
		}
		t = raw_token(p);
		if (t.kind != NAME) {
			unread(p, t);
			break;
		}
		if (sb.len)
			sb_puts(&sb, ".");
		sb_puts(&sb, t.value.name);
	}
	return intern_str(p->names, sb.at ? sb.at : "");
}

static void add_import(struct parser *p, const char *alias, const char *target)
{
	struct import *im = arena_new(p->arena, struct import);
	*im = (struct import){alias, target};
	map_put(&p->module->imports, alias, im);
}

static const char *first_part(struct parser *p, const char *dotted)
{
	const char *dot = strchr(dotted, '.');
	return intern(p->names, dotted, dot ? (size_t)(dot - dotted) : strlen(dotted));
}

/* `import a.b as c, d`: binds c, d. `import a.b` binds a. */
static void read_import(struct parser *p)
{
	struct token t;
	do {
		t = raw_token(p);
		if (t.kind != NAME)
			break;
		const char *target = dotted_name(p, t);
		t = raw_token(p);
		if (t.kind == AS) {
			t = raw_token(p);
			if (t.kind == NAME)
				add_import(p, t.value.name, target);
			t = raw_token(p);
		} else {
			add_import(p, first_part(p, target), first_part(p, target));
		}
	} while (t.kind == ',');
	unread(p, t);
	skip_line(p);
}

/* `from a.b import c as d, (e)`. */
static void read_from(struct parser *p)
{
	struct token t = raw_token(p);
	if (t.kind != NAME && t.kind != '.') {
		unread(p, t);
		skip_line(p);
		return;
	}
	const char *base = dotted_name(p, t);
	t = raw_token(p);
	while (t.kind && t.kind != NEWLINE) {
		if (t.kind == NAME) {
			const char *name = t.value.name, *alias = name;
			t = raw_token(p);
			if (t.kind == AS) {
				t = raw_token(p);
				if (t.kind == NAME)
					alias = t.value.name;
				t = raw_token(p);
			}
			add_import(p, alias, intern_str(p->names, arena_printf(p->arena, "%s.%s", base, name)));
		} else {
			t = raw_token(p);
		}
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

/* Host code assigns `name` in a statement that is not evaluated: its value is unknown. */
static void note_changed(struct parser *p, const struct token *name)
{
	struct global *g = arena_new(p->arena, struct global);
	*g = (struct global){.name = name->value.name, .loc = name->loc, .changed = name->loc};
	map_put(&p->module->globals, g->name, g);
}

/* Notes the globals that a line of host code assigns; t is its first token. `N *= 2`, `A, B = …`, `for N in …`, also
 * below an `if` or `with`, or behind its ':'. */
static void note_assignments(struct parser *p, struct token t)
{
	VEC(struct token) names = {0};
	bool compound = t.kind != NAME, typed = false, loop = false;
	int depth = 0, before = NEWLINE;
	for (; t.kind && t.kind != NEWLINE && t.kind != LAMBDA; before = t.kind, t = raw_token(p)) {
		depth += (t.kind == '[' || t.kind == '(' || t.kind == '{') -
			 (t.kind == ']' || t.kind == ')' || t.kind == '}');
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

/* `NAME = …` or `NAME: … = …` at the margin: remember where the expression is. */
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
		unread(p, t);
		note_assignments(p, name);
		return;
	}
	struct global *g = arena_new(p->arena, struct global);
	*g = (struct global){.name = name.value.name, .loc = name.loc, .start = t.end, .end = t.end};
	for (t = raw_token(p); t.kind && t.kind != NEWLINE; t = raw_token(p))
		g->end = t.end;
	if (g->end > g->start)
		map_put(&p->module->globals, g->name, g);
}

/* `def NAME` at the margin without @triton.jit: noted for the error about a kernel that calls it. */
static void read_host_function(struct parser *p)
{
	struct token t = raw_token(p);
	if (t.kind == NAME) {
		struct loc *loc = arena_new(p->arena, struct loc);
		*loc = t.loc;
		map_put(&p->module->host_funcs, t.value.name, loc);
	} else {
		unread(p, t);
	}
	skip_line(p);
}

/* A dotted name with its first part replaced by the target of its import: T.jit → triton.jit. */
static const char *resolved(struct parser *p, const char *name)
{
	const char *first = first_part(p, name);
	const struct import *im = map_get(&p->module->imports, first);
	return im ? arena_printf(p->arena, "%s%s", im->target, name + strlen(first)) : name;
}

static bool decorator_kind(struct parser *p, const char *name, enum func_kind *kind)
{
	name = resolved(p, name);
	const char *last = strrchr(name, '.');
	last = last ? last + 1 : name;
	if (!strcmp(last, "jit") && (last == name || !strncmp(name, "triton", 6) || !strncmp(name, "tl.", 3)))
		*kind = FUNC_JIT;
	else if (!strcmp(last, "constexpr_function"))
		*kind = FUNC_CONSTEXPR;
	else
		return false;
	return true;
}

/* One logical line of host code. True when it opens a jit function, whose tokens follow. */
static bool host_line(struct parser *p, struct token t)
{
	int alt, indent = indentation(p, &t, &alt);
	if (t.kind == '@') {
		struct token name = raw_token(p);
		enum func_kind kind;
		if (name.kind == NAME && decorator_kind(p, dotted_name(p, name), &kind)) {
			p->pending_kind = true;
			p->kind = kind;
		} else if (name.kind != NAME) {
			unread(p, name);
		}
		skip_line(p);
		return false;
	}
	bool pending = p->pending_kind;
	p->pending_kind = false;
	if (t.kind == DEF && pending) {
		p->in_kernel = true;
		p->base_indent = indent;
		p->indents[0] = indent;
		p->alt_indents[0] = alt;
		p->nindents = 1;
		return true;
	}
	if (indent <= p->host_scope)
		p->host_scope = -1;
	bool of_module = p->host_scope < 0;
	if (of_module && (t.kind == DEF || t.kind == CLASS || t.kind == ASYNC))
		p->host_scope = indent;
	if (t.kind == NAME && indent == 0) {
		read_global(p, t);
	} else if (t.kind == DEF && indent == 0) {
		read_host_function(p);
	} else if (t.kind == IMPORT) {
		read_import(p);
	} else if (t.kind == FROM) {
		read_from(p);
	} else if (of_module && p->host_scope < 0) {
		note_assignments(p, t);
	} else {
		unread(p, t);
		skip_line(p);
	}
	return false;
}

/* At the first token of a logical line inside a function: indentation → INDENT, DEDENTs or the end of the function. */
static bool kernel_line(struct parser *p, struct token t, struct token *out)
{
	int alt = 0, indent = t.kind ? indentation(p, &t, &alt) : -1;
	int top = p->indents[p->nindents - 1];
	*out = (struct token){.loc = t.loc, .start = t.start, .end = t.start};
	if (indent > top) {
		if (alt <= p->alt_indents[p->nindents - 1])
			diag(p->diags, E_TABS, t.loc);
		if (p->nindents == (int)ARRAY_LEN(p->indents)) {
			diag(p->diags, E_NESTED_TOO_DEEP, t.loc);
			p->at_end = true;
			return true;
		}
		p->indents[p->nindents] = indent;
		p->alt_indents[p->nindents++] = alt;
		out->kind = INDENT;
		unread(p, t);
		return true;
	}
	while (p->nindents > 1 && indent < p->indents[p->nindents - 1]) {
		p->nindents--;
		p->pending_dedents++;
	}
	if (t.kind && indent > p->base_indent) {
		if (indent != p->indents[p->nindents - 1])
			diag(p->diags, E_BAD_DEDENT, t.loc);
		else if (alt != p->alt_indents[p->nindents - 1])
			diag(p->diags, E_TABS, t.loc);
	}
	if (indent <= p->base_indent) {
		p->in_kernel = false;
		p->line_start = true;
	}
	unread(p, t);
	return false;
}

static struct token expression_token(struct parser *p)
{
	if (p->last_kind == 0) {
		p->last_kind = START_EXPRESSION;
		p->depth = 1; /* line ends inside the range do not matter */
		return (struct token){.kind = START_EXPRESSION};
	}
	return raw_token(p);
}

static struct token produce(struct parser *p)
{
	struct token t, out = {0};
	if (p->expression_only)
		return expression_token(p);
	while (!p->at_end) {
		if (p->pending_dedents) {
			p->pending_dedents--;
			return (struct token){.kind = DEDENT, .loc = p->last_loc};
		}
		t = raw_token(p);
		if (!p->line_start || (t.kind == NEWLINE && p->line_start)) {
			if (t.kind == NEWLINE && p->line_start)
				continue; /* a blank line */
			if (t.kind == NEWLINE)
				p->line_start = true;
			if (t.kind == 0 && p->in_kernel && p->last_kind != NEWLINE) {
				unread(p, t);
				t.kind = NEWLINE; /* the file ends without a line end */
				p->line_start = true;
			}
			return t;
		}
		if (!p->in_kernel) {
			if (t.kind == 0)
				break;
			if (host_line(p, t)) {
				p->line_start = false;
				t.kind = p->kind == FUNC_JIT ? JIT_DEF : CONSTEXPR_DEF;
				return t;
			}
			continue;
		}
		p->line_start = false;
		if (kernel_line(p, t, &out) && !p->at_end)
			return out;
	}
	p->at_end = true;
	return (struct token){.loc = p->last_loc};
}

struct token next_token(struct parser *p)
{
	struct token t = produce(p);
	p->last_kind = t.kind;
	if (t.kind && t.kind != DEDENT)
		p->last_loc = t.loc;
	return t;
}

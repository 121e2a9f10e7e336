/* Line structure: converts raw tokens to the token stream of the grammar.
 *
 * A file is host Python that contains jit functions. Lines outside jit functions are passed to host_code.c. Inside,
 * indentation becomes INDENT and DEDENT as in Python ("Indentation" in its Lexical analysis): tabs advance to the next
 * multiple of 8, and an indentation that compares differently for tabs of one column is an error. */
#include "lang/parse.h"
#include "parser.h"

struct token raw_token(struct parser *p)
{
	if (p->npeeked)
		return p->peeked[--p->npeeked];
	struct token t = scan_token(p);
	/* in host code a stray quote is ignored, but an open triple quote would hide the rest of the file */
	if (t.kind == UNTERMINATED_STRING && !p->in_kernel && t.end == p->src->len && t.loc.line != p->line)
		diag(p->diags, E_UNTERMINATED_STRING, t.loc);
	bool semicolon = t.kind == ';' && !p->in_kernel && p->depth == 0;
	if (semicolon)
		t.kind = NEWLINE; /* in host code each statement is a line; kernels are left to the grammar */
	if (t.kind == NEWLINE)
		p->same_line = semicolon;
	return t;
}

void unread_token(struct parser *p, struct token t)
{
	tl_assert(p->npeeked < (int)ARRAY_LEN(p->peeked));
	p->peeked[p->npeeked++] = t;
}

int indentation(const struct parser *p, const struct token *t, int *alt)
{
	const char *s = source_line(p->src, t->loc.line);
	int width = 0;
	*alt = 0;
	for (int i = 0; i < (int)source_column(p->src, t->loc.col); i++) {
		width = s[i] == '\t' ? (width / 8 + 1) * 8 : width + 1;
		++*alt;
	}
	return width;
}

/* The first token of a logical line inside a function: the indentation gives INDENT, DEDENTs or the end of the
 * function. */
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
		unread_token(p, t);
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
	unread_token(p, t);
	return false;
}

static struct token expression_token(struct parser *p)
{
	if (p->last_kind == 0) {
		p->last_kind = START_EXPRESSION;
		p->depth = 1; /* newlines inside the range are ignored */
		return (struct token){.kind = START_EXPRESSION};
	}
	return raw_token(p);
}

/* The `def` of the only function to parse. */
static struct token function_token(struct parser *p)
{
	struct token t = raw_token(p);
	p->base_indent = indentation(p, &t, &p->alt_indents[0]);
	p->indents[0] = p->base_indent;
	p->nindents = 1;
	t.kind = t.kind == DEF ? CONSTEXPR_DEF : BAD_TOKEN;
	t.value.branch = NULL;
	return t;
}

static struct token produce(struct parser *p)
{
	struct token t, out = {0};
	if (p->expression_only)
		return expression_token(p);
	if (p->class_only && !p->last_kind)
		return (struct token){.kind = START_CLASS};
	if (p->function_only && p->last_kind == 0)
		return function_token(p);
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
				unread_token(p, t);
				t.kind = NEWLINE; /* the last line has no newline */
				p->line_start = true;
			}
			return t;
		}
		if (!p->in_kernel) {
			if (t.kind == 0 || p->function_only)
				break;
			if (host_line(p, t)) {
				p->line_start = false;
				t.kind = p->kind == FUNC_JIT ? JIT_DEF : CONSTEXPR_DEF;
				t.value.branch = p->branch;
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

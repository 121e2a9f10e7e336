/* Messages for syntax errors: the unexpected token, the expected one, and a hint. */
#include "lang/ast_builder.h"

/* A token in terms that the author of a kernel knows, from bison's name of the token. */
static const char *readable(struct parser *p, const char *symbol)
{
	static const struct {
		const char *symbol, *text;
	} names[] = {
		{"NEWLINE", "end of line"},
		{"INDENT", "indentation"},
		{"DEDENT", "end of the indented block"},
		{"NAME", "a name"},
		{"NUMBER", "a number"},
		{"STRING", "a string"},
		{"end of file", "end"},
		{"JIT_DEF", "the start of a new function"},
		{"CONSTEXPR_DEF", "the start of a new function"},
	};
	for (u32 i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(names[i].symbol, symbol))
			return names[i].text;
	if (*symbol == '\'')
		return symbol;
	return arena_printf(p->arena, "'%s'", symbol);
}

static const char *line_text(const struct parser *p, u32 line)
{
	const char *text = source_line(p->src, line);
	return text ? text : p->src->text;
}

static const char *text_at(const struct parser *p, struct loc at)
{
	return line_text(p, at.line) + source_column(p->src, at.col);
}

static void bad_character(struct parser *p, struct loc at)
{
	const char *s = text_at(p, at);
	unsigned char c = (unsigned char)*s;
	if (c > 32 && c < 127) {
		diag(p->diags, E_BAD_CHARACTER, at, arena_printf(p->arena, "the character '%c'", c));
		if (c == '?')
			diag_hint(p->diags, "write `a if condition else b`");
		else if (c == '!')
			diag_hint(p->diags, "write `not condition`, or ~tile");
		return;
	}
	u32 code = c < 0x80   ? c
		   : c < 0xE0 ? (c & 31u) << 6 | (s[1] & 63u)
			      : (c & 15u) << 12 | (s[1] & 63u) << 6 | (s[2] & 63u);
	diag(p->diags, E_BAD_CHARACTER, at, arena_printf(p->arena, "the character U+%04X", code));
	if (c >= 0x80)
		diag_hint(p->diags, code >= 0x2010 && code < 0x2030
					    ? "it looks like a quote or a dash: type \" or ' or - instead"
					    : "it looks like a space: type one instead");
}

/* True if a bracket is open, and the error is at the end of the text or at the start of a line that is indented like a
 * new statement. */
static bool bracket_was_left_open(const struct parser *p, struct loc at, const char *got)
{
	if (p->depth <= (p->expression_only ? 1 : 0)) /* a single expression is parsed as if inside a bracket */
		return false;
	struct loc open = p->open[MIN(p->depth, (int)ARRAY_LEN(p->open)) - 1];
	if (!strcmp(got, "NEWLINE") || !strcmp(got, "end of file") || !strcmp(got, "DEDENT"))
		return true;
	const char *line = line_text(p, at.line);
	size_t indent = strspn(line, " \t");
	return at.line > open.line && indent <= strspn(line_text(p, open.line), " \t") && !strchr(")]}", line[indent]);
}

/* A hint for an operator of another language before `at`: the Python operator. NULL if there is no hint. */
static const char *instead(const struct parser *p, struct loc at, const char *got)
{
	static const struct {
		const char *got, *before, *hint;
	} habits[] = {
		{"'&'", "&", "write `and` between conditions, & between tiles"},
		{"'|'", "|", "write `or` between conditions, | between tiles"},
		{"NEWLINE", "++", "write x += 1"},
		{"NEWLINE", "--", "write x -= 1"},
		{"if", "else ", "write elif"},
	};
	u32 col = source_column(p->src, at.col);
	const char *s = line_text(p, at.line);
	for (u32 i = 0; i < ARRAY_LEN(habits); i++) {
		size_t n = strlen(habits[i].before);
		if (!strcmp(got, habits[i].got) && col >= n && !memcmp(s + col - n, habits[i].before, n))
			return habits[i].hint;
	}
	return NULL;
}

void syntax_error(struct parser *p, struct loc at, const char *got, const char *wanted)
{
	got = got ? got : "end of file";
	bool said = p->was_unclosed && !strcmp(got, "NEWLINE");
	p->was_unclosed = false;
	if (said)
		return;
	if (!strcmp(got, "UNTERMINATED_STRING")) {
		diag(p->diags, E_UNTERMINATED_STRING, at);
	} else if (!strcmp(got, "BAD_TOKEN")) {
		bad_character(p, at);
	} else if (!strcmp(got, "INDENT")) {
		diag(p->diags, E_UNEXPECTED_INDENT, at);
	} else if (!strcmp(got, ":=")) {
		diag(p->diags, E_UNSUPPORTED_SYNTAX, at, ":=");
		diag_hint(p->diags, "assign on a line of its own first");
	} else if (bracket_was_left_open(p, at, got)) {
		diag(p->diags, E_UNCLOSED_BRACKET, p->open[MIN(p->depth, (int)ARRAY_LEN(p->open)) - 1]);
	} else {
		const char *hint = instead(p, at, got);
		bool named = !strcmp(got, "NAME") || !strcmp(got, "NUMBER") || !strcmp(got, "STRING");
		diag(p->diags, E_SYNTAX, at,
		     named ? arena_printf(p->arena, "'%.*s'", MIN(at.len, 40), text_at(p, at)) : readable(p, got));
		bool closes = wanted && (!strcmp(wanted, "')'") || !strcmp(wanted, "']'") || !strcmp(wanted, "'}'"));
		if (!hint && wanted && !strcmp(wanted, "':'") && !strcmp(got, "'='"))
			hint = "write == to compare";
		u32 before = source_column(p->src, at.col);
		if (!hint && !strcmp(got, "'@'") && before == strspn(line_text(p, at.line), " \t"))
			hint = "a function cannot hold another one: start it at the left margin";
		if (hint)
			diag_hint(p->diags, "%s", hint);
		else if (closes && !strcmp(got, "','"))
			diag_hint(p->diags, "something is missing before this comma");
		else if (closes && strcmp(got, "')'") && strcmp(got, "']'") && strcmp(got, "'}'"))
			diag_hint(p->diags, "expected ',' or %s here", wanted);
		else if (wanted && strcmp(wanted, "NEWLINE"))
			diag_hint(p->diags, "expected %s here", readable(p, wanted));
	}
}

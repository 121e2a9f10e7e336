/* f-strings: the text of f"…{expression!r:format}…", where each expression is a compile-time value. */
#include "frontend/frontend_internal.h"

/* Python's format specification: [[fill]align][sign][#][0][width][.digits][type]. */
struct format {
	char fill, align, sign, type;
	bool alternate;
	int width, digits; /* digits: -1 if not given */
};

static int read_number(const char **s, const char *end)
{
	int n = 0;
	for (; *s < end && **s >= '0' && **s <= '9'; ++*s)
		n = MIN(n * 10 + **s - '0', 1000);
	return n;
}

static bool read_format(const char *s, u32 len, struct format *f)
{
	const char *end = s + len;
	*f = (struct format){.fill = ' ', .digits = -1};
	if (len > 1 && strchr("<>^=", s[1])) {
		f->fill = s[0];
		f->align = s[1];
		s += 2;
	} else if (len && strchr("<>^=", *s)) {
		f->align = *s++;
	}
	if (s < end && strchr("+- ", *s))
		f->sign = *s++;
	if (s < end && *s == '#')
		f->alternate = *s++ == '#';
	if (s < end && *s == '0') {
		if (!f->align) {
			f->fill = '0';
			f->align = '=';
		}
		s++;
	}
	f->width = read_number(&s, end);
	if (s + 1 < end && *s == '.') {
		s++;
		f->digits = read_number(&s, end);
	}
	if (s < end)
		f->type = *s++;
	return s == end;
}

/* Prints the digits of |n| in the format's base, after the prefix of `#`. The sign is printed separately. */
static void integer_digits(struct strbuf *out, i128 n, const struct format *f)
{
	unsigned base = f->type == 'x' || f->type == 'X' ? 16 : f->type == 'o' ? 8 : f->type == 'b' ? 2 : 10;
	const char *digits = f->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
	unsigned __int128 u = n < 0 ? -(unsigned __int128)n : (unsigned __int128)n;
	char text[128];
	u32 at = sizeof text;
	do
		text[--at] = digits[u % base];
	while (u /= base);
	if (f->alternate && base != 10)
		sb_printf(out, "0%c", f->type);
	sb_add(out, text + at, sizeof text - at);
}

/* Prints sign and body, padded to the width. */
static void pad(struct strbuf *out, const char *sign, const char *body, u32 len, const struct format *f, char align)
{
	u32 used = len + (u32)strlen(sign), room = (u32)f->width > used ? (u32)f->width - used : 0;
	u32 before = align == '<' ? 0 : align == '^' ? room / 2 : room;
	if (align == '=')
		sb_puts(out, sign);
	for (u32 i = 0; i < before; i++)
		sb_add(out, &f->fill, 1);
	if (align != '=')
		sb_puts(out, sign);
	sb_add(out, body, len);
	for (u32 i = before; i < room; i++)
		sb_add(out, &f->fill, 1);
}

bool format_val(struct eval *e, struct strbuf *out, const struct val *v, const char *spec, u32 len)
{
	struct format f;
	struct strbuf body = sb_empty(e->arena);
	if (!read_format(spec, len, &f))
		return false;
	bool integer = v->kind == V_INT || v->kind == V_BOOL, letter = f.type && strchr("eEfFgG", f.type);
	bool negative = false;
	if (integer && (!f.type || strchr("dxXob", f.type)) && f.digits < 0) {
		i128 n = v->kind == V_INT ? v->integer : v->boolean;
		negative = n < 0;
		integer_digits(&body, n, &f);
	} else if (val_is_number(v) && (letter || (v->kind == V_FLOAT && !f.type)) && !f.alternate) {
		double x = v->kind == V_FLOAT ? v->real : v->kind == V_INT ? (double)v->integer : v->boolean;
		negative = __builtin_signbit(x) && x == x;
		const char shape[] = {'%', '.', '*', letter ? f.type : 'g', 0};
		struct val magnitude = val_float(__builtin_fabs(x));
		if (letter || f.digits >= 0)
			sb_add(&body, arena_printf(e->arena, shape, f.digits < 0 ? 6 : f.digits, magnitude.real),
			       (u32)snprintf(NULL, 0, shape, f.digits < 0 ? 6 : f.digits, magnitude.real));
		else
			print_val(&body, &magnitude);
	} else if (v->kind == V_STR && (!f.type || f.type == 's') && f.align != '=' && !f.sign && !f.alternate) {
		sb_add(&body, v->text, f.digits >= 0 ? MIN(v->len, (u32)f.digits) : v->len);
	} else {
		return false;
	}
	const char *sign = negative ? "-" : f.sign == '+' ? "+" : f.sign == ' ' ? " " : "";
	pad(out, sign, body.at, body.len, &f, f.align ? f.align : v->kind == V_STR ? '<' : '>');
	return true;
}

/* The end of the expression that begins at `at`: the first '}', ':' or '!' outside brackets and strings, or the end of
 * x. */
static u32 expression_end(const struct expr *x, u32 at)
{
	int depth = 0;
	char quote = 0;
	for (; at < x->text_len; at++) {
		char c = x->text[at];
		if (quote) {
			quote = c == quote ? 0 : quote;
			continue;
		}
		if (c == '"' || c == '\'')
			quote = c;
		else if (!depth &&
			 (c == '}' || c == ':' || (c == '!' && at + 1 < x->text_len && x->text[at + 1] != '=')))
			return at;
		depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
	}
	return at;
}

/* Evaluates the field that begins after a '{' at `start`. Returns the position of its '}', or 0 after an error. */
static u32 eval_field(struct eval *e, const struct expr *x, u32 start, struct strbuf *out)
{
	u32 end = expression_end(x, start), last = end,
	    offset = (u32)(x->text - e->diags->sources.at[x->loc.file]->text);
	while (last > start && x->text[last - 1] == ' ')
		last--;
	/* the form {name=} */
	bool named = last > start + 1 && x->text[last - 1] == '=' && !strchr("=!<>", x->text[last - 2]);
	u32 stop = named ? last - 1 : end, close = end;
	while (close < x->text_len && x->text[close] != '}')
		close++;
	u32 colon = end;
	if (colon + 1 < close && x->text[colon] == '!')
		colon += 2; /* !r and !s are equal: compile-time values have a single text form */
	bool broken = close == x->text_len || stop == start || (colon < close && x->text[colon] != ':');
	const struct expr *inner = broken ? NULL : map_get(&e->fstrings, x->text + start);
	if (!inner && !broken) {
		inner = parse_expression(e->arena, e->ctx->names, e->diags, x->loc.file, offset + start, offset + stop);
		map_put(&e->fstrings, x->text + start, (void *)inner);
	}
	if (!inner) {
		eval_error(e, E_FSTRING, x->loc);
		return 0;
	}
	struct val v = eval_expr(e, inner);
	if (v.kind == V_TENSOR) {
		v = eval_error(e, E_FSTRING_RUNTIME, x->loc, describe(e, &v));
		diag_hint(e->diags, "pass run-time values after the text: tl.device_print(\"x: \", x)");
	}
	if (v.kind == V_ERROR)
		return 0;
	if (named)
		sb_add(out, x->text + start, end - start);
	if (colon + 1 >= close) {
		print_val(out, &v);
	} else if (!format_val(e, out, &v, x->text + colon + 1, close - colon - 1)) {
		eval_error(e, E_FORMAT_SPEC, x->loc, arena_str(e->arena, x->text + colon + 1, close - colon - 1),
			   describe(e, &v));
		return 0;
	}
	return close;
}

/* Copies text between fields, from position `at`. Returns its end. */
static u32 eval_text(struct eval *e, const struct expr *x, u32 at, struct strbuf *out)
{
	u32 start = at, len;
	while (at < x->text_len && x->text[at] != '{' && x->text[at] != '}')
		at += !x->raw && x->text[at] == '\\' && at + 1 < x->text_len && x->text[at + 1] != '{' ? 2 : 1;
	at = MIN(at, x->text_len);
	if (x->raw) {
		sb_add(out, x->text + start, at - start);
	} else {
		const char *text = unescape_string(e->arena, x->text + start, at - start, &len);
		sb_add(out, text, len);
	}
	return at;
}

static bool eval_part(struct eval *e, const struct expr *x, struct strbuf *out)
{
	if (x->kind == EX_STR) {
		sb_add(out, x->text, x->text_len);
		return true;
	}
	for (u32 at = 0; at < x->text_len; at++) {
		at = eval_text(e, x, at, out);
		if (at >= x->text_len)
			break;
		if (at + 1 < x->text_len && x->text[at + 1] == x->text[at]) { /* escaped braces: {{ and }} */
			sb_add(out, x->text + at++, 1);
			continue;
		}
		if (x->text[at] == '}') {
			eval_error(e, E_FSTRING, x->loc);
			return false;
		}
		at = eval_field(e, x, at + 1, out);
		if (!at || !count_text(e, out->len, x->loc))
			return false;
	}
	return true;
}

struct val eval_fstring(struct eval *e, const struct expr *x)
{
	struct strbuf out = sb_empty(e->arena);
	bool ok = x->nitems || eval_part(e, x, &out);
	for (u32 i = 0; ok && i < x->nitems; i++)
		ok = eval_part(e, x->items[i], &out);
	return ok && count_text(e, out.len, x->loc) ? val_str(out.at, out.len) : val_error();
}

/* Methods of Python's strings, lists and dicts that do not change them, and formatting, at compile time. */
#include <string.h>

#include "frontend/builtin_args.h"

typedef VEC(struct val) val_vec;

struct method_call {
	const char *name;
	struct val self;
	const struct val *args; /* the arguments after self */
	u32 n;
	const struct named_val *named;
	u32 nnamed;
	struct loc at;
	int code;
};

static struct val text_of(struct eval *e, struct strbuf *sb, struct loc at)
{
	sb_puts(sb, "");
	return count_text(e, sb->len, at) ? val_str(sb->at, sb->len) : val_error();
}

static struct val piece(struct eval *e, const char *text, u32 len)
{
	return val_str(arena_str(e->arena, text, len), len);
}

static struct val argument_error(struct eval *e, const struct method_call *c, u32 i, const char *wanted)
{
	return eval_error(e, E_ARG_KIND, c->at, "argument", c->name, wanted, describe(e, &c->args[i]));
}

static bool text_argument(struct eval *e, const struct method_call *c, u32 i)
{
	if (c->args[i].kind == V_STR)
		return true;
	argument_error(e, c, i, "a string");
	return false;
}

/* --- strings ------------------------------------------------------------------------------------------------- */

static bool is_letter(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

/* lower, upper, title, capitalize, swapcase */
static struct val text_case(struct eval *e, const struct method_call *c)
{
	char *made = arena_str(e->arena, c->self.text, c->self.len), before = 0;
	for (u32 i = 0; i < c->self.len; before = made[i++]) {
		bool first = c->code == 'c' ? !i : !is_letter(before), lower = made[i] >= 'a';
		bool up = c->code == 'u' || ((c->code == 't' || c->code == 'c') && first) || (c->code == 's' && lower);
		if (is_letter(made[i]) && up == lower)
			made[i] ^= 'a' ^ 'A';
	}
	return val_str(made, c->self.len);
}

/* strip ('b': both ends), lstrip, rstrip */
static struct val text_strip(struct eval *e, const struct method_call *c)
{
	const char *set = " \t\n\r\f\v", *text = c->self.text;
	u32 len = c->self.len;
	if (c->n && c->args[0].kind != V_NONE) {
		if (!text_argument(e, c, 0))
			return val_error();
		set = c->args[0].text;
	}
	for (; c->code != 'r' && len && strchr(set, *text); len--)
		text++;
	while (c->code != 'l' && len && strchr(set, text[len - 1]))
		len--;
	return piece(e, text, len);
}

static bool begins(const struct val *text, const struct val *part, bool at_end)
{
	return part->len <= text->len &&
	       !memcmp(text->text + (at_end ? text->len - part->len : 0), part->text, part->len);
}

/* startswith, endswith (code 1): with a string or a tuple of strings */
static struct val text_begins(struct eval *e, const struct method_call *c)
{
	const struct val *parts = c->args[0].kind == V_TUPLE ? c->args[0].items : c->args;
	u32 n = c->args[0].kind == V_TUPLE ? c->args[0].nitems : 1;
	bool found = false;
	for (u32 i = 0; i < n; i++) {
		if (parts[i].kind != V_STR)
			return argument_error(e, c, 0, "a string");
		found |= begins(&c->self, &parts[i], c->code);
	}
	return val_bool(found);
}

/* removeprefix, removesuffix (code 1) */
static struct val text_remove(struct eval *e, const struct method_call *c)
{
	if (!text_argument(e, c, 0))
		return val_error();
	u32 cut = begins(&c->self, c->args, c->code) ? c->args[0].len : 0;
	return piece(e, c->self.text + (c->code ? 0 : cut), c->self.len - cut);
}

static const char *find_text(const char *text, u32 len, const struct val *part)
{
	for (u32 i = 0; i + part->len <= len; i++)
		if (!memcmp(text + i, part->text, part->len))
			return text + i;
	return NULL;
}

static struct val text_split(struct eval *e, const struct method_call *c)
{
	val_vec out = {0};
	const char *text = c->self.text, *end = text + c->self.len;
	i128 most = c->n > 1 && c->args[1].kind == V_INT ? c->args[1].integer : -1;
	bool blanks = !c->n || c->args[0].kind == V_NONE;
	if (!count_made(e, c->self.len, c->at) || (!blanks && !text_argument(e, c, 0)))
		return val_error();
	if (!blanks && !c->args[0].len)
		return argument_error(e, c, 0, "a string that is not empty");
	while (blanks && most < 0) {
		text += strspn(text, " \t\n\r\f\v");
		u32 len = (u32)strcspn(text, " \t\n\r\f\v");
		if (!len)
			break;
		vec_push(e->arena, &out, piece(e, text, len));
		text += len;
	}
	const struct val blank = val_str(" ", 1), *by = blanks ? &blank : c->args;
	for (const char *next; !blanks || most >= 0; text = next + by->len) {
		next = most < 0 || out.len < most ? find_text(text, (u32)(end - text), by) : NULL;
		vec_push(e->arena, &out, piece(e, text, (u32)((next ? next : end) - text)));
		if (!next)
			break;
	}
	struct val v = val_tuple(out.at, out.len);
	v.list = LIST_OWNED;
	return v;
}

static struct val text_lines(struct eval *e, const struct method_call *c)
{
	val_vec out = {0};
	for (const char *text = c->self.text; *text;) {
		u32 len = (u32)strcspn(text, "\n");
		vec_push(e->arena, &out, piece(e, text, len));
		text += len + (text[len] != 0);
	}
	struct val v = val_tuple(out.at, out.len);
	v.list = LIST_OWNED;
	return count_made(e, c->self.len, c->at) ? v : val_error();
}

static struct val text_join(struct eval *e, const struct method_call *c)
{
	struct strbuf sb = {.arena = e->arena};
	struct val items;
	if (c->args[0].kind == V_STR) {
		for (u32 i = 0; i < c->args[0].len; i++) {
			sb_add(&sb, c->self.text, i ? c->self.len : 0);
			sb_add(&sb, c->args[0].text + i, 1);
		}
		return text_of(e, &sb, c->at);
	}
	if (!sequence_items(e, &c->args[0], &items))
		return argument_error(e, c, 0, "a sequence of strings");
	for (u32 i = 0; i < items.nitems; i++) {
		if (items.items[i].kind != V_STR)
			return eval_error(e, E_ARG_KIND, c->at, "items", c->name, "strings",
					  describe(e, &items.items[i]));
		sb_add(&sb, c->self.text, i ? c->self.len : 0);
		sb_add(&sb, items.items[i].text, items.items[i].len);
		if (!count_text(e, sb.len, c->at))
			return val_error();
	}
	return text_of(e, &sb, c->at);
}

static struct val text_replace(struct eval *e, const struct method_call *c)
{
	struct strbuf sb = {.arena = e->arena};
	const char *text = c->self.text, *end = text + c->self.len;
	i128 most = c->n > 2 && c->args[2].kind == V_INT ? c->args[2].integer : -1;
	if (!text_argument(e, c, 0) || !text_argument(e, c, 1))
		return val_error();
	if (!c->args[0].len)
		return argument_error(e, c, 0, "a string that is not empty");
	for (const char *next; most != 0 && (next = find_text(text, (u32)(end - text), c->args)); most--) {
		sb_add(&sb, text, (u32)(next - text));
		sb_add(&sb, c->args[1].text, c->args[1].len);
		text = next + c->args[0].len;
		if (!count_text(e, sb.len, c->at))
			return val_error();
	}
	sb_add(&sb, text, (u32)(end - text));
	return text_of(e, &sb, c->at);
}

/* find, rfind ('r'), index ('i'), count ('c') */
static struct val text_find(struct eval *e, const struct method_call *c)
{
	i128 found = -1, count = 0;
	if (!text_argument(e, c, 0))
		return val_error();
	for (u32 i = 0; i + c->args[0].len <= c->self.len; i++) {
		if (memcmp(c->self.text + i, c->args[0].text, c->args[0].len) != 0)
			continue;
		count++;
		found = c->code == 'r' || found < 0 ? i : found;
		if (c->code == 'c' && c->args[0].len)
			i += c->args[0].len - 1;
	}
	if (c->code == 'i' && found < 0) {
		e->raised++;
		return eval_error(e, E_RAISED, c->at, "substring not found");
	}
	return val_int(c->code == 'c' ? count : found);
}

/* isdigit and similar methods; the code is d, a, n, u, l or s. */
static struct val text_is(struct eval *e, const struct method_call *c)
{
	(void)e;
	bool all = c->self.len > 0, cased = false;
	for (u32 i = 0; i < c->self.len; i++) {
		char ch = c->self.text[i];
		bool digit = ch >= '0' && ch <= '9', letter = is_letter(ch), lower = ch >= 'a' && ch <= 'z';
		cased |= letter;
		all &= c->code == 'd'	? digit
		       : c->code == 'a' ? letter
		       : c->code == 'n' ? digit || letter
		       : c->code == 's' ? strchr(" \t\n\r\f\v", ch) != NULL
					: !letter || lower == (c->code == 'l');
	}
	return val_bool(all && (cased || (c->code != 'u' && c->code != 'l')));
}

/* ljust, rjust, center, zfill ('0') */
static struct val text_pad(struct eval *e, const struct method_call *c)
{
	struct strbuf sb = {.arena = e->arena};
	const struct val width = known_number(c->args[0]);
	char fill = c->code == '0' ? '0' : ' ';
	if (width.kind != V_INT)
		return argument_error(e, c, 0, "a compile-time integer");
	if (c->n > 1 && (c->args[1].kind != V_STR || c->args[1].len != 1))
		return argument_error(e, c, 1, "one character");
	fill = c->n > 1 ? *c->args[1].text : fill;
	u64 room = width.integer > c->self.len ? (u64)MIN(width.integer - c->self.len, (i128)MAX_PARTS) : 0;
	u64 before = c->code == 'l' ? 0 : c->code == 'c' ? room / 2 + (room & (u64)width.integer & 1) : room;
	if (!count_text(e, room + c->self.len, c->at))
		return val_error();
	bool sign = c->code == '0' && c->self.len && strchr("+-", *c->self.text);
	sb_add(&sb, c->self.text, sign);
	for (u64 i = 0; i < before; i++)
		sb_add(&sb, &fill, 1);
	sb_add(&sb, c->self.text + sign, c->self.len - sign);
	for (u64 i = before; i < room; i++)
		sb_add(&sb, &fill, 1);
	return text_of(e, &sb, c->at);
}

/* partition, rpartition ('r') */
static struct val text_partition(struct eval *e, const struct method_call *c)
{
	const char *at = NULL, *text = c->self.text;
	if (!text_argument(e, c, 0))
		return val_error();
	for (u32 i = 0; i + c->args[0].len <= c->self.len; i++)
		if (!memcmp(text + i, c->args[0].text, c->args[0].len) && (!at || c->code == 'r'))
			at = text + i;
	u32 len = at ? (u32)(at - text) : c->code == 'r' ? 0 : c->self.len;
	struct val parts[] = {piece(e, text, len), at ? c->args[0] : val_str("", 0),
			      at ? piece(e, at + c->args[0].len, c->self.len - len - c->args[0].len) : val_str("", 0)};
	if (!at && c->code == 'r')
		parts[2] = c->self;
	return val_tuple(arena_dup(e->arena, parts, sizeof parts), 3);
}

/* --- formatting ---------------------------------------------------------------------------------------------- */

/* Formats v by `spec` and appends it to `out`. False after an error. */
static bool add_field(struct eval *e, struct strbuf *out, const struct val *v, const char *spec, u32 len, struct loc at)
{
	if (v->kind == V_TENSOR) {
		eval_error(e, E_FSTRING_RUNTIME, at, describe(e, v));
		diag_hint(e->diags, "pass run-time values after the text: tl.device_print(\"x: \", x)");
		return false;
	}
	if (!len) {
		print_val(out, v);
	} else if (!format_val(e, out, v, spec, len)) {
		eval_error(e, E_FORMAT_SPEC, at, arena_str(e->arena, spec, len), describe(e, v));
		return false;
	}
	return count_text(e, out->len, at);
}

/* The argument for the `len` bytes at `name` in "{name}": a number, a name, or nothing. NULL if there is no such
 * argument. */
static const struct val *format_argument(const struct method_call *c, const char *name, u32 len, u32 *next)
{
	u32 i = 0;
	if (!len)
		return *next < c->n ? &c->args[(*next)++] : NULL;
	if (*name >= '0' && *name <= '9') {
		for (u32 k = 0; k < len && i < 1000; k++)
			i = i * 10 + (u32)(name[k] - '0');
		return i < c->n ? &c->args[i] : NULL;
	}
	for (; i < c->nnamed; i++)
		if (word_is(name, len, c->named[i].name))
			return &c->named[i].val;
	return NULL;
}

static struct val text_format(struct eval *e, const struct method_call *c)
{
	struct strbuf sb = {.arena = e->arena};
	const char *s = c->self.text, *end = s + c->self.len;
	u32 next = 0;
	while (s < end) {
		if ((*s == '{' || *s == '}') && s + 1 < end && s[1] == *s) {
			sb_add(&sb, s, 1);
			s += 2;
			continue;
		}
		if (*s != '{' && *s != '}') {
			sb_add(&sb, s++, 1);
			continue;
		}
		const char *close = *s == '{' ? memchr(s, '}', (size_t)(end - s)) : NULL;
		u32 len = close ? (u32)strcspn(s + 1, "}:!") : 0;
		const struct val *v = close ? format_argument(c, s + 1, len, &next) : NULL;
		if (!v)
			return eval_error(e, E_FORMAT_FIELD, c->at,
					  arena_str(e->arena, s, close ? (size_t)(close - s + 1) : 1));
		const char *spec = s + 1 + len;
		spec += *spec == '!' ? 2 : 0; /* !r and !s are equal: compile-time values have a single text form */
		spec += *spec == ':';
		if (!add_field(e, &sb, v, spec, (u32)(close - MIN(spec, close)), c->at))
			return val_error();
		s = close + 1;
	}
	return text_of(e, &sb, c->at);
}

struct val format_percent(struct eval *e, const struct val *text, const struct val *values, struct loc at)
{
	struct strbuf sb = {.arena = e->arena};
	const struct val *items = values->kind == V_TUPLE && !values->list ? values->items : values;
	u32 n = values->kind == V_TUPLE && !values->list ? values->nitems : 1, next = 0;
	const char *s = text->text, *end = s + text->len;
	while (s < end) {
		if (*s != '%' || (s + 1 < end && s[1] == '%')) {
			sb_add(&sb, s, 1);
			s += 1 + (*s == '%');
			continue;
		}
		const char *from = s++, *flags = s;
		s += strspn(s, "-+ #0");
		bool left = memchr(flags, '-', (size_t)(s - flags)), zero = memchr(flags, '0', (size_t)(s - flags));
		const char *width = s;
		s += strspn(s, "0123456789.");
		char type = s < end ? *s++ : 0;
		if (!type || !strchr("sdiuxXofFeEgGr", type) || next == n)
			return eval_error(e, E_FORMAT_FIELD, at, arena_str(e->arena, from, (size_t)(s - from)));
		struct val v = items[next++];
		bool number = type != 's' && type != 'r', whole = number && strchr("diu", type);
		if (whole && v.kind == V_FLOAT && v.real > -0x1p100 && v.real < 0x1p100)
			v = val_int((i128)v.real);
		if (!number && v.kind != V_STR && v.kind != V_TENSOR) {
			struct strbuf one = {.arena = e->arena};
			print_val(&one, &v);
			v = val_str(one.at, one.len);
		}
		const char *spec = arena_printf(e->arena, "%s%s%s%s%.*s%c", left ? "<" : zero ? "" : ">",
						memchr(flags, '+', (size_t)(width - flags)) ? "+" : "",
						memchr(flags, '#', (size_t)(width - flags)) ? "#" : "",
						zero && !left ? "0" : "", (int)(s - 1 - width), width,
						whole ? 'd' : type == 'r' ? 's' : type);
		if (!add_field(e, &sb, &v, spec, (u32)strlen(spec), at))
			return val_error();
	}
	if (next < n && values->kind != V_DICT)
		return eval_error(e, E_FORMAT_ARGUMENTS, at, (int)n, PLURAL(n), (int)next, PLURAL(next));
	return text_of(e, &sb, at);
}

/* --- lists and dicts ----------------------------------------------------------------------------------------- */

/* index, count ('c') */
static struct val list_find(struct eval *e, const struct method_call *c)
{
	i128 count = 0;
	for (u32 i = 0; i < c->self.nitems; i++) {
		struct val same = compare_values(e, OP_EQ, c->self.items[i], c->args[0], c->at);
		if (same.kind != V_BOOL)
			return same.kind == V_ERROR ? same : argument_error(e, c, 0, "a compile-time value");
		if (same.boolean && c->code != 'c')
			return val_int(i);
		count += same.boolean;
	}
	if (c->code == 'c')
		return val_int(count);
	e->raised++;
	return eval_error(e, E_RAISED, c->at, "the value is not in the list");
}

static struct val copied(struct eval *e, const struct method_call *c)
{
	struct val v = c->self;
	v.items = arena_dup(e->arena, v.items, v.nitems * sizeof *v.items);
	v.list = LIST_OWNED;
	v.log_room = 0;
	return count_made(e, v.nitems, c->at) ? v : val_error();
}

static struct val dict_get(struct eval *e, const struct method_call *c)
{
	const struct val *found = dict_find(&c->self, c->args);
	(void)e;
	return found ? part_of(*found) : c->n > 1 ? c->args[1] : val_none();
}

/* keys ('k'), values ('v'), items */
static struct val dict_items(struct eval *e, const struct method_call *c)
{
	u32 n = c->self.nitems / 2;
	struct val *items = arena_array(e->arena, struct val, MAX(n, 1));
	if (!count_made(e, n, c->at))
		return val_error();
	for (u32 i = 0; i < n; i++) {
		const struct val *pair = c->self.items + 2 * i;
		items[i] = c->code == 'k' ? pair[0] : c->code == 'v' ? part_of(pair[1]) : val_tuple(pair, 2);
	}
	return val_tuple(items, n);
}

/* --- table of methods ---------------------------------------------------------------------------------------- */

static const struct python_method {
	const char *path;
	u32 least, most;
	struct val (*run)(struct eval *e, const struct method_call *c);
	int code;
} methods[] = {
	{"str.lower", 0, 0, text_case, 'l'}, {"str.upper", 0, 0, text_case, 'u'}, {"str.title", 0, 0, text_case, 't'},
	{"str.capitalize", 0, 0, text_case, 'c'}, {"str.swapcase", 0, 0, text_case, 's'},
	{"str.strip", 0, 1, text_strip, 'b'}, {"str.lstrip", 0, 1, text_strip, 'l'},
	{"str.rstrip", 0, 1, text_strip, 'r'}, {"str.startswith", 1, 1, text_begins, 0},
	{"str.endswith", 1, 1, text_begins, 1}, {"str.removeprefix", 1, 1, text_remove, 0},
	{"str.removesuffix", 1, 1, text_remove, 1}, {"str.split", 0, 2, text_split, 0},
	{"str.splitlines", 0, 0, text_lines, 0}, {"str.join", 1, 1, text_join, 0},
	{"str.replace", 2, 3, text_replace, 0}, {"str.find", 1, 1, text_find, 'f'}, {"str.rfind", 1, 1, text_find, 'r'},
	{"str.index", 1, 1, text_find, 'i'}, {"str.count", 1, 1, text_find, 'c'}, {"str.isdigit", 0, 0, text_is, 'd'},
	{"str.isdecimal", 0, 0, text_is, 'd'}, {"str.isnumeric", 0, 0, text_is, 'd'},
	{"str.isalpha", 0, 0, text_is, 'a'}, {"str.isalnum", 0, 0, text_is, 'n'}, {"str.isupper", 0, 0, text_is, 'u'},
	{"str.islower", 0, 0, text_is, 'l'}, {"str.isspace", 0, 0, text_is, 's'}, {"str.ljust", 1, 2, text_pad, 'l'},
	{"str.rjust", 1, 2, text_pad, 'r'}, {"str.center", 1, 2, text_pad, 'c'}, {"str.zfill", 1, 1, text_pad, '0'},
	{"str.partition", 1, 1, text_partition, 'p'}, {"str.rpartition", 1, 1, text_partition, 'r'},
	{"str.format", 0, UINT32_MAX, text_format, 0}, {"list.index", 1, 1, list_find, 'i'},
	{"list.count", 1, 1, list_find, 'c'}, {"list.copy", 0, 0, copied, 0}, {"dict.copy", 0, 0, copied, 0},
	{"dict.get", 1, 2, dict_get, 0}, {"dict.keys", 0, 0, dict_items, 'k'}, {"dict.values", 0, 0, dict_items, 'v'},
	{"dict.items", 0, 0, dict_items, 'i'},
};

static const struct python_method *find_python_method(const char *path)
{
	for (u32 i = 0; i < ARRAY_LEN(methods); i++)
		if (!strcmp(methods[i].path, path))
			return &methods[i];
	return NULL;
}

struct val python_method(struct eval *e, struct val v, const char *name)
{
	const char *class = v.kind == V_STR ? "str" : v.kind == V_DICT ? "dict" : "list";
	const struct python_method *m = find_python_method(arena_printf(e->arena, "%s.%s", class, name));
	return m ? bind_method(e, v, host_val(m->path)) : val_error();
}

struct val wrong_count(struct eval *e, const char *method, u32 least, u32 most, u32 n, struct loc at)
{
	const char *takes = least == most ? arena_printf(e->arena, "%u", least)
					  : arena_printf(e->arena, "%u to %u", least, most);
	return eval_error(e, E_ARG_COUNT, at, method, takes, PLURAL(most), n);
}

struct val call_python_method(struct eval *e, const char *path, const struct call *c)
{
	const struct val *args = c->pos;
	u32 n = c->npos;
	const struct python_method *m = find_python_method(path);
	const char *name = strchr(path, '.');
	enum val_kind of = *path == 's' ? V_STR : *path == 'd' ? V_DICT : V_TUPLE;
	if (!m || !n || args[0].kind != of || (c->nnamed && m->run != text_format))
		return eval_error(e, E_HOST_VALUE, c->at, path);
	if (n - 1 < m->least || n - 1 > m->most)
		return wrong_count(e, name + 1, m->least, m->most, n - 1, c->at);
	if (of == V_STR && !count_text(e, args[0].len, c->at))
		return val_error();
	return m->run(e, &(struct method_call){name + 1, args[0], args + 1, n - 1, c->named, c->nnamed, c->at,
					       m->code});
}

/* --- functions ----------------------------------------------------------------------------------------------- */

/* chr, ord (code 1) */
struct val bi_python_chr(struct eval *e, const struct args *a)
{
	const struct val *v = &a->at[0];
	if (a->b->code) {
		if (v->kind != V_STR || v->len != 1)
			return wrong_kind(e, a, 0, "one character");
		return val_int((unsigned char)*v->text);
	}
	i64 code;
	if (!arg_int(e, a, 0, &code))
		return val_error();
	if (code < 1 || code > 127)
		return wrong_kind(e, a, 0, "the code of an ASCII character");
	return piece(e, (const char[]){(char)code}, 1);
}

/* hex, bin: the code is the base of the number */
struct val bi_python_hex(struct eval *e, const struct args *a)
{
	struct strbuf sb = {.arena = e->arena};
	const struct val v = known_number(a->at[0]);
	if (v.kind != V_INT || !format_val(e, &sb, &v, a->b->code == 16 ? "#x" : "#b", 2))
		return eval_error(e, E_ARG_KIND, a->loc[0], "x", a->b->name, "a compile-time integer", describe(e, &v));
	return text_of(e, &sb, a->loc[0]);
}

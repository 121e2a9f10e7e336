/* Ranges of `tlc bench`: "n=1024..32768:x2", and the commands for their values. */
#include <errno.h>
#include <stdlib.h>

#include "cli/cmd_bench.h"

/* False: the text is not a range. */
static bool read_sweep(const char *text, struct sweep *s)
{
	const char *eq = strchr(text, '=');
	char *end;
	if (!eq || eq[1] < '0' || eq[1] > '9')
		return false;
	errno = 0;
	*s = (struct sweep){text, (size_t)(eq - text), .step = 2, .multiplies = true};
	s->first = strtoll(eq + 1, &end, 10);
	if (end[0] != '.' || end[1] != '.' || end[2] < '0' || end[2] > '9')
		return false;
	s->last = strtoll(end + 2, &end, 10);
	if (end[0] == ':' && (end[1] == 'x' || end[1] == '+') && end[2] >= '0' && end[2] <= '9') {
		s->multiplies = end[1] == 'x';
		s->step = strtoll(end + 2, &end, 10);
	}
	return !*end && !errno;
}

bool next_value(const struct sweep *s, i64 *v)
{
	return !(s->multiplies ? __builtin_mul_overflow(*v, s->step, v) : __builtin_add_overflow(*v, s->step, v)) &&
	       *v <= s->last;
}

static bool is_part_of_name(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The argument for a value of the range: that value, or shapes that contain its name. */
static const char *with_value(struct arena *a, const struct sweep *s, const char *text, i64 v)
{
	struct strbuf out = {.arena = a};
	struct sweep mine;
	if (read_sweep(text, &mine))
		return arena_printf(a, "%.*s=%lld", (int)s->len, s->name, (long long)v);
	int depth = 0;
	sb_puts(&out, "");
	for (const char *at = text; *at;) {
		size_t len = 0;
		while (is_part_of_name(at[len]))
			len++;
		bool named = depth && len == s->len && !memcmp(at, s->name, len);
		depth += (*at == '[') - (*at == ']');
		len = MAX(len, 1);
		if (named)
			sb_printf(&out, "%lld", (long long)v);
		else
			sb_add(&out, at, len);
		at += len;
	}
	return out.at;
}

static bool goes_up(const struct sweep *s)
{
	return s->first <= s->last && s->step > s->multiplies && (s->first || !s->multiplies);
}

/* Takes NAME=VALUE as the range if VALUE is a range. False after a message. */
static bool take_sweep(const char *text, struct sweep *out)
{
	struct sweep s;
	if (!read_sweep(text, &s))
		return true;
	if (out->len)
		refuse("'%.*s' and '%.*s' are both ranges; one can be", (int)out->len, out->name, (int)s.len, s.name);
	else if (!goes_up(&s))
		refuse("'%s' is no range that goes up: A..B:xN multiplies by N, A..B:+N adds it", text);
	if (out->len || !goes_up(&s))
		return false;
	*out = s;
	return true;
}

bool find_sweep(struct command *c, struct sweep *out)
{
	bool good = true;
	*out = (struct sweep){.len = 0};
	for (u32 i = 0; i < c->args.len && good; i++)
		good = take_sweep(c->args.at[i], out);
	for (u32 i = 0; i < c->defines.len && good; i++)
		good = take_sweep(arena_printf(&c->arena, "%s=%s", c->defines.at[i].name, c->defines.at[i].value), out);
	return good;
}

struct command command_for(struct command *c, const struct sweep *s, i64 v)
{
	struct command one = *c;
	struct sweep mine;
	memset(&one.arena, 0, sizeof one.arena);
	memset(&one.args, 0, sizeof one.args);
	memset(&one.defines, 0, sizeof one.defines);
	for (u32 i = 0; i < c->args.len; i++)
		vec_push(&one.arena, &one.args, s->len ? with_value(&one.arena, s, c->args.at[i], v) : c->args.at[i]);
	for (u32 i = 0; i < c->defines.len; i++) {
		struct define d = c->defines.at[i];
		if (read_sweep(arena_printf(&one.arena, "%s=%s", d.name, d.value), &mine))
			d.value = arena_printf(&one.arena, "%lld", (long long)v);
		vec_push(&one.arena, &one.defines, d);
	}
	return one;
}

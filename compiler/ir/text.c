#include "ir/text.h"

#include <ctype.h>

bool attr_spec_at(enum opcode code, u32 i, struct attr_spec *out)
{
	const char *s = op_info[code].attrs;
	for (; i && s; i--) {
		s = strchr(s, ',');
		s = s ? s + 1 : NULL;
	}
	if (!s || !*s)
		return false;
	const char *colon = strchr(s, ':');
	*out = (struct attr_spec){s, colon + 1, (u32)(colon - s), (u32)strcspn(colon + 1, ",")};
	return true;
}

bool attr_kind_is(const struct attr_spec *spec, const char *kind)
{
	return strlen(kind) == spec->kind_len && !memcmp(spec->kind, kind, spec->kind_len);
}

int attr_slot(enum opcode code, const char *name, size_t len)
{
	struct attr_spec spec;
	for (u32 i = 0; attr_spec_at(code, i, &spec); i++)
		if (spec.name_len == len && !memcmp(spec.name, name, len))
			return (int)i;
	return -1;
}

const char *const *attr_enum(const char *kind, size_t len)
{
#define OP(...)
#define ENUM(kind, ...) static const char *const kind##_values[] = {__VA_ARGS__, NULL};
#include "ir/ops.def"
	static const struct {
		const char *kind;
		const char *const *values;
	} enums[] = {
#define OP(...)
#define ENUM(kind, ...) {#kind, kind##_values},
#include "ir/ops.def"
	};
	for (u32 i = 0; i < ARRAY_LEN(enums); i++)
		if (strlen(enums[i].kind) == len && !memcmp(enums[i].kind, kind, len))
			return enums[i].values;
	return NULL;
}

static struct format_token attr_token(enum opcode code, enum format_kind kind, const char **at)
{
	const char *name = ++*at;
	while (isalpha((unsigned char)**at) || **at == '_')
		++*at;
	struct format_token t = {.kind = kind, .index = attr_slot(code, name, (size_t)(*at - name))};
	tl_assert(t.index >= 0);
	return t;
}

struct format_token format_next(enum opcode code, const char **at)
{
	const char *s = *at;
	switch (*s) {
	case 0: return (struct format_token){.kind = FMT_END};
	case ' ': ++*at; return (struct format_token){.kind = FMT_SPACE};
	case '$':
		*at += 2;
		return s[1] == '*' ? (struct format_token){.kind = FMT_ALL}
				   : (struct format_token){.kind = FMT_OPERAND, .index = s[1] - '0'};
	case '?': *at += 2; return (struct format_token){.kind = FMT_OPTIONAL, .index = s[1] - '0'};
	case '@': return attr_token(code, FMT_ATTR, at);
	case '{': *at += 2; return (struct format_token){.kind = FMT_DICT};
	default: break;
	}
	if (*s == '=' && isalpha((unsigned char)s[1]))
		return attr_token(code, FMT_KEYED_ATTR, at);
	if (!strncmp(s, "(*)", 3)) {
		*at += 3;
		return (struct format_token){.kind = FMT_TYPES};
	}
	if (!strncmp(s, "(*bare)", 7)) {
		*at += 7;
		return (struct format_token){.kind = FMT_BARE_TYPES};
	}
	if (isalpha((unsigned char)*s)) {
		while (isalnum((unsigned char)**at))
			++*at;
		u32 len = (u32)(*at - s);
		if (len == 1 && *s == 'r')
			return (struct format_token){.kind = FMT_RESULT};
		if (len == 2 && *s == 't' && isdigit((unsigned char)s[1]))
			return (struct format_token){.kind = FMT_TYPE, .index = s[1] - '0'};
		return (struct format_token){.kind = FMT_LITERAL, .text = s, .len = len};
	}
	++*at;
	if (!strncmp(s, "->", 2))
		++*at;
	return (struct format_token){.kind = FMT_LITERAL, .text = s, .len = (u32)(*at - s)};
}

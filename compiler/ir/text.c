#include "ir/text.h"

#include <ctype.h>

static const struct attr_info attributes[] = {
#define ATTR(id, slot, name, kind) [A_##id] = {name, slot, KIND_##kind},
#include "ir/ops.def"
};

const struct attr_info *attr_at(enum opcode code, u32 i)
{
	u8 id = i < IR_MAX_ATTRS ? op_info[code].attrs[i] : A_NONE;
	return id ? &attributes[id] : NULL;
}

const struct attr_info *attr_named(enum opcode code, const char *name, size_t len)
{
	const struct attr_info *a;
	for (u32 i = 0; (a = attr_at(code, i)); i++)
		if (word_is(name, len, a->name))
			return a;
	return NULL;
}

const char *const *attr_enum(enum attr_kind kind)
{
#define V(value, name) name
#define ENUM(kind, type, ...) static const char *const kind##_values[] = {__VA_ARGS__, NULL};
#define NAMES(kind, ...) static const char *const kind##_values[] = {__VA_ARGS__, NULL};
#include "ir/ops.def"
	static const char *const *const enums[ATTR_KINDS] = {
#define V(...)
#define ENUM(kind, ...) [KIND_##kind] = kind##_values,
#define NAMES(kind, ...) [KIND_##kind] = kind##_values,
#include "ir/ops.def"
	};
	return enums[kind];
}

static struct format_token attr_token(enum opcode code, enum format_kind kind, const char **at)
{
	const char *name = *at;
	while (isalpha((unsigned char)**at) || **at == '_')
		++*at;
	struct format_token t = {.kind = kind, .attr = attr_named(code, name, (size_t)(*at - name))};
	tl_assert(t.attr);
	return t;
}

/* A word: a type, a region, a literal, or the word before an optional operand. */
static struct format_token word_token(struct arena *a, const char **at)
{
	const char *s = *at;
	while (isalnum((unsigned char)**at))
		++*at;
	const char *word = arena_str(a, s, (size_t)(*at - s));
	if (!strcmp(word, "r"))
		return (struct format_token){.kind = FMT_RESULT};
	if (!strcmp(word, "region"))
		return (struct format_token){.kind = FMT_REGION};
	if (*s == 't' && isdigit((unsigned char)s[1]))
		return (struct format_token){.kind = FMT_TYPE, .index = (u32)(s[1] - '0')};
	if (**at != '?')
		return (struct format_token){.kind = FMT_LITERAL, .text = word};
	*at += 2;
	return (struct format_token){.kind = FMT_OPTIONAL, .index = (u32)((*at)[-1] - '0'), .text = word};
}

struct format_token format_next(struct arena *a, enum opcode code, const char **at)
{
	static const struct {
		const char *text;
		enum format_kind kind;
	} fixed[] = {{" ", FMT_SPACE},
		     {"$*", FMT_ALL},
		     {"{}", FMT_DICT},
		     {"(*)", FMT_TYPES},
		     {"(*bare)", FMT_BARE_TYPES}};
	static const struct {
		const char *before;
		enum format_kind kind;
	} attrs[] = {{"@", FMT_ATTR}, {",=", FMT_COMMA_ATTR}, {"=", FMT_KEYED_ATTR}};
	const char *s = *at;
	if (!*s)
		return (struct format_token){.kind = FMT_END};
	for (u32 i = 0; i < ARRAY_LEN(fixed); i++)
		if (!strncmp(s, fixed[i].text, strlen(fixed[i].text))) {
			*at += strlen(fixed[i].text);
			return (struct format_token){.kind = fixed[i].kind};
		}
	for (u32 i = 0; i < ARRAY_LEN(attrs); i++) {
		size_t n = strlen(attrs[i].before);
		if (!strncmp(s, attrs[i].before, n) && isalpha((unsigned char)s[n])) {
			*at += n;
			return attr_token(code, attrs[i].kind, at);
		}
	}
	if (isalpha((unsigned char)*s))
		return word_token(a, at);
	*at += 1 + (*s == '$' || *s == '?' || !strncmp(s, "->", 2));
	if (*s == '$' || *s == '?')
		return (struct format_token){
			.kind = *s == '$' ? FMT_OPERAND : FMT_OPTIONAL, .index = (u32)(s[1] - '0'), .text = ","};
	return (struct format_token){.kind = FMT_LITERAL, .text = arena_str(a, s, (size_t)(*at - s))};
}

#include "support/json.h"

#include <stdlib.h>

/* The text without the white space outside strings. */
static char *squeezed(struct arena *a, const char *text, size_t len)
{
	char *out = arena_str(a, text, len), *to = out;
	bool quoted = false;
	for (const char *s = out; *s; s++) {
		if (!quoted && strchr(" \t\r\n", *s))
			continue;
		*to++ = *s;
		if (*s == '"')
			quoted = !quoted;
		else if (quoted && *s == '\\' && s[1])
			*to++ = *++s;
	}
	*to = 0;
	return out;
}

/* The end of the value that begins at s; NULL if the text ends first. */
static const char *value_end(const char *s)
{
	int depth = 0;
	bool quoted = false;
	for (; *s; s++) {
		if (quoted) {
			quoted = *s != '"';
			s += *s == '\\' && s[1];
		} else if (*s == '"') {
			quoted = true;
		} else if (*s == '{' || *s == '[') {
			depth++;
		} else if (depth && (*s == '}' || *s == ']')) {
			depth--;
		} else if (!depth && strchr(",}]", *s)) {
			return s;
		}
	}
	return NULL;
}

bool json_read(struct arena *a, const char *text, size_t len, struct json_member *out, u32 most, u32 *n)
{
	const char *s = squeezed(a, text, len);
	bool more = true;
	*n = 0;
	if (*s++ != '{')
		return false;
	while (more && *s == '"') {
		const char *name = s + 1, *end = strchr(name, '"');
		const char *value = end && end[1] == ':' ? end + 2 : NULL, *behind = value ? value_end(value) : NULL;
		if (!behind || behind == value || *n == most)
			return false;
		out[(*n)++] = (struct json_member){arena_str(a, name, (size_t)(end - name)),
						   arena_str(a, value, (size_t)(behind - value))};
		more = *behind == ',';
		s = behind + more;
	}
	return (!more || !*n) && *s == '}' && !s[1];
}

const char *const *json_array(struct arena *a, const char *value, u32 most, u32 *n)
{
	VEC(const char *) items = {0};
	const char *s = value;
	*n = 0;
	if (!s || *s++ != '[')
		return NULL;
	vec_push(a, &items, NULL);
	items.len = 0;
	while (*s && (*s != ']' || items.len)) {
		const char *end = value_end(s);
		if (!end || end == s || *end == '}' || items.len == most)
			return NULL;
		vec_push(a, &items, arena_str(a, s, (size_t)(end - s)));
		if (*end == ']' && !end[1]) {
			*n = items.len;
			return items.at;
		}
		if (*end++ == ']')
			return NULL;
		s = end;
	}
	return *s == ']' && !s[1] ? items.at : NULL;
}

const char *json_value(const struct json_member *m, u32 n, const char *name)
{
	for (u32 i = 0; i < n; i++)
		if (!strcmp(m[i].name, name))
			return m[i].value;
	return NULL;
}

/* The character of the escape sequence after a backslash; *s is advanced to the sequence's last character. 0 if the
 * sequence is not supported. */
static char escaped(struct arena *a, const char **s)
{
	static const char from[] = "\"\\/nrtbf", to[] = "\"\\/\n\r\t\b\f";
	char *end;
	if (**s == 'u' && strlen(*s) > 4) {
		unsigned long code = strtoul(arena_str(a, *s + 1, 4), &end, 16);
		*s += 4;
		return *end || code > 127 ? 0 : (char)code;
	}
	const char *is = **s ? strchr(from, **s) : NULL;
	return is ? to[is - from] : 0;
}

const char *json_text(struct arena *a, const char *value)
{
	size_t len = value ? strlen(value) : 0;
	if (len < 2 || *value != '"' || value[len - 1] != '"')
		return NULL;
	char *out = arena_str(a, value + 1, len - 2), *to = out;
	for (const char *s = out; *s; s++) {
		char c = *s;
		if (c == '"' || (c == '\\' && (s++, !(c = escaped(a, &s)))))
			return NULL;
		*to++ = c;
	}
	*to = 0;
	return out;
}

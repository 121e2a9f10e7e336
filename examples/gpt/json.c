#include "json.h"

#include <string.h>

void json_damaged(const struct json *j, const char *what)
{
	die("%s: byte %td: %s\nhint: the file is damaged, or of another format", j->path, j->at - j->begin, what);
}

char json_peek(struct json *j)
{
	while (j->at < j->end && *j->at && strchr(" \t\r\n", *j->at))
		j->at++;
	return j->at < j->end ? *j->at : 0;
}

bool json_accept(struct json *j, char c)
{
	if (json_peek(j) != c || !c)
		return false;
	j->at++;
	return true;
}

void json_expect(struct json *j, char c)
{
	char what[] = "'?' expected";
	what[1] = c;
	if (!json_accept(j, c))
		json_damaged(j, what);
}

/* The four digits after \u. */
static uint32_t hexadecimal(struct json *j)
{
	uint32_t n = 0;
	for (int i = 0; i < 4; i++, j->at++) {
		const char *digits = "0123456789abcdef0123456789ABCDEF";
		const char *d = j->at < j->end && *j->at ? strchr(digits, *j->at) : NULL;
		if (!d)
			json_damaged(j, "four hexadecimal digits expected");
		n = n * 16 + (uint32_t)(d - digits) % 16;
	}
	return n;
}

/* The character of an escape in UTF-8, with *len bytes. */
static const char *escape(struct json *j, size_t *len)
{
	static char utf8[4];
	const char *simple = "n\nt\tr\rb\bf\f\"\"\\\\//", *e;
	char c = j->at < j->end ? *j->at++ : 0;
	*len = 1;
	for (e = simple; *e; e += 2)
		if (*e == c)
			return e + 1;
	if (c != 'u')
		json_damaged(j, "no such escape");
	uint32_t u = hexadecimal(j);
	/* the first of a surrogate pair */
	if (u >> 10 == 0x36 && j->end - j->at > 2 && j->at[0] == '\\' && j->at[1] == 'u') {
		j->at += 2;
		u = 0x10000 + ((u & 0x3FF) << 10) + (hexadecimal(j) & 0x3FF);
	}
	*len = u < 0x80 ? 1 : u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;
	for (size_t i = *len - 1; i; i--, u >>= 6)
		utf8[i] = (char)(0x80 | (u & 0x3F));
	utf8[0] = (char)((*len == 1 ? 0 : 0xF00 >> *len) | u);
	return utf8;
}

size_t json_string(struct json *j, char *out, size_t size)
{
	size_t n = 0;
	json_expect(j, '"');
	while (j->at < j->end && *j->at != '"') {
		size_t len = 1;
		const char *c = j->at++;
		if (*c == '\\')
			c = escape(j, &len);
		if (n + len < size) {
			memcpy(out + n, c, len);
			n += len;
		}
	}
	out[n] = 0;
	json_expect(j, '"');
	return n;
}

int64_t json_integer(struct json *j)
{
	int64_t n = 0;
	if (json_peek(j) < '0' || *j->at > '9')
		json_damaged(j, "number expected");
	for (; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *j->at - '0', &n))
			json_damaged(j, "number too large");
	return n;
}

/* What the program reads of JSON. Text that is none ends the program, with file and byte. */
#ifndef JSON_H
#define JSON_H

#include "gpt.h"

struct json {
	const char *path, *begin, *at, *end; /* begin: of the file */
};

_Noreturn void json_damaged(const struct json *j, const char *what);
/* The next character that is no space; 0 at the end. */
char json_peek(struct json *j);
bool json_accept(struct json *j, char c);
void json_expect(struct json *j, char c);
/* In UTF-8, with 0 behind it; the length. What does not fit is left out. */
size_t json_string(struct json *j, char *out, size_t size);
/* A number from 0 on. */
int64_t json_integer(struct json *j);

#endif

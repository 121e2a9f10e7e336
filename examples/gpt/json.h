/* A reader for the JSON of the program's files. Invalid text ends the program with a message that has the file and
 * byte. */
#ifndef JSON_H
#define JSON_H

#include "gpt.h"

struct json {
	const char *path, *begin, *at, *end; /* begin: start of the file */
};

_Noreturn void json_damaged(const struct json *j, const char *what);
/* The next character that is not white space; 0 at the end. */
char json_peek(struct json *j);
bool json_accept(struct json *j, char c);
void json_expect(struct json *j, char c);
/* Reads a string as NUL-terminated UTF-8, and returns its length. Characters that do not fit are dropped. */
size_t json_string(struct json *j, char *out, size_t size);
/* Reads a number that is not negative. */
int64_t json_integer(struct json *j);

#endif

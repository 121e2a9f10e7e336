/* Lists of arguments as text: "x=*fp32:16, n=i32, KIND=\"a,b\"". */
#ifndef TLC_SUPPORT_SPAN_H
#define TLC_SUPPORT_SPAN_H

#include "support/arena.h"

/* The length of the text up to the first of `ends` outside brackets and quotes. */
size_t span_outside(const char *s, const char *ends);
struct argument_span {
	const char *text, *name, *value;
};
/* Reads the first argument of the list and advances the list. `name` and `value` are NULL unless the argument is
 * "name=value". False: the list is empty. */
bool next_argument(struct arena *a, const char **list, struct argument_span *out);

#endif

/* Objects of JSON (RFC 8259), as manifests and tunings are lines of. sb_json writes strings. */
#ifndef TLC_SUPPORT_JSON_H
#define TLC_SUPPORT_JSON_H

#include "support/arena.h"

struct json_member {
	const char *name, *value; /* value: as it is written, without white space outside of strings */
};

/* The members of the object that the text is, in `a`. False: it is none, or has more than `most`. */
bool json_read(struct arena *a, const char *text, size_t len, struct json_member *out, u32 most, u32 *n);
/* The first one's value; NULL: there is none of that name. */
const char *json_value(const struct json_member *m, u32 n, const char *name);
/* The string that a value is, characters outside ASCII in UTF-8 only; NULL: it is no string. */
const char *json_text(struct arena *a, const char *value);

#endif

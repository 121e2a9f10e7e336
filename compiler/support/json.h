/* Reads JSON objects (RFC 8259), such as the lines of manifests and tuning results. sb_json writes strings. */
#ifndef TLC_SUPPORT_JSON_H
#define TLC_SUPPORT_JSON_H

#include "support/arena.h"

struct json_member {
	const char *name, *value; /* value: JSON text without white space outside strings */
};

/* Reads the members of the JSON object `text`, allocated in `a`. False if the text is not an object or has more than
 * `most` members. */
bool json_read(struct arena *a, const char *text, size_t len, struct json_member *out, u32 most, u32 *n);
/* Reads the elements of a JSON array. NULL if `value` is not an array, or has more than `most` elements. */
const char *const *json_array(struct arena *a, const char *value, u32 most, u32 *n);
/* The value of the first member of that name; NULL if none. */
const char *json_value(const struct json_member *m, u32 n, const char *name);
/* The string of a JSON string value. Characters outside ASCII must be in UTF-8. NULL if the value is not a string. */
const char *json_text(struct arena *a, const char *value);

#endif

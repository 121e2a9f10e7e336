/* Hash maps keyed by address, and string interning: equal strings have equal addresses, so names are compared by ==. */
#ifndef TLC_SUPPORT_MAP_H
#define TLC_SUPPORT_MAP_H

#include "support/arena.h"

/* A map from pointer to pointer: open addressing, grows inside its arena. A NULL key is not allowed. */
struct map {
	struct arena *arena;
	const void **keys;
	void **vals;
	u32 len, cap;
};
void *map_get(const struct map *m, const void *key);
void map_put(struct map *m, const void *key, void *val);

/* A set of byte strings, each stored once. Strings that `parent` contains are returned from there; `parent` must not
 * grow any more. */
struct interner {
	struct arena *arena;
	const struct interner *parent;
	const char **at;
	u32 len, cap;
};
const char *intern(struct interner *in, const char *s, size_t len);
const char *intern_str(struct interner *in, const char *s);
/* The stored string equal to s; NULL if none. */
const char *intern_find(const struct interner *in, const char *s);

/* A 64-bit hash of `len` bytes (XXH3). */
u64 hash_bytes(const void *data, size_t len, u64 seed);

#endif

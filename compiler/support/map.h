/* Hash maps keyed by address, and string interning: equal strings get equal addresses, so names compare with ==. */
#ifndef TLC_SUPPORT_MAP_H
#define TLC_SUPPORT_MAP_H

#include "support/arena.h"

/* Pointer → pointer. Open addressing; grows inside its arena. A NULL key is not allowed. */
struct map {
	struct arena *arena;
	const void **keys;
	void **vals;
	u32 len, cap;
};
void *map_get(const struct map *m, const void *key);
void map_put(struct map *m, const void *key, void *val);

/* A set of byte strings, each stored once. Strings of `parent`, which must not grow any more, are found there. */
struct interner {
	struct arena *arena;
	const struct interner *parent;
	const char **at;
	u32 len, cap;
};
const char *intern(struct interner *in, const char *s, size_t len);
const char *intern_str(struct interner *in, const char *s);
/* The stored string equal to s, or NULL. */
const char *intern_find(const struct interner *in, const char *s);

/* 64-bit hash of `len` bytes (XXH3). */
u64 hash_bytes(const void *data, size_t len, u64 seed);

#endif

#include "support/map.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

u64 hash_bytes(const void *data, size_t len, u64 seed)
{
	return XXH3_64bits_withSeed(data, len, seed);
}

static u32 hash_ptr(const void *p)
{
	u64 x = (u64)(uintptr_t)p * 0x9E3779B97F4A7C15u;
	return (u32)(x >> 32);
}

static u32 map_slot(const struct map *m, const void *key)
{
	u32 i = hash_ptr(key) & (m->cap - 1);
	while (m->keys[i] && m->keys[i] != key)
		i = (i + 1) & (m->cap - 1);
	return i;
}

void *map_get(const struct map *m, const void *key)
{
	if (!m->cap)
		return NULL;
	return m->vals[map_slot(m, key)];
}

void map_put(struct map *m, const void *key, void *val)
{
	tl_assert(key);
	if ((m->len + 1) * 4 > m->cap * 3) {
		struct map big = {.arena = m->arena, .cap = m->cap ? m->cap * 2 : 16};
		big.keys = arena_array(m->arena, const void *, big.cap);
		big.vals = arena_array(m->arena, void *, big.cap);
		for (u32 i = 0; i < m->cap; i++)
			if (m->keys[i]) {
				u32 s = map_slot(&big, m->keys[i]);
				big.keys[s] = m->keys[i];
				big.vals[s] = m->vals[i];
			}
		big.len = m->len;
		*m = big;
	}
	u32 s = map_slot(m, key);
	if (!m->keys[s]) {
		m->keys[s] = key;
		m->len++;
	}
	m->vals[s] = val;
}

static u32 slot_of(const struct interner *in, const char *s, size_t len, u32 hash)
{
	u32 h = hash & (in->cap - 1);
	while (in->at[h] && (strncmp(in->at[h], s, len) || in->at[h][len]))
		h = (h + 1) & (in->cap - 1);
	return h;
}

static const char *find(const struct interner *in, const char *s, size_t len, u32 hash)
{
	const char *known = NULL;
	for (; in && !known; in = in->parent)
		known = in->cap ? in->at[slot_of(in, s, len, hash)] : NULL;
	return known;
}

const char *intern(struct interner *in, const char *s, size_t len)
{
	if ((in->len + 1) * 4 > in->cap * 3) {
		u32 cap = in->cap ? in->cap * 2 : 64;
		const char **at = arena_array(in->arena, const char *, cap);
		for (u32 i = 0; i < in->cap; i++)
			if (in->at[i]) {
				u32 h = (u32)hash_bytes(in->at[i], strlen(in->at[i]), 0) & (cap - 1);
				while (at[h])
					h = (h + 1) & (cap - 1);
				at[h] = in->at[i];
			}
		in->at = at;
		in->cap = cap;
	}
	u32 hash = (u32)hash_bytes(s, len, 0);
	const char *known = find(in->parent, s, len, hash);
	if (known)
		return known;
	u32 h = slot_of(in, s, len, hash);
	if (in->at[h])
		return in->at[h];
	in->at[h] = arena_str(in->arena, s, len);
	in->len++;
	return in->at[h];
}

const char *intern_find(const struct interner *in, const char *s)
{
	size_t len = strlen(s);
	return find(in, s, len, (u32)hash_bytes(s, len, 0));
}

const char *intern_str(struct interner *in, const char *s)
{
	return intern(in, s, strlen(s));
}

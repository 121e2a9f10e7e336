#include "runtime/image/key.h"

#include <stdlib.h>

#include "support/map.h"
#include "support/recover.h"

void key_init(struct key *k, u64 first)
{
	k->leaves = 0;
	k->at = k->small;
	k->cap = ARRAY_LEN(k->small);
	k->len = 1;
	k->at[0] = first;
}

void key_free(struct key *k)
{
	if (k->at != k->small)
		free(k->at);
}

u64 *key_extend(struct key *k, u32 n)
{
	if (k->cap - k->len < n) {
		u32 cap = MAX(k->cap * 2, k->len + n);
		u64 *at = malloc(cap * sizeof *at);
		if (!at) {
			key_free(k);
			tl_out_of_memory(cap * sizeof *at);
		}
		memcpy(at, k->at, k->len * sizeof *at);
		key_free(k);
		k->at = at;
		k->cap = cap;
	}
	u64 *p = k->at + k->len;
	k->len += n;
	return p;
}

void key_add_text(struct key *key, u64 word, const char *s)
{
	size_t len = strlen(s);
	u32 words = (u32)((len + 7) / 8);
	u64 *p = key_extend(key, 1 + words);
	p[0] = word | (u64)len << 16;
	if (words)
		p[words] = 0;
	memcpy(p + 1, s, len);
}

static u64 hash_of(const struct key *k)
{
	return hash_bytes(k->at, k->len * sizeof *k->at, 0);
}

void *keyed_new(size_t size, const struct key *k)
{
	struct keyed *e = tl_calloc(size + k->len * sizeof *k->at);
	e->hash = hash_of(k);
	e->words = (u64 *)(void *)((char *)e + size);
	e->len = k->len;
	memcpy(e->words, k->at, k->len * sizeof *k->at);
	return e;
}

void *key_table_find(const struct key_table *t, const struct key *k)
{
	u64 hash = hash_of(k);
	struct keyed *e = t->buckets[hash % ARRAY_LEN(t->buckets)];
	while (e && (e->hash != hash || !keyed_by(e, k)))
		e = e->next;
	return e;
}

void key_table_add(struct key_table *t, struct keyed *e)
{
	struct keyed **at = &t->buckets[e->hash % ARRAY_LEN(t->buckets)];
	e->next = *at;
	*at = e;
	t->n++;
}

void key_table_clear(struct key_table *t, void (*fn)(void *entry))
{
	for (u32 i = 0; i < ARRAY_LEN(t->buckets); i++)
		for (struct keyed *e = t->buckets[i], *next; e; e = next) {
			next = e->next;
			fn(e);
		}
	*t = (struct key_table){.n = 0};
}

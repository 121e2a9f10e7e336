/* Keys of words, and tables of entries that are found by their key. */
#ifndef TL_IMAGE_KEY_H
#define TL_IMAGE_KEY_H

#include "support/base.h"

struct key {
	u64 *at;
	u32 len, cap;
	u32 leaves; /* of the arguments so far, for specialize() */
	u64 small[128];
};
/* Begins a key with a first word. */
void key_init(struct key *k, u64 first);
void key_free(struct key *k);
/* Appends n words, for the caller to write. */
u64 *key_extend(struct key *k, u32 n);
/* Appends a text: a word with `word` (less than 2^16) and the length, then the bytes, padded with zeros. */
void key_add_text(struct key *key, u64 word, const char *s);

/* An entry of a table. It is the first member of the owner's structure. */
struct keyed {
	struct keyed *next;
	u64 hash, *words;
	u32 len;
};
/* A zeroed entry of `size` bytes with a copy of the key, for free(). Out of memory is a fault. */
void *keyed_new(size_t size, const struct key *k);
static inline bool keyed_by(const struct keyed *e, const struct key *k)
{
	return k->len == e->len && !memcmp(k->at, e->words, e->len * sizeof *e->words);
}

struct key_table {
	struct keyed *buckets[128];
	u32 n; /* entries */
};
/* The entry of the key; NULL: there is none. */
void *key_table_find(const struct key_table *t, const struct key *k);
/* Adds an entry whose key has no entry. */
void key_table_add(struct key_table *t, struct keyed *e);
/* Removes all entries, and passes each to fn. */
void key_table_clear(struct key_table *t, void (*fn)(void *entry));

#endif

/* A share of the cases in which all pairs of choices occur.
 *
 * A case's name lists its choices: "matmul/fp16 to fp32 64x32x32 by 16x16x32 while rows a=columns stages=3 warps=2".
 * Two words that occur together in the name of some case are a pair; numbers alone, such as shapes, are no choices. A
 * case is taken if it has a pair that no case before it had, and of the others every EVERYth by a hash of its name
 * and of a seed, so that shapes vary from one seed to the next. */
#include "suite.h"

enum { EVERY = 8, MAX_WORDS = 32 };

struct pair_set {
	uint64_t *seen; /* hashes; 0: free */
	size_t used, size;
};

static uint64_t mix(uint64_t h, const char *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)at[i]) * 0x100000001B3;
	h ^= h >> 29;
	return h * 0xBF58476D1CE4E5B9 | 1;
}

static void grow(struct pair_set *p)
{
	struct pair_set old = *p;
	p->size = old.size ? 2 * old.size : 4096;
	p->seen = calloc(p->size, sizeof *p->seen);
	for (size_t i = 0; i < old.size; i++)
		if (old.seen[i]) {
			size_t at = old.seen[i] % p->size;
			while (p->seen[at])
				at = (at + 1) % p->size;
			p->seen[at] = old.seen[i];
		}
	free(old.seen);
}

/* True if the pair is new. */
static bool add(struct pair_set *p, uint64_t pair)
{
	if (2 * p->used >= p->size)
		grow(p);
	size_t at = pair % p->size;
	while (p->seen[at] && p->seen[at] != pair)
		at = (at + 1) % p->size;
	if (p->seen[at])
		return false;
	p->seen[at] = pair;
	p->used++;
	return true;
}

static int split_words(const char *name, uint64_t *words)
{
	int n = 0;
	while (*name && n < MAX_WORDS) {
		size_t len = strcspn(name, " /,");
		if (strspn(name, "0123456789x.") < len)
			words[n++] = mix(0xCBF29CE484222325, name, len);
		name += len + strspn(name + len, " /,");
	}
	return n;
}

bool pairs_take(struct suite *s)
{
	uint64_t words[MAX_WORDS], theme = mix(1, s->theme, strlen(s->theme));
	bool fresh = false;
	if (!s->covered)
		s->covered = calloc(1, sizeof *s->covered);
	int n = split_words(s->name, words);
	for (int i = 0; i < n; i++)
		for (int j = i; j < n; j++)
			fresh |= add(s->covered, ((words[i] + words[j]) ^ theme) | 1);
	return fresh || (mix((uint64_t)s->pairs, s->name, strlen(s->name)) >> 32) % EVERY == 0;
}

void pairs_free(struct suite *s)
{
	if (s->covered)
		free(s->covered->seen);
	free(s->covered);
	s->covered = NULL;
}

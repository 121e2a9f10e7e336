/* Text as tokens: bytes, or GPT-2's byte-level byte pair encoding. The encoding splits text into words. In each word it
 * merges the pair of neighbouring tokens that is first in the list of merges, until no pair is in the list. */
#include "json.h"
#include "letters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct merge {
	uint32_t left, right, rank, result; /* rank from 1; 0: an empty entry */
};

struct tokenizer {
	int n;
	char *bytes;          /* of all tokens, concatenated */
	size_t *first;        /* offset of each token's bytes: n + 1 */
	uint32_t byte[256];   /* the tokens of single bytes */
	struct merge *merges; /* a hash table of 1 << bits */
	int bits;
};

char *read_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		die("%s: %s", path, strerror(errno));
	char *bytes = NULL;
	size_t room = 0;
	*len = 0;
	do {
		room = room ? 2 * room : 1 << 16;
		bytes = realloc(bytes, room);
		if (!bytes)
			die("out of memory");
		*len += fread(bytes + *len, 1, room - *len, f);
	} while (*len == room);
	if (ferror(f))
		die("%s: %s", path, strerror(errno));
	fclose(f);
	bytes[*len] = 0;
	return bytes;
}

/* --- characters ---------------------------------------------------------------------------------------------- */

/* The character at `at`, and the number of its bytes. Invalid UTF-8 is a character of one byte, 0xFFFD. */
static uint32_t character(const char *at, const char *end, size_t *len)
{
	unsigned char c = (unsigned char)*at;
	size_t n = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0;
	uint32_t u = n == 1 ? c : c & (0xFFu >> (n + 1));
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	for (size_t i = 1; i < n; i++) {
		if (at + i >= end || (at[i] & 0xC0) != 0x80)
			n = 0;
		else
			u = u << 6 | (at[i] & 0x3F);
	}
	*len = n ? n : 1;
	return n && u >= least[n] && u < 0x110000 && u >> 11 != 0x1B ? u : 0xFFFD;
}

static bool within(uint32_t c, const uint16_t *ranges, size_t n)
{
	uint32_t at = 0;
	for (size_t i = 0; i < n; i += 2) {
		at += ranges[i];
		if (c < at)
			return false;
		at += ranges[i + 1];
		if (c <= at)
			return true;
	}
	return false;
}

enum class { SPACE, LETTER, NUMBER, OTHER };

static enum class class_of(uint32_t c) {
	if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) ? SPACE
	: (c | 32) >= 'a' && (c | 32) <= 'z'                 ? LETTER
	: c >= '0' && c <= '9'                               ? NUMBER
							     : OTHER;
	if (c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
	    c == 0x202F || c == 0x205F || c == 0x3000) return SPACE;
	return within(c, letters, COUNT(letters))   ? LETTER
	       : within(c, numbers, COUNT(numbers)) ? NUMBER
						    : OTHER;
}

/* The end of the word at `at`: 's|'t|'re|'ve|'m|'ll|'d| ?letters| ?numbers| ?others|\s+(?!\S)|\s+ */
static const char *word_end(const char *at, const char *end)
{
	static const char *const endings[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
	for (size_t i = 0; i < COUNT(endings); i++)
		if (!strncmp(at, endings[i], strlen(endings[i])))
			return at + strlen(endings[i]);
	size_t len;
	const char *next = at + (*at == ' '), *last = at;
	if (next == end)
		return end;
	enum class kind = class_of(character(next, end, &len));
	if (kind != SPACE) {
		while (next < end && class_of(character(next, end, &len)) == kind)
			next += len;
		return next;
	}
	for (next = at; next < end && class_of(character(next, end, &len)) == SPACE; next += len)
		last = next; /* the last of several spaces belongs to the next word */
	return next == end || last == at ? next : last;
}

/* --- merges -------------------------------------------------------------------------------------------------- */

static struct merge *slot(const struct tokenizer *t, uint32_t left, uint32_t right)
{
	size_t mask = ((size_t)1 << t->bits) - 1;
	size_t i = (size_t)(((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u >> (64 - t->bits));
	while (t->merges[i].rank && (t->merges[i].left != left || t->merges[i].right != right))
		i = (i + 1) & mask;
	return &t->merges[i];
}

/* A heap of pairs that can be merged. The top is the first in the list of merges, and the leftmost of equal pairs. */
struct pair {
	uint32_t rank, at, left, right, result;
};

static bool before(const struct pair *a, const struct pair *b)
{
	return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void push(const struct tokenizer *t, struct pair *heap, size_t *n, uint32_t at, uint32_t left, uint32_t right)
{
	const struct merge *m = slot(t, left, right);
	if (!m->rank)
		return;
	struct pair p = {m->rank, at, left, right, m->result};
	size_t i = (*n)++;
	for (; i && before(&p, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = p;
}

static struct pair pop(struct pair *heap, size_t *n)
{
	struct pair top = heap[0], p = heap[--*n];
	size_t i = 0;
	for (size_t k = 1; k < *n; k = 2 * i + 1) {
		if (k + 1 < *n && before(&heap[k + 1], &heap[k]))
			k++;
		if (!before(&heap[k], &p))
			break;
		heap[i] = heap[k];
		i = k;
	}
	heap[i] = p;
	return top;
}

/* Places of a word's tokens in a linked list, which skips tokens that were merged into the token before them. */
struct link {
	uint32_t token, previous, next;
};

enum { NONE = UINT32_MAX };

static size_t encode_word(const struct tokenizer *t, const char *word, size_t len, struct link *list, struct pair *heap,
			  uint32_t *out)
{
	size_t pairs = 0, n = 0;
	for (uint32_t i = 0; i < len; i++)
		list[i] = (struct link){t->byte[(unsigned char)word[i]], i ? i - 1 : NONE, i + 1 < len ? i + 1 : NONE};
	for (uint32_t i = 0; i + 1 < len; i++)
		push(t, heap, &pairs, i, list[i].token, list[i + 1].token);
	while (pairs) {
		struct pair p = pop(heap, &pairs);
		struct link *l = &list[p.at];
		if (l->token != p.left || l->next == NONE || list[l->next].token != p.right)
			continue; /* one of the two tokens has been merged meanwhile */
		list[l->next].token = NONE;
		l->token = p.result;
		l->next = list[l->next].next;
		if (l->next != NONE) {
			list[l->next].previous = p.at;
			push(t, heap, &pairs, p.at, l->token, list[l->next].token);
		}
		if (l->previous != NONE)
			push(t, heap, &pairs, l->previous, list[l->previous].token, l->token);
	}
	for (uint32_t i = 0; i != NONE && len; i = list[i].next)
		out[n++] = list[i].token;
	return n;
}

uint32_t *tokenizer_encode(const struct tokenizer *t, const char *text, size_t len, size_t *n)
{
	size_t room = 0;
	struct link *list = NULL;
	struct pair *heap = NULL;
	uint32_t *out = malloc((len + 1) * sizeof *out);
	if (!out)
		die("out of memory");
	*n = 0;
	for (const char *at = text, *end = text + len; at < end;) {
		const char *next = t->merges ? word_end(at, end) : at + 1;
		if ((size_t)(next - at) > room) {
			room = 2 * (size_t)(next - at);
			list = realloc(list, room * sizeof *list);
			/* a pair for each token, and two for each merge */
			heap = realloc(heap, 3 * room * sizeof *heap);
			if (!list || !heap || room >= NONE)
				die("out of memory");
		}
		*n += encode_word(t, at, (size_t)(next - at), list, heap, out + *n);
		at = next;
	}
	free(list);
	free(heap);
	return out;
}

/* --- files --------------------------------------------------------------------------------------------------- */

/* The byte that a character stands for. Printable bytes stand for themselves: 33 … 126, 161 … 172, 174 … 255; the
 * others are 256, 257 … */
static int byte_of(uint32_t c)
{
	int others = 256;
	for (int b = 0; b < 256; b++) {
		bool printable = (b >= 33 && b <= 126) || (b >= 161 && b != 173);
		if (c == (uint32_t)(printable ? b : others++))
			return b;
	}
	return -1;
}

/* Converts the characters of a token to its bytes, in place; returns their number, or -1. */
static int decode(char *s, size_t len)
{
	int n = 0;
	for (size_t i = 0, step; i < len; i += step) {
		int byte = byte_of(character(s + i, s + len, &step));
		if (byte < 0)
			return -1;
		s[n++] = (char)byte;
	}
	return n;
}

/* vocab.json: {"token": number, …}. */
static void read_vocabulary(struct tokenizer *t, const char *path)
{
	size_t len, room = 0, used = 0;
	char *text = read_file(path, &len), token[1024];
	struct json j = {path, text, text, text + len};
	struct {
		size_t first, len;
	} *places = NULL; /* in t->bytes, by number; len 0: unused */
	int64_t largest = -1;
	t->bytes = malloc(len + 1);
	if (!t->bytes)
		die("out of memory");
	json_expect(&j, '{');
	do {
		size_t n = json_string(&j, token, sizeof token);
		json_expect(&j, ':');
		int64_t id = json_integer(&j);
		int bytes = decode(token, n);
		if (id >= 1 << 24)
			json_damaged(&j, "a token's number is too large");
		if ((size_t)id >= room) {
			size_t more = 2 * (size_t)id + 1024;
			places = realloc(places, more * sizeof *places);
			if (!places)
				die("out of memory");
			memset(places + room, 0, (more - room) * sizeof *places);
			room = more;
		}
		if (bytes <= 0 || places[id].len)
			json_damaged(&j, bytes <= 0 ? "a token that is empty, or not of GPT-2's characters"
						    : "two tokens of one number");
		places[id].first = used;
		places[id].len = (size_t)bytes;
		memcpy(t->bytes + used, token, (size_t)bytes);
		used += (size_t)bytes;
		largest = id > largest ? id : largest;
	} while (json_accept(&j, ','));
	json_expect(&j, '}');
	free(text);

	t->n = (int)largest + 1;
	t->first = malloc(((size_t)t->n + 1) * sizeof *t->first);
	char *sorted = malloc(used + 1);
	if (!t->first || !sorted)
		die("out of memory");
	used = 0;
	for (int i = 0; i < 256; i++)
		t->byte[i] = NONE;
	for (int i = 0; i < t->n; i++) {
		if (!places[i].len)
			die("%s has a token %d, but none %d", path, t->n - 1, i);
		memcpy(sorted + used, t->bytes + places[i].first, places[i].len);
		if (places[i].len == 1)
			t->byte[(unsigned char)sorted[used]] = (uint32_t)i;
		t->first[i] = used;
		used += places[i].len;
	}
	t->first[t->n] = used;
	free(t->bytes);
	free(places);
	t->bytes = sorted;
	for (int i = 0; i < 256; i++)
		if (t->byte[i] == NONE)
			die("%s has no token for the byte %d", path, i);
}

static int compare_tokens(const void *a, const void *b, void *tokenizer)
{
	const struct tokenizer *t = tokenizer;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	size_t m = t->first[x + 1] - t->first[x], n = t->first[y + 1] - t->first[y];
	int order = memcmp(t->bytes + t->first[x], t->bytes + t->first[y], m < n ? m : n);
	return order ? order : (m > n) - (m < n);
}

/* The token with the bytes after those of the last token; NONE: there is no such token. */
static uint32_t find_token(struct tokenizer *t, const uint32_t *sorted, size_t len)
{
	uint32_t wanted = (uint32_t)t->n, low = 0, high = wanted;
	t->first[t->n + 1] = t->first[t->n] + len;
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		int order = compare_tokens(&sorted[middle], &wanted, t);
		if (!order)
			return sorted[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NONE;
}

/* merges.txt: two tokens on each line, the first merge first. */
static void read_merges(struct tokenizer *t, const char *path)
{
	size_t len;
	char *text = read_file(path, &len);
	uint32_t *sorted = malloc((size_t)t->n * sizeof *sorted), rank = 0;
	for (t->bits = 4; len / 4 * 2 > (size_t)1 << t->bits; t->bits++) /* a line has four bytes or more */
		;
	t->merges = calloc((size_t)1 << t->bits, sizeof *t->merges);
	/* find_token's argument is stored after all tokens */
	t->first = realloc(t->first, ((size_t)t->n + 2) * sizeof *t->first);
	t->bytes = realloc(t->bytes, t->first ? t->first[t->n] + len + 1 : 1);
	if (!sorted || !t->merges || !t->first || !t->bytes)
		die("out of memory");
	for (int i = 0; i < t->n; i++)
		sorted[i] = (uint32_t)i;
	qsort_r(sorted, (size_t)t->n, sizeof *sorted, compare_tokens, t);
	int number = 0;
	for (char *line = text, *next; line < text + len; line = next) {
		size_t end = strcspn(line, "\n"), middle;
		next = line + end + 1;
		number++;
		if (!end || (number == 1 && !strncmp(line, "#version", 8)))
			continue;
		end -= line[end - 1] == '\r';
		line[end] = 0;
		middle = strcspn(line, " ");
		uint32_t ids[3]; /* left, right, and the merged token */
		for (int i = 0; i < 3; i++) {
			char *to = t->bytes + t->first[t->n];
			size_t from = i == 1 ? middle + 1 : 0, n = (i ? end : middle) - from;
			if (middle >= end - 1 || end < 3)
				die("%s:%d: two tokens with a space between expected", path, number);
			memcpy(to, line + from, n);
			if (i == 2) {
				memmove(to + middle, to + middle + 1, n - middle - 1);
				n--;
			}
			int bytes = decode(to, n);
			ids[i] = bytes > 0 ? find_token(t, sorted, (size_t)bytes) : NONE;
			if (ids[i] == NONE)
				die("%s:%d: '%s' names or makes a token that vocab.json does not have", path, number,
				    line);
		}
		struct merge *m = slot(t, ids[0], ids[1]);
		if (!m->rank)
			*m = (struct merge){ids[0], ids[1], ++rank, ids[2]};
	}
	if (t->n > 256 + (int)rank + 64) /* some tokens have no merge, such as <|endoftext|> */
		die("%s has %u merges, vocab.json %d tokens: some are missing\nhint: the file is truncated", path, rank,
		    t->n);
	free(sorted);
	free(text);
}

struct tokenizer *tokenizer_open(const char *folder)
{
	char path[4096];
	struct tokenizer *t = calloc(1, sizeof *t);
	if (!t)
		die("out of memory");
	if (folder && *folder && strcmp(folder, "bytes")) {
		snprintf(path, sizeof path, "%s/vocab.json", folder);
		read_vocabulary(t, path);
		snprintf(path, sizeof path, "%s/merges.txt", folder);
		read_merges(t, path);
		return t;
	}
	t->n = 256;
	t->bytes = malloc(256);
	t->first = malloc(257 * sizeof *t->first);
	if (!t->bytes || !t->first)
		die("out of memory");
	for (int i = 0; i <= 256; i++)
		t->first[i] = (size_t)i;
	for (int i = 0; i < 256; i++) {
		t->bytes[i] = (char)i;
		t->byte[i] = (uint32_t)i;
	}
	return t;
}

void tokenizer_close(struct tokenizer *t)
{
	free(t->bytes);
	free(t->first);
	free(t->merges);
	free(t);
}

int tokenizer_size(const struct tokenizer *t)
{
	return t->n;
}

const char *tokenizer_decode(const struct tokenizer *t, uint32_t token, size_t *len)
{
	bool known = token < (uint32_t)t->n; /* a model may have more tokens, as padding of its matrix */
	*len = known ? t->first[token + 1] - t->first[token] : 0;
	return known ? t->bytes + t->first[token] : "";
}

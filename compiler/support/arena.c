#include "support/recover.h"

#include <stdlib.h>

enum { CHUNK_MIN = 4 * 1024, ALIGN = 16 };

struct arena_chunk {
	struct arena_chunk *next;
	struct abandoned abandoned; /* registers the chunk of an arena in a stack frame that a fault would unwind */
	_Alignas(ALIGN) char data[];
};

/* Frees a chunk of an arena in a stack frame that a fault has unwound. */
static void free_chunk(struct abandoned *abandoned)
{
	free((char *)abandoned - offsetof(struct arena_chunk, abandoned));
}

void arena_free(struct arena *a)
{
	while (a->chunks) {
		struct arena_chunk *next = a->chunks->next;
		abandoned_remove(&a->chunks->abandoned);
		free(a->chunks);
		a->chunks = next;
	}
	*a = (struct arena){0};
}

void *arena_alloc(struct arena *a, size_t size)
{
	if (size > SIZE_MAX / 2)
		tl_out_of_memory(size);
	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!a->at || size > (size_t)(a->end - a->at)) {
		size_t want = MAX(size, MIN(MAX(a->total, (size_t)CHUNK_MIN), (size_t)16 << 20));
		/* calloc: the system provides large chunks zeroed, without touching them */
		struct arena_chunk *c = calloc(1, sizeof *c + want);
		if (!c)
			tl_out_of_memory(want);
		abandoned_add(&c->abandoned, a, free_chunk);
		c->next = a->chunks;
		a->chunks = c;
		a->at = c->data;
		a->end = c->data + want;
		a->total += want;
	}
	void *p = a->at;
	a->at += size;
	return p;
}

void *arena_dup(struct arena *a, const void *data, size_t size)
{
	void *p = arena_alloc(a, size);
	if (size)
		memcpy(p, data, size);
	return p;
}

void *scanner_memory(struct arena *a, void *p, size_t size)
{
	size_t *block = arena_alloc(a, ALIGN + size); /* the block's size is stored before its data */
	size_t old = p ? *(size_t *)((char *)p - ALIGN) : 0;
	*block = size;
	if (p)
		memcpy((char *)block + ALIGN, p, MIN(old, size));
	return (char *)block + ALIGN;
}

char *arena_str(struct arena *a, const char *s, size_t len)
{
	char *p = arena_alloc(a, len + 1);
	if (len)
		memcpy(p, s, len);
	return p;
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	char *p = arena_alloc(a, (size_t)n + 1);
	vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(again);
	return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *p = arena_vprintf(a, fmt, ap);
	va_end(ap);
	return p;
}

void *vec_grow(struct arena *a, void *at, u32 len, u32 *cap, size_t size)
{
	u32 more = *cap ? *cap * 2 : 8;
	if (more < *cap)
		tl_out_of_memory((size_t)*cap * 2 * size);
	void *p = arena_alloc(a, more * size);
	if (len)
		memcpy(p, at, len * size);
	*cap = more; /* after the allocation, which may raise a fault */
	return p;
}

void sb_add(struct strbuf *sb, const char *s, size_t len)
{
	if (sb->len + len + 1 > sb->cap) {
		u32 cap = MAX(sb->cap * 2, (u32)(sb->len + len + 64));
		char *p = arena_alloc(sb->arena, cap);
		if (sb->len)
			memcpy(p, sb->at, sb->len);
		sb->at = p;
		sb->cap = cap;
	}
	if (len)
		memcpy(sb->at + sb->len, s, len);
	sb->len += (u32)len;
	sb->at[sb->len] = 0;
}

void sb_puts(struct strbuf *sb, const char *s)
{
	sb_add(sb, s, strlen(s));
}

struct strbuf sb_empty(struct arena *a)
{
	struct strbuf sb = {.arena = a};
	sb_puts(&sb, "");
	return sb;
}

void sb_vprintf(struct strbuf *sb, const char *fmt, va_list ap)
{
	char small[256];
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(small, sizeof small, fmt, ap);
	if ((size_t)n < sizeof small) {
		sb_add(sb, small, (size_t)n);
	} else {
		char *big = arena_vprintf(sb->arena, fmt, again);
		sb_add(sb, big, (size_t)n);
	}
	va_end(again);
}

void sb_printf(struct strbuf *sb, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	sb_vprintf(sb, fmt, ap);
	va_end(ap);
}

const char *arena_ascii(struct arena *a, const char *name)
{
	struct strbuf sb = {.arena = a};
	size_t plain = 0;
	while (name[plain] > 0)
		plain++;
	if (!name[plain])
		return name;
	for (const char *s = name; *s; s++)
		sb_printf(&sb, *s > 0 ? "%c" : "$%02x", (unsigned char)*s);
	return sb.at;
}

void sb_json(struct strbuf *sb, const char *s)
{
	sb_puts(sb, "\"");
	for (; *s; s++)
		if ((unsigned char)*s < ' ')
			sb_printf(sb, "\\u%04x", *s);
		else
			sb_printf(sb, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
	sb_puts(sb, "\"");
}

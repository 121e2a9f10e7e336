/* Arenas: memory by lifetime. Memory allocated from an arena is freed together with the arena, never separately.
 *
 * Also the growable array (VEC) and the string builder. Both grow inside an arena. */
#ifndef TLC_SUPPORT_ARENA_H
#define TLC_SUPPORT_ARENA_H

#include <stdarg.h>

#include "support/base.h"

struct arena_chunk;
struct arena {
	struct arena_chunk *chunks; /* newest first */
	char *at, *end;
	size_t total; /* bytes obtained from the system */
};

void arena_free(struct arena *a);
/* Zeroed memory, aligned for any scalar type. Never NULL: an allocation failure raises a fault (support/recover.h). */
void *arena_alloc(struct arena *a, size_t size);
void *arena_dup(struct arena *a, const void *data, size_t size);
/* A NUL-terminated copy of `len` bytes. */
char *arena_str(struct arena *a, const char *s, size_t len);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* The name in ASCII, for IR text and assembly: each other byte becomes $xx. */
const char *arena_ascii(struct arena *a, const char *name);

/* realloc for flex's scanners: `p` is NULL or comes from this function; its contents are kept. */
void *scanner_memory(struct arena *a, void *p, size_t size);

#define arena_new(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define arena_array(a, T, n) ((T *)arena_alloc((a), sizeof(T) * (size_t)(n)))

/* A growable array. `VEC(int) v = {0}; vec_push(arena, &v, 3); v.at[0]; v.len`. */
#define VEC(T)                \
	struct {              \
		T *at;        \
		u32 len, cap; \
	}
void *vec_grow(struct arena *a, void *at, u32 len, u32 *cap, size_t size);
#define vec_push(a, v, x)                                                                                          \
	do {                                                                                                       \
		if ((v)->len == (v)->cap)                                                                          \
			(v)->at = vec_grow((a), (v)->at, (v)->len, &(v)->cap, sizeof *(v)->at);                    \
		(v)->at[(v)->len++] = (x);                                                                         \
	} while (0)

/* A string builder. The string is NUL-terminated after the first addition. */
struct strbuf {
	struct arena *arena;
	char *at;
	u32 len, cap;
};
void sb_add(struct strbuf *sb, const char *s, size_t len);
void sb_puts(struct strbuf *sb, const char *s);
/* The empty text, which is "" and not NULL. */
struct strbuf sb_empty(struct arena *a);
void sb_printf(struct strbuf *sb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Appends a JSON string literal, in quotes. */
void sb_json(struct strbuf *sb, const char *s);
void sb_vprintf(struct strbuf *sb, const char *fmt, va_list ap);

#endif

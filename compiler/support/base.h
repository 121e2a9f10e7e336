/* Basic definitions for all files: short integer names, bit helpers, assertions.
 *
 * A failed assertion is a bug in tlc, never an error of the user: tl_assert raises a fault (support/recover.h) that
 * reports the place, the running pass and the IR that the pass works on (see crash_scope). */
#ifndef TLC_SUPPORT_BASE_H
#define TLC_SUPPORT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef __int128 i128;

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

static inline bool is_pow2(i64 x) { return x > 0 && (x & (x - 1)) == 0; }
/* Floor of log2; 0 for 0. */
static inline int ilog2(u64 x) { return x ? 63 - __builtin_clzll(x) : 0; }

/* True if text[0..len) is this word. */
static inline bool word_is(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(text, word, len);
}
/* True if the text is longer than `end` and ends in it. */
static inline bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);
	return n > m && !strcmp(text + n - m, end);
}
/* The part of a path after its last slash. */
static inline const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* The work in progress, for the report of a failed assertion. Scopes nest, one stack for each thread. `dump` prints the
 * current IR. */
struct crash_scope {
	const char *what;
	void (*dump)(const void *arg, FILE *out);
	const void *arg;
	struct crash_scope *outer;
};
void crash_enter(struct crash_scope *s);
void crash_leave(struct crash_scope *s);

/* Both raise a fault (support/recover.h). */
_Noreturn void tl_assert_failed(const char *file, int line, const char *what);
_Noreturn void tl_out_of_memory(size_t size);
/* Zeroed memory for free(). Out of memory is a fault. */
void *tl_calloc(size_t size);

#define tl_assert(cond) ((cond) ? (void)0 : tl_assert_failed(__FILE__, __LINE__, #cond))
/* An assertion for hot code, left out of builds without the verifiers (NDEBUG). */
#ifdef NDEBUG
#define debug_assert(cond) ((void)0)
#else
#define debug_assert(cond) tl_assert(cond)
#endif
#define tl_unreachable(what) tl_assert_failed(__FILE__, __LINE__, "unreachable: " what)

#endif

/* Diagnostics: what a user did wrong, where, and what to do about it.
 *
 * Every message stands in diag.def, once. `diag(d, E_UNKNOWN_NAME, at, name)` appends the formatted message, the
 * source line with a caret and the hint to d->text; nothing is printed here and nothing exits, so several errors
 * are reported in one run. Message formats are checked by the compiler like printf's. */
#ifndef TLC_SUPPORT_DIAG_H
#define TLC_SUPPORT_DIAG_H

#include "support/arena.h"

/* A span of source text. file 0 means "nowhere"; line and col count from 1. */
struct loc {
	u32 line;
	u16 col, len, file;
};
static inline bool loc_equals(struct loc a, struct loc b)
{
	return a.file == b.file && a.line == b.line && a.col == b.col && a.len == b.len;
}

struct source {
	const char *name;
	const char *text; /* NUL-terminated */
	size_t len;
	u32 *line_start; /* offset of each line; line_start[nlines] == len */
	u32 nlines;
};
/* A place for programs to read. */
struct source_place {
	const char *file; /* NULL: none */
	u32 line, col;
};
/* The source line with carets under the span; tabs are kept so that the caret lines up. */
void source_show(const struct source *s, struct loc at, struct strbuf *out);

enum diag_severity { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE, DIAG_REMARK };

enum diag_id {
#define D(id, severity, format, hint) id,
#include "support/diag.def"
#undef D
	NDIAGS
};
#define D(id, severity, format, hint) static const char id##_format[] __attribute__((unused)) = format;
#include "support/diag.def"
#undef D

/* One message in its parts, for callbacks. */
struct message {
	enum diag_severity severity;
	struct loc loc;
	const char *text;
	struct strbuf hint; /* at is NULL without one */
	u32 at;             /* where in diags.text it begins */
};

struct diag_place {
	enum diag_id id; /* of errors NDIAGS: one error a place is enough, whatever follows from it */
	struct loc loc;
	u32 at; /* where in diags.text the message begins */
};

struct diags {
	struct arena *arena;
	VEC(struct source *) sources; /* [0] is unused */
	struct strbuf text;
	VEC(struct message) messages;
	u32 hint_at; /* where in text a hint for the last message goes: before its notes */
	u32 hint_to; /* and which message that is */
	u32 nerrors; /* all of them, also those that had been shown before */
	u32 nshown, nwarnings;
	bool full;  /* too many errors: further ones are dropped */
	bool muted; /* the last message was dropped, and so are its hints */
	/* Called after each error, to append notes such as "called from here". */
	void (*backtrace)(void *arg, struct diags *d);
	void *backtrace_arg;
	VEC(struct diag_place) seen; /* reported: a loop unrolled 8 times says it once */
};

void diags_init(struct diags *d, struct arena *arena);
/* The same messages: what is said to either is not said to the other. */
struct diags diags_copy(const struct diags *d);
/* Replaces the messages of d by the messages of `to`. The source texts of d stay registered, since modules that have
 * been read refer to them. */
void diags_restore(struct diags *d, const struct diags *to);
/* Registers a text and returns its file number. `text` must outlive d. */
u16 diags_add_source(struct diags *d, const char *name, const char *text, size_t len);

/* "%u load%s", n, PLURAL(n) */
#define PLURAL(n) ((n) == 1 ? "" : "s")

#define diag(d, id, at, ...) diag_emit((d), (id), (at), id##_format, ##__VA_ARGS__)
void diag_emit(struct diags *d, enum diag_id id, struct loc at, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Drops the messages from offset `len` of the text on. */
void diags_cut(struct diags *d, u32 text_len);
/* Adds a "hint:" line to the message just emitted. */
void diag_hint(struct diags *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* From the start of `a` to the end of `b` when both are on one line; else `a`. */
struct loc loc_join(struct loc a, struct loc b);

#endif

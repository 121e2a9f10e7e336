/* Diagnostics: errors, warnings, notes and remarks with source locations and hints.
 *
 * All messages are in diag.def. `diag(d, E_UNKNOWN_NAME, at, name)` appends the formatted message, the source line with
 * a caret, and the hint to d->text. Nothing is printed here and nothing exits, so a compilation can report several
 * errors. The C compiler checks the formats like those of printf. */
#ifndef TLC_SUPPORT_DIAG_H
#define TLC_SUPPORT_DIAG_H

#include "support/arena.h"

/* A span of source text. file 0 means "no location". line and col count from 1, as in the file that the text is from. A
 * text that precedes the first line of its file has line 0. */
struct loc {
	u32 line;
	u16 col, len, file;
};
static inline bool loc_equals(struct loc a, struct loc b)
{
	return a.file == b.file && a.line == b.line && a.col == b.col && a.len == b.len;
}

/* A text, which is a whole file or a part of one. */
struct source {
	const char *name; /* of the file */
	const char *text; /* NUL-terminated */
	size_t len;
	u32 first_line; /* number of the text's first line in the file; 1 for a whole file */
	u32 indent;     /* bytes that were removed from the start of each line */
	u32 *line_start; /* offset of each line; line_start[nlines] == len */
	u32 nlines;
};
/* A line of the file, up to the end of the text; NULL if the text does not have it. */
static inline const char *source_line(const struct source *s, u32 line)
{
	return line - s->first_line < s->nlines ? s->text + s->line_start[line - s->first_line] : NULL;
}
/* The bytes of the text between the start of the line and the column. */
static inline u32 source_column(const struct source *s, u32 col)
{
	return col > s->indent ? col - s->indent - 1 : 0;
}
/* The texts of a module. */
struct source_list {
	struct source *const *at; /* indexed by loc.file; NULL: not known */
	u32 len;
};
/* A source location in the form that API callers receive. */
struct source_place {
	const char *file; /* NULL if none */
	u32 line, col;
};
/* Appends the source line with carets under the span. Tabs are kept so that the carets line up. */
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

/* One message, split into its parts for callbacks. */
struct message {
	enum diag_severity severity;
	struct loc loc;
	const char *text;
	struct strbuf hint; /* hint.at is NULL if there is no hint */
	u32 at;             /* offset of the message in diags.text */
};

struct diag_place {
	enum diag_id id; /* NDIAGS for all errors: only the first error at a location is reported, since others follow
			  * from it */
	struct loc loc;
	u32 at; /* offset of the message in diags.text */
};

struct diags {
	struct arena *arena;
	VEC(struct source *) sources; /* indexed by loc.file; [0] is unused */
	struct strbuf text;
	VEC(struct message) messages;
	u32 hint_at; /* offset in text for a hint of the last message: before its notes */
	u32 hint_to; /* index of that message */
	u32 nerrors; /* number of errors, including repeated ones that are not shown */
	u32 nshown, nwarnings;
	bool full;  /* MAX_ERRORS were shown: all further messages are dropped */
	bool muted; /* the last message was dropped, so its hints and notes are dropped too */
	/* Called after each error, to append notes such as "called from here". */
	void (*backtrace)(void *arg, struct diags *d);
	void *backtrace_arg;
	VEC(struct diag_place) seen; /* messages that were reported: code that is evaluated 8 times, as in an unrolled
				      * loop, reports a message once */
};

void diags_init(struct diags *d, struct arena *arena);
/* A copy with the same messages. Messages added to one of them do not appear in the other. */
struct diags diags_copy(const struct diags *d);
/* Replaces the messages of d by the messages of `to`. The source texts of d stay registered, since modules that have
 * been read refer to them. */
void diags_restore(struct diags *d, const struct diags *to);
/* Registers a text and returns its file number. `text` must outlive d. */
u16 diags_add_source(struct diags *d, const char *name, const char *text, size_t len);
/* Registers a part of a file: a copy of *s, whose line_start and nlines are set here. */
u16 diags_add_part(struct diags *d, const struct source *s);

/* "%u load%s", n, PLURAL(n) */
#define PLURAL(n) ((n) == 1 ? "" : "s")

#define diag(d, id, at, ...) diag_emit((d), (id), (at), id##_format, ##__VA_ARGS__)
void diag_emit(struct diags *d, enum diag_id id, struct loc at, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* A point in the messages. diags_rewind drops the messages after it. */
struct diags_point {
	u32 text, errors; /* the length of the text, the number of errors */
};
static inline struct diags_point diags_point(const struct diags *d)
{
	return (struct diags_point){d->text.len, d->nerrors};
}
void diags_rewind(struct diags *d, struct diags_point to);
/* Adds a "hint:" line to the last message. */
void diag_hint(struct diags *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The span from the start of `a` to the end of `b` if both are on one line; else `a`. */
struct loc loc_join(struct loc a, struct loc b);

#endif

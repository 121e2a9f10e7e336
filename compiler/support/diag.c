#include "support/diag.h"

enum { MAX_ERRORS = 20 };

static const struct {
	enum diag_severity severity;
	const char *hint;
} table[] = {
#define D(id, severity, format, hint) {DIAG_##severity, hint},
#include "support/diag.def"
#undef D
};

void diags_init(struct diags *d, struct arena *arena)
{
	*d = (struct diags){.arena = arena, .text = {.arena = arena}};
	vec_push(arena, &d->sources, NULL);
}

u16 diags_add_part(struct diags *d, const struct source *part)
{
	struct source *s = arena_dup(d->arena, part, sizeof *part);
	const char *text = s->text;
	u32 n = 1;
	for (size_t i = 0; i < s->len; i++)
		n += text[i] == '\n';
	s->line_start = arena_array(d->arena, u32, n + 1);
	s->nlines = 1;
	for (size_t i = 0; i < s->len; i++)
		if (text[i] == '\n')
			s->line_start[s->nlines++] = (u32)i + 1;
	s->line_start[s->nlines] = (u32)s->len;
	vec_push(d->arena, &d->sources, s);
	return (u16)(d->sources.len - 1);
}

u16 diags_add_source(struct diags *d, const char *name, const char *text, size_t len)
{
	return diags_add_part(d, &(struct source){.name = name, .text = text, .len = len, .first_line = 1});
}

static bool already_said(struct diags *d, enum diag_id id, struct loc at)
{
	if (table[id].severity == DIAG_ERROR)
		id = NDIAGS;
	for (u32 i = 0; i < d->seen.len; i++)
		if (d->seen.at[i].id == id && loc_equals(d->seen.at[i].loc, at))
			return true;
	vec_push(d->arena, &d->seen, ((struct diag_place){id, at, d->text.len}));
	return false;
}

void diag_emit(struct diags *d, enum diag_id id, struct loc at, const char *format, ...)
{
	static const char *const names[] = {"error", "warning", "note", "remark"};
	enum diag_severity sev = table[id].severity;
	if (sev == DIAG_NOTE && d->muted)
		return;
	d->nerrors += sev == DIAG_ERROR;
	d->muted = d->full || (sev != DIAG_NOTE && at.file && already_said(d, id, at));
	if (d->muted)
		return;
	if (sev == DIAG_ERROR && d->nshown >= MAX_ERRORS) {
		sb_puts(&d->text, "too many errors; stopping here\n");
		d->full = d->muted = true;
		return;
	}
	d->nshown += sev == DIAG_ERROR;
	d->nwarnings += sev == DIAG_WARNING;
	const struct source *s = at.file < d->sources.len ? d->sources.at[at.file] : NULL;
	va_list ap;
	va_start(ap, format);
	const char *text = arena_vprintf(d->arena, format, ap);
	va_end(ap);
	d->hint_to = d->messages.len;
	vec_push(d->arena, &d->messages, ((struct message){sev, at, text, {.arena = d->arena}, d->text.len}));
	if (s)
		sb_printf(&d->text, "%s:%u:%u: ", s->name, at.line, at.col);
	sb_printf(&d->text, "%s: %s\n", names[sev], text);
	if (s)
		source_show(s, at, &d->text);
	d->hint_at = d->text.len;
	if (table[id].hint)
		diag_hint(d, "%s", table[id].hint);
	if (sev == DIAG_ERROR && d->backtrace) {
		u32 hint_at = d->hint_at, hint_to = d->hint_to;
		d->backtrace(d->backtrace_arg, d);
		d->hint_at = hint_at;
		d->hint_to = hint_to;
	}
}

void diag_hint(struct diags *d, const char *format, ...)
{
	if (d->muted)
		return;
	char *notes = arena_str(d->arena, d->text.at + d->hint_at, d->text.len - d->hint_at);
	u32 before = d->hint_at;
	d->text.len = d->hint_at;
	va_list ap;
	va_start(ap, format);
	const char *text = arena_vprintf(d->arena, format, ap);
	va_end(ap);
	sb_printf(&d->text, "      = hint: %s\n", text);
	d->hint_at = d->text.len;
	sb_puts(&d->text, notes);
	if (d->hint_to >= d->messages.len)
		return;
	struct strbuf *hint = &d->messages.at[d->hint_to].hint;
	sb_printf(hint, "%s%s", hint->len ? "\n" : "", text);
	for (u32 i = d->hint_to + 1; i < d->messages.len; i++) /* the notes of this message */
		d->messages.at[i].at += d->hint_at - before;
}

struct diags diags_copy(const struct diags *d)
{
	struct diags copy = *d;
	copy.text = (struct strbuf){.arena = d->arena};
	sb_puts(&copy.text, d->text.len ? d->text.at : "");
	copy.messages.at = arena_dup(d->arena, d->messages.at, d->messages.len * sizeof *d->messages.at);
	copy.messages.cap = d->messages.len;
	copy.seen.at = arena_dup(d->arena, d->seen.at, d->seen.len * sizeof *d->seen.at);
	copy.seen.cap = d->seen.len;
	return copy;
}

void diags_restore(struct diags *d, const struct diags *to)
{
	struct diags now = *d;
	*d = *to;
	d->sources = now.sources;
}

void diags_rewind(struct diags *d, struct diags_point to)
{
	d->nerrors = to.errors;
	d->text.len = to.text;
	if (d->text.at)
		d->text.at[to.text] = 0;
	while (d->messages.len && d->messages.at[d->messages.len - 1].at >= to.text)
		d->nshown -= d->messages.at[--d->messages.len].severity == DIAG_ERROR;
	while (d->seen.len && d->seen.at[d->seen.len - 1].at >= to.text)
		d->seen.len--;
}

struct loc loc_join(struct loc a, struct loc b)
{
	if (a.file == b.file && a.line == b.line && b.col + b.len > a.col)
		a.len = (u16)(b.col + b.len - a.col);
	return a;
}

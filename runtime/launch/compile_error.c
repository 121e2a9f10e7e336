/* The compiler's messages as the error of a call. */
#include <stdlib.h>

#include "runtime/api/objects.h"
#include "runtime/image/diagnostic_list.h"

/* The compiler's messages without its remarks. NULL: memory runs out, or there are none. */
static struct diagnostic_list *list_of_messages(const struct diags *d)
{
	struct diagnostic_parts *parts = calloc(d->messages.len + 1, sizeof *parts);
	size_t n = 0;
	bool is_remark = false;
	for (u32 i = 0; parts && i < d->messages.len; i++) {
		const struct message *m = &d->messages.at[i];
		const struct source *s = m->loc.file < d->sources.len ? d->sources.at[m->loc.file] : NULL;
		u32 to = i + 1 < d->messages.len ? m[1].at : d->text.len;
		if (m->severity != DIAG_NOTE)
			is_remark = m->severity == DIAG_REMARK;
		if (is_remark)
			continue;
		struct diagnostic_parts *p = &parts[n++];
		p->d.severity = (tl_severity)m->severity;
		if (s) {
			p->d.line = m->loc.line;
			p->d.column = m->loc.col;
			p->d.length = m->loc.len;
			p->file = text_of(s->name);
		}
		p->text = text_of(m->text);
		p->hint = (struct text){m->hint.at, m->hint.len};
		p->shown = (struct text){d->text.at + m->at, to - m->at};
	}
	struct diagnostic_list *l = list_new(parts, n);
	free(parts);
	return l;
}

tl_status failed_compile(const struct diags *d)
{
	const char *text = d->text.at;
	failed_text(TL_ERR_COMPILE, text && *text ? text : "the kernel cannot be compiled");
	list_set(list_of_messages(d));
	for (u32 i = 0; i < d->messages.len; i++) {
		struct loc at = d->messages.at[i].loc;
		const struct source *s = at.file < d->sources.len ? d->sources.at[at.file] : NULL;
		if (d->messages.at[i].severity != DIAG_ERROR)
			continue;
		if (s)
			failed_at(&(struct source_place){s->name, at.line, at.col});
		break;
	}
	return TL_ERR_COMPILE;
}

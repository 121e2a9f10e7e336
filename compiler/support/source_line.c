/* Lines of a source in messages. Separate from diag.c, whose table of messages libtlrt does not need. */
#include "support/diag.h"

void source_show(const struct source *s, struct loc at, struct strbuf *out)
{
	const char *line = source_line(s, at.line);
	if (!line)
		return;
	const char *end = s->text + s->line_start[at.line - s->first_line + 1];
	while (end > line && (end[-1] == '\n' || end[-1] == '\r'))
		end--;
	u32 len = (u32)MIN(end - line, 400), col = source_column(s, at.col);
	sb_printf(out, "%5u | %.*s\n      | ", at.line, (int)len, line);
	for (u32 i = 0; i < col && i < len; i++)
		if ((line[i] & 0xC0) != 0x80) /* one column per UTF-8 character */
			sb_puts(out, line[i] == '\t' ? "\t" : " ");
	sb_puts(out, "^");
	for (u32 i = col + 1; i < col + at.len && i < len; i++)
		if ((line[i] & 0xC0) != 0x80)
			sb_puts(out, "~");
	sb_puts(out, "\n");
}

/* `tlc build --depfile`: the files that a build has read, as a rule in the syntax of make and ninja. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cmd_build.h"

void note_file(struct command *c, const char *path)
{
	add_once(&c->arena, &c->files_read, arena_str(&c->arena, path, strlen(path)));
}

void note_imports(struct command *c, const struct unit *u)
{
	for (u32 i = 1; i < u->diags.sources.len; i++)
		if (map_get(&u->imported, u->diags.sources.at[i]->name))
			note_file(c, u->diags.sources.at[i]->name);
}

/* make reads backslashes literally, except before a space or #: there each of them is doubled. */
static void sb_path(struct strbuf *out, const char *path)
{
	for (const char *s = path; *s; s++) {
		size_t slashes = strspn(s, "\\");
		for (size_t i = 0; i < slashes; i++)
			sb_puts(out, strchr(" #", s[slashes]) && s[slashes] ? "\\\\" : "\\");
		s += slashes;
		if (!*s)
			break;
		sb_printf(out, *s == ' ' || *s == '#' ? "\\%c" : *s == '$' ? "$%c" : "%c", *s);
	}
}

/* If the output has an absolute path, the files do too, because tlc may run in another folder than the reader of the
 * depfile. */
static const char *path_shown(struct command *c, const char *path)
{
	char *here = *path != '/' && *c->output == '/' ? getcwd(NULL, 0) : NULL;
	const char *plain = strncmp(path, "./", 2) ? path : path + 2;
	const char *shown = here ? arena_printf(&c->arena, "%s/%s", here, plain) : path;
	free(here);
	return shown;
}

int write_depfile(struct command *c)
{
	struct strbuf out = {.arena = &c->arena};
	/* the source first: ninja requires the order of its rule */
	for (u32 i = 0; i < 2; i++) {
		sb_path(&out, arena_printf(&c->arena, "%s.%c", c->output, "ch"[i]));
		sb_puts(&out, i ? ":" : " ");
	}
	for (u32 i = 0; i < c->files_read.len; i++) {
		sb_puts(&out, " \\\n  ");
		sb_path(&out, path_shown(c, c->files_read.at[i]));
	}
	sb_puts(&out, "\n");
	/* a rule without commands for each file, so that a removed file is not an error for make */
	for (u32 i = 0; i < c->files_read.len; i++) {
		sb_puts(&out, "\n");
		sb_path(&out, path_shown(c, c->files_read.at[i]));
		sb_puts(&out, ":\n");
	}
	return write_file(&c->arena, c->depfile, out.at, out.len);
}

/* Modules in other files, found as Python finds them: by relative imports beside the file, others in the folder above
 * the package that the file is in, and beside the unit's own file. */
#include <sys/stat.h>

#include "compile.h"

/* The text of a file, or NULL. */
static char *read_text(struct arena *a, const char *path, size_t *len)
{
	struct stat st;
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return NULL;
	FILE *f = fopen(path, "rb");
	if (!f)
		return NULL;
	char *text = arena_alloc(a, (size_t)st.st_size + 1);
	*len = fread(text, 1, (size_t)st.st_size, f);
	text[*len] = 0;
	fclose(f);
	return text;
}

static const struct module *module_at(struct unit *u, const char *path)
{
	const char *key = intern_str(&u->names, path);
	struct module *m = map_get(&u->imported, key);
	size_t len;
	if (m)
		return m;
	char *text = read_text(&u->arena, path, &len);
	if (!text || u->diags.sources.len >= UINT16_MAX - 1000)
		return NULL;
	m = parse_module(&u->arena, &u->names, &u->diags, diags_add_source(&u->diags, key, text, len));
	map_put(&u->imported, key, m);
	return m;
}

/* dir/a/b.py or dir/a/b/__init__.py; of no name the package's own file. */
static const struct module *module_in(struct unit *u, const char *dir, const char *dotted)
{
	struct strbuf sb = {.arena = &u->arena};
	sb_printf(&sb, "%s/", dir);
	for (const char *s = dotted; *s; s++)
		sb_printf(&sb, "%c", *s == '.' ? '/' : *s);
	const struct module *m = *dotted ? module_at(u, arena_printf(&u->arena, "%s.py", sb.at)) : NULL;
	return m ? m : module_at(u, arena_printf(&u->arena, "%s%s__init__.py", sb.at, *dotted ? "/" : ""));
}

static const char *folder_of(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash == path ? "/" : slash ? arena_str(a, path, (size_t)(slash - path)) : ".";
}

static bool is_package(struct arena *a, const char *dir)
{
	struct stat st;
	return !stat(arena_printf(a, "%s/__init__.py", dir), &st);
}

static const char *above(struct arena *a, const char *dir)
{
	const char *last = strrchr(dir, '/');
	last = last ? last + 1 : dir;
	if (!strcmp(last, ".") || !strcmp(last, "..") || !*last)
		return arena_printf(a, "%s/..", dir);
	return folder_of(a, dir);
}

const struct module *import_module(void *unit, const struct module *from, const char *dotted)
{
	struct unit *u = unit;
	struct arena *a = &u->arena;
	const char *dir = folder_of(a, u->diags.sources.at[from->file]->name);
	size_t dots = strspn(dotted, ".");
	if (dots) {
		for (size_t i = 1; i < dots; i++)
			dir = above(a, dir);
		return module_in(u, dir, dotted + dots);
	}
	enum { DEEPEST = 32 }; /* packages inside each other */
	for (int i = 0; i < DEEPEST && is_package(a, dir); i++)
		dir = above(a, dir);
	const struct module *m = module_in(u, dir, dotted);
	const char *own = folder_of(a, u->diags.sources.at[u->module->file]->name);
	return m || !strcmp(own, dir) ? m : module_in(u, own, dotted);
}

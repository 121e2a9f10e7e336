/* Import of modules. A module is searched among the source texts of the unit first, by its dotted name, and then in
 * other files, which are found as Python finds them. Relative imports of files are resolved from the file's folder.
 * Other imports are searched in the folder above the file's package, the folder of the unit's own file, the folders
 * around the importing file, and the folders of PYTHONPATH. */
#include <stdlib.h>
#include <sys/stat.h>

#include "support/file.h"
#include "driver/compile.h"

static const size_t most_bytes = (size_t)1 << 28;

static const struct module *module_at(struct unit *u, const char *path)
{
	const char *key = intern_str(&u->names, path);
	struct module *m = map_get(&u->imported, key);
	size_t len;
	if (m)
		return m;
	char *text = file_read(&u->arena, path, most_bytes, &len);
	if (!text || u->diags.sources.len >= UINT16_MAX - 1000)
		return NULL;
	m = parse_module(&u->arena, &u->names, &u->diags, diags_add_source(&u->diags, key, text, len));
	map_put(&u->imported, key, m);
	return m;
}

/* The module `dotted` (a.b) in folder `dir`: dir/a/b.py or dir/a/b/__init__.py; for an empty name dir/__init__.py. NULL
 * if there is no such file. */
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

/* The module `dotted` in the innermost folder around `dir` that contains a folder named as the first part of `dotted`,
 * directly or in src/, as repositories do. That folder needs no __init__.py. NULL if there is no such module. */
static const struct module *module_around(struct unit *u, const char *dir, const char *dotted)
{
	enum { FARTHEST = 32 };
	struct arena *a = &u->arena;
	const char *first = arena_str(a, dotted, strcspn(dotted, "."));
	const struct module *m = NULL;
	for (int i = 0; i < FARTHEST && !m; i++) {
		const char *name = strrchr(dir, '/'), *outer = above(a, dir);
		name = name ? name + 1 : dir;
		if (is_package(a, arena_printf(a, "%s/%s", dir, first)))
			m = module_in(u, dir, dotted);
		if (!m && is_package(a, arena_printf(a, "%s/src/%s", dir, first)))
			m = module_in(u, arena_printf(a, "%s/src", dir), dotted);
		if (!m && !strcmp(name, first))
			m = module_in(u, outer, dotted);
		if (!strcmp(dir, "/") || !strcmp(dir, outer))
			break;
		dir = outer;
	}
	return m;
}

static const struct module *module_on_path(struct unit *u, const char *dotted)
{
	const struct module *m = NULL;
	const char *path = getenv("PYTHONPATH");
	for (size_t n; !m && path && *path; path += n + (path[n] != 0)) {
		n = strcspn(path, ":");
		m = n ? module_in(u, arena_str(&u->arena, path, n), dotted) : NULL;
	}
	return m;
}

/* The dotted name of the module that `from`, a source text of the unit, imports. NULL if a relative import leaves the
 * outermost package. */
static const char *absolute_name(struct unit *u, const struct module *from, const char *dotted)
{
	size_t dots = strspn(dotted, ".");
	const char *name = map_get(&u->given_names, from);
	if (!dots)
		return dotted;
	struct strbuf sb = {.arena = &u->arena};
	sb_puts(&sb, name ? name : "");
	const char *file = u->diags.sources.at[from->file]->name;
	bool package = (name && map_get(&u->packages, name) == from) || ends_in(file, "/__init__.py");
	for (size_t i = package; i < dots; i++) { /* removes the last part */
		if (!sb.len)
			return i + 1 == dots ? dotted + dots : NULL;
		while (sb.len && sb.at[--sb.len] != '.')
			;
		sb.at[sb.len] = 0;
	}
	if (dotted[dots])
		sb_printf(&sb, "%s%s", sb.len ? "." : "", dotted + dots);
	return sb.at;
}

static const struct module *import_source(struct unit *u, const struct map *sources, const struct module *from,
					  const char *dotted)
{
	if (!sources->len || (*dotted == '.' && from != u->module && !map_get(&u->given_names, from)))
		return NULL;
	const char *name = absolute_name(u, from, dotted), *key = name ? intern_find(&u->names, name) : NULL;
	return key ? map_get(sources, key) : NULL;
}

static const struct module *import_file(struct unit *u, const struct module *from, const char *dotted)
{
	struct arena *a = &u->arena;
	const char *dir = folder_of(a, u->diags.sources.at[from->file]->name);
	size_t dots = strspn(dotted, ".");
	if (dots) {
		for (size_t i = 1; i < dots; i++)
			dir = above(a, dir);
		return module_in(u, dir, dotted + dots);
	}
	enum { DEEPEST = 32 }; /* limit of nested packages */
	for (int i = 0; i < DEEPEST && is_package(a, dir); i++)
		dir = above(a, dir);
	const struct module *m = module_in(u, dir, dotted);
	const char *own = folder_of(a, u->diags.sources.at[u->module->file]->name);
	if (!m && strcmp(own, dir) != 0)
		m = module_in(u, own, dotted);
	if (!m)
		m = module_around(u, folder_of(a, u->diags.sources.at[from->file]->name), dotted);
	return m ? m : module_on_path(u, dotted);
}

const struct module *import_given(void *unit, const struct module *from, const char *dotted)
{
	struct unit *u = unit;
	return import_source(u, &u->given, from, dotted);
}

const struct module *import_module(void *unit, const struct module *from, const char *dotted)
{
	struct unit *u = unit;
	const struct module *m = import_source(u, &u->given, from, dotted);
	m = m ? m : import_file(u, from, dotted);
	return m ? m : import_source(u, &u->packages, from, dotted);
}

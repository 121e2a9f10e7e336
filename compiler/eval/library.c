/* The standard library, written in the language (lang/std): texts that end in a NUL. The first, core.tl, is part of
 * every module; the others are parsed where a kernel uses them. */
#include "eval/internal.h"

extern const char embed_std[], embed_std_end[];

static const struct module *parse_part(struct arena *a, struct interner *names, struct diags *d, const char *text)
{
	struct module *m = parse_module(a, names, d, diags_add_source(d, "<std>", text, strlen(text)));
	m->is_library = true;
	return m;
}

const struct module *library_core(struct arena *a, struct interner *names, struct diags *d)
{
	const struct module *m = parse_part(a, names, d, embed_std);
	tl_assert(!d->nerrors);
	return m;
}

static const char *next_part(const char *text)
{
	return text + strlen(text) + 1;
}

static bool defines(const char *text, const char *name)
{
	size_t n = strlen(name);
	for (const char *s = text; (s = strstr(s, "\ndef ")); s += 5)
		if (!strncmp(s + 5, name, n) && s[5 + n] == '(')
			return true;
	return false;
}

const struct func *library_function(struct eval *e, const char *name)
{
	const struct func *f = map_get(&e->std->by_name, name);
	if (f)
		return f;
	const char *part = next_part(embed_std);
	while (part < embed_std_end && !defines(part, name))
		part = next_part(part);
	if (part >= embed_std_end)
		return NULL;
	const struct module *m = map_get(&e->library, part);
	if (!m) {
		m = parse_part(e->arena, e->ctx->names, e->diags, part);
		map_put(&e->library, part, (void *)m);
	}
	return map_get(&m->by_name, name);
}

u32 library_names(struct eval *e, const char **names, u32 max)
{
	u32 n = 0;
	for (const char *part = embed_std; part < embed_std_end; part = next_part(part))
		for (const char *s = part; (s = strstr(s, "\ndef ")) && n < max;) {
			s += 5;
			if (*s != '_')
				names[n++] = arena_str(e->arena, s, strcspn(s, "("));
		}
	return n;
}

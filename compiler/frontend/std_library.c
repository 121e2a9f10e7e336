/* The standard library, written in the language (lang/std), as NUL-terminated strings. The first one, core.tl, is
 * parsed once per process. Each other one is parsed by the kernels that use a function of it. */
#include "frontend/frontend_internal.h"

extern const char embed_std[], embed_std_end[];

static const struct module *parse_part(struct arena *a, struct interner *names, struct diags *d, const char *text)
{
	u32 errors = d->nerrors;
	struct module *m = parse_module(a, names, d, diags_add_source(d, "<std>", text, strlen(text)));
	tl_assert(d->nerrors == errors);
	m->is_library = true;
	return m;
}

const struct module *library_core(struct arena *a, struct interner *names, struct diags *d)
{
	return parse_part(a, names, d, embed_std);
}

static const char *next_part(const char *text)
{
	return text + strlen(text) + 1;
}

/* The name in the next "def" after `at`, or NULL. */
static const char *next_name(const char *at)
{
	static const char def[] = "\ndef ";
	at = strstr(at, def);
	return at ? at + strlen(def) : NULL;
}

static bool defines(const char *text, const char *name)
{
	size_t n = strlen(name);
	while ((text = next_name(text)))
		if (!strncmp(text, name, n) && text[n] == '(')
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

u32 library_names(struct eval *e, const char *prefix, const char **names, u32 max)
{
	size_t len = strlen(prefix);
	u32 n = 0;
	for (const char *part = embed_std; part < embed_std_end; part = next_part(part))
		for (const char *s = part; (s = next_name(s)) && n < max;)
			if (!strncmp(s, prefix, len) && s[len] != '_')
				names[n++] = arena_str(e->arena, s + len, strcspn(s + len, "("));
	return n;
}

void library_each(struct arena *a, struct interner *names, struct diags *d,
		  void (*each)(void *arg, const struct func *f), void *arg)
{
	for (const char *part = embed_std; part < embed_std_end; part = next_part(part)) {
		const struct module *m = parse_part(a, names, d, part);
		for (u32 i = 0; i < m->funcs.len; i++)
			each(arg, m->funcs.at[i]);
	}
}

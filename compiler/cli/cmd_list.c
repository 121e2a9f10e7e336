/* `tlc list`: the jit functions of a file, their parameters and their decorators, as text and as JSON. */
#include "cli/cli.h"

static const char *text_of(struct arena *a, const struct expr *x)
{
	struct strbuf sb = sb_empty(a);
	ast_print_expr(x, &sb);
	return sb.at;
}

static void list_param(const struct param *p, struct strbuf *out)
{
	sb_printf(out, p->annotation ? "    %-23s " : "    %s", p->name);
	if (p->annotation)
		ast_print_expr(p->annotation, out);
	if (p->value) {
		sb_puts(out, " = ");
		ast_print_expr(p->value, out);
	}
	sb_puts(out, "\n");
}

static void list_configuration(const struct configuration *c, struct strbuf *out)
{
	struct strbuf text = sb_empty(out->arena);
	for (u32 i = 0; i < c->nvalues; i++)
		sb_printf(&text, "%s%s=%s", i ? " " : "", c->values[i].name, c->values[i].literal);
	codegen_options_print(&text, &c->options, &(struct codegen_options){0}, " ");
	sb_printf(out, "    configuration: %s\n", text.at);
}

static void list_tuning(const struct tuning *t, struct strbuf *out)
{
	for (u32 i = 0; i < t->configurations.len; i++)
		list_configuration(&t->configurations.at[i], out);
	for (u32 i = 0; i < t->keys.len; i++)
		sb_printf(out, "%s%s%s", i ? ", " : "    key: ", t->keys.at[i], i + 1 == t->keys.len ? "\n" : "");
	for (u32 i = 0; i < t->heuristics.len; i++)
		sb_printf(out, "%s%s%s", i ? ", " : "    heuristics: ", t->heuristics.at[i].name,
			  i + 1 == t->heuristics.len ? "\n" : "");
	for (u32 i = 0; i < t->unknown.len; i++)
		sb_printf(out, "    not known: %s\n", t->unknown.at[i]);
}

/* --- JSON ---------------------------------------------------------------------------------------------------- */

static void json_text(struct arena *a, const char *key, const struct expr *x, struct strbuf *out)
{
	sb_printf(out, ", \"%s\": ", key);
	if (x)
		sb_json(out, text_of(a, x));
	else
		sb_puts(out, "null");
}

/* "key": ["a", "b"] */
static void json_strings(const char *key, const char *const *at, u32 n, struct strbuf *out)
{
	sb_printf(out, ",\n   \"%s\": [", key);
	for (u32 i = 0; i < n; i++) {
		sb_puts(out, i ? ", " : "");
		sb_json(out, at[i]);
	}
	sb_puts(out, "]");
}

static void json_configuration(const struct configuration *c, struct strbuf *out)
{
	sb_puts(out, "{\"constants\": {");
	for (u32 i = 0; i < c->nvalues; i++) {
		sb_puts(out, i ? ", " : "");
		sb_json(out, c->values[i].name);
		sb_printf(out, ": %s", c->values[i].json);
	}
	sb_puts(out, "}, \"num_warps\": ");
	sb_printf(out, c->options.num_warps ? "%d" : "null", c->options.num_warps);
	sb_puts(out, ", \"num_stages\": ");
	sb_printf(out, c->options.num_stages ? "%d" : "null", c->options.num_stages);
	sb_puts(out, "}");
}

static void json_function(struct arena *a, const struct func *f, bool helper, const struct tuning *t,
			  struct strbuf *out)
{
	const char **names = arena_array(a, const char *, t->heuristics.len + f->ndecorators);
	sb_puts(out, "  {\"name\": ");
	sb_json(out, f->name);
	sb_printf(out, ", \"line\": %u, \"kind\": \"%s\",\n   \"parameters\": [", f->loc.line,
		  helper ? "helper" : "kernel");
	for (u32 i = 0; i < f->nparams; i++) {
		sb_puts(out, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
		sb_json(out, f->params[i].name);
		sb_printf(out, ", \"constexpr\": %s", is_constexpr(&f->params[i]) ? "true" : "false");
		json_text(a, "annotation", f->params[i].annotation, out);
		json_text(a, "default", f->params[i].value, out);
		sb_puts(out, "}");
	}
	sb_puts(out, "]");
	for (u32 i = 0; i < f->ndecorators; i++)
		names[i] = f->decorators[i].name;
	json_strings("decorators", names, f->ndecorators, out);
	sb_puts(out, ",\n   \"configurations\": [");
	for (u32 i = 0; i < t->configurations.len; i++) {
		sb_puts(out, i ? ",\n    " : "\n    ");
		json_configuration(&t->configurations.at[i], out);
	}
	sb_puts(out, "]");
	json_strings("key", t->keys.at, t->keys.len, out);
	for (u32 i = 0; i < t->heuristics.len; i++)
		names[i] = t->heuristics.at[i].name;
	json_strings("heuristics", names, t->heuristics.len, out);
	json_strings("unknown", t->unknown.at, t->unknown.len, out);
	sb_puts(out, "}");
}

/* --- the command --------------------------------------------------------------------------------------------- */

static int show_builtins(struct command *c, struct unit *u)
{
	struct strbuf out = {.arena = &c->arena};
	unit_open(u, "<none>", "", 0);
	list_builtins(&u->ir, &out);
	fputs(out.at, stdout);
	unit_free(u);
	return EXIT_DONE;
}

int command_list(struct command *c)
{
	struct unit *u = arena_new(&c->arena, struct unit);
	if (c->builtins)
		return show_builtins(c, u);
	size_t len;
	char *text = read_file(&c->arena, c->file, &len);
	if (!text)
		return EXIT_ENVIRONMENT;
	bool ok = unit_open(u, c->file, text, len);
	show_diagnostics(u);
	if (u->parsed)
		return complain(EXIT_USER, "'%s' is IR text of one kernel, '%s'; tlc list is for source", c->file,
				u->parsed->name);
	struct strbuf out = sb_empty(&c->arena);
	if (c->json) {
		sb_puts(&out, "{\"file\": ");
		sb_json(&out, c->file);
		sb_puts(&out, ", \"functions\": [");
	}
	for (u32 i = 0; u->module && i < u->module->funcs.len; i++) {
		const struct func *f = u->module->funcs.at[i];
		bool helper = is_helper(u->module, f);
		struct tuning t = {0};
		if (f->ndecorators || f->jit.name)
			unit_tuning(u, f, NULL, 90, DECORATORS_KNOWN, &t);
		if (c->json) {
			sb_puts(&out, i ? ",\n" : "\n");
			json_function(&c->arena, f, helper, &t, &out);
			continue;
		}
		sb_printf(&out, "%s:%u: %s %s\n", c->file, f->loc.line, helper ? "helper" : "kernel", f->name);
		for (u32 k = 0; k < f->nparams; k++)
			list_param(&f->params[k], &out);
		list_tuning(&t, &out);
	}
	if (c->json)
		sb_puts(&out, "]}\n");
	fputs(out.at, stdout);
	unit_free(u);
	return ok ? EXIT_DONE : EXIT_USER;
}

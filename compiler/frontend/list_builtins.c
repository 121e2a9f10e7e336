/* The built-in functions by name: for `tlc list --builtins`, which provides the signatures in the reference, and for
 * the list of builtins that a kernel calls. */
#include "frontend/frontend_internal.h"

static const char *const namespace_prefix[] = {
	[NS_TRITON] = "triton.", [NS_TL] = "tl.", [NS_EXTRA] = "tl.extra.cuda.",
	[NS_LIBDEVICE] = "libdevice.", [NS_PYMATH] = "math.", [NS_PYTHON] = "", [NS_TYPE] = "dtype.",
	[NS_PROFILER] = "triton.profiler.language.", [NS_TARGET] = "tl.target_info.",
};

/* Library functions that belong to a namespace other than tl. */
static const struct {
	const char *prefix, *shown;
} library_prefix[] = {
	{LIBDEVICE_PREFIX, "libdevice."},
	{CUDA_PREFIX, "tl.extra.cuda."},
	{INDUCTOR_PREFIX, "triton_helpers."},
	{"_tensor_descriptor_", "descriptor."},
};

/* The name that kernels use, or NULL for an internal function. */
static const char *shown_name(struct arena *a, const struct func *f)
{
	if (f->name[0] != '_')
		return arena_printf(a, "tl.%s", f->name);
	for (u32 i = 0; i < ARRAY_LEN(library_prefix); i++) {
		size_t n = strlen(library_prefix[i].prefix);
		if (!strncmp(f->name, library_prefix[i].prefix, n))
			return arena_printf(a, "%s%s", library_prefix[i].shown, f->name + n);
	}
	return NULL;
}

/* --- list of all builtins ------------------------------------------------------------------------------------ */

/* Prints a signature such as "axis,*dims" with a space after each comma and without self. */
static void signature(const char *s, struct strbuf *out)
{
	if (!strncmp(s, "self", 4))
		s += s[4] == ',' ? 5 : 4;
	for (; *s; s++)
		sb_printf(out, *s == ',' ? "%c " : "%c", *s);
}

static void parameters(const struct func *f, struct strbuf *out)
{
	const char *before = "";
	for (u32 i = 0; i < f->nparams; i++) {
		const struct param *p = &f->params[i];
		if (!i && !strcmp(p->name, "self"))
			continue;
		sb_printf(out, "%s%s%s", before, p->rest ? "**" : p->star ? "*" : "", p->name);
		before = ", ";
		if (p->value) {
			u32 at = out->len + 1;
			sb_puts(out, "=");
			ast_print_expr(p->value, out);
			for (char *s = out->at + at; *s; s++)
				*s = *s == '"' ? '\'' : *s;
		}
	}
}

/* The prefix for a builtin's name: "tl." for tl.load, or "x." for a builtin that is only a method. */
static const char *prefix_of(const struct builtin *b)
{
	return b->namespace_ == NS_TL && !strncmp(b->signature, "self", 4) ? "x." : namespace_prefix[b->namespace_];
}

static bool takes_tile_first(const struct func *f)
{
	return f->nparams && (!strcmp(f->params[0].name, "x") || !strcmp(f->params[0].name, "input"));
}

struct listing {
	struct arena *arena;
	struct strbuf *out;
};

static void list_function(void *arg, const struct func *f)
{
	struct listing *l = arg;
	const char *name = shown_name(l->arena, f);
	if (!name || builtin_named(name))
		return;
	sb_printf(l->out, "%s(", name);
	parameters(f, l->out);
	sb_puts(l->out, f->name[0] != '_' && takes_tile_first(f) ? ")\tmethod\n" : ")\n");
}

static void list_builtin(void *arg, const struct builtin *b)
{
	struct listing *l = arg;
	if (b->name[0] == '_')
		return;
	sb_printf(l->out, "%s%s(", prefix_of(b), b->name);
	signature(b->signature, l->out);
	sb_puts(l->out, b->method && *prefix_of(b) != 'x' ? ")\tmethod\n" : ")\n");
}

void list_builtins(struct ir_context *ctx, struct strbuf *out)
{
	struct listing l = {ctx->arena, out};
	builtin_each(list_builtin, &l);
	library_each(ctx->arena, ctx->names, ctx->diags, list_function, &l);
}

/* The search for a name such as "tl.load" in the table of builtins. */
struct named {
	const char *name;
	bool found;
};

static void compare_name(void *arg, const struct builtin *b)
{
	struct named *n = arg;
	size_t len = strlen(namespace_prefix[b->namespace_]);
	n->found |= !strncmp(n->name, namespace_prefix[b->namespace_], len) && !strcmp(n->name + len, b->name);
}

bool builtin_named(const char *name)
{
	struct named n = {.name = name};
	builtin_each(compare_name, &n);
	return n.found;
}

/* --- builtins that a kernel calls ---------------------------------------------------------------------------- */

/* Prints an argument that was given: its name, and its value if that is a string, a Boolean or None. */
static void tell_argument(struct strbuf *out, const char *name, size_t len, const struct val *v, const char *before)
{
	sb_printf(out, "%s%.*s", before, (int)len, name);
	if (v->kind == V_STR)
		sb_printf(out, "='%.*s'", (int)v->len, v->text);
	else if (v->kind == V_BOOL)
		sb_printf(out, "=%s", v->boolean ? "True" : "False");
	else if (v->kind == V_NONE)
		sb_puts(out, "=None");
}

static bool is_of_library(const struct frame *f)
{
	return f && f->func->module->is_library;
}

void tell_builtin_call(struct eval *e, const struct builtin *b, const struct val *bound, const bool *given)
{
	const char *s = b->signature, *before = "";
	if (!e->calls || b->name[0] == '_' || is_of_library(e->frame))
		return;
	sb_printf(e->calls, "%s%s(", prefix_of(b), b->name);
	for (u32 i = 0; *s; i++) {
		size_t all = strcspn(s, ",");
		const char *name = s + (*s == '*');
		if (given[i]) {
			tell_argument(e->calls, name, strcspn(name, ",="), &bound[i], before);
			before = ", ";
		}
		s += all + (s[all] == ',');
	}
	sb_puts(e->calls, ")\n");
}

void tell_library_call(struct eval *e, const struct func *f, const struct val *bound, const bool *given)
{
	const char *before = "";
	const char *name = e->calls && f->module->is_library && !is_of_library(e->frame) ? shown_name(e->arena, f)
											   : NULL;
	if (!name)
		return;
	sb_printf(e->calls, "%s(", name);
	for (u32 i = 0; i < f->nparams; i++)
		if (given[i]) {
			tell_argument(e->calls, f->params[i].name, strlen(f->params[i].name), &bound[i], before);
			before = ", ";
		}
	sb_puts(e->calls, ")\n");
}

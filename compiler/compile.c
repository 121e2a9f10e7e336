#include "compile.h"

#include <stdlib.h>

extern const char embed_std[], embed_std_end[];

bool target_parse(const char *text, struct target *out)
{
	*out = (struct target){0};
	if (!strncmp(text, "cuda:", 5))
		text += 5;
	if (!strncmp(text, "sm_", 3))
		text += 3;
	char *end;
	out->sm = (int)strtol(text, &end, 10);
	out->arch_specific = *end == 'a';
	end += *end == 'a';
	return !*end && out->sm >= 70 && out->sm < 200;
}

const char *target_name(struct arena *a, const struct target *t)
{
	return arena_printf(a, "sm_%d%s", t->sm, t->arch_specific ? "a" : "");
}

bool unit_open(struct unit *u, const char *name, const char *text, size_t len)
{
	*u = (struct unit){0};
	u->names.arena = &u->arena;
	diags_init(&u->diags, &u->arena);
	ir_context_init(&u->ir, &u->arena, &u->names, &u->diags);
	u16 std = diags_add_source(&u->diags, "<std>", embed_std, (size_t)(embed_std_end - embed_std));
	u16 file = diags_add_source(&u->diags, name, text, len);
	u->std = parse_module(&u->arena, &u->names, &u->diags, std);
	tl_assert(!u->diags.nerrors);
	size_t n = strlen(name);
	if (n > 5 && !strcmp(name + n - 5, ".ttir"))
		u->parsed = kernel_parse(&u->ir, file);
	else
		u->module = parse_module(&u->arena, &u->names, &u->diags, file);
	return !u->diags.nerrors;
}

void unit_free(struct unit *u)
{
	struct arena a = u->arena;
	arena_free(&a);
}

struct kernel *compile_ir(struct unit *u, const struct func *func, const struct arg_spec *args)
{
	if (u->parsed)
		return u->parsed;
	struct eval_request req = {u->module, u->std, func, args};
	struct kernel *k = eval_kernel(&u->ir, &req);
#ifndef NDEBUG
	if (k)
		kernel_verify(k, "eval", NULL);
#endif
	return k;
}

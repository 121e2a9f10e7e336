/* Names of a module: which definition in host code applies, and its value.
 *
 * Host Python is not run. Definitions that kernels refer to are evaluated as far as they are literal, as Python would
 * evaluate them on a machine with an NVIDIA GPU. This includes conditions of `if`, whether a `try` finds its imports,
 * and a few facts about torch and the environment. An unknown definition is an error if a kernel uses it. */
#include <stdlib.h>

#include "support/suggest.h"
#include "frontend/frontend_internal.h"

static struct val namespace_val(enum namespace_ s)
{
	return (struct val){.kind = V_NAMESPACE, .namespace_ = s};
}

/* --- imports ------------------------------------------------------------------------------------------------- */

static const char *last_part(const char *target)
{
	const char *dot = strrchr(target, '.');
	return dot ? dot + 1 : target;
}

/* Modules of other libraries that tlc replaces if it does not find or cannot evaluate their files. */
static bool replaced_namespace(const char *target, struct val *out)
{
	static const struct {
		const char *name;
		enum namespace_ ns;
	} all[] = {{"libdevice", NS_LIBDEVICE},
		   {"tldevice", NS_LIBDEVICE},
		   {"tl_math", NS_MATH},
		   {"triton_helpers", NS_INDUCTOR},
		   {"triton_compat", NS_INDUCTOR}};
	for (u32 i = 0; i < ARRAY_LEN(all); i++)
		if (!strcmp(all[i].name, last_part(target))) {
			*out = namespace_val(all[i].ns);
			return true;
		}
	return false;
}

/* Such a module, or a name in it. */
static bool replaced_import(struct eval *e, const char *target, struct val *out)
{
	const char *name = last_part(target);
	if (replaced_namespace(target, out))
		return true;
	if (name == target || !replaced_namespace(arena_str(e->arena, target, (size_t)(name - 1 - target)), out))
		return false;
	*out = namespace_lookup(e, out->namespace_, intern_str(e->ctx->names, name));
	return out->kind != V_ERROR;
}

/* Modules of Triton, also re-exported by another module (`from vllm.triton_utils import tl`), and Python's math. */
static bool known_namespace(const char *target, struct val *out)
{
	static const struct {
		const char *target;
		enum namespace_ ns;
	} whole[] = {{"triton", NS_TRITON}, {"triton.language", NS_TL}, {"triton.language.math", NS_MATH},
		     {"triton.language.extra", NS_EXTRA}, {"triton.language.extra.cuda", NS_EXTRA},
		     {"triton.language.extra.cuda.utils", NS_EXTRA}, {"triton.language.extra.cuda.gdc", NS_EXTRA},
		     {"triton.language.core", NS_TL}, {"triton.language.standard", NS_TL},
		     {"triton.language.random", NS_TL}, {"triton.language.target_info", NS_TARGET}, {"math", NS_PYMATH},
		     {"triton.profiler", NS_PROFILER}, {"triton.profiler.language", NS_PROFILER}},
	  last[] = {{"triton", NS_TRITON}, {"tl", NS_TL}};
	for (u32 i = 0; i < ARRAY_LEN(whole); i++)
		if (!strcmp(whole[i].target, target)) {
			*out = namespace_val(whole[i].ns);
			return true;
		}
	for (u32 i = 0; i < ARRAY_LEN(last); i++)
		if (!strcmp(last[i].target, last_part(target))) {
			*out = namespace_val(last[i].ns);
			return true;
		}
	return !strncmp(target, "triton.", 7) && replaced_namespace(target, out);
}

bool is_own_module(const char *dotted)
{
	struct val v;
	return known_namespace(dotted, &v) || !strncmp(dotted, "triton.", 7);
}

static bool name_of_triton(struct eval *e, const char *target, struct val *out)
{
	const char *name = last_part(target);
	if (name == target || strncmp(target, "triton.", 7))
		return false;
	struct val ns;
	const char *base = arena_str(e->arena, target, (size_t)(name - 1 - target));
	if (!known_namespace(base, &ns))
		ns = namespace_val(strncmp(base, "triton.language.extra", 21) ? NS_TL : NS_LIBDEVICE);
	*out = namespace_lookup(e, ns.namespace_, intern_str(e->ctx->names, name));
	return out->kind != V_ERROR;
}

static const struct module *file_module(struct eval *e, const struct module *from, const char *dotted)
{
	return e->imports.find && *dotted ? e->imports.find(e->imports.arg, from, dotted) : NULL;
}

/* The module name before the last dot; for "..f" it is "..". */
static const char *base_of(struct eval *e, const char *target)
{
	const char *name = last_part(target);
	size_t n = (size_t)(name - target);
	return arena_str(e->arena, target, n && strspn(target, ".") < n ? n - 1 : n);
}

bool import_value(struct eval *e, const struct module *m, const char *target, bool whole, struct loc at,
		  struct val *out)
{
	if (known_namespace(target, out) || (!whole && name_of_triton(e, target, out)))
		return true;
	if (e->host && host_path(e, target, out)) /* also if there is a file */
		return true;
	const struct module *base = whole ? NULL : file_module(e, m, base_of(e, target)), *all;
	const char *name = intern_str(e->ctx->names, last_part(target));
	struct diags_point before = diags_point(e->diags);
	if (base && module_name(e, base, name, at, out)) {
		if ((out->kind == V_ERROR || out->kind == V_HOST) && replaced_import(e, target, out))
			diags_rewind(e->diags, before);
		return true;
	}
	if ((all = file_module(e, m, target))) {
		*out = (struct val){.kind = V_MODULE, .module = all};
		return true;
	}
	if (replaced_import(e, target, out))
		return true;
	*out = host_val(target);
	return false;
}

bool is_importable(struct eval *e, const struct module *m, const struct tried *t)
{
	static const char *const usual[] = {"torch", "triton", "numpy", "os", "sys", "math", "typing", "functools",
					    "itertools", "packaging", "enum", "dataclasses", "collections", "warnings",
					    "logging", "contextlib", "inspect", "importlib", "json", "re", "abc"};
	struct val v;
	size_t first = strcspn(t->target, ".");
	if (import_value(e, m, t->target, t->whole, (struct loc){0}, &v))
		return true;
	for (u32 i = 0; i < ARRAY_LEN(usual); i++)
		if (strlen(usual[i]) == first && !memcmp(usual[i], t->target, first))
			return strncmp(t->target, "triton.language", 15) != 0;
	return false;
}

/* --- choice of a definition ---------------------------------------------------------------------------------- */

/* Evaluates x in the scope of m, outside any kernel. */
static struct val eval_host(struct eval *e, const struct module *m, const char *name, struct loc at, u32 start,
			    u32 end)
{
	struct expr *x = parse_expression(e->arena, e->ctx->names, e->diags, m->file, start, end);
	struct frame *saved = e->frame;
	struct func nowhere = {.kind = FUNC_CONSTEXPR, .name = name, .module = (struct module *)m};
	struct frame f = {.func = &nowhere, .depth = saved->depth + 1, .margin = at};
	if (!x || f.depth > MAX_CALL_DEPTH)
		return val_error();
	e->frame = &f;
	e->host++;
	struct val v = eval_expr(e, x);
	e->host--;
	e->frame = saved;
	return v;
}

/* The truth of the condition of b: 1 true, 0 false, -1 unknown. Prints no messages. */
static int decide(struct eval *e, const struct module *m, const struct branch *b)
{
	struct diags_point before = diags_point(e->diags);
	struct value *unused;
	struct val v = eval_host(e, m, "a condition", b->loc, b->start, b->end);
	int r = v.kind == V_ERROR ? -1 : truth(e, v, b->loc, &unused);
	if (e->diags->nerrors != before.errors)
		diags_rewind(e->diags, before);
	return MAX(r, -1);
}

/* Whether b, a part of a compound statement such as an else branch, runs if the statement runs: 1, 0, or -1 if
 * unknown. */
static int part_runs(struct eval *e, const struct module *m, const struct branch *b)
{
	int all = b->kind == BRANCH_IF ? decide(e, m, b) : 1;
	switch (b->kind) {
	case BRANCH_IF:
	case BRANCH_ELSE:
		for (const struct branch *p = b->before; p && all; p = p->before) {
			if (p->kind == BRANCH_TRY)
				return part_runs(e, m, p);
			int earlier = p->kind == BRANCH_IF ? decide(e, m, p) : 0;
			all = earlier > 0 ? 0 : earlier < 0 ? -1 : all;
		}
		return all;
	case BRANCH_TRY:
		for (const struct tried *t = b->tried; t; t = t->next)
			if (!is_importable(e, m, t))
				return 0;
		return 1;
	case BRANCH_EXCEPT:
		while (b && b->kind != BRANCH_TRY)
			b = b->before;
		return b ? !part_runs(e, m, b) : -1; /* without a `try`: not valid Python */
	case BRANCH_LOOP: return -1;
	case BRANCH_ALWAYS: return 1;
	}
	tl_unreachable("branch kind");
}

static int branch_runs(struct eval *e, const struct module *m, const struct branch *b)
{
	int all = 1;
	for (; b && all; b = b->outer) {
		i64 known = (i64)(intptr_t)map_get(&e->branches_run, b); /* 1: unknown, 2: does not run, 3: runs */
		if (!known) {
			map_put(&e->branches_run, b, (void *)1); /* unknown while being evaluated */
			known = part_runs(e, m, b) + 2;
			map_put(&e->branches_run, b, (void *)(intptr_t)known);
		}
		all = known == 2 ? 0 : known == 1 ? -1 : all;
	}
	return all;
}

/* True if kernels can use the value that d defines. */
static bool is_for_kernels(const struct definition *d)
{
	return d->kind != DEF_HOST && d->kind != DEF_CHANGED;
}

/* The last definition before the module statement under evaluation. In functions, and if there is no earlier one, the
 * last definition of all. */
static const struct definition *last_before(const struct eval *e, const struct module *m, const struct definition *all)
{
	const struct frame *f = e->frame;
	struct loc at = f->margin;
	if (f->func->module != m || !at.file)
		return all;
	for (const struct definition *d = all; d; d = d->before)
		if (d->loc.line < at.line || (d->loc.line == at.line && d->loc.col < at.col))
			return d;
	return all;
}

/* The definition of the name that applies: the last jit function that runs, or if there is none, the last other
 * definition that runs. A jit function that may run also applies if all other definitions are plain Python, which
 * a kernel cannot use. *unknown is the result if it may run or not and another definition applies if it does not,
 * otherwise NULL. */
static const struct definition *choose(struct eval *e, const struct module *m, const char *name,
				       const struct definition **unknown)
{
	const struct definition *last = last_before(e, m, map_get(&m->definitions, name)), *yes = NULL, *perhaps = NULL;
	*unknown = NULL;
	u32 usable = 0;
	for (const struct definition *d = last; d; d = d->before) {
		int r = d->kind == DEF_JIT ? branch_runs(e, m, d->branch) : 0;
		if (r > 0)
			return d;
		perhaps = r < 0 ? d : perhaps;
		usable += is_for_kernels(d) && (d->kind != DEF_JIT || r < 0);
	}
	if (perhaps && usable == 1 && !e->host)
		return perhaps;
	perhaps = NULL;
	for (const struct definition *d = last; d && !yes; d = d->before) {
		int r = branch_runs(e, m, d->branch);
		if (r > 0)
			yes = d;
		else if (r < 0 && perhaps)
			*unknown = perhaps;
		else if (r < 0)
			perhaps = d;
	}
	if (perhaps && yes)
		*unknown = perhaps;
	return perhaps ? perhaps : yes;
}

static bool is_being_resolved(const struct eval *e, const struct definition *d)
{
	for (u32 i = 0; i < e->resolving.len; i++)
		if (e->resolving.at[i] == d)
			return true;
	return false;
}

/* True if v holds tiles or numbers that operations compute. */
static bool holds_tensors(const struct val *v)
{
	bool found = v->kind == V_TENSOR || (v->kind == V_METHOD && holds_tensors(v->self));
	for (u32 i = 0; (val_has_parts(v) || v->kind == V_DICT) && i < v->nitems && !found; i++)
		found = holds_tensors(&v->items[i]);
	return found;
}

static struct val eval_global(struct eval *e, const struct module *m, const struct definition *d, struct loc at)
{
	const struct val *known = map_get(&e->globals, d);
	if (known)
		return *known;
	if (is_being_resolved(e, d))
		return eval_error(e, E_GLOBAL_CYCLE, at, d->name);
	vec_push(e->arena, &e->resolving, d);
	struct val v = eval_host(e, m, d->name, d->loc, d->start, d->end);
	e->resolving.len--;
	if (!count_parts(e, &v, at))
		v = val_error();
	if (v.kind == V_ERROR)
		diag(e->diags, N_GLOBAL_USED, user_loc(e, at), d->name);
	else if (!holds_tensors(&v)) /* a tile is computed again at each use */
		map_put(&e->globals, d, arena_dup(e->arena, &v, sizeof v));
	return v;
}

static struct val definition_value(struct eval *e, const struct module *m, const struct definition *d, struct loc at)
{
	struct val v;
	switch (d->kind) {
	case DEF_JIT: return (struct val){.kind = V_FUNC, .func = d->func};
	case DEF_VALUE: v = eval_global(e, m, d, at); break;
	case DEF_HOST: return e->host ? host_function(e, m, d) : eval_error(e, E_HOST_FUNCTION, at, d->name);
	case DEF_CLASS: return class_value(e, m, d);
	case DEF_CHANGED:
		v = eval_error(e, E_GLOBAL_CHANGED, at, d->name);
		diag(e->diags, N_GLOBAL_CHANGED, d->loc, d->name);
		return v;
	default:
		vec_push(e->arena, &e->resolving, d);
		import_value(e, m, d->target, d->kind == DEF_IMPORT, at, &v);
		e->resolving.len--;
	}
	if (v.kind != V_HOST || e->host)
		return v;
	const char *attribute = e->attribute;
	v = eval_error(e, E_HOST_IMPORT, at, d->name, v.text);
	if (!advise_host(e, d->name, attribute))
		diag_hint(e->diags, "kernels can use triton, triton.language, libdevice, math and jit functions of "
				    "files that tlc finds");
	return v;
}

bool module_name(struct eval *e, const struct module *m, const char *name, struct loc at, struct val *out)
{
	const struct definition *unknown, *d = choose(e, m, name, &unknown);
	if (unknown) {
		*out = eval_error(e, E_GLOBAL_BRANCH, at, name);
		diag(e->diags, N_GLOBAL_BRANCH, unknown->branch->loc, name);
		return true;
	}
	/* in a package that imports its own module, `from pkg import module` in pkg/__init__.py, the name is that
	 * module */
	if (d && d->target && is_being_resolved(e, d))
		return false;
	if (d) {
		*out = definition_value(e, m, d, at);
		return true;
	}
	for (d = map_get(&m->definitions, intern_str(e->ctx->names, "*")); d; d = d->before) {
		bool of_triton = !strncmp(d->target, "triton.", 7);
		const struct module *all = of_triton ? NULL : file_module(e, m, d->target);
		struct val ns;
		if (all && all != m && module_name(e, all, name, at, out))
			return true;
		if (known_namespace(d->target, &ns) || replaced_namespace(d->target, &ns)) {
			*out = namespace_lookup(e, ns.namespace_, name);
			if (out->kind != V_ERROR)
				return true;
		}
	}
	return false;
}

struct val module_attribute(struct eval *e, struct val v, const char *name, struct loc at)
{
	struct val r;
	if (module_name(e, v.module, name, at, &r))
		return r;
	const struct module *inner = file_module(e, v.module, arena_printf(e->arena, ".%s", name));
	if (inner)
		return (struct val){.kind = V_MODULE, .module = inner};
	const struct map *all = &v.module->definitions;
	const char **near = arena_array(e->arena, const char *, all->len);
	u32 n = 0;
	for (u32 i = 0; i < all->cap; i++)
		if (all->keys[i])
			near[n++] = all->keys[i];
	const char *like = did_you_mean(name, near, n);
	r = eval_error(e, E_UNKNOWN_BUILTIN, at, e->diags->sources.at[v.module->file]->name, name);
	if (like)
		diag_hint(e->diags, "did you mean '%s'?", like);
	return r;
}

/* --- lookup of a name ---------------------------------------------------------------------------------------- */

static struct val unknown_name(struct eval *e, const char *name, struct loc at)
{
	const char *near[256];
	u32 n = 0;
	for (u32 i = 0; i < e->frame->vars.len && n < 150; i++)
		near[n++] = e->frame->vars.at[i].name;
	for (u32 i = 0; i < e->module->funcs.len && n < 256; i++)
		near[n++] = e->module->funcs.at[i]->name;
	const char *like = did_you_mean(name, near, n);
	const char *attribute = e->attribute;
	struct val v = eval_error(e, E_UNKNOWN_NAME, at, name);
	if (advise_name(e, name) || advise_host(e, name, attribute))
		return v;
	if (like)
		diag_hint(e->diags, "did you mean '%s'?", like);
	else
		diag_hint(
			e->diags,
			"kernels see their parameters, their variables, other jit functions and tl.constexpr globals");
	return v;
}

struct val eval_name(struct eval *e, const char *name, struct loc at)
{
	const struct binding *b = find_var(e->frame, name);
	if (b && b->val.kind == V_UNSET)
		return eval_error(e, E_UNSET, at, name, b->val.reason);
	if (b)
		return part_of(b->val); /* a list or dict that is read becomes LIST_SHARED: see mutation.c */
	struct val found;
	if (module_name(e, e->frame->func->module, name, at, &found))
		return found;
	static const struct {
		const char *name;
		enum namespace_ namespace_;
	} known[] = {
		{"tl", NS_TL}, {"triton", NS_TRITON}, {"libdevice", NS_LIBDEVICE}, {"math", NS_PYMATH}};
	for (u32 i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(known[i].name, name))
			return namespace_val(known[i].namespace_);
	const struct func *f = e->frame->func->module->is_library ? library_function(e, name) : NULL;
	struct val v = f ? (struct val){.kind = V_FUNC, .func = f} : namespace_lookup(e, NS_PYTHON, name);
	if (v.kind == V_ERROR && e->frame->func->host)
		return host_val(name); /* a Python built-in, or defined by code that is not evaluated */
	return v.kind == V_ERROR ? unknown_name(e, name, at) : v;
}

/* Makes images of compilations. */
#include <stdlib.h>

#include "runtime/image/image.h"
#include "runtime/launch/specialize.h"

/* "x=*fp32:16, n=i32, BLOCK=1024". */
static const char *signature_of(struct arena *a, const struct func *f, const struct arg_spec *args)
{
	struct strbuf out = sb_empty(a);
	for (u32 i = 0; args && i < f->nparams; i++) {
		if (args[i].shape == ARG_LEAF && !args[i].type && !args[i].constant)
			continue; /* as in the source */
		sb_printf(&out, "%s%s=", out.len ? ", " : "", f->params[i].name);
		print_arg_spec(&out, &args[i]);
	}
	return out.at;
}

static void make_slots(struct image *im, const struct kernel *k)
{
	im->nslots = k->nparams - (k->cuda.persistent ? GRID_PARAMS : 0);
	im->slots = arena_array(&im->arena, struct slot, im->nslots + 1);
	for (u32 i = 0; i < im->nslots; i++) {
		const struct kernel_param *p = &k->params[i];
		const struct type *t = p->value->type;
		i32 pointers = 0;
		for (; t->kind == TY_PTR; t = t->elem)
			pointers++;
		im->slots[i] = (struct slot){.name = arena_str(&im->arena, p->name, strlen(p->name)),
					     .leaf = p->leaf,
					     .pointers = pointers,
					     .dtype = t->dtype,
					     .divisibility = p->divisibility,
					     .reads = p->reads,
					     .writes = p->writes,
					     .always = p->always};
	}
}

static int by_path(const void *x, const void *y)
{
	return strcmp(((const struct image_import *)x)->path, ((const struct image_import *)y)->path);
}

static void take_imports(struct image *im, const struct unit *u)
{
	im->imports = arena_array(&im->arena, struct image_import, u->imported.len + 1);
	for (u32 i = 0; i < u->imported.cap; i++) {
		const char *path = u->imported.keys[i];
		if (!path)
			continue;
		const struct source *s = u->diags.sources.at[((const struct module *)u->imported.vals[i])->file];
		im->imports[im->nimports++] = (struct image_import){arena_str(&im->arena, path, strlen(path)),
								    hash_bytes(s->text, s->len, 0)};
	}
	qsort(im->imports, im->nimports, sizeof *im->imports, by_path);
}

void image_make(struct image *im, const struct unit *u, const struct func *f, const struct arg_spec *args,
		const struct codegen_options *o, const struct compiled *c)
{
	const struct kernel *k = c->kernel;
	const struct source *source = u->diags.sources.at[u->module ? u->module->file : k->loc.file];
	*im = (struct image){.source_hash = hash_bytes(source->text, source->len, 0),
			     .codegen = codegen_options_complete(*o),
			     .num_warps = c->num_warps,
			     .shared_bytes = c->shared_bytes,
			     .scratch_bytes = c->scratch_bytes,
			     .waits = c->waits,
			     .cluster = MAX(c->cluster, 1),
			     .pairs = k->cuda.pairs,
			     .persistent = k->cuda.persistent,
			     .narrow_offsets = k->narrow_offsets,
			     .grids = k->cuda.grids ? k->cuda.grids : ALL_GRIDS,
			     .nmaps = k->cuda.nmaps,
			     .napart = k->apart.len,
			     .nlimits = k->limits.n};
	im->source = arena_str(&im->arena, source->name, strlen(source->name));
	im->name = arena_str(&im->arena, k->name, strlen(k->name));
	im->signature = signature_of(&im->arena, f, args);
	im->target = c->code ? target_name(&im->arena, &c->target) : "";
	im->code_bytes = c->code ? (u32)c->code_len : 0;
	im->code = arena_str(&im->arena, c->code ? c->code : "", im->code_bytes);
	take_imports(im, u);
	make_slots(im, k);
	im->ones = arena_array(&im->arena, u32, k->ones.len + 1);
	for (u32 i = 0; i < k->ones.len; i++)
		if (k->ones.at[i] < MAX_KERNEL_PARAMS)
			im->ones[im->nones++] = k->ones.at[i];
	im->maps = arena_dup(&im->arena, k->cuda.maps, sizeof k->cuda.maps);
	im->apart = arena_dup(&im->arena, k->apart.at, im->napart * sizeof *im->apart);
	im->limits = arena_dup(&im->arena, k->limits.at, sizeof k->limits.at);
}

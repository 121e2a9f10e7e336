/* Variants: a kernel compiled for a combination of types, constants and specialisation. They live as long as their
 * module.
 *
 * The variant launched last is found by comparing keys, without a lock. Others are found in a hash table under the
 * kernel's lock. A new variant is added to the table first, and then compiled without the lock. Meanwhile other threads
 * can launch existing variants, and threads that need the same variant wait for this compilation.
 *
 * Compilations share the parsed source, and have separate memory for all else. So they can run at the same time, and
 * their memory is freed separately. */
#include <stdlib.h>

#include "runtime/launch/argument_guard.h"
#include "runtime/cache/cache.h"
#include "runtime/launch/composite.h"
#include "runtime/launch/decorated.h"
#include "runtime/api/objects.h"
#include "runtime/launch/manifest.h"
#include "runtime/device/nvtx.h"
#include "runtime/launch/divisibility.h"

/* The first word of a variant's key has the options: see key_of_options. GRID is the mask of codegen.grid. GENERAL is
 * left out of the keys of the disk cache, because it does not change the code. */
enum { GRID_SHIFT = 62 };
static const u64 GENERAL = 1 << 23, GRID = (u64)3 << GRID_SHIFT;
_Static_assert(GRID_KINDS <= 4, "GRID has two bits");

static u64 key_of_options(const struct options *o)
{
	const struct codegen_options *c = &o->codegen;
	return (u64)c->num_warps | (u64)c->num_stages << 8 | (u64)c->debug << 16 | (u64)c->no_tma << 17 |
	       (u64)c->wraps << 18 | (u64)c->alias << 19 | (u64)c->sizes << 21 | (o->general ? GENERAL : 0) |
	       (u64)c->maxnreg << 24 | (u64)c->group_pids << 32 | (u64)(c->fp_fusion == FP_FUSION_OFF) << 53 |
	       (u64)(c->ftz == FTZ_OFF) << 54 | (u64)c->grid << GRID_SHIFT;
}

/* --- compiling ----------------------------------------------------------------------------------------------- */

static void restore_locale(void *locale)
{
	struct c_locale *l = locale;
	if (!l->c)
		return;
	uselocale(l->before);
	freelocale(l->c);
}

void enter_c_locale(struct c_locale *l)
{
	l->c = newlocale(LC_ALL_MASK, "C", NULL);
	l->before = l->c ? uselocale(l->c) : NULL;
	cleanup_push(&l->cleanup, restore_locale, l);
}

void leave_c_locale(struct c_locale *l)
{
	cleanup_run(&l->cleanup);
}

struct unit *unit_new(void)
{
	return tl_calloc(sizeof(struct unit));
}

void unit_delete(void *unit)
{
	unit_free(unit);
	free(unit);
}

const struct func *unit_function(const struct unit *u, const char *name)
{
	return u->module ? map_get(&u->module->by_name, intern_find(&u->names, name)) : NULL;
}

bool open_unit(struct unit *u, const struct unit_source *sources, size_t n)
{
	struct c_locale c;
	enter_c_locale(&c);
	bool good = unit_open_sources(u, sources, n);
	leave_c_locale(&c);
	return good;
}

/* True if the module defines the name, or may import it; the evaluator finds out what it imports. */
static bool has_name(struct unit *u, const char *name)
{
	if (!u->module)
		return false;
	const struct map *all = &u->module->definitions;
	return map_get(&u->module->by_name, intern_str(&u->names, name)) ||
	       map_get(all, intern_str(&u->names, name)) || map_get(all, intern_str(&u->names, "*"));
}

/* Functions and other global values are passed by name: the module must have them, and no parameter may shadow them. */
static tl_status check_functions(const tl_kernel *k, struct unit *u, const tl_arg *args, size_t nargs)
{
	tl_arg *leaves = arena_array(&u->arena, tl_arg, MAX_KERNEL_PARAMS);
	u32 *owner = arena_array(&u->arena, u32, MAX_KERNEL_PARAMS), n;
	if (!flatten_arguments(&k->params, args, nargs, leaves, owner, &n))
		return failed(TL_ERR_ARGUMENT, "%s: the arguments have more than %d parts", k->name, MAX_KERNEL_PARAMS);
	for (u32 l = 0; l < n; l++) {
		u32 i = owner[l];
		if (leaves[l].kind != TL_ARG_FUNC)
			continue;
		if (!has_name(u, leaves[l].s))
			return failed(TL_ERR_ARGUMENT, "%s: argument %u, '%s': %s has no function '%.200s'", k->name,
				      i + 1, k->params.at[i].name, k->module->name, leaves[l].s);
		for (u32 p = 0; p < i; p++)
			if (!strcmp(k->params.at[p].name, leaves[l].s))
				return failed(TL_ERR_ARGUMENT,
					      "%s: argument %u, '%s': the function '%s' has the name of a parameter",
					      k->name, i + 1, k->params.at[i].name, leaves[l].s);
	}
	return TL_OK;
}

static void end_range(void *tool)
{
	((const struct nvtx *)tool)->pop();
}

/* Compiles, in a range of the profiler if there is one. */
static bool build_in_range(const tl_kernel *k, struct unit *u, const struct build *b, struct compiled *out)
{
	struct device *dev = k->module->ctx->dev;
	const struct nvtx *tool = nvtx_tool();
	if (!tool)
		return device_build(dev, b, out);
	struct cleanup c;
	tool->push(arena_printf(&u->arena, "compile %s", k->name));
	cleanup_push(&c, end_range, (void *)(uintptr_t)tool);
	bool good = device_build(dev, b, out);
	cleanup_run(&c);
	return good;
}

/* Compiles into `u`, which the caller frees. */
static tl_status compile_in(const tl_kernel *k, const struct params *ps, struct unit *u, const struct options *o,
			    const tl_arg *args, size_t nargs, const char *stage, struct compiled *out)
{
	const tl_module *m = k->module;
	if (!unit_again(u, &m->unit))
		return failed_compile(&u->diags);
	tl_status s = check_functions(k, u, args, nargs);
	if (s)
		return s;
	struct build b = {.unit = u,
			  .codegen = o->codegen,
			  .stage = stage};
	b.remarks = !stage && wants_remarks(m->ctx);
	b.func = unit_function(u, k->name);
	b.args = specialize_text(&u->arena, ps, args, nargs);
	*out = (struct compiled){.num_warps = o->codegen.num_warps};
	return build_in_range(k, u, &b, out) ? TL_OK : failed_compile(&u->diags);
}

static void take_image(const tl_kernel *k, const struct options *o, struct unit *u, const tl_arg *args, size_t nargs,
		       const struct compiled *c, struct variant *v)
{
	const struct func *f = unit_function(u, k->name);
	image_make(&v->image, u, f, f ? specialize_text(&u->arena, v->params, args, nargs) : NULL, &o->codegen,
		   c);
}

static struct source_list sources_of(const tl_module *m)
{
	return (struct source_list){m->unit.diags.sources.at, m->unit.diags.sources.len}; /* empty for an image */
}

static void add_piece(struct strbuf *to, const void *data, size_t len)
{
	u64 size = len; /* the lengths separate the pieces */
	sb_add(to, (const char *)&size, sizeof size);
	sb_add(to, data, len);
}

static void add_text(struct strbuf *to, const char *text)
{
	add_piece(to, text ? text : "", text ? strlen(text) : 0);
}

static void add_source(struct strbuf *to, const struct unit_source *s)
{
	add_text(to, s->name);
	add_text(to, s->file);
	add_piece(to, &s->first_line, sizeof s->first_line);
	add_piece(to, &s->indent, sizeof s->indent);
	add_piece(to, s->text, s->len);
}

/* The variant's key for other contexts and processes: everything that determines the code, except imported files.
 * False: the variant is for this context only. */
static bool image_key(const tl_kernel *k, const struct variant *v, struct cache_key *out, bool *on_disk)
{
	struct device *dev = k->module->ctx->dev;
	if (!dev->ops->target || wants_remarks(k->module->ctx))
		return false;
	struct arena a = {0};
	struct cleanup c;
	cleanup_arena(&c, &a);
	struct strbuf from = {.arena = &a};
	const struct target t = dev->ops->target(dev);
	const int limits[] = {t.shared_bytes, t.registers, t.thread_registers, t.multiprocessors};
	add_piece(&from, limits, sizeof limits);
	add_text(&from, target_name(&a, &t));
	for (u32 i = 0; i < k->module->nsources; i++)
		add_source(&from, &k->module->sources[i]);
	add_text(&from, k->name);
	add_text(&from, getenv("PYTHONPATH"));
	add_piece(&from, &(u64){v->keyed.words[0] & ~GENERAL}, sizeof(u64));
	add_piece(&from, v->keyed.words + 1, (v->keyed.len - 1) * sizeof(u64));
	*on_disk = cache_make_key(&from, out);
	cleanup_run(&c);
	return true;
}

static tl_status load_image(const tl_kernel *k, struct unit *u, const struct compiled *c, struct variant *v)
{
	struct device *dev = k->module->ctx->dev;
	const struct device_load l = {&v->image, sources_of(k->module), u, c};
	return loaded_open(dev, &l, &v->loaded);
}

/* --- manifests --------------------------------------------------------------------------------------------------- */

static const char *set_variable(const char *name)
{
	const char *value = getenv(name);
	return value && *value && strcmp(value, "0") != 0 ? value : NULL;
}

struct used {
	const tl_kernel *k;
	const struct params *params;
	const struct options *o;
	const tl_arg *args;
	size_t nargs;
	const char *manifest; /* the file to add it to; NULL: it becomes an error message */
};

static void describe_use(void *use)
{
	const struct used *n = use;
	struct arena a = {0};
	struct strbuf line = {.arena = &a};
	struct manifest_entry e;
	struct c_locale c;
	enter_c_locale(&c);
	manifest_describe(&a, n->k, n->params, n->o, n->args, n->nargs, &e);
	if (!n->manifest)
		e.text = NULL, e.nsources = 0; /* too long for a message */
	manifest_print(&line, &e);
	leave_c_locale(&c);
	const char *why = n->manifest ? manifest_add(&a, n->manifest, line.at, line.len) : NULL;
	if (why)
		report_distrust(n->k->module, &n->k->module->ctx->said_manifest, why);
	if (!n->manifest)
		failed(TL_ERR_NOT_BUILT,
		       "%s would have to be compiled, which TL_NO_JIT forbids; the missing variant is\n%.*s\n      = "
		       "hint: a run with TL_MANIFEST=file and without TL_NO_JIT writes the file from which `tlc build "
		       "file` compiles it into the disk cache",
		       n->k->name, (int)line.len - 1, line.at);
	arena_free(&a);
}

/* Failure to write is ignored, and the program continues. */
static void note_use(const tl_kernel *k, const struct params *ps, const struct options *o, const tl_arg *args,
		     size_t nargs)
{
	const char *manifest = secure_getenv("TL_MANIFEST") ? set_variable("TL_MANIFEST") : NULL;
	const struct device_ops *ops = k->module->ctx->dev->ops;
	char why[100];
	struct recovery r = {.text = why, .size = sizeof why};
	if (manifest && ops->target && !ops->offline)
		protect(&r, describe_use, &(struct used){k, ps, o, args, nargs, manifest});
}

static bool may_compile(const tl_kernel *k)
{
	const struct device_ops *ops = k->module->ctx->dev->ops;
	return !ops->target || ops->offline || !set_variable("TL_NO_JIT");
}

/* Compiles, and loads the result. */
static tl_status compile_variant(const tl_kernel *k, const struct options *o, const tl_arg *args, size_t nargs,
				 struct variant *v)
{
	if (!may_compile(k)) {
		describe_use(&(struct used){k, v->params, o, args, nargs, NULL});
		return TL_ERR_NOT_BUILT;
	}
	struct unit *u = unit_new();
	struct c_locale c;
	struct cleanup unit;
	cleanup_push(&unit, unit_delete, u);
	enter_c_locale(&c);
	struct compiled out = {0};
	tl_status s = compile_in(k, v->params, u, o, args, nargs, NULL, &out);
	leave_c_locale(&c);
	report(k->module, u);
	if (s == TL_ERR_COMPILE) /* the callback may have called the library */
		s = failed_compile(&u->diags);
	v->keeps = (!u->diags.messages.len || k->module->ctx->dev->ops->offline) && !u->ir.reads_environment;
	if (!s) {
		take_image(k, o, u, args, nargs, &out, v);
		s = load_image(k, u, &out, v); /* last: nothing after it fails */
	}
	cleanup_drop(&unit);
	if (!s && k->module->ctx->dev->ops->keeps_unit)
		v->unit = u;
	else
		unit_delete(u);
	return s;
}

struct entry {
	struct cache_key key;
	struct image *image;
};

static void write_entry(void *entry)
{
	struct entry *e = entry;
	cache_write(e->key, e->image);
}

/* Failure to write is ignored, because the kernel is loaded. */
static void keep_on_disk(struct cache_key key, struct image *im)
{
	char why[100];
	struct recovery r = {.text = why, .size = sizeof why};
	protect(&r, write_entry, &(struct entry){key, im});
}

/* The module's image is its only variant, and its leaves are its parameters. */
static tl_status variant_of_image(const tl_kernel *k, struct variant *v)
{
	const char *why = image_read(&v->image, k->module->text, k->module->len);
	tl_assert(!why); /* module_new has read it */
	for (u32 i = 0; i < v->image.nslots; i++)
		v->image.slots[i].leaf = i;
	return load_image(k, NULL, NULL, v);
}

static void give_claim(void *claim)
{
	cache_give(claim);
}

/* True if the image's parameters match arguments of this call. */
static bool takes_arguments(const struct params *ps, const struct image *im, const tl_arg *args, size_t nargs)
{
	tl_arg leaves[MAX_KERNEL_PARAMS];
	u32 n;
	bool good = flatten_arguments(ps, args, nargs, leaves, NULL, &n);
	for (u32 i = 0; i < im->nslots && good; i++) {
		const struct slot *s = &im->slots[i];
		good = s->leaf < n && (s->pointers > 0) == (leaves[s->leaf].kind == TL_ARG_PTR);
	}
	return good;
}

/* Loads v->image, an entry of the disk cache, into the device. False: the image cannot run with these arguments or on
 * this device, and a warning says so. */
static bool load_entry(const tl_kernel *k, const tl_arg *args, size_t nargs, struct variant *v)
{
	struct image *im = &v->image;
	bool good = !strcmp(im->name, k->name) && takes_arguments(v->params, im, args, nargs);
	if (good && !load_image(k, NULL, NULL, v))
		return true;
	report_warning(k->module, arena_printf(&im->arena, "the entry of %s in the disk cache cannot be run", k->name),
		       "it is compiled again");
	image_free(im);
	return false;
}

/* Finds an entry that another process has compiled, or is compiling. If that process does not keep the result, all
 * processes that waited for it compile at the same time. */
static bool find_entry(const tl_kernel *k, struct cache_key key, struct image *im, struct cache_claim *claim)
{
	struct arena a = {0};
	struct cleanup c;
	struct strbuf said = {.arena = &a};
	cleanup_arena(&c, &a);
	bool found = cache_read(key, im, &said);
	if (!found) {
		bool mine = cache_take(key, claim);
		found = cache_read(key, im, NULL);
		if (!mine || found)
			cache_give(claim);
	}
	if (!found && said.len)
		report_warning(k->module, said.at, "the kernel is compiled again");
	cleanup_run(&c);
	return found;
}

/* Takes the image from disk, or compiles it. Kernels with warnings are compiled by each context, so that each context
 * reports them. Kernels that read the environment are compiled by each context too. */
static tl_status build_image(const tl_kernel *k, const struct options *o, const tl_arg *args, size_t nargs,
			     struct cache_key key, bool on_disk, struct variant *v)
{
	struct cache_claim claim = {.folder = -1, .fd = -1};
	struct cleanup c;
	v->keeps = true;
	cleanup_push(&c, give_claim, &claim);
	on_disk = on_disk && cache_trusted(k->module);
	bool found = on_disk && find_entry(k, key, &v->image, &claim) && load_entry(k, args, nargs, v);
	tl_status s = found ? TL_OK : compile_variant(k, o, args, nargs, v);
	if (!s && on_disk && v->keeps && !found)
		keep_on_disk(key, &v->image);
	cleanup_run(&c);
	return s;
}

struct claimed {
	struct store *store;
	struct cache_key key;
};

static void give_up(void *arg)
{
	const struct claimed *c = arg;
	store_settle(c->store, c->key, NULL);
}

/* Takes the image from another context with the same store, or compiles it for all of them. */
static tl_status build_shared(const tl_kernel *k, const struct options *o, const tl_arg *args, size_t nargs,
			      struct cache_key key, bool on_disk, struct variant *v)
{
	struct claimed claimed = {k->module->ctx->store, key};
	struct cleanup c;
	if (store_take(claimed.store, key, &v->image)) {
		v->keeps = true;
		return load_image(k, NULL, NULL, v);
	}
	cleanup_push(&c, give_up, &claimed);
	tl_status s = build_image(k, o, args, nargs, key, on_disk, v);
	cleanup_drop(&c);
	store_settle(claimed.store, key, !s && v->keeps ? &v->image : NULL);
	return s;
}

static tl_status variant_build(const tl_kernel *k, const struct options *o, const tl_arg *args, size_t nargs,
			       struct variant *v)
{
	struct cache_key key;
	bool on_disk;
	if (is_captured(k->module->ctx->dev, o->stream))
		return failed(TL_ERR_ARGUMENT,
			      "%s: the stream is being captured into a CUDA graph, and the variant for these arguments "
			      "is not loaded: nothing can be compiled or loaded during the capture\n      = hint: call "
			      "tl_prepare with these arguments before the capture begins",
			      k->name);
	image_free(&v->image); /* of an earlier attempt */
	if (k->module->compiled)
		return variant_of_image(k, v);
	return image_key(k, v, &key, &on_disk) ? build_shared(k, o, args, nargs, key, on_disk, v)
					       : compile_variant(k, o, args, nargs, v);
}

/* Adds the driver's resource numbers, for remarks that end with them. */
static tl_status add_resources(const tl_kernel *k, const struct variant *v, struct unit *u, const struct compiled *c)
{
	tl_resources r;
	tl_status s = variant_resources(k, v, &r);
	if (!s && r.registers)
		remark_resources(u, c, r.registers, (i64)r.local_bytes, r.resident);
	return s;
}

static tl_status dump_image(const struct image *im, const char *stage, char **text)
{
	if (strcmp(stage, "ptx") != 0 || strncmp(im->target, "cuda", 4))
		return failed(TL_ERR_ARGUMENT, "%s is compiled already: its only stage is \"ptx\"", im->name);
	*text = strdup(im->code);
	return *text ? TL_OK : failed(TL_ERR_MEMORY, "out of host memory");
}

/* A line for each pointer among the kernel's parameters: "x: read", "y: read written", "z:" if it is not used. */
static const char *list_accesses(struct unit *u, const struct kernel *k)
{
	struct strbuf out = {.arena = &u->arena};
	sb_puts(&out, "");
	for (u32 i = 0; i < k->nparams; i++) {
		const struct kernel_param *p = &k->params[i];
		if (p->value->type->kind == TY_PTR)
			sb_printf(&out, "%s:%s%s\n", p->name, p->reads ? " read" : "", p->writes ? " written" : "");
	}
	return out.at;
}

tl_status variant_dump(tl_kernel *k, const struct options *o, const struct variant *v, const tl_arg *args, size_t nargs,
		       const char *stage, char **text)
{
	if (k->module->compiled)
		return dump_image(&k->module->image, stage, text);
	const struct params *ps = divisibility_params(k, o, args, nargs);
	tl_status s = check_arguments(ps, args, nargs, false);
	if (s)
		return s;
	struct unit *u = unit_new();
	struct c_locale c;
	struct cleanup unit;
	cleanup_push(&unit, unit_delete, u);
	enter_c_locale(&c);
	struct compiled out = {0};
	s = compile_in(k, ps, u, o, args, nargs, stage, &out);
	leave_c_locale(&c);
	if (!s && v && !strcmp(stage, "remarks"))
		s = add_resources(k, v, u, &out);
	if (!s) {
		const char *of = !strcmp(stage, "ttir")       ? out.ttir
				 : !strcmp(stage, "ttgir")    ? out.ttgir
				 : !strcmp(stage, "llir")     ? out.llir
				 : !strcmp(stage, "ptx")      ? out.code
				 : !strcmp(stage, "asm")      ? out.assembly
				 : !strcmp(stage, "metadata") ? out.metadata
				 : !strcmp(stage, "calls")    ? u->calls.at
				 : !strcmp(stage, "accesses") ? list_accesses(u, out.kernel)
				 : !strcmp(stage, "schedule") ? u->schedules.at
				 : u->diags.text.at           ? u->diags.text.at
							      : "";
		*text = of ? strdup(of) : NULL;
		if (!*text)
			s = of ? failed(TL_ERR_MEMORY, "out of host memory")
			       : failed(TL_ERR_COMPILE, "%s: no %s was generated", k->name, stage);
	}
	cleanup_run(&unit);
	return s;
}

bool variant_on_disk(const tl_kernel *k, const struct variant *v)
{
	struct cache_key key;
	struct image im;
	bool on_disk, there = image_key(k, v, &key, &on_disk) && on_disk && cache_read(key, &im, NULL);
	if (there)
		image_free(&im);
	return there;
}

/* --- the table ----------------------------------------------------------------------------------------------- */

/* A variant for other kinds of grids, if it exists and serves this kind too. */
static struct variant *serves_too(const tl_kernel *k, const struct key *key)
{
	u64 own = key->at[0] & GRID;
	enum grid_kind kind = own >> GRID_SHIFT;
	struct variant *found = NULL;
	for (enum grid_kind other = 0; other < GRID_KINDS && !found; other++) {
		key->at[0] = (key->at[0] & ~GRID) | (u64)other << GRID_SHIFT;
		struct variant *v = key_table_find(&k->variants, key);
		if (v && other != kind && v->state == VARIANT_READY && serves_grid(&v->image, kind))
			found = v;
	}
	key->at[0] = (key->at[0] & ~GRID) | own;
	return found;
}

/* The variant of `key`; the caller holds the lock. *mine: the caller must compile it. *is_new: it did not exist. An
 * error if the kernel is known not to compile. */
static tl_status claim(tl_kernel *k, const struct params *ps, const struct key *key, struct variant **out, bool *mine,
		       bool *is_new)
{
	struct variant *v = key_table_find(&k->variants, key);
	while (v && v->state == VARIANT_COMPILING)
		pthread_cond_wait(&k->ready, &k->lock);
	if (!v) {
		v = keyed_new(sizeof *v, key);
		v->kernel = k;
		v->params = ps;
		key_table_add(&k->variants, &v->keyed);
		v->same = serves_too(k, key);
		*mine = !v->same;
		*is_new = true;
		if (v->same)
			v->state = VARIANT_READY;
	} else if (v->state == VARIANT_FAILED && v->status == TL_ERR_COMPILE) {
		return error_again(v->error);
	} else if (v->state == VARIANT_FAILED) { /* for example, memory may be available now */
		v->state = VARIANT_COMPILING;
		*mine = true;
	}
	*out = v;
	return TL_OK;
}

static tl_status table_claim(tl_kernel *k, const struct params *ps, const struct key *key, struct variant **out,
			     bool *mine, bool *is_new)
{
	struct held h;
	*out = NULL;
	*mine = *is_new = false;
	lock_hold(&h, &k->lock);
	tl_status s = claim(k, ps, key, out, mine, is_new);
	lock_release(&h);
	return s;
}

static void table_settle(tl_kernel *k, struct variant *v, tl_status s)
{
	pthread_mutex_lock(&k->lock);
	v->state = s ? VARIANT_FAILED : VARIANT_READY;
	v->status = s;
	error_drop(v->error);
	v->error = s ? error_keep() : NULL;
	if (s && !v->error)
		v->status = TL_ERR_MEMORY; /* not final: it is compiled again */
	pthread_cond_broadcast(&k->ready);
	pthread_mutex_unlock(&k->lock);
}

struct build_call {
	tl_kernel *k;
	const struct options *o;
	const tl_arg *args;
	size_t nargs;
	struct variant *v;
	tl_status status;
};

static void run_build(void *call)
{
	struct build_call *c = call;
	c->status = variant_build(c->k, c->o, c->args, c->nargs, c->v);
}

tl_status variant_get(tl_kernel *k, const struct options *o, const tl_arg *args, size_t nargs, struct variant **out)
{
	struct key key;
	key_init(&key, key_of_options(o));
	const struct params *ps = divisibility_params(k, o, args, nargs);
	tl_status s = specialize(ps, args, nargs, &key);
	struct variant *v = s ? NULL : atomic_load_explicit(&k->last, memory_order_acquire);
	if (v && !keyed_by(&v->keyed, &key))
		v = NULL;
	if (!s && !v) {
		bool mine, is_new;
		s = table_claim(k, ps, &key, &v, &mine, &is_new);
		if (mine) { /* store a status in any case, because other threads wait */
			struct build_call c = {k, o, args, nargs, v, TL_OK};
			s = caught(run_build, &c);
			s = s ? s : c.status;
			table_settle(k, v, s);
		}
		if (!s && is_new && !k->module->compiled)
			note_use(k, ps, o, args, nargs);
		if (!s && !o->codegen.no_tma && !o->codegen.alias) /* the variant that a launch looks up first */
			atomic_store_explicit(&k->last, v, memory_order_release);
	}
	key_free(&key);
	*out = v && v->same ? v->same : v;
	return s;
}

tl_status variant_resources(const tl_kernel *k, const struct variant *v, tl_resources *out)
{
	struct device *dev = k->module->ctx->dev;
	*out = (tl_resources){0};
	return dev->ops->resources ? dev->ops->resources(dev, v->loaded.code, out) : TL_OK;
}

static void variant_free(void *variant)
{
	struct variant *v = variant;
	tl_context *ctx = v->kernel->module->ctx;
	loaded_close(ctx->dev, &v->loaded);
	if (v->unit)
		unit_delete(v->unit);
	store_forget(ctx->store, &v->image);
	image_free(&v->image);
	arg_guard_free(v->binding);
	error_drop(v->error);
	free(v);
}

void kernel_free(tl_kernel *k)
{
	while (k->prepared.next != &k->prepared)
		prepared_free((tl_prepared *)k->prepared.next);
	key_table_clear(&k->variants, variant_free);
	key_table_clear(&k->shapes, free);
	computed_free(k->computed);
	pthread_cond_destroy(&k->ready);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

/* Modules: a source file and its kernels. The file is parsed when it is loaded, so that syntax errors are reported
 * first. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "support/file.h"
#include "support/suggest.h"
#include "runtime/launch/decorated.h"
#include "runtime/api/api_guard.h"

static const size_t max_source = (size_t)1 << 28;

/* --- loading ------------------------------------------------------------------------------------------------- */

static void module_free(void *module)
{
	tl_module *m = module;
	while (m->kernels) {
		tl_kernel *k = m->kernels;
		m->kernels = k->next;
		kernel_free(k);
	}
	unit_free(&m->unit);
	image_free(&m->image);
	pthread_mutex_destroy(&m->lock);
	pthread_mutex_destroy(&m->said_lock);
	free(m->said);
	arena_free(&m->arena);
	free(m);
}

static void free_owned(struct link *m)
{
	module_free(m);
}

static void close_file(void *f)
{
	fclose(f);
}

/* Checks that the device can run the image's code. */
static tl_status check_target(const tl_module *m, const struct image *im)
{
	const struct device *dev = m->ctx->dev;
	struct target of;
	if (!dev->ops->target)
		return failed(TL_ERR_ARGUMENT, "%s: the %s device does not run kernel images; cuda, cpu and sim do",
			      m->name, dev->ops->name);
	if (!target_parse(im->target, &of))
		return failed(TL_ERR_ARGUMENT, "%s: the image has no code", m->name);
	const struct target here = dev->ops->target(dev);
	if (target_runs(&here, &of))
		return TL_OK;
	struct arena a = {0};
	tl_status s = failed(TL_ERR_ARGUMENT, "%s: the image is for %s, and the device is %s", m->name, im->target,
			     target_name(&a, &here));
	arena_free(&a);
	return s;
}

static tl_status open_image(tl_module *m)
{
	const char *why = image_read(&m->image, m->text, m->len);
	return why ? failed(TL_ERR_FILE, "cannot load '%s': %s", m->name, why) : check_target(m, &m->image);
}

static tl_status open_source(tl_module *m)
{
	bool good = open_unit(&m->unit, m->sources, m->nsources);
	report(m, &m->unit);
	return good ? TL_OK : failed_compile(&m->unit.diags);
}

u64 hash_sources(const struct unit_source *sources, size_t n)
{
	u64 hash = 0;
	for (const struct unit_source *s = sources; s < sources + n; s++) {
		/* where a text ends matters too: a function may have moved from one to the start of the next */
		hash = n > 1 ? hash_bytes(&s->len, sizeof s->len, hash) : hash;
		hash = hash_bytes(s->text, s->len, hash);
		hash = s->name ? hash_bytes(s->name, strlen(s->name), hash) : hash;
	}
	return hash;
}

/* Copies the sources. */
static void take_sources(tl_module *m, const tl_source *sources, size_t n)
{
	struct arena *a = &m->arena;
	m->sources = arena_array(a, struct unit_source, n);
	m->nsources = (u32)n;
	for (size_t i = 0; i < n; i++) {
		const tl_source *s = &sources[i];
		const char *file = s->file ? s->file : "<source>";
		m->sources[i] = (struct unit_source){.name = s->name ? arena_str(a, s->name, strlen(s->name)) : NULL,
						     .file = arena_str(a, file, strlen(file)),
						     .first_line = s->first_line,
						     .indent = s->indent,
						     .text = arena_str(a, s->text, s->len),
						     .len = s->len};
	}
	m->hash = hash_sources(m->sources, n);
	m->name = m->sources->file;
	m->text = m->sources->text;
	m->len = m->sources->len;
	m->compiled = image_is(m->text, m->len);
}

static tl_status open_texts(tl_module *m)
{
	if (m->nsources > 1 && (m->compiled || is_ir_text(m->name)))
		return failed(TL_ERR_ARGUMENT, "tl_module_load_sources: %s is %s, which imports nothing", m->name,
			      m->compiled ? "a kernel image" : "IR text");
	return m->compiled ? open_image(m) : open_source(m);
}

static tl_status module_new(tl_context *ctx, const tl_source *sources, size_t n, tl_module **out)
{
	tl_module *m = tl_calloc(sizeof *m);
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->said_lock, NULL);
	struct cleanup c;
	cleanup_push(&c, module_free, m);
	m->ctx = ctx;
	take_sources(m, sources, n);
	tl_status s = open_texts(m);
	cleanup_drop(&c);
	if (s) {
		module_free(m);
		return s;
	}
	m->link.free = free_owned;
	context_enter(ctx, &ctx->owned, &m->link);
	*out = m;
	return TL_OK;
}

static bool has_code(const tl_module *m)
{
	for (const tl_kernel *k = m->kernels; k; k = k->next)
		if (k->variants.n)
			return true;
	return false;
}

API_DESTRUCTOR(tl_module_destroy, m ? m->ctx : NULL, (tl_module *m), (m))
{
	if (!m)
		return;
	if (has_code(m))
		m->ctx->dev->ops->synchronize(m->ctx->dev); /* the module's kernels may be running, on any stream */
	tl_context *ctx = m->ctx;
	context_remove(ctx, &m->link);
	module_free(m);
	context_leave(ctx);
}

static tl_status cannot_read(const char *path)
{
	return failed(errno == ENOMEM ? TL_ERR_MEMORY : TL_ERR_FILE, "cannot read '%s': %s", path, strerror(errno));
}

API_FUNCTION(tl_module_load, ctx, (tl_context *ctx, const char *path, tl_module **out), (ctx, path, out))
{
	if (!ctx || !path || !out)
		return failed(TL_ERR_ARGUMENT, "tl_module_load: %s is NULL",
			      !ctx   ? "the context"
			      : path ? "out"
				     : "the path");
	*out = NULL;
	struct arena a = {0};
	size_t len;
	FILE *f = fopen(path, "rb");
	if (!f)
		return cannot_read(path);
	struct cleanup c;
	cleanup_push(&c, close_file, f);
	const char *text = stream_read(&a, f, max_source, &len);
	tl_status s = text ? TL_OK : cannot_read(path);
	cleanup_run(&c);
	if (!s)
		s = module_new(ctx, &(tl_source){.file = path, .first_line = 1, .text = text, .len = len}, 1, out);
	arena_free(&a);
	return s;
}

/* A dotted name of names, as Python has them. */
static bool is_dotted_name(const char *s)
{
	bool first = true;
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (first ? isdigit(c) || c == '.' : false)
			return false;
		if (c != '.' && c != '_' && c < 128 && !isalnum(c))
			return false;
		first = c == '.';
	}
	return !first;
}

static tl_status check_source(const char *call, size_t i, const tl_source *s)
{
	enum { MOST_LINES = 1 << 24, MOST_COLUMNS = UINT16_MAX };
	size_t lines = s->first_line;
	for (const char *at = s->text; at && s->len && (at = memchr(at, '\n', s->len - (size_t)(at - s->text))); at++)
		lines++;
	if (!s->text)
		return failed(TL_ERR_ARGUMENT, "%s: the text of source %zu is NULL", call, i);
	if (s->len > max_source)
		return failed(TL_ERR_ARGUMENT, "%s: source %zu: a source of %zu bytes is too large", call, i, s->len);
	if (lines >= MOST_LINES || s->indent > MOST_COLUMNS)
		return failed(TL_ERR_ARGUMENT, "%s: source %zu: lines up to %zu and an indentation of %u bytes; the "
			      "limits are %d and %d", call, i, lines, s->indent, MOST_LINES - 1, MOST_COLUMNS);
	if (s->reserved[0] || s->reserved[1])
		return failed(TL_ERR_ARGUMENT, "%s: source %zu: a reserved member is not 0", call, i);
	if (s->name && !is_dotted_name(s->name))
		return failed(TL_ERR_ARGUMENT, "%s: source %zu: '%.200s' is not a dotted name\n      = hint: names are "
			      "as in an import: \"helpers\", \"pkg.helpers\"", call, i, s->name);
	if (s->name && is_own_module(s->name))
		return failed(TL_ERR_ARGUMENT, "%s: source %zu has the name of a module of the compiler, '%.200s'",
			      call, i, s->name);
	return TL_OK;
}

static tl_status check_sources(const char *call, const tl_source *sources, size_t n)
{
	enum { MOST_SOURCES = 2048 }; /* a place in a kernel for the CPU has 12 bits for the number of its file */
	if (!n || n > MOST_SOURCES)
		return failed(TL_ERR_ARGUMENT, "%s: %zu sources; there must be 1 to %d", call, n, MOST_SOURCES);
	struct arena a = {0};
	struct cleanup c;
	cleanup_arena(&c, &a);
	struct interner names = {.arena = &a};
	struct map seen = {.arena = &a};
	tl_status s = TL_OK;
	for (size_t i = 0; i < n && !s; i++) {
		s = check_source(call, i, &sources[i]);
		const char *name = !s && sources[i].name ? intern_str(&names, sources[i].name) : NULL;
		const tl_source *other = name ? map_get(&seen, name) : NULL;
		if (other)
			s = failed(TL_ERR_ARGUMENT, "%s: sources %zu and %zu have the same name, '%.200s'", call,
				   (size_t)(other - sources), i, name);
		else if (name)
			map_put(&seen, name, (void *)(uintptr_t)&sources[i]);
	}
	cleanup_run(&c);
	return s;
}

API_FUNCTION(tl_module_load_source, ctx,
	     (tl_context *ctx, const char *name, const char *text, size_t len, tl_module **out),
	     (ctx, name, text, len, out))
{
	if (!ctx || !text || !out)
		return failed(TL_ERR_ARGUMENT, "tl_module_load_source: %s is NULL",
			      !ctx   ? "the context"
			      : text ? "out"
				     : "the text");
	*out = NULL;
	const tl_source source = {.file = name, .first_line = 1, .text = text, .len = len};
	tl_status s = check_sources("tl_module_load_source", &source, 1);
	return s ? s : module_new(ctx, &source, 1, out);
}

API_FUNCTION(tl_module_load_sources, ctx, (tl_context *ctx, const tl_source *sources, size_t n, tl_module **out),
	     (ctx, sources, n, out))
{
	static const char call[] = "tl_module_load_sources";
	if (!ctx || !sources || !out)
		return failed(TL_ERR_ARGUMENT, "%s: %s is NULL", call,
			      !ctx	? "the context"
			      : sources ? "out"
					: "the array of sources");
	*out = NULL;
	tl_status s = check_sources(call, sources, n);
	return s ? s : module_new(ctx, sources, n, out);
}

/* --- kernels ------------------------------------------------------------------------------------------------- */

/* The name of the only kernel of an image or IR text; NULL: the module is a source. */
static const char *single_kernel(const tl_module *m)
{
	return m->compiled ? m->image.name : m->unit.parsed ? m->unit.parsed->name : NULL;
}

static tl_status no_kernel(const tl_module *m, const char *name)
{
	const char *names[256];
	u32 n = 0;
	if (single_kernel(m))
		names[n++] = single_kernel(m);
	for (u32 i = 0; m->unit.module && i < m->unit.module->funcs.len && n < ARRAY_LEN(names); i++)
		if (m->unit.module->funcs.at[i]->kind == FUNC_JIT)
			names[n++] = m->unit.module->funcs.at[i]->name;
	if (!n)
		return failed(TL_ERR_ARGUMENT, "%s has no kernel '%s': it has no jit functions", m->name, name);
	failed(TL_ERR_ARGUMENT, "%s has no kernel '%s'; it has", m->name, name);
	for (u32 i = 0; i < n; i++)
		failed_more("%s %s", i ? "," : "", names[i]);
	const char *like = did_you_mean(name, names, n);
	if (like)
		failed_more("\n      = hint: did you mean '%s'?", like);
	return TL_ERR_ARGUMENT;
}

static tl_status kernel_new_in(tl_module *m, const char *name, tl_kernel **out)
{
	struct unit *u = &m->unit;
	if (u->parsed && u->parsed->target)
		return failed(TL_ERR_ARGUMENT,
			      "%s contains laid-out GPU IR for %s: tlc compiles it, and does not run it", m->name,
			      u->parsed->target);
	tl_kernel *k = tl_calloc(sizeof *k);
	struct cleanup c;
	cleanup_push(&c, free, k);
	if (m->compiled) {
		params_of_image(&u->arena, &m->image, &k->params);
	} else if (u->parsed) {
		params_of_ir(&u->arena, u->parsed, &k->params);
		k->has_dots = block_has(u->parsed->body, op_is_dot);
	} else {
		const struct func *f = unit_function(u, name);
		params_of_func(&u->arena, f, &k->params);
		k->has_dots = func_calls(&u->arena, f, "dot", &(struct import_files){import_given, u});
		k->decorated = f->ndecorators;
	}
	cleanup_drop(&c);
	if (k->params.len > MAX_KERNEL_PARAMS) {
		free(k);
		return failed(TL_ERR_ARGUMENT, "%s has more than %d parameters", name, MAX_KERNEL_PARAMS);
	}
	k->name = k->params.kernel;
	k->module = m;
	tl_status s = take_jit(k);
	if (s) {
		free(k);
		return s;
	}
	k->general = k->params;
	k->general.any_value = true;
	pthread_mutex_init(&k->lock, NULL);
	pthread_cond_init(&k->ready, NULL);
	link_init(&k->prepared);
	k->next = m->kernels;
	*out = m->kernels = k;
	return TL_OK;
}

static tl_status find_kernel(tl_module *m, const char *name, tl_kernel **out)
{
	for (tl_kernel *k = m->kernels; k; k = k->next)
		if (!strcmp(k->name, name)) {
			*out = k;
			return TL_OK;
		}
	if (single_kernel(m))
		return strcmp(single_kernel(m), name) ? no_kernel(m, name) : kernel_new_in(m, name, out);
	const struct func *f = unit_function(&m->unit, name);
	if (!f)
		return no_kernel(m, name);
	if (f->kind != FUNC_JIT)
		return failed(TL_ERR_ARGUMENT,
			      "'%s' in %s is a constexpr_function, which runs at compile time: it cannot be launched",
			      name, m->name);
	return kernel_new_in(m, name, out);
}

API_FUNCTION(tl_module_kernel, m ? m->ctx : NULL, (tl_module *m, const char *name, tl_kernel **out), (m, name, out))
{
	if (!m || !name || !out)
		return failed(TL_ERR_ARGUMENT, "tl_module_kernel: %s is NULL",
			      !m     ? "the module"
			      : name ? "out"
				     : "the name");
	*out = NULL;
	struct held h;
	lock_hold(&h, &m->lock);
	tl_status s = find_kernel(m, name, out);
	lock_release(&h);
	return s;
}

size_t tl_kernel_parameters(const tl_kernel *k)
{
	return k ? k->params.len : 0;
}

const tl_parameter *tl_kernel_parameter(const tl_kernel *k, size_t index)
{
	return index < tl_kernel_parameters(k) ? &k->params.at[index].shown : NULL;
}

const char *tl_kernel_name(const tl_kernel *k)
{
	return k ? k->name : NULL;
}

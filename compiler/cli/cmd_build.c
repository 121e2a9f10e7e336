/* `tlc build`: compiles kernels before the program that launches them starts. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/cache/cache.h"
#include "cli/cmd_build.h"

/* --- a manifest, into the disk cache --------------------------------------------------------------------------- */

struct lines {
	VEC(struct manifest_entry) at;
	u32 unreadable;
};

/* Shared by the compiling processes. */
struct progress {
	atomic_uint next, failed;
};

static void show(void *arg, const tl_diagnostic *d)
{
	(void)arg;
	if (d->severity == TL_SEVERITY_WARNING)
		fputs(d->shown, stderr);
}

static tl_status build_variant(struct arena *a, tl_kernel *k, const struct manifest_entry *e)
{
	tl_arg *args = arena_array(a, tl_arg, k->params.len + 1);
	struct variant *v;
	size_t n;
	if (!manifest_arguments(a, &k->params, e->arguments, args, &n))
		return failed(TL_ERR_ARGUMENT, "%s does not take the arguments '%s'", e->kernel, e->arguments);
	tl_status s = variant_get(k, &e->options, args, n, &v);
	if (!s && !variant_on_disk(k, v))
		return failed(TL_ERR_FILE,
			      "%s is not in the cache: its folder cannot be written, or the kernel asks for the "
			      "environment, so that each process compiles it",
			      e->kernel);
	return s;
}

static bool build_entry(struct arena *a, const struct manifest_entry *e)
{
	u32 n;
	const struct unit_source *from = manifest_sources(a, e, &n);
	struct device *dev;
	tl_context *ctx = NULL;
	tl_module *m;
	tl_kernel *k;
	if (!from)
		return false;
	tl_source *sources = arena_array(a, tl_source, n);
	for (u32 i = 0; i < n; i++)
		sources[i] = (tl_source){.name = from[i].name, .file = from[i].file, .first_line = from[i].first_line,
					 .indent = from[i].indent, .text = from[i].text, .len = from[i].len};
	if (e->path)
		setenv("PYTHONPATH", e->path, 1);
	else
		unsetenv("PYTHONPATH");
	tl_status s = offline_open(&e->target, &dev);
	if (!s)
		s = context_new(dev, &ctx);
	if (!s)
		s = tl_context_diagnostics(ctx, show, NULL, false);
	if (!s)
		s = tl_module_load_sources(ctx, sources, n, &m);
	if (!s)
		s = tl_module_kernel(m, e->kernel, &k);
	if (!s)
		s = build_variant(a, k, e);
	if (s)
		fprintf(stderr, s == TL_ERR_COMPILE ? "%s\n" : "tlc: error: %s\n", tl_error(ctx));
	tl_context_destroy(ctx);
	return !s;
}

/* Compiles lines until all are done. */
static void build_lines(const struct lines *lines, struct progress *p)
{
	for (u32 i; (i = atomic_fetch_add(&p->next, 1)) < lines->at.len;) {
		struct arena a = {0};
		if (!build_entry(&a, &lines->at.at[i]))
			atomic_fetch_add(&p->failed, 1);
		arena_free(&a);
	}
}

/* Skips lines that cannot be read, with a warning: a process that is killed leaves an incomplete line. */
static void read_lines(struct command *c, const char *text, size_t len, struct lines *out)
{
	u32 number = 1;
	for (const char *at = text, *end = text + len, *next; at < end; at = next, number++) {
		struct manifest_entry e;
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t bytes = (size_t)((stop ? stop : end) - at);
		next = stop ? stop + 1 : end;
		const char *why = bytes ? manifest_read(&c->arena, at, bytes, &e) : NULL;
		if (why)
			warn("'%s', line %u is passed over: %s", c->file, number, why);
		else if (bytes)
			vec_push(&c->arena, &out->at, e);
		out->unreadable += why != NULL;
	}
}

static int build_manifest(struct command *c, const char *text, size_t len)
{
	struct lines lines = {0};
	read_lines(c, text, len, &lines);
	if (lines.unreadable && !lines.at.len)
		return complain(EXIT_USER, "'%s': none of its lines can be read", c->file);
	if (c->output) {
		note_file(c, c->file);
		return build_manifest_sources(c, lines.at.at, lines.at.len);
	}
	if (c->depfile || c->prefix)
		return complain(EXIT_USER, "--depfile and --prefix are for the files of -o NAME, which is missing");
	if (!cache_folder(&c->arena))
		return complain(EXIT_ENVIRONMENT, "there is no cache to build into: TL_CACHE is 0, or HOME is not set");
	const char *refused = cache_refused(&c->arena);
	if (refused)
		return complain(EXIT_ENVIRONMENT, "%s", refused);
	struct progress *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return complain(EXIT_ENVIRONMENT, "out of memory");
	long most = sysconf(_SC_NPROCESSORS_ONLN);
	u32 n = MIN(lines.at.len, (u32)MAX(most, 1)), started = 0;
	fflush(NULL);
	for (; started < n; started++) {
		pid_t pid = fork();
		if (pid < 0)
			break;
		if (!pid) {
			build_lines(&lines, p);
			exit(EXIT_DONE);
		}
	}
	if (!started)
		build_lines(&lines, p);
	u32 died = 0;
	for (int status; wait(&status) > 0;)
		died += status != 0;
	u32 failed = atomic_load(&p->failed) + died;
	munmap(p, sizeof *p);
	printf("%u of %u variants are in the cache\n", lines.at.len - MIN(failed, lines.at.len), lines.at.len);
	return failed ? EXIT_USER : EXIT_DONE;
}

int command_build(struct command *c)
{
	size_t len;
	const char *text = read_file(&c->arena, c->file, &len);
	if (!text)
		return EXIT_ENVIRONMENT;
	return text[strspn(text, " \t\r\n")] == '{' ? build_manifest(c, text, len) : build_sources(c, text, len);
}

/* `tlc cache` and `tlc show`: the compiled kernels on disk, as text. */
#include <time.h>

#include "runtime/cache/cache.h"
#include "runtime/tune/tunings.h"
#include "cli/cli.h"

int command_show(struct command *c)
{
	size_t len;
	const char *bytes = read_file(&c->arena, c->file, &len);
	if (!bytes)
		return EXIT_ENVIRONMENT;
	struct image im;
	const char *why = image_read(&im, bytes, len);
	if (why)
		return complain(EXIT_USER, "'%s' cannot be shown: %s; tlc FILE --emit image writes one", c->file, why);
	struct strbuf text = {.arena = &c->arena};
	image_show(&im, &text);
	fputs(text.at, stdout);
	image_free(&im);
	return EXIT_DONE;
}

struct tally {
	u32 entries, unusable;
	i64 bytes;
	bool list;
};

static void count(void *arg, const char *path, i64 bytes, const struct image *im, const char *why)
{
	struct tally *t = arg;
	t->entries++;
	t->bytes += bytes;
	t->unusable += !im;
	if (!im)
		printf("%s: %s\n", path, why);
	else if (t->list)
		printf("%s: %s of %s for %s, %lld bytes\n", path, im->name, im->source, im->target, (long long)bytes);
}

static void show_tuned(void *arg, const char *path, const struct tuning_key *key, const struct tuned *t)
{
	(void)arg;
	printf("%s: %s on %s, %s: %s, ", path, key->kernel, key->device, key->key, t->values);
	if (t->failed)
		printf("failed: %s\n", t->failed);
	else
		printf("%.4g %s, the best of %u\n", t->cost, t->unit, t->tried);
}

int command_cache(struct command *c)
{
	const char *folder = cache_folder(&c->arena), *what = c->file;
	struct tally t = {.list = !strcmp(what, "list")};
	if (!folder)
		return complain(EXIT_ENVIRONMENT, "there is no cache: TL_CACHE is 0, or HOME is not set");
	if (!strcmp(what, "path")) {
		puts(folder);
		return EXIT_DONE;
	}
	const char *refused = cache_refused(&c->arena);
	if (refused)
		return complain(EXIT_ENVIRONMENT, "%s", refused);
	if (!strcmp(what, "clear")) {
		u32 n = cache_clear() + tunings_clear();
		printf("%u %s removed\n", n, n == 1 ? "entry" : "entries");
		return EXIT_DONE;
	}
	if (!t.list && strcmp(what, "verify") != 0)
		return complain(EXIT_USER, "tlc cache: '%s' is none of list verify clear path", what);
	cache_each(count, &t);
	if (t.list)
		tunings_each(show_tuned, NULL);
	printf("%u %s, %lld bytes", t.entries, t.entries == 1 ? "entry" : "entries", (long long)t.bytes);
	printf(t.unusable ? ", %u of them unusable\n" : "\n", t.unusable);
	return t.unusable ? EXIT_USER : EXIT_DONE;
}

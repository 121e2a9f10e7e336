/* Fuzzing manifests and tunings, which are lines of JSON: any text in. A line that is read is printed and read again,
 * its arguments are specialised for; and a tuning that is added behind any text is found. `make fuzz` builds it.
 *
 *   build-fuzz/fuzz-lines -dict=tests/fuzz/lines.dict CORPUS… */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/cache/cache.h"
#include "runtime/launch/manifest.h"
#include "runtime/launch/specialize.h"
#include "runtime/tune/tunings.h"
#include "temporary.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const char source[] = "import triton\nimport triton.language as tl\n\n"
			     "@triton.jit\ndef k(x, n, t, d, s, KIND: tl.constexpr, F: tl.constexpr = 3):\n    pass\n";
static const struct tuning_key key = {
	.kernel = "k", .device = "device", .version = "1", .source = 7, .configurations = 9, .key = "{\"n\":1}"};
static char folder[200], path[300];
static struct unit unit;
static struct params params;
static struct arena kept;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	temporary(folder, sizeof folder);
	if (!mkdtemp(folder) || setenv("TL_CACHE_DIR", folder, 1) || unsetenv("TL_CACHE") ||
	    !unit_open(&unit, "a.tl", source, sizeof source - 1))
		abort();
	params_of_func(&kept, unit.module->funcs.at[0], &params);
	snprintf(path, sizeof path, "%s/k-%016x.tuning", folder, 7);
	return 0;
}

/* What `tlc build` makes of a line. */
static void try_line(struct arena *a, const char *line, size_t len)
{
	struct manifest_entry e, again;
	struct strbuf text = {.arena = a}, twice = {.arena = a};
	if (manifest_read(a, line, len, &e))
		return;
	manifest_print(&text, &e);
	if (manifest_read(a, text.at, text.len, &again))
		abort();
	manifest_print(&twice, &again);
	if (strcmp(text.at, twice.at) != 0)
		abort();
	tl_arg *args = arena_array(a, tl_arg, params.len + 1);
	size_t n;
	struct key k;
	if (!manifest_arguments(a, &params, e.arguments, args, &n))
		return;
	key_init(&k, 0);
	if (!specialize(&params, args, n, &k))
		specialize_text(a, &params, args, n);
	key_free(&k);
}

struct seen {
	u32 n;
	bool last; /* the line that was added */
};

static void count(void *arg, const char *path, const struct tuning_key *key, const struct tuned *t)
{
	(void)path;
	(void)key;
	struct seen *s = arg;
	s->n++;
	s->last = !t->failed && !strcmp(t->values, "{\"B\":42}") && t->cost == 0.5 && t->tried == 3;
}

static void show(void *arg, const char *of, const struct tuning_key *k, const struct tuned *t)
{
	(void)of;
	(void)t;
	*(size_t *)arg += strlen(k->kernel);
}

static void try_tunings(struct arena *a, const u8 *data, size_t size)
{
	struct seen before = {0}, after = {0};
	size_t sum = 0;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
	tunings_each(show, &sum);
	tunings_read(a, &key, count, &before);
	tunings_write(&key, &(struct tuned){.values = "{\"B\":42}", .cost = 0.5, .unit = "ms", .tried = 3});
	tunings_read(a, &key, count, &after);
	if (after.n != before.n + 1 || !after.last)
		abort();
}

struct input {
	const u8 *data;
	size_t size;
};

static void run(void *input)
{
	const struct input *in = input;
	struct arena a = {0};
	char *text = malloc(in->size + 1);
	memcpy(text, in->data, in->size);
	for (const char *at = text, *end = text + in->size, *stop; at < end; at = stop + 1) {
		stop = memchr(at, '\n', (size_t)(end - at));
		stop = stop ? stop : end;
		try_line(&a, at, (size_t)(stop - at));
	}
	try_tunings(&a, in->data, in->size);
	free(text);
	arena_free(&a);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	char why[200];
	struct recovery r = {.text = why, .size = sizeof why};
	if (protect(&r, run, &(struct input){data, size}) == FAULT_BUG)
		abort();
	return 0;
}

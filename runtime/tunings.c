#include "runtime/tunings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/recover.h"
#include "runtime/cache.h"

enum { MOST_BYTES = 64 << 20, MOST_NAME = 100, MEMBERS = 16 };
static const char suffix[] = ".tuning";

static const char *file_path(struct arena *a, const struct tuning_key *key)
{
	const char *folder = cache_folder(a);
	int len = (int)MIN(strlen(key->kernel), (size_t)MOST_NAME);
	if (!folder)
		return NULL;
	return arena_printf(a, "%s/%.*s-%016llx%s", folder, len, key->kernel, (unsigned long long)key->source, suffix);
}

/* --- lines ----------------------------------------------------------------------------------------------------- */

static bool hash_of(struct arena *a, const char *value, u64 *out)
{
	const char *text = json_text(a, value);
	char *end = NULL;
	*out = text ? strtoull(text, &end, 16) : 0;
	return text && *text && !*end;
}

static bool read_line(struct arena *a, const char *line, struct tuning_key *key, struct tuned *t)
{
	struct json_member m[MEMBERS];
	u32 n;
	if (!json_read(a, line, strlen(line), m, MEMBERS, &n))
		return false;
	const char *cost = json_value(m, n, "cost"), *tried = json_value(m, n, "tried");
	*key = (struct tuning_key){.kernel = json_text(a, json_value(m, n, "kernel")),
				   .device = json_text(a, json_value(m, n, "device")),
				   .version = json_text(a, json_value(m, n, "version")),
				   .key = json_value(m, n, "key")};
	*t = (struct tuned){.values = json_value(m, n, "values"),
			    .failed = json_text(a, json_value(m, n, "failed")),
			    .cost = cost ? strtod(cost, NULL) : 0,
			    .unit = json_text(a, json_value(m, n, "unit")),
			    .tried = tried ? (u32)strtoul(tried, NULL, 10) : 0};
	t->unit = t->unit ? t->unit : "";
	return key->kernel && key->device && key->version && key->key && t->values && (cost || t->failed) &&
	       hash_of(a, json_value(m, n, "source"), &key->source) &&
	       hash_of(a, json_value(m, n, "configurations"), &key->configurations);
}

static bool same(const struct tuning_key *a, const struct tuning_key *b)
{
	return a->source == b->source && a->configurations == b->configurations && !strcmp(a->kernel, b->kernel) &&
	       !strcmp(a->device, b->device) && !strcmp(a->version, b->version) && !strcmp(a->key, b->key);
}

static void each_line(struct arena *a, const char *path, const struct tuning_key *only,
		      void (*fn)(void *arg, const char *path, const struct tuning_key *key, const struct tuned *t),
		      void *arg)
{
	size_t len = 0;
	char *text = file_read(a, path, MOST_BYTES, &len);
	for (char *line = text, *end; line && *line; line = end) {
		struct tuning_key key;
		struct tuned t;
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = 0;
		if (read_line(a, line, &key, &t) && (!only || same(&key, only)))
			fn(arg, path, &key, &t);
	}
}

/* --- reading and writing --------------------------------------------------------------------------------------- */

struct reader {
	void (*fn)(void *arg, const struct tuned *t);
	void *arg;
};

static void pass_on(void *arg, const char *path, const struct tuning_key *key, const struct tuned *t)
{
	const struct reader *r = arg;
	(void)path;
	(void)key;
	r->fn(r->arg, t);
}

void tunings_read(struct arena *a, const struct tuning_key *key, void (*fn)(void *arg, const struct tuned *t),
		  void *arg)
{
	const char *path = file_path(a, key);
	if (path)
		each_line(a, path, key, pass_on, &(struct reader){fn, arg});
}

static void print_line(struct strbuf *out, const struct tuning_key *key, const struct tuned *t)
{
	sb_puts(out, "{\"kernel\":");
	sb_json(out, key->kernel);
	sb_printf(out, ",\"source\":\"%016llx\",\"device\":", (unsigned long long)key->source);
	sb_json(out, key->device);
	sb_puts(out, ",\"version\":");
	sb_json(out, key->version);
	sb_printf(out, ",\"configurations\":\"%016llx\",\"key\":%s,\"values\":%s",
		  (unsigned long long)key->configurations, key->key, t->values);
	if (t->failed) {
		sb_puts(out, ",\"failed\":");
		sb_json(out, t->failed);
	} else {
		sb_printf(out, ",\"cost\":%.6g,\"unit\":\"%s\",\"tried\":%u", t->cost, t->unit, t->tried);
	}
	sb_puts(out, "}\n");
}

/* Behind a line that another process was killed in, a new one begins. */
static bool ends_in_line(int fd)
{
	struct stat st;
	char last = '\n';
	return fstat(fd, &st) || !st.st_size || (pread(fd, &last, 1, st.st_size - 1) == 1 && last == '\n');
}

void tunings_write(const struct tuning_key *key, const struct tuned *t)
{
	struct arena a = {0};
	struct cleanup c;
	cleanup_arena(&c, &a);
	const char *path = file_path(&a, key), *folder = path ? cache_folder(&a) : NULL;
	struct strbuf line = {.arena = &a};
	sb_puts(&line, "\n");
	print_line(&line, key, t);
	int fd = folder && cache_make_folder(&a, folder) ? open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600)
							 : -1;
	if (fd >= 0) {
		flock(fd, LOCK_EX); /* one write() is whole by itself, but for shared file systems */
		u32 skip = ends_in_line(fd);
		ssize_t written = write(fd, line.at + skip, line.len - skip);
		(void)written; /* half a line is ignored */
		close(fd);
	}
	cleanup_run(&c);
}

/* --- all of them ----------------------------------------------------------------------------------------------- */

static bool is_tuning(const char *name)
{
	size_t len = strlen(name), end = sizeof suffix - 1;
	return len > end + 17 && !strcmp(name + len - end, suffix) && name[len - end - 17] == '-' &&
	       strspn(name + len - end - 16, "0123456789abcdef") == 16;
}

static void close_folder(void *d)
{
	closedir(d);
}

static void each_file(struct arena *a, void (*fn)(void *arg, const char *path), void *arg)
{
	const char *folder = cache_folder(a);
	DIR *d = folder ? opendir(folder) : NULL;
	if (!d)
		return;
	struct cleanup c;
	cleanup_push(&c, close_folder, d);
	for (const struct dirent *e; (e = readdir(d));)
		if (is_tuning(e->d_name))
			fn(arg, arena_printf(a, "%s/%s", folder, e->d_name));
	cleanup_run(&c);
}

struct all {
	struct arena *arena;
	void (*fn)(void *arg, const char *path, const struct tuning_key *key, const struct tuned *t);
	void *arg;
	u32 removed;
};

static void show_file(void *arg, const char *path)
{
	const struct all *all = arg;
	each_line(all->arena, path, NULL, all->fn, all->arg);
}

static void remove_file(void *arg, const char *path)
{
	struct all *all = arg;
	all->removed += !unlink(path);
}

static void every_file(struct all *all, void (*fn)(void *arg, const char *path))
{
	struct arena a = {0};
	struct cleanup c;
	cleanup_arena(&c, &a);
	all->arena = &a;
	each_file(&a, fn, all);
	cleanup_run(&c);
}

void tunings_each(void (*fn)(void *arg, const char *path, const struct tuning_key *key, const struct tuned *t),
		  void *arg)
{
	every_file(&(struct all){.fn = fn, .arg = arg}, show_file);
}

u32 tunings_clear(void)
{
	struct all all = {.removed = 0};
	every_file(&all, remove_file);
	return all.removed;
}

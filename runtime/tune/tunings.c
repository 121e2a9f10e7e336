#include "runtime/tune/tunings.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/json.h"
#include "runtime/cache/cache.h"

enum { MOST_BYTES = 64 << 20, MOST_NAME = 100, MEMBERS = 16 };
static const char suffix[] = ".tuning";

static const char *file_name(struct arena *a, const struct tuning_key *key)
{
	int len = (int)MIN(strlen(key->kernel), (size_t)MOST_NAME);
	return arena_printf(a, "%.*s-%016llx%s", len, key->kernel, (unsigned long long)key->source, suffix);
}

/* --- lines ----------------------------------------------------------------------------------------------------- */

static bool hash_of(struct arena *a, const char *value, u64 *out)
{
	const char *text = json_text(a, value);
	char *end = NULL;
	*out = text ? strtoull(text, &end, 16) : 0;
	return text && *text && !*end;
}

static bool read_line(struct arena *a, const char *line, size_t len, struct tuning_key *key, struct tuned *t)
{
	struct json_member m[MEMBERS];
	u32 n;
	if (!json_read(a, line, len, m, MEMBERS, &n))
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

static void each_line(struct arena *a, const struct folder *f, const char *name, const struct tuning_key *only,
		      tuned_fn *fn, void *arg)
{
	size_t len = 0;
	const char *why, *text = folder_read(f, a, name, MOST_BYTES, &len, &why), *end = text ? text + len : text;
	const char *path = arena_printf(a, "%s/%s", f->path, name);
	for (const char *line = text, *next; line < end; line = next) {
		struct tuning_key key;
		struct tuned t;
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t bytes = (size_t)((stop ? stop : end) - line);
		next = stop ? stop + 1 : end;
		if (read_line(a, line, bytes, &key, &t) && (!only || same(&key, only)))
			fn(arg, path, &key, &t);
	}
}

/* --- reading and writing --------------------------------------------------------------------------------------- */

void tunings_read(struct arena *a, const struct tuning_key *key, tuned_fn *fn, void *arg)
{
	struct cache_use u;
	if (cache_begin(&u, false))
		each_line(a, &u.folder, file_name(a, key), key, fn, arg);
	cache_end(&u);
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

void tunings_write(const struct tuning_key *key, const struct tuned *t)
{
	struct cache_use u;
	const char *why;
	bool open = cache_begin(&u, true);
	struct strbuf line = {.arena = &u.arena};
	print_line(&line, key, t);
	int fd = open ? folder_file(&u.folder, &u.arena, file_name(&u.arena, key), O_RDWR | O_APPEND | O_CREAT, &why)
		      : -1;
	if (fd >= 0) {
		folder_lock(fd); /* one write() is atomic, but not on shared file systems */
		add_line(fd, line.at, line.len);
		folder_unlock(fd);
	}
	cache_end(&u);
}

/* --- all tunings ------------------------------------------------------------------------------------------------ */

static bool is_tuning(const char *name)
{
	size_t len = strlen(name), end = sizeof suffix - 1;
	return len > end + 17 && !strcmp(name + len - end, suffix) && name[len - end - 17] == '-' &&
	       strspn(name + len - end - 16, "0123456789abcdef") == 16;
}

void tunings_each(tuned_fn *fn, void *arg)
{
	struct cache_use u;
	u32 n = 0;
	const char **names = cache_begin(&u, false) ? folder_list(&u.folder, &u.arena, &n) : NULL;
	for (u32 i = 0; i < n; i++)
		if (is_tuning(names[i]))
			each_line(&u.arena, &u.folder, names[i], NULL, fn, arg);
	cache_end(&u);
}

u32 tunings_clear(void)
{
	struct cache_use u;
	u32 n = 0, removed = 0;
	const char **names = cache_begin(&u, false) ? folder_list(&u.folder, &u.arena, &n) : NULL;
	for (u32 i = 0; i < n; i++)
		removed += is_tuning(names[i]) && !unlinkat(u.folder.fd, names[i], 0);
	cache_end(&u);
	return removed;
}

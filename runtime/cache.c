#include "runtime/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/recover.h"
#include "runtime/store.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
	DEFAULT_MB = 512,
	MOST_MB = 1 << 30,
	MAX_ENTRY_BYTES = 1 << 28,
	/* A process looks at the folder's size at its first write, then at each of so many. */
	WRITES_A_SWEEP = 64,
	TOUCH_SECONDS = 3600,   /* an entry's time of use is as exact as this */
	WAIT_SECONDS = 30,      /* for another process's compilation */
	LEFTOVER_SECONDS = 600, /* a file that nobody renames after so long was left by a process that died */
};
static const char suffix[] = ".image";

/* --- the folder ------------------------------------------------------------------------------------------------ */

const char *cache_folder(struct arena *a)
{
	const char *on = getenv("TL_CACHE"), *own = getenv("TL_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");
	if (on && !strcmp(on, "0"))
		return NULL;
	if (own && *own)
		return arena_str(a, own, strlen(own));
	if (xdg && *xdg == '/') /* others are to be ignored: XDG Base Directory Specification */
		return arena_printf(a, "%s/tlc", xdg);
	return home && *home ? arena_printf(a, "%s/.cache/tlc", home) : NULL;
}

static const char *entry_path(struct arena *a, const char *folder, struct cache_key key)
{
	return arena_printf(a, "%s/%016llx%016llx%s", folder, (unsigned long long)key.at[0],
			    (unsigned long long)key.at[1], suffix);
}

bool cache_make_folder(struct arena *a, const char *path)
{
	char *copy = arena_str(a, path, strlen(path));
	for (char *at = copy + 1; *at; at++)
		if (*at == '/') {
			*at = 0;
			mkdir(copy, 0700);
			*at = '/';
		}
	return !mkdir(copy, 0700) || errno == EEXIST;
}

/* --- keys ------------------------------------------------------------------------------------------------------ */

/* A hash of the compiler's objects (Makefile): another one may compile otherwise. */
extern const char compiler_identity[];

u64 cache_build(void)
{
	return XXH3_64bits(compiler_identity, strlen(compiler_identity));
}

bool cache_make_key(const struct strbuf *made_from, struct cache_key *out)
{
	struct arena a = {0};
	struct cleanup c;
	cleanup_arena(&c, &a);
	bool there = cache_folder(&a);
	cleanup_run(&c);
	XXH128_hash_t x = XXH3_128bits_withSeed(made_from->at, made_from->len, cache_build());
	*out = (struct cache_key){{x.high64, x.low64}};
	return there;
}

/* --- entries --------------------------------------------------------------------------------------------------- */

/* So that it is not taken for one that nobody uses. */
static void touch(const char *path)
{
	struct stat st;
	if (!stat(path, &st) && time(NULL) - st.st_mtime > TOUCH_SECONDS)
		utimensat(AT_FDCWD, path, NULL, 0);
}

bool cache_read(struct cache_key key, struct image *out)
{
	struct arena a = {0};
	struct cleanup c;
	cleanup_arena(&c, &a);
	size_t len = 0;
	const char *folder = cache_folder(&a), *path = folder ? entry_path(&a, folder, key) : NULL;
	const char *bytes = path ? file_read(&a, path, MAX_ENTRY_BYTES, &len) : NULL;
	bool found = bytes && !image_read(out, bytes, len);
	if (found && !store_imports_same(out)) {
		image_free(out);
		found = false;
	}
	if (found)
		touch(path);
	cleanup_run(&c);
	return found;
}

static bool is_entry(const char *name)
{
	size_t len = strlen(name), end = sizeof suffix - 1;
	return len == 32 + end && !strcmp(name + 32, suffix) && strspn(name, "0123456789abcdef") == 32;
}

static bool is_leftover(const char *name, const struct stat *st)
{
	return !strncmp(name, "new-", 4) && time(NULL) - st->st_mtime > LEFTOVER_SECONDS;
}

struct entry {
	const char *path;
	i64 bytes;
	struct timespec used;
};
struct entries {
	VEC(struct entry) at;
	i64 bytes;
};

static void close_folder(void *d)
{
	closedir(d);
}

/* The entries of the folder. Removes what processes that died have left. */
static void list_entries(struct arena *a, const char *folder, struct entries *out)
{
	DIR *d = opendir(folder);
	if (!d)
		return;
	struct cleanup c;
	cleanup_push(&c, close_folder, d);
	for (const struct dirent *e; (e = readdir(d));) {
		const char *path = arena_printf(a, "%s/%s", folder, e->d_name);
		struct stat st;
		if (lstat(path, &st) || !S_ISREG(st.st_mode))
			continue;
		if (is_leftover(e->d_name, &st))
			unlink(path);
		if (!is_entry(e->d_name))
			continue;
		vec_push(a, &out->at, ((struct entry){path, (i64)st.st_size, st.st_mtim}));
		out->bytes += (i64)st.st_size;
	}
	cleanup_run(&c);
}

static int by_use(const void *x, const void *y)
{
	const struct timespec *a = &((const struct entry *)x)->used, *b = &((const struct entry *)y)->used;
	if (a->tv_sec != b->tv_sec)
		return a->tv_sec < b->tv_sec ? -1 : 1;
	return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

/* From $TL_CACHE_MB, or what is usual where that is no number of megabytes. */
static i64 most_bytes(void)
{
	const char *text = getenv("TL_CACHE_MB");
	char *end = NULL;
	errno = 0;
	i64 mb = text && *text ? strtoll(text, &end, 10) : DEFAULT_MB;
	bool good = !end || (!*end && !errno && mb >= 0 && mb <= MOST_MB);
	return (good ? mb : DEFAULT_MB) << 20;
}

/* Removes the entries used longest ago, if all together are too large, until there is some room. */
static void sweep(struct arena *a, const char *folder)
{
	const i64 most = most_bytes();
	struct entries all = {0};
	list_entries(a, folder, &all);
	if (all.bytes <= most || !all.at.len)
		return;
	qsort(all.at.at, all.at.len, sizeof *all.at.at, by_use);
	for (u32 i = 0; i < all.at.len && all.bytes > most / 5 * 4; i++)
		if (!unlink(all.at.at[i].path))
			all.bytes -= all.at.at[i].bytes;
}

static bool write_whole(int fd, const char *bytes, size_t len)
{
	for (ssize_t n; len; bytes += n, len -= (size_t)n)
		if ((n = write(fd, bytes, len)) <= 0)
			return false;
	return true;
}

void cache_write(struct cache_key key, struct image *im)
{
	static atomic_uint writes;
	struct arena a = {0};
	struct cleanup c;
	cleanup_arena(&c, &a);
	size_t len;
	const char *folder = cache_folder(&a);
	if (folder && cache_make_folder(&a, folder)) {
		const char *bytes = image_write(im, &a, &len);
		const char *path = entry_path(&a, folder, key);
		char *name = arena_printf(&a, "%s/new-XXXXXX", folder);
		int fd = mkstemp(name);
		if (fd >= 0) {
			bool whole = write_whole(fd, bytes, len);
			whole &= !close(fd);
			if (!whole || rename(name, path))
				unlink(name);
		}
		if (atomic_fetch_add(&writes, 1) % WRITES_A_SWEEP == 0)
			sweep(&a, folder);
	}
	cleanup_run(&c);
}

/* --- claims ---------------------------------------------------------------------------------------------------- */

/* Gone with the process, and with the file: one that finds no file makes another, and then finds the entry. */
static bool lock_file(int fd)
{
	i64 waited = 0, pause = 1000 * 1000; /* nanoseconds */
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || waited > WAIT_SECONDS * (i64)1000000000)
			return false;
		nanosleep(&(struct timespec){0, pause}, NULL);
		waited += pause;
		pause = MIN(pause * 2, 16 * 1000 * 1000);
	}
	return !waited;
}

bool cache_take(struct cache_key key, struct cache_claim *c)
{
	struct arena a = {0};
	struct cleanup release;
	cleanup_arena(&release, &a);
	const char *folder = cache_folder(&a);
	c->fd = -1;
	bool there = folder && cache_make_folder(&a, folder) &&
		     snprintf(c->path, sizeof c->path, "%s/new-%016llx%016llx", folder, (unsigned long long)key.at[0],
			      (unsigned long long)key.at[1]) < (int)sizeof c->path;
	cleanup_run(&release);
	if (there)
		c->fd = open(c->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	return c->fd >= 0 && lock_file(c->fd);
}

void cache_give(struct cache_claim *c)
{
	if (c->fd < 0)
		return;
	unlink(c->path);
	flock(c->fd, LOCK_UN); /* a child that was forked meanwhile has the descriptor too */
	close(c->fd);
	c->fd = -1;
}

void cache_each(void (*fn)(void *arg, const char *path, i64 bytes, const struct image *im, const char *why), void *arg)
{
	struct arena a = {0};
	struct cleanup c;
	cleanup_arena(&c, &a);
	const char *folder = cache_folder(&a);
	struct entries all = {0};
	if (folder)
		list_entries(&a, folder, &all);
	for (u32 i = 0; i < all.at.len; i++) {
		struct arena one = {0};
		struct image im;
		size_t len = 0;
		const char *bytes = file_read(&one, all.at.at[i].path, MAX_ENTRY_BYTES, &len),
			   *why = bytes ? image_read(&im, bytes, len) : "it cannot be read";
		fn(arg, all.at.at[i].path, all.at.at[i].bytes, why ? NULL : &im, why);
		if (!why)
			image_free(&im);
		arena_free(&one);
	}
	cleanup_run(&c);
}

u32 cache_clear(void)
{
	struct arena a = {0};
	struct cleanup c;
	cleanup_arena(&c, &a);
	const char *folder = cache_folder(&a);
	struct entries all = {0};
	u32 n = 0;
	if (folder)
		list_entries(&a, folder, &all);
	for (u32 i = 0; i < all.at.len; i++)
		n += !unlink(all.at.at[i].path);
	cleanup_run(&c);
	return n;
}

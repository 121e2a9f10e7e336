#include "runtime/cache/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/recover.h"
#include "runtime/image/image_store.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
	DEFAULT_MB = 512,
	MOST_MB = 1 << 30,
	MAX_ENTRY_BYTES = 1 << 28,
	/* A process checks the folder's size at its first write, and then once for this number of writes. */
	WRITES_A_SWEEP = 64,
	TOUCH_SECONDS = 3600,   /* resolution of an entry's time of last use */
	LEFTOVER_SECONDS = 600, /* age of an unrenamed file after which its process is presumed dead */
};
static const char suffix[] = ".image";

/* --- the folder ------------------------------------------------------------------------------------------------ */

const char *cache_folder(struct arena *a)
{
	const char *on = getenv("TL_CACHE"), *own = secure_getenv("TL_CACHE_DIR"),
		   *xdg = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	if (on && !strcmp(on, "0"))
		return NULL;
	if (own && *own)
		return arena_str(a, own, strlen(own));
	if (xdg && *xdg == '/') /* relative paths are ignored: XDG Base Directory Specification */
		return arena_printf(a, "%s/tlc", xdg);
	return home && *home ? arena_printf(a, "%s/.cache/tlc", home) : NULL;
}

static bool cache_open(struct folder *f, struct arena *a, bool make, const char **why)
{
	const char *path = cache_folder(a);
	*f = (struct folder){.fd = -1};
	*why = NULL;
	return path && folder_open(f, a, path, make, why);
}

const char *cache_refused(struct arena *a)
{
	struct folder f;
	const char *why;
	if (cache_open(&f, a, false, &why))
		folder_close(&f);
	return why ? arena_printf(a, "the disk cache '%s' is not used: %s", f.path, why) : NULL;
}

static void close_cache(void *folder)
{
	folder_close(folder);
}

bool cache_begin(struct cache_use *u, bool make)
{
	const char *why;
	*u = (struct cache_use){.folder.fd = -1};
	cleanup_arena(&u->memory, &u->arena);
	cleanup_push(&u->open, close_cache, &u->folder);
	return cache_open(&u->folder, &u->arena, make, &why);
}

void cache_end(struct cache_use *u)
{
	cleanup_run(&u->open);
	cleanup_run(&u->memory);
}

static const char *entry_name(struct arena *a, struct cache_key key)
{
	return arena_printf(a, "%016llx%016llx%s", (unsigned long long)key.at[0], (unsigned long long)key.at[1],
			    suffix);
}

/* --- keys ------------------------------------------------------------------------------------------------------ */

/* A hash of the compiler's object files (Makefile), because another compiler may generate other code. */
extern const char compiler_identity[];

const char *tlc_identity(void)
{
	return compiler_identity;
}

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

/* Updates the entry's time of last use. */
static void touch(const struct folder *f, const char *name)
{
	struct stat st;
	if (!fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW) && time(NULL) - st.st_mtime > TOUCH_SECONDS)
		utimensat(f->fd, name, NULL, AT_SYMLINK_NOFOLLOW);
}

/* NULL, or the reason why the entry is not used. *why: the reason if the user should be warned, else NULL. */
static const char *read_entry(const struct folder *f, struct arena *a, const char *name, struct image *out,
			      const char **why)
{
	size_t len = 0;
	const char *bytes = folder_read(f, a, name, MAX_ENTRY_BYTES, &len, why);
	const char *fault = bytes ? image_read(out, bytes, len) : *why ? *why : "it cannot be read";
	if (fault || !strcmp(name, entry_name(a, (struct cache_key){{out->key[0], out->key[1]}})))
		return fault;
	*why = arena_printf(a, "it belongs to another kernel, '%s' of '%s' for %s", out->name, out->source,
			    out->target);
	image_free(out);
	return *why;
}

bool cache_read(struct cache_key key, struct image *out, struct strbuf *said)
{
	struct cache_use u;
	const char *why = NULL;
	bool found = false;
	if (cache_begin(&u, false)) {
		const char *name = entry_name(&u.arena, key);
		found = !read_entry(&u.folder, &u.arena, name, out, &why);
		if (found && !store_imports_same(out)) {
			image_free(out);
			found = false;
		}
		if (found)
			touch(&u.folder, name);
		if (why && said)
			sb_printf(said, "the entry '%s/%s' of the disk cache is not used: %s", u.folder.path, name,
				  why);
	}
	cache_end(&u);
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
	const char *name;
	i64 bytes;
	struct timespec used;
};
struct entries {
	VEC(struct entry) at;
	i64 bytes;
};

/* Lists the entries of the folder, and removes the temporary files of dead processes. */
static void list_entries(struct arena *a, const struct folder *f, struct entries *out)
{
	u32 n;
	const char **names = folder_list(f, a, &n);
	for (u32 i = 0; i < n; i++) {
		struct stat st;
		if (fstatat(f->fd, names[i], &st, AT_SYMLINK_NOFOLLOW) || S_ISDIR(st.st_mode))
			continue;
		if (is_leftover(names[i], &st))
			unlinkat(f->fd, names[i], 0);
		if (!is_entry(names[i]))
			continue;
		vec_push(a, &out->at, ((struct entry){names[i], (i64)st.st_size, st.st_mtim}));
		out->bytes += (i64)st.st_size;
	}
}

static int by_use(const void *x, const void *y)
{
	const struct timespec *a = &((const struct entry *)x)->used, *b = &((const struct entry *)y)->used;
	if (a->tv_sec != b->tv_sec)
		return a->tv_sec < b->tv_sec ? -1 : 1;
	return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

/* $TL_CACHE_MB in bytes, or the default if it is not a number. */
static i64 most_bytes(void)
{
	const char *text = getenv("TL_CACHE_MB");
	char *end = NULL;
	errno = 0;
	i64 mb = text && *text ? strtoll(text, &end, 10) : DEFAULT_MB;
	bool good = !end || (!*end && !errno && mb >= 0 && mb <= MOST_MB);
	return (good ? mb : DEFAULT_MB) << 20;
}

/* If the entries exceed the size limit, removes the least recently used entries until there is some space. */
static void sweep(struct arena *a, const struct folder *f)
{
	const i64 most = most_bytes();
	struct entries all = {0};
	list_entries(a, f, &all);
	if (all.bytes <= most || !all.at.len)
		return;
	qsort(all.at.at, all.at.len, sizeof *all.at.at, by_use);
	for (u32 i = 0; i < all.at.len && all.bytes > most / 5 * 4; i++)
		if (!unlinkat(f->fd, all.at.at[i].name, 0))
			all.bytes -= all.at.at[i].bytes;
}

static bool write_whole(int fd, const char *bytes, size_t len)
{
	for (ssize_t n; len; bytes += n, len -= (size_t)n)
		if ((n = write(fd, bytes, len)) <= 0)
			return false;
	return true;
}

static void write_entry(const struct folder *f, struct arena *a, struct cache_key key, const struct image *im)
{
	size_t len;
	const char *bytes = image_write(im, a, &len), *name;
	int fd = folder_new(f, a, &name);
	if (fd < 0)
		return;
	bool whole = write_whole(fd, bytes, len);
	whole &= !close(fd);
	if (!whole || renameat(f->fd, name, f->fd, entry_name(a, key)))
		unlinkat(f->fd, name, 0);
}

void cache_write(struct cache_key key, struct image *im)
{
	static atomic_uint writes;
	struct cache_use u;
	if (cache_begin(&u, true)) {
		memcpy(im->key, key.at, sizeof im->key);
		write_entry(&u.folder, &u.arena, key, im);
		if (atomic_fetch_add(&writes, 1) % WRITES_A_SWEEP == 0)
			sweep(&u.arena, &u.folder);
	}
	cache_end(&u);
}

/* --- claims ---------------------------------------------------------------------------------------------------- */

/* The lock ends with the process and with the removal of the file. A process that finds no lock file creates one, and
 * then finds the entry. */
bool cache_take(struct cache_key key, struct cache_claim *c)
{
	struct cache_use u;
	const char *why;
	*c = (struct cache_claim){.folder = -1, .fd = -1};
	if (cache_begin(&u, true)) {
		snprintf(c->name, sizeof c->name, "new-%016llx%016llx", (unsigned long long)key.at[0],
			 (unsigned long long)key.at[1]);
		c->fd = folder_file(&u.folder, &u.arena, c->name, O_RDWR | O_CREAT, &why);
		if (c->fd >= 0) { /* the claim owns the lock from now on */
			c->folder = u.folder.fd;
			u.folder.fd = -1;
		}
	}
	cache_end(&u);
	return c->fd >= 0 && folder_lock(c->fd) == LOCK_AT_ONCE;
}

void cache_give(struct cache_claim *c)
{
	if (c->fd < 0)
		return;
	unlinkat(c->folder, c->name, 0);
	folder_unlock(c->fd);
	close(c->folder);
	c->fd = c->folder = -1;
}

/* --- all entries ----------------------------------------------------------------------------------------------- */

void cache_each(void (*fn)(void *arg, const char *path, i64 bytes, const struct image *im, const char *why), void *arg)
{
	struct cache_use u;
	struct entries all = {0};
	if (cache_begin(&u, false))
		list_entries(&u.arena, &u.folder, &all);
	for (u32 i = 0; i < all.at.len; i++) {
		struct arena one = {0};
		struct image im;
		const char *told, *why = read_entry(&u.folder, &one, all.at.at[i].name, &im, &told);
		fn(arg, arena_printf(&one, "%s/%s", u.folder.path, all.at.at[i].name), all.at.at[i].bytes,
		   why ? NULL : &im, why);
		if (!why)
			image_free(&im);
		arena_free(&one);
	}
	cache_end(&u);
}

u32 cache_clear(void)
{
	struct cache_use u;
	struct entries all = {0};
	u32 n = 0;
	if (cache_begin(&u, false))
		list_entries(&u.arena, &u.folder, &all);
	for (u32 i = 0; i < all.at.len; i++)
		n += !unlinkat(u.folder.fd, all.at.at[i].name, 0);
	cache_end(&u);
	return n;
}

#include "runtime/image/cache_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "support/file.h"
#include "support/recover.h"

enum { WAIT_MS = 2000, MOST_PAUSE_MS = 16, SAFELY = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

/* --- trust ------------------------------------------------------------------------------------------------------- */

static bool find_trust(struct arena *a, enum trust *out, const char **why)
{
	static const char *const names[] = {[TRUST_USER] = "user", [TRUST_GROUP] = "group", [TRUST_ALL] = "all"};
	const char *given = secure_getenv("TL_CACHE_TRUST");
	*out = TRUST_USER;
	for (u32 i = 0; given && *given && i < ARRAY_LEN(names); i++)
		if (!strcmp(given, names[i])) {
			*out = (enum trust)i;
			return true;
		}
	if (!given || !*given)
		return true;
	*why = arena_printf(a, "TL_CACHE_TRUST is '%s', but must be user, group or all", given);
	return false;
}

static bool is_mine(uid_t owner)
{
	return owner == geteuid() || !owner;
}

static bool in_group(gid_t g)
{
	gid_t groups[NGROUPS_MAX];
	int n = getgroups(NGROUPS_MAX, groups);
	bool found = g == getegid();
	for (int i = 0; i < n; i++)
		found |= groups[i] == g;
	return found;
}

/* Why a folder, or a file of a trusted folder, is not trusted; NULL: it is. */
static const char *fault_of(struct arena *a, const struct stat *st, enum trust trust)
{
	/* files of a trusted folder of a group have been created by its members */
	bool group = trust == TRUST_GROUP && (!S_ISDIR(st->st_mode) || in_group(st->st_gid));
	if (trust == TRUST_ALL)
		return NULL;
	if (!is_mine(st->st_uid) && !group)
		return arena_printf(a, "it belongs to user %u, and this process to user %u", (unsigned)st->st_uid,
				    (unsigned)geteuid());
	if (st->st_mode & S_IWOTH)
		return "every user may write it";
	if (st->st_mode & S_IWGRP && !group)
		return arena_printf(a, "the members of group %u may write it", (unsigned)st->st_gid);
	return NULL;
}

/* --- folders ----------------------------------------------------------------------------------------------------- */

/* True: the folder itself is new. */
static bool make_folders(struct arena *a, const char *path)
{
	char *copy = arena_str(a, path, strlen(path));
	for (char *at = copy + 1; *at; at++)
		if (*at == '/') {
			*at = 0;
			mkdir(copy, 0700);
			*at = '/';
		}
	return !mkdir(copy, 0700);
}

/* A symbolic link to the folder is followed if it is the user's own. */
static int open_folder(const char *path, const char **why)
{
	struct stat link;
	int fd = open(path, O_RDONLY | O_DIRECTORY | SAFELY);
	if (fd >= 0 || lstat(path, &link) || !S_ISLNK(link.st_mode))
		return fd;
	if (is_mine(link.st_uid))
		return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*why = "it is a symbolic link of another user";
	return -1;
}

bool folder_open(struct folder *f, struct arena *a, const char *path, bool make, const char **why)
{
	size_t len = strlen(path);
	while (len > 1 && path[len - 1] == '/') /* open() follows a symbolic link before a slash */
		len--;
	*f = (struct folder){.fd = -1, .path = arena_str(a, path, len)};
	*why = NULL;
	if (!find_trust(a, &f->trust, why))
		return false;
	bool made = make && make_folders(a, f->path);
	f->fd = open_folder(f->path, why);
	if (f->fd < 0)
		return false;
	if (made && f->trust == TRUST_GROUP)
		fchmod(f->fd, 02770);
	struct stat st;
	*why = fstat(f->fd, &st) ? strerror(errno) : fault_of(a, &st, f->trust);
	f->group = st.st_gid;
	if (*why)
		folder_close(f);
	return !*why;
}

void folder_close(struct folder *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

/* --- files ------------------------------------------------------------------------------------------------------- */

static mode_t mode_of_new(const struct folder *f)
{
	return f->trust == TRUST_GROUP ? 0660 : f->trust == TRUST_ALL ? 0644 : 0600;
}

/* Gives a file that this process has just created to the folder's group, whatever the umask is. */
static void share(const struct folder *f, int fd, const struct stat *st)
{
	if (f->trust != TRUST_GROUP || st->st_size || st->st_uid != geteuid())
		return;
	if (st->st_gid == f->group || !fchown(fd, (uid_t)-1, f->group))
		fchmod(fd, mode_of_new(f));
}

static int close_for(int fd, const char *reason, const char **why)
{
	*why = reason;
	close(fd);
	return -1;
}

/* The reason for an error of open() that an untrusted file causes; NULL: another error. */
static const char *not_a_file(int error)
{
	return error == ELOOP                      ? "it is a symbolic link"
	       : error == ENXIO || error == EISDIR ? "it is not a regular file"
						   : NULL;
}

int folder_file(const struct folder *f, struct arena *a, const char *name, int flags, const char **why)
{
	struct stat st;
	int fd = openat(f->fd, name, flags | SAFELY, mode_of_new(f));
	*why = fd < 0 ? not_a_file(errno) : NULL;
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return close_for(fd, "it is not a regular file", why);
	const char *fault = fault_of(a, &st, f->trust);
	if (fault)
		return close_for(fd, fault, why);
	if (flags & O_CREAT)
		share(f, fd, &st);
	return fd;
}

char *folder_read(const struct folder *f, struct arena *a, const char *name, size_t most, size_t *len,
		  const char **why)
{
	int fd = folder_file(f, a, name, O_RDONLY, why);
	return fd < 0 ? NULL : file_read_open(a, fd, most, len);
}

int folder_new(const struct folder *f, struct arena *a, const char **name)
{
	static atomic_uint made;
	enum { TRIES = 100 };
	int fd = -1;
	for (int i = 0; i < TRIES && fd < 0; i++) {
		struct timespec now;
		const char *why;
		clock_gettime(CLOCK_REALTIME, &now);
		*name = arena_printf(a, "new-%d-%u-%lx", (int)getpid(), atomic_fetch_add(&made, 1), now.tv_nsec);
		fd = folder_file(f, a, *name, O_WRONLY | O_CREAT | O_EXCL, &why);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd;
}

static void close_listing(void *d)
{
	closedir(d);
}

const char **folder_list(const struct folder *f, struct arena *a, u32 *n)
{
	VEC(const char *) names = {0};
	struct cleanup c;
	int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (d) {
		cleanup_push(&c, close_listing, d);
		for (const struct dirent *e; (e = readdir(d));)
			vec_push(a, &names, arena_str(a, e->d_name, strlen(e->d_name)));
		cleanup_run(&c);
	}
	*n = names.len;
	return names.at;
}

/* True if every user can replace the file. In a folder with the sticky bit only the file's owner can. */
static bool is_open_to_all(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *folder = slash ? arena_str(a, path, MAX((size_t)(slash - path), 1)) : ".";
	struct stat st;
	return !stat(folder, &st) && st.st_mode & S_IWOTH && !(st.st_mode & S_ISVTX);
}

int own_file(struct arena *a, const char *path, const char **why)
{
	struct stat st;
	enum trust trust;
	*why = NULL;
	if (!find_trust(a, &trust, why))
		return -1;
	if (trust != TRUST_ALL && is_open_to_all(a, path)) {
		*why = "every user may write its folder";
		return -1;
	}
	int fd = open(path, O_RDWR | O_APPEND | O_CREAT | SAFELY, 0664);
	if (fd < 0) {
		*why = not_a_file(errno);
		return -1;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return close_for(fd, "it is not a regular file", why);
	if (trust == TRUST_USER && !is_mine(st.st_uid))
		return close_for(fd, "it belongs to another user", why);
	if (trust != TRUST_ALL && (st.st_nlink != 1 || st.st_mode & S_IWOTH))
		return close_for(fd, st.st_nlink != 1 ? "the file also has another name" : "every user may write it",
				 why);
	return fd;
}

void add_line(int fd, const char *line, size_t len)
{
	struct stat st;
	char last = '\n', begin = '\n';
	struct iovec parts[] = {{&begin, 0}, {(char *)(uintptr_t)line, len}};
	if (!fstat(fd, &st) && st.st_size && pread(fd, &last, 1, st.st_size - 1) == 1)
		parts[0].iov_len = last != '\n';
	ssize_t written = writev(fd, parts, ARRAY_LEN(parts)); /* one call: lines of several processes do not mix */
	(void)written; /* readers skip incomplete lines */
}

/* --- locks ------------------------------------------------------------------------------------------------------- */

static i64 now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (i64)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

enum lock folder_lock(int fd)
{
	i64 begin = now_ms(), pause = 1;
	enum lock got = LOCK_AT_ONCE;
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || now_ms() - begin > WAIT_MS)
			return LOCK_NEVER;
		nanosleep(&(struct timespec){0, pause * 1000000}, NULL);
		pause = MIN(pause * 2, MOST_PAUSE_MS);
		got = LOCK_LATER;
	}
	return got;
}

void folder_unlock(int fd)
{
	flock(fd, LOCK_UN);
	close(fd);
}

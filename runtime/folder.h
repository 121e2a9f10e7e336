/* Folders in which the library keeps files by itself: the disk cache, with compiled kernels and tunings. Whoever can
 * write there decides what a program runs, so a folder and its files must belong to the process's user or to root, and
 * nobody else may write them. A file is opened without following a symbolic link, and without waiting for a FIFO.
 *
 * $TL_CACHE_TRUST=group also takes folders of the process's groups, whose members may write them; all takes any. */
#ifndef TL_FOLDER_H
#define TL_FOLDER_H

#include <sys/types.h>

#include "base/arena.h"

enum trust { TRUST_USER, TRUST_GROUP, TRUST_ALL };

struct folder {
	int fd; /* -1: there is none that can be used */
	gid_t group;
	enum trust trust;
	const char *path;
};

/* Opens the folder; `make`: makes it, with those above, where it is not there. False: there is none. *why says why one
 * that is there is not trusted, or is NULL; texts in `a`. */
bool folder_open(struct folder *f, struct arena *a, const char *path, bool make, const char **why);
void folder_close(struct folder *f);

/* Opens a regular file of the folder; `flags` as open() takes them. -1: it cannot be opened. *why: it is there, but is
 * not trusted. */
int folder_file(const struct folder *f, struct arena *a, const char *name, int flags, const char **why);
/* The bytes of such a file, with a NUL behind their end; NULL as above, or there are more than `most`. */
char *folder_read(const struct folder *f, struct arena *a, const char *name, size_t most, size_t *len,
		  const char **why);
/* A new file under a name that nobody uses: new-… */
int folder_new(const struct folder *f, struct arena *a, const char **name);

/* Opens a file that the user has named, or makes it, to add lines to it: a regular file of the user's or root's, under
 * this name alone, where not every user may change it or put another in its place. -1: it cannot be opened; *why as
 * above. */
int own_file(struct arena *a, const char *path, const char **why);

/* Adds a line, which ends in a newline, to the end of an open file. Behind a line that another process was killed in, a
 * new one begins. */
void add_line(int fd, const char *line, size_t len);

/* Waits for others that hold the lock of the file, but not for long: a process that holds it may be stopped. */
enum lock { LOCK_AT_ONCE, LOCK_LATER, LOCK_NEVER };
enum lock folder_lock(int fd);
/* Gives the lock back, which a child that was forked meanwhile holds too, and closes the file. */
void folder_unlock(int fd);

#endif

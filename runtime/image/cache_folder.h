/* The folder of the disk cache, in which the library keeps compiled kernels and tunings. A user who can write into the
 * folder decides which code a program runs: the folder and its files must belong to the process's effective user or to
 * root, and no other user may write them. Files are opened without following symbolic links or waiting for FIFOs.
 *
 * $TL_CACHE_TRUST=group also trusts folders of the process's groups, and the members of the group. $TL_CACHE_TRUST=all
 * trusts every folder. */
#ifndef TL_IMAGE_CACHE_FOLDER_H
#define TL_IMAGE_CACHE_FOLDER_H

#include <sys/types.h>

#include "support/arena.h"

enum trust { TRUST_USER, TRUST_GROUP, TRUST_ALL };

struct folder {
	int fd; /* -1: the folder is not open */
	gid_t group;
	enum trust trust;
	const char *path;
};

/* Opens the folder; `make`: creates it and the folders above it if they do not exist. False: the folder cannot be used;
 * *why is the reason if it exists and is not trusted, else NULL. Texts are in `a`. */
bool folder_open(struct folder *f, struct arena *a, const char *path, bool make, const char **why);
void folder_close(struct folder *f);

/* Opens a regular file of the folder; `flags` are flags of open(). -1: the file cannot be used; *why is the reason if
 * it exists and is not trusted, else NULL. */
int folder_file(const struct folder *f, struct arena *a, const char *name, int flags, const char **why);
/* The bytes of a regular file of the folder, NUL-terminated. NULL: the file cannot be used (*why as for folder_file),
 * or has more than `most` bytes. */
char *folder_read(const struct folder *f, struct arena *a, const char *name, size_t most, size_t *len,
		  const char **why);
/* Creates a file under an unused name, which begins with "new-". -1: an error. */
int folder_new(const struct folder *f, struct arena *a, const char **name);

/* The names of the files in the folder; texts in `a`. */
const char **folder_list(const struct folder *f, struct arena *a, u32 *n);

/* Opens or creates a file that the user has named, to append lines. It must be a regular file of the effective user or
 * of root with a single hard link, and neither the file nor its folder may be writable by every user, except in folders
 * with the sticky bit. -1: the file cannot be used; *why as for folder_file. */
int own_file(struct arena *a, const char *path, const char **why);

/* Appends a line, which ends in a newline, to an open file. If the file does not end in a newline, because a process
 * was killed while it wrote, a newline is written first. */
void add_line(int fd, const char *line, size_t len);

/* Locks the file. Waits at most two seconds for the process that holds the lock: that process may be stopped. */
enum lock { LOCK_AT_ONCE, LOCK_LATER, LOCK_NEVER };
enum lock folder_lock(int fd);
/* Unlocks the file, also for child processes that were forked meanwhile, and closes it. */
void folder_unlock(int fd);

#endif

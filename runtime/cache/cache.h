/* The disk cache: compiled kernels, so that another process need not compile them again.
 *
 * A folder of kernel images, each in a file of its own that is named by a hash of all that it was made from but
 * imported files, whose hashes stand in the image. The image also holds the key: a renamed entry is not used. Files
 * come by rename, so that processes that share the folder see whole ones; what is damaged, foreign or made from files
 * that have changed since is ignored, and replaced. A lock file lets one process compile what others wait for. Where
 * the folder cannot be written, or is not trusted (runtime/image/cache_folder.h), nothing is kept.
 *
 * $TL_CACHE=0: none. $TL_CACHE_DIR: the folder; else tlc in $XDG_CACHE_HOME or in ~/.cache. $TL_CACHE_MB: the size
 * above which those that have not been used for the longest time are removed; 512 if it is no number. */
#ifndef TL_CACHE_CACHE_H
#define TL_CACHE_CACHE_H

#include "runtime/image/cache_folder.h"
#include "runtime/image/image.h"

/* Of these bytes, which are all that a kernel is made from, and of this compiler, the same in tlc and in libtl. False:
 * there is no cache; the key is made all the same. */
bool cache_make_key(const struct strbuf *made_from, struct cache_key *out);

/* False: there is no entry that can be used. said: gets a message if the entry exists and the user is to be told; or
 * NULL. */
bool cache_read(struct cache_key key, struct image *out, struct strbuf *said);
void cache_write(struct cache_key key, struct image *im);

/* A compilation that other processes and threads wait for: one of them compiles, the others read what it wrote. */
struct cache_claim {
	int folder, fd; /* -1: nothing is held */
	char name[40];
};
/* Waits while another one has claimed the key, but not for long: it may hang. True: the caller has it. */
bool cache_take(struct cache_key key, struct cache_claim *c);
/* In any case. */
void cache_give(struct cache_claim *c);

/* The folder's path, or NULL without one; in `a`. */
const char *cache_folder(struct arena *a);
/* See folder_open. */
bool cache_open(struct folder *f, struct arena *a, bool make, const char **why);
/* A message that says why the folder is not trusted; NULL: the folder is trusted, or does not exist. */
const char *cache_refused(struct arena *a);
/* A hash that tells this build of the compiler from others; 0: not known. */
u64 cache_build(void);
/* For tlc cache. */
/* Calls fn for each entry, with NULL and why where it cannot be used. */
void cache_each(void (*fn)(void *arg, const char *path, i64 bytes, const struct image *im, const char *why), void *arg);
/* Removes all entries; how many. */
u32 cache_clear(void);

#endif

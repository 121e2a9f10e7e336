/* The disk cache: compiled kernels, so that other processes need not compile them again.
 *
 * The cache is a folder of kernel images. A file's name is a hash of everything that determines the code, except
 * imported files, whose hashes are in the image. The image also has the key, so a renamed entry is not used. Files are
 * created under a temporary name and renamed, so processes that share the folder see complete files only. Damaged
 * files, foreign files, and files of changed imports are ignored and replaced. A lock file lets one process compile
 * while others wait. If the folder is not writable or not trusted (runtime/image/cache_folder.h), nothing is cached.
 *
 * $TL_CACHE=0: no cache. $TL_CACHE_DIR: the folder; default tlc in $XDG_CACHE_HOME or in ~/.cache. $TL_CACHE_MB: the
 * size above which the least recently used entries are removed; default 512, also for a text that is not a number. */
#ifndef TL_CACHE_CACHE_H
#define TL_CACHE_CACHE_H

#include "support/recover.h"
#include "runtime/image/cache_folder.h"
#include "runtime/image/image.h"

/* The key for these bytes, which determine the kernel, and for this compiler; tlc and libtl have the same keys. False:
 * there is no cache; the key is valid nevertheless. */
bool cache_make_key(const struct strbuf *made_from, struct cache_key *out);

/* Reads an entry. False: there is no usable entry. said: receives a message if the entry exists and the user should be
 * warned; or NULL. */
bool cache_read(struct cache_key key, struct image *out, struct strbuf *said);
void cache_write(struct cache_key key, struct image *im);

/* The claim to compile a kernel: the process or thread that has it compiles, and the others wait and read the entry. */
struct cache_claim {
	int folder, fd; /* -1: no claim */
	char name[40];
};
/* Waits while another process or thread has the claim, but not for long, because it may hang. True: the caller has
 * it. */
bool cache_take(struct cache_key key, struct cache_claim *c);
/* Ends the claim. To be called whatever cache_take returned. */
void cache_give(struct cache_claim *c);

/* The folder's path, in `a`; NULL: there is no cache. */
const char *cache_folder(struct arena *a);
/* The open folder and the memory of a use of the cache. Cleanups release both at cache_end, or after a fault. */
struct cache_use {
	struct arena arena;
	struct folder folder;
	struct cleanup memory, open;
};
/* Opens the folder; `make`: creates it if it does not exist. False: the folder cannot be used. cache_end must be called
 * in both cases. */
bool cache_begin(struct cache_use *u, bool make);
void cache_end(struct cache_use *u);
/* A message with the reason why the folder is not trusted; NULL: the folder is trusted, or does not exist. */
const char *cache_refused(struct arena *a);
/* A hash that identifies this build of the compiler; 0: unknown. */
u64 cache_build(void);
/* The text that it is made from: it differs between builds. The library of the Python package exports it. */
TL_API const char *tlc_identity(void);
/* For tlc cache. */
/* Calls fn for each entry. An entry that cannot be used has a NULL image and the reason in `why`. */
void cache_each(void (*fn)(void *arg, const char *path, i64 bytes, const struct image *im, const char *why), void *arg);
/* Removes all entries and returns their number. */
u32 cache_clear(void);

#endif

/* Images that contexts share: an image that one context has compiled need not be compiled again by another context
 * whose device has the same target. An entry refers to the image of a variant in one of the contexts. Other contexts
 * copy it. */
#ifndef TL_IMAGE_IMAGE_STORE_H
#define TL_IMAGE_IMAGE_STORE_H

#include "runtime/image/image.h"

struct store;

/* A store with one owner. NULL: out of memory. */
struct store *store_new(void);
struct store *store_keep(struct store *s);
/* Removes an owner; the last owner frees the store. */
void store_drop(struct store *s);
bool store_empty(struct store *s);
/* Begins a call on a context with this store, and keeps the store alive. False: other threads were in such calls when
 * the process was forked. */
bool store_enter(struct store *s);
void store_leave(struct store *s);

/* Copies the image with this key to *out. Waits if another thread is compiling it. False: the caller must compile it,
 * and must then call store_settle. */
bool store_take(struct store *s, struct cache_key key, struct image *out);
/* Publishes the image, which must stay valid until store_forget. NULL: the compilation failed. */
void store_settle(struct store *s, struct cache_key key, const struct image *im);
void store_forget(struct store *s, const struct image *im);

/* True if the files that the kernel imports are unchanged. */
bool store_imports_same(const struct image *im);

#endif

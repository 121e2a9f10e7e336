/* Images that contexts share: what one of them has compiled, another one on a device of the same target need not
 * compile again. An entry is an image of a variant that lives in one of the contexts; another takes a copy. */
#ifndef TL_IMAGE_IMAGE_STORE_H
#define TL_IMAGE_IMAGE_STORE_H

#include "runtime/image/image.h"

struct store;

/* With one owner. NULL: out of memory. */
struct store *store_new(void);
struct store *store_keep(struct store *s);
/* The last owner frees it. */
void store_drop(struct store *s);
bool store_empty(struct store *s);
/* A call on a context with this store begins, which keeps it. False: other threads were in such calls when the process
 * was forked. */
bool store_enter(struct store *s);
void store_leave(struct store *s);

/* A copy of the image; waits where somebody else is making it. False: it is the caller's to make, who must say how that
 * ended by store_settle. */
bool store_take(struct store *s, struct cache_key key, struct image *out);
/* The image, which stays where it is until store_forget; NULL: there will be none. */
void store_settle(struct store *s, struct cache_key key, const struct image *im);
void store_forget(struct store *s, const struct image *im);

/* Are the files that the kernel imports as they were? */
bool store_imports_same(const struct image *im);

#endif

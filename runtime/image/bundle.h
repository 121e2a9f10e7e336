/* The images of one kernel for one target, compressed: what `tlc build` writes. Variants of a kernel have most of their
 * text in common, so that together they take a tenth of the memory.
 *
 * As bytes: a header, the kernel's name and the target as texts with their NUL, and LZMA2 data of the images, each with
 * its length in front. */
#ifndef TL_IMAGE_BUNDLE_H
#define TL_IMAGE_BUNDLE_H

#include "support/arena.h"
#include "runtime/tl.h"

enum { BUNDLE_VERSION = 1, MAX_BUNDLED = 4096, MAX_BUNDLE_BYTES = 1 << 28 };
static const char bundle_magic[8] = "tlbundl";
struct bundle_header {
	char magic[8];
	u32 version, count; /* of images */
	u64 bytes;          /* decompressed */
	u64 hash;           /* of what follows the header */
};
/* Bytes of the compression's dictionary: all that is compressed. */
static inline u32 bundle_dictionary(size_t bytes)
{
	return (u32)MAX(bytes, 4096);
}

/* In `a`; NULL: they are too many bytes. */
const char *bundle_write(struct arena *a, const char *kernel, const char *target, const tl_blob *images, u32 n,
			 size_t *len);

struct bundle {
	const char *kernel, *target;
	u32 count; /* of images */
	const void *data;
	size_t data_bytes, bytes; /* of the data, and of what it decompresses to */
};
/* Do these bytes begin as those of a bundle? */
bool bundle_is(const void *bytes, size_t len);
/* NULL, or why they are none that can be used. `out` points into them. */
const char *bundle_open(struct bundle *out, const void *bytes, size_t len);
/* Its images, out->count of them, in `a`. NULL, or what is wrong. */
const char *bundle_read(const struct bundle *b, struct arena *a, tl_blob *images);

#endif

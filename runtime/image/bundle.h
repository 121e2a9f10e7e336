/* A bundle: the compressed images of one kernel for one target, which `tlc build` writes. Variants of a kernel share
 * most of their text, so a bundle has a tenth of the size of its images.
 *
 * The bytes are a header, the kernel's name and the target as NUL-terminated texts, and LZMA2 data of the images. The
 * length of each image precedes it. */
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
	u64 hash;           /* of the bytes after the header */
};
/* The size in bytes of the compressor's dictionary: it covers all data. */
static inline u32 bundle_dictionary(size_t bytes)
{
	return (u32)MAX(bytes, 4096);
}

/* The bundle's bytes, in `a`. NULL: the images have too many bytes. */
const char *bundle_write(struct arena *a, const char *kernel, const char *target, const tl_blob *images, u32 n,
			 size_t *len);

struct bundle {
	const char *kernel, *target;
	u32 count; /* of images */
	const void *data;
	size_t data_bytes, bytes; /* of the compressed data, and of the decompressed data */
};
/* True if these bytes begin like a bundle. */
bool bundle_is(const void *bytes, size_t len);
/* NULL, or the reason why the bytes are not a usable bundle. `out` points into the bytes. */
const char *bundle_open(struct bundle *out, const void *bytes, size_t len);
/* Decompresses the b->count images into `images`, in `a`. NULL, or the reason of a failure. */
const char *bundle_read(const struct bundle *b, struct arena *a, tl_blob *images);

#endif

#include "runtime/image/bundle.h"

#include <lzma.h>

#include "support/map.h"

bool bundle_is(const void *bytes, size_t len)
{
	return len >= sizeof bundle_magic && !memcmp(bytes, bundle_magic, sizeof bundle_magic);
}

const char *bundle_open(struct bundle *out, const void *bytes, size_t len)
{
	struct bundle_header h;
	*out = (struct bundle){0};
	if (!bundle_is(bytes, len) || len < sizeof h)
		return "it is not a bundle of images";
	memcpy(&h, bytes, sizeof h);
	const char *at = (const char *)bytes + sizeof h, *end = (const char *)bytes + len, *texts[2];
	if (h.version != BUNDLE_VERSION)
		return "it was written by another version of tlc";
	if (h.hash != hash_bytes(at, (size_t)(end - at), 0) || !h.count || h.count > MAX_BUNDLED ||
	    h.bytes > MAX_BUNDLE_BYTES)
		return "it is damaged";
	for (u32 i = 0; i < ARRAY_LEN(texts); i++) {
		const char *nul = memchr(at, 0, (size_t)(end - at));
		if (!nul)
			return "it is damaged";
		texts[i] = at;
		at = nul + 1;
	}
	*out = (struct bundle){texts[0], texts[1], h.count, at, (size_t)(end - at), (size_t)h.bytes};
	return NULL;
}

const char *bundle_read(const struct bundle *b, struct arena *a, tl_blob *images)
{
	lzma_options_lzma options = {.dict_size = bundle_dictionary(b->bytes)};
	const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
	size_t in = 0, out = 0;
	u8 *bytes = arena_array(a, u8, b->bytes + 1);
	lzma_ret r = lzma_raw_buffer_decode(filters, NULL, b->data, &in, b->data_bytes, bytes, &out, b->bytes);
	if (r == LZMA_MEM_ERROR)
		return "not enough memory for it";
	if (r != LZMA_OK || in != b->data_bytes || out != b->bytes)
		return "it is damaged";
	const u8 *at = bytes, *end = bytes + b->bytes;
	for (u32 i = 0; i < b->count; i++) {
		u64 size = 0;
		if ((size_t)(end - at) < sizeof size)
			return "it is damaged";
		memcpy(&size, at, sizeof size);
		at += sizeof size;
		if (size > (u64)(end - at))
			return "it is damaged";
		images[i] = (tl_blob){at, (size_t)size};
		at += size;
	}
	return at == end ? NULL : "it is damaged";
}

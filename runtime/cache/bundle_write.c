/* Writing bundles, which only compilers do. */
#include <lzma.h>

#include "support/map.h"
#include "runtime/image/bundle.h"

const char *bundle_write(struct arena *a, const char *kernel, const char *target, const tl_blob *images, u32 n,
			 size_t *len)
{
	struct strbuf plain = {.arena = a}, out = {.arena = a};
	struct bundle_header h = {.version = BUNDLE_VERSION, .count = n};
	for (u32 i = 0; i < n; i++) {
		u64 size = images[i].size;
		sb_add(&plain, (const char *)&size, sizeof size);
		sb_add(&plain, images[i].bytes, images[i].size);
		if (plain.len > MAX_BUNDLE_BYTES)
			return NULL;
	}
	lzma_options_lzma options;
	const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
	size_t room = plain.len + plain.len / 2 + 4096, packed = 0;
	u8 *bytes = arena_array(a, u8, room);
	lzma_lzma_preset(&options, 9);
	options.dict_size = bundle_dictionary(plain.len);
	if (lzma_raw_buffer_encode(filters, NULL, (const u8 *)plain.at, plain.len, bytes, &packed, room) != LZMA_OK)
		return NULL;
	memcpy(h.magic, bundle_magic, sizeof h.magic);
	h.bytes = plain.len;
	sb_add(&out, (const char *)&h, sizeof h);
	sb_add(&out, kernel, strlen(kernel) + 1);
	sb_add(&out, target, strlen(target) + 1);
	sb_add(&out, (const char *)bytes, packed);
	h.hash = hash_bytes(out.at + sizeof h, out.len - sizeof h, 0);
	memcpy(out.at, &h, sizeof h);
	*len = out.len;
	return out.at;
}

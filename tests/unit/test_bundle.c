/* Bundles of images: what is written is read back, and nothing damaged does harm or is taken for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/map.h"
#include "random_bits.h"
#include "runtime/image/bundle.h"

enum { MOST = 40, HEADER_BYTES = 32, HASH_AT = 24 };

/* Texts that have much in common. */
static u32 random_blobs(struct arena *a, tl_blob *out)
{
	static const char *const words[] = {"add.s32 %r1, %r2, ", "ld.global.b32 ", "mad.lo.s32\n", ";\n", "%rd"};
	u32 n = 1 + (u32)(random_bits() % MOST);
	for (u32 i = 0; i < n; i++) {
		struct strbuf text = {.arena = a};
		sb_puts(&text, "");
		for (u64 k = random_bits() % 200; k--;)
			sb_printf(&text, "%s%u", words[random_bits() % ARRAY_LEN(words)], (u32)(random_bits() % 100));
		out[i] = (tl_blob){text.at, text.len};
	}
	return n;
}

/* From a copy of just these bytes, so that reading behind them is noticed. */
static const char *read_exactly(const char *bytes, size_t len, struct arena *a, struct bundle *b, tl_blob *images)
{
	char *copy = malloc(len ? len : 1);
	assert_non_null(copy);
	memcpy(copy, bytes, len);
	const char *why = bundle_open(b, copy, len);
	why = why ? why : bundle_read(b, a, images);
	free(copy);
	return why;
}

static void what_is_written_is_read(void **state)
{
	(void)state;
	for (int n = 0; n < 200; n++) {
		struct arena a = {0};
		struct bundle b;
		tl_blob blobs[MOST], *read = arena_array(&a, tl_blob, MOST);
		u32 count = random_blobs(&a, blobs);
		size_t len, bytes = 0;
		const char *packed = bundle_write(&a, "kernel", "cuda:sm_90a", blobs, count, &len);
		assert_null(bundle_open(&b, packed, len));
		assert_string_equal(b.kernel, "kernel");
		assert_string_equal(b.target, "cuda:sm_90a");
		assert_int_equal(b.count, count);
		assert_null(bundle_read(&b, &a, read));
		for (u32 i = 0; i < count; i++) {
			assert_int_equal(read[i].size, blobs[i].size);
			assert_memory_equal(read[i].bytes, blobs[i].bytes, blobs[i].size);
			bytes += blobs[i].size;
		}
		assert_true(bytes < 2000 || len < bytes / 2);
		arena_free(&a);
	}
}

static void damage_is_noticed(void **state)
{
	(void)state;
	struct arena a = {0};
	struct bundle b;
	tl_blob blobs[MOST], *read = arena_array(&a, tl_blob, MOST * 256);
	size_t len;
	char *bytes = (char *)bundle_write(&a, "k", "cpu:avx2", blobs, random_blobs(&a, blobs), &len);
	for (size_t i = 0; i < len; i++) {
		char bit = (char)(1 << i % 8);
		bytes[i] ^= bit;
		assert_true(bundle_open(&b, bytes, len) || b.count > MOST * 256 || bundle_read(&b, &a, read));
		bytes[i] ^= bit;
		assert_non_null(read_exactly(bytes, i, &a, &b, read));
	}
	arena_free(&a);
}

/* Whoever writes the hash too. */
static void nonsense_does_no_harm(void **state)
{
	(void)state;
	u32 refused = 0;
	for (int n = 0; n < 3000; n++) {
		struct arena a = {0};
		struct bundle b;
		tl_blob blobs[MOST], *read = arena_array(&a, tl_blob, MOST);
		size_t len;
		char *bytes = (char *)bundle_write(&a, "k", "cpu:avx2", blobs, random_blobs(&a, blobs), &len);
		for (u64 k = random_bits() % 3 + 1; k--;)
			bytes[HEADER_BYTES + random_bits() % (len - HEADER_BYTES)] = (char)random_bits();
		u64 hash = hash_bytes(bytes + HEADER_BYTES, len - HEADER_BYTES, 0);
		memcpy(bytes + HASH_AT, &hash, sizeof hash);
		refused += read_exactly(bytes, len, &a, &b, read) != NULL;
		arena_free(&a);
	}
	assert_in_range(refused, 500, 2999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_written_is_read),
					   cmocka_unit_test(damage_is_noticed),
					   cmocka_unit_test(nonsense_does_no_harm)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

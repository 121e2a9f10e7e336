/* Mutations of kernel images for fuzzers: their checksums made right, and their fields changed. */
#ifndef TL_FUZZ_MUTATE_H
#define TL_FUZZ_MUTATE_H

#include <string.h>

#include "runtime/image/bundle.h"
#include "runtime/device/device.h"
#include "runtime/image/image.h"
#include "runtime/launch/specialize.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerMutate(u8 *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t most, unsigned seed);

enum { IMAGE_HEADER = 32, IMAGE_LENGTH = 16, IMAGE_HASH = 24 };

/* Sets length and checksum in the header of an image. */
static inline void mend_image(u8 *data, size_t size)
{
	if (!image_is(data, size) || size < IMAGE_HEADER)
		return;
	u64 bytes = size - IMAGE_HEADER, hash = hash_bytes((const char *)data + IMAGE_HEADER, (size_t)bytes, 0);
	memcpy(data + IMAGE_LENGTH, &bytes, sizeof bytes);
	memcpy(data + IMAGE_HASH, &hash, sizeof hash);
}

static inline void mend_bundle(u8 *data, size_t size)
{
	struct bundle_header h;
	if (size < sizeof h)
		return;
	memcpy(&h, data, sizeof h);
	h.hash = hash_bytes((const char *)data + sizeof h, size - sizeof h, 0);
	memcpy(data, &h, sizeof h);
}

static inline u64 next_random(u64 *state)
{
	u64 z = *state += 0x9E3779B97F4A7C15u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	return z ^ z >> 31;
}

/* Other code: a mutation of the text. */
static inline void mutate_code(struct image *im)
{
	size_t most = im->code_bytes + 64;
	char *code = arena_array(&im->arena, char, most + 1);
	memcpy(code, im->code, im->code_bytes);
	im->code_bytes = (u32)LLVMFuzzerMutate((u8 *)code, im->code_bytes, most);
	code[im->code_bytes] = 0;
	im->code = code;
}

static inline void mutate_slots(struct image *im, u64 *random)
{
	u32 i = im->nslots ? (u32)(next_random(random) % im->nslots) : 0;
	switch (next_random(random) % 6) {
	case 0: /* one more, which is the same as another one */
		if (!im->nslots || im->nslots == MAX_KERNEL_PARAMS)
			return;
		struct slot *more = arena_array(&im->arena, struct slot, im->nslots + 2);
		memcpy(more, im->slots, im->nslots * sizeof *more);
		more[im->nslots++] = more[i];
		im->slots = more;
		return;
	case 1: im->nslots -= im->nslots > 0 && !im->nmaps && !im->napart && !im->nlimits; return;
	case 2: im->slots[i].pointers = (i32)(next_random(random) % 3); return;
	case 3:
		do
			im->slots[i].dtype = (enum dtype)(next_random(random) % DT_COUNT);
		while (!dtype_has_values((enum dtype)im->slots[i].dtype));
		return;
	case 4: im->slots[i].divisibility = 1 << next_random(random) % 12; return;
	default: im->slots[i].leaf = (u32)(next_random(random) % MAX_KERNEL_PARAMS); return;
	}
}

static inline void mutate_maps(struct image *im, u64 *random)
{
	if (!im->nmaps)
		return;
	struct tensor_map_param *m = &im->maps[next_random(random) % im->nmaps];
	switch (next_random(random) % 6) {
	case 0: m->box[next_random(random) % 3] = (i32)(next_random(random) % 257); return;
	case 1: m->elem_bytes = 1 << next_random(random) % 4; return;
	case 2: m->swizzle = (i32)(next_random(random) % 129); return;
	case 3: m->distance.times = (i64)next_random(random) >> next_random(random) % 64; return;
	case 4: m->tensor = (i32)(next_random(random) % (im->nslots + 1)) - 1; return;
	default: im->nmaps--; return;
	}
}

static inline void mutate_numbers(struct image *im, u64 *random)
{
	switch (next_random(random) % 8) {
	case 0: im->num_warps = 1 + (i32)(next_random(random) % 36); return;
	case 1: im->shared_bytes = (i32)(next_random(random) % (1 << 20)); return;
	case 2: im->cluster = 1 + (i32)(next_random(random) % 16); return;
	case 3: im->persistent ^= im->nlimits == 0; return;
	case 4: im->pairs ^= true; return;
	case 5: im->grids = 1 + (u32)(next_random(random) % ((1 << GRID_KINDS) - 1)); return;
	case 6: im->narrow_offsets ^= true; return;
	default: im->scratch_bytes = next_random(random) >> (24 + next_random(random) % 40); return;
	}
}

/* The image with another field. 0: it is none. */
static inline size_t mutate_image(u8 *data, size_t size, size_t most, unsigned seed)
{
	struct image im;
	struct arena a = {0};
	u64 random = seed;
	size_t len;
	mend_image(data, size);
	if (image_read(&im, data, size))
		return 0;
	switch (next_random(&random) % 4) {
	case 0: mutate_code(&im); break;
	case 1: mutate_slots(&im, &random); break;
	case 2: mutate_maps(&im, &random); break;
	default: mutate_numbers(&im, &random); break;
	}
	const char *bytes = image_write(&im, &a, &len);
	len = len <= most ? len : 0;
	memcpy(data, bytes, len);
	image_free(&im);
	arena_free(&a);
	return len;
}

#endif

/* Fuzzing kernel images and bundles of them: any bytes in, their checksum made right, and what can be read is loaded on
 * the simulator and launched there, or linked for the processor. `make fuzz` builds it.
 *
 *   build-fuzz/fuzz-image CORPUS…      the corpus: what `tlc --emit image` writes
 *
 * Half of the mutations are of fields: what is mutated as bytes is seldom read. */
#include <stdlib.h>
#include <string.h>

#include "mutate.h"
#include "runtime/image/bundle.h"
#include "runtime/device/conditions.h"
#include "runtime/device/grid.h"
#include "runtime/device/object_linker.h"

enum { BUFFER = 1 << 16 };

static struct device *open_sim(void)
{
	static struct device *dev;
	if (!dev) {
		setenv("TL_SIM_MAX_STEPS", "3000", 1);
		if (sim_ops.open(0, &dev))
			abort();
		dev->threads = 1;
	}
	return dev;
}

/* With a buffer for each pointer, and small numbers, as tensor maps need them. */
static void launch(struct device *dev, const struct loaded *k, void *buffer, u64 seed)
{
	const struct image *im = k->image;
	static const u32 grid[3] = {2, 1, 1};
	struct launch l;
	tl_arg leaves[MAX_KERNEL_PARAMS];
	memset(leaves, 0, sizeof leaves);
	for (u32 i = 0; i < im->nslots; i++) {
		const struct slot *s = &im->slots[i];
		l.bits[i] = s->pointers ? (u64)(uintptr_t)buffer : 16 + (seed >> i % 32 & 15) * 16;
		if (s->pointers)
			leaves[s->leaf] = tl_range((tl_dtype)s->dtype, buffer, BUFFER);
	}
	struct broken b = conditions_broken(dev, k, &(struct arguments){leaves, l.bits, grid});
	if (!is_broken(&b))
		loaded_start(dev, k, &(tl_config){.grid = {2}}, grid, NULL, &l);
}

struct call {
	struct image *im;
	struct loaded loaded;
	void *buffer;
	u64 seed;
};

static void run(void *call)
{
	struct call *c = call;
	struct device *dev = open_sim();
	if (!strncmp(c->im->target, "cpu", 3)) {
		struct arena a = {0};
		const char *error;
		void *address;
		struct linked *linked =
			link_object(&a, c->im->code, c->im->code_bytes, c->im->name, &address, &error);
		if (linked)
			unlink_object(linked);
		arena_free(&a);
		return;
	}
	if (dev->ops->alloc(dev, BUFFER, &c->buffer) || device_fill(dev, c->buffer, 0, BUFFER))
		return;
	if (!loaded_open(dev, &(struct device_load){.image = c->im}, &c->loaded))
		launch(dev, &c->loaded, c->buffer, c->seed);
}

static void try_image(const u8 *data, size_t size)
{
	struct image im;
	char why[200];
	struct recovery r = {.text = why, .size = sizeof why};
	if (image_read(&im, data, size))
		return;
	struct arena a = {0};
	struct strbuf text = {.arena = &a};
	image_show(&im, &text);
	arena_free(&a);
	struct call c = {.im = &im, .seed = hash_bytes(data, size, 0)};
	if (protect(&r, run, &c) == FAULT_BUG)
		abort();
	struct device *dev = open_sim();
	loaded_close(dev, &c.loaded);
	if (c.buffer)
		dev->ops->free(dev, c.buffer);
	image_free(&im);
}

static void try_bundle(const u8 *data, size_t size)
{
	struct bundle b;
	struct arena a = {0};
	if (!bundle_open(&b, data, size) && b.bytes <= 1 << 20) {
		tl_blob *images = arena_array(&a, tl_blob, b.count);
		for (u32 i = 0; !bundle_read(&b, &a, images) && i < b.count; i++)
			try_image(images[i].bytes, images[i].size);
	}
	arena_free(&a);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u8 *copy = malloc(size + !size);
	memcpy(copy, data, size);
	if (bundle_is(copy, size)) {
		mend_bundle(copy, size);
		try_bundle(copy, size);
	} else {
		mend_image(copy, size);
		try_image(copy, size);
	}
	free(copy);
	return 0;
}

size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t most, unsigned seed)
{
	size_t fields = seed % 2 ? mutate_image(data, size, most, seed) : 0;
	return fields ? fields : LLVMFuzzerMutate(data, size, most);
}

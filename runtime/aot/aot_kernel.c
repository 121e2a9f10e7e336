/* Kernels compiled ahead of time: images, single or in bundles. The images for this device are loaded at once, and a
 * launch uses the first image that its arguments allow. This code does not need the compiler. A loaded kernel is
 * immutable. */
#include <stdlib.h>

#include "runtime/image/bundle.h"
#include "runtime/device/conditions.h"
#include "runtime/device/grid.h"
#include "runtime/api/api_guard.h"

enum { MAX_BLOBS = 4096 };

struct built_image {
	struct image image;
	struct loaded loaded;
};

/* The contents of a blob: a bundle of images for one target, or an image. */
struct piece {
	bool is_bundle;
	struct bundle bundle;
	struct image image;
};

struct tl_compiled {
	struct link link; /* first */
	tl_context *ctx;
	struct built_image *at;
	u32 len, nargs;
	/* during loading */
	struct piece *pieces;
	u32 npieces;
	struct arena scratch;
};

/* --- loading ---------------------------------------------------------------------------------------------------- */

/* A rank of code for `target` on the device: the highest is best; 0: it cannot run. */
static int suits(const char *target, const struct target *device)
{
	struct target t;
	if (!target_parse(target, &t) || !target_runs(device, &t))
		return 0;
	return t.kind == TARGET_CUDA ? 2 * t.sm + t.arch_specific : 1 + ((int)t.level << 16 | (int)t.extensions);
}

static tl_status damaged(u32 blob, const char *why)
{
	return failed(TL_ERR_ARGUMENT, "tl_compiled_load: image %u: %s", blob, why);
}

/* Reads the headers; nothing is decompressed yet. */
static tl_status open_pieces(struct tl_compiled *c, const tl_blob *blobs)
{
	for (u32 i = 0; i < c->npieces; i++) {
		struct piece *p = &c->pieces[i];
		p->is_bundle = bundle_is(blobs[i].bytes, blobs[i].size);
		const char *why = p->is_bundle ? bundle_open(&p->bundle, blobs[i].bytes, blobs[i].size)
					       : image_read(&p->image, blobs[i].bytes, blobs[i].size);
		if (why)
			return damaged(i, why);
	}
	return TL_OK;
}

static const char *kernel_of(const struct piece *p) { return p->is_bundle ? p->bundle.kernel : p->image.name; }
static const char *target_of(const struct piece *p) { return p->is_bundle ? p->bundle.target : p->image.target; }

static tl_status suits_none(const struct tl_compiled *c, const struct target *device)
{
	const struct piece *p = c->pieces;
	if (device->kind == TARGET_CUDA)
		failed(TL_ERR_DEVICE, "%s was not compiled for this GPU, sm_%d%s, but for", kernel_of(p), device->sm,
		       device->arch_specific ? "a" : "");
	else
		failed(TL_ERR_DEVICE, "%s was not compiled for this CPU, but for", kernel_of(p));
	for (u32 i = 0; i < c->npieces; i++)
		if (!i || strcmp(target_of(&p[i]), target_of(&p[i - 1])) != 0)
			failed_more("%s %s", i ? "," : "", target_of(&p[i]));
	return TL_ERR_DEVICE;
}

/* Takes the images of piece i. */
static tl_status take(struct tl_compiled *c, u32 i)
{
	struct piece *p = &c->pieces[i];
	if (!p->is_bundle) {
		c->at[c->len++].image = p->image;
		p->image = (struct image){0};
		return TL_OK;
	}
	tl_blob *images = arena_array(&c->scratch, tl_blob, p->bundle.count);
	const char *why = bundle_read(&p->bundle, &c->scratch, images);
	for (u32 k = 0; k < p->bundle.count && !why; k++) {
		const struct image *im = &c->at[c->len].image;
		why = image_read(&c->at[c->len].image, images[k].bytes, images[k].size);
		c->len += !why;
		if (!why && (strcmp(im->target, p->bundle.target) != 0 || strcmp(im->name, p->bundle.kernel) != 0))
			why = "it contains an image of another kernel or target than its header states";
	}
	return why ? damaged(i, why) : TL_OK;
}

/* Takes the images of the best rank, and counts the arguments. */
static tl_status choose(struct tl_compiled *c)
{
	struct device *dev = c->ctx->dev;
	if (!dev->ops->target)
		return failed(TL_ERR_DEVICE, "%s was compiled for other devices: %s does not run images",
			      kernel_of(c->pieces), dev->ops->name);
	const struct target t = dev->ops->target(dev);
	int best = 0;
	u32 n = 0;
	for (u32 i = 0; i < c->npieces; i++)
		best = MAX(best, suits(target_of(&c->pieces[i]), &t));
	if (!best)
		return suits_none(c, &t);
	for (u32 i = 0; i < c->npieces; i++)
		n += c->pieces[i].is_bundle ? c->pieces[i].bundle.count : 1;
	c->at = tl_calloc(n * sizeof *c->at);
	for (u32 i = 0; i < c->npieces; i++) {
		tl_status s = suits(target_of(&c->pieces[i]), &t) == best ? take(c, i) : TL_OK;
		if (s)
			return s;
	}
	for (u32 i = 0; i < c->len; i++) {
		const struct image *im = &c->at[i].image;
		for (u32 k = 0; k < im->nslots; k++)
			c->nargs = MAX(c->nargs, im->slots[k].leaf + 1);
		for (u32 k = 0; k < im->nones; k++)
			c->nargs = MAX(c->nargs, im->ones[k] + 1);
	}
	return TL_OK;
}

static void free_pieces(struct tl_compiled *c)
{
	for (u32 i = 0; i < c->npieces; i++)
		image_free(&c->pieces[i].image);
	free(c->pieces);
	c->pieces = NULL;
	c->npieces = 0;
	arena_free(&c->scratch);
}

static void compiled_free(void *compiled)
{
	struct tl_compiled *c = compiled;
	struct device *dev = c->ctx->dev;
	for (u32 i = 0; i < c->len; i++) {
		loaded_close(dev, &c->at[i].loaded);
		image_free(&c->at[i].image);
	}
	free_pieces(c);
	free(c->at);
	free(c);
}

static void free_owned(struct link *l)
{
	compiled_free(l);
}

static tl_status load_all(struct tl_compiled *c, const tl_blob *images)
{
	struct device *dev = c->ctx->dev;
	tl_status s = open_pieces(c, images);
	if (!s)
		s = choose(c);
	free_pieces(c);
	for (u32 i = 0; i < c->len && !s; i++)
		s = loaded_open(dev, &(struct device_load){.image = &c->at[i].image}, &c->at[i].loaded);
	return s;
}

API_FUNCTION(tl_compiled_load, ctx, (tl_context *ctx, const tl_blob *images, size_t n, tl_compiled **out),
	     (ctx, images, n, out))
{
	if (out)
		*out = NULL;
	if (!ctx || !images || !out)
		return failed(TL_ERR_ARGUMENT, "tl_compiled_load: %s NULL",
			      !ctx     ? "the context is"
			      : images ? "out is"
				       : "the images are");
	if (!n || n > MAX_BLOBS)
		return failed(TL_ERR_ARGUMENT, "tl_compiled_load: %zu images; 1 to %d are possible", n, MAX_BLOBS);
	struct tl_compiled *c = tl_calloc(sizeof *c);
	*c = (struct tl_compiled){.link.free = free_owned, .ctx = ctx};
	struct cleanup cleanup;
	cleanup_push(&cleanup, compiled_free, c);
	c->pieces = tl_calloc(n * sizeof *c->pieces);
	c->npieces = (u32)n;
	tl_status s = load_all(c, images);
	cleanup_drop(&cleanup);
	if (s) {
		compiled_free(c);
		return s;
	}
	context_enter(ctx, &ctx->owned, &c->link);
	*out = c;
	return TL_OK;
}

API_DESTRUCTOR(tl_compiled_destroy, c ? c->ctx : NULL, (tl_compiled *c), (c))
{
	if (!c)
		return;
	tl_context *ctx = c->ctx;
	ctx->dev->ops->synchronize(ctx->dev); /* it may be running, on any stream */
	context_remove(ctx, &c->link);
	compiled_free(c);
	context_leave(ctx);
}

/* --- launching -------------------------------------------------------------------------------------------------- */

/* A pointer argument with the size of the memory from the address to the end of its allocation. */
static tl_arg pointer_to(struct device *dev, enum dtype d, u64 address)
{
	void *p = (void *)(uintptr_t)address, *base;
	size_t size, known = 0;
	if (p && dev->ops->allocation && dev->ops->allocation(dev, p, &base, &size))
		known = (size_t)((uintptr_t)base + size - (uintptr_t)p);
	return tl_range((tl_dtype)d, p, known);
}

/* Checks that pointers are aligned to their elements, as tl_launch does: every variant relies on it. */
static tl_status check_pointers(const struct image *im, const uint64_t *args)
{
	for (u32 i = 0; i < im->nslots; i++) {
		const struct slot *s = &im->slots[i];
		u64 bytes = s->pointers > 1 ? sizeof(void *) : (u64)dtype_bytes(s->dtype);
		if (s->pointers && args[s->leaf] % bytes)
			return failed(TL_ERR_ARGUMENT,
				      "%s: '%s' is 0x%llx, which is not aligned to its elements of %llu bytes",
				      im->name, s->name, (unsigned long long)args[s->leaf], (unsigned long long)bytes);
	}
	return TL_OK;
}

/* True if the image can run with these arguments. Writes the bits of its slots to l. `leaves` caches the pointer
 * arguments, the only arguments that conditions use. */
static bool allows(struct device *dev, const struct loaded *k, const uint64_t *args, const u32 *grid,
		   enum grid_kind kind, struct launch *l, tl_arg *leaves)
{
	const struct image *im = k->image;
	if (!serves_grid(im, kind))
		return false;
	for (u32 i = 0; i < im->nones; i++)
		if (args[im->ones[i]] != 1)
			return false;
	for (u32 i = 0; i < im->nslots; i++) {
		const struct slot *s = &im->slots[i];
		l->bits[i] = args[s->leaf];
		if (s->divisibility > 1 && l->bits[i] & ((u64)s->divisibility - 1))
			return false;
		if (s->pointers && !leaves[s->leaf].bytes)
			leaves[s->leaf] = pointer_to(dev, s->dtype, l->bits[i]);
	}
	struct broken b = conditions_broken(dev, k, &(struct arguments){leaves, l->bits, grid});
	return !is_broken(&b);
}

API_FUNCTION(tl_compiled_launch, c ? c->ctx : NULL,
	     (tl_compiled *c, const tl_config *cfg, const uint64_t *args, size_t nargs), (c, cfg, args, nargs))
{
	struct launch l;
	u32 grid[3];
	if (!c || !cfg || (!args && nargs))
		return failed(TL_ERR_ARGUMENT, "tl_compiled_launch: %s NULL",
			      !c    ? "the kernel is"
			      : cfg ? "the arguments are"
				    : "the config is");
	struct device *dev = c->ctx->dev;
	const char *name = c->at[0].image.name;
	if (nargs < c->nargs)
		return failed(TL_ERR_ARGUMENT, "%s: %zu arguments were given, and it has %u", name, nargs, c->nargs);
	tl_status s = check_stream(name, dev, cfg->stream);
	if (!s)
		s = check_grid(name, cfg);
	for (u32 i = 0; i < c->len && !s; i++) /* variants have different parameters */
		s = check_pointers(&c->at[i].image, args);
	if (s)
		return s;
	grid_of(cfg, grid);
	tl_arg leaves[MAX_KERNEL_PARAMS];
	memset(leaves, 0, c->nargs * sizeof *leaves);
	enum grid_kind kind = kind_of_programs(dev->num_sms, most_blocks(dev, cfg), grid);
	u32 i = 0;
	while (i < c->len && !allows(dev, &c->at[i].loaded, args, grid, kind, &l, leaves))
		i++;
	if (i == c->len)
		return failed(TL_ERR_ARGUMENT, "%s: none of its %u variants allows these arguments", name, c->len);
	return loaded_start(dev, &c->at[i].loaded, cfg, grid, cfg->stream, &l);
}

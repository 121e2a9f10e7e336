/* Launching: what a host program calls in its inner loop.
 *
 * On the path of a known variant: a pass over the arguments for their key, a comparison with the variant launched
 * last, a pass over the slots for their bits, the driver. No memory, no text, no lock. */
#include <stdlib.h>

#include "runtime/composite.h"
#include "runtime/conditions.h"
#include "runtime/internal.h"

enum { MAX_STAGES = 64, MOST_PROGRAMS = 1 << 30 /* that a block counts, in 32 bits */ };

/* --- checks -------------------------------------------------------------------------------------------------- */

static tl_status check_call(const char *call, const tl_kernel *k, const tl_arg *args, size_t nargs)
{
	if (!k || (!args && nargs))
		return failed(TL_ERR_ARGUMENT, "%s: %s NULL", call, k ? "the arguments are" : "the kernel is");
	return TL_OK;
}

/* For a launch with few blocks. */
static u32 most_blocks(const tl_kernel *k, const tl_config *cfg)
{
	return cfg->max_ctas ? (u32)MAX(cfg->max_ctas, 0) : k->module->ctx->dev->num_sms;
}

/* The programs along each axis. */
static inline void grid_of(const tl_config *cfg, u32 *grid)
{
	int set = cfg->grid_dims;
	if (!set) /* x, and what stands in front of the last axis that is not 0 */
		set = cfg->grid[2] ? 3 : cfg->grid[1] ? 2 : 1;
	for (int i = 0; i < 3; i++)
		grid[i] = i < set ? cfg->grid[i] : 1;
}

/* How many programs; 0: more than a block counts. */
static u32 count_programs(const u32 *grid)
{
	u64 programs = 1;
	for (int i = 0; i < 3; i++) {
		programs *= grid[i];
		if (programs > MOST_PROGRAMS)
			return 0;
	}
	return (u32)programs;
}

/* Are there more programs than blocks that run at the same time? */
static bool has_many_programs(const tl_kernel *k, const tl_config *cfg)
{
	u32 blocks = most_blocks(k, cfg), grid[3];
	grid_of(cfg, grid);
	return k->has_dots && blocks && count_programs(grid) > blocks;
}

static tl_status check_grid(const tl_kernel *k, const tl_config *cfg)
{
	static const u32 limit[] = {0x7FFFFFFF, 65535, 65535};
	if (cfg->grid_dims < 0 || cfg->grid_dims > 3)
		return failed(TL_ERR_ARGUMENT, "%s: grid_dims is %d; it must be from 0 to 3", k->name, cfg->grid_dims);
	for (int i = 0; i < 3; i++) {
		if (cfg->grid[i] > limit[i])
			return failed(TL_ERR_ARGUMENT, "%s: the grid has %u programs along axis %d; the limit is %u",
				      k->name, cfg->grid[i], i, limit[i]);
		if (cfg->grid_dims && i >= cfg->grid_dims && cfg->grid[i] > 1)
			return failed(TL_ERR_ARGUMENT,
				      "%s: the grid has %u programs along axis %d, but grid_dims is %d", k->name,
				      cfg->grid[i], i, cfg->grid_dims);
	}
	return TL_OK;
}

/* The options with which the kernel of an image was compiled are its own. */
static tl_status check_compiled(const tl_kernel *k, const tl_config *cfg)
{
	const char *given = cfg->num_warps    ? "num_warps"
			    : cfg->num_stages ? "num_stages"
			    : cfg->group_pids ? "group_pids"
			    : cfg->debug      ? "debug"
					      : NULL;
	if (!given)
		return TL_OK;
	return failed(TL_ERR_ARGUMENT, "%s is compiled already, in %s: leave tl_config.%s 0", k->name, k->module->name,
		      given);
}

static tl_status check_options(const tl_kernel *k, const tl_config *cfg, struct options *out)
{
	*out = (struct options){.num_warps = cfg && cfg->num_warps ? cfg->num_warps : DEFAULT_WARPS,
				.num_stages = cfg && cfg->num_stages ? cfg->num_stages : DEFAULT_STAGES};
	if (cfg) {
		tl_status s = check_grid(k, cfg);
		if (!s && k->module->compiled)
			s = check_compiled(k, cfg);
		if (s)
			return s;
		out->group_pids = cfg->group_pids;
		out->debug = cfg->debug;
		out->persistent = has_many_programs(k, cfg);
	}
	if (!is_pow2(out->num_warps) || out->num_warps > 32)
		return failed(TL_ERR_ARGUMENT, "%s: num_warps is %d; it must be a power of two from 1 to 32", k->name,
			      out->num_warps);
	if (out->num_stages < 0 || out->num_stages > MAX_STAGES)
		return failed(TL_ERR_ARGUMENT, "%s: num_stages is %d; it must be from 1 to %d", k->name,
			      out->num_stages, MAX_STAGES);
	if (cfg && cfg->max_ctas < -1)
		return failed(TL_ERR_ARGUMENT, "%s: max_ctas is %d; it must be at least -1", k->name,
			      cfg->max_ctas);
	if (out->group_pids < 0)
		return failed(TL_ERR_ARGUMENT, "%s: group_pids is %d; it must not be negative", k->name,
			      out->group_pids);
	return TL_OK;
}

static tl_status check_stream(const tl_kernel *k, const tl_config *cfg)
{
	if (cfg->stream && !k->module->ctx->dev->ops->has_streams)
		return failed(TL_ERR_ARGUMENT, "%s: the %s device has no streams; leave tl_config.stream NULL", k->name,
			    k->module->ctx->dev->ops->name);
	return TL_OK;
}

/* --- launching ----------------------------------------------------------------------------------------------- */

struct launch {
	struct device_launch device;
	u64 bits[MAX_KERNEL_PARAMS + GRID_PARAMS + MAX_TENSOR_MAPS];
	_Alignas(TENSOR_MAP_ALIGN) u8 maps[MAX_TENSOR_MAPS][TENSOR_MAP_BYTES];
};

/* --- the variant --------------------------------------------------------------------------------------------- */

/* The bits of the arguments as the image takes them, and what they break. */
static struct broken take_arguments(const tl_kernel *k, const struct image *im, const tl_arg *args, size_t nargs,
				    const u32 *grid, u64 *bits)
{
	const struct arguments a = {&k->params, args, nargs, bits, grid};
	for (u32 i = 0; i < im->nslots; i++)
		bits[i] = arg_bits(slot_argument(im, i, &a), im->slots[i].pointers, im->slots[i].dtype);
	return conditions_broken(k->module->ctx->dev, im, &a);
}

static __attribute__((noinline)) struct broken take_leaves(const tl_kernel *k, const struct image *im,
							   const tl_arg *args, size_t nargs, const u32 *grid, u64 *bits)
{
	tl_arg leaves[MAX_KERNEL_PARAMS];
	u32 n;
	bool fit = flatten_arguments(&k->params, args, nargs, leaves, NULL, &n);
	tl_assert(fit); /* or the variant would not have been compiled */
	return take_arguments(k, im, leaves, n, grid, bits);
}

/* A launch of an image that has been loaded, which no other variant can serve. */
static tl_status missed(const tl_kernel *k, const struct image *im, const tl_arg *args, size_t nargs, const u32 *grid,
			const u64 *bits)
{
	failed(TL_ERR_ARGUMENT, "%s, which is compiled already, ", k->name);
	conditions_explain(k->module->ctx->dev, im, &(struct arguments){&k->params, args, nargs, bits, grid});
	return TL_ERR_ARGUMENT;
}

/* The variant that a launch with these arguments runs, and their bits. A variant is compiled on conditions that the key
 * does not hold; where the arguments break one, *o is changed to what is compiled without it. */
static tl_status choose_variant(tl_kernel *k, struct options *o, const tl_config *cfg, const tl_arg *args, size_t nargs,
				u64 *bits, struct variant **out)
{
	u32 grid[3] = {1, 1, 1};
	if (cfg)
		grid_of(cfg, grid);
	for (;;) {
		tl_status s = variant_get(k, o, args, nargs, out);
		if (s)
			return s;
		const struct image *im = &(*out)->image;
		struct broken b = (*out)->has_composites ? take_leaves(k, im, args, nargs, grid, bits)
							 : take_arguments(k, im, args, nargs, grid, bits);
		if (!b.maps && !b.sizes && !b.alias)
			return TL_OK;
		if (k->module->compiled)
			return missed(k, im, args, nargs, grid, bits);
		o->no_boxes |= b.maps;
		o->any_size |= b.sizes;
		o->alias = MAX(o->alias, b.alias);
	}
}

/* The grid as the variant takes it: programs, or few blocks and how many programs these run. */
static tl_status pass_grid(const tl_kernel *k, const tl_config *cfg, const struct variant *v, const u32 *grid,
			   struct launch *l)
{
	memcpy(l->device.grid, grid, sizeof l->device.grid);
	l->device.nargs = v->image.nslots;
	if (!v->image.persistent)
		return TL_OK;
	u32 programs = count_programs(grid), most = most_blocks(k, cfg);
	if (!programs && grid[0] && grid[1] && grid[2]) /* of an image */
		return failed(TL_ERR_ARGUMENT,
			      "%s: the grid has more than %d programs, which blocks of its kernel "
			      "cannot count",
			      k->name, MOST_PROGRAMS);
	for (u32 i = 0; i < GRID_PARAMS; i++)
		l->bits[l->device.nargs++] = grid[i];
	l->device.grid[0] = most ? MIN(programs, most) : programs;
	l->device.grid[1] = l->device.grid[2] = 1;
	return TL_OK;
}

static tl_status pass_maps(struct device *dev, const struct variant *v, struct launch *l)
{
	tl_status s = TL_OK;
	l->device.nmaps = v->image.nmaps;
	for (u32 i = 0; i < v->image.nmaps && !s; i++) {
		struct tensor_box box = conditions_box(&v->image, i, l->bits);
		s = dev->ops->tensor_map(dev, &box, l->maps[i]);
		l->bits[l->device.nargs++] = (u64)(uintptr_t)l->maps[i];
	}
	return s;
}

/* *empty: the grid has no programs, so that nothing is to be launched; all else has been checked. */
static inline tl_status make_launch(const char *call, tl_kernel *k, const tl_config *cfg, const tl_arg *args,
				    size_t nargs, struct launch *l, bool *empty)
{
	tl_status s = check_call(call, k, args, nargs);
	if (s)
		return s;
	if (!cfg)
		return failed(TL_ERR_ARGUMENT, "%s: the config is NULL; its grid is needed", call);
	struct options o;
	struct variant *v = NULL;
	u32 grid[3];
	if ((s = check_options(k, cfg, &o)) || (s = check_stream(k, cfg)))
		return s;
	if ((s = choose_variant(k, &o, cfg, args, nargs, l->bits, &v)))
		return s;
	grid_of(cfg, grid);
	*empty = !grid[0] || !grid[1] || !grid[2];
	if ((s = pass_grid(k, cfg, v, grid, l)))
		return s;
	l->device.kernel = v->code;
	l->device.args = l->bits;
	l->device.stream = cfg->stream;
	return pass_maps(k->module->ctx->dev, v, l);
}

tl_status kernel_launch(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs)
{
	struct launch l;
	bool empty;
	tl_status s = make_launch("tl_launch", k, cfg, args, nargs, &l, &empty);
	if (s || empty)
		return s;
	struct device *dev = k->module->ctx->dev;
	return dev->ops->launch(dev, &l.device);
}

tl_status kernel_time(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, int warmup, int repeats,
		  double *median_ms)
{
	if (!median_ms)
		return failed(TL_ERR_ARGUMENT, "tl_time: median_ms is NULL");
	if (warmup < 0 || repeats < 1 || repeats > 1000000)
		return failed(TL_ERR_ARGUMENT,
			      "tl_time: %d warm-up launches and %d repeats; at least 0 and 1 to 1000000 are possible",
			      warmup, repeats);
	struct launch l;
	bool empty;
	*median_ms = 0;
	tl_status s = make_launch("tl_time", k, cfg, args, nargs, &l, &empty);
	if (s || empty)
		return s;
	struct device *dev = k->module->ctx->dev;
	return dev->ops->time(dev, &l.device, warmup, repeats, median_ms);
}

/* --- compiling ----------------------------------------------------------------------------------------------- */

tl_status kernel_prepare(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs)
{
	tl_status s = check_call("tl_prepare", k, args, nargs);
	struct options o;
	struct variant *v;
	u64 bits[MAX_KERNEL_PARAMS];
	if (!s)
		s = check_options(k, cfg, &o);
	return s ? s : choose_variant(k, &o, cfg, args, nargs, bits, &v);
}

tl_status kernel_resources(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, tl_resources *out)
{
	tl_status s = check_call("tl_kernel_resources", k, args, nargs);
	struct options o;
	struct variant *v;
	u64 bits[MAX_KERNEL_PARAMS];
	if (!s && !out)
		return failed(TL_ERR_ARGUMENT, "tl_kernel_resources: out is NULL");
	if (!s)
		s = check_options(k, cfg, &o);
	if (s)
		return s;
	*out = (tl_resources){0};
	s = choose_variant(k, &o, cfg, args, nargs, bits, &v);
	return s ? s : variant_resources(k, v, out);
}

tl_status kernel_stage(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, const char *stage,
			 char **text)
{
	tl_status s = check_call("tl_kernel_dump", k, args, nargs);
	if (s)
		return s;
	if (!stage || !text)
		return failed(TL_ERR_ARGUMENT, "tl_kernel_dump: %s is NULL", stage ? "text" : "the stage");
	*text = NULL;
	const struct device_ops *ops = k->module->ctx->dev->ops;
	char word[16];
	int n = snprintf(word, sizeof word, " %s ", stage);
	if (n >= (int)sizeof word || strchr(stage, ' ') || !strstr(ops->stages, word))
		return failed(TL_ERR_ARGUMENT, "tl_kernel_dump: the %s device has no stage '%.40s'; it has%.*s",
			      ops->name, stage, (int)strlen(ops->stages) - 1, ops->stages);
	struct options o;
	struct variant *v = NULL;
	u64 bits[MAX_KERNEL_PARAMS];
	s = check_options(k, cfg, &o);
	if (s)
		return s;
	/* a kernel that the device cannot take, or that fails to compile, has the stages in front of the failure all
	 * the same */
	if (choose_variant(k, &o, cfg, args, nargs, bits, &v))
		v = NULL;
	return variant_dump(k, &o, v, args, nargs, stage, text);
}

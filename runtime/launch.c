/* Launching: what a host program calls in its inner loop.
 *
 * On the path of a known variant: a pass over the arguments for their key, a comparison with the variant launched
 * last, a pass over the slots for their bits, the driver. No memory, no text, no lock. */
#include <stdlib.h>

#include "runtime/composite.h"
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

/* Are there more programs than blocks that run at the same time? */
static bool has_many_programs(const tl_kernel *k, const tl_config *cfg)
{
	u32 blocks = most_blocks(k, cfg), grid[3];
	u64 programs = 1;
	grid_of(cfg, grid);
	for (int i = 0; i < 3; i++) {
		programs *= grid[i];
		if (programs > MOST_PROGRAMS)
			return false;
	}
	return k->has_dots && blocks && programs > blocks;
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

static tl_status check_options(const tl_kernel *k, const tl_config *cfg, struct options *out)
{
	*out = (struct options){.num_warps = cfg && cfg->num_warps ? cfg->num_warps : DEFAULT_WARPS,
				.num_stages = cfg && cfg->num_stages ? cfg->num_stages : DEFAULT_STAGES};
	if (cfg) {
		tl_status s = check_grid(k, cfg);
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

static i64 integer_of(const struct variant *v, u32 slot, const u64 *bits)
{
	int unused = 64 - dtype_bits(v->image.slots[slot].dtype);
	return (i64)(bits[slot] << unused) >> unused;
}

/* How many bytes rows are apart, by this launch's arguments. False when no tensor map can say so. */
static bool row_distance(const struct variant *v, const struct tensor_map_param *m, const u64 *bits, i64 *out)
{
	*out = m->factor;
	if (m->param >= 0 && __builtin_mul_overflow(m->factor, integer_of(v, (u32)m->param, bits), out))
		return false;
	return *out >= 0 && *out % 16 == 0 && !(*out >> 40);
}

/* Sizes of a tensor: elements of a row, and rows. */
static bool tensor_sizes(const struct variant *v, const struct tensor_map_param *m, const u64 *bits, i64 *out)
{
	bool fit = true;
	for (int i = 0; i < 2; i++) {
		out[i] = m->size_params[i] < 0 ? m->sizes[i] : integer_of(v, (u32)m->size_params[i], bits);
		fit &= out[i] > 0 && out[i] <= (i64)1 << 31;
	}
	return fit;
}

static const tl_arg *slot_argument(const tl_kernel *k, const struct variant *v, u32 slot, const tl_arg *args,
				   size_t nargs)
{
	u32 p = v->image.slots[slot].leaf;
	return p < nargs ? &args[p] : &k->params.at[p].value;
}

/* The bits of the arguments as the variant takes them. */
static void fill_bits(const tl_kernel *k, const struct variant *v, const tl_arg *args, size_t nargs, u64 *bits)
{
	for (u32 i = 0; i < v->image.nslots; i++) {
		const struct slot *slot = &v->image.slots[i];
		bits[i] = arg_bits(slot_argument(k, v, i, args, nargs), slot->pointer, slot->dtype);
	}
}

/* Can tensor maps describe the rows and tensors that these arguments say? */
static bool maps_fit(const struct variant *v, const u64 *bits)
{
	i64 distance, sizes[2];
	for (u32 i = 0; i < v->image.nmaps; i++) {
		const struct tensor_map_param *m = &v->image.maps[i];
		if (!row_distance(v, m, bits, &distance))
			return false;
		if (m->tensor >= 0 && (bits[m->tensor] % 16 || !tensor_sizes(v, m, bits, sizes)))
			return false;
	}
	return true;
}

/* --- arguments that overlap ---------------------------------------------------------------------------------- */

struct extent {
	u64 start, size;
};

/* The memory that an argument may mean: what it says itself, or the allocation around it. */
static bool extent_of(struct device *dev, const tl_arg *a, struct extent *out)
{
	void *base;
	size_t size;
	if (a->bytes) {
		*out = (struct extent){(u64)(uintptr_t)a->ptr, a->bytes};
		return true;
	}
	if (!dev->ops->allocation || !dev->ops->allocation(dev, a->ptr, &base, &size))
		return false;
	*out = (struct extent){(u64)(uintptr_t)base, size};
	return true;
}

/* How the memory of two pointers, neither of them NULL, overlaps. Memory of unknown size counts as one byte. */
static enum aliasing compare_memory(struct device *dev, const tl_arg *a, const tl_arg *b)
{
	struct extent x, y;
	if (a->ptr == b->ptr)
		return ALIAS_EQUAL;
	bool known_x = extent_of(dev, a, &x), known_y = extent_of(dev, b, &y);
	if (!known_x)
		x = (struct extent){(u64)(uintptr_t)a->ptr, 1};
	if (!known_y)
		y = (struct extent){(u64)(uintptr_t)b->ptr, 1};
	return x.start < y.start + y.size && y.start < x.start + x.size ? ALIAS_ANY : ALIAS_NONE;
}

/* How the arguments overlap where the variant counts on that they do not. */
static enum aliasing broken_promise(const tl_kernel *k, const struct variant *v, const tl_arg *args, size_t nargs)
{
	enum aliasing worst = ALIAS_NONE;
	for (u32 i = 0; i < v->image.napart; i++) {
		const tl_arg *a = slot_argument(k, v, v->image.apart[i].a, args, nargs),
			     *b = slot_argument(k, v, v->image.apart[i].b, args, nargs);
		enum aliasing is = a->ptr && b->ptr ? compare_memory(k->module->ctx->dev, a, b) : ALIAS_NONE;
		if (is == ALIAS_EQUAL && v->image.apart[i].equal_is_fine)
			is = ALIAS_NONE;
		worst = MAX(worst, is);
	}
	return worst;
}

/* The bits of the arguments, and how these overlap. */
static enum aliasing take_arguments(const tl_kernel *k, const struct variant *v, const tl_arg *args, size_t nargs,
				    u64 *bits)
{
	fill_bits(k, v, args, nargs, bits);
	return broken_promise(k, v, args, nargs);
}

static __attribute__((noinline)) enum aliasing take_leaves(const tl_kernel *k, const struct variant *v,
							   const tl_arg *args, size_t nargs, u64 *bits)
{
	tl_arg leaves[MAX_KERNEL_PARAMS];
	u32 n;
	bool fit = flatten_arguments(&k->params, args, nargs, leaves, NULL, &n);
	tl_assert(fit); /* or the variant would not have been compiled */
	return take_arguments(k, v, leaves, n, bits);
}

/* --- the variant --------------------------------------------------------------------------------------------- */

static i64 size_of(const struct variant *v, i16 size, const u64 *bits, const u32 *grid)
{
	if (size <= SIZE_PROGRAMS)
		return grid[SIZE_PROGRAMS - size];
	if ((u32)size >= v->image.nslots) /* few blocks take the grid as parameters */
		return grid[(u32)size - v->image.nslots];
	return integer_of(v, (u32)size, bits);
}

/* Are this launch's sizes those that the variant takes for granted? */
static bool sizes_fit(const struct variant *v, const u64 *bits, const u32 *grid)
{
	for (u32 i = 0; i < v->image.nlimits; i++) {
		const struct size_limit *l = &v->image.limits[i];
		i64 a = size_of(v, l->a, bits, grid), b = l->b == SIZE_NONE ? 0 : size_of(v, l->b, bits, grid);
		i128 product = l->b == SIZE_NONE ? a : (i128)MAX(a, l->least) * MAX(b, l->least);
		if (a < 0 || b < 0 || product > l->most)
			return false;
	}
	return true;
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
		enum aliasing alias = (*out)->has_composites ? take_leaves(k, *out, args, nargs, bits)
							     : take_arguments(k, *out, args, nargs, bits);
		bool maps = maps_fit(*out, bits), sizes = sizes_fit(*out, bits, grid);
		if (maps && sizes && alias == ALIAS_NONE)
			return TL_OK;
		o->no_boxes |= !maps;
		o->any_size |= !sizes;
		o->alias = MAX(o->alias, alias);
	}
}

/* The grid as the variant takes it: programs, or few blocks and how many programs these run. */
static void pass_grid(const tl_kernel *k, const tl_config *cfg, const struct variant *v, const u32 *grid,
		      struct launch *l)
{
	memcpy(l->device.grid, grid, sizeof l->device.grid);
	l->device.nargs = v->image.nslots;
	if (!v->image.persistent)
		return;
	for (u32 i = 0; i < GRID_PARAMS; i++)
		l->bits[l->device.nargs++] = grid[i];
	u32 programs = grid[0] * grid[1] * grid[2]; /* fits: see has_many_programs */
	l->device.grid[0] = MIN(programs, most_blocks(k, cfg));
	l->device.grid[1] = l->device.grid[2] = 1;
}

static tl_status pass_maps(struct device *dev, const struct variant *v, struct launch *l)
{
	tl_status s = TL_OK;
	l->device.nmaps = v->image.nmaps;
	for (u32 i = 0; i < v->image.nmaps && !s; i++) {
		const struct tensor_map_param *m = &v->image.maps[i];
		i64 distance = 0, sizes[2];
		row_distance(v, m, l->bits, &distance);
		struct tensor_box box = memory_box(m, (u64)distance);
		if (m->tensor >= 0 && tensor_sizes(v, m, l->bits, sizes))
			box = bounded_box(m, (void *)(uintptr_t)l->bits[m->tensor], (u64)distance, sizes);
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
	pass_grid(k, cfg, v, grid, l);
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

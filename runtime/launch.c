/* Launching: what a host program calls in its inner loop.
 *
 * On the path of a known variant: a pass over the arguments for their key, a comparison with the variant launched
 * last, a pass over the slots for their bits, the driver. No memory, no text, no lock. */
#include <stdlib.h>

#include "runtime/internal.h"
#include "runtime/sim/tensormap.h"

enum { DEFAULT_WARPS = 4, DEFAULT_STAGES = 3, MAX_STAGES = 64 };

/* --- checks -------------------------------------------------------------------------------------------------- */

static tl_status check_call(const char *call, const tl_kernel *k, const tl_arg *args, size_t nargs)
{
	if (!k || (!args && nargs))
		return failed(TL_ERR_ARGUMENT, "%s: %s NULL", call, k ? "the arguments are" : "the kernel is");
	return TL_OK;
}

static tl_status check_options(const tl_kernel *k, const tl_config *cfg, struct options *out)
{
	*out = (struct options){cfg && cfg->num_warps ? cfg->num_warps : DEFAULT_WARPS,
				cfg && cfg->num_stages ? cfg->num_stages : DEFAULT_STAGES, cfg ? cfg->group_pids : 0, cfg && cfg->debug};
	if (!is_pow2(out->num_warps) || out->num_warps > 32)
		return failed(TL_ERR_ARGUMENT, "%s: num_warps is %d; it must be a power of two from 1 to 32", k->name, out->num_warps);
	if (out->num_stages < 0 || out->num_stages > MAX_STAGES)
		return failed(TL_ERR_ARGUMENT, "%s: num_stages is %d; it must be from 1 to %d", k->name, out->num_stages, MAX_STAGES);
	if (out->group_pids < 0)
		return failed(TL_ERR_ARGUMENT, "%s: group_pids is %d; it must not be negative", k->name, out->group_pids);
	return TL_OK;
}

static tl_status check_grid(const tl_kernel *k, const tl_config *cfg, u32 *grid)
{
	static const u32 limit[] = {0x7FFFFFFF, 65535, 65535};
	for (int i = 0; i < 3; i++) {
		grid[i] = MAX(cfg->grid[i], 1);
		if (grid[i] > limit[i])
			return failed(TL_ERR_ARGUMENT, "%s: the grid has %u programs along axis %d; the limit is %u", k->name, grid[i],
				    i, limit[i]);
	}
	if (cfg->stream && !k->module->ctx->dev->ops->has_streams)
		return failed(TL_ERR_ARGUMENT, "%s: the %s device has no streams; leave tl_config.stream NULL", k->name,
			    k->module->ctx->dev->ops->name);
	return TL_OK;
}

/* --- launching ----------------------------------------------------------------------------------------------- */

struct launch {
	struct device_launch device;
	u64 bits[MAX_KERNEL_PARAMS + MAX_TENSOR_MAPS];
	_Alignas(64) u8 maps[MAX_TENSOR_MAPS][TENSOR_MAP_BYTES];
};

/* All of memory, in rows at the distance that this launch's arguments give: see lower/tma.c. */
static tl_status make_map(const tl_kernel *k, const struct variant *v, u32 i, struct launch *l)
{
	const struct tensor_map_param *m = &v->maps[i];
	i64 distance = m->factor;
	bool fits = true;
	if (m->param >= 0) {
		u64 bits = l->bits[m->param];
		fits = !__builtin_mul_overflow(m->factor, v->slots[m->param].dtype == DT_I64 ? (i64)bits : (i64)(i32)bits, &distance);
	}
	if (!fits || distance < 0 || distance >> 40)
		return failed(TL_ERR_ARGUMENT, "%s: rows that are copied as a whole must lie from 0 to 2^40 bytes apart, and '%s' is %lld", k->name,
			      k->params.at[v->slots[m->param].param].name, (long long)distance / m->factor);
	static const enum dtype words[] = {DT_U8, DT_U16, DT_U32, DT_U64};
	struct tensor_box box = {.dtype = words[ilog2((u64)m->elem_bytes)], .rank = 3, .swizzle = (u32)m->swizzle};
	for (int d = 0; d < 3; d++) {
		box.sizes[d] = 1u << 31;
		box.box[d] = d < 2 ? (u32)m->box[d] : 1;
	}
	box.strides[0] = (u64)distance;
	box.strides[1] = 1u << TENSOR_MAP_LOG2_PAGE;
	l->bits[v->nslots + i] = (u64)(uintptr_t)l->maps[i];
	struct device *dev = k->module->ctx->dev;
	return dev->ops->tensor_map(dev, &box, l->maps[i]);
}

static inline tl_status make_launch(const char *call, tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs,
				    struct launch *l)
{
	tl_status s = check_call(call, k, args, nargs);
	if (s)
		return s;
	if (!cfg)
		return failed(TL_ERR_ARGUMENT, "%s: the config is NULL; its grid is needed", call);
	struct options o;
	struct variant *v;
	if ((s = check_options(k, cfg, &o)) || (s = check_grid(k, cfg, l->device.grid)) ||
	    (s = variant_get(k, &o, args, nargs, &v)))
		return s;
	for (u32 i = 0; i < v->nslots; i++) {
		const struct slot *slot = &v->slots[i];
		const tl_arg *a = slot->param < nargs ? &args[slot->param] : &k->params.at[slot->param].value;
		l->bits[i] = arg_bits(a, slot->pointer, slot->dtype);
	}
	l->device.kernel = v->code;
	l->device.args = l->bits;
	l->device.nargs = v->nslots + v->nmaps;
	l->device.nmaps = v->nmaps;
	l->device.stream = cfg->stream;
	for (u32 i = 0; i < v->nmaps && !s; i++)
		s = make_map(k, v, i, l);
	return s;
}

tl_status tl_launch(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs)
{
	struct launch l;
	tl_status s = make_launch("tl_launch", k, cfg, args, nargs, &l);
	if (s)
		return s;
	struct device *dev = k->module->ctx->dev;
	return dev->ops->launch(dev, &l.device);
}

tl_status tl_time(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, int warmup, int repeats,
		  double *median_ms)
{
	if (!median_ms)
		return failed(TL_ERR_ARGUMENT, "tl_time: median_ms is NULL");
	if (warmup < 0 || repeats < 1 || repeats > 1000000)
		return failed(TL_ERR_ARGUMENT, "tl_time: %d warm-up launches and %d repeats; at least 0 and 1 to 1000000 are possible",
			    warmup, repeats);
	struct launch l;
	tl_status s = make_launch("tl_time", k, cfg, args, nargs, &l);
	if (s)
		return s;
	struct device *dev = k->module->ctx->dev;
	return dev->ops->time(dev, &l.device, warmup, repeats, median_ms);
}

/* --- compiling ----------------------------------------------------------------------------------------------- */

tl_status tl_prepare(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs)
{
	tl_status s = check_call("tl_prepare", k, args, nargs);
	struct options o;
	struct variant *v;
	if (!s)
		s = check_options(k, cfg, &o);
	return s ? s : variant_get(k, &o, args, nargs, &v);
}

tl_status tl_kernel_dump(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, const char *stage,
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
		return failed(TL_ERR_ARGUMENT, "tl_kernel_dump: the %s device has no stage '%.40s'; it has%.*s", ops->name, stage,
			    (int)strlen(ops->stages) - 1, ops->stages);
	struct options o;
	s = check_options(k, cfg, &o);
	return s ? s : variant_dump(k, &o, args, nargs, stage, text);
}

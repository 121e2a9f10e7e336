#include "runtime/device/grid.h"
#include "runtime/launch/composite.h"
#include "runtime/launch/divisibility.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/specialize.h"

static u64 memory_of(struct device *dev, const tl_arg *a)
{
	void *base;
	size_t size = 0;
	if (a->bytes)
		return a->bytes;
	return dev->ops->allocation && dev->ops->allocation(dev, a->ptr, &base, &size) ? size : 0;
}

/* The sizes of a launch. `leaf` and `known` have space for the leaves of all arguments. */
static bool shape_of_launch(const tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, i64 *leaf,
			    bool *known, struct launch_shape *out)
{
	tl_arg leaves[MAX_KERNEL_PARAMS];
	*out = (struct launch_shape){.leaf = leaf, .is_known = known};
	grid_of(cfg, out->grid);
	if (!flatten_arguments(&k->params, args, nargs, leaves, NULL, &out->nleaves))
		return false;
	for (u32 i = 0; i < out->nleaves; i++) {
		const tl_arg *a = &leaves[i];
		known[i] = a->kind == TL_ARG_INT || a->kind == TL_ARG_UINT || a->kind == TL_ARG_BOOL;
		leaf[i] = known[i] ? (i64)int_value(a) : 0;
		if (a->kind == TL_ARG_PTR)
			out->bytes += memory_of(k->module->ctx->dev, a);
	}
	return out->grid[0] && out->grid[1] && out->grid[2];
}

static tl_status estimate(const tl_kernel *k, const struct params *ps, const struct options *o, const tl_arg *args,
			  size_t nargs, const struct launch_shape *l, struct launch_estimate *out)
{
	struct device *dev = k->module->ctx->dev;
	struct unit *u = unit_new();
	struct cleanup unit;
	struct c_locale c;
	struct compiled compiled = {.num_warps = o->codegen.num_warps};
	const struct target target = dev->ops->target(dev);
	cleanup_push(&unit, unit_delete, u);
	enter_c_locale(&c);
	bool good = unit_again(u, &k->module->unit);
	if (good) {
		struct build b = {.unit = u,
				  .codegen = o->codegen,
				  .launch = l,
				  .func = unit_function(u, k->name),
				  .args = specialize_text(&u->arena, ps, args, nargs)};
		good = device_compile(&target, &b, &compiled);
	}
	leave_c_locale(&c);
	tl_status s = good ? TL_OK : failed_compile(&u->diags);
	*out = compiled.estimate;
	cleanup_run(&unit);
	return s;
}

tl_status kernel_estimate(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs,
			  struct launch_estimate *out)
{
	struct device *dev = k->module->ctx->dev;
	struct options o;
	struct launch_shape l;
	i64 leaf[MAX_KERNEL_PARAMS];
	bool known[MAX_KERNEL_PARAMS];
	*out = (struct launch_estimate){.us = 0};
	if (k->module->compiled || !dev->ops->target || dev->ops->target(dev).kind != TARGET_CUDA)
		return failed(TL_ERR_ARGUMENT, "%s: %s", k->name,
			      k->module->compiled ? "it is compiled already, and estimates need its source"
						  : "there are estimates for GPUs only: on cuda and sim");
	tl_status s = check_options(k, cfg, &o);
	if (s)
		return s;
	const struct params *ps = divisibility_params(k, &o, args, nargs);
	s = check_arguments(ps, args, nargs, false);
	if (!s && !shape_of_launch(k, cfg, args, nargs, leaf, known, &l))
		s = failed(TL_ERR_ARGUMENT, "%s: a grid without programs has no estimate", k->name);
	return s ? s : estimate(k, ps, &o, args, nargs, &l, out);
}

API_KERNEL_FUNCTION(tl_kernel_estimate, k,
		    (tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, tl_estimate *out),
		    (k, cfg, args, nargs, out))
{
	tl_arg room[MAX_KERNEL_PARAMS];
	struct launch_estimate e;
	if (out)
		*out = (tl_estimate){.us = 0};
	tl_status s = complete_call("tl_kernel_estimate", k, &args, &nargs, room);
	if (!s && (!out || !cfg))
		s = failed(TL_ERR_ARGUMENT, "tl_kernel_estimate: %s is NULL", out ? "the config" : "out");
	if (!s)
		s = kernel_estimate(k, cfg, args, nargs, &e);
	if (s)
		return s;
	const struct bill *b = &e.bill;
	*out = (tl_estimate){.us = e.us,
			     .blocks = e.blocks,
			     .resident = e.resident,
			     .tensor = b->tensor,
			     .shared = b->shared,
			     .issue = b->issue,
			     .special = b->special,
			     .l2 = b->l2,
			     .bytes = b->bytes,
			     .alone = b->alone};
	return TL_OK;
}

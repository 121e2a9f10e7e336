/* What launches and prepared handles share. */
#ifndef TL_LAUNCH_LAUNCH_H
#define TL_LAUNCH_LAUNCH_H

#include "runtime/api/api_guard.h"
#include "runtime/launch/argument_guard.h"
#include "runtime/device/grid.h"

/* --- checks: of a call; their text is set ---------------------------------------------------------------------- */

tl_status check_call(const char *call, const tl_kernel *k, const tl_arg *args, size_t nargs);
/* cfg may be NULL, for the defaults. */
tl_status check_options(const tl_kernel *k, const tl_config *cfg, struct options *out);
/* Of a kernel without dots it is GRID_FEW. */
enum grid_kind kind_of_grid(const tl_kernel *k, const tl_config *cfg, const u32 *grid);
tl_status check_stream(const tl_kernel *k, const void *stream);
/* check_call, and what the decorators of the kernel give the arguments: see complete_arguments. */
tl_status complete_call(const char *call, tl_kernel *k, const tl_arg **args, size_t *nargs, tl_arg *room);

/* --- the variant ----------------------------------------------------------------------------------------------- */

/* A variant is compiled on conditions that the key does not hold; where the arguments break one, another is compiled
 * without it. */
struct choice {
	struct options options;          /* that it is compiled with */
	struct variant *first, *variant; /* what was asked for, and what the arguments take */
	u32 way;                         /* from the one to the other */
};
tl_status choose_variant(tl_kernel *k, const struct options *o, const tl_config *cfg, const tl_arg *args, size_t nargs,
			 u64 *bits, struct choice *out);

/* Binds the choice, so that launch_known finds it. Without memory for that, it does not. */
void launch_remember(tl_kernel *k, const struct options *o, const struct choice *c, const tl_arg *args, size_t nargs);

/* --- the launch ------------------------------------------------------------------------------------------------ */

/* Completes the bits of the slots to a launch of the variant. The config's grid and stream do not count here. */
tl_status launch_fill(const tl_kernel *k, const struct variant *v, const tl_config *cfg, const u32 *grid, void *stream,
		      struct launch *l);
/* Launches it, unless the grid has no programs. */
tl_status launch_start(const tl_kernel *k, const struct variant *v, const tl_config *cfg, const u32 *grid, void *stream,
		       struct launch *l);
/* The same, in place for variants that take their slots alone. */
static inline tl_status launch_now(const tl_kernel *k, const struct variant *v, const tl_config *cfg, const u32 *grid,
				   void *stream, struct launch *l)
{
	struct device *dev = k->module->ctx->dev;
	if (!v->plain || !grid[0] || !grid[1] || !grid[2])
		return launch_start(k, v, cfg, grid, stream, l);
	l->device = (struct device_launch){.kernel = v->code,
					   .grid = {grid[0], grid[1], grid[2]},
					   .args = l->bits,
					   .nargs = v->nslots,
					   .stream = stream,
					   .cooperative = cfg->launch_cooperative_grid,
					   .pdl = cfg->launch_pdl};
	return dev->ops->launch(dev, &l->device);
}

#endif

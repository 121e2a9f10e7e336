/* Declarations shared by launches and prepared handles. */
#ifndef TL_LAUNCH_LAUNCH_H
#define TL_LAUNCH_LAUNCH_H

#include "runtime/api/api_guard.h"
#include "runtime/launch/argument_guard.h"
#include "runtime/device/grid.h"

/* --- functions of tl.h ----------------------------------------------------------------------------------------- */

static inline tl_context *context_of(const tl_kernel *k) { return k ? k->module->ctx : NULL; }
/* Adds the kernel's name to the error `s` of a call. */
tl_status named(const tl_kernel *k, tl_status s);
/* Like API_FUNCTION, for a function of a kernel: errors have the kernel's name. */
#define API_KERNEL_FUNCTION(name, kernel, parameters, arguments)                                                       \
	static tl_status name##_unnamed parameters;                                                                    \
	API_FUNCTION(name, context_of(kernel), parameters, arguments)                                                  \
	{                                                                                                              \
		return named((kernel), name##_unnamed arguments);                                                      \
	}                                                                                                              \
	static tl_status name##_unnamed parameters

/* --- checks of a call, which set the error message ----------------------------------------------------------- */

tl_status check_call(const char *call, const tl_kernel *k, const tl_arg *args, size_t nargs);
/* cfg may be NULL, for the defaults. */
tl_status check_options(const tl_kernel *k, const tl_config *cfg, struct options *out);
/* GRID_FEW for kernels without dots. */
enum grid_kind kind_of_grid(const tl_kernel *k, const tl_config *cfg, const u32 *grid);
/* check_call, and the values of the kernel's decorators for open arguments: see complete_arguments. */
tl_status complete_call(const char *call, tl_kernel *k, const tl_arg **args, size_t *nargs, tl_arg *room);

/* --- the variant ----------------------------------------------------------------------------------------------- */

/* The variant for a launch. Variants are compiled with conditions that are not part of the key. If the arguments break
 * a condition, another variant is compiled without it. */
struct choice {
	struct options asked, options;   /* of the launch, and of the variant */
	struct variant *first, *variant; /* the variant for the key, and the variant for the arguments */
	u32 way;                         /* index of `variant` in the ways of the guard of `first` */
};
/* Checks the options, compiles a variant if needed, and writes the bits of its slots. cfg may be NULL. */
tl_status choose_variant(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, u64 *bits,
			 struct choice *out);

/* Adds an argument guard for the choice, so that launch_known finds it. Adds none if memory
 * runs out, or if the arguments can only be compared by their key. */
void launch_remember(tl_kernel *k, const struct choice *c, const tl_arg *args, size_t nargs);

#endif

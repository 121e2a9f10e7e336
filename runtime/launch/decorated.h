/* The values that a kernel's decorators give to arguments that a launch leaves open: triton.heuristics computes values
 * from the other arguments, and triton.autotune has configurations. */
#ifndef TL_LAUNCH_DECORATED_H
#define TL_LAUNCH_DECORATED_H

#include "runtime/api/objects.h"
#include "runtime/launch/specialize.h"

/* The decorators of k, evaluated for a launch with these arguments, or as far as they are known without a launch. The
 * unit owns the results; decorators_free frees it. */
struct decorators {
	struct unit *unit;
	struct tuning tuning;
	struct cleanup cleanup; /* until decorators_free, which the same function must call */
};
tl_status decorators_read(const tl_kernel *k, const tl_arg *args, size_t nargs, enum decorators_of of,
			  struct decorators *out);
void decorators_free(struct decorators *d);
/* True if the call leaves no parameter open. */
static inline bool all_given(const struct params *ps, const tl_arg *args, size_t nargs)
{
	bool all = nargs == ps->len;
	for (size_t i = 0; i < nargs; i++)
		all &= args[i].kind != TL_ARG_OPEN;
	return all;
}

/* Adds the values of heuristics to *args and *nargs; `room` is for MAX_KERNEL_PARAMS arguments. Values for equal
 * arguments are computed once and kept. It is an error if parameters that configurations set are still open
 * afterwards. */
tl_status complete_arguments(tl_kernel *k, const tl_arg **args, size_t *nargs, tl_arg *room);

/* Adds everything that host code can see of an argument to the key. */
void key_add_value(struct key *key, const tl_arg *a);
/* Frees the computed values of the kernel; NULL is allowed. */
void computed_free(struct computed *c);

/* Records the options of the kernel's triton.jit in its parameters. */
tl_status take_jit(tl_kernel *k);

#endif

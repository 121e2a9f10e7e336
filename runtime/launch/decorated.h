/* What the decorators of a kernel give the arguments that a launch leaves open: values that triton.heuristics computes
 * from the others, and the configurations of triton.autotune. */
#ifndef TL_LAUNCH_DECORATED_H
#define TL_LAUNCH_DECORATED_H

#include "runtime/api/objects.h"
#include "runtime/launch/specialize.h"

/* The decorators of k, evaluated for a launch with these arguments, or as far as they are known without one; what is
 * computed lies in a unit that the caller gives back with decorators_free. */
struct decorators {
	struct unit *unit;
	struct tuning tuning;
	struct cleanup cleanup; /* until decorators_free, which must come in the same function */
};
tl_status decorators_read(const tl_kernel *k, const tl_arg *args, size_t nargs, enum decorators_of of,
			  struct decorators *out);
void decorators_free(struct decorators *d);
/* A value of decorators as an argument, whose texts lie in the unit. False: it can be none. */
bool decorated_value(struct unit *u, const char *literal, tl_arg *out);

/* Does the call leave nothing open? */
static inline bool all_given(const struct params *ps, const tl_arg *args, size_t nargs)
{
	bool all = nargs == ps->len;
	for (size_t i = 0; i < nargs; i++)
		all &= args[i].kind != TL_ARG_OPEN;
	return all;
}

/* Makes *args and *nargs those with the values of heuristics, in `room` for MAX_KERNEL_PARAMS. Values that have been
 * computed once for equal arguments are kept. An error where the kernel's configurations have values for parameters
 * that are still open then. */
tl_status complete_arguments(tl_kernel *k, const tl_arg **args, size_t *nargs, tl_arg *room);

/* All that host code can see of an argument. */
void key_add_value(struct key *key, const tl_arg *a);
/* Of the kernel; NULL is allowed. */
void computed_free(struct computed *c);

/* Notes at the parameters what the kernel's triton.jit says of them. */
tl_status take_jit(tl_kernel *k);

#endif

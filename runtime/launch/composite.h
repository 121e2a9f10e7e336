/* Composite arguments, tuples and descriptors: trees of arguments. */
#ifndef TL_LAUNCH_COMPOSITE_H
#define TL_LAUNCH_COMPOSITE_H

#include "runtime/launch/specialize.h"

static inline bool is_composite(const tl_arg *a) { return a->kind == TL_ARG_TUPLE || a->kind == TL_ARG_DESCRIPTOR; }

/* Checks a composite argument of parameter i and appends its key. */
tl_status specialize_composite(const struct params *ps, u32 i, const tl_arg *a, struct key *key);
/* Writes all leaves of all arguments to `out`, at most MAX_KERNEL_PARAMS, and the parameter of each to `owner`, which
 * may be NULL. A parameter with a default that the evaluator computes has None. False: there are more leaves. */
bool flatten_arguments(const struct params *ps, const tl_arg *args, size_t nargs, tl_arg *out, u32 *owner, u32 *n);
/* The argument for the evaluator. *leaf: the number of its first leaf, then of the next leaf. */
struct arg_spec composite_spec(struct arena *a, const struct params *ps, const struct tl_param *p, const tl_arg *x,
			       u32 *leaf);

#endif

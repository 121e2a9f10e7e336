/* Arguments that are tuples and descriptors: trees, whose leaves are arguments of their own. */
#ifndef TL_LAUNCH_COMPOSITE_H
#define TL_LAUNCH_COMPOSITE_H

#include "runtime/launch/specialize.h"

static inline bool is_composite(const tl_arg *a) { return a->kind == TL_ARG_TUPLE || a->kind == TL_ARG_DESCRIPTOR; }

/* Checks a composite argument of parameter i and appends its key. */
tl_status specialize_composite(const struct params *ps, u32 i, const tl_arg *a, struct key *key);
/* All leaves of all arguments, at most MAX_KERNEL_PARAMS into `out`, and of which parameter each is (`owner` may be
 * NULL); a parameter whose default the evaluator computes has None. False: they are more. */
bool flatten_arguments(const struct params *ps, const tl_arg *args, size_t nargs, tl_arg *out, u32 *owner, u32 *n);
/* For the evaluator. */
struct arg_spec composite_spec(struct arena *a, const struct params *ps, const struct tl_param *p, const tl_arg *x,
			       u32 *leaf);

#endif

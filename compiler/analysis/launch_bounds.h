/* Launch bounds: bounds on a kernel's integer arguments and on its grid that keep an index from wrapping.
 *
 * `(program_id * 128 + arange) % M` is contiguous only where the sum is not negative, and in 32 bits the sum may wrap.
 * No practical launch has 2^24 such programs, but nothing forbids it. So the compiler records the sizes up to which the
 * index does not wrap (kernel.limits: here 2^24 - 1 programs) and relies on them. The launch compares its sizes with
 * the limits. Beyond them it runs a variant that is compiled without limits (kernel.sizes).
 *
 * A rule of the language helps where no size does (docs/guide/language.md, "Integers"): the divisor of an index is
 * positive unless it is a constant. Without the rule, the number of programs in a last group, min(tiles - first,
 * GROUP), would not be known to be positive.
 *
 * A loop index i with the upper bound x * y, such as the number of a tile among the tiles of several matrices,
 * satisfies i / y < x and i % y < y, also if x * y wraps to a smaller number.
 *
 * Only bounds that launches respect in practice are recorded: at least BOUNDS_LEAST, for a product of two sizes
 * BOUNDS_LEAST_PRODUCT, and for programs along axes 1 and 2, which number batches, BOUNDS_LEAST_BATCHES. The product of
 * two axes counts as one size where it bounds program_id(0) + program_id(1) * num_programs(0). An index that needs a
 * smaller bound, such as a hash, gets no limit, and nothing is assumed about it.
 *
 * The interpreter compares these claims with the values that occur (bounds_claim, interp/check_facts.c). */
#ifndef TLC_ANALYSIS_LAUNCH_BOUNDS_H
#define TLC_ANALYSIS_LAUNCH_BOUNDS_H

#include "analysis/ranges.h"

enum { BOUNDS_LEAST = 1 << 14, BOUNDS_LEAST_PRODUCT = 1 << 22, BOUNDS_LEAST_BATCHES = 1 << 5 };

/* True if every element of v is between 0 and `most` in all launches within k->limits. Adds to the limits if that makes
 * it true. */
bool bounds_keep_within(struct kernel *k, const struct ranges *r, const struct value *v, i64 most);
/* Same, between -most and `most`. */
bool bounds_keep_bounded(struct kernel *k, const struct ranges *r, const struct value *v, i64 most);

/* True if neither v nor an operand that it is computed from wraps, in launches within the limits. 64-bit values are
 * assumed exact: memory is not large enough for them to wrap. */
bool bounds_keep_exact(struct kernel *k, const struct ranges *r, const struct value *v);

/* A claim about each element of a value: it is from `least` to `most` in launches within the limits, and the operation
 * that defines it does not wrap. */
struct size_claim {
	i64 least, most;
	const struct size_limit *limits;
	u32 nlimits;
};
/* An upper bound of a value: (times · size + plus) / by, rounded down, for a size that is not negative. */
struct size_bound {
	i16 size; /* SIZE_NONE if there is no bound */
	i64 times, plus, by;
};
/* For checks: up to `most` claims about v, made as if indices had 32 bits, 31, 30 …, so that some claims have limits
 * that a small launch is barely within. *bound holds within the limits of the first claim. Returns the number of
 * claims. */
u32 bounds_claim(const struct ranges *r, const struct value *v, struct arena *a, struct size_claim *out, u32 most,
		struct size_bound *bound);

/* True if the programs along axes 0 and 1 together are at most INT32_MAX. Adds to the limits. */
bool bounds_keep_plane(struct kernel *k);

#endif

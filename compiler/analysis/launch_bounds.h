/* Limits of launches: bounds on a kernel's integer arguments and on its grid that keep an index from wrapping.
 *
 * `(program_id * 128 + arange) % M` runs on from neighbour to neighbour only where the sum is not negative, and in 32
 * bits it may wrap. Nobody launches 2^24 such programs, but nothing forbids it. So the compiler states the sizes up to
 * which the index does not wrap (kernel.limits: here 2^24 - 1 programs) and uses that fact. The launch compares its
 * sizes with the limits; beyond them it runs a variant compiled without any (kernel.sizes).
 *
 * One rule of the language helps where no size does (docs/guide/language.md, "Integers"): the divisor of an index is
 * positive unless it is a constant. Without the rule, the number of programs in a last group, min(tiles - first,
 * GROUP), would not be known to be positive.
 *
 * An index that counts up to a product, as the number of a tile of several matrices does, has a quotient by one factor
 * that is less than the other factor, whatever the product wraps to, and a remainder that is less than its divisor.
 *
 * Only bounds that launches keep in practice are stated (BOUNDS_LEAST, of a product of two sizes BOUNDS_LEAST_PRODUCT,
 * and of programs along axes 1 and 2, which number batches, BOUNDS_LEAST_BATCHES); an index that needs a smaller one,
 * as a hash does, has no limit and no fact.
 *
 * The interpreter compares what this says with the values that occur (bounds_claim, interp/check_facts.c). */
#ifndef TLC_ANALYSIS_LAUNCH_BOUNDS_H
#define TLC_ANALYSIS_LAUNCH_BOUNDS_H

#include "analysis/ranges.h"

enum { BOUNDS_LEAST = 1 << 14, BOUNDS_LEAST_PRODUCT = 1 << 22, BOUNDS_LEAST_BATCHES = 1 << 5 };

/* Is every element of v between 0 and `most`, for all launches within k's limits? Adds to the limits if that
 * suffices. */
bool bounds_keep_within(struct kernel *k, const struct ranges *r, const struct value *v, i64 most);
/* The same between -most and `most`. */
bool bounds_keep_bounded(struct kernel *k, const struct ranges *r, const struct value *v, i64 most);

/* Is v, and what it is computed from, the number that it would be without a width? What is wider than an index of 32
 * bits is where the memory is there. */
bool bounds_keep_exact(struct kernel *k, const struct ranges *r, const struct value *v);

/* A claim about each element of a value: it is from `least` to `most` in launches within the limits, and the operation
 * that makes it does not wrap. */
struct size_claim {
	i64 least, most;
	const struct size_limit *limits;
	u32 nlimits;
};
/* An upper bound of a value, (times · size + plus) / by, rounded down, for a size that is not negative. */
struct size_bound {
	i16 size; /* SIZE_NONE: there is none */
	i64 times, plus, by;
};
/* For checks: up to `most` claims about v, as they would be made if indices had 32 bits, 31, 30 …: some have limits
 * that a small launch is only just within. The bound holds within the limits of the first claim. Returns how many there
 * are. */
u32 bounds_claim(const struct ranges *r, const struct value *v, struct arena *a, struct size_claim *out, u32 most,
		struct size_bound *bound);

/* Are the programs along axes 0 and 1 at most INT32_MAX together, likewise? */
bool bounds_keep_plane(struct kernel *k);

#endif

/* Sizes of launches: what must hold of a kernel's integer arguments and of its grid for an index not to wrap.
 *
 * `(program_id * 128 + arange) % M` runs on from neighbour to neighbour only where the sum is not negative, and in 32 bits it may wrap.
 * Nobody launches 2^24 such programs, but nothing forbids it. So the compiler states the sizes up to which the index is right
 * (kernel.limits: here 2^24 - 1 programs), uses the fact, and whoever launches compares the sizes at hand with them: beyond, a variant is
 * compiled that takes nothing for granted (kernel.any_size).
 *
 * One rule of the language helps where no size does (docs/language.md, "Integers"): what an index is divided by is positive unless it is a
 * constant. The programs of a last group, min(tiles - first, GROUP), are not known to be otherwise. The interpreter checks it.
 *
 * Only bounds that launches keep in practice are stated (SIZES_LEAST, and of a product of two sizes SIZES_LEAST_PRODUCT); where an index needs a smaller one, as a hash does, there is no fact. */
#ifndef TLC_OPT_SIZES_H
#define TLC_OPT_SIZES_H

#include "opt/ranges.h"

enum { SIZES_LEAST = 1 << 14, SIZES_LEAST_PRODUCT = 1 << 22 };

/* Is every element of v between 0 and `most`, for all launches within k's limits? They are lowered for it if need be. */
bool sizes_keep_within(struct kernel *k, const struct ranges *r, const struct value *v, i64 most);
/* The same between -most and `most`. */
bool sizes_keep_bounded(struct kernel *k, const struct ranges *r, const struct value *v, i64 most);

#endif

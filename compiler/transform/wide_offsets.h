/* Offsets of addresses in 64 bits.
 *
 * Sources compute offsets in 32 bits, `pid * BLOCK + arange`, and behind 2^31 elements these wrap. Code compiled for
 * launches with more memory (BOUNDS_WIDE) has them in 64: each sum, difference, product, left shift, quotient,
 * remainder, minimum, maximum or choice of 32-bit integers that an offset is computed from, through tiles and control
 * flow, and the comparisons of such values, which are masks. Other operations (a bitwise and, a conversion, a store of
 * the number) read the low half, which is what wraps as the language says.
 *
 * Other code counts on fewer than 2^31 - 2^24 elements behind each pointer (runtime/device/conditions.h), which every
 * launch is compared with. */
#ifndef TLC_TRANSFORM_WIDE_OFFSETS_H
#define TLC_TRANSFORM_WIDE_OFFSETS_H

#include "ir/ir.h"

/* Is an offset of an address computed in 32 bits? */
bool has_narrow_offsets(const struct kernel *k);
/* Only for evaluated IR, before all passes. */
void widen_offsets(struct kernel *k);

#endif

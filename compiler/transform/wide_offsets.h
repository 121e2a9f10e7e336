/* Address offsets in 64 bits.
 *
 * Sources compute offsets in 32 bits, `pid * BLOCK + arange`, which wrap beyond 2^31 elements. Code compiled for
 * launches with larger tensors (BOUNDS_WIDE) computes them in 64 bits: each sum, difference, product, left shift,
 * quotient, remainder, minimum, maximum or select of 32-bit integers that an offset is computed from, through tiles and
 * control flow, and the comparisons of such values, which are masks. Other operations (a bitwise and, a conversion, a
 * store of the number) read the low half, which wraps as the language defines.
 *
 * Other code assumes fewer than 2^31 - 2^24 elements after each pointer (runtime/device/conditions.h), which every
 * launch checks. */
#ifndef TLC_TRANSFORM_WIDE_OFFSETS_H
#define TLC_TRANSFORM_WIDE_OFFSETS_H

#include "ir/ir.h"

/* True if an offset of an address is computed in 32 bits. */
bool has_narrow_offsets(const struct kernel *k);
/* Widens the offsets. Only for evaluated IR, before all passes. */
void widen_offsets(struct kernel *k);

#endif

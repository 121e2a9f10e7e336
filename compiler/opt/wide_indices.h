/* Indices that do not fit 32 bits. `program_id * stride + arange` is a number of 32 bits in the language, and wraps: in
 * Triton a launch with more than 2^31 elements reads and writes somewhere else. Here the launch runs the index program
 * of the kernel (base/index_program.h), and where an index may not fit, a variant whose indices are of 64 bits.
 *
 * An index is what is added to a pointer, what masks compare, and the bounds of loops: sums, differences, products,
 * quotients, remainders, minima, maxima and choices of parameters, program ids, ranges and indices of loops. What comes
 * from memory or is carried by a loop is not known, and what is computed from it in 32 bits is not checked. Where a sum
 * or product would not fit with sizes of 128 already, as in a hash, it is meant to wrap: it is not checked, and does so
 * in both variants. Operations that are none of these, such as `&` and unsigned division, take numbers of 32 bits as
 * they are. */
#ifndef TLC_OPT_WIDE_INDICES_H
#define TLC_OPT_WIDE_INDICES_H

#include "ir/ir.h"

/* Both of a kernel as it was evaluated. Makes k->indices. */
void find_indices(struct kernel *k);
/* Computes these indices in 64 bits, and the comparisons of masks with them. */
void widen_indices(struct kernel *k);

#endif

/* Axis analysis: contiguity, divisibility and constancy of a tile's values along each dimension.
 *
 * Along dimension d the values come in aligned runs of contiguity[d] elements that increase by one; the first value of
 * each run is a multiple of divisibility[d] (bytes for pointers); and in aligned runs of constancy[d] elements they are
 * all equal. All three are powers of two. From them follow vector widths of loads and stores, with and without masks.
 * The idea and most rules are those of Triton's AxisInfo; runs are tracked so that a divisibility never outlives the
 * contiguity it was stated for.
 *
 * Indices that may wrap have such runs only where these are aligned, or where the limits of launches
 * (analysis/launch_bounds.h) keep the index from wrapping. This decides // and % of values that may be negative, and
 * extensions to the width of an address.
 */
#ifndef TLC_ANALYSIS_AXIS_H
#define TLC_ANALYSIS_AXIS_H

#include "ir/ir.h"

struct axis_info {
	i32 contiguity[MAX_RANK], divisibility[MAX_RANK], constancy[MAX_RANK];
	i32 is_constant; /* every element is `constant` */
	i64 constant;
};

enum { AXIS_MAX_DIVISOR = 1 << 24 };

struct axis_analysis;
struct ranges;
/* Analyses the whole kernel; the result lives in its arena. Adds the limits of launches that it relies on to k's
 * limits. */
struct axis_analysis *axis_analyze(struct kernel *k, const struct ranges *ranges);
/* For a value made after the analysis: 1 everywhere, no facts. */
__attribute__((returns_nonnull)) const struct axis_info *axis_of(const struct axis_analysis *a, const struct value *v);
/* The same without what the kernel promises (tl.max_contiguous …). Kernels promise runs that do not hold where a tile
 * hangs over an edge, and where vectors are not possible either: there each element's own address counts. Promises of
 * contiguity decide how wide vectors are, and nothing else. */
__attribute__((returns_nonnull)) const struct axis_info *axis_proved(const struct axis_analysis *a,
								      const struct value *v);

/* How many elements a load or store through `ptr` (with `mask`, or NULL) can move at once along dimension d: a power of
 * two, at most 128 bits. */
int axis_vector_width(const struct axis_analysis *a, const struct value *ptr, const struct value *mask, int d);

/* Elements of less than a word, contiguous along d but at addresses that may lie anywhere in a word: how many of them
 * make a run, which is loaded as whole words between pieces of `*unit` bytes (gpu/codegen/memory.c). 0 where that is
 * not possible, or where vectors are possible. */
int axis_run_length(const struct axis_analysis *a, const struct value *ptr, const struct value *mask, int d, int *unit);

#endif

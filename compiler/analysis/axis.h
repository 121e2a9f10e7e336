/* Axis analysis: contiguity, divisibility and constancy of a tile's values along each dimension.
 *
 * Along dimension d the values form aligned runs of contiguity[d] elements that increase by one. The first value of
 * each run is a multiple of divisibility[d] (in bytes for pointers). In aligned runs of constancy[d] elements all
 * values are equal. All three are powers of two. They determine the vector widths of loads and stores, with and without
 * masks. The idea and most rules come from Triton's AxisInfo. A divisibility always refers to the first element of a
 * run, and is reduced when the runs become shorter.
 *
 * Indices that may wrap have such runs only if the runs are aligned, or if launch bounds (analysis/launch_bounds.h)
 * keep the index from wrapping. This affects // and % of values that may be negative, and extensions to the width of an
 * address. */
#ifndef TLC_ANALYSIS_AXIS_H
#define TLC_ANALYSIS_AXIS_H

#include "ir/ir.h"

struct axis_info {
	i32 contiguity[MAX_RANK], divisibility[MAX_RANK], constancy[MAX_RANK];
	i32 is_constant; /* true if every element is `constant` */
	i64 constant;
};

enum { AXIS_MAX_DIVISOR = 1 << 24 };

struct axis_analysis;
struct ranges;
/* Analyses the whole kernel. The result is allocated in the kernel's arena. Adds the launch bounds that it relies on to
 * k->limits. */
struct axis_analysis *axis_analyze(struct kernel *k, const struct ranges *ranges);
/* The info of v. For a value created after the analysis: 1 everywhere, which states no facts. */
__attribute__((returns_nonnull)) const struct axis_info *axis_of(const struct axis_analysis *a, const struct value *v);
/* Gives v, which was created after the analysis, the info of a value with the same elements. */
void axis_copy(struct axis_analysis *a, const struct value *v, const struct value *same);
/* The info of v without the kernel's hints (tl.max_contiguous …). Kernels hint runs that do not hold where a tile
 * extends beyond an edge. Where vectors are not possible, the address of each element counts. So hints of contiguity
 * determine vector widths only. */
__attribute__((returns_nonnull)) const struct axis_info *axis_proved(const struct axis_analysis *a,
								      const struct value *v);

/* The number of elements that a load or store through `ptr` (with `mask`, or NULL) can access at once along dimension
 * d: a power of two, at most 128 bits. */
int axis_vector_width(const struct axis_analysis *a, const struct value *ptr, const struct value *mask, int d);

/* The number of elements of an unaligned vector load along d: elements smaller than a word, contiguous along d, at
 * addresses with any alignment within a word. Such a run is loaded as whole words and pieces of `*unit` bytes at both
 * ends (gpu/codegen/memory.c). 0 if it is not possible, or if aligned vectors are possible. */
int axis_run_length(const struct axis_analysis *a, const struct value *ptr, const struct value *mask, int d, int *unit);

#endif

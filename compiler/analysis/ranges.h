/* Value ranges and affine expressions, which decide masks, comparisons and signs.
 *
 * One forward walk over the kernel computes for every integer value
 *   - the interval of its elements in their width, read as signed numbers, and
 *   - two affine expressions c + Σ coef·scalar that bound the ideal value of every element: the integer that sums,
 *     differences and products give in unbounded arithmetic. The machine value is the ideal value modulo 2^width. Sums,
 *     differences and products commute with the modulus, so they need no proof that nothing wraps. Every other
 *     operation (a comparison, an extension, a quotient, a minimum) reads the machine value, and uses an operand's
 *     expressions only if the interval of the ideal value lies within the type (`wraps` is false).
 *
 * The walk visits each operation once, after its operands, so its time is linear in the size of the kernel. A carried
 * value is affine in the index of its loop if it grows by a constant; otherwise it may be any value. The index of a
 * loop stays a term, so that equal terms cancel. Queries replace it by the bounds of its loop afterwards
 * (affine_without_indices).
 *
 * tl.assume narrows the interval of a value if every execution that computes the value reaches the assumption. In a
 * query about a place that the assumption dominates, it narrows the interval of a scalar. */
#ifndef TLC_ANALYSIS_RANGES_H
#define TLC_ANALYSIS_RANGES_H

#include "analysis/affine.h"

struct range {
	i64 min, max; /* of the machine value, signed; 0 and 1 for i1 */
	bool wraps;   /* the ideal value may differ from the machine value */
	/* The result of the operation in unbounded integers may differ from the machine value: `wraps`, or the ideal
	 * value has no affine expression, so that the machine value counts as ideal, and its interval exceeds the
	 * type. */
	bool overflows;
	const struct affine *lo, *hi; /* bounds of the ideal value; never NULL; known for integers */
};

struct ranges;
struct ranges *ranges_analyze(const struct kernel *k);
/* The range of v. For a value created after the analysis: the range of its type. */
__attribute__((returns_nonnull)) const struct range *value_range(const struct ranges *r, const struct value *v);

/* Bounds of the machine value of v: value_range's bounds, or the scalar as a term if a scalar may wrap. */
const struct affine *exact_lo(struct ranges *r, const struct value *v);
const struct affine *exact_hi(struct ranges *r, const struct value *v);
/* The smallest (`upper` false) or greatest value of `a`, with the indices of all loops except `keep` (NULL if none)
 * replaced by their bounds. */
struct affine affine_without_indices(struct ranges *r, const struct affine *a, const struct op *keep, bool upper);
/* The interval of `a` at operation `at` (anywhere if NULL). False if it is unknown or exceeds half the range of 64
 * bits. */
bool affine_interval(const struct ranges *r, const struct affine *a, const struct op *at, i64 *lo, i64 *hi);

/* A lower bound of v = x / m * m in terms of x. value_range treats the quotient as a separate scalar and does not find
 * it. */
struct affine lower_bound_of_rounded(struct ranges *r, const struct value *v);

/* The bounds that launch_bounds.c has computed: value → struct known_bound. Valid as long as the analysis. */
struct map *size_bounds(const struct ranges *r);

/* True if a <= 0 wherever `at` executes. */
bool never_positive(struct ranges *r, const struct affine *a, const struct op *at);

#endif

/* Value ranges and affine expressions, which decide masks, comparisons and signs.
 *
 * One forward walk over the kernel computes for every integer value
 *   - the interval of its elements as the machine holds them, read as signed numbers, and
 *   - two affine expressions c + Σ coef·scalar between which the ideal value of every element lies: the integer that
 *     sums, differences and products give without a width. The machine holds it modulo 2^width. Sums, differences and
 *     products need no proof that nothing wraps, since they commute with the modulus. Every other operation (a
 *     comparison, an extension, a quotient, a minimum) reads the machine's value, and takes an operand's expressions
 *     only where the interval of the ideal value lies within the type (`wraps` is false).
 *
 * The walk visits an operation once, after its operands, so its time is linear in the kernel's size. A carried value is
 * affine in the index of its loop where it grows by a constant, else it is anything. The index of a loop stays a term,
 * so that equal terms cancel; queries replace it by the bounds of its loop afterwards (affine_without_indices).
 *
 * tl.assume narrows the interval of a value where every execution that computes the value reaches the assumption, and
 * the interval of a scalar in a query about a place that the assumption dominates. */
#ifndef TLC_ANALYSIS_RANGES_H
#define TLC_ANALYSIS_RANGES_H

#include "analysis/affine.h"

struct range {
	i64 min, max; /* of the machine's value, signed; of i1: 0 and 1 */
	bool wraps;   /* the ideal value may differ from the machine's */
	/* The operation's result in unlimited integers may differ from the machine's: `wraps`, or the ideal value has
	 * no affine expression, so that the machine's value counts as ideal, and its interval leaves the type. */
	bool overflows;
	const struct affine *lo, *hi; /* of the ideal value; never NULL, known unless the value is no integer */
};

struct ranges;
struct ranges *ranges_analyze(const struct kernel *k);
/* For a value made after the analysis: the range of its type. */
__attribute__((returns_nonnull)) const struct range *value_range(const struct ranges *r, const struct value *v);

/* Bounds of v itself, as the machine holds it: value_range's, or for a scalar that may wrap the scalar as a term. */
const struct affine *exact_lo(struct ranges *r, const struct value *v);
const struct affine *exact_hi(struct ranges *r, const struct value *v);
/* The smallest (`upper` false) or greatest value of `a` with the indices of all loops but `keep` (or NULL) replaced by
 * their bounds. */
struct affine affine_without_indices(struct ranges *r, const struct affine *a, const struct op *keep, bool upper);
/* The interval of `a` where `at` executes (or anywhere: NULL). False when unknown or beyond half of what 64 bits
 * hold. */
bool affine_interval(const struct ranges *r, const struct affine *a, const struct op *at, i64 *lo, i64 *hi);

/* A lower bound of v = x / m * m in terms of x, which value_range does not see: it takes the quotient for a scalar of
 * its own. */
struct affine lower_bound_of_rounded(struct ranges *r, const struct value *v);

/* Of launch_bounds.c: what limits of launches have been found to make of values. It lasts as long as the analysis. */
struct map *size_bounds(const struct ranges *r);

/* Does the loop provably run at most once? */
bool loop_runs_once(const struct op *loop);

/* start + arange(first, last + 1), a row of numbers that does not wrap if its ends do not. */
struct row {
	struct value *start; /* NULL: 0 */
	i64 first, last;
};
bool row_of(const struct value *x, struct row *r);

#endif

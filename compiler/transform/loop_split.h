/* Splitting a loop in two: a main loop that a transformation rewrites, and the original loop for the remaining
 * iterations.
 *
 * Ends are computed in 64 bits. Bounds and steps of fewer bits cannot wrap there. If bounds of 64 bits might wrap, the
 * split is guarded at run time: outside the range in which its arithmetic is exact, the main loop has no iterations. */
#ifndef TLC_TRANSFORM_LOOP_SPLIT_H
#define TLC_TRANSFORM_LOOP_SPLIT_H

#include "support/map.h"
#include "ir/pass.h"

/* The range in which the arithmetic of a split is exact: -EXACT_BOUND <= lower, upper <= EXACT_BOUND, step <=
 * EXACT_BOUND. */
#define EXACT_BOUND (INT64_MAX / 8)

/* max(upper, lower) in 64 bits: the end of the loop, or its lower bound if it has no iterations. */
struct value *loop_end(struct builder *b, const struct op *loop);
/* The number of iterations from `from` until `end`, both in 64 bits: ceil((end - from) / step). */
struct value *count_iterations(struct builder *b, const struct op *loop, struct value *from, struct value *end);
/* The conjunction of `guard` (NULL if true) and min <= v <= max. Only the comparisons that the range of v does not
 * decide are built. */
struct value *guard_range(struct pass_state *s, struct builder *b, struct value *guard, struct value *v, i64 min,
			  i64 max);
/* `end`, given in 64 bits, as the upper bound of a main loop. Selects the loop's lower bound at run time if `guard` is
 * false (NULL if true), or if the bounds are outside the exact range (see above). */
struct value *guarded_end(struct pass_state *s, struct builder *b, const struct op *loop, struct value *end,
			  struct value *guard);
/* Builds the main loop, a copy of the loop up to `end`, and returns it. `end` must be an index value of the loop, or
 * the value after the last one. The original loop runs from there, neither pipelined nor unrolled. `map` receives the
 * copies of the values in the loop. */
struct op *split_loop(struct pass_state *s, struct op *loop, struct value *end, struct map *map);

#endif

/* Cutting a loop in two: a main loop that some transformation rewrites, and the loop itself for the iterations left.
 *
 * Ends are computed in 64 bits. Bounds and steps of fewer bits cannot wrap there; where bounds of 64 bits might, the
 * cut is guarded at run time: outside the range in which its arithmetic is exact, the main loop has no iterations. */
#ifndef TLC_TRANSFORM_LOOP_SPLIT_H
#define TLC_TRANSFORM_LOOP_SPLIT_H

#include "support/map.h"
#include "ir/pass.h"

/* What the arithmetic of a cut may rely on: -EXACT_BOUND <= lower, upper <= EXACT_BOUND, step <= EXACT_BOUND. */
#define EXACT_BOUND (INT64_MAX / 8)

/* max(upper, lower) in 64 bits: where the loop ends, if it has iterations, and where it begins otherwise. */
struct value *loop_end(struct builder *b, const struct op *loop);
/* The number of iterations of a loop from `from` until `end`, 64 bits both: ceil((end - from) / step). */
struct value *count_iterations(struct builder *b, const struct op *loop, struct value *from, struct value *end);
/* `guard` (NULL: true) and min <= v <= max, of which comparisons are made that the range of v does not decide. */
struct value *guard_range(struct pass_state *s, struct builder *b, struct value *guard, struct value *v, i64 min,
			  i64 max);
/* `end`, 64 bits, as the upper bound of a main loop; the loop's lower bound where its bounds are not known to be exact
 * (above), and are not at run time, and where `guard` (or NULL) is false. */
struct value *guarded_end(struct pass_state *s, struct builder *b, const struct op *loop, struct value *end,
			  struct value *guard);
/* The main loop, a copy of the loop up to `end`, which must be an index value of the loop or behind the last one; the
 * loop goes on from there, as a loop that is neither pipelined nor unrolled. `map` gets the copies of what it holds. */
struct op *split_loop(struct pass_state *s, struct op *loop, struct value *end, struct map *map);

#endif

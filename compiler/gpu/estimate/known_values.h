/* The integers of one program of a launch, as far as they follow from the arguments and the program's number: scalars,
 * tiles of evenly spaced numbers, and the share of elements for which a mask is true. */
#ifndef TLC_GPU_ESTIMATE_KNOWN_VALUES_H
#define TLC_GPU_ESTIMATE_KNOWN_VALUES_H

#include "gpu/estimate/estimate.h"

enum known_kind {
	NOT_KNOWN,
	/* first + step * i for the elements i < n of a tile, or of one of its dimensions (n = 1: a scalar), in
	 * iteration 0 of a loop; by `advance` more in each of the `iterations` of the loop (1: it does not change) */
	NUMBERS,
	SHARE, /* of bools: the part that is true, from 0 to 1, of the elements and iterations */
};
struct known {
	enum known_kind kind;
	i64 first, step, n, advance, iterations;
	u32 loop; /* the number of that loop, from 1 */
	double share;
};
struct known_values {
	const struct launch_shape *launch;
	u32 program[3];
	/* The iteration in which a number is evaluated that does not change evenly, as a part of the loop: from 0 to 1.
	 */
	double iteration;
	struct known *at; /* by value->mark */
};

/* Evaluates the results of o, which is neither a loop nor a branch. */
void know_results(struct known_values *k, const struct op *o);
static inline struct known known_of(const struct known_values *k, const struct value *v)
{
	return k->at[v->mark];
}
/* True if v is a known scalar. If it changes in a loop, *out is its value in k->iteration. */
bool single_number(const struct known_values *k, const struct value *v, i64 *out);
/* The part of the elements and iterations for which v, a bool or a tile of bools, is true. False: not known. */
bool known_share(const struct known_values *k, const struct value *v, double *out);
static inline struct known one_number(i64 v)
{
	return (struct known){.kind = NUMBERS, .first = v, .n = 1, .iterations = 1};
}

#endif

/* Random kernels of the kind "moves": those of random.h with operations that move elements, or combine several tiles.
 */
#ifndef TLC_TESTS_RANDOM_MOVES_H
#define TLC_TESTS_RANDOM_MOVES_H

#include "random.h"

/* What a node holds while a kernel is evaluated. */
struct elements {
	int64_t *i;
	double *f, *error;
};

static inline bool is_move(enum op op)
{
	return op >= GATHER && op <= MAP;
}

/* The functions that are mapped, and that reductions and scans combine by. */
extern const char move_functions[];
void move_print(FILE *f, const struct program *p, int node);
void move_evaluate(const struct program *p, int node, struct elements *all);

#endif

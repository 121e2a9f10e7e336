/* Random kernels of the fourth kind: nests of loops whose bounds and steps lie at the ends of their types.
 *
 * Bounds are of every integer type, in the text, arguments, or from memory. Indices run up or down, in steps of up to
 * the largest number of the type. Bodies carry values, load and store tiles under masks that compare an index and its
 * neighbours with a bound, and multiply tiles, so that loops are split, unrolled, pipelined and flattened.
 *
 * loops.c makes one, loops_text.c prints it, loops_eval.c evaluates it over ideal integers. */
#ifndef TLC_TESTS_RANDOM_LOOPS_H
#define TLC_TESTS_RANDOM_LOOPS_H

#include "random.h"

enum { LOOP_STATEMENTS = 40, NESTS = 8, LOOP_NUMBERS = 48, LANES = 32, ROWS = 4, SIDE = 16 };
enum { MOST_ITERATIONS = 200, FARTHEST = 200 }; /* from a loop's first index, for one that is part of an address */

/* How the text states a number: itself; cast to its type; an argument; from memory; from memory, between two constants;
 * an argument and a constant. */
enum stated { LITERAL, TYPED, ARGUMENT, FROM_MEMORY, BETWEEN, SUM_OF_TWO, STATED };

struct loop_number {
	tl_dtype t;
	int64_t value, low, high; /* BETWEEN: the constants; SUM_OF_TWO: low + high */
	enum stated form;
	struct array *array; /* FROM_MEMORY, BETWEEN */
};

struct loop_nest {
	tl_dtype t;             /* of the index */
	int lower, upper, step; /* numbers; step: -1 for none in the text */
	bool down;              /* the step is negative: a literal, of which the number is the magnitude */
	bool near;              /* the index is never farther than FARTHEST from the first one */
	int parent;             /* or -1 */
	int stages, unroll;     /* 0: none in the text */
	bool flatten, tl_range;
	int iterations; /* in one run of the loop */
};

enum loop_statement_kind {
	L_COUNT,
	L_MIX,
	L_WIDE,
	L_OWN,
	L_GROW,
	L_MASKS,
	L_LOAD,
	L_LOAD_ROWS,
	L_STORE,
	L_DOT,
	L_NEST, /* two loops, of which the inner one has a scalar as its first result */
	L_WHEN,
	L_FOR,
	L_END
};

/* scale · index + shift + arange, compared with a number. */
struct loop_mask {
	int scale, shift, bound;
	enum op op; /* LT, LE, GT, GE */
	bool mirrored;
};

struct loop_statement {
	enum loop_statement_kind kind;
	int loop; /* the loop it stands in; of L_FOR and L_END: itself */
	struct loop_mask mask;
	bool masked;
	bool by_distance; /* addresses from the indices of the loops around it, else from a counter */
	int constant;
	struct array *array;
	bool dead;
};

struct loops {
	struct loop_number number[LOOP_NUMBERS];
	struct loop_nest loop[NESTS];
	struct loop_statement statement[LOOP_STATEMENTS];
	int nnumbers, nloops, n, warps, stages;
	struct array *p, *a, *b, *out, *wide, *own, *acc, *rows, *dots;
};

/* The type of a number where a loop's bounds meet, and of two such. */
tl_dtype number_type(const struct loop_number *x);
tl_dtype promoted(tl_dtype a, tl_dtype b);
/* The value without a width. */
__int128 ideal(tl_dtype t, int64_t v);
char *loops_text(const struct loops *l);
void loops_evaluate(struct loops *l);

#endif

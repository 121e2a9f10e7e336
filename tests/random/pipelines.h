/* test-random --kind pipelines: random kernels of loops that a compiler may pipeline, in all the ways it has.
 *
 * A kernel works on tiles of its own: one a program, or in a loop around. For each tile it has one to three loops, one
 * behind the other, over the iterations [0, n) together. They share a list of steps: loads by pointers that are
 * computed or carried, block pointers, descriptors and numbers of pages, masked or not; products, reductions, rescaled
 * accumulators, stores and branches. A step may be in some of the loops only, as a mask is in attention's second one.
 *
 * All numbers are small integers, so that every order of evaluation gives the same, and are evaluated here in double.
 * pipelines.c makes a kernel and runs it, pipelines_steps.c chooses the steps, pipelines_text.c
 * prints it, pipelines_loads.c its loads, pipelines_eval.c evaluates it. */
#ifndef TLC_TESTS_RANDOM_PIPELINES_H
#define TLC_TESTS_RANDOM_PIPELINES_H

#include "random.h"
#include "../run/suite.h"

enum { PIPE_STEPS = 44, PIPE_VALUES = 44, SEGMENTS = 3, PIPE_ARGS = 60 };

enum pipe_kind {
	P_LOAD,    /* operand `to` from memory */
	P_NUMBER,  /* number `to` from memory */
	P_LINE,    /* row `to` from memory */
	P_TURN,    /* operand `to` = tl.trans(a) */
	P_NEGATE,  /* operand `to` = -a */
	P_CLAMP,   /* operand `to` = result or sum a, between -2 and 2 */
	P_LIFT,    /* result `to` = operand a */
	P_DOT,     /* result `to` = a·b */
	P_SUM,     /* sum `to` += a·b, as `form` says */
	P_PLUS,    /* result `to` = a + b, where b is a result, a row or a number */
	P_TIMES,   /* result `to` = a * b, where b is a row or a number */
	P_WHERE,   /* result a = a where a diagonal that moves allows it, else -1 */
	P_REDUCE,  /* row `to` = the most, the sum or the least of a along rows or columns */
	P_ADD,     /* sum `to` += a: a tile, or a row */
	P_MOST,    /* carried row `to` = max(to, a) */
	P_RESCALE, /* sum `to` *= 1 or -1, as row a says */
	P_KEEP,    /* sum `to` = result a */
	P_PAST,    /* result `to` = 2 · sum a, as it is before later steps */
	P_STORE,   /* result, sum or row a of this iteration, to memory */
	P_WRITE,   /* operand a, to where load `b` reads in this iteration, or in the next one (form) */
	P_AFTER,   /* ones, to where load `b` reads in iteration `form` of the next tile; behind the loops */
};
enum { PLUS, THIRD, NEGATED }; /* of a sum: s += dot(a, b); s = dot(a, b, s); s = dot(a, b, -s) */

/* What memory holds of tile and iteration: tiles under each other, or those of the iterations side by side. */
struct pipe_step {
	enum pipe_kind kind;
	int to, a, b, form;
	unsigned where; /* bit i: in loop i; 0: in front of the loops */
	int parity;     /* only in iterations that are even or odd; or -1 */
	bool dead;

	enum {
		BY_POINTERS,
		BY_WALK,    /* pointers that the loop carries */
		BY_BASE,    /* tiles of a pointer that it carries */
		BY_RUN,     /* rows or columns that it carries */
		BY_PAGE,    /* the number of the tile is in memory */
		BY_PAGES,   /* the number of each row is */
		BY_BLOCK,   /* block pointers made in the loop */
		BY_ADVANCE, /* and carried */
		BY_MADE,    /* a descriptor made in front of everything */
		BY_GIVEN,   /* and given */
	} through;
	enum { ALWAYS_SAME, OF_TILE, OF_HALF, OF_REST, OFS } of; /* tile, tile // 2, tile % 2 */
	enum { NO_MASK, SOME_ROWS, UP_TO_ROW, UP_TO_COLUMN, UP_TO_BOTH, SOME_ITERATIONS, MASKS } mask;
	tl_dtype type;               /* of memory */
	bool shifts;                 /* loop i reads what iteration it + i + 1 would */
	bool moves, turned, wide;    /* with the iteration; memory holds columns one after another; side by side */
	bool stated, swapped, apart; /* the distance of rows is in the text; ways to write the same */
	int pad, skew, bound[2], fill, hint;
	enum { BY_ITSELF, IN_TUPLE, IN_OBJECT } held; /* a descriptor, or a block pointer that is carried */
	struct array *array, *table;
	double *memory; /* that changes while it is evaluated */
	tl_descriptor given;
};

struct pipe_value {
	enum { OPERAND, RESULT, CARRIED, ROW, CARRIED_ROW, NUMBER } kind;
	int rows, columns;
	bool across;    /* a row has a number for each column, not each row */
	unsigned where; /* loops where it is known */
	double *at;
	struct array *out;
};

struct pipelines {
	struct pipe_step step[PIPE_STEPS];
	struct pipe_value value[PIPE_VALUES];
	int n, nvalues;
	unsigned where; /* of the steps being made */
	enum { CLEAN, MIXED, RAGGED } style;
	bool bounded;                                   /* most loads by pointers compare rows and columns */
	enum { NO_PATTERN, MATMUL, ATTENTION } pattern; /* the last two: as compilers like them */
	enum { ANY_SIDE, LEFT, RIGHT } side;            /* of a dot, where the next load goes */
	int dims[3];                                    /* M, N, K */
	tl_dtype type, sum;
	int precision; /* of fp32's products */
	int warps, stages;

	enum { GRID, PLANE, IN_TURN, PERSISTENT } outer;
	int tiles, programs, split; /* split: into rows of so many tiles, with a loop for each; or 0 */
	bool counted;               /* the tile is a number that the loop carries, not its index */
	bool fresh, flatten, adds;  /* sums begin anew for each tile; they are added to memory atomically */
	int under;                  /* tiles below it have loops; or -1: all */
	int max_ctas;

	int nsegments, bound[SEGMENTS + 1]; /* iterations of loop i: [bound[i], bound[i + 1]) */
	int unit, offset, step_by;          /* the index is offset + unit * iteration; 1, 2, or -1: backwards */
	enum { NO_ENDS, ENDS_LOADED, ENDS_COMPUTED } ends; /* of each tile */
	int end[2];                                        /* computed: min(n, end[0] * tile + end[1]) */
	bool shortens;                                     /* each tile sets the end of the next one to 1 */
	int gap;                                           /* iterations left out in front of the second loop */
	bool multiplied, long_index, literal;              /* bounds in the text; of 64 bits; the first one a number */
	bool asked;                                        /* num_stages stands in the loop */
	bool whiles;                                       /* while loops count in place of for loops */
	int option;                                        /* another one; 0: none */
	struct array *lengths;
	bool halved; /* distances of rows, and limits, are products of two parameters */
	bool rooms;  /* limits are differences of numbers in memory */
	struct array *room;
	int early;   /* so many programs more end at once */
	bool writes; /* by the only program, to what it loads */
	bool bad;    /* numbers that are not exact were met */
};

/* A tile of a load or store, as memory holds it, and all of that. */
struct pipe_place {
	int rows, columns;
	int64_t all_rows, all_columns, distance; /* of rows */
};
struct pipe_place pipe_place(const struct pipelines *d, const struct pipe_step *s);
/* Is there a limit that the kernel does not spell? */
static inline bool pipe_has_limit(const struct pipe_step *s)
{
	return (s->through >= BY_BLOCK && !s->stated) || (s->mask && !s->swapped);
}
/* Of all loops together; how many tiles `of` tells apart. */
int pipe_iterations(const struct pipelines *d);
int pipe_tiles(const struct pipelines *d, const struct pipe_step *s);

/* pipelines_steps.c */
void pipe_make_steps(struct pipelines *d);

/* pipelines_text.c: prints it; fills in the arguments in the order of the text. */
char *pipe_text(struct pipelines *d, tl_arg *args, size_t *nargs);

/* pipelines_eval.c: what is stored is wanted then. False where numbers are not exact. */
bool pipe_evaluate(struct pipelines *d, bool wants);

#endif

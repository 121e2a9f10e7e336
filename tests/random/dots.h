/* Random loops of dots: what dots.c makes, evaluates and runs, and dots_text.c prints. */
#ifndef TLC_TESTS_RANDOM_DOTS_H
#define TLC_TESTS_RANDOM_DOTS_H

#include "random.h"
#include "../run/suite.h"

enum { STEPS = 24, VALUES = 32, TRIPS = 5 };

enum step_kind {
	S_LOAD,    /* operand `to` from memory; early: in front of the loop, the same in all iterations */
	S_TURN,    /* operand `to` = tl.trans(a) */
	S_NEGATE,  /* operand `to` = -a */
	S_OPERAND, /* operand `to` = result a, between -2 and 2 */
	S_DOT,     /* result `to` = a·b */
	S_SUM,     /* sum `to` += a·b, as `form` says */
	S_ADD,     /* sum `to` += result a */
	S_KEEP,    /* sum `to` = result a */
	S_PAST,    /* result `to` = 2 · sum a, as it is before later steps */
	S_STORE,   /* result a of this iteration, to memory */
	S_ROWS,    /* the sums of the rows of a, to memory */
	S_WORK,    /* result a and numbers from memory, one for each column or row: their sum, product or maximum */
	S_ATOMIC,  /* result a of all iterations, added up in memory */
};
enum { PLUS, THIRD, NEGATED, FORMS };           /* of a sum: s += dot(a, b); s = dot(a, b, s); s = dot(a, b, -s) */
enum { OF_ROWS = 1, ADDS = 2, MULTIPLIES = 4 }; /* of S_WORK */

struct dot_step {
	enum step_kind kind;
	int to, a, b, form, bound; /* bound: rows below it are loaded, or 0 */
	int way;                   /* of products: 0, or an input_precision of fp32, or 1: dot_scaled */
	/* of loads: how; of what memory holds: columns of each tile, rows of the last one, or of each of a batch */
	enum { BY_POINTERS, BY_BLOCKS, BY_WALK, BY_MADE, BY_GIVEN, LOADS } through;
	int inner, last;
	tl_descriptor given;
	int parity;         /* only in iterations that are even or odd; or -1 */
	bool early, turned; /* turned: memory holds the tile's columns one after another */
	bool behind;        /* behind the loop, for each round */
	struct array *array;
	double *sums; /* S_ATOMIC */
	bool dead;
};

struct dot_value {
	int rows, columns;
	enum { OPERAND, RESULT, CARRIED } kind;
	double *at;
	struct array *out; /* of what is carried */
};

struct dots {
	struct dot_step step[STEPS];
	struct dot_value value[VALUES];
	int n, nvalues, dims[2], trips, rounds, warps, stages; /* rounds: of the loop around, or 0 */
	/* iterations of round r, if there are as many rounds: [r, n), [0, r + 1), or [r, min(r + 2, n)) */
	enum { ALL_OF_THEM, FROM_ROUND, TO_ROUND, TWO_OF_THEM, NESTS } nest;
	/* sums begin anew in each round; num_stages stands in the loop */
	bool fresh, asked;
	bool more, gradients; /* of the kind products; see make_gradients */
	int batch;
	tl_dtype type, sum;
};

enum { PRECISIONS = 5 /* of fp32 */ };

/* Is there an iteration of this round? */
static inline bool is_in_round(const struct dots *d, int round, int it)
{
	bool from = d->nest == FROM_ROUND || d->nest == TWO_OF_THEM;
	return (!from || it >= round) && (d->nest != TO_ROUND || it <= round) &&
	       (d->nest != TWO_OF_THEM || it < round + 2);
}

/* The kernel; free it. */
char *dots_text(const struct dots *d);
/* The tensor that load s goes through, and its blocks: what memory holds, tile under tile. Its rank. */
int describe(const struct dots *d, const struct dot_step *s, int64_t *shape, int64_t *stride, int32_t *block);

#endif

/* test-random --kind gradients: the backward pass of attentions as kernels are found: gradients of keys and values in a
 * loop over queries, of queries in a loop over keys, both in a program, or the former with sums of the latter in
 * memory. Logarithms of sums are given, and delta, the sum of a row of the output times its gradient.
 *
 * Queries, keys, values and gradients are small integers; results are compared with sums in double, within what
 * probabilities and the gradients of scores are rounded to. Every query has a key.
 *
 * gradients.c makes and evaluates one, gradients_text.c prints it. */
#ifndef TLC_TESTS_RANDOM_GRADIENTS_H
#define TLC_TESTS_RANDOM_GRADIENTS_H

#include "random.h"

enum { MOST_HEADS = 3, PADDED = 128 };

enum part {
	G_KEYS,
	G_QUERIES,
	G_BOTH,    /* a tile of keys, then one of queries */
	G_COLUMNS, /* a head's keys, tile by tile; those of queries are sums in memory */
	G_ATOMICS, /* a tile of keys; the same by atomics */
	PARTS
};
/* Which keys a query sees, and how far loops go. The last one is the query's own number, plus `behind`. */
enum keys {
	K_ALL,
	K_HIDDEN, /* up to the last one; loops go over all */
	K_BOUND,  /* loops begin, or end, at the tile */
	K_SPLIT,  /* a loop over what the tile sees in part, and one over what it sees as a whole */
	K_WINDOW, /* so many last ones; loops begin and end there */
	KEYS
};
enum loops { W_STARTS, W_STEPS, W_WHILE, W_DOWN, WALKS };
/* The loop over heads that share keys. H_ONE: it is one with the loop over queries. */
enum around { H_RANGE, H_STATIC, H_FLATTENED, H_ONE, AROUND };

/* Of a part: the rows of a program, and those of an iteration. */
struct blocks {
	int still, moving;
};

struct gradients {
	enum part part;
	enum keys keys;
	enum operands operands;
	enum loops loop;
	enum around around;
	tl_dtype type, result;
	struct blocks blocks[2]; /* of keys' gradients; of queries' */
	int width;               /* dimensions of a head; a tile has d */
	int d, warps, stages, heads, share, ctas;
	int m, n;                                    /* of packed sequences: of the longest */
	int lens[MOST_HEADS], start[MOST_HEADS + 1]; /* of each head */
	int window;
	int programs;          /* that work on several tiles each; 0: a program has one */
	bool packed;           /* heads are sequences, one behind the other; memory tells where each begins */
	bool rows;             /* a tensor's rows are positions, with all heads in each */
	bool upright;          /* a score's row is its query */
	bool columns[2];       /* the loop's tiles are loaded transposed: queries or keys; gradients or values */
	bool base2;            /* by exp2; so are the logarithms given */
	bool scores;           /* hidden scores are -inf, else hidden probabilities are 0 */
	bool early;            /* scales what the program keeps */
	bool late;             /* the sums are scaled, else each gradient of a score */
	bool apart;            /* products are added by themselves */
	bool distance;         /* a slope times the distance is added to scores */
	bool capped;           /* scores are `cap` times the hyperbolic tangent of what they are else, divided by it */
	bool bias;             /* a number for each query and key is added to scores */
	bool segments;         /* keys of other segments are hidden */
	bool stored;           /* gradients of scores are stored */
	bool ahead;            /* the loop's first tile is loaded an iteration before it is used */
	bool even_m, even_n;   /* nothing masks queries, or keys: their number is a multiple of the tiles */
	bool padded;           /* so are rows of logarithms and of delta, though masks are needed elsewhere */
	bool infinite;         /* logarithms of no query are infinite, else 0 */
	bool own;              /* delta is computed, where its queries are kept */
	bool fine;             /* the loop over what is seen in part has tiles of half the size */
	bool swapped;          /* it comes last */
	bool literal;          /* numbers of queries and keys */
	bool hints;            /* the loop's index is said to be a multiple of the tile */
	bool wide;             /* places of heads have 64 bits */
	int in;                /* what is in the loop is so far in: 3, where it is skipped if nothing is seen */
	const char *asked;     /* of the loop */
	const char *precision; /* of products in fp32; NULL: as it is by default */
	struct array *q, *k, *v, *g, *o, *lse, *delta, *dq, *dk, *dv, *ds, *biases, *segment_of, *starts;
};

static const double scale = 0.125, cap = 8;

static inline bool sums_queries(const struct gradients *t)
{
	return t->part >= G_COLUMNS;
}

static inline bool is_one(const struct gradients *t, bool keys)
{
	return !keys && t->share > 1 && t->around == H_ONE;
}

static inline int row_step(const struct gradients *t, bool keys)
{
	return !t->rows ? t->width : (keys ? t->heads / t->share : t->heads) * t->width;
}

static inline int lse_size(const struct gradients *t)
{
	return t->padded ? (t->m + PADDED - 1) / PADDED * PADDED : t->m;
}

static inline int tiles_of(const struct gradients *t)
{
	int keys = (t->n + t->blocks[0].still - 1) / t->blocks[0].still;
	int queries = (t->m + t->blocks[1].still - 1) / t->blocks[1].still;
	return t->part == G_KEYS || sums_queries(t) ? keys
	       : t->part == G_QUERIES               ? queries
	       : keys > queries                     ? keys
						    : queries;
}

static inline int heads_of(const struct gradients *t)
{
	return t->part == G_QUERIES ? t->heads : t->heads / t->share;
}

char *gradients_text(const struct gradients *t);

#endif

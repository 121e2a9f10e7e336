/* test-random --kind experts: products of mixtures of experts as kernels are found: rows are gathered by numbers from
 * memory, where those of an expert are behind each other, and multiplied by its matrix, which may be of smaller numbers
 * with scales. A slot is one of the experts that a token is sent to; a row of the result is a slot's.
 *
 * Numbers, scales and the weights of slots are such that all sums are exact; only silu is compared within rounding.
 *
 * experts.c makes and evaluates one, experts_text.c prints it. */
#ifndef TLC_TESTS_RANDOM_EXPERTS_H
#define TLC_TESTS_RANDOM_EXPERTS_H

#include "random.h"

enum { MOST_EXPERTS = 6, MOST_SLOTS = 120, MOST_BLOCKS = MOST_SLOTS / 16 + MOST_EXPERTS + 2, BAND = 16 };

/* How a program finds its rows and their expert. */
enum find {
	S_SORTED, /* memory has slots by expert, padded to whole tiles, and each tile's expert */
	S_RUNS,   /* an axis of the grid is experts; memory tells where the slots of each begin */
	S_LOOP,   /* the same; each program goes through all experts */
	FINDS
};
enum weights { W_SAME, W_FP8, W_INT8, W_INT4 /* in bytes */, W_WORDS /* int4 in words */, W_MX, WEIGHTS };
/* What has a scale of its own: an expert's matrix, each column, each so many numbers of a column, or of BAND columns */
enum scales { C_NONE, C_EXPERT, C_COLUMN, C_GROUP, C_BAND, SCALES };
enum pairs {
	U_NONE,
	U_TWO,   /* silu of a product times another, whose columns are behind */
	U_SPLIT, /* the same; columns take turns */
	PAIRS
};
enum order { O_AXES, O_COLUMNS, O_GROUPED, ORDERS };

struct experts {
	enum find find;
	enum weights weights;
	enum operands operands;
	enum scales scales;
	enum pairs pairs;
	enum order order;
	tl_dtype type, x_type, w_type, result, index;
	int bm, bn, bk, warps, stages, programs; /* programs that work on several tiles each; 0: a program has one */
	int tokens, top, experts, n, k, group;   /* n: columns of a matrix; group: of k, with a scale */
	int x_step, w_step, missing;             /* missing: the expert that is elsewhere, or -1 */
	int ctas;           /* most blocks of the launch; 0: as many as there are multiprocessors */
	int group_m, split; /* split: so many programs share a tile's k, and add up what they have by atomics */
	bool small;         /* rows are of small numbers, too */
	bool row_scale;     /* each row has a scale */
	bool gathered;      /* rows are loaded by a descriptor of single ones */
	bool points;        /* scales have a number beside them that is zero */
	bool bias;          /* each column of an expert has one */
	bool flush;         /* products are summed, and the sum is scaled where a group of k ends */
	bool columns;       /* a matrix's rows are its columns */
	bool before;        /* scales are applied to weights, else to products */
	bool even;          /* k is a multiple of BK: nothing masks it */
	bool wraps;         /* columns beyond the last one are the first ones */
	bool first_row;     /* the rows of no slot are the first one, else under a mask */
	bool own;           /* each slot has a row */
	bool ordered;       /* slots are in the order of experts: none is looked up */
	bool routed;        /* a row of the result is multiplied by its slot's weight */
	bool exact;         /* as many programs as sorted tiles, all of experts here: no condition is needed */
	bool zeros;         /* rows of the missing expert are zeros */
	bool returns;       /* programs without rows return, else skip the rest */
	bool numbers;       /* the loop counts slices */
	bool literal;       /* N and K */
	bool flatten;
	const char *asked, *policy; /* of the loop, and of its loads of weights */
	int expert_of[MOST_SLOTS], start[MOST_EXPERTS + 1], sorted[MOST_SLOTS];
	int blocks; /* of sorted slots */
	struct array *x, *w, *out, *s, *xs, *zs, *biases, *routes, *slots, *ids, *counts;
};

static inline int slots_of(const struct experts *t)
{
	return t->tokens * t->top;
}

/* Columns of the result. */
static inline int width(const struct experts *t)
{
	return t->pairs ? t->n / 2 : t->n;
}

static inline int groups(const struct experts *t)
{
	return t->scales >= C_GROUP ? (t->k + t->group - 1) / t->group : 1;
}

/* Scales of an expert. */
static inline int scales_of(const struct experts *t)
{
	return t->scales == C_EXPERT ? 1 : (t->scales == C_BAND ? (t->n + BAND - 1) / BAND : t->n) * groups(t);
}

static inline int round_up(int n, int to)
{
	return (n + to - 1) / to * to;
}

/* Numbers of a column in an element. */
static inline int packed(const struct experts *t)
{
	return t->weights == W_WORDS ? 8 : t->weights == W_INT4 || t->weights == W_MX ? 2 : 1;
}

/* Are they converted by instructions of the text? */
static inline bool is_int4(const struct experts *t)
{
	return packed(t) > 1 && t->weights != W_MX;
}

static inline int w_rows(const struct experts *t)
{
	return t->columns ? t->n : t->k / packed(t);
}

static inline int tiles_of(const struct experts *t)
{
	return t->find == S_SORTED ? t->blocks + !t->exact : (slots_of(t) + t->bm - 1) / t->bm;
}

static inline int columns_of(const struct experts *t)
{
	int n = t->pairs == U_TWO ? t->n / 2 : t->n;
	return (n + t->bn - 1) / t->bn;
}

char *experts_text(const struct experts *t);

#endif

/* Random kernels. make.c, tile.c, place.c and flow.c make one as a list of statements,
 * text.c prints it in the language, eval.c evaluates it over whole tiles in double and int64.
 *
 * Floating-point values are of two kinds. Exact ones are integers, small enough for their format that every order of
 * evaluation gives the same: they are compared, converted, indexed with and stored exactly. Inexact ones carry, while
 * they are evaluated, a bound on the error of each element; only continuous operations take them. */
#ifndef TLC_TESTS_RANDOM_RANDOM_H
#define TLC_TESTS_RANDOM_RANDOM_H

#include "../run/run.h"

enum { NODES = 256, PARAMS = 60, MEMORIES = 28, RANK = 3, LARGEST = 4096, MOST_INEXACT = 500 };

enum op {
	/* leaves */
	RANGE,
	FULL,
	SCALAR,
	PID,
	LOAD,
	/* elementwise; comparisons give i1 */
	NEG,
	NOT,
	ABS,
	CAST,
	BITCAST,
	EXP,
	SQRT,
	SIN,
	SIGMOID,
	LOG,
	ADD,
	SUB,
	MUL,
	DIV,
	REM,
	AND,
	OR,
	XOR,
	SHL,
	SHR,
	MIN,
	MAX,
	UMULHI,
	FDIV,
	LT,
	LE,
	GT,
	GE,
	EQ,
	NE,
	WHERE,
	FMA,
	CLAMP,
	/* shapes */
	EXPAND,
	BROADCAST,
	PERMUTE,
	RESHAPE,
	JOIN,
	SPLIT,
	/* whole tiles */
	REDUCE,
	SCAN,
	DOT,
	/* of the kind "moves" (moves.c) */
	GATHER,
	HISTOGRAM,
	SORT,
	TOPK,
	FLIP,
	CAT,
	INTERLEAVE,
	PAIR_REDUCE,
	PAIR_SCAN,
	MAP,
	/* statements */
	VAR,
	ASSIGN,
	ACCUMULATE,
	STORE,
	ATOMIC,
	FOR,
	IF,
	ELSE,
	END,
};
enum reduction { SUM, LARGE, SMALL, ARGMAX, ARGMIN, XOR_SUM, PRODUCT, REDUCTIONS };
enum loop { RANGE_TO, RANGE_FROM, RANGE_STEP, RANGE_DOWN, TL_RANGE, STATIC_RANGE, WHILE, LOOPS };
enum twist { PLAIN, REVERSED, XORED, SHUFFLED };

/* An integer the kernel is given: in its text, or as an argument, constexpr or not. */
struct number {
	int64_t value;
	int param; /* -1: in the text */
};

/* The addresses of a tile: base + the twisted coordinates times strides, or an index tile, + terms of the program and
 * of a loop. */
struct place {
	int memory;
	struct number base, stride[RANK], program, step;
	enum twist twist[RANK];
	int by[RANK];
	int index, range; /* node that holds indices, or -1: taken modulo `range`, a power of two */
	int loop;         /* the loop of `step`, or -1 */
	bool walks;       /* a pointer that moves by `step` at the end of each iteration */
	bool wide;        /* some of it in 64 bits */
	/* the mask: coordinate + scale × loop variable < bound along each axis that has one, and a tile of i1 */
	bool masked[RANK];
	struct number bound[RANK];
	int mask_loop[RANK], scale[RANK];
	int condition;
	bool some_programs; /* only those below `programs` */
	struct number programs;
};

struct node {
	enum op op;
	tl_dtype dtype;
	int rank, shape[RANK], size;
	int in[3]; /* operands; of ASSIGN and ACCUMULATE the variable first; of LOAD `other`, or -1 */
	bool inexact;
	double bound; /* of floating-point numbers: the largest magnitude */
	/* axis, permutation, literal operand, form of a loop, kind of a reduction … */
	int attr[RANK];
	bool flag;                    /* keep_dims, reverse, a literal instead of in[1] */
	struct number from, to, step; /* of a loop; `to`: what a condition compares with */
	int lo, hi, trips;            /* the loop variable's values */
	int opens;                    /* ELSE and END: the FOR or IF */
	struct place place;
	bool used, dead;
};

struct param {
	enum { POINTER, INTEGER, CONSTANT } kind;
	int64_t value; /* of a pointer, the memory */
};

struct memory {
	tl_dtype dtype;
	size_t len;
	int param, skew;                /* skew: elements past an aligned address */
	bool written, inexact, updated; /* updated: by atomics, so it has initial values */
	double bound;                   /* of what is in it at first */
	struct array *array;
	int64_t *i; /* what it holds */
	double *f, *error;
	unsigned char *touched;
};

struct program {
	struct node node[NODES];
	struct param param[PARAMS];
	struct memory memory[MEMORIES];
	int n, nparams, nmemories;
	int grid[2], warps, stages, group;
	bool moves; /* of the kind "moves" */
};

static inline int programs(const struct program *p)
{
	return p->grid[0] * p->grid[1];
}
static inline bool chance(int percent)
{
	return random_int(0, 99) < percent;
}
static inline int random_below(int n)
{
	return (int)random_int(0, n - 1);
}

/* The largest integer up to which all are numbers of the format. */
static inline double exact_limit(tl_dtype t)
{
	return 1 / unit_roundoff(t);
}

void make_program(struct program *p, bool moves); /* flow.c */

/* make.c */
struct maker {
	struct program *p;
	int visible[NODES], nvisible;
	int loop, depth, runs; /* the innermost loop or -1; blocks around; how often a statement here runs at most */
	int dims[RANK];
	int vars[NODES], nvars; /* that may be assigned to */
};
int add_node(struct maker *m, enum op op, tl_dtype t, int rank, const int *shape); /* -1: no room */
int reveal(struct maker *m, int node);
enum class { INTS = 1, BOOLS = 2, EXACTS = 4, INEXACTS = 8, FLOATS = 12, NUMBERS = 13, ANYTHING = 15 };
int pick(struct maker *m, int classes, int least_rank, int most_rank);
bool class_is(const struct node *v, int classes);
int pick_beside(struct maker *m, const struct node *a, int classes); /* one that broadcasts with it */
int convert(struct maker *m, int node, tl_dtype t);                  /* -1: it cannot be */
bool broadcasts(const struct node *a, int rank, const int *shape);
bool set_bound(struct maker *m, int node, double bound, bool inexact); /* false: too large */
int like(struct maker *m, enum op op, tl_dtype t, int in);             /* a node of one operand, of the same shape */
tl_dtype at_least_32(tl_dtype t);                                      /* the type of maxima of t */
int undo(struct maker *m, int node);                                   /* the last one; -1 */
struct number number_node(struct maker *m, int64_t value);
void make_statement(struct maker *m);

/* tile.c: false when no operands fit */
bool make_shape(struct maker *m);
bool make_reduce(struct maker *m);
bool make_scan(struct maker *m);
bool make_dot(struct maker *m);

/* moves.c */
bool make_move(struct maker *m);

/* flow.c */
bool make_output(struct maker *m);
bool make_assign(struct maker *m);
bool make_block(struct maker *m);

/* place.c */
int make_load(struct maker *m, tl_dtype t, int rank, const int *shape, double bound, bool inexact);
int make_store(struct maker *m, int node);
bool make_atomic(struct maker *m);

/* text.c */
char *program_text(const struct program *p);
extern const char *const type_names[];

/* scalar.c */
bool below(tl_dtype t, int64_t a, int64_t b);
bool compare(enum op op, bool less, bool equal);
int64_t int_op(enum op op, tl_dtype t, int64_t a, int64_t b);
int64_t update(int kind, tl_dtype t, int64_t a, int64_t b); /* by an atomic */
double float_op(enum op op, double x, double y, double z);
/* What errors of the operands, in ex, ey and ez, and rounding do to the result r. */
double float_error(enum op op, tl_dtype t, double x, double y, double r, double ex, double ey, double ez);

/* How a kernel's operands are loaded. */
enum operands {
	P_POINTERS,
	P_CARRIED, /* pointers that the loop moves */
	P_BLOCKS,
	P_DESCRIPTORS,
	OPERANDS
};

/* random.c */
int64_t setting(const char *name, int64_t otherwise); /* from the environment */
bool fails(const char *command, const char *list);    /* with this left out */
bool only(const char *kind);                          /* is it one of the kinds asked for? */
/* Launches `kernel` of the text, which it frees, and ends the case. The text is printed where RANDOM_TEXT asks for it,
 * or the case fails, behind a line with the configuration and `about`. */
__attribute__((format(printf, 6, 7))) void run_text(struct suite *s, char *text, const tl_config *config,
						    const tl_arg *args, size_t nargs, const char *about, ...);
/* A line of a kernel's text, four spaces in for each of `depth`. */
__attribute__((format(printf, 3, 4))) void put_line(FILE *f, int depth, const char *format, ...);
/* A case for each seed that the environment asks for, or else `usual` ones, if it asks for this kind. */
void each_seed(struct suite *s, const char *kind, int64_t usual,
	       void (*make)(struct suite *s, int64_t seed, const char *left_out));

/* Leaves out as many of n numbered things as it can, in two rounds, the last ones first; prints which. Returns 1. */
int shrink_list(const char *command, int n);

/* dots.c */
void theme_dots(struct suite *s);
void theme_products(struct suite *s);
int shrink_dots(const char *command);

/* loops.c */
void theme_loops(struct suite *s);
int shrink_loops(const char *command);

/* blocks.c */
void theme_random_blocks(struct suite *s);
int shrink_blocks(const char *command);

/* scaled.c */
extern const double e2m1_numbers[]; /* without the sign */
void theme_random_scaled(struct suite *s);

/* offsets.c, edges.c */
void theme_random_offsets(struct suite *s);
void theme_random_edges(struct suite *s);
void theme_random_tiles(struct suite *s);
void theme_random_attention(struct suite *s);
void theme_random_gradients(struct suite *s);
void theme_random_experts(struct suite *s);
void theme_random_pairs(struct suite *s);
void theme_random_weights(struct suite *s);
void theme_random_strips(struct suite *s);

/* pipelines.c */
void theme_random_pipelines(struct suite *s);
int shrink_pipelines(const char *command);

/* values.c */
void theme_random_values(struct suite *s);
int shrink_values(const char *command);

/* eval.c: into memory[].i or f, error and touched */
void evaluate(struct program *p);
bool is_statement(enum op op);

#endif

/* test-random --kind blocks: block pointers and tensor descriptors of one to five dimensions, which loops, branches,
 * helpers and tuples carry, advance and exchange; loads, stores, atomics, gathers and scatters through them, partly
 * outside.
 *
 * All numbers are small integers, or NaN from padding, and are evaluated here element by element.
 *
 * blocks.c makes and evaluates one, blocks_text.c prints it. */
#ifndef TLC_TESTS_RANDOM_BLOCKS_H
#define TLC_TESTS_RANDOM_BLOCKS_H

#include "random.h"

enum { DIMS = 5, CLASSES = 2, TENSORS = 6, HANDLES = 8, TILES = 40, STEPS = 60, ROWS = 8, MOST = 2048, RUNS = 16 };

static const int64_t nan_mark = INT64_MIN; /* a NaN among floats */

enum step_kind {
	B_LOAD,
	B_STORE,
	B_ATOMIC,
	B_GATHER,
	B_SCATTER,
	B_ADD,
	B_SUM,
	B_DOT,
	B_ADVANCE,
	B_SWAP,
	B_COPY,
	B_FOR,
	B_IF,
	B_ELSE,
	B_END
};
enum handle_kind { POINTERS, MADE, GIVEN }; /* block pointers; descriptors made in the kernel, arguments */

/* Handles of a class may be assigned to each other. */
struct block_class {
	tl_dtype t;
	int rank, size, block[DIMS];
	bool rows, nan; /* rows: of descriptors to gather by; nan: how descriptors pad */
};

struct tensor {
	int class, rank;
	int64_t shape[DIMS], stride[DIMS], len, skew;
	enum { READ, KEPT, UPDATED } role;
	bool stated[2]; /* shape, strides: in the text */
	struct array *array;
	tl_descriptor given;
	int64_t *now;
	unsigned char *touched;
};

struct handle {
	enum handle_kind kind;
	int class, tensor;
	int64_t at[DIMS]; /* of block pointers: where it starts; while it is evaluated: where it is, and of which tensor
			   */
	int now;
	int64_t place[DIMS];
	bool used;
};

struct tile {
	int class, size, bound;
	bool gathered, may_nan, carried;
	int64_t *at;
};

struct block_step {
	enum step_kind kind;
	int to, a, b; /* tiles; handles of B_ADVANCE, B_SWAP, B_COPY */
	int handle;
	int64_t by[DIMS], each[DIMS]; /* offsets: these, and those times the innermost loop's index */
	int program;                  /* dimension to which the program's number is added, or -1 */
	int form, trips, opens, loop; /* loop: the innermost, or -1 */
	int outside;                  /* dimensions along which elements lay outside, as bits */
	int also;                     /* that are checked besides */
	bool dead;
};

struct blocks {
	struct block_class class[CLASSES];
	struct tensor tensor[TENSORS];
	struct handle handle[HANDLES];
	struct tile tile[TILES];
	struct block_step step[STEPS];
	struct array *rows;
	int64_t row[2 * ROWS];
	int nclasses, ntensors, nhandles, ntiles, n, programs, warps, stages, loop, runs, depth;
	int visible[TILES], nvisible;
	bool dots;
	int64_t index[STEPS], pid;
};

char *blocks_text(const struct blocks *d);

#endif

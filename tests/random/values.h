/* test-random --kind values: tuples, named tuples and objects, nested, which helpers take and return, loops carry,
 * methods and comprehensions make; break, continue, return and else in and behind loops over numbers and over tuples.
 *
 * A value is evaluated as its leaves, one after the other: i32 numbers, and tiles of LANES.
 *
 * values.c makes and evaluates one, values_text.c prints it. */
#ifndef TLC_TESTS_RANDOM_VALUES_H
#define TLC_TESTS_RANDOM_VALUES_H

#include "random.h"

enum {
	LANES = 16,
	TYPES = 9,
	FIELDS = 3,
	LEAVES = 10,
	EXPRESSIONS = 900,
	STATEMENTS = 150,
	VARIABLES = 150,
	FUNCTIONS = 4,
	PARAMETERS = 3,
	GIVEN = 3,
	CALLS = 14,
	SEVEN = 7
};

struct value_type {
	enum { NUMBER, TILE, TUPLE, NAMED, OBJECT } kind; /* types 0 and 1 are the first two */
	int n, field[FIELDS], leaves, at[FIELDS];         /* at: the first leaf of each field */
};

enum expression_kind {
	X_ZERO,
	X_LITERAL,
	X_VARIABLE,
	X_FIELD,
	X_BINARY,
	X_CHOOSE,
	X_MAKE,
	X_CALL,
	X_PLUS,
	X_CAPPED,
	X_ADD,
	X_REPLACE,
	X_EACH,
	X_TOTAL,
	X_SUM,
	X_COMPARE,
	X_BOTH,
	X_NOT,
};

struct expression {
	enum expression_kind kind;
	int type, n, in[FIELDS], value; /* value: the literal, variable, field, operation or function */
	bool flag;                      /* another way to write it */
};

enum statement_kind {
	V_NEW,
	V_SET,
	V_UNPACK,
	V_FOR,
	V_WHILE,
	V_UNROLLED,
	V_EACH,
	V_IF,
	V_ELSE,
	V_END,
	V_BREAK,
	V_CONTINUE,
	V_RETURN
};

struct statement {
	enum statement_kind kind;
	int var[FIELDS], n, e, trips, opens;
	bool dead;
};

struct function {
	int nparams, param[PARAMETERS], result, from, to, calls; /* variables; type; statements */
	bool variadic; /* the last parameter takes the arguments that are left */
};

struct values {
	struct value_type type[TYPES];
	struct expression x[EXPRESSIONS];
	struct statement s[STATEMENTS];
	struct function f[FUNCTIONS]; /* the last one is the kernel */
	int var[VARIABLES];           /* types */
	int ntypes, nx, n, nvars, nfunctions, current, visible[VARIABLES], nvisible, loops, breaks, depth, given[GIVEN],
		ngiven;
	int warps;
	int64_t cell[VARIABLES][LEAVES * LANES], argument[GIVEN][LEAVES], result[LEAVES * LANES];
};

char *values_text(const struct values *d);
bool opens_block(enum statement_kind kind);

#endif

/* Random kernels of the second kind: trees of statements and expressions over integers of all types, scalars and
 * tiles of one dimension, at the ends of their types: nested control flow with new and carried variables, break,
 * continue, return and `else` of loops, helper functions with two results, indices used behind their loops, chained
 * comparisons, promises and assumptions that hold where they are reached only, indices that wrap under masks, pointers
 * moved backwards, long chains of shared values.
 *
 * tree_make.c makes one, tree_text.c prints it, tree_eval.c evaluates it element by element. */
#ifndef TLC_TESTS_RANDOM_TREE_H
#define TLC_TESTS_RANDOM_TREE_H

#include "random.h"

enum { EXPRS = 1200, STMTS = 260, VARS = 120, HELPERS = 3, LEN = 64 /* of inputs: an index of any type reaches all */ };

/* Beside the operations of random.h: a < b < c; a if c else b; (x & -16) + arange with promises. */
enum { CHAIN = END + 1, CHOOSE, HINTED };

struct expr {
	int op; /* FULL: the constant `value`; SCALAR: argument `value`; VAR: variable `value`; LOAD, REDUCE, SCAN: of
		   kind `value` */
	tl_dtype t;
	bool tile, literal; /* literal: in[1] is the number `value` */
	int in[3];
	int64_t value;
	bool dead; /* left out: it is 0 */
};

enum stmt_kind { SET, CALL, WHEN, COUNT_UP, LOOP_WHILE, PROMISE, ASSUME, ROUNDS, WRITE, JUMP };
enum jump { NO_JUMP, TO_NEXT, OUT, RETURN }; /* continue, break, return */

struct stmt {
	enum stmt_kind kind;
	int var, second; /* SET: assigned; CALL, ROUNDS: both; COUNT_UP, LOOP_WHILE: the counter; PROMISE: of */
	int e[2]; /* SET: the value; CALL: arguments; WHEN, LOOP_WHILE, ASSUME: the condition; COUNT_UP: start; WRITE:
		     mask or -1; JUMP that returns from a helper: the results */
	int n, form, step;     /* iterations; how it is written; helper of CALL; array of WRITE; kind of JUMP */
	int body, other, next; /* first statements, or -1; other: behind `else` */
	bool dead, declares;   /* declares: the variable's first assignment, which stays while the variable is used */
	bool kept;             /* COUNT_UP: the variable is the index itself, which is used behind the loop */
};

struct helper {
	tl_dtype t;
	bool tile;
	int param[2], body, result[2]; /* variables; statements; expressions */
};

struct tree {
	struct expr expr[EXPRS];
	struct stmt stmt[STMTS];
	struct {
		tl_dtype t;
		bool tile, used;
	} var[VARS];
	struct helper helper[HELPERS];
	int64_t arg[6];
	int nexprs, nstmts, nvars, nhelpers, nargs, body;
	int lanes, programs, warps, nouts;
	int out_var[VARS]; /* what each output array is written from */
	int64_t *in[INT_TYPES], *out[VARS];
	unsigned char *touched[VARS];
	int pid;
	int64_t *value[VARS]; /* while it is evaluated */
	int64_t returned[2][256];
};

void tree_make(struct tree *t);
void tree_leave_out(struct tree *t, const char *list); /* expressions by number, statements as EXPRS + number */
char *tree_text(const struct tree *t);
void tree_evaluate(struct tree *t);
bool expr_is_used(const struct tree *t, int expr); /* by a statement that is left */
int64_t tree_corner(tl_dtype t);                   /* a number at an end of the type, near 0, near a power of two … */
int type_index(tl_dtype t);                        /* among int_types */
tl_dtype arg_type(int64_t v);

#endif

/* Bounds of integer values as linear forms over scalars: what masks are decided with.
 *
 * Every element of a tile lies between two forms c + Σ coef·scalar. Forms are mathematical integers; whoever uses them
 * checks with form_range that nothing wraps in the machine's integers. */
#ifndef TLC_OPT_BOUNDS_H
#define TLC_OPT_BOUNDS_H

#include "ir/ir.h"

enum { FORM_MAX_TERMS = 6 };

struct form {
	bool known;
	i64 constant;
	int n;
	struct {
		const struct value *scalar;
		i64 coef;
	} term[FORM_MAX_TERMS];
};

struct bounds {
	struct form lo, hi;
};

/* Facts given by tl.assume, and which loop index to keep as a symbol. */
struct bounds_context {
	const struct kernel *k;
	const struct op *loop; /* its index stays a term; other loops' indices are replaced by their bounds */
	int depth;
};

struct bounds bounds_of(struct bounds_context *c, const struct value *v);
/* The same for v = x / m * m, in terms of x; bounds_of takes it for a scalar of its own, which is exact but says nothing of x. */
struct bounds bounds_of_rounded(struct bounds_context *c, const struct value *v);
struct form form_sub(const struct form *a, const struct form *b);
struct form form_scaled(const struct form *a, i64 by);
struct form form_sum(const struct form *a, const struct form *b);
/* The coefficient of `scalar`; the term is removed. */
i64 form_take(struct form *f, const struct value *scalar);
/* The interval of values the form can take, given what is known of its scalars. False when unknown or huge. */
bool form_range(struct bounds_context *c, const struct form *f, i64 *lo, i64 *hi);

/* Is it known that the loop runs once at most? */
bool loop_runs_once(const struct op *loop);

/* start + arange(first, last + 1), a row of numbers that does not wrap if its ends do not. */
struct row {
	struct value *start; /* NULL: 0 */
	i64 first, last;
};
bool row_of(const struct value *x, struct row *r);

#endif

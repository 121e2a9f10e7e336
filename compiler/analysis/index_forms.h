/* Forms of index arithmetic that several passes recognise. */
#ifndef TLC_ANALYSIS_INDEX_FORMS_H
#define TLC_ANALYSIS_INDEX_FORMS_H

#include "ir/ir.h"

/* start + arange(first, last + 1): a row of consecutive numbers, which does not wrap if its ends do not. */
struct row {
	struct value *start; /* NULL if 0 */
	i64 first, last;
};
bool row_of(const struct value *x, struct row *r);

/* The value that each iteration of an scf.for adds to the carried value v. NULL if v is not carried, or changes in
 * another way. */
struct value *increment_of(const struct value *v);

/* If v is x / m * m for a constant m > 0: returns x and sets *m. Otherwise NULL, with *m unchanged. The division
 * truncates, so v may exceed a negative x. */
struct value *rounded_down(const struct value *v, i64 *m);
/* The same for (x + m - 1) / m. The sum may wrap; v is then negative. */
struct value *divided_up(const struct value *v, i64 *m);

/* True if the loop provably runs at most once. */
bool loop_runs_once(const struct op *loop);

/* True if n divides v, or every element of a tile v, according to constants and the divisibility of parameters. */
bool is_known_multiple(const struct kernel *k, const struct value *v, i64 n);

#endif

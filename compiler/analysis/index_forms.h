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

/* The value x where v = x / m * m for a constant m > 0. Otherwise NULL, with *m unchanged. */
struct value *rounded_down(const struct value *v, i64 *m);
/* The same where v = (x + m - 1) / m. */
struct value *divided_up(const struct value *v, i64 *m);

/* True if the loop provably runs at most once. */
bool loop_runs_once(const struct op *loop);

/* True if n divides v, or every element of a tile v, according to constants and the divisibility of parameters. */
bool is_known_multiple(const struct kernel *k, const struct value *v, i64 n);

#endif

/* Comparisons as affine expressions, for the passes that eliminate masks. */
#ifndef TLC_ANALYSIS_COMPARISON_H
#define TLC_ANALYSIS_COMPARISON_H

#include "analysis/ranges.h"

/* A comparison L < R, L <= R or a mirrored form, as two operands and a margin. It is true for all elements iff hi(L) -
 * lo(R) + margin <= 0. */
struct less {
	struct value *left, *right;
	i64 margin; /* 1 for <, 0 for <= */
};
bool as_less(const struct op *o, struct less *l);
/* hi(L) - lo(R) + margin. At most zero means that the comparison is true for all elements. Unknown if a value may wrap
 * in launches within the launch bounds, which are added to k->limits unless k is NULL. */
struct affine excess(struct kernel *k, struct ranges *r, const struct op *cmp, const struct less *l);

#endif

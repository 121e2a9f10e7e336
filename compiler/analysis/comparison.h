/* Comparisons as affine expressions, for the passes that eliminate masks. */
#ifndef TLC_ANALYSIS_COMPARISON_H
#define TLC_ANALYSIS_COMPARISON_H

#include "ir/pass.h"
#include "analysis/ranges.h"

/* A comparison L < R (or a mirror of it) as two operands and a margin: all true iff hi(L) - lo(R) + margin <= 0. */
struct less {
	struct value *left, *right;
	i64 margin; /* 1 for <, 0 for <= */
};
bool as_less(const struct op *o, struct less *l);
/* hi(L) - lo(R) + margin: at most zero means that the comparison is true everywhere. Unknown where a value may wrap, in
 * launches within the limits that k (or NULL) gets for it. */
struct affine excess(struct kernel *k, struct ranges *r, const struct op *cmp, const struct less *l);

#endif

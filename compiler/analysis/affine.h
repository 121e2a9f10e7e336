/* Affine expressions c + Σ coef·scalar over unbounded integers (see analysis/ranges.h). An expression is unknown (known
 * is false) if a coefficient overflows 64 bits or it needs more than AFFINE_MAX_TERMS terms. */
#ifndef TLC_ANALYSIS_AFFINE_H
#define TLC_ANALYSIS_AFFINE_H

#include "ir/ir.h"

enum { AFFINE_MAX_TERMS = 8 };

/* An affine expression. Copies in an arena are allocated without the unused terms. */
struct affine {
	i64 constant;
	i32 n;
	bool known;
	struct affine_term {
		const struct value *scalar;
		i64 coef;
	} term[AFFINE_MAX_TERMS];
};

struct affine affine_sum(const struct affine *a, const struct affine *b);
struct affine affine_difference(const struct affine *a, const struct affine *b);
struct affine affine_scaled(const struct affine *a, i64 by);
struct affine affine_constant(i64 c);
struct affine affine_scalar(const struct value *v);
struct affine affine_copied(const struct affine *a);
bool affine_equals(const struct affine *a, const struct affine *b);
/* Removes the term of `scalar` and returns its coefficient; 0 if there is no such term. */
i64 affine_take(struct affine *a, const struct value *scalar);

#endif

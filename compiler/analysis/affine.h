/* Affine expressions c + Σ coef·scalar over the integers, without a width: see analysis/ranges.h. Unknown (known is
 * false) where a coefficient leaves 64 bits or AFFINE_MAX_TERMS do not suffice. */
#ifndef TLC_ANALYSIS_AFFINE_H
#define TLC_ANALYSIS_AFFINE_H

#include "ir/ir.h"

enum { AFFINE_MAX_TERMS = 8 };

/* Copies in an arena end behind their last term. */
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
/* The coefficient of `scalar`, whose term is removed. */
i64 affine_take(struct affine *a, const struct value *scalar);

#endif

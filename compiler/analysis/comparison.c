#include "analysis/comparison.h"

#include "analysis/launch_bounds.h"

bool as_less(const struct op *o, struct less *l)
{
	bool swap;
	switch ((enum cmpi_predicate)o->attr[ATTR_PREDICATE]) {
	case CMPI_SLT: swap = false, l->margin = 1; break;
	case CMPI_SLE: swap = false, l->margin = 0; break;
	case CMPI_SGT: swap = true, l->margin = 1; break;
	case CMPI_SGE: swap = true, l->margin = 0; break;
	default: return false;
	}
	l->left = operand(o, swap);
	l->right = operand(o, !swap);
	return true;
}

/* hi(L) - lo(R) + margin. At most zero means that the comparison is true for all elements. Then the left value is
 * less than the right one, so the left value needs only a lower limit against wrapping, and the right value an upper
 * limit. A scalar without such a limit stands for its machine value. Any other value without a limit makes the
 * excess unknown. */
struct affine excess(struct kernel *k, struct ranges *r, const struct op *cmp, const struct less *l)
{
	const struct range *left = value_range(r, l->left), *right = value_range(r, l->right);
	int bits = type_elem_bits(operand(cmp, 0)->type);
	i64 lo, hi, max = bits >= 64 ? INT64_MAX / 2 : (1ll << (bits - 1)) - 1;
	bool above = !left->wraps || (affine_interval(r, left->lo, cmp, &lo, &hi) && lo >= -max - 1) ||
		     (k && bounds_keep_bounded(k, r, l->left, max));
	bool below = !right->wraps || (affine_interval(r, right->hi, cmp, &lo, &hi) && hi <= max) ||
		     (k && bounds_keep_bounded(k, r, l->right, max));
	const struct affine *most = above ? left->hi : exact_hi(r, l->left);
	const struct affine *least = below ? right->lo : exact_lo(r, l->right);
	struct affine margin = affine_constant(l->margin), f = affine_difference(most, least);
	return (above || most->n) && (below || least->n) ? affine_sum(&f, &margin) : (struct affine){0};
}

#include "place/access.h"

static int reg_bit(const struct layout *l, u32 basis)
{
	for (int i = 0; i < l->bits[LL_REG]; i++)
		if (l->basis[LL_REG][i] == basis)
			return i;
	return -1;
}

/* The register bits of up to `width` neighbours along d. */
static struct access_vector neighbours(const struct layout *l, int d, int width)
{
	struct access_vector v = {0};
	while (1 << v.bits < width && v.bits < (int)sizeof v.reg) {
		int r = v.bits < l->side[d] ? reg_bit(l, 1u << (layout_dim_shift(l, d) + v.bits)) : -1;
		if (r < 0)
			break;
		v.reg[v.bits++] = (u8)r;
	}
	return v;
}

struct access_vector access_vector(const struct axis_analysis *a, const struct value *ptr, const struct value *mask)
{
	struct access_vector best = {0};
	for (int d = 0; d < ptr->type->rank; d++) {
		struct access_vector v = neighbours(ptr->type->layout, d, axis_vector_width(a, ptr, mask, d));
		if (v.bits > best.bits)
			best = v;
	}
	return best;
}

struct access_vector access_run(const struct axis_analysis *a, const struct value *ptr, const struct value *mask, int *unit)
{
	for (int d = 0; d < ptr->type->rank; d++) {
		int n = axis_run_length(a, ptr, mask, d, unit);
		struct access_vector v = neighbours(ptr->type->layout, d, n);
		if (n && 1 << v.bits == n)
			return v;
	}
	return (struct access_vector){0};
}

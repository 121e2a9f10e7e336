/* Numbers that the host computes at each launch, for tensor maps: products of integer parameters (struct
 * launch_product). To a size a constant may be added: what is not masked is read up to a tile behind it.
 *
 * They have no width. What a kernel computes in 32 bits is the same number where the product fits 31 bits, as launches
 * of variants with such maps check (runtime/device/conditions.c). */
#ifndef TLC_IR_LAUNCH_PRODUCT_H
#define TLC_IR_LAUNCH_PRODUCT_H

#include "ir/ir.h"

/* Is every element of v this product? */
bool is_launch_product(const struct kernel *k, struct value *v, struct launch_product *out);
/* Is it a product, or an i64 that is one plus a constant of at most 31 bits? */
bool is_host_sum(const struct kernel *k, struct value *v, struct launch_product *out);
/* False: it has too many parameters, or overflows. */
bool multiply_products(const struct launch_product *x, const struct launch_product *y, struct launch_product *out);
static inline bool same_product(const struct launch_product *x, const struct launch_product *y)
{
	return !memcmp(x, y, sizeof *x);
}
/* At the start of the kernel: an i64, or the parameter that it is. */
struct value *build_product(struct kernel *k, const struct launch_product *p);

#endif

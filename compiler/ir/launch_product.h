/* Numbers that the host computes at each launch for tensor maps: products of integer parameters (struct
 * launch_product). A size may have an added constant: unmasked accesses read up to one tile past it.
 *
 * These numbers have no width. The kernel's 32-bit computation gives the same number if the product fits 31 bits.
 * Launches of variants with such maps check that (runtime/device/conditions.c). */
#ifndef TLC_IR_LAUNCH_PRODUCT_H
#define TLC_IR_LAUNCH_PRODUCT_H

#include "ir/ir.h"

/* True if every element of v equals the product *out. */
bool is_launch_product(const struct kernel *k, struct value *v, struct launch_product *out);
/* True if v is a product, or an i64 that is a product plus a constant of at most 31 bits. */
bool is_host_sum(const struct kernel *k, struct value *v, struct launch_product *out);
/* False if the result has too many parameters or overflows. */
bool multiply_products(const struct launch_product *x, const struct launch_product *y, struct launch_product *out);
static inline bool same_product(const struct launch_product *x, const struct launch_product *y)
{
	return !memcmp(x, y, sizeof *x);
}
/* Builds the product at the start of the kernel, as an i64. A product that is a single parameter is that parameter. */
struct value *build_product(struct kernel *k, const struct launch_product *p);

#endif

/* Arguments as numbers, bits and texts. */
#ifndef TL_IMAGE_ARGUMENT_H
#define TL_IMAGE_ARGUMENT_H

#include "support/arena.h"
#include "support/dtype.h"
#include "runtime/tl.h"

/* The value of an integer or bool argument, signed or unsigned. */
i128 int_value(const tl_arg *a);
bool int_fits(enum dtype d, i128 v);
/* True if a parameter of type d can take the integer v. int1 takes any integer, as its truth value. */
bool int_converts(enum dtype d, i128 v);
/* The source text of a value that is not a pointer, tuple or descriptor. */
const char *literal_text(struct arena *a, const tl_arg *x);
/* The bits of a run-time argument in the low bytes: an address, or a number of type `d`. */
u64 arg_bits(const tl_arg *a, bool pointer, enum dtype d);

#endif

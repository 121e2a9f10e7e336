/* Arguments as numbers, bits and texts. */
#ifndef TL_IMAGE_ARGUMENT_H
#define TL_IMAGE_ARGUMENT_H

#include "support/arena.h"
#include "support/dtype.h"
#include "runtime/tl.h"

/* What an integer argument is, of any kind. */
i128 int_value(const tl_arg *a);
bool int_fits(enum dtype d, i128 v);
/* Does a parameter of type d take the integer v? int1 takes the truth of any integer. */
bool int_converts(enum dtype d, i128 v);
/* An argument that is no pointer, tuple or descriptor, as the language writes it. */
const char *literal_text(struct arena *a, const tl_arg *x);
/* The bits of a run-time argument as a pointer, or as a number of type `d`, in the low bytes. */
u64 arg_bits(const tl_arg *a, bool pointer, enum dtype d);

#endif

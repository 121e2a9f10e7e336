/* Specialisation by the properties of arguments that can change the code. */
#ifndef TL_LAUNCH_DIVISIBILITY_H
#define TL_LAUNCH_DIVISIBILITY_H

#include "runtime/api/objects.h"

/* The kernel's parameters with the specialisation for launches with these arguments and options. They live as long as
 * the kernel. It takes a lock; launches of known variants do not call it. */
const struct params *divisibility_params(tl_kernel *k, const struct options *o, const tl_arg *args, size_t nargs);

#endif

/* Specialisation by what can change the code. */
#ifndef TL_LAUNCH_DIVISIBILITY_H
#define TL_LAUNCH_DIVISIBILITY_H

#include "runtime/api/objects.h"

/* The kernel's parameters, specialised as launches with such arguments and options are; they live as long as the
 * kernel. With a lock: not for launches that are known. */
const struct params *divisibility_params(tl_kernel *k, const struct options *o, const tl_arg *args, size_t nargs);
void shapes_free(tl_kernel *k);

#endif

/* A check of analysis/divisors.h. With TL_COMPILE_CHECK=divisors each kernel is compiled two more times: with a divisor
 * for every integer, and with a divisor for the useful integers only. The PTX of both must be the same; else the launch
 * fails like after an internal error. Kernels in the disk cache are not compiled: set TL_CACHE=0. */
#ifndef TL_EMULATE_DIVISOR_CHECK_H
#define TL_EMULATE_DIVISOR_CHECK_H

#include "runtime/device/device.h"

void check_divisors(const struct target *target, const struct build *b);

#endif

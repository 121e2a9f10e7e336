/* A check of analysis/divisors.h: with TL_COMPILE_CHECK=divisors each kernel is compiled twice more, with a divisor
 * of every integer and with those that are useful alone, and the PTX of both must be the same. Otherwise the launch
 * fails as by an internal error. Kernels that are in the disk cache are not compiled: TL_CACHE=0. */
#ifndef TL_EMULATE_DIVISOR_CHECK_H
#define TL_EMULATE_DIVISOR_CHECK_H

#include "runtime/device/device.h"

void check_divisors(const struct target *target, const struct build *b);

#endif

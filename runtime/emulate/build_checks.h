/* Checks of compilations on request (TL_COMPILE_CHECK): the time, and estimates of launches. A violation is a broken
 * invariant. */
#ifndef TL_EMULATE_BUILD_CHECKS_H
#define TL_EMULATE_BUILD_CHECKS_H

#include "runtime/device/device.h"

/* Time that this thread has run. */
double seconds_of_thread(void);
/* "time": the compilation that began at that time of this thread has not taken more than 10 seconds. */
void check_time(double begin);
/* "estimates": the kernel has a valid estimate for launches with integer arguments that are small, large, and not
 * known. */
void check_estimates(const struct target *target, const struct build *b);

#endif

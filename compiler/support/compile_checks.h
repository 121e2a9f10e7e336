/* Checks of the compiler on request: TL_COMPILE_CHECK names them, with commas between.
 *
 *   buffers          a failed proof of the buffers in shared memory is an internal error (gpu/smem/model_checker.h)
 *   unproved         that proof fails, but where the kernel is compiled again with less pipelining
 *   unproved-copies  and there too, where copies are still issued ahead
 *   quick            LLVM's back end optimises nothing, as for very large kernels (driver/backend_level.c)
 *   divisors         compares code with and without divisors of arguments (runtime/emulate/divisor_check.h) */
#ifndef TLC_SUPPORT_COMPILE_CHECKS_H
#define TLC_SUPPORT_COMPILE_CHECKS_H

#include "support/base.h"

bool compile_check(const char *name);

#endif

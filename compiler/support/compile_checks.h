/* Checks of the compiler on request: TL_COMPILE_CHECK is a comma-separated list of their names.
 *
 *   buffers          a failed proof of the buffers in shared memory is an internal error (gpu/smem/model_checker.h)
 *   unproved         makes that proof fail, except in the second compilation, which pipelines less
 *   unproved-copies  makes it fail in the second compilation too, if that still issues copies ahead
 *   quick            LLVM's back end runs without optimisations, as for very large kernels (driver/backend_level.c)
 *   time             a compilation that takes more than 10 seconds on one core is an internal error
 *   estimates        estimates launches of each kernel (runtime/emulate/build_checks.h)
 *   divisors         compares code with and without divisors of arguments (runtime/emulate/divisor_check.h) */
#ifndef TLC_SUPPORT_COMPILE_CHECKS_H
#define TLC_SUPPORT_COMPILE_CHECKS_H

#include "support/base.h"

bool compile_check(const char *name);

#endif

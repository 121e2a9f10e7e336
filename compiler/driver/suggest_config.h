/* Advice for a kernel that needs more shared memory than the target has. */
#ifndef TLC_DRIVER_SUGGEST_CONFIG_H
#define TLC_DRIVER_SUGGEST_CONFIG_H

#include "driver/compile.h"

/* Adds a hint to the error just reported (the kernel needs `bytes` bytes): the configuration that would fit with the
 * smallest change, by fewer stages, smaller tiles or more warps. Compiles other configurations to find it. */
void advise_fit(struct unit *u, const struct func *func, const struct arg_spec *args, const struct compile_options *o,
		i32 bytes);

#endif

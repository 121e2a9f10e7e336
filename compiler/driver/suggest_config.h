/* Advice for a kernel that needs more shared memory than there is. */
#ifndef TLC_DRIVER_SUGGEST_CONFIG_H
#define TLC_DRIVER_SUGGEST_CONFIG_H

#include "driver/compile.h"

/* Adds to the error just reported, that it needs `bytes` bytes, a hint which configuration would fit: fewer stages,
 * smaller tiles or more warps, whichever comes nearest. Other configurations are compiled to know. */
void advise_fit(struct unit *u, const struct func *func, const struct arg_spec *args, const struct compile_options *o,
		int num_warps, int num_stages, i32 bytes);

#endif

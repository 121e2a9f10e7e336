/* The metadata of a kernel for Triton's launcher, as JSON with the names that Triton's compiler gives them. */
#ifndef TLC_DRIVER_LAUNCH_METADATA_H
#define TLC_DRIVER_LAUNCH_METADATA_H

#include "ir/codegen_options.h"
#include "ir/ir.h"

/* For a kernel after the GPU passes and abi_fill_maps: the name, warps and shared memory of a block, blocks of a
 * program, tensor maps of descriptors (an empty list: they are passed in parts), and sizes of scratch memory. */
const char *launch_metadata(struct arena *a, const struct kernel *k, const struct codegen_options *o);

#endif

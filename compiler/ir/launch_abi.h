/* The parameters of a kernel's function for Triton's launcher (enum abi). They follow Triton's order, with two pointers
 * of scratch memory at the end, which tlc's kernels do not use. A tensor descriptor is one of
 *
 *   DESCRIPTORS_PARTS   base, sizes (i64), strides (i64), i1 "pads with NaN", i1 "rounds to tf32", sizes (i32),
 *                       strides (i64)
 *   DESCRIPTORS_MAPS    a tensor map of 128 bytes by value, sizes (i32), strides (i64)
 *
 * with one size and one stride for each dimension. The launcher makes the tensor map as the kernel's metadata asks. */
#ifndef TLC_IR_LAUNCH_ABI_H
#define TLC_IR_LAUNCH_ABI_H

#include "ir/ir.h"

enum { ABI_SCRATCH_POINTERS = 2 };

/* Adds the next parameter of the function. Kernels for libtl have no list. */
void abi_add(struct kernel *k, enum abi_kind kind, u32 param, enum dtype d);
/* After abi_add of a descriptor's base, which is the kernel's parameter `base`, adds the parameters before its sizes.
 * Sets *nan and *tf32 to the numbers of new parameters (i1) of the kernel if the launcher passes these properties and
 * the element type has them; otherwise to -1. `k->params` has room for them. With tensor maps it notes the
 * descriptor. */
void abi_add_descriptor(struct kernel *k, u32 base, u32 rank, const i32 *block, bool properties, i32 *nan, i32 *tf32);

/* True if the pointer or tile of pointers is computed from the base of a descriptor with a tensor map. Its loads must
 * be TMA copies, since the launcher does not pass the address. */
bool abi_needs_map(const struct kernel *k, const struct value *ptr);

/* For a kernel with tensor maps, after the GPU passes: NULL, or the reason why a tensor map for each descriptor does
 * not suffice. It fills in the boxes of the maps. */
const char *abi_fill_maps(struct kernel *k);

#endif

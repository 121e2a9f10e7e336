/* Tensor maps in the simulator's encoding: the description of a tensor in global memory for tensor copies, in 128
 * opaque bytes. */
#ifndef TL_SIM_TENSORMAP_H
#define TL_SIM_TENSORMAP_H

#include "support/arena.h"
#include "runtime/image/tensor_map.h"

/* A decoded tensor map. Dimensions are ordered innermost first. */
struct tensor_map {
	u64 base, strides[TENSOR_MAP_RANK]; /* bytes; strides[0] is the size of an element */
	u64 sizes[TENSOR_MAP_RANK];         /* elements */
	/* elements of the TMA tile per dimension: `steps` apart in the tensor, adjacent in shared memory */
	u32 box[TENSOR_MAP_RANK];
	u32 steps[TENSOR_MAP_RANK];
	u32 rank, type, swizzle, fill;
	u32 row_bytes, box_bytes;
};

/* cuTensorMapEncodeTiled with the same arguments, enumerations as numbers. False, with the reason appended to `error`,
 * if the driver would refuse or the simulator lacks the feature. */
bool tensor_map_encode(void *map, int type, u32 rank, void *base, const u64 *sizes, const u64 *strides, const u32 *box,
		       const u32 *element_strides, int interleave, int swizzle, int l2_promotion, int oob_fill,
		       struct strbuf *error);
/* False if the 128 bytes are not a tensor map. */
bool tensor_map_decode(const void *map, struct tensor_map *out);

#endif

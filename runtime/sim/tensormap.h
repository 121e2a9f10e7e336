/* Tensor maps as the simulator encodes them: what a tensor copy knows about a tensor in global memory, in 128 opaque
 * bytes. */
#ifndef TL_SIM_TENSORMAP_H
#define TL_SIM_TENSORMAP_H

#include "support/arena.h"
#include "runtime/image/tensor_map.h"

/* Decoded. Dimensions are innermost first. */
struct tensor_map {
	u64 base, strides[TENSOR_MAP_RANK]; /* bytes; of the innermost one the size of an element */
	u64 sizes[TENSOR_MAP_RANK];         /* elements */
	/* elements copied: in the tensor `steps` apart, in shared memory side by side */
	u32 box[TENSOR_MAP_RANK];
	u32 steps[TENSOR_MAP_RANK];
	u32 rank, type, swizzle, fill;
	u32 row_bytes, box_bytes;
};

/* cuTensorMapEncodeTiled, with its arguments, enumerations as numbers. False when the driver would refuse, or the
 * simulator has no such thing, with the reason appended to `error`. */
bool tensor_map_encode(void *map, int type, u32 rank, void *base, const u64 *sizes, const u64 *strides, const u32 *box,
		       const u32 *element_strides, int interleave, int swizzle, int l2_promotion, int oob_fill,
		       struct strbuf *error);
/* False: these 128 bytes are no tensor map. */
bool tensor_map_decode(const void *map, struct tensor_map *out);

#endif

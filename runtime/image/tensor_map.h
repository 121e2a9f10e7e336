/* Tensors for TMA copies, and the driver's enumerators for tensor maps (CUDA driver API, "Tensor Map Object
 * Management"). The simulator's encoding uses the same enumerators. */
#ifndef TL_IMAGE_TENSOR_MAP_H
#define TL_IMAGE_TENSOR_MAP_H

#include "support/dtype.h"

enum { TENSOR_MAP_BYTES = 128, TENSOR_MAP_ALIGN = 64, TENSOR_MAP_RANK = 5 };

enum {
	TENSOR_UINT8,
	TENSOR_UINT16,
	TENSOR_UINT32,
	TENSOR_INT32,
	TENSOR_UINT64,
	TENSOR_INT64,
	TENSOR_FLOAT16,
	TENSOR_FLOAT32,
	TENSOR_FLOAT64,
	TENSOR_BFLOAT16,
	TENSOR_FLOAT32_FTZ,
	TENSOR_TFLOAT32,
	TENSOR_TFLOAT32_FTZ
};
enum { TENSOR_INTERLEAVE_NONE };
enum { TENSOR_SWIZZLE_NONE, TENSOR_SWIZZLE_32B, TENSOR_SWIZZLE_64B, TENSOR_SWIZZLE_128B };
enum { TENSOR_PROMOTION_NONE, TENSOR_PROMOTION_64B, TENSOR_PROMOTION_128B, TENSOR_PROMOTION_256B };
enum { TENSOR_FILL_ZERO, TENSOR_FILL_NAN };

/* A tensor in device memory and the TMA tile that is copied. Dimensions are innermost first. A copy reads zeros outside
 * the tensor, or NaN. */
struct tensor_map_shape {
	enum dtype dtype;
	u32 rank;       /* 1 to 5 */
	void *base;     /* aligned to 16 bytes */
	u64 sizes[5];   /* elements */
	u64 strides[4]; /* bytes, of each dimension except the innermost: multiples of 16 */
	/* The TMA tile in elements, at most 256. A row of the tile has the size of the swizzle, or without a swizzle a
	 * multiple of 16 bytes. */
	u32 box[5];
	u32 swizzle;    /* bytes: 0, 32, 64 or 128 */
	bool fills_nan;
};

struct tensor_map_param;
/* The members of a tensor map that depend on the arguments: the tensor's address, the row stride in bytes, and the
 * sizes. */
struct map_values {
	u64 base, distance, sizes[2];
};
/* A tensor of sizes[1] rows of sizes[0] elements. Without a tensor parameter it is all memory, with rows of `distance`
 * bytes: the addressing of a kernel's copies, see gpu/codegen/tma.c. */
struct tensor_map_shape tensor_map_shape_of(const struct tensor_map_param *m, const struct map_values *of);
/* The enumerator of an element type. */
int tensor_map_type(enum dtype t);
/* The L2 promotion of the tensor's copies. */
int tensor_promotion(const struct tensor_map_shape *b);
/* The mode of a swizzle of 0, 32, 64 or 128 bytes. */
static inline int tensor_swizzle_mode(u32 bytes) { return bytes ? ilog2(bytes) - 4 : TENSOR_SWIZZLE_NONE; }

#endif

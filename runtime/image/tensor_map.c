#include "runtime/image/tensor_map.h"

#include "ir/ir.h"

/* Copies move bits, so the element type matters only by its size. */
static enum dtype word_of(const struct tensor_map_param *m)
{
	static const enum dtype words[] = {DT_U8, DT_U16, DT_U32, DT_U64};
	return words[ilog2((u64)m->elem_bytes)];
}

static struct tensor_map_shape all_memory(const struct tensor_map_param *m, u64 distance)
{
	struct tensor_map_shape box = {.dtype = word_of(m), .rank = 4, .swizzle = (u32)m->swizzle};
	for (u32 d = 0; d < box.rank; d++) {
		box.sizes[d] = 1u << 31;
		box.box[d] = d < 3 ? (u32)m->box[d] : 1;
	}
	box.strides[0] = distance;
	box.strides[1] = (u64)m->swizzle;
	box.strides[2] = 1u << TENSOR_MAP_LOG2_PAGE;
	return box;
}

struct tensor_map_shape tensor_map_shape_of(const struct tensor_map_param *m, const struct map_values *of)
{
	if (m->tensor < 0)
		return all_memory(m, of->distance);
	return (struct tensor_map_shape){.dtype = word_of(m),
				   .rank = m->moved ? 4 : 2,
				   .base = (void *)(uintptr_t)of->base,
				   .sizes = {of->sizes[0], of->sizes[1], 1u << 31, 1u << 31},
				   .strides = {of->distance, 1u << TENSOR_MAP_LOG2_UNIT, 1u << TENSOR_MAP_LOG2_PAGE},
				   .box = {(u32)m->box[0], (u32)m->box[1], 1, 1},
				   .swizzle = (u32)m->swizzle};
}

int tensor_map_type(enum dtype t)
{
	switch (t) {
	case DT_I16:
	case DT_U16: return TENSOR_UINT16;
	case DT_I32: return TENSOR_INT32;
	case DT_U32: return TENSOR_UINT32;
	case DT_I64: return TENSOR_INT64;
	case DT_U64: return TENSOR_UINT64;
	case DT_F16: return TENSOR_FLOAT16;
	case DT_BF16: return TENSOR_BFLOAT16;
	case DT_F32: return TENSOR_FLOAT32;
	case DT_F64: return TENSOR_FLOAT64;
	default: return TENSOR_UINT8;
	}
}

/* If rows begin within a sector of 32 bytes, they share sectors with neighbouring rows. A promotion of more than a line
 * is slower then (4088³ fp16 277 µs, 246 with a line), but faster for other rows (4096³ 186 µs, 195). */
int tensor_promotion(const struct tensor_map_shape *b)
{
	u64 offset = (u64)(uintptr_t)b->base;
	for (u32 d = 0; d + 1 < b->rank; d++)
		offset |= b->strides[d] == 1u << TENSOR_MAP_LOG2_UNIT ? 0 : b->strides[d];
	return offset % SECTOR_BYTES ? TENSOR_PROMOTION_128B : TENSOR_PROMOTION_256B;
}

/* The simulator's encoding of tensor maps, and the rules for them (CUDA driver API, "cuTensorMapEncodeTiled"). The rule
 * that each stride be a multiple of the preceding stride is not enforced, as in drivers. */
#include "runtime/sim/tensormap.h"

#include <string.h>

#include "support/map.h"

enum { MAX_BOX = 256, MAX_STEP = 8, STRIDE_ALIGN = 16, BASE_ALIGN = 16 };
#define MAX_SIZE ((u64)1 << 32)
#define MAX_STRIDE ((u64)1 << 40)
#define SEED 0x74656E736F72

/* Contents of the 128 bytes. */
struct encoded {
	u64 check; /* hash of the other fields */
	u64 base, strides[TENSOR_MAP_RANK - 1];
	u32 last[TENSOR_MAP_RANK]; /* size - 1 */
	u16 box[TENSOR_MAP_RANK];  /* extent of the tile in the tensor, as given by the caller */
	u8 steps[TENSOR_MAP_RANK], rank, type, swizzle, fill;
	u8 unused[41];
};
_Static_assert(sizeof(struct encoded) == TENSOR_MAP_BYTES, "as large as the driver's");

static const struct {
	const char *name;
	u8 bytes;
	bool is_float;
} types[] = {
	[TENSOR_UINT8] = {"UINT8", 1, false},
	[TENSOR_UINT16] = {"UINT16", 2, false},
	[TENSOR_UINT32] = {"UINT32", 4, false},
	[TENSOR_INT32] = {"INT32", 4, false},
	[TENSOR_UINT64] = {"UINT64", 8, false},
	[TENSOR_INT64] = {"INT64", 8, false},
	[TENSOR_FLOAT16] = {"FLOAT16", 2, true},
	[TENSOR_FLOAT32] = {"FLOAT32", 4, true},
	[TENSOR_FLOAT64] = {"FLOAT64", 8, true},
	[TENSOR_BFLOAT16] = {"BFLOAT16", 2, true},
	[TENSOR_FLOAT32_FTZ] = {"FLOAT32_FTZ", 4, true},
	[TENSOR_TFLOAT32] = {"TFLOAT32", 4, true},
	[TENSOR_TFLOAT32_FTZ] = {"TFLOAT32_FTZ", 4, true},
};

/* Bytes of a row of the tile, 16 << swizzle; 0 without swizzling: any number. */
static u32 swizzle_bytes(u32 swizzle)
{
	return swizzle ? 16u << swizzle : 0;
}

typedef unsigned long long ull; /* for %llu */

static bool refuse(struct strbuf *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(struct strbuf *error, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	sb_vprintf(error, format, ap);
	va_end(ap);
	return false;
}

static bool check_modes(int type, int interleave, int swizzle, int l2_promotion, int oob_fill, struct strbuf *error)
{
	if (type < 0 || type >= (int)ARRAY_LEN(types))
		return refuse(error, "sm_90 has no copies of data type %d", type);
	if (interleave < 0 || interleave > 2)
		return refuse(error, "there is no interleave mode %d", interleave);
	if (interleave)
		return refuse(error, "interleaved layouts are not simulated");
	if (swizzle < TENSOR_SWIZZLE_NONE || swizzle > TENSOR_SWIZZLE_128B)
		return refuse(error, "there is no swizzle mode %d on sm_90", swizzle);
	if (l2_promotion < 0 || l2_promotion > 3)
		return refuse(error, "there is no L2 promotion %d", l2_promotion);
	if (oob_fill < TENSOR_FILL_ZERO || oob_fill > TENSOR_FILL_NAN)
		return refuse(error, "there is no fill mode %d", oob_fill);
	if (oob_fill == TENSOR_FILL_NAN && !types[type].is_float)
		return refuse(error, "data type %s has no NaN to fill with", types[type].name);
	return true;
}

static bool check_sizes(u32 rank, const u64 *sizes, const u64 *strides, const u32 *box, const u32 *steps,
			struct strbuf *error)
{
	for (u32 n = 0; n < rank; n++) {
		if (!sizes[n] || sizes[n] > MAX_SIZE)
			return refuse(error, "the size of dimension %u is %llu: 1 to 2^32", n, (ull)sizes[n]);
		if (!box[n] || box[n] > MAX_BOX)
			return refuse(error, "the box has %u elements of dimension %u: 1 to %d", box[n], n, MAX_BOX);
		if (!steps[n] || steps[n] > MAX_STEP)
			return refuse(error, "the element stride of dimension %u is %u: 1 to %d", n, steps[n],
				      MAX_STEP);
		if (n && strides[n - 1] % STRIDE_ALIGN)
			return refuse(error, "the stride of dimension %u is %llu bytes, not a multiple of %d", n,
				      (ull)strides[n - 1], STRIDE_ALIGN);
		if (n && strides[n - 1] >= MAX_STRIDE)
			return refuse(error, "the stride of dimension %u is %llu bytes, which must be less than 2^40",
				      n, (ull)strides[n - 1]);
	}
	return true;
}

static bool check_row(int type, u32 box, int swizzle, struct strbuf *error)
{
	u32 row = box * types[type].bytes, width = swizzle_bytes((u32)swizzle);
	if (row % STRIDE_ALIGN)
		return refuse(error, "a row of the box has %u bytes, not a multiple of %d", row, STRIDE_ALIGN);
	if (width && row > width)
		return refuse(error, "a row of the box has %u bytes, more than the %u of the swizzle", row, width);
	if (width && row < width)
		return refuse(error,
			      "a row of the box has %u bytes, less than the %u of the swizzle: its layout in shared "
			      "memory is not documented",
			      row, width);
	return true;
}

bool tensor_map_encode(void *map, int type, u32 rank, void *base, const u64 *sizes, const u64 *strides, const u32 *box,
		       const u32 *element_strides, int interleave, int swizzle, int l2_promotion, int oob_fill,
		       struct strbuf *error)
{
	if ((uintptr_t)map % TENSOR_MAP_ALIGN)
		return refuse(error, "the tensor map is at %p, not a multiple of %d", map, TENSOR_MAP_ALIGN);
	if (!rank || rank > TENSOR_MAP_RANK)
		return refuse(error, "a tensor of rank %u: 1 to %d", rank, TENSOR_MAP_RANK);
	if ((uintptr_t)base % BASE_ALIGN)
		return refuse(error, "the tensor is at %p, not a multiple of %d", base, BASE_ALIGN);
	if (!check_modes(type, interleave, swizzle, l2_promotion, oob_fill, error) ||
	    !check_sizes(rank, sizes, strides, box, element_strides, error) || !check_row(type, box[0], swizzle, error))
		return false;
	struct encoded e = {.base = (u64)(uintptr_t)base,
			    .rank = (u8)rank,
			    .type = (u8)type,
			    .swizzle = (u8)swizzle,
			    .fill = (u8)oob_fill};
	for (u32 n = 0; n < rank; n++) {
		e.last[n] = (u32)(sizes[n] - 1);
		e.box[n] = (u16)box[n];
		/* the element stride of the innermost dimension is ignored */
		e.steps[n] = n ? (u8)element_strides[n] : 1;
		if (n)
			e.strides[n - 1] = strides[n - 1];
	}
	e.check = hash_bytes((const char *)&e + sizeof e.check, sizeof e - sizeof e.check, SEED);
	memcpy(map, &e, sizeof e);
	return true;
}

bool tensor_map_decode(const void *map, struct tensor_map *out)
{
	struct encoded e;
	memcpy(&e, map, sizeof e);
	if (e.check != hash_bytes((const char *)&e + sizeof e.check, sizeof e - sizeof e.check, SEED))
		return false;
	*out = (struct tensor_map){
		.base = e.base, .rank = e.rank, .type = e.type, .swizzle = e.swizzle, .fill = e.fill};
	out->box_bytes = types[e.type].bytes;
	for (u32 n = 0; n < e.rank; n++) {
		out->sizes[n] = (u64)e.last[n] + 1;
		out->steps[n] = e.steps[n];
		out->box[n] = (e.box[n] + e.steps[n] - 1u) / e.steps[n];
		out->strides[n] = n ? e.strides[n - 1] : types[e.type].bytes;
		out->box_bytes *= out->box[n];
	}
	out->row_bytes = out->box[0] * types[e.type].bytes;
	return true;
}

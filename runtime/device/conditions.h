/* What compiled code counts on beside the types, constants and divisors of its arguments: rows and tensors that tensor
 * maps can describe, sizes up to bounds, memory that does not overlap. Each launch is compared. */
#ifndef TL_DEVICE_CONDITIONS_H
#define TL_DEVICE_CONDITIONS_H

#include "runtime/device/device.h"
#include "runtime/image/params.h"

/* The conditions that a launch breaks; all 0: none. */
struct broken {
	bool maps;
	enum launch_bounds sizes; /* that code must be for */
	enum aliasing alias;
};

/* The arguments of a launch, where tuples and descriptors have been replaced by their leaves. */
struct arguments {
	const struct params *params; /* with defaults */
	const tl_arg *at;
	size_t n;
	const u64 *bits; /* by slot */
	const u32 *grid; /* of programs */
};

static inline const tl_arg *slot_argument(const struct image *im, u32 slot, const struct arguments *a)
{
	u32 leaf = im->slots[slot].leaf;
	return leaf < a->n ? &a->at[leaf] : &a->params->at[leaf].value;
}

/* The bits of the arguments, by slot. */
static inline void arguments_bits(const struct image *im, const struct arguments *a, u64 *bits)
{
	for (u32 i = 0; i < im->nslots; i++)
		bits[i] = arg_bits(slot_argument(im, i, a), im->slots[i].pointers, im->slots[i].dtype);
}

/* The most elements behind a pointer that 32-bit offsets reach, and a last tile that is masked off in part. */
enum { MOST_NARROW_ELEMENTS = INT32_MAX - (1 << 24) };
static inline u64 most_narrow_bytes(const struct slot *s)
{
	return MOST_NARROW_ELEMENTS * (s->pointers > 1 ? sizeof(void *) : (u64)dtype_bytes(s->dtype));
}

struct broken conditions_broken(struct device *dev, const struct image *im, const struct arguments *a);
/* Says which one of them is, with its parameters, behind the message that has been begun. */
void conditions_explain(struct device *dev, const struct image *im, const struct arguments *a);
/* What of tensor map i depends on the arguments: where the tensor begins, how far its rows are apart, its sizes. */
struct map_values {
	u64 base, distance, sizes[2];
};
struct map_values map_values(const struct image *im, u32 i, const u64 *bits);
struct tensor_map_shape tensor_map_shape_of(const struct image *im, u32 i, const struct map_values *of);
/* Are there arguments that its tensor maps cannot describe? */
bool maps_can_miss(const struct image *im);

#endif

/* Conditions of compiled code in addition to the types, constants and divisors of its arguments: rows and tensors that
 * tensor maps can describe, sizes up to bounds, memory that does not overlap. Each launch checks them. */
#ifndef TL_DEVICE_CONDITIONS_H
#define TL_DEVICE_CONDITIONS_H

#include "runtime/device/device.h"
#include "runtime/image/params.h"

/* The conditions that a launch does not satisfy; all members are 0 if it satisfies all. */
struct broken {
	bool maps;
	enum launch_bounds sizes; /* the bounds that other code must be compiled for */
	enum aliasing alias;
};

/* The arguments of a launch, with tuples and descriptors replaced by their leaves. */
struct arguments {
	const struct params *params; /* with their defaults */
	const tl_arg *at;
	size_t n;
	const u64 *bits; /* by slot */
	const u32 *grid; /* in programs */
};

static inline const tl_arg *slot_argument(const struct image *im, u32 slot, const struct arguments *a)
{
	u32 leaf = im->slots[slot].leaf;
	return leaf < a->n ? &a->at[leaf] : &a->params->at[leaf].value;
}

/* Writes the bits of the arguments, by slot. */
static inline void arguments_bits(const struct image *im, const struct arguments *a, u64 *bits)
{
	for (u32 i = 0; i < im->nslots; i++)
		bits[i] = arg_bits(slot_argument(im, i, a), im->slots[i].pointers, im->slots[i].dtype);
}

/* The most elements of a pointer's memory for 32-bit offsets: 2^31 less room for a last tile that is partly masked
 * off. */
enum { MOST_NARROW_ELEMENTS = INT32_MAX - (1 << 24) };
static inline u64 most_narrow_bytes(const struct slot *s)
{
	return MOST_NARROW_ELEMENTS * (s->pointers > 1 ? sizeof(void *) : (u64)dtype_bytes(s->dtype));
}

struct broken conditions_broken(struct device *dev, const struct image *im, const struct arguments *a);
/* Appends to the current error message which condition does not hold, with its parameters. */
void conditions_explain(struct device *dev, const struct image *im, const struct arguments *a);
/* The members of tensor map i that depend on the arguments: the tensor's address, the row stride, the sizes. */
struct map_values {
	u64 base, distance, sizes[2];
};
struct map_values map_values(const struct image *im, u32 i, const u64 *bits);
struct tensor_map_shape tensor_map_shape_of(const struct image *im, u32 i, const struct map_values *of);
/* True if some arguments cannot be described by the image's tensor maps. */
bool maps_can_miss(const struct image *im);

#endif

/* Conditions of compiled code on the arguments of a launch, in addition to their types, constants and divisors: rows
 * and tensors that tensor maps can describe, sizes up to bounds, few elements after a pointer, memory that does not
 * overlap. An image has a list of conditions, made when the image is loaded. Each launch checks the list. */
#ifndef TL_DEVICE_CONDITIONS_H
#define TL_DEVICE_CONDITIONS_H

#include "runtime/device/loaded.h"

enum condition_kind {
	CONDITION_MAP,   /* a tensor map can describe the rows, and the tensor */
	CONDITION_SIZE,  /* a launch bound */
	CONDITION_FEW,   /* offsets of 32 bits reach all elements of the memory after a pointer */
	CONDITION_APART, /* the memory of two pointers does not overlap */
};

/* A condition and its fast test, which reads the arguments only. If the test succeeds, the condition holds. If it
 * fails, the complete check follows, which may query the device for the size of an allocation. The fast tests:
 * - CONDITION_MAP, CONDITION_SIZE: the bits of slot x are less than `limit`, and the bits of `mask` are 0
 * - CONDITION_FEW: the argument of leaf x gives a size of at most `limit` bytes
 * - CONDITION_APART: the arguments of leaves x and y give their sizes, and do not overlap
 * With CONDITION_MAP and CONDITION_SIZE, a limit of 0 means that there is no fast test. */
struct condition {
	enum condition_kind kind;
	u16 x, y;
	u32 index; /* of the image's tensor map, launch bound, slot or pair of slots */
	bool equal_is_fine;
	u64 limit, mask;
};

/* The conditions that a launch does not satisfy; all members are 0 if it satisfies all. */
struct broken {
	bool maps;
	enum launch_bounds sizes; /* the bounds that other code must be compiled for */
	enum aliasing alias;
};
static inline bool is_broken(const struct broken *b) { return b->maps || b->sizes || b->alias; }
static inline void broken_add(struct broken *to, const struct broken *b)
{
	to->maps |= b->maps;
	to->sizes = MAX(to->sizes, b->sizes);
	to->alias = MAX(to->alias, b->alias);
}

/* The arguments of a launch, with tuples and descriptors replaced by their leaves. */
struct arguments {
	const tl_arg *at; /* by leaf */
	const u64 *bits;  /* by slot */
	const u32 *grid;  /* in programs */
};

/* Writes the bits of the arguments, by slot. `leaves` has all leaves. */
static inline void arguments_bits(const struct image *im, const tl_arg *leaves, u64 *bits)
{
	for (u32 i = 0; i < im->nslots; i++)
		bits[i] = arg_bits(&leaves[im->slots[i].leaf], im->slots[i].pointers, im->slots[i].dtype);
}

/* The image's conditions, for free(). NULL: out of memory. */
struct condition *conditions_make(const struct image *im, u32 *n);
struct broken conditions_broken(struct device *dev, const struct loaded *k, const struct arguments *a);
/* Appends to the current error message which condition does not hold, with its parameters. */
void conditions_explain(struct device *dev, const struct loaded *k, const struct arguments *a);

/* The most elements of a pointer's memory for 32-bit offsets: 2^31 less room for a last tile that is partly masked
 * off. */
enum { MOST_NARROW_ELEMENTS = INT32_MAX - (1 << 24) };

struct map_values map_values(const struct image *im, u32 i, const u64 *bits);
/* True if some arguments cannot be described by the image's tensor maps. */
bool maps_can_miss(const struct image *im);

/* --- fast path of every launch --------------------------------------------------------------------------------- */

static inline bool condition_shown(const struct condition *c, const tl_arg *args, const u64 *bits)
{
	if (c->kind <= CONDITION_SIZE)
		return bits[c->x] < c->limit && !(bits[c->x] & c->mask);
	const tl_arg *x = &args[c->x];
	if (c->kind == CONDITION_FEW)
		return x->bytes - 1ULL < c->limit;
	const tl_arg *y = &args[c->y];
	u64 from_x = (u64)y->u - x->u, from_y = x->u - y->u;
	return from_x ? from_x > x->bytes - 1ULL && from_y > y->bytes - 1ULL : c->equal_is_fine;
}

/* True if the arguments alone show that all conditions hold. */
static inline bool conditions_shown(const struct loaded *k, const tl_arg *args, const u64 *bits)
{
	for (const struct condition *c = k->conditions, *end = c + k->nconditions; c < end; c++)
		if (!condition_shown(c, args, bits))
			return false;
	return true;
}

#endif

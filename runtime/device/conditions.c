#include "runtime/device/conditions.h"

#include <stdlib.h>

#include "runtime/image/error.h"

static i64 integer_of(const struct image *im, u32 slot, const u64 *bits)
{
	int unused = 64 - dtype_bits(im->slots[slot].dtype);
	return (i64)(bits[slot] << unused) >> unused;
}

enum { MOST_STRIDE_BITS = 40 /* of a tensor map: cuTensorMapEncodeTiled */ };

/* --- tensor maps --------------------------------------------------------------------------------------------- */

/* A product of parameters in bytes; `unit` is the size of an element in bytes. Kernels compute the product in 32 bits,
 * so it must fit 31 bits; the summand is added on the host only. */
static bool number_of(const struct image *im, const struct launch_product *p, i64 unit, const u64 *bits, i64 *out)
{
	bool exact = true, single = !p->nparams || (p->nparams == 1 && p->times == unit);
	*out = p->times;
	for (int i = 0; i < p->nparams; i++)
		exact &= !__builtin_mul_overflow(*out, integer_of(im, (u32)p->params[i], bits), out);
	bool fits = exact && *out >= 0 && (single || *out <= INT32_MAX * unit);
	return fits && !__builtin_add_overflow(*out, p->plus, out);
}

/* The row stride in bytes for this launch's arguments. False: no tensor map can describe the stride. */
static bool row_distance(const struct image *im, const struct tensor_map_param *m, const u64 *bits, i64 *out)
{
	return number_of(im, &m->distance, m->elem_bytes, bits, out) && *out % 16 == 0 && !(*out >> MOST_STRIDE_BITS);
}

/* The sizes of a tensor: elements of a row, and rows. False: no tensor map can describe them. */
static bool tensor_sizes(const struct image *im, const struct tensor_map_param *m, const u64 *bits, i64 *out)
{
	bool fit = true;
	for (int i = 0; i < 2; i++)
		fit &= number_of(im, &m->sizes[i], 1, bits, &out[i]) && out[i] > 0 && out[i] <= (i64)1 << 31;
	return fit;
}

/* True if the offset of the tensor's last element fits 31 bits. */
static bool is_near(const struct tensor_map_param *m, i64 distance, const i64 *sizes)
{
	/* no overflow: the stride is below 2^40, and the sizes are at most 2^31 */
	i64 rows = distance / m->elem_bytes, last;
	return !__builtin_mul_overflow(rows, sizes[1] - 1, &last) && last <= INT32_MAX - sizes[0];
}

static bool map_fits(const struct image *im, const struct tensor_map_param *m, const u64 *bits)
{
	i64 distance, sizes[2];
	return row_distance(im, m, bits, &distance) &&
	       (m->tensor < 0 || (bits[m->tensor] % 16 == 0 && tensor_sizes(im, m, bits, sizes) &&
				  (!m->narrow || is_near(m, distance, sizes))));
}

struct map_values map_values(const struct image *im, u32 i, const u64 *bits)
{
	const struct tensor_map_param *m = &im->maps[i];
	i64 distance = 0, sizes[2] = {0};
	row_distance(im, m, bits, &distance);
	if (m->tensor < 0)
		return (struct map_values){.distance = (u64)distance};
	tensor_sizes(im, m, bits, sizes);
	return (struct map_values){bits[m->tensor], (u64)distance, {(u64)sizes[0], (u64)sizes[1]}};
}

bool maps_can_miss(const struct image *im)
{
	bool can = false;
	for (u32 i = 0; i < im->nmaps; i++)
		can |= im->maps[i].distance.nparams || im->maps[i].tensor >= 0;
	return can;
}

/* --- overlapping memory -------------------------------------------------------------------------------------- */

struct extent {
	u64 start, size;
};

/* The memory of each pointer argument, by slot, computed when first needed. */
struct memory_span {
	u64 known[MAX_KERNEL_PARAMS / 64];
	struct extent at[MAX_KERNEL_PARAMS];
};

/* The argument's own range, or its allocation; one byte if the size is unknown. */
static struct extent find_extent(struct device *dev, const tl_arg *a)
{
	void *base;
	size_t size;
	if (a->bytes)
		return (struct extent){(u64)(uintptr_t)a->ptr, a->bytes};
	if (dev->ops->allocation && dev->ops->allocation(dev, a->ptr, &base, &size))
		return (struct extent){(u64)(uintptr_t)base, size};
	return (struct extent){(u64)(uintptr_t)a->ptr, 1};
}

static struct extent extent_of(struct device *dev, struct memory_span *m, u32 slot, const tl_arg *a)
{
	u64 *known = &m->known[slot / 64], bit = (u64)1 << slot % 64;
	if (!(*known & bit))
		m->at[slot] = find_extent(dev, a);
	*known |= bit;
	return m->at[slot];
}

/* Compares differences, since start + size may exceed 64 bits. */
static inline bool extents_overlap(struct extent x, struct extent y)
{
	return x.start < y.start ? y.start - x.start < x.size : x.start - y.start < y.size;
}

static enum aliasing pair_overlaps(struct device *dev, const struct image *im, const struct param_pair *p,
				   const struct arguments *args, struct memory_span *m)
{
	const tl_arg *a = &args->at[im->slots[p->a].leaf], *b = &args->at[im->slots[p->b].leaf];
	if (!a->ptr || !b->ptr)
		return ALIAS_NONE;
	if (a->ptr == b->ptr)
		return p->equal_is_fine ? ALIAS_NONE : ALIAS_EQUAL;
	bool overlap = extents_overlap(extent_of(dev, m, p->a, a), extent_of(dev, m, p->b, b));
	return overlap ? ALIAS_ANY : ALIAS_NONE;
}

/* --- 32-bit offsets ------------------------------------------------------------------------------------------ */

static u64 most_narrow_bytes(const struct slot *s)
{
	return MOST_NARROW_ELEMENTS * (s->pointers > 1 ? sizeof(void *) : (u64)dtype_bytes(s->dtype));
}

static bool few_elements(struct device *dev, const struct image *im, u32 slot, const struct arguments *args,
			 struct memory_span *m)
{
	const tl_arg *a = &args->at[im->slots[slot].leaf];
	if (!a->ptr)
		return true;
	struct extent x = extent_of(dev, m, slot, a);
	u64 before = (u64)(uintptr_t)a->ptr - x.start;
	return x.size <= before || x.size - before <= most_narrow_bytes(&im->slots[slot]);
}

/* --- sizes --------------------------------------------------------------------------------------------------- */

static i64 size_of(const struct image *im, i16 size, const struct arguments *a)
{
	if (size <= SIZE_PROGRAMS)
		return a->grid[SIZE_PROGRAMS - size];
	if ((u32)size >= im->nslots) /* a persistent kernel's grid is in the parameters after the slots */
		return a->grid[(u32)size - im->nslots];
	return integer_of(im, (u32)size, a->bits);
}

static bool size_fits(const struct image *im, const struct size_limit *l, const struct arguments *args)
{
	return size_limit_kept(l, size_of(im, l->a, args), l->b == SIZE_NONE ? 0 : size_of(im, l->b, args));
}

/* --- the list of conditions ---------------------------------------------------------------------------------- */

/* The largest value of an integer slot whose bits are that value whether they are signed or not; else 0. */
static u64 most_of(const struct slot *s)
{
	return s->pointers || dtype_is_float(s->dtype) ? 0 : ((u64)1 << (dtype_bits(s->dtype) - 1)) - 1;
}

/* The condition holds if the slot has a value of at most `most`, with the bits of `mask` clear. */
static void test_slot(const struct image *im, struct condition *c, i64 slot, u64 most, u64 mask)
{
	if (slot < 0 || slot >= im->nslots || most >= most_of(&im->slots[slot]))
		return;
	c->x = (u16)slot;
	c->limit = most + 1;
	c->mask = mask;
}

/* Only maps of all memory have a test, if their row stride is a constant times a parameter. */
static void test_map(const struct image *im, const struct tensor_map_param *m, struct condition *c)
{
	const struct launch_product *p = &m->distance;
	if (m->tensor >= 0 || p->nparams != 1 || p->times <= 0)
		return;
	u64 factor = (u64)p->times, lowest = factor & (~factor + 1); /* lowest set bit */
	u64 bytes = (u64)m->elem_bytes, fits = most_of(&im->slots[p->params[0]]);
	u64 most = factor == bytes ? ((u64)1 << MOST_STRIDE_BITS) - 1 : bytes * INT32_MAX;
	test_slot(im, c, p->params[0], MIN(most / factor, fits - 1), lowest < 16 ? 16 / lowest - 1 : 0);
}

struct condition *conditions_make(const struct image *im, u32 *n)
{
	struct condition *all = calloc(im->nmaps + im->nlimits + im->nslots + im->napart + 1, sizeof *all), *c = all;
	if (!all)
		return NULL;
	for (u32 i = 0; i < im->nmaps; i++) {
		*c = (struct condition){.kind = CONDITION_MAP, .index = i};
		test_map(im, &im->maps[i], c++);
	}
	for (u32 i = 0; i < im->nlimits; i++) {
		const struct size_limit *l = &im->limits[i];
		*c = (struct condition){.kind = CONDITION_SIZE, .index = i};
		if (l->b == SIZE_NONE && l->most >= 0)
			test_slot(im, c, l->a, (u64)l->most, 0);
		c++;
	}
	for (u32 i = 0; i < im->nslots && im->narrow_offsets; i++)
		if (im->slots[i].pointers)
			*c++ = (struct condition){.kind = CONDITION_FEW,
						  .x = (u16)im->slots[i].leaf,
						  .index = i,
						  .limit = most_narrow_bytes(&im->slots[i])};
	for (u32 i = 0; i < im->napart; i++)
		*c++ = (struct condition){.kind = CONDITION_APART,
					  .x = (u16)im->slots[im->apart[i].a].leaf,
					  .y = (u16)im->slots[im->apart[i].b].leaf,
					  .index = i,
					  .equal_is_fine = im->apart[i].equal_is_fine};
	*n = (u32)(c - all);
	return all;
}

/* The complete check. */
static struct broken breaks(struct device *dev, const struct image *im, const struct condition *c,
			    const struct arguments *a, struct memory_span *m)
{
	struct broken b = {0};
	switch (c->kind) {
	case CONDITION_MAP: b.maps = !map_fits(im, &im->maps[c->index], a->bits); break;
	case CONDITION_SIZE: b.sizes = size_fits(im, &im->limits[c->index], a) ? BOUNDS_LIMITED : BOUNDS_ANY; break;
	case CONDITION_FEW: b.sizes = few_elements(dev, im, c->index, a, m) ? BOUNDS_LIMITED : BOUNDS_WIDE; break;
	case CONDITION_APART: b.alias = pair_overlaps(dev, im, &im->apart[c->index], a, m); break;
	}
	return b;
}

struct broken conditions_broken(struct device *dev, const struct loaded *k, const struct arguments *a)
{
	struct broken all = {0};
	struct memory_span m;
	memset(m.known, 0, sizeof m.known);
	for (const struct condition *c = k->conditions, *end = c + k->nconditions; c < end; c++)
		if (!condition_shown(c, a->at, a->bits)) {
			struct broken b = breaks(dev, k->image, c, a, &m);
			broken_add(&all, &b);
		}
	return all;
}

static void explain_map(const struct image *im, const struct tensor_map_param *m, const u64 *bits)
{
	i64 distance, sizes[2];
	if (!row_distance(im, m, bits, &distance)) {
		failed_more("assumes rows that a tensor map can describe: ");
		for (int i = 0; i < m->distance.nparams; i++)
			failed_more("'%s' is %lld, and ", im->slots[m->distance.params[i]].name,
				    (long long)integer_of(im, (u32)m->distance.params[i], bits));
		failed_more("the row stride (%lld%s bytes) must be from 0 to 2^40 and a multiple of 16",
			    (long long)m->distance.times, m->distance.nparams ? " times that many" : "");
		if (m->distance.nparams > 1 || m->distance.times != m->elem_bytes)
			failed_more(", and less than 2^31 elements");
	} else if (bits[m->tensor] % 16) {
		failed_more("assumes a tensor that begins at a multiple of 16 bytes: '%s' is 0x%llx",
			    im->slots[m->tensor].name, (unsigned long long)bits[m->tensor]);
	} else {
		tensor_sizes(im, m, bits, sizes);
		failed_more("assumes sizes of '%s' from 1 to 2^31%s, but they are %lld and %lld",
			    im->slots[m->tensor].name,
			    m->narrow ? " and less than 2^31 elements from the first to the last one" : "",
			    (long long)sizes[0], (long long)sizes[1]);
	}
}

static void explain_size(const struct image *im, const struct size_limit *l, const struct arguments *a)
{
	failed_more("assumes 0 <= %s", image_size_name(im, l->a));
	if (l->b != SIZE_NONE)
		failed_more(" * %s", image_size_name(im, l->b));
	failed_more(" <= %lld, but the value is %lld", (long long)l->most, (long long)size_of(im, l->a, a));
	if (l->b != SIZE_NONE)
		failed_more(" * %lld", (long long)size_of(im, l->b, a));
}

static void explain_pair(const struct image *im, const struct param_pair *p)
{
	failed_more("assumes that the memory of '%s' and '%s' does not overlap, but it does", im->slots[p->a].name,
		    im->slots[p->b].name);
}

static void explain(const struct image *im, const struct condition *c, const struct arguments *a)
{
	switch (c->kind) {
	case CONDITION_MAP: explain_map(im, &im->maps[c->index], a->bits); return;
	case CONDITION_SIZE: explain_size(im, &im->limits[c->index], a); return;
	case CONDITION_FEW:
		failed_more("assumes fewer than 2^31 - 2^24 elements in the memory of '%s'", im->slots[c->index].name);
		return;
	case CONDITION_APART: explain_pair(im, &im->apart[c->index]); return;
	}
}

void conditions_explain(struct device *dev, const struct loaded *k, const struct arguments *a)
{
	struct memory_span m = {0};
	for (u32 i = 0; i < k->nconditions; i++) {
		const struct broken b = breaks(dev, k->image, &k->conditions[i], a, &m);
		if (is_broken(&b)) {
			explain(k->image, &k->conditions[i], a);
			return;
		}
	}
}

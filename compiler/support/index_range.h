#ifndef TLC_SUPPORT_INDEX_RANGE_H
#define TLC_SUPPORT_INDEX_RANGE_H

#include "support/arena.h"

/* A range of memory that kernels may access. */
struct mem_range {
	const char *name; /* used in messages; may be NULL */
	char *base;
	size_t size;
};

static inline u64 range_start(const struct mem_range *r) { return (u64)(uintptr_t)r->base; }
/* True if the bytes [address, address + bytes) are within [start, start + size). */
static inline bool bytes_within(u64 start, u64 size, u64 address, u64 bytes)
{
	u64 offset = address - start;
	return offset <= size && bytes <= size - offset;
}
static inline bool range_has(const struct mem_range *r, u64 address, u64 bytes)
{
	return bytes_within(range_start(r), r->size, address, bytes);
}

/* All memory, for accesses with an unknown range. */
extern const struct mem_range any_memory;

/* True if one of the n ranges, sorted by address and extended by `guard` bytes on both sides, overlaps [address,
 * address + bytes). */
bool ranges_touch(const struct mem_range *ranges, u32 n, u64 address, u64 bytes, u64 guard);

/* The number of ranges that start at or below the address. The ranges are sorted by address. */
u32 ranges_below(const struct mem_range *ranges, u32 n, u64 address);
/* Appends `lead` and the position of the address relative to the nearest range: "16 bytes past the end of 'x'". Returns
 * that range. Returns NULL and appends nothing if no range is within 2^40 bytes. */
const struct mem_range *ranges_describe(const struct mem_range *ranges, u32 n, u64 address, const char *lead,
					struct strbuf *out);

/* Appends the reason why an access (`what`: "load", "store", "atomic") is an error: a null pointer, misalignment, or an
 * address outside the buffers. `home` is the range that the access must stay in: NULL if none, &any_memory for any of
 * the n. */
void access_fault_text(struct strbuf *out, const char *what, u64 address, u32 bytes, const struct mem_range *ranges,
		       u32 n, const struct mem_range *home);
/* Addresses below this are accesses through a null pointer. */
enum { NULL_PAGE = 4096 };

#endif

#ifndef TLC_SUPPORT_INDEX_RANGE_H
#define TLC_SUPPORT_INDEX_RANGE_H

#include "support/arena.h"

/* Memory that kernels may touch. */
struct mem_range {
	const char *name; /* for messages; may be NULL */
	char *base;
	size_t size;
};

static inline u64 range_start(const struct mem_range *r) { return (u64)(uintptr_t)r->base; }
/* Are these bytes among the `size` from `start` on? */
static inline bool bytes_within(u64 start, u64 size, u64 address, u64 bytes)
{
	u64 offset = address - start;
	return offset <= size && bytes <= size - offset;
}
static inline bool range_has(const struct mem_range *r, u64 address, u64 bytes)
{
	return bytes_within(range_start(r), r->size, address, bytes);
}

/* A special range: all memory, for accesses whose range is not known. */
extern const struct mem_range any_memory;

/* Does one of n ranges in order of their addresses, with `guard` bytes on both sides, touch these bytes? */
bool ranges_touch(const struct mem_range *ranges, u32 n, u64 address, u64 bytes, u64 guard);

/* Of n ranges in order of their addresses, how many start at or below the address. */
u32 ranges_below(const struct mem_range *ranges, u32 n, u64 address);
/* Appends `lead` and where the address lies, seen from the nearest range: "16 bytes past the end of 'x'". Returns that
 * range; NULL, with nothing appended, when none is near. */
const struct mem_range *ranges_describe(const struct mem_range *ranges, u32 n, u64 address, const char *lead,
					struct strbuf *out);

/* Appends why an access (what: "load", "store", "atomic") is an error: a null pointer, alignment, or where the address
 * lies. home: the range that the access must stay in; NULL: none; &any_memory: any of the n. */
void access_fault_text(struct strbuf *out, const char *what, u64 address, u32 bytes, const struct mem_range *ranges,
		       u32 n, const struct mem_range *home);
/* Addresses below come from a null pointer. */
enum { NULL_PAGE = 4096 };

#endif

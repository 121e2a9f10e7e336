#include "support/index_range.h"

u32 ranges_below(const struct mem_range *ranges, u32 n, u64 address)
{
	u32 lo = 0, hi = n;
	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;
		if (range_start(&ranges[mid]) <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct mem_range any_memory = {.size = SIZE_MAX};

bool ranges_touch(const struct mem_range *ranges, u32 n, u64 address, u64 bytes, u64 guard)
{
	u64 from = address > guard ? address - guard : 0,
	    end = bytes + guard > UINT64_MAX - address ? UINT64_MAX : address + bytes + guard;
	u32 below = ranges_below(ranges, n, address);
	return (below && range_start(&ranges[below - 1]) + ranges[below - 1].size > from) ||
	       (below < n && range_start(&ranges[below]) < end);
}

const struct mem_range *ranges_describe(const struct mem_range *ranges, u32 n, u64 address, const char *lead,
					struct strbuf *out)
{
	u32 below = ranges_below(ranges, n, address);
	const struct mem_range *r = below ? &ranges[below - 1] : NULL, *next = below < n ? &ranges[below] : NULL;
	u64 offset = r ? address - range_start(r) : 0, distance;
	const char *where = "past the end";
	if (r && offset < r->size) { /* the access starts inside r */
		distance = r->size - offset;
		where = "before the end";
	} else {
		u64 past = r ? offset - r->size : UINT64_MAX, before = next ? range_start(next) - address : UINT64_MAX;
		distance = MIN(past, before);
		if (before < past) {
			r = next;
			where = "before the start";
		}
	}
	if (distance >= (u64)1 << 40)
		return NULL;
	const char *quote = r->name ? "'" : "";
	sb_printf(out, "%s%llu byte%s %s of %s%s%s", lead, (unsigned long long)distance, distance == 1 ? "" : "s",
		  where, quote, r->name ? r->name : "a buffer", quote);
	return r;
}

void access_fault_text(struct strbuf *out, const char *what, u64 address, u32 bytes, const struct mem_range *ranges,
		       u32 n, const struct mem_range *home)
{
	const char *plural = bytes == 1 ? "" : "s";
	unsigned long long at = address;
	if (address < NULL_PAGE) {
		sb_printf(out, "%s of %u byte%s through a null pointer: address 0x%llx", what, bytes, plural, at);
		return;
	}
	if (address & (bytes - 1)) {
		sb_printf(out, "misaligned %s of %u bytes: address 0x%llx is not a multiple of %u", what, bytes, at,
			  bytes);
		return;
	}
	const struct mem_range *in = NULL;
	u32 below = ranges_below(ranges, n, address);
	if (home && home != &any_memory && below && range_has(&ranges[below - 1], address, bytes))
		in = &ranges[below - 1]; /* the access lies in the buffer of another parameter */
	sb_printf(out, "%s of %u byte%s outside %s buffer: address 0x%llx", what, bytes, plural, in ? "its" : "every",
		  at);
	ranges_describe(in ? home : ranges, in ? 1 : n, address, " is ", out);
	if (in)
		sb_printf(out, ", in %s%s%s", in->name ? "'" : "", in->name ? in->name : "another buffer",
			  in->name ? "'" : "");
}

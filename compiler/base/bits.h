/* Bitmaps of bytes of memory: which were written. */
#ifndef TLC_BASE_BITS_H
#define TLC_BASE_BITS_H

#include "base/base.h"

/* Bits [from, from + n): are all set? */
static inline bool bits_all(const u8 *bits, u64 from, u64 n)
{
	u64 end = from + n;
	for (; from < end && from % 8; from++)
		if (!(bits[from / 8] >> from % 8 & 1))
			return false;
	for (u64 eight; end - from >= 64; from += 64) {
		memcpy(&eight, bits + from / 8, 8);
		if (~eight)
			return false;
	}
	for (; end - from >= 8; from += 8)
		if (bits[from / 8] != 0xFF)
			return false;
	u8 tail = (u8)((1u << (end - from)) - 1);
	return !tail || (bits[from / 8] & tail) == tail;
}

/* Sets them. Other threads may be setting neighbours. */
static inline void bits_set(u8 *bits, u64 from, u64 n)
{
	if (bits_all(bits, from, n))
		return;
	for (u64 end = from + n; from < end;) {
		u64 in_byte = MIN(end - from, 8 - from % 8);
		u8 mask = (u8)(((1u << in_byte) - 1) << from % 8);
		__atomic_fetch_or(&bits[from / 8], mask, __ATOMIC_RELAXED);
		from += in_byte;
	}
}

/* The first one from there on that is not set; there is one. */
static inline u64 bits_first_clear(const u8 *bits, u64 from)
{
	while (bits[from / 8] >> from % 8 & 1)
		from++;
	return from;
}

#endif

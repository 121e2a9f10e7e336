/* Bitmaps with a bit for each byte of memory: set if the byte has been written. */
#ifndef TLC_SUPPORT_BYTE_MAP_H
#define TLC_SUPPORT_BYTE_MAP_H

#include "support/base.h"

/* A word of a bitmap. Bitmaps are aligned to 8 bytes. Other threads may set bits meanwhile, so each read is atomic. */
typedef u64 __attribute__((may_alias)) bits_word;

static inline u8 bits_byte(const u8 *bits, u64 at)
{
	return __atomic_load_n(&bits[at / 8], __ATOMIC_RELAXED);
}

/* True if all bits in [from, from + n) are set. */
static inline bool bits_all(const u8 *bits, u64 from, u64 n)
{
	u64 end = from + n;
	for (; from < end && from % 8; from++)
		if (!(bits_byte(bits, from) >> from % 8 & 1))
			return false;
	for (; end - from >= 8; from += 8)
		if (from % 64 == 0 && end - from >= 64) {
			if (~__atomic_load_n((const bits_word *)(const void *)(bits + from / 8), __ATOMIC_RELAXED))
				return false;
			from += 56;
		} else if (bits_byte(bits, from) != 0xFF) {
			return false;
		}
	u8 tail = (u8)((1u << (end - from)) - 1);
	return !tail || (bits_byte(bits, from) & tail) == tail;
}

/* Sets the bits in [from, from + n). */
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

/* The first clear bit at or after `from`. Such a bit must exist. */
static inline u64 bits_first_clear(const u8 *bits, u64 from)
{
	while (bits_byte(bits, from) >> from % 8 & 1)
		from++;
	return from;
}

#endif

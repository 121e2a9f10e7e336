/* Random bits for tests, the same in each run and thread: xorshift64* (Vigna, "An experimental exploration of
 * Marsaglia's xorshift generators, scrambled", 2016). */
#ifndef TL_TEST_RANDOM_BITS_H
#define TL_TEST_RANDOM_BITS_H

#include "support/base.h"

static inline u64 random_bits(void)
{
	static _Thread_local u64 state = 0x9E3779B97F4A7C15;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545F4914F6CDD1D;
}

#endif

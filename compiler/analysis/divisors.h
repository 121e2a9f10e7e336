/* Which integer parameters have divisors that can change the code: those that reach an address, a mask or a quotient of
 * a tile, or the index of a loop. A seed, a scale or a number that is only stored need no variants of their own. */
#ifndef TLC_ANALYSIS_DIVISORS_H
#define TLC_ANALYSIS_DIVISORS_H

#include "ir/ir.h"

/* Multiples of 16 make wide accesses; of 256, the sides of tiles, whole ones of a product's tiles. */
enum { DIVISOR_NONE = 1, DIVISOR_ACCESS = 16, DIVISOR_TILE = 256 };

/* Of a kernel as it was evaluated, for each parameter the largest divisor that can change its code. */
void useful_divisors(struct kernel *k, i16 *most);

#endif

/* Integer parameters with divisors that can change the code: parameters that reach an address, a mask or a quotient of
 * a tile, or the index of a loop. Other parameters, such as seeds, scales and numbers that are only stored, need no
 * separate variants. */
#ifndef TLC_ANALYSIS_DIVISORS_H
#define TLC_ANALYSIS_DIVISORS_H

#include "ir/ir.h"

/* Multiples of 16 allow wide accesses. Multiples of 256, the sides of tiles, allow GEMMs without partial tiles. */
enum { DIVISOR_NONE = 1, DIVISOR_ACCESS = 16, DIVISOR_TILE = 256 };

/* Sets most[i] to the largest divisor of parameter i that can change the code. `k` is the kernel before any pass. */
void useful_divisors(struct kernel *k, i16 *most);

#endif

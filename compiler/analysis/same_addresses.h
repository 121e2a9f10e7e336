/* Accesses to the same addresses, element by element. */
#ifndef TLC_ANALYSIS_SAME_ADDRESSES_H
#define TLC_ANALYSIS_SAME_ADDRESSES_H

#include "ir/pass.h"

/* True if the elements of o's result are elements of its operand, unchanged. A bitcast of pointers is included if it
 * keeps the unit of offsets. */
bool keeps_elements(const struct op *o);
/* True if x and y are the same addresses, provided that their bases are equal. */
bool same_addresses(const struct value *x, const struct value *y);
/* True if no two elements of the tile of pointers are the same address. Row strides are assumed to be at least as long
 * as a row. */
bool are_each_once(const struct pass_state *s, const struct value *pointers);

#endif

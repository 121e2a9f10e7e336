/* The first element of a tile as a scalar: see first_element.c. */
#ifndef TLC_TRANSFORM_FIRST_ELEMENT_H
#define TLC_TRANSFORM_FIRST_ELEMENT_H

#include "ir/ir.h"

/* True if the tile is computed by index arithmetic only. */
bool has_first_element(struct ir_context *ctx, const struct value *v);
/* The first element of such a tile, or of a tile computed the same way. Operations on values defined outside `loop` are
 * built before the loop; `loop` may be NULL. `made` maps tiles to their first elements that exist already. */
struct value *first_element(struct builder *b, struct op *loop, struct map *made, struct value *v);

#endif

/* The first element of a tile: see first_element.c. */
#ifndef TLC_TRANSFORM_FIRST_ELEMENT_H
#define TLC_TRANSFORM_FIRST_ELEMENT_H

#include "ir/ir.h"

/* Is the tile computed by index arithmetic alone? */
bool has_first_element(struct ir_context *ctx, const struct value *v);
/* The first element of such a tile, or of one computed like it. What is defined outside of `loop` is computed in front
 * of it; or `loop` is NULL. `made` remembers what was. */
struct value *first_element(struct builder *b, struct op *loop, struct map *made, struct value *v);

#endif

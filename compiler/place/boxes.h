/* Tiles of pointers that are boxes: rows of contiguous elements at equal distances, which the hardware copies whole
 * (TMA). */
#ifndef TLC_PLACE_BOXES_H
#define TLC_PLACE_BOXES_H

#include "opt/axis.h"
#include "place/place.h"

struct box {
	int along;           /* the dimension that rows run along; the other one counts them */
	struct value *stride; /* rows are *stride · factor bytes apart; NULL: factor bytes. A parameter of the kernel */
	i64 factor;
};
/* Are the addresses in `ptr`, a placed tile of two dimensions, those of a box, which a buffer of layout `mem` can
 * receive? */
bool find_box(const struct pass_state *s, struct value *ptr, const struct layout *mem, struct box *out);

/* The address of the first element of a tile of pointers for which find_box said yes, or of one computed like it, as a
 * scalar. What is defined outside of `loop` is computed in front of it. `made` remembers what was. */
struct value *first_element(struct builder *b, struct op *loop, struct map *made, struct value *v);

#endif

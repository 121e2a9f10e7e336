/* Warns of uses of the undefined elements of masked loads without `other`.
 *
 * An element of such a load is undefined where its mask is false. The mask is split into the conditions of its
 * conjunction. Each condition is followed forward from the load, with the dimensions of the tile along which it
 * changes. A reduction or dot along one of these dimensions uses undefined elements. A reduction along another
 * dimension keeps them apart, and its result has the condition too. A select or a later mask that changes along one of
 * these dimensions is assumed to leave the undefined elements out. Whether it does so exactly is not decided, so that a
 * correct program gets no warning. Conditions that always hold are ignored. A condition that is constant along whole
 * rows (analysis/axis.h) does not change along them. */
#ifndef TLC_ANALYSIS_UNDEFINED_H
#define TLC_ANALYSIS_UNDEFINED_H

#include "ir/ir.h"

/* `k` is the kernel before any pass. */
void warn_of_undefined(const struct kernel *k, struct diags *d);

#endif

/* A warning of masked loads without `other` whose undefined elements are used.
 *
 * One element of such a load is undefined where its mask is false. The mask is taken apart into the conditions that it
 * is a conjunction of, and each is followed forward from the load, with the dimensions of the tile along which it
 * changes. A reduction or dot along one of these dimensions takes undefined elements in; a reduction along another one
 * keeps them apart, and the condition goes on to its result. What chooses, or a mask further on, is taken to leave the
 * undefined elements out where it changes along one of these dimensions: whether it does so exactly is not decided, so
 * that a program that is right gets no warning. Conditions that always hold are none, and one that holds for whole rows
 * (analysis/axis.h) does not change along them. */
#ifndef TLC_ANALYSIS_UNDEFINED_H
#define TLC_ANALYSIS_UNDEFINED_H

#include "ir/ir.h"

/* Of a kernel as it was evaluated. */
void warn_of_undefined(const struct kernel *k, struct diags *d);

#endif

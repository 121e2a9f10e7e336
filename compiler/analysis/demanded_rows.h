/* Demanded rows: the elements of a tile along a dimension that its uses need.
 *
 * A kernel stores its result under a mask `index < size` if a tile extends beyond the edge of a matrix, or if it
 * computes sixteen rows although only one exists. The masked-off elements of a value are not demanded if each use of
 * the value ends in such stores, through operations that keep the positions of elements along the dimension. For a
 * value that a loop carries to its next iteration, the comparison must be the same in each iteration. */
#ifndef TLC_ANALYSIS_DEMANDED_ROWS_H
#define TLC_ANALYSIS_DEMANDED_ROWS_H

#include "ir/ir.h"

struct tile_dim {
	const struct value *v; /* NULL if none */
	int dim;
};

/* Callback: true if the comparison, which is true wherever a mask is true, limits the elements along dimension d. */
typedef bool is_limit(const struct op *cmp, int d, const void *arg);
/* The comparison accepted by `fits` that guards all stores of the elements of v along dimension `dim`. .v is NULL if
 * there are several such comparisons, or other uses of the elements. */
struct tile_dim demanded_under(const struct value *v, int dim, is_limit *fits, const void *arg);

#endif

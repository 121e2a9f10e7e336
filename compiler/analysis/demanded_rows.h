/* What is asked for of a tile along a dimension, by everything that uses it.
 *
 * A kernel whose tile hangs over the edge of a matrix, or that takes sixteen rows where there is one, stores its result
 * under a mask `index < size`. What that leaves out is asked for nowhere if each use of a value ends in such stores, by
 * operations that keep the elements' places along the dimension. What a loop carries to its next iteration is asked for
 * under a comparison that is the same in each. */
#ifndef TLC_ANALYSIS_DEMANDED_ROWS_H
#define TLC_ANALYSIS_DEMANDED_ROWS_H

#include "ir/ir.h"

struct tile_dim {
	const struct value *v; /* NULL: none */
	int dim;
};

/* Does a comparison, which must hold where a mask does, say which elements along dimension d are meant? */
typedef bool is_limit(const struct op *cmp, int d, const void *arg);
/* The one comparison of which `fits` says so under which all stores are made that what v holds along dimension `dim`
 * ends in; .v NULL: there are others, or other uses. */
struct tile_dim demanded_under(const struct value *v, int dim, is_limit *fits, const void *arg);

/* The dimension of the result of an operation on shapes that dimension d of its operand becomes; -1: none. */
int dim_behind(const struct op *o, int d);

#endif

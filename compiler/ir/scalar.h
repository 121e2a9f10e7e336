/* The meaning of each elementwise operation on one element: used to fold constants. The interpreter applies the same
 * table, elementwise.def, to tiles. */
#ifndef TLC_IR_SCALAR_H
#define TLC_IR_SCALAR_H

#include "ir/ir.h"

/* Evaluates an elementwise operation on the bits (memory representation) of its operands' elements; bits above an
 * element's width are ignored, and zero in the result. Never traps. False when the result is undefined (integer
 * division by zero, INT_MIN / -1, a shift by the width or more) or the operation is not an elementwise one. */
bool scalar_eval(const struct op *o, const u64 *in, u64 *out);

/* Bytes between the elements that a pointer (or a tile of pointers) steps over. */
static inline u64 pointee_bytes(const struct type *t)
{
	return (u64)dtype_bytes(type_dtype(type_elem(t)->elem));
}

#endif

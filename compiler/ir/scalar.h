/* The meaning of each elementwise operation on one element, for constant folding. The interpreter applies the same
 * table, elementwise.def, to tiles. */
#ifndef TLC_IR_SCALAR_H
#define TLC_IR_SCALAR_H

#include "ir/ir.h"

/* Evaluates an elementwise operation on the bits (memory representation) of its operands' elements. Bits above the
 * width of an element are ignored in operands and zero in the result. Never traps. False if the result is undefined
 * (integer division by zero, INT_MIN / -1, a shift by at least the width) or if the operation is not elementwise. */
bool scalar_eval(const struct op *o, const u64 *in, u64 *out);

/* The byte size of an element that a pointer (or a tile of pointers) refers to. */
static inline u64 pointee_bytes(const struct type *t)
{
	return (u64)dtype_bytes(type_dtype(type_elem(t)->elem));
}

/* The function that an approximate operation approximates; other operations unchanged. For targets and types without an
 * instruction. */
enum opcode accurate_operation(enum opcode code);

#endif

/* Elementwise operations that all targets emit as the same LLVM IR, on scalars and vectors. */
#ifndef TLC_LLVM_ELEMENTWISE_H
#define TLC_LLVM_ELEMENTWISE_H

#include "ir/ir.h"
#include "llvm/builder.h"

/* The result of o for operands `in`, as LLVM IR that is right for every target; floats are LLVM floats. NULL if there
 * is none. A target with better code for an operation handles it before the call. */
LLVMValueRef emit_operation(LLVMBuilderRef b, const struct op *o, const LLVMValueRef *in);
/* Cast `code` of x to elements of type t. NULL: targets differ in the conversion. */
LLVMValueRef emit_cast(LLVMBuilderRef b, enum opcode code, LLVMValueRef x, LLVMTypeRef t);

#endif

/* fp32 → small float formats in integer arithmetic, on scalars and on vectors, for targets without instructions for it;
 * compare support/small_floats.h. */
#ifndef TLC_LLVM_FLOAT_FORMATS_H
#define TLC_LLVM_FLOAT_FORMATS_H

#include <llvm-c/Core.h>

#include "support/dtype.h"

/* `elem`, or a vector of it with as many elements as the vector type t. */
LLVMTypeRef type_like(LLVMTypeRef t, LLVMTypeRef elem);
/* n as an integer of type t, or a vector of it. */
LLVMValueRef int_like(LLVMTypeRef t, u64 n);
/* To nearest even, or toward zero. */
LLVMValueRef encode_fp8(LLVMBuilderRef b, LLVMValueRef v, enum dtype d, bool toward_zero);
LLVMValueRef encode_bf16(LLVMBuilderRef b, LLVMValueRef v, bool toward_zero);

#endif

/* Conversion of fp32 to small float formats by integer arithmetic, on scalars and vectors, for targets without
 * conversion instructions. Compare support/small_floats.h. */
#ifndef TLC_LLVM_FLOAT_FORMATS_H
#define TLC_LLVM_FLOAT_FORMATS_H

#include <llvm-c/Core.h>

#include "support/dtype.h"

/* `elem`, or a vector of it with the number of elements of the vector type t. */
LLVMTypeRef type_like(LLVMTypeRef t, LLVMTypeRef elem);
/* n as a constant of the integer type t, or splatted to the vector type t. */
LLVMValueRef int_like(LLVMTypeRef t, u64 n);
/* Round to nearest even, or toward zero. */
LLVMValueRef encode_fp8(LLVMBuilderRef b, LLVMValueRef v, enum dtype d, bool toward_zero);
LLVMValueRef encode_bf16(LLVMBuilderRef b, LLVMValueRef v, bool toward_zero);

#endif

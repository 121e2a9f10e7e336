/* Conversion of fp32 to small float formats by integer arithmetic, on scalars and vectors, for targets without
 * conversion instructions. Compare support/small_floats.h. */
#ifndef TLC_LLVM_FLOAT_FORMATS_H
#define TLC_LLVM_FLOAT_FORMATS_H

#include "support/dtype.h"
#include "llvm/builder.h"

/* Round to nearest even, or toward zero. */
LLVMValueRef encode_fp8(LLVMBuilderRef b, LLVMValueRef v, enum dtype d, bool toward_zero);
LLVMValueRef encode_bf16(LLVMBuilderRef b, LLVMValueRef v, bool toward_zero);

#endif

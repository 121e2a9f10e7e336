/* Conversion of fp32 to small float formats by integer arithmetic, on scalars and vectors, for targets without
 * conversion instructions. Compare support/small_floats.h. */
#ifndef TLC_LLVM_FLOAT_FORMATS_H
#define TLC_LLVM_FLOAT_FORMATS_H

#include "support/dtype.h"
#include "llvm/builder.h"

/* Exactly: bf16 to fp32, E5M2 to fp16. */
LLVMValueRef decode_bf16(LLVMBuilderRef b, LLVMValueRef v);
LLVMValueRef decode_e5m2(LLVMBuilderRef b, LLVMValueRef v);
/* f is a number rounded to fp32 toward zero; inexact (i1): f differs from the number. The result is the number rounded
 * to odd: a second rounding, to a format of at most 22 bits, then gives the same result as one rounding (as
 * from_unsigned_odd in ir/scalar_math.h). */
LLVMValueRef set_odd(LLVMBuilderRef b, LLVMValueRef f, LLVMValueRef inexact);
/* Round to nearest even, or toward zero. */
LLVMValueRef encode_fp8(LLVMBuilderRef b, LLVMValueRef v, enum dtype d, bool toward_zero);
LLVMValueRef encode_bf16(LLVMBuilderRef b, LLVMValueRef v, bool toward_zero);

#endif

#include "runtime/tensor_box.h"

int tensor_map_type(enum dtype t)
{
	switch (t) {
	case DT_I16:
	case DT_U16: return TENSOR_UINT16;
	case DT_I32: return TENSOR_INT32;
	case DT_U32: return TENSOR_UINT32;
	case DT_I64: return TENSOR_INT64;
	case DT_U64: return TENSOR_UINT64;
	case DT_F16: return TENSOR_FLOAT16;
	case DT_BF16: return TENSOR_BFLOAT16;
	case DT_F32: return TENSOR_FLOAT32;
	case DT_F64: return TENSOR_FLOAT64;
	default: return TENSOR_UINT8;
	}
}

/* Element types. One list serves the language and the IR. The language distinguishes signed and unsigned integers. The
 * IR does not: its operations carry the signedness, and its types have the signed names only.
 *
 * float8e4b15, a format of Triton, exists in the language only. Its values are i8 in the IR, as in Triton's, and
 * lang/std/fp8.tl converts them. The two formats after it belong to AMD GPUs: only their names exist, without
 * values. */
#ifndef TLC_SUPPORT_DTYPE_H
#define TLC_SUPPORT_DTYPE_H

#include "support/small_floats.h"

/* X(enum, name in signatures, name as tl.<attr>, name in the IR text, bits) */
#define DTYPES(X)                                          \
	X(DT_I1, "i1", "int1", "i1", 1)                    \
	X(DT_I8, "i8", "int8", "i8", 8)                    \
	X(DT_I16, "i16", "int16", "i16", 16)               \
	X(DT_I32, "i32", "int32", "i32", 32)               \
	X(DT_I64, "i64", "int64", "i64", 64)               \
	X(DT_U8, "u8", "uint8", "i8", 8)                   \
	X(DT_U16, "u16", "uint16", "i16", 16)              \
	X(DT_U32, "u32", "uint32", "i32", 32)              \
	X(DT_U64, "u64", "uint64", "i64", 64)              \
	X(DT_E4M3, "fp8e4nv", "float8e4nv", "f8E4M3FN", 8) \
	X(DT_E5M2, "fp8e5", "float8e5", "f8E5M2", 8)       \
	X(DT_F16, "fp16", "float16", "f16", 16)            \
	X(DT_BF16, "bf16", "bfloat16", "bf16", 16)         \
	X(DT_F32, "fp32", "float32", "f32", 32)            \
	X(DT_F64, "fp64", "float64", "f64", 64)            \
	X(DT_E4B15, "fp8e4b15", "float8e4b15", "i8", 8)    \
	X(DT_E4B8, "fp8e4b8", "float8e4b8", "i8", 8)       \
	X(DT_E5B16, "fp8e5b16", "float8e5b16", "i8", 8)

enum dtype {
#define X(e, sig, tl, ir, bits) e,
	DTYPES(X)
#undef X
	DT_COUNT
};

static inline int dtype_bits(enum dtype d)
{
	static const u8 bits[] = {
#define X(e, sig, tl, ir, bits) bits,
		DTYPES(X)
#undef X
	};
	return bits[d];
}
/* Bytes in memory; int1 is stored as a byte. */
static inline int dtype_bytes(enum dtype d) { return (dtype_bits(d) + 7) / 8; }
static inline bool dtype_is_int(enum dtype d) { return d <= DT_U64; }
static inline bool dtype_is_float(enum dtype d) { return d >= DT_E4M3; }
static inline bool dtype_is_fp8(enum dtype d) { return d == DT_E4M3 || d == DT_E5M2 || d >= DT_E4B15; }
/* True if values of the type exist. False for AMD's formats, which are names only. */
static inline bool dtype_has_values(enum dtype d) { return d <= DT_E4B15; }
/* int1 counts as unsigned, as in Triton. */
static inline bool dtype_is_unsigned(enum dtype d) { return d == DT_I1 || (d >= DT_U8 && d <= DT_U64); }
static inline bool dtype_is_signed(enum dtype d) { return d >= DT_I8 && d <= DT_I64; }
/* The IR's element type for a language type: without signedness; i8 for formats that the IR treats as bits. */
static inline enum dtype dtype_signless(enum dtype d)
{
	return d >= DT_E4B15 ? DT_I8 : d >= DT_U8 && d <= DT_U64 ? d - DT_U8 + DT_I8 : d;
}
static inline enum dtype dtype_unsigned(enum dtype d) { return d >= DT_I8 && d <= DT_I64 ? d - DT_I8 + DT_U8 : d; }

const char *dtype_name(enum dtype d);    /* "fp16" */
const char *dtype_tl_name(enum dtype d); /* "float16" */
const char *dtype_ir_name(enum dtype d); /* "f16" */
/* The type with any of the three names or a common alias ("float8_e4m3fn", "e5m2", "half"…); DT_COUNT if none. */
enum dtype dtype_parse(const char *s, size_t len);

/* The memory representation of a number of type d, as bits. */
u64 dtype_encode_float(enum dtype d, double x);
u64 dtype_encode_int(enum dtype d, i64 x);
/* The number that the bits represent. dtype_decode_int sign-extends integers, except int1, which is 0 or 1. */
double dtype_decode_float(enum dtype d, u64 bits);
i64 dtype_decode_int(enum dtype d, u64 bits);
/* Of any type; unsigned integers are not sign-extended. */
double dtype_decode_number(enum dtype d, u64 bits);

#endif

/* Conversion loops: between integers, between integers and floats, between float formats. */
#include "interp/element_loop.h"

/* --- integers ------------------------------------------------------------------------------------------------ */

#define CAST(op, from, to, comp, e) \
	LOOP(op##_##from##_##to, MEM_##to, INT_TYPES(comp); const MEM_##from *p = x, LOAD_INT(a, p, from), CUT_##to(e))
/* Conversions from one width to every width. They are computed in 64 bits only if the source or the result has 64
 * bits. */
#define CASTS(op, from, comp, e)         \
	CAST(op, from, 1, comp, e)       \
	CAST(op, from, 8, comp, e)       \
	CAST(op, from, 16, comp, e)      \
	CAST(op, from, 32, comp, e)      \
	CAST(op, from, 64, 64, e)
#define INT_INT(op, e)       \
	CASTS(op, 1, 32, e)  \
	CASTS(op, 8, 32, e)  \
	CASTS(op, 16, 32, e) \
	CASTS(op, 32, 32, e) \
	CASTS(op, 64, 64, e)
#include "ir/elementwise.def"

#define CAST_ROW(op, from) {op##_##from##_1, op##_##from##_8, op##_##from##_16, op##_##from##_32, op##_##from##_64}

elem_loop *find_int_to_int(enum opcode code, enum dtype from, enum dtype to)
{
	static elem_loop *const loops[IR_OPCODES][5][5] = {
#define INT_INT(op, e) \
	[IR_##op] = {CAST_ROW(op, 1), CAST_ROW(op, 8), CAST_ROW(op, 16), CAST_ROW(op, 32), CAST_ROW(op, 64)},
#include "ir/elementwise.def"
	};
	return loops[code][from - DT_I1][to - DT_I1];
}

/* --- integers and floats ------------------------------------------------------------------------------------- */

#define TO_FLOAT(op, kind, Tr, bits, comp, e) \
	LOOP(op##_##bits##_##kind, Tr, INT_TYPES(comp); const MEM_##bits *p = x, LOAD_INT(a, p, bits), e)
#define TO_FLOATS(op, kind, Tr, e)        \
	TO_FLOAT(op, kind, Tr, 1, 32, e)  \
	TO_FLOAT(op, kind, Tr, 8, 32, e)  \
	TO_FLOAT(op, kind, Tr, 16, 32, e) \
	TO_FLOAT(op, kind, Tr, 32, 32, e) \
	TO_FLOAT(op, kind, Tr, 64, 64, e)

#define M(f) f##_f32
#define INT_FLOAT(op, e) TO_FLOATS(op, f32, memf32, e)
#include "ir/elementwise.def"
#undef M
#define M(f) f##_f64
#define INT_FLOAT(op, e) TO_FLOATS(op, f64, memf64, e)
#include "ir/elementwise.def"
#undef M
#define M(f) f##_odd
#define INT_FLOAT(op, e) TO_FLOATS(op, odd, memf32, e)
#include "ir/elementwise.def"
#undef M

#define FLOAT_ROW(op, kind) {op##_1_##kind, op##_8_##kind, op##_16_##kind, op##_32_##kind, op##_64_##kind}

elem_loop *find_int_to_float(enum opcode code, enum dtype from, enum dtype to, bool round_to_odd)
{
	static elem_loop *const loops[IR_OPCODES][3][5] = {
#define INT_FLOAT(op, e) [IR_##op] = {FLOAT_ROW(op, f32), FLOAT_ROW(op, f64), FLOAT_ROW(op, odd)},
#include "ir/elementwise.def"
	};
	return loops[code][round_to_odd ? 2 : to == DT_F64][from - DT_I1];
}

#define TO_INT(op, kind, Tf, bits, comp, e)                                                                \
	LOOP(op##_##kind##_##bits, MEM_##bits, INT_TYPES(comp); enum { BITS = bits }; const mem##kind *p = x, \
	     Tf a = p[i], CUT_##bits(e))
#define TO_INTS(op, kind, Tf, e)        \
	TO_INT(op, kind, Tf, 1, 32, e)  \
	TO_INT(op, kind, Tf, 8, 32, e)  \
	TO_INT(op, kind, Tf, 16, 32, e) \
	TO_INT(op, kind, Tf, 32, 32, e) \
	TO_INT(op, kind, Tf, 64, 64, e)
#define M(f) f##_f32
#define FLOAT_INT(op, e) TO_INTS(op, f32, float, e)
#include "ir/elementwise.def"
#undef M
#define M(f) f##_f64
#define FLOAT_INT(op, e) TO_INTS(op, f64, double, e)
#include "ir/elementwise.def"
#undef M

elem_loop *find_float_to_int(enum opcode code, enum dtype from, enum dtype to)
{
	static elem_loop *const loops[IR_OPCODES][2][5] = {
#define FLOAT_INT(op, e) [IR_##op] = {CAST_ROW(op, f32), CAST_ROW(op, f64)},
#include "ir/elementwise.def"
	};
	return loops[code][from == DT_F64][to - DT_I1];
}

/* --- float formats ------------------------------------------------------------------------------------------- */

#define CONVERT(name, Tr, Tf, e) LOOP(name, Tr, const Tf *p = x, , e)

CONVERT(decode_e4m3, memf32, mem8, fp_from_e4m3(p[i]))
CONVERT(decode_e5m2, memf32, mem8, fp_from_e5m2(p[i]))
CONVERT(decode_f16, memf32, mem16, fp_from_f16(p[i]))
CONVERT(decode_bf16, memf32, mem16, fp_from_bf16(p[i]))

elem_loop *find_decode(enum dtype d)
{
	static elem_loop *const loops[] = {decode_e4m3, decode_e5m2, decode_f16, decode_bf16};
	return d < DT_F32 ? loops[d - DT_E4M3] : NULL;
}

CONVERT(f32_to_e4m3, mem8, memf32, fp_to_e4m3(p[i]))
CONVERT(f32_to_e5m2, mem8, memf32, fp_to_e5m2(p[i]))
CONVERT(f32_to_f16, mem16, memf32, fp_to_f16(p[i]))
CONVERT(f32_to_bf16, mem16, memf32, fp_to_bf16(p[i]))
CONVERT(f32_to_f64, memf64, memf32, p[i])
CONVERT(f64_to_e4m3, mem8, memf64, fp_encode(FP_E4M3, p[i], false))
CONVERT(f64_to_e5m2, mem8, memf64, fp_encode(FP_E5M2, p[i], false))
CONVERT(f64_to_f16, mem16, memf64, fp_encode(FP_F16, p[i], false))
CONVERT(f64_to_bf16, mem16, memf64, fp_encode(FP_BF16, p[i], false))
CONVERT(f64_to_f32, memf32, memf64, p[i])
/* rounding toward zero */
CONVERT(f32_to_e4m3_rtz, mem8, memf32, fp_encode(FP_E4M3, p[i], true))
CONVERT(f32_to_e5m2_rtz, mem8, memf32, fp_encode(FP_E5M2, p[i], true))
CONVERT(f32_to_f16_rtz, mem16, memf32, fp_encode(FP_F16, p[i], true))
CONVERT(f32_to_bf16_rtz, mem16, memf32, fp_encode(FP_BF16, p[i], true))
CONVERT(f64_to_e4m3_rtz, mem8, memf64, fp_encode(FP_E4M3, p[i], true))
CONVERT(f64_to_e5m2_rtz, mem8, memf64, fp_encode(FP_E5M2, p[i], true))
CONVERT(f64_to_f16_rtz, mem16, memf64, fp_encode(FP_F16, p[i], true))
CONVERT(f64_to_bf16_rtz, mem16, memf64, fp_encode(FP_BF16, p[i], true))
CONVERT(f64_to_f32_rtz, memf32, memf64, fp_round_toward_zero(p[i]))

elem_loop *find_encode(enum dtype from, enum dtype to, bool toward_zero)
{
	static elem_loop *const loops[2][2][6] = {
		{{f32_to_e4m3, f32_to_e5m2, f32_to_f16, f32_to_bf16, NULL, f32_to_f64},
		 {f64_to_e4m3, f64_to_e5m2, f64_to_f16, f64_to_bf16, f64_to_f32, NULL}},
		{{f32_to_e4m3_rtz, f32_to_e5m2_rtz, f32_to_f16_rtz, f32_to_bf16_rtz, NULL, f32_to_f64},
		 {f64_to_e4m3_rtz, f64_to_e5m2_rtz, f64_to_f16_rtz, f64_to_bf16_rtz, f64_to_f32_rtz, NULL}},
	};
	return loops[toward_zero][from == DT_F64][to - DT_E4M3];
}

/* Computation loops: elementwise.def expanded for each type in which elements are computed, one function per row and
 * type. No function branches on the type or the operation inside its loop, so the compiler vectorises nearly all of
 * them. */
#include "interp/element_loop.h"

/* --- integers ------------------------------------------------------------------------------------------------ */

#define INT_LOOP1(op, bits, comp, e)                                                                          \
	LOOP(op##_##bits, MEM_##bits, INT_TYPES(comp); const MEM_##bits *p = x, LOAD_INT(a, p, bits), CUT_##bits(e))
#define INT_LOOP2(op, Tr, bits, comp, e)                                                                      \
	LOOP(op##_##bits, Tr, INT_TYPES(comp); enum { BITS = bits }; const MEM_##bits *p = x; const MEM_##bits *q = y, \
	     LOAD_INT(a, p, bits); LOAD_INT(b, q, bits), e)

#define INT1(op, e, defined)     \
	INT_LOOP1(op, 1, 32, e)  \
	INT_LOOP1(op, 8, 32, e)  \
	INT_LOOP1(op, 16, 32, e) \
	INT_LOOP1(op, 32, 32, e) \
	INT_LOOP1(op, 64, 64, e)
#define INT2(op, e, defined)                 \
	INT_LOOP2(op, mem8, 1, 32, CUT_1(e)) \
	INT_LOOP2(op, mem8, 8, 32, e)        \
	INT_LOOP2(op, mem16, 16, 32, e)      \
	INT_LOOP2(op, mem32, 32, 32, e)      \
	INT_LOOP2(op, mem64, 64, 64, e)
#define CMPI(predicate, e)                           \
	INT_LOOP2(CMPI_##predicate, mem8, 1, 32, e)  \
	INT_LOOP2(CMPI_##predicate, mem8, 8, 32, e)  \
	INT_LOOP2(CMPI_##predicate, mem8, 16, 32, e) \
	INT_LOOP2(CMPI_##predicate, mem8, 32, 32, e) \
	INT_LOOP2(CMPI_##predicate, mem8, 64, 64, e)
#include "ir/elementwise.def"

#define INT_ROW(op) {op##_1, op##_8, op##_16, op##_32, op##_64}

elem_loop *find_int_loop(enum opcode code, enum dtype d, i64 attr)
{
	static elem_loop *const loops[IR_OPCODES][5] = {
#define INT1(op, e, defined) [IR_##op] = INT_ROW(op),
#define INT2(op, e, defined) [IR_##op] = INT_ROW(op),
#include "ir/elementwise.def"
	};
	static elem_loop *const compare[][5] = {
#define CMPI(predicate, e) [CMPI_##predicate] = INT_ROW(CMPI_##predicate),
#include "ir/elementwise.def"
	};
	return code == IR_CMPI ? compare[attr][d - DT_I1] : loops[code][d - DT_I1];
}

/* --- floats -------------------------------------------------------------------------------------------------- */

#define FLOAT_LOOP1(name, e) LOOP(NAME(name), MEM, const MEM *p = x, LOAD_FLOAT(a, p), e)
#define FLOAT_LOOP2(name, Tr, e) \
	LOOP(NAME(name), Tr, const MEM *p = x; const MEM *q = y, LOAD_FLOAT(a, p); LOAD_FLOAT(b, q), e)
#define FLOAT_LOOP3(name, e)                                                        \
	LOOP(NAME(name), MEM, const MEM *p = x; const MEM *q = y; const MEM *s = z, \
	     LOAD_FLOAT(a, p); LOAD_FLOAT(b, q); LOAD_FLOAT(c, s), e)

#define T float
#define MEM memf32
#define NAME(name) name##_f32
#define M(f) f##_f32
#define FLOAT1(op, e) FLOAT_LOOP1(op, e)
#define FLOAT2(op, e) FLOAT_LOOP2(op, MEM, e)
#define FLOAT3(op, e) FLOAT_LOOP3(op, e)
#define CLAMP(propagate, e) FLOAT_LOOP3(CLAMP_##propagate, e)
#define CMPF(predicate, e) FLOAT_LOOP2(CMPF_##predicate, mem8, e)
#include "ir/elementwise.def"
#undef T
#undef MEM
#undef NAME
#undef M

#define T double
#define MEM memf64
#define NAME(name) name##_f64
#define M(f) f##_f64
#define FLOAT1(op, e) FLOAT_LOOP1(op, e)
#define FLOAT2(op, e) FLOAT_LOOP2(op, MEM, e)
#define FLOAT3(op, e) FLOAT_LOOP3(op, e)
#define CLAMP(propagate, e) FLOAT_LOOP3(CLAMP_##propagate, e)
#define CMPF(predicate, e) FLOAT_LOOP2(CMPF_##predicate, mem8, e)
#include "ir/elementwise.def"

elem_loop *find_float_loop(enum opcode code, enum dtype d, i64 attr)
{
	static elem_loop *const loops[IR_OPCODES][2] = {
#define FLOAT1(op, e) [IR_##op] = {op##_f32, op##_f64},
#define FLOAT2(op, e) [IR_##op] = {op##_f32, op##_f64},
#define FLOAT3(op, e) [IR_##op] = {op##_f32, op##_f64},
#include "ir/elementwise.def"
	};
	static elem_loop *const clamp[][2] = {
#define CLAMP(propagate, e) [propagate] = {CLAMP_##propagate##_f32, CLAMP_##propagate##_f64},
#include "ir/elementwise.def"
	};
	static elem_loop *const compare[][2] = {
#define CMPF(predicate, e) [CMPF_##predicate] = {CMPF_##predicate##_f32, CMPF_##predicate##_f64},
#include "ir/elementwise.def"
	};
	bool wide = d == DT_F64;
	return code == IR_CMPF ? compare[attr][wide] : code == IR_CLAMPF ? clamp[attr != 0][wide] : loops[code][wide];
}

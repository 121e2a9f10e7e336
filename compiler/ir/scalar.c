/* Evaluation of one elementwise operation on the bits of its operands, for constant folding: elementwise.def expanded
 * for widths known at run time. Integers are computed in 64 bits and truncated. Small floats are computed in float and
 * rounded once. */
#include "ir/scalar.h"

#include "ir/scalar_math.h"

typedef u64 U;
typedef i64 S;
typedef unsigned __int128 WIDE;
#define SMIN ((S)(~(U)0 << (BITS - 1)))

static u64 cut(u64 x, u32 bits)
{
	return bits == 64 ? x : x & ((1ull << bits) - 1);
}

static i64 sign_extend(u64 x, u32 bits)
{
	return (i64)(x << (64 - bits)) >> (64 - bits);
}

/* --- formats ------------------------------------------------------------------------------------------------- */

static float decode_float(enum dtype d, u64 bits)
{
	switch (d) {
	case DT_F16: return fp_from_f16((u16)bits);
	case DT_BF16: return fp_from_bf16((u16)bits);
	case DT_E4M3: return fp_from_e4m3((u8)bits);
	case DT_E5M2: return fp_from_e5m2((u8)bits);
	default: return fp_f32_bits((u32)bits);
	}
}

static enum fp_format format_of(enum dtype small)
{
	return small == DT_F16 ? FP_F16 : small == DT_BF16 ? FP_BF16 : small == DT_E4M3 ? FP_E4M3 : FP_E5M2;
}

static double decode_double(enum dtype d, u64 bits)
{
	return d == DT_F64 ? fp_f64_bits(bits) : (double)decode_float(d, bits);
}

/* --- integers ------------------------------------------------------------------------------------------------ */

static bool eval_int(enum opcode code, u32 BITS, u64 a, u64 b, u64 *r)
{
	S sa = sign_extend(a, BITS), sb = sign_extend(b, BITS);
	switch (code) {
#define INT1(op, expression, defined) INT2(op, expression, defined)
#define INT2(op, expression, defined) \
	case IR_##op:                 \
		if (!(defined))       \
			return false; \
		*r = expression;      \
		return true;
#include "ir/elementwise.def"
	default: return false;
	}
}

static bool eval_cmpi(i64 predicate, u32 BITS, u64 a, u64 b)
{
	S sa = sign_extend(a, BITS), sb = sign_extend(b, BITS);
	switch ((enum cmpi_predicate)predicate) {
#define CMPI(predicate, expression) case CMPI_##predicate: return expression;
#include "ir/elementwise.def"
	}
	tl_unreachable("predicate of cmpi");
}

/* --- floats -------------------------------------------------------------------------------------------------- */

/* The row of o in the table of float functions. CLAMPF has one row per value of its attribute. */
static int float_row(const struct op *o)
{
	return o->code == IR_CLAMPF ? IR_OPCODES + (o->attr[ATTR_NAN] != 0) : (int)o->code;
}

static bool eval_f32(int row, float a, float b, float c, float *r)
{
	switch (row) {
#define M(f) f##_f32
#define ROW(row, expression) \
	case row: *r = expression; return true;
#define FLOAT1(op, expression) ROW(IR_##op, expression)
#define FLOAT2(op, expression) ROW(IR_##op, expression)
#define FLOAT3(op, expression) ROW(IR_##op, expression)
#define CLAMP(propagate, expression) ROW(IR_OPCODES + propagate, expression)
#include "ir/elementwise.def"
#undef M
	default: return false;
	}
}

static bool eval_f64(int row, double a, double b, double c, double *r)
{
	switch (row) {
#define M(f) f##_f64
#define FLOAT1(op, expression) ROW(IR_##op, expression)
#define FLOAT2(op, expression) ROW(IR_##op, expression)
#define FLOAT3(op, expression) ROW(IR_##op, expression)
#define CLAMP(propagate, expression) ROW(IR_OPCODES + propagate, expression)
#include "ir/elementwise.def"
#undef M
	default: return false;
	}
}

static bool eval_float(const struct op *o, enum dtype d, const u64 *in, u32 n, u64 *out)
{
	u64 bits[3] = {in[0], n > 1 ? in[1] : 0, n > 2 ? in[2] : 0};
	if (d == DT_F64) {
		double r;
		if (!eval_f64(float_row(o), fp_f64_bits(bits[0]), fp_f64_bits(bits[1]), fp_f64_bits(bits[2]), &r))
			return false;
		*out = fp_bits_f64(r);
		return true;
	}
	float r;
	if (!eval_f32(float_row(o), decode_float(d, bits[0]), decode_float(d, bits[1]), decode_float(d, bits[2]), &r))
		return false;
	*out = dtype_encode_float(d, r);
	return true;
}

/* Compares as double, which represents every format exactly. */
static bool eval_cmpf(i64 predicate, double a, double b)
{
	switch ((enum cmpf_predicate)predicate) {
#define CMPF(predicate, expression) case CMPF_##predicate: return expression;
#include "ir/elementwise.def"
	}
	tl_unreachable("predicate of cmpf");
}

/* --- conversions --------------------------------------------------------------------------------------------- */

static u64 int_to_int(enum opcode code, u32 bits, u64 a)
{
	S sa = sign_extend(a, bits);
	switch (code) {
#define INT_INT(op, expression) case IR_##op: return expression;
#include "ir/elementwise.def"
	default: tl_unreachable("not an integer conversion");
	}
}

static u64 int_to_float(enum opcode code, u32 bits, enum dtype to, u64 a)
{
	S sa = sign_extend(a, bits);
	switch (to) {
	case DT_F64:
#define M(f) f##_f64
#define INT_FLOAT(op, expression)  \
	if (code == IR_##op)       \
		return fp_bits_f64(expression);
#include "ir/elementwise.def"
#undef M
		break;
	case DT_F32:
#define M(f) f##_f32
#define INT_FLOAT(op, expression)  \
	if (code == IR_##op)       \
		return fp_bits_f32(expression);
#include "ir/elementwise.def"
#undef M
		break;
	default:
#define M(f) f##_odd
#define INT_FLOAT(op, expression)                                                                                      \
	if (code == IR_##op)                                                                                           \
		return dtype_encode_float(to, expression);
#include "ir/elementwise.def"
#undef M
		break;
	}
	tl_unreachable("not a conversion from integers");
}

static u64 float_to_int(enum opcode code, u32 BITS, double a)
{
	switch (code) {
#define M(f) f##_f64
#define FLOAT_INT(op, expression) case IR_##op: return expression;
#include "ir/elementwise.def"
#undef M
	default: tl_unreachable("not a conversion to integers");
	}
}

static u64 float_to_float(enum dtype from, enum dtype to, bool toward_zero, u64 bits)
{
	if (toward_zero && to != DT_F64)
		return to == DT_F32 ? fp_bits_f32(fp_round_toward_zero(decode_double(from, bits)))
				    : fp_encode(format_of(to), decode_double(from, bits), true);
	if (from != DT_F64)
		return to == DT_F64 ? fp_bits_f64(decode_float(from, bits))
				    : dtype_encode_float(to, decode_float(from, bits));
	return dtype_encode_float(to, fp_f64_bits(bits));
}

/* --- evaluation ---------------------------------------------------------------------------------------------- */

static bool eval_conversion(const struct op *o, enum dtype from, enum dtype to, u64 x, u64 *out)
{
	switch (o->code) {
	case IR_EXTSI:
	case IR_EXTUI:
	case IR_TRUNCI: *out = int_to_int(o->code, (u32)dtype_bits(from), x); return true;
	case IR_SITOFP:
	case IR_UITOFP: *out = int_to_float(o->code, (u32)dtype_bits(from), to, x); return true;
	case IR_FPTOSI:
	case IR_FPTOUI: *out = float_to_int(o->code, (u32)dtype_bits(to), decode_double(from, x)); return true;
	case IR_EXTF:
	case IR_TRUNCF: *out = float_to_float(from, to, false, x); return true;
	case IR_FP_TO_FP: *out = float_to_float(from, to, o->attr[ATTR_ROUNDING] == ROUND_RTZ, x); return true;
	case IR_BITCAST:
	case IR_PTR_TO_INT:
	case IR_INT_TO_PTR: *out = x; return true;
	default: return false;
	}
}

bool scalar_eval(const struct op *o, const u64 *in, u64 *out)
{
	if (!op_has(o, ELEM))
		return false;
	const struct type *t = operand(o, 0)->type;
	enum dtype from = type_dtype(t), to = type_dtype(result(o)->type);
	u32 bits = (u32)dtype_bits(from);
	u64 a = cut(in[0], bits), b = o->noperands > 1 ? cut(in[1], bits) : 0;
	bool ok = true;
	if (o->code == IR_SELECT)
		*out = in[0] & 1 ? in[1] : in[2];
	else if (o->code == IR_ADDPTR)
		*out = a + pointee_bytes(t) * (u64)sign_extend(in[1], (u32)type_elem_bits(operand(o, 1)->type));
	else if (o->code == IR_CMPI)
		*out = eval_cmpi(o->attr[ATTR_PREDICATE], bits, a, b);
	else if (o->code == IR_CMPF)
		*out = eval_cmpf(o->attr[ATTR_PREDICATE], decode_double(from, a), decode_double(from, b));
	else if (op_info[o->code].rule == R_INT)
		ok = eval_int(o->code, bits, a, b, out);
	else if (op_info[o->code].rule == R_FLOAT)
		ok = eval_float(o, from, in, o->noperands, out);
	else
		ok = eval_conversion(o, from, to, a, out);
	if (ok)
		*out = cut(*out, (u32)dtype_bits(to));
	return ok;
}

enum opcode accurate_operation(enum opcode code)
{
	switch (code) {
	case IR_LOG2_APPROX: return IR_LOG2;
	case IR_SIN_APPROX: return IR_SIN;
	case IR_COS_APPROX: return IR_COS;
	case IR_TANH_APPROX: return IR_TANH;
	default: return code;
	}
}

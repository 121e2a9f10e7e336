/* scalar_eval: every row of elementwise.def against a reference computed another way. 8-bit types exhaustively, others
 * on edge values and random bits. References: 128-bit integers; long double, rounded by searching the format's
 * values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ir/scalar.h"
#include "tests/unit/numbers.h"
#include "tests/unit/random_bits.h"

typedef unsigned __int128 u128;

static const enum dtype ints[] = {DT_I1, DT_I8, DT_I16, DT_I32, DT_I64};
static const enum dtype floats[] = {DT_E4M3, DT_E5M2, DT_F16, DT_BF16, DT_F32, DT_F64};

/* --- making operations --------------------------------------------------------------------------------------- */

struct maker {
	struct arena arena;
	struct interner names;
	struct diags diags;
	struct ir_context ctx;
	struct kernel *kernel;
};

static struct maker *maker_new(void)
{
	struct maker *m = calloc(1, sizeof *m);
	m->names.arena = &m->arena;
	diags_init(&m->diags, &m->arena);
	ir_context_init(&m->ctx, &m->arena, &m->names, &m->diags);
	m->kernel = kernel_new(&m->ctx, "k");
	return m;
}

static void maker_free(struct maker *m)
{
	arena_free(&m->arena);
	free(m);
}

/* An operation with operands of type `from` (the first one of type `first`), giving `to`. */
static struct op *make_typed(struct maker *m, enum opcode code, i64 attr, const struct type *first,
			     const struct type *from, const struct type *to)
{
	struct builder b = builder_at_end(&m->ctx, m->kernel->body);
	struct value *in[3];
	u32 n = (u32)op_info[code].min_operands;
	for (u32 k = 0; k < n; k++)
		in[k] = block_add_arg(&m->ctx, m->kernel->body, k ? from : first);
	struct op *o = build(&b, code, in, n, &to, 1, 0);
	o->attr[0] = attr;
	return o;
}

static struct op *make(struct maker *m, enum opcode code, i64 attr, enum dtype from, enum dtype to)
{
	const struct type *t = type_scalar(&m->ctx, from);
	return make_typed(m, code, attr, t, t, type_scalar(&m->ctx, to));
}

static const char *name_of(const struct op *o)
{
	return op_info[o->code].name;
}

#define FAIL(o, d, in, got, want)                                                                                      \
	fail_msg("%s (attribute %lld) on %s of 0x%llx, 0x%llx, 0x%llx: got 0x%llx, want 0x%llx", name_of(o),           \
		 (long long)(o)->attr[0], dtype_name(d), (unsigned long long)(in)[0], (unsigned long long)(in)[1],     \
		 (unsigned long long)(in)[2], (unsigned long long)(got), (unsigned long long)(want))

/* --- values to try ------------------------------------------------------------------------------------------- */

enum {
	FLOATS = 2 * EDGE_NUMBERS + 24, /* that pairs are made of: the last ones are random */
	TRIES = FLOATS * FLOATS,
};

static u64 edge_int(int bits, u32 k)
{
	const u64 top = 1ull << (bits - 1), all = (top - 1) | top;
	const u64 edges[] = {0, 1, 2, 3, all, all - 1, top, top - 1, top + 1, (u64)bits, (u64)bits - 1, 7, 10, all / 3};
	return k < ARRAY_LEN(edges) ? edges[k] & all : random_bits() & all;
}

static u64 edge_float(enum dtype d, u32 k)
{
	if (k < 2 * EDGE_NUMBERS)
		return dtype_encode_float(d, edge_number(k));
	u64 bits = random_bits();
	if (k % 3 && d >= DT_F32) /* mostly of moderate size */
		return dtype_encode_float(d, (double)(i64)bits * 0x1p-63 * ldexp(1, (int)(k % 40) - 20));
	return d == DT_F64 ? bits : bits & ((1ull << dtype_bits(d)) - 1);
}

/* --- reference formats --------------------------------------------------------------------------------------- */

struct format {
	int width, mant, bias;
	u32 largest;  /* finite, without sign */
	bool infinite; /* has infinities, and overflows to them */
};

static struct format format_of(enum dtype d)
{
	switch (d) {
	case DT_E4M3: return (struct format){8, 3, 7, 0x7E, false};
	case DT_E5M2: return (struct format){8, 2, 15, 0x7B, false};
	case DT_F16: return (struct format){16, 10, 15, 0x7BFF, true};
	case DT_BF16: return (struct format){16, 7, 127, 0x7F7F, true};
	default: return (struct format){32, 23, 127, 0x7F7FFFFF, true};
	}
}

static long double value_of(struct format f, u32 magnitude)
{
	u32 frac = magnitude & ((1u << f.mant) - 1), exp = magnitude >> f.mant;
	return exp ? ldexpl((long double)(frac | 1u << f.mant), (int)exp - f.bias - f.mant)
		   : ldexpl(frac, 1 - f.bias - f.mant);
}

static long double decode(enum dtype d, u64 bits)
{
	if (d == DT_F64)
		return fp_f64_bits(bits);
	struct format f = format_of(d);
	u32 magnitude = (u32)bits & ((1u << (f.width - 1)) - 1);
	bool negative = bits >> (f.width - 1) & 1;
	long double x = magnitude <= f.largest ? value_of(f, magnitude) : NAN;
	if (magnitude == f.largest + 1 && d != DT_E4M3)
		x = INFINITY;
	return negative ? -x : x;
}

/* The nearest number of the format, ties to even; or the next one toward zero. */
static u64 encode(enum dtype d, long double x, bool toward_zero)
{
	if (d == DT_F64) {
		double y = (double)x;
		return fp_bits_f64(toward_zero && fabsl(y) > fabsl(x) ? nextafter(y, 0) : y);
	}
	struct format f = format_of(d);
	u64 sign = (u64)(signbit(x) != 0) << (f.width - 1);
	long double size = fabsl(x);
	u32 lo = 0, hi = f.largest + 1; /* value(lo) <= size < value(hi) */
	if (isnan(x))
		return d == DT_F32 ? 0x7FC00000 : f.width == 8 ? 0x7F : 0x7FFF;
	if (isinf(x))
		return sign | (f.infinite ? f.largest + 1 : f.largest);
	while (hi - lo > 1) {
		u32 mid = lo + (hi - lo) / 2;
		*(value_of(f, mid) <= size ? &lo : &hi) = mid;
	}
	long double half = (value_of(f, lo) + value_of(f, hi)) / 2; /* past the largest: as if the exponents went on */
	if (!toward_zero && (size > half || (size == half && (lo & 1))))
		lo++;
	return sign | (lo > f.largest && !f.infinite ? f.largest : lo);
}

static bool is_nan_bits(enum dtype d, u64 bits)
{
	return isnan(decode(d, bits));
}

static bool same_float(enum dtype d, u64 a, u64 b)
{
	return a == b || (is_nan_bits(d, a) && is_nan_bits(d, b));
}

/* --- integers ------------------------------------------------------------------------------------------------ */

static i128 floor_shift(i128 x, u64 by)
{
	i128 d = (i128)1 << by;
	return x >= 0 ? x / d : -((-x + d - 1) / d);
}

/* False when undefined. */
static bool int_reference(enum opcode code, int bits, u64 a, u64 b, i128 *r)
{
	i128 one = 1, ua = a, ub = b;
	i128 sa = a >> (bits - 1) ? ua - (one << bits) : ua, sb = b >> (bits - 1) ? ub - (one << bits) : ub;
	bool overflow = sa == -(one << (bits - 1)) && sb == -1;
	switch (code) {
	case IR_ADDI: *r = ua + ub; return true;
	case IR_SUBI: *r = ua - ub; return true;
	case IR_MULI: *r = (i128)((u128)ua * (u128)ub); return true;
	case IR_DIVSI: *r = sb ? sa / sb : 0; return sb && !overflow;
	case IR_REMSI: *r = sb ? sa % sb : 0; return sb && !overflow;
	case IR_DIVUI: *r = ub ? ua / ub : 0; return ub != 0;
	case IR_REMUI: *r = ub ? ua % ub : 0; return ub != 0;
	case IR_ANDI: *r = (i128)(a & b); return true;
	case IR_ORI: *r = ua + ub - (i128)(a & b); return true;
	case IR_XORI: *r = ua + ub - 2 * (i128)(a & b); return true;
	case IR_SHLI: *r = b < (u64)bits ? (i128)((u128)a << b) : 0; return b < (u64)bits;
	case IR_SHRUI: *r = b < (u64)bits ? floor_shift(ua, b) : 0; return b < (u64)bits;
	case IR_SHRSI: *r = b < (u64)bits ? floor_shift(sa, b) : 0; return b < (u64)bits;
	case IR_MAXSI: *r = MAX(sa, sb); return true;
	case IR_MINSI: *r = MIN(sa, sb); return true;
	case IR_MAXUI: *r = MAX(ua, ub); return true;
	case IR_MINUI: *r = MIN(ua, ub); return true;
	case IR_MULHIUI: *r = (i128)((u128)ua * (u128)ub >> bits); return true;
	case IR_UNLIKELY: *r = (i128)a; return true;
	case IR_ABSI: *r = sa < 0 ? -sa : sa; return true;
	default: fail_msg("no reference for %s", op_info[code].name); return false;
	}
}

static void check_int(const struct op *o, enum dtype d, u64 a, u64 b)
{
	int bits = dtype_bits(d);
	u64 in[3] = {a, b, 0}, got = 0xDEAD;
	i128 want;
	bool defined = int_reference(o->code, bits, a, b, &want), ok = scalar_eval(o, in, &got);
	if (ok != defined || (ok && got != dtype_encode_int(d, (i64)want)))
		FAIL(o, d, in, got, (u64)want);
}

static void test_int(void **state)
{
	(void)state;
	struct maker *m = maker_new();
	for (int code = 0; code < IR_OPCODES; code++) {
		if (op_info[code].rule != R_INT || !(op_info[code].traits & ELEM))
			continue;
		for (u32 t = 0; t < ARRAY_LEN(ints); t++) {
			enum dtype d = ints[t];
			struct op *o = make(m, (enum opcode)code, 0, d, d);
			int bits = dtype_bits(d);
			for (u64 k = 0; bits <= 8 && k < 1ull << 2 * bits; k++)
				check_int(o, d, k >> bits, k & ((1ull << bits) - 1));
			for (u32 k = 0; bits > 8 && k < 400; k++)
				for (u32 j = 0; j < 40; j++)
					check_int(o, d, edge_int(bits, k / 20), edge_int(bits, j));
		}
	}
	maker_free(m);
}

static bool cmpi_reference(i64 p, i128 sa, i128 sb, u64 a, u64 b)
{
	switch (p) {
	case CMPI_EQ: return sa == sb;
	case CMPI_NE: return sa != sb;
	case CMPI_SLT: return sa - sb < 0;
	case CMPI_SLE: return sa - sb <= 0;
	case CMPI_SGT: return sa - sb > 0;
	case CMPI_SGE: return sa - sb >= 0;
	case CMPI_ULT: return a < b;
	case CMPI_ULE: return a <= b;
	case CMPI_UGT: return a > b;
	default: return a >= b;
	}
}

static void test_cmpi(void **state)
{
	(void)state;
	struct maker *m = maker_new();
	for (i64 p = CMPI_EQ; p <= CMPI_UGE; p++)
		for (u32 t = 0; t < ARRAY_LEN(ints); t++) {
			enum dtype d = ints[t];
			struct op *o = make(m, IR_CMPI, p, d, DT_I1);
			int bits = dtype_bits(d);
			for (u64 k = 0; k < (bits <= 8 ? 1ull << 2 * bits : (u64)TRIES); k++) {
				u64 a = bits <= 8 ? k >> bits : edge_int(bits, (u32)k / 20);
				u64 b = bits <= 8 ? k & ((1ull << bits) - 1) : edge_int(bits, (u32)k % 20);
				i128 one = 1, sa = a >> (bits - 1) ? (i128)a - (one << bits) : (i128)a;
				i128 sb = b >> (bits - 1) ? (i128)b - (one << bits) : (i128)b;
				u64 in[3] = {a, b, 0}, got = 0xDEAD;
				bool want = cmpi_reference(p, sa, sb, a, b);
				if (!scalar_eval(o, in, &got) || got != want)
					FAIL(o, d, in, got, (u64)want);
			}
		}
	maker_free(m);
}

/* --- floats -------------------------------------------------------------------------------------------------- */

static long double reference_max(long double a, long double b, bool minimum, bool propagate)
{
	if (isnan(a) || isnan(b))
		return propagate ? NAN : isnan(a) ? b : a;
	if (a == 0 && b == 0)
		return (minimum ? signbit(a) || signbit(b) : signbit(a) && signbit(b)) ? -0.0L : 0.0L;
	return (a < b) == minimum ? a : b;
}

/* What is computed exactly, or to more than twice the precision: to be rounded once. */
static bool float_reference(const struct op *o, const long double *x, long double *r)
{
	long double a = x[0], b = x[1], c = x[2];
	bool nan = o->attr[ATTR_NAN];
	switch (o->code) {
	case IR_ADDF: *r = a + b; return true;
	case IR_SUBF: *r = a - b; return true;
	case IR_MULF: *r = a * b; return true;
	case IR_DIVF:
	case IR_PRECISE_DIVF: *r = a / b; return true;
	case IR_REMF: *r = fmodl(a, b); return true;
	case IR_NEGF: *r = -a; return true;
	case IR_ABSF: *r = fabsl(a); return true;
	case IR_MAXNUMF: *r = reference_max(a, b, false, false); return true;
	case IR_MINNUMF: *r = reference_max(a, b, true, false); return true;
	case IR_MAXIMUMF: *r = reference_max(a, b, false, true); return true;
	case IR_MINIMUMF: *r = reference_max(a, b, true, true); return true;
	case IR_CLAMPF: *r = reference_max(reference_max(a, b, false, nan), c, true, nan); return true;
	case IR_SQRT:
	case IR_PRECISE_SQRT: *r = sqrtl(a); return true;
	case IR_FLOOR: *r = floorl(a); return true;
	case IR_CEIL: *r = ceill(a); return true;
	case IR_RINT: *r = rintl(a); return true;
	case IR_TRUNC: *r = truncl(a); return true;
	default: return false;
	}
}

/* The rest: allowed to be off by `ulp` values of the format. */
static long double function_reference(enum opcode code, const long double *x, double *ulp)
{
	*ulp = 1;
	switch (accurate_operation(code)) {
	case IR_EXP: return expl(x[0]);
	case IR_EXP2: return exp2l(x[0]);
	case IR_LOG: return logl(x[0]);
	case IR_LOG2: return log2l(x[0]);
	case IR_SIN: return sinl(x[0]);
	case IR_COS: return cosl(x[0]);
	case IR_TAN: return tanl(x[0]);
	case IR_ERF: return erfl(x[0]);
	case IR_TANH: *ulp = 2; return tanhl(x[0]);
	case IR_RSQRT: *ulp = 2; return 1 / sqrtl(x[0]);
	case IR_FMA: return fmal(x[0], x[1], x[2]);
	default: fail_msg("no reference for %s", op_info[code].name); return 0;
	}
}

/* Bits as an integer that counts the format's values in order. */
static i64 ordinal(enum dtype d, u64 bits)
{
	int width = dtype_bits(d);
	i64 magnitude = (i64)(bits & ((1ull << (width - 1)) - 1));
	return bits >> (width - 1) & 1 ? -magnitude : magnitude;
}

static void check_float(const struct op *o, enum dtype d, const u64 *in)
{
	long double x[3] = {decode(d, in[0]), decode(d, in[1]), decode(d, in[2])}, r;
	u64 got = 0xDEAD;
	assert_true(scalar_eval(o, in, &got));
	if (float_reference(o, x, &r)) {
		if (!same_float(d, got, encode(d, r, false)))
			FAIL(o, d, in, got, encode(d, r, false));
		return;
	}
	double ulp;
	u64 want = encode(d, function_reference(o->code, x, &ulp), false);
	i128 off = (i128)ordinal(d, got) - ordinal(d, want);
	if (is_nan_bits(d, got) || is_nan_bits(d, want) ? !same_float(d, got, want) : fabs((double)off) > ulp)
		FAIL(o, d, in, got, want);
}

static void check_edges(const struct op *o, enum dtype d, u32 k)
{
	check_float(o, d, (u64[]){edge_float(d, k / FLOATS), edge_float(d, k % FLOATS), edge_float(d, k / 7 % FLOATS)});
}

static void test_float(void **state)
{
	(void)state;
	struct maker *m = maker_new();
	for (int code = 0; code < IR_OPCODES; code++) {
		if (op_info[code].rule != R_FLOAT)
			continue;
		for (u32 t = 0; t < 2 * ARRAY_LEN(floats); t++) {
			enum dtype d = floats[t / 2];
			i64 attr = t % 2;
			u32 n = (u32)op_info[code].min_operands;
			if (attr && code != IR_CLAMPF)
				continue;
			if (d == DT_F64 && code != IR_EXP && (n > 1 || code == IR_SQRT || code == IR_PRECISE_SQRT))
				continue; /* long double is not wide enough: see test_double */
			struct op *o = make(m, (enum opcode)code, attr, d, d);
			for (u32 k = 0; dtype_is_fp8(d) && n < 3 && k < (n == 1 ? 256u : 65536u); k++)
				check_float(o, d, (u64[]){k & 255, k >> 8, 0});
			for (u32 k = 0; d == DT_F16 && n == 1 && k < 65536; k++)
				check_float(o, d, (u64[]){k, 0, 0});
			for (u32 k = 0; k < TRIES; k++)
				check_edges(o, d, k);
		}
	}
	maker_free(m);
}

/* f64: the compiler's own arithmetic on volatile operands. */
static void test_double(void **state)
{
	(void)state;
	struct maker *m = maker_new();
	static const enum opcode codes[] = {IR_ADDF, IR_SUBF, IR_MULF, IR_DIVF,         IR_PRECISE_DIVF,
					    IR_REMF, IR_FMA,  IR_SQRT, IR_PRECISE_SQRT, IR_MAXNUMF};
	for (u32 c = 0; c < ARRAY_LEN(codes); c++) {
		struct op *o = make(m, codes[c], 0, DT_F64, DT_F64);
		for (u32 k = 0; k < TRIES; k++) {
			u64 in[3] = {edge_float(DT_F64, k / FLOATS), edge_float(DT_F64, k % FLOATS),
				     edge_float(DT_F64, k % (FLOATS - 7))},
			    got;
			volatile double x = fp_f64_bits(in[0]), y = fp_f64_bits(in[1]), z = fp_f64_bits(in[2]), r;
			switch (codes[c]) {
			case IR_ADDF: r = x + y; break;
			case IR_SUBF: r = x - y; break;
			case IR_MULF: r = x * y; break;
			case IR_REMF: r = fmod(x, y); break;
			case IR_FMA: r = fma(x, y, z); break;
			case IR_SQRT:
			case IR_PRECISE_SQRT: r = sqrt(x); break;
			case IR_MAXNUMF: r = (double)reference_max(x, y, false, false); break;
			default: r = x / y; break;
			}
			assert_true(scalar_eval(o, in, &got));
			if (!same_float(DT_F64, got, fp_bits_f64(r)))
				FAIL(o, DT_F64, in, got, fp_bits_f64(r));
		}
	}
	maker_free(m);
}

/* The emulation of fma in double is exact: against the C library's. */
static void test_fma(void **state)
{
	(void)state;
	struct maker *m = maker_new();
	struct op *o = make(m, IR_FMA, 0, DT_F32, DT_F32);
	for (u32 k = 0; k < 400000; k++) {
		u64 in[3] = {edge_float(DT_F32, k), edge_float(DT_F32, k + 7), edge_float(DT_F32, k + 23)}, got;
		if (k % 4 == 1) /* near cancellation: c = -(a·b), rounded */
			in[2] = fp_bits_f32(-(fp_f32_bits((u32)in[0]) * fp_f32_bits((u32)in[1])));
		u32 want = fp_bits_f32(fmaf(fp_f32_bits((u32)in[0]), fp_f32_bits((u32)in[1]), fp_f32_bits((u32)in[2])));
		assert_true(scalar_eval(o, in, &got));
		if (!same_float(DT_F32, got, want))
			FAIL(o, DT_F32, in, got, (u64)want);
	}
	maker_free(m);
}

static bool cmpf_reference(i64 p, long double a, long double b)
{
	bool unordered = isunordered(a, b);
	switch (p) {
	case CMPF_OEQ: return !unordered && a == b;
	case CMPF_ONE: return !unordered && a != b;
	case CMPF_OLT: return !unordered && a < b;
	case CMPF_OLE: return !unordered && a <= b;
	case CMPF_OGT: return !unordered && a > b;
	case CMPF_OGE: return !unordered && a >= b;
	case CMPF_ORD: return !unordered;
	case CMPF_UEQ: return unordered || a == b;
	case CMPF_UNE: return unordered || a != b;
	case CMPF_ULT: return unordered || a < b;
	case CMPF_ULE: return unordered || a <= b;
	case CMPF_UGT: return unordered || a > b;
	case CMPF_UGE: return unordered || a >= b;
	default: return unordered;
	}
}

static void test_cmpf(void **state)
{
	(void)state;
	struct maker *m = maker_new();
	for (i64 p = CMPF_OEQ; p <= CMPF_UNO; p++)
		for (u32 t = 0; t < ARRAY_LEN(floats); t++) {
			enum dtype d = floats[t];
			struct op *o = make(m, IR_CMPF, p, d, DT_I1);
			for (u32 k = 0; k < (dtype_is_fp8(d) ? 65536u : TRIES); k++) {
				u64 in[3] = {edge_float(d, k / FLOATS), edge_float(d, k % FLOATS), 0}, got = 0xDEAD;
				if (dtype_is_fp8(d))
					in[0] = k >> 8, in[1] = k & 255;
				bool want = cmpf_reference(p, decode(d, in[0]), decode(d, in[1]));
				if (!scalar_eval(o, in, &got) || got != want)
					FAIL(o, d, in, got, (u64)want);
			}
		}
	maker_free(m);
}

/* --- conversions --------------------------------------------------------------------------------------------- */

static i128 clamp_to(long double x, int bits, bool is_signed)
{
	i128 one = 1, lo = is_signed ? -(one << (bits - 1)) : 0, hi = (is_signed ? one << (bits - 1) : one << bits) - 1;
	if (isnan(x))
		return 0;
	long double t = truncl(x);
	return t <= (long double)lo ? lo : t >= (long double)hi ? hi : (i128)t;
}

static u64 conversion_reference(const struct op *o, enum dtype from, enum dtype to, u64 x)
{
	int bits = dtype_bits(from);
	i128 one = 1, sx = dtype_is_int(from) && x >> (bits - 1) ? (i128)x - (one << bits) : (i128)x;
	switch (o->code) {
	case IR_EXTSI: return dtype_encode_int(to, (i64)sx);
	case IR_EXTUI:
	case IR_TRUNCI: return dtype_encode_int(to, (i64)x);
	case IR_SITOFP: return encode(to, (long double)(i64)sx, false);
	case IR_UITOFP: return encode(to, (long double)x, false);
	case IR_FPTOSI: return dtype_encode_int(to, (i64)clamp_to(decode(from, x), dtype_bits(to), true));
	case IR_FPTOUI: return dtype_encode_int(to, (i64)clamp_to(decode(from, x), dtype_bits(to), false));
	case IR_BITCAST: return x;
	default: return encode(to, decode(from, x), o->code == IR_FP_TO_FP && o->attr[0] == ROUND_RTZ);
	}
}

static void check_conversions(struct maker *m, enum opcode code, i64 attr, enum dtype from, enum dtype to)
{
	struct op *o = make(m, code, attr, from, to);
	int bits = dtype_bits(from);
	u32 all = bits <= 16 ? 1u << bits : TRIES;
	for (u32 k = 0; k < all; k++) {
		u64 x = bits <= 16 ? k : dtype_is_int(from) ? edge_int(bits, k) : edge_float(from, k), got = 0xDEAD;
		if (dtype_is_int(from) && bits == 64 && k % 3 == 2) /* near where narrow formats round */
			x = (random_bits() >> (k % 63)) ^ (k % 7);
		u64 want = conversion_reference(o, from, to, x);
		if (!scalar_eval(o, (u64[]){x, 0, 0}, &got) ||
		    (dtype_is_float(to) ? !same_float(to, got, want) : got != want))
			fail_msg("%s from %s to %s of 0x%llx: got 0x%llx, want 0x%llx", name_of(o), dtype_name(from),
				 dtype_name(to), (unsigned long long)x, (unsigned long long)got,
				 (unsigned long long)want);
	}
}

static void test_conversions(void **state)
{
	(void)state;
	struct maker *m = maker_new();
	for (u32 a = 0; a < ARRAY_LEN(ints); a++)
		for (u32 b = 0; b < ARRAY_LEN(ints); b++)
			if (a < b) {
				check_conversions(m, IR_EXTSI, 0, ints[a], ints[b]);
				check_conversions(m, IR_EXTUI, 0, ints[a], ints[b]);
			} else if (a > b) {
				check_conversions(m, IR_TRUNCI, 0, ints[a], ints[b]);
			}
	for (u32 a = 0; a < ARRAY_LEN(ints); a++)
		for (u32 b = 0; b < ARRAY_LEN(floats); b++) {
			check_conversions(m, IR_SITOFP, 0, ints[a], floats[b]);
			check_conversions(m, IR_UITOFP, 0, ints[a], floats[b]);
			check_conversions(m, IR_FPTOSI, 0, floats[b], ints[a]);
			check_conversions(m, IR_FPTOUI, 0, floats[b], ints[a]);
			if (dtype_bits(ints[a]) == dtype_bits(floats[b])) {
				check_conversions(m, IR_BITCAST, 0, ints[a], floats[b]);
				check_conversions(m, IR_BITCAST, 0, floats[b], ints[a]);
			}
		}
	for (u32 a = 0; a < ARRAY_LEN(floats); a++)
		for (u32 b = 0; b < ARRAY_LEN(floats); b++) {
			int m_bits = dtype_bits(floats[a]), n_bits = dtype_bits(floats[b]);
			if (a == b)
				continue;
			if (m_bits != n_bits)
				check_conversions(m, m_bits < n_bits ? IR_EXTF : IR_TRUNCF, 0, floats[a], floats[b]);
			for (i64 r = ROUND_DEFAULT; r <= ROUND_RTZ; r++)
				check_conversions(m, IR_FP_TO_FP, r, floats[a], floats[b]);
		}
	maker_free(m);
}

/* --- the rest ------------------------------------------------------------------------------------------------ */

static void test_select_and_pointers(void **state)
{
	(void)state;
	struct maker *m = maker_new();
	const struct type *i1 = type_scalar(&m->ctx, DT_I1), *f16 = type_scalar(&m->ctx, DT_F16),
			  *i8t = type_scalar(&m->ctx, DT_I8);
	const struct type *i64t = type_scalar(&m->ctx, DT_I64), *p32 = type_ptr(&m->ctx, type_scalar(&m->ctx, DT_F32));
	u64 out;
	struct op *o = make_typed(m, IR_SELECT, 0, i1, f16, f16);
	assert_true(scalar_eval(o, (u64[]){1, 0x7C01, 2}, &out)); /* a signalling NaN passes unchanged */
	assert_int_equal(out, 0x7C01);
	assert_true(scalar_eval(o, (u64[]){0, 0x7C01, 2}, &out));
	assert_int_equal(out, 2);
	o = make_typed(m, IR_ADDPTR, 0, p32, i8t, p32);
	assert_true(scalar_eval(o, (u64[]){0x1000, 0xFF, 0}, &out));
	assert_int_equal(out, 0x1000 - 4);
	o = make_typed(m, IR_ADDPTR, 0, type_ptr(&m->ctx, p32), i64t, type_ptr(&m->ctx, p32));
	assert_true(scalar_eval(o, (u64[]){0x1000, 3, 0}, &out));
	assert_int_equal(out, 0x1000 + 24);
	o = make_typed(m, IR_ADDPTR, 0, type_ptr(&m->ctx, i1), i64t, type_ptr(&m->ctx, i1));
	assert_true(scalar_eval(o, (u64[]){0x1000, 3, 0}, &out));
	assert_int_equal(out, 0x1000 + 3);
	o = make_typed(m, IR_PTR_TO_INT, 0, p32, p32, i64t);
	assert_true(scalar_eval(o, (u64[]){0xFFFFFFFFFFFF0, 0, 0}, &out));
	assert_int_equal(out, 0xFFFFFFFFFFFF0);
	o = make_typed(m, IR_INT_TO_PTR, 0, i64t, i64t, p32);
	assert_true(scalar_eval(o, (u64[]){16, 0, 0}, &out));
	assert_int_equal(out, 16);
	maker_free(m);
}

/* Bits above the width are ignored, and the result has none. */
static void test_high_bits(void **state)
{
	(void)state;
	struct maker *m = maker_new();
	u64 out;
	assert_true(scalar_eval(make(m, IR_ADDI, 0, DT_I8, DT_I8), (u64[]){~0ull, 1, 0}, &out));
	assert_int_equal(out, 0);
	assert_true(scalar_eval(make(m, IR_ADDF, 0, DT_F16, DT_F16), (u64[]){0xABCD00003C00, 0xFFFF00003C00, 0}, &out));
	assert_int_equal(out, 0x4000);
	assert_false(scalar_eval(make(m, IR_DIVUI, 0, DT_I8, DT_I8), (u64[]){1, 0xF00, 0}, &out));
	maker_free(m);
}

/* No elementwise operation is missing, and none but those is evaluated. */
static void test_complete(void **state)
{
	(void)state;
	struct maker *m = maker_new();
	struct op *o = make(m, IR_UNSPLAT, 0, DT_I32, DT_I32);
	u64 out;
	assert_false(scalar_eval(o, (u64[]){1, 2, 3}, &out));
	for (int code = 0; code < IR_OPCODES; code++) {
		if (!(op_info[code].traits & ELEM) || code == IR_ADDPTR || code == IR_SELECT)
			continue;
		enum ir_rule r = op_info[code].rule;
		bool from_float = r == R_FLOAT || r == R_CMPF || r == R_FLOAT_TO_INT || r == R_WIDEN_FLOAT ||
				  r == R_NARROW_FLOAT || r == R_FLOAT_TO_FLOAT;
		bool to_float = (from_float && r != R_CMPF && r != R_FLOAT_TO_INT) || r == R_INT_TO_FLOAT;
		o = make(m, (enum opcode)code, 0, from_float ? DT_F32 : DT_I32, to_float ? DT_F32 : DT_I32);
		if (!scalar_eval(o, (u64[]){0x3F800000, 1, 0x3F800000}, &out))
			fail_msg("%s is not evaluated", name_of(o));
	}
	maker_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_int),
		cmocka_unit_test(test_cmpi),
		cmocka_unit_test(test_float),
		cmocka_unit_test(test_double),
		cmocka_unit_test(test_fma),
		cmocka_unit_test(test_cmpf),
		cmocka_unit_test(test_conversions),
		cmocka_unit_test(test_select_and_pointers),
		cmocka_unit_test(test_high_bits),
		cmocka_unit_test(test_complete),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

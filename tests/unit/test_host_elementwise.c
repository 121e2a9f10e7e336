/* Operations as the CPU's code generator has them, run here, against ir/scalar.c: each operation on each type, in
 * scalars and vectors, with and without the processor's extensions. */
#include "tests/unit/host_rig.h"

#include "ir/scalar.h"
#include "tests/unit/numbers.h"
#include "tests/unit/random_bits.h"

static const enum dtype ints[] = {DT_I1, DT_I8, DT_I16, DT_I32, DT_I64};
static const enum dtype floats[] = {DT_E4M3, DT_E5M2, DT_F16, DT_BF16, DT_F32, DT_F64};

/* --- values ------------------------------------------------------------------------------------------------------ */

enum { N = 65536 };

static u64 edge_int(u32 bits, u32 k)
{
	const u64 top = 1ull << (bits - 1), all = (top - 1) | top;
	const u64 edges[] = {0,       1,    2,        3, all, all - 1, top,          top - 1,
			     top + 1, bits, bits - 1, 7, 10,  all / 3, (u64)(i64)-7, all >> (bits / 2)};
	return edges[k % ARRAY_LEN(edges)] & all;
}

static u64 edge_float(enum dtype d, u32 k)
{
	return dtype_encode_float(d, edge_number(k));
}

/* One beside the middle between two numbers of a format with so many bits, or the middle itself. */
static u64 beside_middle(u64 x)
{
	static const u32 digits[] = {3, 4, 8, 11, 24, 53};
	u32 size = 64 - (u32)__builtin_clzll(x | 1), kept = digits[random_bits() % ARRAY_LEN(digits)];
	if (size <= kept)
		return x;
	u64 middle = 1ull << (size - kept - 1);
	return ((x & ~(2 * middle - 1)) | middle) + random_bits() % 3 - 1;
}

/* Blocks of 64 elements are alike, since code for what is usual and what is rare looks at whole vectors: integers have
 * the same size in a block, and floats are moderate in every second one. */
static u64 random_value(enum dtype d, u32 k, u32 i)
{
	u32 bits = (u32)dtype_bits(d), block = i / 64;
	u64 x = random_bits() >> (64 - bits), how = random_bits() % 8;
	if (!dtype_is_float(d)) {
		i64 v = (i64)(x << (64 - bits)) >> (64 - bits + block * (k ? 3 : 1) % bits);
		if (!how)
			v = v < 0 ? -(i64)beside_middle(-(u64)v) : (i64)beside_middle((u64)v);
		return (u64)v & (~0ull >> (64 - bits));
	}
	if (d >= DT_F32 && (block % 2 || how > 1)) {
		int exponent = (int)(random_bits() % (block % 2 ? 16 : 80));
		return dtype_encode_float(d, (double)(i64)random_bits() * 0x1p-63 * ldexp(1, exponent - 8));
	}
	return how ? x : edge_float(d, (u32)x);
}

static bool is_exhaustive(enum dtype d, u32 noperands)
{
	u32 bits = (u32)dtype_bits(d);
	return bits * noperands <= 16;
}

/* Element i of operand k: all values there are, or pairs of them, where there are no more than N; else edges first. */
static u64 value_of(enum dtype d, u32 k, u32 noperands, u32 i)
{
	enum { EDGES = 100 };
	u32 bits = (u32)dtype_bits(d);
	if (is_exhaustive(d, noperands))
		return i >> (k * bits) & ((1u << bits) - 1);
	if (i >= EDGES * EDGES)
		return random_value(d, k, i);
	u32 edge = k == 0 ? i % EDGES : k == 1 ? i / EDGES : (u32)random_bits();
	return dtype_is_float(d) ? edge_float(d, edge) : edge_int(bits, edge);
}

static u64 get(const void *array, u32 bytes, u32 i)
{
	u64 x = 0;
	memcpy(&x, (const char *)array + (size_t)i * bytes, bytes);
	return x;
}

/* --- what is expected -------------------------------------------------------------------------------------------- */

/* What the interpreter gives where the result is not defined. */
static u64 undefined_result(const struct op *o, u64 a, u64 b)
{
	int bits = dtype_bits(type_dtype(result(o)->type));
	u64 all = bits == 64 ? ~0ull : (1ull << bits) - 1;
	bool minus = a >> (bits - 1) & 1;
	switch (o->code) {
	case IR_DIVSI: return b ? (0 - a) & all : 0;
	case IR_SHRSI: return minus ? all : 0;
	case IR_REMSI:
	case IR_DIVUI:
	case IR_REMUI:
	case IR_SHLI:
	case IR_SHRUI: return 0;
	default: tl_unreachable("defined for all operands");
	}
}

/* Functions that are not exact: those of small floats may be rounded the other way where they lie between two. */
static bool is_approximate(enum opcode code)
{
	code = accurate_operation(code);
	return code == IR_EXP || code == IR_EXP2 || code == IR_LOG || code == IR_LOG2 || code == IR_SIN ||
	       code == IR_COS || code == IR_TAN || code == IR_ERF || code == IR_TANH;
}

static i64 ordered(u64 bits, int width)
{
	u64 sign = 1ull << (width - 1);
	return bits & sign ? -(i64)(bits & (sign - 1)) : (i64)bits;
}

static bool same(const struct op *o, enum dtype d, u64 got, u64 want)
{
	if (got == want)
		return true;
	if (!dtype_is_float(d) || o->code == IR_SELECT || o->code == IR_BITCAST)
		return false;
	double x = dtype_decode_float(d, got), y = dtype_decode_float(d, want);
	if (isnan(x) || isnan(y))
		return isnan(x) && isnan(y);
	return is_approximate(o->code) && llabs(ordered(got, dtype_bits(d)) - ordered(want, dtype_bits(d))) <= 1;
}

/* --- running ----------------------------------------------------------------------------------------------------- */

struct check {
	struct op *o;
	struct rig_how how;
	u32 function;
};

struct checks {
	struct rig *rig;
	VEC(struct check) all;
};

static void add(struct checks *c, struct op *o, struct rig_how how)
{
	struct check one = {o, how, rig_add(c->rig, o, how)};
	vec_push(&c->rig->arena, &c->all, one);
}

static void run(struct rig *r, const struct check *c)
{
	static _Alignas(64) u64 in[3][N], out[N];
	const struct op *o = c->o;
	const void *arrays[] = {in[0], in[1], in[2]};
	enum dtype to = type_dtype(result(o)->type);
	u32 out_bytes = (u32)dtype_bytes(to), bytes[3], n = o->noperands;
	u32 count = is_exhaustive(type_dtype(operand(o, 0)->type), n) ? N : N / 4;
	for (u32 k = 0; k < n; k++) {
		enum dtype d = type_dtype(operand(o, k)->type);
		bytes[k] = (u32)dtype_bytes(d);
		for (u32 i = 0; i < count; i++) {
			u64 x = value_of(d, k, n, i);
			if (c->how.constant && k + 1 == n)
				x = *c->how.constant;
			if (c->how.scalar_condition && !k)
				x = i >> 6 & 1;
			memcpy((char *)in[k] + (size_t)i * bytes[k], &x, bytes[k]);
		}
	}
	if (op_info[o->code].rule == R_INT && n == 2 && !c->how.constant)
		for (u32 i = 3; i < count; i += 4) { /* near multiples of the other operand */
			u64 times = random_bits() >> 1 >> (63 - i / 64 % 32);
			u64 x = get(in[1], bytes[1], i) * times + random_bits() % 3 - 1;
			memcpy((char *)in[0] + (size_t)i * bytes[0], &x, bytes[0]);
		}
	rig_get(r, c->function)(out, arrays, count);
	for (u32 i = 0; i < count; i++) {
		u64 x[3] = {0}, want, got = get(out, out_bytes, i);
		for (u32 k = 0; k < n; k++)
			x[k] = get(in[k], bytes[k], i);
		if (!scalar_eval(o, x, &want))
			want = undefined_result(o, x[0], x[1]);
		if (!same(o, to, got, want))
			fail_msg("%s (attribute %lld) from %s to %s of 0x%llx, 0x%llx, 0x%llx, %u lanes%s%s: "
				 "got 0x%llx, want 0x%llx",
				 op_info[o->code].name, (long long)o->attr[0],
				 dtype_name(type_dtype(operand(o, n - 1)->type)), dtype_name(to),
				 (unsigned long long)x[0], (unsigned long long)x[1], (unsigned long long)x[2],
				 c->how.lanes, c->how.constant ? ", constant" : "",
				 r->target.has_fma ? ", extensions" : "", (unsigned long long)got,
				 (unsigned long long)want);
	}
}

static void run_all(void (*make)(struct checks *c, struct rig_how how))
{
	static const struct {
		bool baseline;
		u32 lanes;
	} ways[] = {{false, 0}, {false, 32}, {true, 4}};
	for (u32 w = 0; w < ARRAY_LEN(ways); w++) {
		struct checks c = {.rig = rig_new(ways[w].baseline)};
		make(&c, (struct rig_how){.lanes = ways[w].lanes});
		rig_compile(c.rig);
		for (u32 i = 0; i < c.all.len; i++)
			run(c.rig, &c.all.at[i]);
		rig_free(c.rig);
	}
}

static const struct type *scalar(struct checks *c, enum dtype d)
{
	return type_scalar(&c->rig->ctx, d);
}

static struct op *op_of(struct checks *c, enum opcode code, i64 attr, enum dtype from, enum dtype to)
{
	return rig_op(c->rig, code, attr, scalar(c, from), scalar(c, from), scalar(c, to));
}

/* --- the operations ---------------------------------------------------------------------------------------------- */

static void make_arithmetic(struct checks *c, struct rig_how how)
{
	for (u32 code = 0; code < IR_OPCODES; code++) {
		if (!(op_info[code].traits & ELEM))
			continue;
		if (op_info[code].rule == R_INT)
			for (u32 i = 0; i < ARRAY_LEN(ints); i++)
				add(c, op_of(c, code, 0, ints[i], ints[i]), how);
		if (op_info[code].rule == R_FLOAT)
			for (u32 i = 0; i < ARRAY_LEN(floats); i++)
				if (!is_approximate(code) || floats[i] < DT_F32) /* test_host_math.c */
					for (i64 attr = 0; attr < (code == IR_CLAMPF ? 2 : 1); attr++)
						add(c, op_of(c, code, attr, floats[i], floats[i]), how);
	}
	for (i64 p = CMPI_EQ; p <= CMPI_UGE; p++)
		for (u32 i = 0; i < ARRAY_LEN(ints); i++)
			add(c, op_of(c, IR_CMPI, p, ints[i], DT_I1), how);
	for (i64 p = CMPF_OEQ; p <= CMPF_UNO; p++)
		for (u32 i = 0; i < ARRAY_LEN(floats); i++)
			add(c, op_of(c, IR_CMPF, p, floats[i], DT_I1), how);
}

static void test_arithmetic(void **state)
{
	(void)state;
	run_all(make_arithmetic);
}

static void make_constants(struct checks *c, struct rig_how how)
{
	static const enum opcode int_ops[] = {IR_DIVSI, IR_DIVUI, IR_REMSI, IR_REMUI, IR_SHLI, IR_SHRSI, IR_SHRUI};
	static const enum opcode float_ops[] = {IR_MAXNUMF, IR_MINNUMF, IR_MAXIMUMF, IR_MINIMUMF};
	static const double values[] = {0.0, -0.0, 1.5, INFINITY, NAN};
	for (u32 i = 0; i < ARRAY_LEN(ints); i++)
		for (u32 k = 0; k < 16; k++) {
			u64 *bits = arena_new(&c->rig->arena, u64);
			*bits = edge_int((u32)dtype_bits(ints[i]), k);
			how.constant = bits;
			for (u32 j = 0; j < ARRAY_LEN(int_ops); j++)
				add(c, op_of(c, int_ops[j], 0, ints[i], ints[i]), how);
		}
	for (enum dtype d = DT_F16; d <= DT_F64; d++)
		for (u32 k = 0; k < ARRAY_LEN(values); k++) {
			u64 *bits = arena_new(&c->rig->arena, u64);
			*bits = dtype_encode_float(d, values[k]);
			how.constant = bits;
			for (u32 j = 0; j < ARRAY_LEN(float_ops); j++)
				add(c, op_of(c, float_ops[j], 0, d, d), how);
		}
}

static void test_constants(void **state)
{
	(void)state;
	run_all(make_constants);
}

static void make_conversions(struct checks *c, struct rig_how how)
{
	for (u32 i = 0; i < ARRAY_LEN(ints); i++) {
		for (u32 j = i + 1; j < ARRAY_LEN(ints); j++) {
			add(c, op_of(c, IR_EXTSI, 0, ints[i], ints[j]), how);
			add(c, op_of(c, IR_EXTUI, 0, ints[i], ints[j]), how);
			add(c, op_of(c, IR_TRUNCI, 0, ints[j], ints[i]), how);
		}
		for (u32 j = 0; j < ARRAY_LEN(floats); j++) {
			add(c, op_of(c, IR_SITOFP, 0, ints[i], floats[j]), how);
			add(c, op_of(c, IR_UITOFP, 0, ints[i], floats[j]), how);
			add(c, op_of(c, IR_FPTOSI, 0, floats[j], ints[i]), how);
			add(c, op_of(c, IR_FPTOUI, 0, floats[j], ints[i]), how);
			if (dtype_bits(ints[i]) == dtype_bits(floats[j])) {
				add(c, op_of(c, IR_BITCAST, 0, ints[i], floats[j]), how);
				add(c, op_of(c, IR_BITCAST, 0, floats[j], ints[i]), how);
			}
		}
	}
	for (u32 i = 0; i < ARRAY_LEN(floats); i++)
		for (u32 j = 0; j < ARRAY_LEN(floats); j++) {
			enum opcode code = dtype_bits(floats[i]) < dtype_bits(floats[j]) ? IR_EXTF : IR_TRUNCF;
			if (dtype_bits(floats[i]) != dtype_bits(floats[j]))
				add(c, op_of(c, code, 0, floats[i], floats[j]), how);
			for (i64 rounding = ROUND_DEFAULT; rounding <= ROUND_RTZ; rounding++)
				add(c, op_of(c, IR_FP_TO_FP, rounding, floats[i], floats[j]), how);
		}
}

static void test_conversions(void **state)
{
	(void)state;
	run_all(make_conversions);
}

static void make_moves(struct checks *c, struct rig_how how)
{
	static const enum dtype all[] = {DT_I1,   DT_I8,  DT_I16,  DT_I32, DT_I64, DT_E4M3,
					 DT_E5M2, DT_F16, DT_BF16, DT_F32, DT_F64};
	struct ir_context *ctx = &c->rig->ctx;
	const struct type *i1 = scalar(c, DT_I1), *i64s = scalar(c, DT_I64);
	for (u32 i = 0; i < ARRAY_LEN(all); i++) {
		const struct type *t = scalar(c, all[i]), *p = type_ptr(ctx, t);
		add(c, rig_op(c->rig, IR_SELECT, 0, i1, t, t), how);
		how.scalar_condition = true;
		add(c, rig_op(c->rig, IR_SELECT, 0, i1, t, t), how);
		how.scalar_condition = false;
		if (dtype_is_int(all[i]))
			for (u32 j = 0; j < ARRAY_LEN(all); j++) {
				const struct type *to = type_ptr(ctx, scalar(c, all[j]));
				add(c, rig_op(c->rig, IR_ADDPTR, 0, to, t, to), how);
			}
		add(c, rig_op(c->rig, IR_PTR_TO_INT, 0, p, p, i64s), how);
		add(c, rig_op(c->rig, IR_INT_TO_PTR, 0, i64s, i64s, p), how);
		add(c, rig_op(c->rig, IR_SELECT, 0, i1, p, p), how);
		add(c, rig_op(c->rig, IR_BITCAST, 0, p, p, type_ptr(ctx, i64s)), how);
		add(c, rig_op(c->rig, IR_BITCAST, 0, i64s, i64s, p), how);
		add(c, rig_op(c->rig, IR_BITCAST, 0, p, p, i64s), how);
	}
}

static void test_moves(void **state)
{
	(void)state;
	run_all(make_moves);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arithmetic),
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_conversions),
		cmocka_unit_test(test_moves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

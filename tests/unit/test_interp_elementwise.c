/* Every elementwise operation on tiles, in every type and variant: the same bits as scalar_eval gives element by
 * element (which test_scalar.c checks against references), also in place and for tiles that are no multiple of a
 * vector. */
#include "test_interp.h"

#include "ir/scalar.h"

enum { MAX_N = 4096 };

static const enum dtype ints[] = {DT_I1, DT_I8, DT_I16, DT_I32, DT_I64};
static const enum dtype floats[] = {DT_E4M3, DT_E5M2, DT_F16, DT_BF16, DT_F32, DT_F64};

/* --- a kernel around one operation --------------------------------------------------------------------------- */

struct maker {
	struct arena arena;
	struct interner names;
	struct diags diags;
	struct ir_context ctx;
};

static struct maker *maker_new(void)
{
	struct maker *m = calloc(1, sizeof *m);
	m->names.arena = &m->arena;
	diags_init(&m->diags, &m->arena);
	ir_context_init(&m->ctx, &m->arena, &m->names, &m->diags);
	return m;
}

static void maker_free(struct maker *m)
{
	arena_free(&m->arena);
	free(m);
}

/* pointer parameter + offsets, as a tile; or the pointer itself when n is 0 */
static struct value *pointers(struct builder *b, struct kernel *k, const struct type *elem, i32 n)
{
	struct value *p = block_add_arg(b->ctx, k->body, type_ptr(b->ctx, elem));
	k->params[k->nparams++].value = p;
	if (!n)
		return p;
	const struct type *t = type_tensor(b->ctx, type_scalar(b->ctx, DT_I32), 1, &n);
	struct op *range = build(b, IR_MAKE_RANGE, NULL, 0, &t, 1, 0);
	range->attr[ATTR_END] = n;
	return build2(b, IR_ADDPTR, type_tensor(b->ctx, p->type, 1, &n), build_splat(b, p, 1, &n), result(range));
}

static const struct type *shaped(struct maker *m, const struct type *elem, i32 n)
{
	return n ? type_tensor(&m->ctx, elem, 1, &n) : elem;
}

/* store(code(load, load, load)); n = 0 makes scalars. */
static struct kernel *kernel_around(struct maker *m, enum opcode code, i64 attr, const struct type *const *in,
				    const struct type *out, i32 n, struct op **the_op)
{
	struct kernel *k = kernel_new(&m->ctx, "k");
	struct builder b = builder_at_end(&m->ctx, k->body);
	struct value *v[3];
	u32 count = (u32)op_info[code].min_operands;
	k->params = arena_array(&m->arena, struct kernel_param, 4);
	for (u32 i = 0; i < count; i++)
		v[i] = build1(&b, IR_LOAD, shaped(m, in[i], n), pointers(&b, k, in[i], n));
	const struct type *t = shaped(m, out, n);
	struct op *o = build(&b, code, v, count, &t, 1, 0);
	o->attr[0] = attr;
	struct value *store[] = {pointers(&b, k, out, n), result(o)};
	build(&b, IR_STORE, store, 2, NULL, 0, 0);
	build(&b, IR_RETURN, NULL, 0, NULL, 0, 0);
	kernel_verify(k, "test", NULL);
	*the_op = o;
	return k;
}

static u64 get(const char *at, const struct type *t)
{
	u64 bits = 0;
	memcpy(&bits, at, (size_t)dtype_bytes(type_dtype(t)));
	return bits;
}

static bool same(const struct type *t, u64 a, u64 b)
{
	enum dtype d = type_dtype(t);
	if (a == b)
		return true;
	if (type_is_ptr(t) || !dtype_is_float(d))
		return false;
	double x = dtype_decode_float(d, a), y = dtype_decode_float(d, b);
	return x != x && y != y;
}

/* Random bits, with special numbers and small ones among them. */
static void random_element(char *at, const struct type *t, bool small)
{
	enum dtype d = type_dtype(t);
	u64 bits = (u64)test_random() << 32 | test_random();
	if (type_elem(t)->kind == TY_SCALAR && dtype_is_float(d)) {
		static const double special[] = {0.0, -0.0, 1, -1, 0.5, 0x1p-140, 65519, 3e38,
						 __builtin_inf(), -__builtin_inf(), __builtin_nan("")};
		if (test_random() % 4 == 0)
			bits = dtype_encode_float(d, special[test_random() % ARRAY_LEN(special)]);
		else if (test_random() % 2)
			bits = dtype_encode_float(d, random_float() * 20);
	} else if (small || test_random() % 8 == 0) {
		bits = test_random() % 3 ? test_random() % 70 : 0 - (u64)(test_random() % 3);
	}
	if (d == DT_I1)
		bits &= 1;
	memcpy(at, &bits, (size_t)dtype_bytes(d));
}

static void check(struct maker *m, enum opcode code, i64 attr, const struct type *const *in, const struct type *out,
		  i32 n)
{
	static _Alignas(64) char memory[4][MAX_N * 8];
	struct op *o;
	struct arena a = {0};
	struct interp_program *p = interp_prepare(&a, kernel_around(m, code, attr, in, out, n, &o));
	u32 count = o->noperands, elements = (u32)MAX(n, 1);
	u64 args[4], bits[3] = {0}, want;
	bool shift = code == IR_SHLI || code == IR_SHRSI || code == IR_SHRUI;
	for (u32 i = 0; i < count; i++) {
		args[i] = (u64)(uintptr_t)memory[i];
		for (u32 k = 0; k < elements; k++)
			random_element(memory[i] + k * (u32)dtype_bytes(type_dtype(in[i])), in[i], shift && i == 1);
	}
	args[count] = (u64)(uintptr_t)memory[3];
	memset(memory[3], 0xEE, sizeof memory[3]);
	struct interp_launch l = {.args = args, .grid = {1, 1, 1}, .open = true, .threads = 1};
	struct strbuf error = {.arena = &a};
	if (!interp_run(p, &l, &error))
		fail_msg("%s", error.at);
	for (u32 k = 0; k < elements; k++) {
		u32 size = (u32)dtype_bytes(type_dtype(out));
		u64 got = get(memory[3] + k * size, out);
		for (u32 i = 0; i < count; i++)
			bits[i] = get(memory[i] + k * (u32)dtype_bytes(type_dtype(in[i])), in[i]);
		if (scalar_eval(o, bits, &want) && !same(out, got, want))
			fail_msg(
				"%s (attribute %lld) of type %s, element %u of %d: 0x%llx, 0x%llx, "
				"0x%llx gives 0x%llx, not 0x%llx",
				op_info[code].name, (long long)attr, dtype_name(type_dtype(in[0])), k, n,
				(unsigned long long)bits[0], (unsigned long long)bits[1], (unsigned long long)bits[2],
				(unsigned long long)got, (unsigned long long)want);
	}
	for (u32 k = elements * (u32)dtype_bytes(type_dtype(out)); k < sizeof memory[3]; k++)
		if (memory[3][k] != (char)0xEE)
			fail_msg("%s writes past its tile of %d", op_info[code].name, n);
	arena_free(&a);
}

static void check_sizes(struct maker *m, enum opcode code, i64 attr, const struct type *first, const struct type *in,
			const struct type *out)
{
	const struct type *types[] = {first, in, in};
	static const i32 sizes[] = {0, 1, 2, 8, 512};
	for (u32 k = 0; k < ARRAY_LEN(sizes); k++)
		check(m, code, attr, types, out, sizes[k]);
}

static i64 variants(enum opcode code)
{
	switch (code) {
	case IR_CMPI: return CMPI_UGE + 1;
	case IR_CMPF: return CMPF_UNO + 1;
	case IR_CLAMPF: return 2;
	case IR_FP_TO_FP: return ROUND_RTZ + 1;
	default: return 1;
	}
}

/* Does the verifier's rule for conversions allow from → to? */
static bool convertible(enum ir_rule rule, enum dtype from, enum dtype to)
{
	int a = dtype_bits(from), b = dtype_bits(to);
	bool fi = dtype_is_int(from), ti = dtype_is_int(to);
	switch (rule) {
	case R_WIDEN_INT: return fi && ti && a < b;
	case R_NARROW_INT: return fi && ti && a > b;
	case R_INT_TO_FLOAT: return fi && !ti;
	case R_FLOAT_TO_INT: return !fi && ti;
	case R_WIDEN_FLOAT: return !fi && !ti && a < b;
	case R_NARROW_FLOAT: return !fi && !ti && a > b;
	case R_FLOAT_TO_FLOAT: return !fi && !ti && from != to;
	case R_BITCAST: return a == b && from != to;
	default: return false;
	}
}

static void test_arithmetic(void **state)
{
	(void)state;
	for (int code = 0; code < IR_OPCODES; code++) {
		enum ir_rule r = op_info[code].rule;
		struct maker *m = maker_new();
		const struct type *i1 = type_scalar(&m->ctx, DT_I1);
		for (i64 v = 0; v < variants((enum opcode)code); v++) {
			for (u32 t = 0; t < ARRAY_LEN(ints) && (r == R_INT || r == R_CMPI); t++) {
				const struct type *d = type_scalar(&m->ctx, ints[t]);
				check_sizes(m, (enum opcode)code, v, d, d, r == R_CMPI ? i1 : d);
			}
			for (u32 t = 0; t < ARRAY_LEN(floats) && (r == R_FLOAT || r == R_CMPF); t++) {
				const struct type *d = type_scalar(&m->ctx, floats[t]);
				check_sizes(m, (enum opcode)code, v, d, d, r == R_CMPF ? i1 : d);
			}
		}
		maker_free(m);
	}
}

static void test_conversions(void **state)
{
	(void)state;
	enum dtype all[ARRAY_LEN(ints) + ARRAY_LEN(floats)];
	memcpy(all, ints, sizeof ints);
	memcpy(all + ARRAY_LEN(ints), floats, sizeof floats);
	for (int code = 0; code < IR_OPCODES; code++) {
		struct maker *m = maker_new();
		for (u32 a = 0; a < ARRAY_LEN(all); a++)
			for (u32 b = 0; b < ARRAY_LEN(all); b++)
				for (i64 v = 0;
				     convertible(op_info[code].rule, all[a], all[b]) && v < variants((enum opcode)code);
				     v++) {
					const struct type *from = type_scalar(&m->ctx, all[a]);
					check_sizes(m, (enum opcode)code, v, from, from, type_scalar(&m->ctx, all[b]));
				}
		maker_free(m);
	}
}

static void test_select_and_pointers(void **state)
{
	(void)state;
	struct maker *m = maker_new();
	const struct type *i1 = type_scalar(&m->ctx, DT_I1), *i64t = type_scalar(&m->ctx, DT_I64);
	for (u32 t = 0; t < ARRAY_LEN(ints) + ARRAY_LEN(floats); t++) {
		enum dtype e = t < ARRAY_LEN(ints) ? ints[t] : floats[t - ARRAY_LEN(ints)];
		const struct type *d = type_scalar(&m->ctx, e), *p = type_ptr(&m->ctx, d);
		check_sizes(m, IR_SELECT, 0, i1, d, d);
		check_sizes(m, IR_SELECT, 0, i1, p, p);
		check_sizes(m, IR_PTR_TO_INT, 0, p, p, i64t);
		check_sizes(m, IR_INT_TO_PTR, 0, i64t, i64t, p);
		check_sizes(m, IR_BITCAST, 0, p, p, type_ptr(&m->ctx, p));
		for (u32 k = 0; k < ARRAY_LEN(ints); k++)
			check_sizes(m, IR_ADDPTR, 0, p, type_scalar(&m->ctx, ints[k]), p);
	}
	maker_free(m);
}

/* One condition for a whole tile. */
static void test_scalar_condition(void **state)
{
	(void)state;
	struct test *t = test_open("%x: !tt.ptr<i16>, %c: i1",
		"%i = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>\n"
		"%a = arith.trunci %i : tensor<8xi32> to tensor<8xi16>\n"
		"%b = arith.constant dense<-7> : tensor<8xi16>\n"
		"%s = arith.select %c, %a, %b : tensor<8xi16>\n"
		"%xs = tt.splat %x : !tt.ptr<i16> -> tensor<8x!tt.ptr<i16>>\n"
		"%p = tt.addptr %xs, %i : tensor<8x!tt.ptr<i16>>, tensor<8xi32>\n"
		"tt.store %p, %s : tensor<8x!tt.ptr<i16>>");
	i16 x[8];
	arg_buffer(t, "x", x, sizeof x);
	arg_bits(t, 1);
	expect_ok(t, 1, 1, 1);
	for (i16 i = 0; i < 8; i++)
		assert_int_equal(x[i], i);
	t->args[1] = 0;
	expect_ok(t, 1, 1, 1);
	for (i16 i = 0; i < 8; i++)
		assert_int_equal(x[i], -7);
	test_close(t);
}

/* What is undefined for the folder has a meaning here. */
static void test_undefined(void **state)
{
	(void)state;
	static const struct {
		const char *op;
		i32 a, b, want;
	} cases[] = {
		{"divsi", 7, 0, 0},
		{"divui", 7, 0, 0},
		{"remsi", 7, 0, 0},
		{"remui", 7, 0, 0},
		{"divsi", INT32_MIN, -1, INT32_MIN},
		{"remsi", INT32_MIN, -1, 0},
		{"shli", 5, 32, 0},
		{"shrui", -1, 99, 0},
		{"shrsi", -8, 40, -1},
		{"shrsi", 8, -1, 0},
	};
	for (u32 k = 0; k < ARRAY_LEN(cases); k++) {
		struct test *t = test_open_with("%x: !tt.ptr<i32>, %a: i32, %b: i32", "%r = arith.$0 %a, %b : i32\n"
			"tt.store %x, %r : !tt.ptr<i32>", cases[k].op);
		i32 x = 12345;
		arg_buffer(t, "x", &x, 4);
		arg_bits(t, (u32)cases[k].a);
		arg_bits(t, (u32)cases[k].b);
		expect_ok(t, 1, 1, 1);
		assert_int_equal(x, cases[k].want);
		test_close(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arithmetic),
		cmocka_unit_test(test_conversions),
		cmocka_unit_test(test_select_and_pointers),
		cmocka_unit_test(test_scalar_condition),
		cmocka_unit_test(test_undefined),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

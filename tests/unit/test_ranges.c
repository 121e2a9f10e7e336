/* Intervals of integer operations against every result that occurs: 8-bit types exhaustively, wider ones at the ends of
 * their type and at random. Affine expressions against sums in 128 bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ir/scalar.h"
#include "analysis/affine.h"
#include "analysis/interval.h"
#include "tests/unit/random_bits.h"

static const enum opcode binary[] = {IR_ADDI,  IR_SUBI,  IR_MULI,  IR_DIVSI, IR_DIVUI, IR_REMSI,
				     IR_REMUI, IR_ANDI,  IR_ORI,   IR_XORI,  IR_SHLI,  IR_SHRSI,
				     IR_SHRUI, IR_MAXSI, IR_MAXUI, IR_MINSI, IR_MINUI, IR_MULHIUI};

struct maker {
	struct arena arena;
	struct interner names;
	struct diags diags;
	struct ir_context ctx;
	struct kernel *kernel;
};

static void maker_init(struct maker *m)
{
	*m = (struct maker){0};
	m->names.arena = &m->arena;
	diags_init(&m->diags, &m->arena);
	ir_context_init(&m->ctx, &m->arena, &m->names, &m->diags);
	m->kernel = kernel_new(&m->ctx, "k");
}

static void maker_free(struct maker *m)
{
	struct arena a = m->arena;
	arena_free(&a);
}

static struct op *make(struct maker *m, enum opcode code, enum dtype d)
{
	const struct type *t = type_scalar(&m->ctx, d);
	struct builder b = builder_at_end(&m->ctx, m->kernel->body);
	struct value *in[] = {block_add_arg(&m->ctx, m->kernel->body, t), block_add_arg(&m->ctx, m->kernel->body, t)};
	return build(&b, code, in, 2, &t, 1, 0);
}

/* Of the result the machine's value, false where it is not defined. */
static bool evaluate(const struct op *o, enum dtype d, i64 x, i64 y, i64 *out)
{
	u64 in[] = {dtype_encode_int(d, x), dtype_encode_int(d, y)}, bits;
	if (!scalar_eval(o, in, &bits))
		return false;
	*out = dtype_decode_int(d, bits);
	return true;
}

static void check(const struct op *o, enum dtype d, i64 x, i64 y, struct interval in)
{
	i64 r;
	if (evaluate(o, d, x, y, &r) && (r < in.lo || r > in.hi))
		fail_msg("%s %s of %lld and %lld: %lld is not from %lld to %lld", op_info[o->code].name, dtype_name(d),
			 (long long)x, (long long)y, (long long)r, (long long)in.lo, (long long)in.hi);
}

static struct interval random_interval(i64 min, i64 max)
{
	u64 span = (u64)max - (u64)min;
	i64 a = (i64)((u64)min + (span == UINT64_MAX ? random_bits() : random_bits() % (span + 1))), b = a;
	switch (random_bits() % 6) {
	case 0: a = min; break;
	case 1: b = max; break;
	case 2: a = MAX(a, 0), b = MIN(MAX(b, 0), 3); break;
	case 3: b = a; break;
	default: b = (i64)((u64)min + (span == UINT64_MAX ? random_bits() : random_bits() % (span + 1)));
	}
	return (struct interval){MIN(a, b), MAX(a, b)};
}

static void bytes_exhaustively(void **state)
{
	(void)state;
	struct maker m;
	maker_init(&m);
	struct interval all = interval_of_type(type_scalar(&m.ctx, DT_I8));
	for (u32 k = 0; k < ARRAY_LEN(binary); k++) {
		struct op *o = make(&m, binary[k], DT_I8);
		for (int round = 0; round < 400; round++) {
			struct interval x = random_interval(-128, 127), y = random_interval(-128, 127),
					r = interval_binary(o->code, x, y, all);
			if (interval_within(r, all))
				for (i64 a = (i64)x.lo; a <= x.hi; a++)
					for (i64 b = (i64)y.lo; b <= y.hi; b++)
						check(o, DT_I8, a, b, r);
		}
	}
	maker_free(&m);
}

static void bits(void **state)
{
	(void)state;
	struct maker m;
	maker_init(&m);
	static const enum opcode logic[] = {IR_ANDI, IR_ORI, IR_XORI};
	struct interval all = interval_of_type(type_scalar(&m.ctx, DT_I1));
	for (u32 k = 0; k < ARRAY_LEN(logic); k++) {
		struct op *o = make(&m, logic[k], DT_I1);
		for (int x = 0; x < 4; x++)
			for (int y = 0; y < 4; y++) {
				struct interval a = {x & 1, x >> 1}, b = {y & 1, y >> 1};
				if (a.lo > a.hi || b.lo > b.hi)
					continue;
				struct interval r = interval_binary(o->code, a, b, all);
				for (i64 i = (i64)a.lo; i <= a.hi; i++)
					for (i64 j = (i64)b.lo; j <= b.hi; j++)
						check(o, DT_I1, i, j, r);
			}
	}
	maker_free(&m);
}

/* Of the interval: an end, next to one, or any. */
static i64 pick(struct interval i)
{
	u64 span = (u64)(i.hi - i.lo);
	switch (random_bits() % 4) {
	case 0: return (i64)i.lo;
	case 1: return (i64)i.hi;
	default: return (i64)(i.lo + (span == UINT64_MAX ? random_bits() : random_bits() % (span + 1)));
	}
}

static void wide_types(void **state)
{
	(void)state;
	static const enum dtype types[] = {DT_I16, DT_I32, DT_I64};
	struct maker m;
	maker_init(&m);
	for (u32 t = 0; t < ARRAY_LEN(types); t++) {
		struct interval all = interval_of_type(type_scalar(&m.ctx, types[t]));
		for (u32 k = 0; k < ARRAY_LEN(binary); k++) {
			struct op *o = make(&m, binary[k], types[t]);
			for (int round = 0; round < 2000; round++) {
				struct interval x = random_interval((i64)all.lo, (i64)all.hi),
						y = random_interval((i64)all.lo, (i64)all.hi);
				struct interval r = interval_binary(o->code, x, y, all);
				for (int i = 0; i < 16 && interval_within(r, all); i++)
					check(o, types[t], pick(x), pick(y), r);
			}
		}
	}
	maker_free(&m);
}

static void same(struct interval got, i64 lo, i64 hi)
{
	if (got.lo != lo || got.hi != hi)
		fail_msg("from %lld to %lld, not from %lld to %lld", (long long)got.lo, (long long)got.hi,
			 (long long)lo, (long long)hi);
}

/* What masks and signs of indices are decided with must not only be right. */
static void as_narrow_as_indices_need(void **state)
{
	(void)state;
	struct maker m;
	maker_init(&m);
	struct interval all = interval_of_type(type_scalar(&m.ctx, DT_I32)), index = {0, 1000}, signs = {-8, 7};
	same(interval_binary(IR_REMSI, index, all, all), 0, 1000);
	same(interval_binary(IR_REMSI, all, (struct interval){1, 64}, all), -63, 63);
	same(interval_binary(IR_DIVSI, index, (struct interval){0, 50}, all), 0, 1000);
	same(interval_binary(IR_DIVSI, index, (struct interval){8, 8}, all), 0, 125);
	same(interval_binary(IR_DIVSI, signs, (struct interval){2, 4}, all), -4, 3);
	same(interval_binary(IR_ANDI, all, (struct interval){15, 15}, all), 0, 15);
	same(interval_binary(IR_XORI, index, index, all), 0, 1023);
	same(interval_binary(IR_MULI, signs, signs, all), -56, 64);
	same(interval_binary(IR_SHRSI, signs, (struct interval){1, 2}, all), -4, 3);
	same(interval_binary(IR_SHRUI, all, (struct interval){1, 1}, all), 0, INT32_MAX);
	maker_free(&m);
}

static void affine_arithmetic(void **state)
{
	(void)state;
	struct maker m;
	maker_init(&m);
	const struct value *scalar[6];
	i64 at[6];
	for (u32 i = 0; i < ARRAY_LEN(scalar); i++)
		scalar[i] = block_add_arg(&m.ctx, m.kernel->body, type_scalar(&m.ctx, DT_I64));
	for (int round = 0; round < 2000; round++) {
		for (u32 i = 0; i < ARRAY_LEN(at); i++)
			at[i] = (i64)(random_bits() % 2001) - 1000;
		struct affine sum = affine_constant(0);
		i128 want = 0;
		for (int k = 0; k < 12; k++) {
			u32 which = (u32)(random_bits() % ARRAY_LEN(scalar));
			i64 times = (i64)(random_bits() % 21) - 10, plus = (i64)(random_bits() % 21) - 10;
			struct affine s = affine_scalar(scalar[which]), c = affine_constant(plus);
			s = affine_scaled(&s, times);
			s = affine_sum(&s, &c);
			bool minus = random_bits() % 2;
			sum = minus ? affine_difference(&sum, &s) : affine_sum(&sum, &s);
			want += (minus ? -1 : 1) * ((i128)times * at[which] + plus);
		}
		assert_true(sum.known);
		i128 got = sum.constant;
		for (int i = 0; i < sum.n; i++) {
			assert_int_not_equal(sum.term[i].coef, 0);
			for (u32 k = 0; k < ARRAY_LEN(scalar); k++)
				got += sum.term[i].scalar == scalar[k] ? (i128)sum.term[i].coef * at[k] : 0;
		}
		assert_true(got == want);
	}
	struct affine most = affine_constant(INT64_MAX), one = affine_constant(1), s = affine_scalar(scalar[0]);
	assert_false(affine_sum(&most, &one).known);
	assert_false(affine_scaled(&most, 2).known);
	assert_int_equal(affine_difference(&s, &s).n, 0);
	assert_int_equal(affine_scaled(&s, 0).n, 0);
	maker_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_exhaustively), cmocka_unit_test(bits),
					   cmocka_unit_test(wide_types), cmocka_unit_test(as_narrow_as_indices_need),
					   cmocka_unit_test(affine_arithmetic)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Specialisation: which arguments make which variant, what is refused, and the texts the evaluator gets. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "random_bits.h"
#include "runtime/image/error.h"
#include "runtime/launch/specialize.h"

static void *const aligned = (void *)(uintptr_t)0x10000, *const odd = (void *)(uintptr_t)0x10004;

#define ARGS(...) (tl_arg[]){__VA_ARGS__}, sizeof((tl_arg[]){__VA_ARGS__}) / sizeof(tl_arg)

/* --- a function with the given parameters -------------------------------------------------------------------- */

struct fixture {
	struct unit unit;
	char text[2000];
	struct params params;
	i16 most[MAX_KERNEL_PARAMS];
};

static void open(struct fixture *f, const char *params)
{
	int n = snprintf(f->text, sizeof f->text,
			 "import triton\nimport triton.language as tl\n"
			 "from triton.language import float64\nimport torch\n"
			 "N: tl.constexpr = 7\n\n@triton.jit\ndef k(%s):\n    pass\n", params);
	assert_true(unit_open(&f->unit, "t.tl", f->text, (size_t)n));
	params_of_func(&f->unit.arena, f->unit.module->funcs.at[0], &f->params);
	for (u32 i = 0; i < ARRAY_LEN(f->most); i++)
		f->most[i] = 16;
	f->params.most = f->most;
}

/* "type or =constant", or a tree of these. */
static void show(struct strbuf *out, const struct arg_spec *s)
{
	if (s->shape == ARG_LEAF) {
		sb_printf(out, "%s%s", s->constant ? "=" : "", s->constant ? s->constant : s->type ? s->type : "-");
		return;
	}
	sb_puts(out, s->shape == ARG_TUPLE ? "(" : s->pads_with_nan ? "nan[" : "desc[");
	for (u32 i = 0; i < s->nitems; i++) {
		sb_puts(out, i ? "," : "");
		if (s->fields)
			sb_printf(out, "%s:", s->fields[i]);
		show(out, &s->items[i]);
	}
	for (u32 i = 0; s->shape == ARG_DESCRIPTOR && i < descriptor_rank(s); i++)
		sb_printf(out, "%s%d", i ? "x" : ";", s->block_shape[i]);
	sb_puts(out, s->shape == ARG_TUPLE ? ")" : "]");
}

/* The specs of every parameter, between commas. */
static const char *texts(struct fixture *f, const tl_arg *args, size_t n)
{
	struct strbuf sb = {.arena = &f->unit.arena};
	struct key key;
	key_init(&key, 0);
	tl_status s = specialize(&f->params, args, n, &key);
	key_free(&key);
	if (s)
		return tl_error(NULL);
	const struct arg_spec *specs = specialize_text(&f->unit.arena, &f->params, args, n);
	for (u32 i = 0; i < f->params.len; i++) {
		sb_puts(&sb, i ? "," : "");
		show(&sb, &specs[i]);
	}
	return sb.at;
}

#define check(params, expect, ...)                                               \
	do {                                                                     \
		struct fixture f_;                                               \
		open(&f_, params);                                               \
		assert_string_equal(texts(&f_, ARGS(__VA_ARGS__)), expect);      \
		unit_free(&f_.unit);                                             \
	} while (0)

static bool same_key(const char *params, tl_arg a, tl_arg b)
{
	struct fixture f;
	struct key ka, kb;
	open(&f, params);
	key_init(&ka, 0);
	key_init(&kb, 0);
	assert_int_equal(specialize(&f.params, &a, 1, &ka), TL_OK);
	assert_int_equal(specialize(&f.params, &b, 1, &kb), TL_OK);
	bool same = ka.len == kb.len && !memcmp(ka.at, kb.at, ka.len * sizeof *ka.at);
	key_free(&ka);
	key_free(&kb);
	unit_free(&f.unit);
	return same;
}

static const char *refused(const char *params, const tl_arg *args, size_t n)
{
	struct fixture f;
	struct key key;
	open(&f, params);
	key_init(&key, 0);
	assert_int_equal(specialize(&f.params, args, n, &key), TL_ERR_ARGUMENT);
	key_free(&key);
	unit_free(&f.unit);
	return tl_error(NULL);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

/* --- run-time parameters ------------------------------------------------------------------------------------- */

static void pointers(void **state)
{
	(void)state;
	check("p", "*fp32:16", tl_ptr(TL_F32, aligned));
	check("p", "*fp32", tl_ptr(TL_F32, odd));
	check("p", "*i8:16", tl_ptr(TL_I8, aligned));
	check("p", "*u8", tl_ptr(TL_U8, (void *)(uintptr_t)0x10001));
	check("p", "*bf16:16", tl_ptr(TL_BF16, NULL));
	check("p: 'constexpr'", "k: argument 1, 'p', must be a compile-time value (a number, bool, "
	      "string, dtype, jit function or "
				"None); it is the pointer 0x10000 to fp32", tl_ptr(TL_F32, aligned));
	check("p: '*fp32'", "*fp32:16", tl_ptr(TL_F32, aligned));
	check("p: tl.pointer_type(tl.float16)", "*fp16:16", tl_ptr(TL_F16, aligned));
	check("p: torch.Tensor", "*fp16:16", tl_ptr(TL_F16, aligned));
	/* the divisor of a signature serves where there are no arguments; its type holds */
	check("p: '*fp16:16'", "*fp16", tl_ptr(TL_F16, odd));
	check("p: '*fp16:16'", "k: argument 1, 'p', must be a pointer of type *fp16; it is the pointer 0x10000 to fp32",
	      tl_ptr(TL_F32, aligned));
	check("p: '*fp16:16 | *bf16'", "*fp16:16", tl_ptr(TL_F16, aligned));
	check("p: '*fp16:16 | *bf16'", "*bf16:16", tl_ptr(TL_BF16, aligned));
	check("p: '*fp16 | *bf16:16|*i8'",
	      "k: argument 1, 'p', must be a pointer of type *fp16 or *i8 or *bf16; it is the pointer 0x10000 to fp32",
	      tl_ptr(TL_F32, aligned));
	check("p: '*fp16:16 | *'", "*fp32:16", tl_ptr(TL_F32, aligned));
	check("p: '*fp16 | i8'", "*fp32:16", tl_ptr(TL_F32, aligned)); /* says nothing */
	check("p: '**fp16'", "**fp16:16", tl_ptr(TL_U64, aligned));
}

static void integers(void **state)
{
	(void)state;
	check("n", "i32", tl_int(5));
	check("n", "i32:1", tl_int(1));
	check("n", "i32:16", tl_int(0));
	check("n", "i32:16", tl_int(-32));
	check("n", "i32:8", tl_int(-1000));
	check("n", "i32", tl_int(1004));
	check("n", "i32", tl_int(INT32_MAX));
	check("n", "i32:16", tl_int(INT32_MIN));
	check("n", "i64:16", tl_int((int64_t)INT32_MAX + 1));
	check("n", "i64", tl_int((int64_t)INT32_MIN - 1));
	check("n", "i64:16", tl_int(INT64_MIN));
	check("n", "u8:16", tl_int_typed(TL_U8, 240));
	check("n", "u64", tl_int_typed(TL_U64, INT64_MAX));
	check("n", "i64:1", tl_int_typed(TL_I64, 1));
	check("n", "i16", tl_int_typed(TL_I16, -7));
	check("n", "i1", tl_int_typed(TL_I1, 1));
	check("n", "i1", tl_bool(true));
	check("n", "i1", tl_bool(false));
}

static void annotated_integers(void **state)
{
	(void)state;
	check("n: int", "i32", tl_int(1));
	check("n: int", "i32:16", tl_int(16));
	check("n: 'i64'", "i64", tl_int(1));
	check("n: tl.int64", "i64", tl_int(5));
	check("n: 'i32:16'", "i32:16", tl_int(48));
	check("n: 'i32:16'", "i32:8", tl_int(24));
	check("n: 'i32:16'", "i32", tl_int(20));
	check("n: 'i32:16'", "i32:1", tl_int(1));
	check("n: 'i32:1'", "i32", tl_int(2));
	check("n: 'u32'", "u32", tl_int(UINT32_MAX));
	check("n: int", "i32", tl_int_typed(TL_I64, 7));
	check("n: 'u8'", "u8", tl_bool(true));
	check("n: bool", "i1", tl_int(1));
	check("n: float", "fp32", tl_int(3));
	check("n: 'fp64'", "fp64", tl_float(3));
	check("n: float64", "fp64", tl_float(3));
	check("n: tl.float16", "fp16", tl_float_typed(TL_F32, 3));
	assert_has(refused("n: int", ARGS(tl_int((int64_t)1 << 31))),
		   "must be a number of type i32; it is the integer 2147483648");
	assert_has(refused("n: 'u32'", ARGS(tl_int(-1))), "u32");
	assert_has(refused("n: int", ARGS(tl_float(2))), "it is the float 2 as fp32");
}

static void other_kinds(void **state)
{
	(void)state;
	check("x", "fp32", tl_float(1));
	check("x", "fp32", tl_float(0));
	check("x", "fp64", tl_float_typed(TL_F64, 16));
	check("x", "fp16", tl_float_typed(TL_F16, 16));
	check("x", "=None", tl_none());
	check("x: '*fp32'", "=None", tl_none());
	check("x", "=relu", tl_func("relu"));
	assert_has(refused("x", ARGS(tl_str("relu"))), "it is the string \"relu\"");
	assert_has(refused("x", ARGS(tl_type(TL_F16))), "strings and dtypes are for tl.constexpr");
	assert_has(refused("x", ARGS(tl_float_typed(TL_I32, 1))), "float 1 as i32");
	assert_has(refused("x", ARGS(tl_int_typed(TL_F32, 1))), "integer 1 as fp32");
	assert_has(refused("x", ARGS(tl_int_typed(TL_U8, 256))), "which does not fit");
	assert_has(refused("x", ARGS(tl_int_typed(TL_I1, 2))), "which does not fit");
	assert_has(refused("x", ARGS(tl_int_typed(TL_U64, -1))), "which does not fit");
	assert_has(refused("x", ARGS(tl_ptr(TL_F32, (void *)(uintptr_t)0x10002))),
		   "not aligned to its elements of 4 bytes");
	assert_has(refused("x: '*fp16'", ARGS(tl_ptr(TL_BF16, aligned))),
		   "must be a pointer of type *fp16; it is the pointer");
	assert_has(refused("x: '**fp16'", ARGS(tl_ptr(TL_F16, aligned))), "**fp16");
	assert_has(refused("x: '*fp16'", ARGS(tl_int(0))), "it is the integer 0");
	assert_has(refused("x: int", ARGS(tl_ptr(TL_F16, aligned))), "number of type i32");
	assert_has(refused("x", ARGS(((tl_arg){.kind = (tl_arg_kind)99}))), "unknown kind 99");
	assert_has(refused("x", ARGS(tl_ptr((tl_dtype)77, aligned))), "an unknown type");
}

/* --- compile-time parameters --------------------------------------------------------------------------------- */

static void constants(void **state)
{
	(void)state;
	check("x: tl.constexpr", "=1", tl_int(1));
	check("x: tl.constexpr", "=-9223372036854775808", tl_int(INT64_MIN));
	check("x: tl.constexpr", "=200", tl_int_typed(TL_U8, 200));
	check("x: tl.constexpr", "=0.5", tl_float(0.5));
	check("x: tl.constexpr", "=3.0", tl_float(3));
	check("x: tl.constexpr", "=1e+100", tl_float(1e100));
	check("x: tl.constexpr", "=0.10000000000000001", tl_float(0.1));
	check("x: tl.constexpr", "=-0.0", tl_float(-0.0));
	check("x: tl.constexpr", "=float('inf')", tl_float(INFINITY));
	check("x: tl.constexpr", "=float('-inf')", tl_float(-INFINITY));
	check("x: tl.constexpr", "=float('nan')", tl_float(NAN));
	check("x: tl.constexpr", "=True", tl_bool(true));
	check("x: tl.constexpr", "=False", tl_bool(false));
	check("x: tl.constexpr", "=None", tl_none());
	check("x: tl.constexpr", "=\"relu\"", tl_str("relu"));
	check("x: tl.constexpr", "=\"\"", tl_str(""));
	check("x: tl.constexpr", "=\"a\\\"b\\\\c\\x0ad'\"", tl_str("a\"b\\c\nd'"));
	check("x: tl.constexpr", "=tl.bfloat16", tl_type(TL_BF16));
	check("x: tl.constexpr", "=tl.float8e4nv", tl_type(TL_F8E4M3));
	check("x: tl.constexpr", "=relu", tl_func("relu"));
	assert_has(refused("x: tl.constexpr", ARGS(tl_str(NULL))), "(NULL)");
	assert_has(refused("x: tl.constexpr", ARGS(tl_func(NULL))), "(NULL)");
	assert_has(refused("x: tl.constexpr", ARGS(tl_func(""))), "function ''");
}

/* The integers that an int64_t cannot hold. */
static void large_integers(void **state)
{
	(void)state;
	const uint64_t most = UINT64_MAX, half = (uint64_t)1 << 63;
	check("n", "u64", tl_uint(most));
	check("n", "u64:16", tl_uint(half));
	check("n", "i64", tl_uint(half - 1));
	check("n", "i32", tl_uint(5));
	check("n", "u64", tl_uint_typed(TL_U64, most));
	check("n", "u8", tl_uint_typed(TL_U8, 255));
	check("n: tl.uint64", "u64", tl_uint(most));
	check("n: tl.float32", "fp32", tl_uint(most));
	check("n, m=18446744073709551615", "i32,u64", tl_int(2));
	check("x: tl.constexpr", "=18446744073709551615", tl_uint(most));
	check("x: tl.constexpr", "=18446744073709551615", tl_uint_typed(TL_U64, most));
	assert_has(refused("n: tl.int64", ARGS(tl_uint(half))),
		   "must be a number of type i64; it is the integer 9223372036854775808");
	assert_has(refused("n", ARGS(tl_uint_typed(TL_I64, half))), "9223372036854775808 as i64, which does not fit");
	assert_has(refused("n", ARGS(tl_int_typed(TL_U64, -1))),
		   "the integer -1 as u64, which does not fit; use tl_uint_typed");
	assert_true(same_key("x: tl.constexpr", tl_int(7), tl_uint(7)));
	assert_true(same_key("x", tl_int(7), tl_uint(7)));
	assert_false(same_key("x: tl.constexpr", tl_int(-1), tl_uint(most)));
	tl_arg a = tl_uint(most), b = tl_uint(half);
	assert_true(arg_bits(&a, false, DT_U64) == most);
	assert_true(arg_bits(&b, false, DT_U64) == half);
	assert_true(arg_bits(&b, false, DT_F64) == 0x43E0000000000000u); /* 2^63 */
}

static void keys(void **state)
{
	(void)state;
	const char *run = "x", *constant = "x: tl.constexpr";
	assert_true(same_key(run, tl_int(5), tl_int(7)));
	assert_true(same_key(run, tl_int(32), tl_int(0)));
	assert_false(same_key(run, tl_int(5), tl_int(1)));
	assert_false(same_key(run, tl_int(5), tl_int(16)));
	assert_false(same_key(run, tl_int(5), tl_int((int64_t)5 << 40)));
	assert_false(same_key(run, tl_int(5), tl_int_typed(TL_U32, 5)));
	assert_false(same_key(run, tl_int(1), tl_int_typed(TL_I64, 1)));
	assert_true(same_key(run, tl_float(5), tl_float(1)));
	assert_true(same_key(run, tl_bool(true), tl_bool(false)));
	assert_true(same_key(run, tl_ptr(TL_F32, aligned), tl_ptr(TL_F32, (char *)aligned + 64)));
	assert_false(same_key(run, tl_ptr(TL_F32, aligned), tl_ptr(TL_F32, odd)));
	assert_false(same_key(run, tl_ptr(TL_F32, aligned), tl_ptr(TL_I32, aligned)));
	assert_false(same_key(run, tl_ptr(TL_F32, aligned), tl_none()));
	assert_false(same_key(constant, tl_int(1), tl_bool(true)));
	assert_false(same_key(constant, tl_int(1), tl_float(1)));
	assert_true(same_key(constant, tl_int(1), tl_int_typed(TL_U8, 1)));
	assert_false(same_key(constant, tl_float(0.0), tl_float(-0.0)));
	assert_false(same_key(constant, tl_str("relu"), tl_func("relu")));
	assert_true(same_key(constant, tl_str("a string of some length"), tl_str((char[]){"a string of some length"})));
	assert_false(same_key(constant, tl_str("a string of some length"), tl_str("a string of some lengtH")));
	assert_false(same_key(constant, tl_str("12345678"), tl_str("1234567")));
	assert_false(same_key(constant, tl_str(""), tl_none()));
	assert_false(same_key(constant, tl_type(TL_F16), tl_type(TL_BF16)));
}

/* A key of any length: it outgrows its first memory. */
static void long_keys(void **state)
{
	(void)state;
	static char a[5000], b[5000];
	memset(a, 'x', sizeof a - 1);
	memcpy(b, a, sizeof a);
	assert_true(same_key("x: tl.constexpr", tl_str(a), tl_str(b)));
	b[4990] = 'y';
	assert_false(same_key("x: tl.constexpr", tl_str(a), tl_str(b)));
}

/* --- defaults and counts ------------------------------------------------------------------------------------- */

static void defaults(void **state)
{
	(void)state;
	check("a, n=1", "i32,i32:1", tl_int(2));
	check("a, n=-1", "i32,i32", tl_int(2));
	check("a, n=32, b: tl.constexpr = 128", "i32,i32:16,=128", tl_int(2));
	check("a, n=32, b: tl.constexpr = 128", "i32,i32,=128", tl_int(2), tl_int(3));
	check("a, s=0.5, t: tl.constexpr = 'x\"'", "i32,fp32,=\"x\\\"\"", tl_int(2));
	check("a, m=None, t: tl.constexpr = True", "i32,=None,=True", tl_int(2));
	check("a, m: int = 1", "i32,i32", tl_int(2));
	check("a, b: tl.constexpr = N + 1, c=N", "i32,-,-", tl_int(2)); /* the evaluator reads these */
	check("a, b: int = N", "i32,=N", tl_int(2));
	check("a, b: int = 2 * N", "i32,=(2 * N)", tl_int(2));
	assert_has(refused("a, b", ARGS(tl_int(1))),
		   "k: argument 2, 'b', is missing: it has no default; 1 of 2 were given");
	assert_has(refused("a, b", ARGS(tl_int(1), tl_int(2), tl_int(3))), "k takes 2 arguments, and 3 were given");
	assert_has(refused("a=1, b=2, c: tl.constexpr = 3", ARGS(tl_int(1), tl_int(2), tl_ptr(TL_F32, aligned))),
		   "argument 3, 'c'");
}

static void bits(void **state)
{
	(void)state;
	tl_arg a = tl_int(-1), f = tl_float(1.5), b = tl_bool(true), p = tl_ptr(TL_F32, odd), i = tl_int(3);
	assert_int_equal(arg_bits(&a, false, DT_I8), 0xFF);
	assert_int_equal(arg_bits(&a, false, DT_I32), 0xFFFFFFFF);
	assert_true(arg_bits(&a, false, DT_I64) == UINT64_MAX);
	assert_int_equal(arg_bits(&f, false, DT_F32), 0x3FC00000);
	assert_true(arg_bits(&f, false, DT_F64) == 0x3FF8000000000000u);
	assert_int_equal(arg_bits(&f, false, DT_F16), 0x3E00);
	assert_int_equal(arg_bits(&f, false, DT_BF16), 0x3FC0);
	assert_int_equal(arg_bits(&i, false, DT_F32), 0x40400000);
	assert_int_equal(arg_bits(&b, false, DT_I1), 1);
	assert_int_equal(arg_bits(&p, true, DT_I1), 0x10004);
}

/* IR text is compiled already: types must match, and what it was told of divisibility must hold. */
static void ir_text(void **state)
{
	(void)state;
	static const char text[] =
		"module {\n"
		"  tt.func public @f(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) "
		"attributes {noinline = false} {\n"
		"    tt.return\n  }\n}\n";
	struct fixture f;
	struct key key;
	assert_true(unit_open(&f.unit, "t.ttir", text, sizeof text - 1));
	params_of_ir(&f.unit.arena, f.unit.parsed, &f.params);
	assert_int_equal(f.params.len, 2);
	key_init(&key, 0);
	assert_int_equal(specialize(&f.params, ARGS(tl_ptr(TL_F32, aligned), tl_int(1)), &key), TL_OK);
	assert_int_equal(specialize(&f.params, ARGS(tl_ptr(TL_F32, aligned), tl_int(UINT32_MAX)), &key), TL_OK);
	assert_int_equal(specialize(&f.params, ARGS(tl_ptr(TL_F32, odd), tl_int(1)), &key), TL_ERR_ARGUMENT);
	assert_int_equal(specialize(&f.params, ARGS(tl_ptr(TL_F16, aligned), tl_int(1)), &key), TL_ERR_ARGUMENT);
	assert_int_equal(specialize(&f.params, ARGS(tl_ptr(TL_F32, aligned), tl_int((int64_t)1 << 32)), &key),
			 TL_ERR_ARGUMENT);
	assert_int_equal(specialize(&f.params, ARGS(tl_none(), tl_int(1)), &key), TL_ERR_ARGUMENT);
	key_free(&key);
	unit_free(&f.unit);
}

/* --- tuples and descriptors ---------------------------------------------------------------------------------- */

#define TUPLE(...)                                                                                                     \
	(tl_tuple_arg(&(tl_tuple){sizeof((tl_arg[]){__VA_ARGS__}) / sizeof(tl_arg), (tl_arg[]){__VA_ARGS__}, NULL}))
static const char *const field_names[] = {"x", "y", "z"};
#define NAMED(...)                                                                                                     \
	(tl_tuple_arg(                                                                                                 \
		&(tl_tuple){sizeof((tl_arg[]){__VA_ARGS__}) / sizeof(tl_arg), (tl_arg[]){__VA_ARGS__}, field_names}))
static const tl_descriptor tile = {TL_F16, 2, (void *)(uintptr_t)0x10000, {48, 40}, {80, 1}, {16, 64}, false, false};

static void tuples(void **state)
{
	(void)state;
	check("t", "(*fp32:16,i32:1,=None)", TUPLE(tl_ptr(TL_F32, aligned), tl_int(1), tl_none()));
	check("t, n", "(i32,()),i32", TUPLE(tl_int(5), tl_tuple_arg(&(tl_tuple){0})), tl_int(3));
	check("t", "(x:(=\"relu\",fp64),y:=tl.float16)",
	      NAMED(TUPLE(tl_str("relu"), tl_float_typed(TL_F64, 1)), tl_type(TL_F16)));
	check("t", "(=4,=True,i1)", TUPLE(tl_constexpr(tl_int(4)), tl_constexpr(tl_bool(true)), tl_bool(true)));
	check("t: tl.constexpr", "(=4,(=None))", TUPLE(tl_int(4), TUPLE(tl_none())));
	check("n", "=7", tl_constexpr(tl_int(7)));
	check("t, n=5", "(i32),i32", TUPLE(tl_int(4)));
}

static void descriptors(void **state)
{
	(void)state;
	check("d", "desc[*fp16:16,i32:16,i32:8,i64:16;16x64]", tl_desc(&tile));
	tl_descriptor d = tl_describe(TL_F32, aligned, 3, (int64_t[]){1, 3, 4}, (int32_t[]){1, 2, 4});
	d.pads_with_nan = true;
	check("t, n", "(i32,nan[*fp32:16,i32,i32,i32,i64:4,i64:4;1x2x4]),i32", TUPLE(tl_int(2), tl_desc(&d)),
	      tl_int(5));
	assert_int_equal(d.strides[0], 12);
	assert_int_equal(d.strides[1], 4);
}

/* Shapes whose strides leave 64 bits, ranks that there are not: a descriptor comes of it that no launch takes. */
static void hostile_descriptors(void **state)
{
	(void)state;
	/* first sizes that there are */
	static const int64_t edges[] = {1,         16, 1 << 16, 1 << 20,   1 << 30,  INT32_MAX,
					INT64_MIN, -1, 0,       1ll << 31, INT64_MAX};
	static const int32_t block[] = {1, 1, 1, 1, 4};
	static const int ranks[] = {INT32_MIN, -1, 0, 1, 3, 5, 6, INT32_MAX};
	struct fixture f;
	open(&f, "d");
	for (int n = 0; n < 4000; n++) {
		int64_t shape[TL_MAX_RANK];
		int rank = ranks[random_bits() % ARRAY_LEN(ranks)];
		__int128 stride = 1;
		bool good = rank >= 1 && rank <= TL_MAX_RANK;
		for (int i = 0; i < TL_MAX_RANK; i++)
			shape[i] = edges[random_bits() % (random_bits() % 4 ? 6 : ARRAY_LEN(edges))];
		const int32_t *last = block + (good ? TL_MAX_RANK - rank : 0);
		tl_descriptor d = tl_describe(TL_F32, aligned, rank, shape, last);
		for (int i = rank - 1; good && i >= 0; i--) {
			good = shape[i] >= 1 && shape[i] <= INT32_MAX && stride <= INT64_MAX &&
			       (i == rank - 1 || stride % 4 == 0) && d.strides[i] == (int64_t)stride;
			stride *= shape[i];
		}
		struct key key;
		key_init(&key, 0);
		assert_int_equal(specialize(&f.params, ARGS(tl_desc(&d)), &key), good ? TL_OK : TL_ERR_ARGUMENT);
		key_free(&key);
	}
	unit_free(&f.unit);
}

static void composite_keys(void **state)
{
	(void)state;
	tl_descriptor d = tile, nan = tile, block = tile, shape = tile, odd_shape = tile;
	d.shape[0] = 16;
	nan.pads_with_nan = true;
	block.block_shape[0] = 8;
	shape.shape[1] = 24;
	odd_shape.shape[1] = 41;
	assert_true(same_key("d", tl_desc(&tile), tl_desc(&d)));
	assert_true(same_key("d", tl_desc(&tile), tl_desc(&shape)));
	assert_false(same_key("d", tl_desc(&tile), tl_desc(&nan)));
	assert_false(same_key("d", tl_desc(&tile), tl_desc(&block)));
	assert_false(same_key("d", tl_desc(&tile), tl_desc(&odd_shape)));
	assert_true(same_key("t", TUPLE(tl_int(2), tl_int(3)), TUPLE(tl_int(4), tl_int(5))));
	assert_false(same_key("t", TUPLE(tl_int(2), tl_int(3)), NAMED(tl_int(2), tl_int(3))));
	assert_false(same_key("t", TUPLE(tl_int(2), TUPLE(tl_int(3))), TUPLE(TUPLE(tl_int(2)), tl_int(3))));
	assert_false(same_key("t", TUPLE(tl_constexpr(tl_int(2))), TUPLE(tl_constexpr(tl_int(3)))));
}

static void composites_refused(void **state)
{
	(void)state;
	assert_has(
		refused("a, t", ARGS(tl_int(1), TUPLE(tl_int(2), TUPLE(tl_ptr(TL_F32, (void *)(uintptr_t)0x10002))))),
		"k: argument 2, 't'[1][0], must be a pointer or a number");
	assert_has(refused("t", ARGS(NAMED(tl_int_typed(TL_I8, 300)))),
		   "k: argument 1, 't'.x, must be a pointer or a number");
	assert_has(refused("t: tl.int32", ARGS(TUPLE(tl_int(2)))), "must be a number of type i32; it is a tuple");
	assert_has(refused("t: tl.constexpr", ARGS(TUPLE(tl_ptr(TL_F32, aligned)))),
		   "'t'[0], must be a compile-time value");
	assert_has(refused("t: tl.constexpr", ARGS(tl_desc(&tile))), "'t': the descriptor is not a compile-time value");
	assert_has(refused("t", ARGS(tl_constexpr(tl_desc(&tile)))), "it is a descriptor");
	assert_has(refused("t", ARGS(tl_desc(NULL))), "'t': the descriptor is NULL");
	assert_has(refused("t", ARGS(tl_tuple_arg(NULL))), "'t': the tuple is NULL");
	assert_has(refused("t", ARGS(tl_tuple_arg(&(tl_tuple){1, NULL, NULL}))), "'t': the tuple has no items");
	tl_arg loop;
	tl_tuple around = {1, &loop, NULL};
	loop = tl_tuple_arg(&around);
	assert_has(refused("t", ARGS(loop)), "the tuple is nested too deeply");
	tl_arg many[400];
	for (int i = 0; i < 400; i++)
		many[i] = tl_int(i);
	tl_tuple list = {400, many, NULL};
	assert_has(refused("t", ARGS(TUPLE(tl_tuple_arg(&list), tl_tuple_arg(&list)))), "more than 512 parts");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pointers),    cmocka_unit_test(integers),       cmocka_unit_test(annotated_integers),
		cmocka_unit_test(other_kinds), cmocka_unit_test(constants),      cmocka_unit_test(large_integers),
		cmocka_unit_test(keys),        cmocka_unit_test(long_keys),      cmocka_unit_test(defaults),
		cmocka_unit_test(bits),        cmocka_unit_test(ir_text),        cmocka_unit_test(tuples),
		cmocka_unit_test(descriptors), cmocka_unit_test(hostile_descriptors),
		cmocka_unit_test(composite_keys), cmocka_unit_test(composites_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

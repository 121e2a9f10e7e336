/* The interpreter's dealings with memory and the outside: checks and their messages, masks and poison, atomics,
 * assertions, printing, the grid, several runs at once. */
#include "test_interp.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

/* 8 × 32 tile of pointers x + row·stride + column */
#define POINTERS \
	"%r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>\n" \
	"%c = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>\n" \
	"%r1 = tt.expand_dims %r {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>\n" \
	"%c1 = tt.expand_dims %c {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>\n" \
	"%st = tt.splat %stride : i32 -> tensor<8x1xi32>\n" \
	"%r2 = arith.muli %r1, %st : tensor<8x1xi32>\n" \
	"%r3 = tt.broadcast %r2 : tensor<8x1xi32> -> tensor<8x32xi32>\n" \
	"%c3 = tt.broadcast %c1 : tensor<1x32xi32> -> tensor<8x32xi32>\n" \
	"%o = arith.addi %r3, %c3 : tensor<8x32xi32>\n" \
	"%xs = tt.splat %x : !tt.ptr<f32> -> tensor<8x32x!tt.ptr<f32>>\n" \
	"%p = tt.addptr %xs, %o : tensor<8x32x!tt.ptr<f32>>, tensor<8x32xi32>\n"

/* --- checks -------------------------------------------------------------------------------------------------- */

static void test_load_store(void **state)
{
	(void)state;
	struct test *t = test_open("%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %stride: i32", POINTERS
		"%v = tt.load %p : tensor<8x32x!tt.ptr<f32>>\n"
		"%ys = tt.splat %y : !tt.ptr<f32> -> tensor<8x32x!tt.ptr<f32>>\n"
		"%q = tt.addptr %ys, %o : tensor<8x32x!tt.ptr<f32>>, tensor<8x32xi32>\n"
		"%s = arith.addf %v, %v : tensor<8x32xf32>\n"
		"tt.store %q, %s : tensor<8x32x!tt.ptr<f32>>");
	float x[8 * 40], y[8 * 40];
	for (int i = 0; i < 8 * 40; i++)
		x[i] = random_float(), y[i] = -77;
	arg_buffer(t, "x", x, sizeof x);
	arg_buffer(t, "y", y, sizeof y);
	arg_bits(t, 40);
	expect_ok(t, 1, 1, 1);
	for (int i = 0; i < 8 * 40; i++)
		assert_true(y[i] == (i % 40 < 32 ? 2 * x[i] : -77));
	test_close(t);
}

static void test_out_of_bounds(void **state)
{
	(void)state;
	struct test *t = test_open("%x: !tt.ptr<f32>, %stride: i32",
				   POINTERS "%v = tt.load %p : tensor<8x32x!tt.ptr<f32>>");
	float memory[600];
	arg_buffer(t, "x", memory + 200, 100 * sizeof(float));
	arg_bits(t, 32);
	expect_error(t, 1, 1, 1,
		     "k.ttir:13:6: error: load of 4 bytes outside every buffer: address @ "
		     "is 0 bytes past the end of 'x' "
		     "(tile element [3, 4], program (0, 0, 0))\n"
		     "   13 | %v = tt.load %p : tensor<8x32x!tt.ptr<f32>>\n"
		     "      |      ^~~~~~~\n");
	t->args[1] = (u32)-1; /* rows overlap, going down */
	expect_error(
		t, 1, 1, 1,
		"k.ttir:13:6: error: load of 4 bytes outside every buffer: address @ is 4 "
		"bytes before the start of 'x' "
		"(tile element [1, 0], program (0, 0, 0))\n"
		"   13 | %v = tt.load %p : tensor<8x32x!tt.ptr<f32>>\n"
		"      |      ^~~~~~~\n");
	test_close(t);
}

#define SCALAR_LOAD "%o = tt.addptr %x, %n : !tt.ptr<i32>, i32\n%v = tt.load %o : !tt.ptr<i32>"

static void scalar_load_error(i32 offset, size_t skew, size_t size, u32 gap, const char *want)
{
	static _Alignas(64) char memory[256];
	char text[400];
	struct test *t = test_open("%x: !tt.ptr<i32>, %n: i32", SCALAR_LOAD);
	arg_buffer(t, NULL, memory + 64 + skew, size);
	arg_bits(t, (u32)offset);
	if (gap) {
		arg_buffer(t, "next", memory + 64 + gap, 16);
		t->nargs--;
	}
	snprintf(text, sizeof text,
		 "k.ttir:3:6: error: %s (program (0, 0, 0))\n"
		 "    3 | %%v = tt.load %%o : !tt.ptr<i32>\n"
		 "      |      ^~~~~~~\n",
		 want);
	expect_error(t, 1, 1, 1, text);
	test_close(t);
}

static void test_messages(void **state)
{
	(void)state;
	scalar_load_error(2, 0, 10, 0,
			  "load of 4 bytes outside every buffer: address @ is 2 bytes before the end of a buffer");
	scalar_load_error(3, 0, 11, 0,
			  "load of 4 bytes outside every buffer: address @ is 1 byte past the end of a buffer");
	scalar_load_error(-3, 0, 12, 0,
			  "load of 4 bytes outside every buffer: address @ is 12 bytes before the start of a buffer");
	scalar_load_error(10, 0, 12, 44,
			  "load of 4 bytes outside every buffer: address @ is 4 bytes before the start of 'next'");
	scalar_load_error(1, 2, 12, 0, "misaligned load of 4 bytes: address @ is not a multiple of 4");
}

static void test_null(void **state)
{
	(void)state;
	struct test *t = test_open("%x: !tt.ptr<i32>, %n: i32", SCALAR_LOAD);
	arg_bits(t, 0);
	arg_bits(t, 4);
	const char *want = "k.ttir:3:6: error: load of 4 bytes through a null pointer: "
		"address 0x10 (program (0, 0, 0))\n"
			   "    3 | %v = tt.load %o : !tt.ptr<i32>\n"
			   "      |      ^~~~~~~\n";
	expect_error(t, 1, 1, 1, want);
	t->open = true;
	expect_error(t, 1, 1, 1, want);
	t->args[1] = 1 << 20;
	t->open = false;
	assert_false(test_run(t, 1, 1, 1));
	assert_non_null(strstr(t->error.at, "outside every buffer: address 0x400000 (program"));
	test_close(t);
}

/* `open`: memory that is nobody's buffer can be used, but must be aligned. */
static void test_open_memory(void **state)
{
	(void)state;
	struct test *t = test_open("%x: !tt.ptr<i32>", "%v = tt.load %x : !tt.ptr<i32>\n"
		"%w = arith.addi %v, %v : i32\ntt.store %x, %w : !tt.ptr<i32>");
	i32 mine = 21;
	arg_bits(t, (u64)(uintptr_t)&mine);
	assert_false(test_run(t, 1, 1, 1));
	t->open = true;
	expect_ok(t, 1, 1, 1);
	assert_int_equal(mine, 42);
	t->args[0] += 2;
	assert_false(test_run(t, 1, 1, 1));
	assert_non_null(strstr(t->error.at, "misaligned"));
	test_close(t);
}

/* A run of consecutive addresses may go on from one buffer into the next. */
static void test_adjacent_buffers(void **state)
{
	(void)state;
	struct test *t =
		test_open("%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %stride: i32", POINTERS
			  "%v = tt.load %p : tensor<8x32x!tt.ptr<f32>>\n"
			  "%w = arith.negf %v : tensor<8x32xf32>\ntt.store %p, %w : tensor<8x32x!tt.ptr<f32>>");
	float memory[256];
	for (int i = 0; i < 256; i++)
		memory[i] = (float)i;
	arg_buffer(t, "x", memory, 50 * sizeof(float));
	arg_buffer(t, "y", memory + 50, 206 * sizeof(float));
	arg_bits(t, 32);
	expect_ok(t, 1, 1, 1);
	for (int i = 0; i < 256; i++)
		assert_true(memory[i] == (float)-i);
	test_close(t);
}

/* A store that fails half-way through a tile names the element; so does an atomic. */
static void test_store_error(void **state)
{
	(void)state;
	struct test *t = test_open("%x: !tt.ptr<f32>, %stride: i32, %v: f32", POINTERS
		"%vs = tt.splat %v : f32 -> tensor<8x32xf32>\n"
		"tt.store %p, %vs : tensor<8x32x!tt.ptr<f32>>");
	float x[100];
	arg_buffer(t, "x", x, sizeof x);
	arg_bits(t, 12);
	arg_bits(t, fp_bits_f32(3));
	assert_false(test_run(t, 1, 1, 1));
	assert_non_null(strstr(t->error.at, "store of 4 bytes outside every buffer: address 0x"));
	assert_non_null(strstr(t->error.at,
			       "is 0 bytes past the end of 'x' (tile element [6, 28], program (0, 0, 0))"));
	test_close(t);
}

/* --- masks --------------------------------------------------------------------------------------------------- */

#define MASKED \
	"%i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>\n" \
	"%ns = tt.splat %n : i32 -> tensor<16xi32>\n" \
	"%m = arith.cmpi slt, %i, %ns : tensor<16xi32>\n" \
	"%xs = tt.splat %x : !tt.ptr<$0> -> tensor<16x!tt.ptr<$0>>\n" \
	"%p = tt.addptr %xs, %i : tensor<16x!tt.ptr<$0>>, tensor<16xi32>\n" \
	"%ys = tt.splat %y : !tt.ptr<$0> -> tensor<16x!tt.ptr<$0>>\n" \
	"%q = tt.addptr %ys, %i : tensor<16x!tt.ptr<$0>>, tensor<16xi32>\n"

static const struct poison {
	const char *type;
	size_t bytes;
	u64 bits;
} poisons[] = {
	{"i1", 1, 1},
	{"i8", 1, 0x5B},
	{"i16", 2, 0x5A5B},
	{"i32", 4, 0x5A5A5A5B},
	{"i64", 8, 0x5A5A5A5A5A5A5A5B},
	{"!tt.ptr<f32>", 8, 0x5A5A5A5A5A5A5A5B},
	{"f8E4M3FN", 1, 0x7F},
	{"f8E5M2", 1, 0x7F},
	{"f16", 2, 0x7FFF},
	{"bf16", 2, 0x7FFF},
	{"f32", 4, 0x7FC00000},
	{"f64", 8, 0x7FF8000000000000},
};

/* Masked-off elements are not accessed, and are poison without `other`. */
static void test_poison(void **state)
{
	(void)state;
	for (u32 k = 0; k < ARRAY_LEN(poisons); k++) {
		const struct poison *w = &poisons[k];
		struct test *t = test_open_with("%x: !tt.ptr<$0>, %y: !tt.ptr<$0>, %n: i32",
			MASKED "%v = tt.load %p, %m : tensor<16x!tt.ptr<$0>>\n"
				"tt.store %q, %v : tensor<16x!tt.ptr<$0>>", w->type);
		_Alignas(8) char x[5 * 8], y[16 * 8];
		memset(x, 1, sizeof x);
		memset(y, 0xEE, sizeof y);
		arg_buffer(t, "x", x, 5 * w->bytes);
		arg_buffer(t, "y", y, 16 * w->bytes);
		arg_bits(t, 5);
		expect_ok(t, 1, 1, 1);
		for (size_t i = 0; i < 16; i++)
			assert_memory_equal(y + i * w->bytes, i < 5 ? (const void *)x : &w->bits, w->bytes);
		t->args[2] = 6;
		assert_false(test_run(t, 1, 1, 1));
		test_close(t);
	}
}

static void test_other(void **state)
{
	(void)state;
	struct test *t = test_open_with("%x: !tt.ptr<$0>, %y: !tt.ptr<$0>, %n: i32", MASKED
		"%k = arith.constant dense<3> : tensor<16xi32>\n"
		"%b = arith.andi %i, %k : tensor<16xi32>\n"
		"%z = arith.constant dense<0> : tensor<16xi32>\n"
		"%m1 = arith.cmpi ne, %b, %z : tensor<16xi32>\n"
		"%m2 = arith.andi %m, %m1 : tensor<16xi1>\n"
		"%other = arith.sitofp %i : tensor<16xi32> to tensor<16xf16>\n"
		"%v = tt.load %p, %m2, %other : tensor<16x!tt.ptr<f16>>\n"
		"tt.store %q, %v, %m : tensor<16x!tt.ptr<f16>>", "f16");
	u16 x[10], y[16];
	for (int i = 0; i < 10; i++)
		x[i] = fp_to_f16((float)(100 + i));
	memset(y, 0xEE, sizeof y);
	arg_buffer(t, "x", x, sizeof x);
	arg_buffer(t, "y", y, 10 * sizeof *y);
	arg_bits(t, 10);
	expect_ok(t, 1, 1, 1);
	for (int i = 0; i < 16; i++)
		assert_int_equal(y[i], i >= 10 ? 0xEEEE : fp_to_f16((float)(i % 4 ? 100 + i : i)));
	test_close(t);
}

/* An i1 in memory is a byte, true if it is not 0. */
static void test_bool_bytes(void **state)
{
	(void)state;
	struct test *t = test_open_with("%x: !tt.ptr<$0>, %y: !tt.ptr<$0>, %n: i32",
		MASKED "%v = tt.load %p : tensor<16x!tt.ptr<$0>>\n%w = arith.addi %v, %v : tensor<16xi1>\n"
		"%u = arith.xori %w, %v : tensor<16xi1>\ntt.store %q, %u : tensor<16x!tt.ptr<$0>>", "i1");
	u8 x[16], y[16];
	for (int i = 0; i < 16; i++)
		x[i] = (u8)(i * 37 & 0xF0);
	arg_buffer(t, "x", x, 16);
	arg_buffer(t, "y", y, 16);
	arg_bits(t, 0);
	expect_ok(t, 1, 1, 1);
	for (int i = 0; i < 16; i++)
		assert_int_equal(y[i], x[i] != 0);
	test_close(t);
}

/* --- atomics ------------------------------------------------------------------------------------------------- */

/* Each of many programs adds to 16 elements, of which two are the same. */
static void check_atomic_add(const char *type, const char *kind, size_t bytes, enum dtype d)
{
	struct test *t = test_open_with(
		"%x: !tt.ptr<$0>, %y: !tt.ptr<$0>, %n: i32",
		MASKED
		"%seven = arith.constant dense<7> : tensor<16xi32>\n"
		"%j = arith.minsi %i, %seven : tensor<16xi32>\n"
		"%p2 = tt.addptr %xs, %j : tensor<16x!tt.ptr<$0>>, tensor<16xi32>\n"
		"%one = arith.constant dense<$2> : tensor<16x$0>\n"
		"%old = tt.atomic_rmw $1, acq_rel, gpu, %p2, %one, %m : (tensor<16x!tt.ptr<$0>>, tensor<16x$0>, "
		"tensor<16xi1>) -> tensor<16x$0>\n"
		"tt.store %q, %old : tensor<16x!tt.ptr<$0>>",
		type, kind, dtype_is_float(d) ? "1.0" : "1");
	_Alignas(8) char x[8 * 8] = {0}, y[16 * 8];
	u64 bits = 0;
	u32 programs = 200;
	arg_buffer(t, "x", x, 8 * bytes);
	arg_buffer(t, "y", y, 16 * bytes);
	arg_bits(t, 12);
	t->threads = 4;
	expect_ok(t, programs, 1, 1);
	for (size_t i = 0; i < 8; i++) {
		memcpy(&bits, x + i * bytes, bytes);
		double want = i == 7 ? programs * 5 : programs; /* elements 7 to 11; the rest is masked */
		u64 w = dtype_is_float(d) ? dtype_encode_float(d, want) : dtype_encode_int(d, (i64)want);
		if (d == DT_BF16 || d == DT_F16) /* adding 1 stops at 2^mantissa */
			w = dtype_encode_float(d, MIN(want, d == DT_BF16 ? 256 : 2048));
		assert_int_equal(bits, w);
	}
	memcpy(&bits, y + 15 * bytes, bytes); /* masked: poison */
	assert_true(dtype_is_float(d) ? isnan(dtype_decode_float(d, bits)) : bits & 1);
	test_close(t);
}

static void test_atomic_add(void **state)
{
	(void)state;
	check_atomic_add("i32", "add", 4, DT_I32);
	check_atomic_add("i64", "add", 8, DT_I64);
	check_atomic_add("f16", "fadd", 2, DT_F16);
	check_atomic_add("bf16", "fadd", 2, DT_BF16);
	check_atomic_add("f32", "fadd", 4, DT_F32);
	check_atomic_add("f64", "fadd", 8, DT_F64);
}

static i32 atomic_once(const char *kind, i32 old, i32 value)
{
	struct test *t = test_open_with("%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %v: i32",
		"%o = tt.atomic_rmw $0, relaxed, sys, %x, %v : (!tt.ptr<i32>, i32) -> i32\n"
		"tt.store %y, %o : !tt.ptr<i32>", kind);
	i32 x = old, y = 0;
	arg_buffer(t, "x", &x, 4);
	arg_buffer(t, "y", &y, 4);
	arg_bits(t, (u32)value);
	expect_ok(t, 1, 1, 1);
	assert_int_equal(y, old);
	test_close(t);
	return x;
}

static void test_atomic_kinds(void **state)
{
	(void)state;
	assert_int_equal(atomic_once("and", 12, 10), 8);
	assert_int_equal(atomic_once("or", 12, 10), 14);
	assert_int_equal(atomic_once("xor", 12, 10), 6);
	assert_int_equal(atomic_once("max", -5, 3), 3);
	assert_int_equal(atomic_once("min", -5, 3), -5);
	assert_int_equal(atomic_once("umax", -5, 3), -5);
	assert_int_equal(atomic_once("umin", -5, 3), 3);
	assert_int_equal(atomic_once("exch", -5, 3), 3);
	assert_int_equal(atomic_once("add", INT32_MAX, 1), INT32_MIN);
}

/* A spin lock made of compare-and-swap guards plain loads and stores. */
static void test_atomic_lock(void **state)
{
	(void)state;
	struct test *t = test_open("%lock: !tt.ptr<i32>, %x: !tt.ptr<i32>",
		"%zero = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n"
		"scf.while (%i = %one) : (i32) -> () {\n"
		"  %old = tt.atomic_cas acquire, gpu, %lock, %zero, %one : (!tt.ptr<i32>, i32, i32) -> i32\n"
		"  %busy = arith.cmpi eq, %old, %one : i32\n"
		"  scf.condition(%busy)\n"
		"} do {\n  scf.yield %one : i32\n}\n"
		"%v = tt.load %x : !tt.ptr<i32>\n"
		"%w = arith.addi %v, %one : i32\n"
		"tt.store %x, %w : !tt.ptr<i32>\n"
		"gpu.barrier\n"
		"%r = tt.atomic_rmw exch, release, gpu, %lock, %zero : (!tt.ptr<i32>, i32) -> i32");
	i32 lock = 0, x = 0;
	arg_buffer(t, "lock", &lock, 4);
	arg_buffer(t, "x", &x, 4);
	t->threads = 4;
	expect_ok(t, 20, 10, 5);
	assert_int_equal(x, 1000);
	assert_int_equal(lock, 0);
	test_close(t);
}

/* --- assertions and printing --------------------------------------------------------------------------------- */

static void test_assert(void **state)
{
	(void)state;
	struct test *t = test_open("%n: i32",
		"%i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>\n"
		"%s = tt.reshape %i : tensor<16xi32> -> tensor<4x4xi32>\n"
		"%ns = tt.splat %n : i32 -> tensor<4x4xi32>\n"
		"%m = arith.cmpi slt, %s, %ns : tensor<4x4xi32>\n"
		"tt.assert %m, \"index \\\"too\\\" big\" : tensor<4x4xi1>");
	arg_bits(t, 16);
	expect_ok(t, 2, 2, 2);
	t->args[0] = 9;
	expect_error(t, 1, 1, 1,
		     "k.ttir:6:1: error: device-side assertion failed: index \"too\" big (tile element [2, 1], program "
		     "(0, 0, 0))\n"
		     "    6 | tt.assert %m, \"index \\\"too\\\" big\" : tensor<4x4xi1>\n"
		     "      | ^~~~~~~~~\n");
	test_close(t);
	t = test_open("%n: i32", "%z = arith.constant 0 : i32\n%c = arith.cmpi sgt, %n, %z : i32\n"
		"llvm.intr.assume %c : i1");
	arg_bits(t, 1);
	expect_ok(t, 1, 1, 1);
	t->args[0] = 0;
	assert_false(test_run(t, 1, 1, 1));
	assert_non_null(strstr(t->error.at, "error: assumption is false (program (0, 0, 0))"));
	test_close(t);
}

/* The lowest failing program is reported, whatever the schedule. */
static void test_lowest_failure(void **state)
{
	(void)state;
	struct test *t = test_open("%n: i32",
		"%x = tt.get_program_id x : i32\n%y = tt.get_program_id y : i32\n%z = tt.get_program_id z : i32\n"
		"%nx = tt.get_num_programs x : i32\n%ny = tt.get_num_programs y : i32\n"
		"%a = arith.muli %z, %ny : i32\n%b = arith.addi %a, %y : i32\n%c = arith.muli %b, %nx : i32\n"
		"%id = arith.addi %c, %x : i32\n"
		"%ok = arith.cmpi slt, %id, %n : i32\n"
		"tt.assert %ok, \"\" : i1");
	arg_bits(t, 3 * 5 * 2 + 3 * 4 + 1);
	t->threads = 4;
	for (int k = 0; k < 200; k++) {
		assert_false(test_run(t, 3, 5, 7));
		assert_non_null(strstr(t->error.at, "error: device-side assertion failed (program (1, 4, 2))"));
	}
	test_close(t);
}

/* What the kernel prints on standard output. */
static char *printed(struct test *t, u32 x)
{
	static char text[4096];
	char path[] = "/tmp/test_interp_XXXXXX";
	int file = mkstemp(path), saved = dup(1);
	fflush(stdout);
	dup2(file, 1);
	bool ok = test_run(t, x, 1, 1);
	fflush(stdout);
	dup2(saved, 1);
	ssize_t n = pread(file, text, sizeof text - 1, 0);
	text[n] = 0;
	close(file);
	close(saved);
	unlink(path);
	assert_true(ok);
	return text;
}

static void test_print(void **state)
{
	(void)state;
	struct test *t = test_open("%n: i32",
		"%i = tt.make_range {start = -2 : i32, end = 2 : i32} : tensor<4xi32>\n"
		"%f = arith.sitofp %i : tensor<4xi32> to tensor<4xf16>\n"
		"%k = arith.constant dense<3.000000e-01> : tensor<4xf16>\n"
		"%g = arith.mulf %f, %k : tensor<4xf16>\n"
		"%c = arith.constant true\n"
		"tt.print \" x: \" {hex = false, isSigned = array<i32: 1, 0>} : %i, %g : tensor<4xi32>, tensor<4xf16>\n"
		"tt.print \" n: \" {hex = true, isSigned = array<i32: 1>} : %n : i32\n"
		"tt.print \" c: \" {hex = false, isSigned = array<i32: 0>} : %c : i1\n"
		"tt.print \" done\" {hex = false, isSigned = array<i32>}");
	arg_bits(t, 0xABC);
	assert_string_equal(printed(t, 1),
		"pid (0, 0, 0) idx (0) x: (operand 0) -2\npid (0, 0, 0) idx (1) x: (operand 0) -1\n"
		"pid (0, 0, 0) idx (2) x: (operand 0) 0\npid (0, 0, 0) idx (3) x: (operand 0) 1\n"
		"pid (0, 0, 0) idx (0) x: (operand 1) -0.600098\npid (0, 0, 0) idx (1) x: (operand 1) -0.300049\n"
		"pid (0, 0, 0) idx (2) x: (operand 1) 0.000000\npid (0, 0, 0) idx (3) x: (operand 1) 0.300049\n"
		"pid (0, 0, 0) idx () n: 0x00000abc\n"
		"pid (0, 0, 0) idx () c: 1\n"
		"pid (0, 0, 0) done\n");
	test_close(t);
	t = test_open("",
		"%i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>\n"
		"%j = tt.reshape %i : tensor<16xi32> -> tensor<16x1xi32>\n"
		"tt.print \" x: \" {hex = false, isSigned = array<i32: 1>} : %j : tensor<16x1xi32>");
	t->threads = 1;
	const char *text = printed(t, 2);
	assert_non_null(strstr(text, "pid (0, 0, 0) idx ( 3, 0) x: 3\npid (0, 0, 0) idx ( 4, 0) x: 4\n"));
	assert_non_null(strstr(text, "pid (1, 0, 0) idx (15, 0) x: 15\n"));
	test_close(t);
}

/* --- the grid ------------------------------------------------------------------------------------------------ */

static const char ids[] =
	"%x = tt.get_program_id x : i32\n%y = tt.get_program_id y : i32\n%z = tt.get_program_id z : i32\n"
	"%nx = tt.get_num_programs x : i32\n%ny = tt.get_num_programs y : i32\n%nz = tt.get_num_programs z : i32\n"
	"%a = arith.muli %z, %ny : i32\n%b = arith.addi %a, %y : i32\n%c = arith.muli %b, %nx : i32\n"
	"%id = arith.addi %c, %x : i32\n"
	"%p = tt.addptr %out, %id : !tt.ptr<i32>, i32\n"
	"%v = arith.muli %id, %nz : i32\n%w = arith.addi %v, %k : i32\n"
	"%old = tt.atomic_rmw add, relaxed, gpu, %p, %w : (!tt.ptr<i32>, i32) -> i32";

static void test_grid(void **state)
{
	(void)state;
	struct test *t = test_open("%out: !tt.ptr<i32>, %k: i32", ids);
	i32 out[3 * 5 * 7] = {0};
	arg_buffer(t, "out", out, sizeof out);
	arg_bits(t, 11);
	for (t->threads = 0; t->threads < 5; t->threads++)
		expect_ok(t, 3, 5, 7);
	for (int i = 0; i < 3 * 5 * 7; i++)
		assert_int_equal(out[i], 5 * (i * 7 + 11));
	expect_ok(t, 0, 5, 7);
	test_close(t);
}

struct runner {
	const struct interp_program *program;
	i32 out[1000];
	i32 k;
	bool ok;
};

static void *run_thread(void *arg)
{
	struct runner *r = arg;
	struct mem_range range = {"out", (char *)r->out, sizeof r->out};
	u64 args[] = {(u64)(uintptr_t)r->out, (u32)r->k};
	struct interp_launch l = {.args = args, .grid = {10, 10, 10}, .ranges = &range, .nranges = 1, .threads = 2};
	struct arena a = {0};
	struct strbuf error = {.arena = &a};
	r->ok = true;
	for (int k = 0; k < 20; k++)
		r->ok &= interp_run(r->program, &l, &error);
	l.grid[0] = 11; /* more programs than there is room for */
	r->ok &= !interp_run(r->program, &l, &error) && strstr(error.at, "program (10, 0, 9)");
	arena_free(&a);
	return NULL;
}

/* Several threads run one program at once, on memory of their own. */
static void test_concurrent_runs(void **state)
{
	(void)state;
	enum { THREADS = 6 };
	struct test *t = test_open("%out: !tt.ptr<i32>, %k: i32", ids);
	struct runner *r = calloc(THREADS, sizeof *r);
	pthread_t threads[THREADS];
	for (int k = 0; k < THREADS; k++) {
		r[k].program = t->program;
		r[k].k = k * 1000;
		assert_int_equal(pthread_create(&threads[k], NULL, run_thread, &r[k]), 0);
	}
	for (int k = 0; k < THREADS; k++)
		pthread_join(threads[k], NULL);
	for (int k = 0; k < THREADS; k++) {
		assert_true(r[k].ok);
		for (int i = 0; i < 100; i++)
			assert_int_equal(r[k].out[i] % 10, 0);
	}
	free(r);
	test_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load_store),
		cmocka_unit_test(test_out_of_bounds),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_null),
		cmocka_unit_test(test_open_memory),
		cmocka_unit_test(test_adjacent_buffers),
		cmocka_unit_test(test_store_error),
		cmocka_unit_test(test_poison),
		cmocka_unit_test(test_other),
		cmocka_unit_test(test_bool_bytes),
		cmocka_unit_test(test_atomic_add),
		cmocka_unit_test(test_atomic_kinds),
		cmocka_unit_test(test_atomic_lock),
		cmocka_unit_test(test_assert),
		cmocka_unit_test(test_lowest_failure),
		cmocka_unit_test(test_print),
		cmocka_unit_test(test_grid),
		cmocka_unit_test(test_concurrent_runs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

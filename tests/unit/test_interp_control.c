/* Control flow: loops, branches, and what is carried through them. */
#include "test_interp.h"

static i32 run_scalar(const char *body, i32 n, i32 m)
{
	struct test *t = test_open("%x: !tt.ptr<i32>, %n: i32, %m: i32", body);
	i32 x = -12345;
	arg_buffer(t, "x", &x, sizeof x);
	arg_bits(t, (u32)n);
	arg_bits(t, (u32)m);
	expect_ok(t, 1, 1, 1);
	test_close(t);
	return x;
}

static void test_for(void **state)
{
	(void)state;
	const char *sum = "%c0 = arith.constant 0 : i32\n%c3 = arith.constant 3 : i32\n"
			  "%s = scf.for %i = %n to %m step %c3 iter_args(%a = %c0) -> (i32) : i32 {\n"
			  "  %b = arith.addi %a, %i : i32\n  scf.yield %b : i32\n}\ntt.store %x, %s : !tt.ptr<i32>";
	assert_int_equal(run_scalar(sum, 0, 10), 0 + 3 + 6 + 9);
	assert_int_equal(run_scalar(sum, -4, 3), -4 - 1 + 2);
	assert_int_equal(run_scalar(sum, 5, 5), 0);
	assert_int_equal(run_scalar(sum, 5, -5), 0);
	/* two iterations: the index does not wrap around */
	assert_int_equal(run_scalar(sum, INT32_MAX - 4, INT32_MAX), -7);
	/* Fibonacci: iteration values trade places */
	const char *fib = "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
			  "%s:2 = scf.for %i = %n to %m step %c1 iter_args(%a = %c0, %b = %c1) -> (i32, i32) : i32 {\n"
			  "  %c = arith.addi %a, %b : i32\n  scf.yield %b, %c : i32, i32\n}\n"
			  "tt.store %x, %s#0 : !tt.ptr<i32>";
	assert_int_equal(run_scalar(fib, 0, 30), 832040);
	const char *swap =
		"%c1 = arith.constant 1 : i32\n%c0 = arith.constant 0 : i32\n"
		"%s:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %n, %b = %m, %c = "
		"%c0) -> (i32, i32, i32) : i32 {\n"
		"  scf.yield %b, %c, %a : i32, i32, i32\n}\ntt.store %x, %s#0 : !tt.ptr<i32>";
	assert_int_equal(run_scalar(swap, 3, 77), 3);
	assert_int_equal(run_scalar(swap, 4, 77), 77);
	assert_int_equal(run_scalar(swap, 5, 77), 0);
}

/* 64-bit bounds near the end of their range. */
static void test_for_i64(void **state)
{
	(void)state;
	struct test *t = test_open("%x: !tt.ptr<i64>, %n: i64, %m: i64, %k: i64",
		"%c0 = arith.constant 0 : i64\n%c1 = arith.constant 1 : i64\n"
		"%s = scf.for %i = %n to %m step %k iter_args(%a = %c0) -> (i64) : i64 {\n"
		"  %b = arith.addi %a, %c1 : i64\n  scf.yield %b : i64\n}\ntt.store %x, %s : !tt.ptr<i64>");
	i64 x = -1;
	arg_buffer(t, "x", &x, sizeof x);
	arg_bits(t, (u64)(INT64_MAX - 10));
	arg_bits(t, INT64_MAX);
	arg_bits(t, 4);
	expect_ok(t, 1, 1, 1);
	assert_int_equal(x, 3);
	t->args[3] = INT64_MAX;
	t->args[1] = (u64)INT64_MIN;
	expect_ok(t, 1, 1, 1);
	assert_int_equal(x, 3); /* INT64_MIN, -1, INT64_MAX - 1 */
	t->args[3] = 0;
	assert_false(test_run(t, 1, 1, 1));
	assert_non_null(strstr(t->error.at,
			       "k.ttir:4:6: error: loop step is not positive: it is 0 (program (0, 0, 0))"));
	t->args[3] = (u64)-2;
	assert_false(test_run(t, 1, 1, 1));
	assert_non_null(strstr(t->error.at, "it is -2"));
	test_close(t);
}

static void test_if_while(void **state)
{
	(void)state;
	const char *branch = "%c = arith.cmpi slt, %n, %m : i32\n"
			     "%s:2 = scf.if %c -> (i32, i32) {\n  %a = arith.subi %m, %n : i32\n"
			     "  scf.yield %a, %n : i32, i32\n} else {\n"
			     "  %b = arith.subi %n, %m : i32\n  scf.yield %b, %m : i32, i32\n}\n"
			     "%k = arith.constant 1000 : i32\n%l = arith.muli %s#0, %k : i32\n"
			     "%r = arith.addi %l, %s#1 : i32\n"
			     "scf.if %c {\n  tt.store %x, %r : !tt.ptr<i32>\n}\n"
			     "%t = arith.constant true\n%d = arith.xori %c, %t : i1\n"
			     "scf.if %d {\n  %q = arith.addi %r, %r : i32\n  tt.store %x, %q : !tt.ptr<i32>\n}\n";
	assert_int_equal(run_scalar(branch, 3, 10), 7003);
	assert_int_equal(run_scalar(branch, 10, 3), 14006);
	/* Collatz: the number of steps */
	const char *collatz = "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
	                      "%c2 = arith.constant 2 : i32\n%c3 = arith.constant 3 : i32\n"
			      "%s:2 = scf.while (%a = %n, %k = %c0) : (i32, i32) -> (i32, i32) {\n"
			      "  %go = arith.cmpi ne, %a, %c1 : i32\n  scf.condition(%go) %k, %a : i32, i32\n} do {\n"
			      "^bb0(%j: i32, %b: i32):\n"
			      "  %odd = arith.andi %b, %c1 : i32\n  %is = arith.cmpi ne, %odd, %c0 : i32\n"
			      "  %d = scf.if %is -> (i32) {\n    %e = arith.muli %b, %c3 : i32\n"
			      "    %f = arith.addi %e, %c1 : i32\n    scf.yield %f : i32\n"
			      "  } else {\n    %g = arith.divsi %b, %c2 : i32\n    scf.yield %g : i32\n  }\n"
			      "  %h = arith.addi %j, %c1 : i32\n  scf.yield %d, %h : i32, i32\n}\n"
			      "%m1000 = arith.constant 1000 : i32\n%u = arith.muli %s#0, %m1000 : i32\n"
			      "%v = arith.addi %u, %s#1 : i32\n"
			      "tt.store %x, %v : !tt.ptr<i32>";
	assert_int_equal(run_scalar(collatz, 27, 0), 111001);
	assert_int_equal(run_scalar(collatz, 1, 0), 1);
}

/* A program that waits for another one ends when that one fails. */
static void test_waiting_stops(void **state)
{
	(void)state;
	struct test *t = test_open("%x: !tt.ptr<i32>",
		"%id = tt.get_program_id x : i32\n%c0 = arith.constant 0 : i32\n"
		"%first = arith.cmpi eq, %id, %c0 : i32\n"
		"scf.if %first {\n"
		"  scf.while (%a = %c0) : (i32) -> () {\n    %v = tt.load %x {isVolatile = true} : !tt.ptr<i32>\n"
		"    %go = arith.cmpi eq, %v, %c0 : i32\n    scf.condition(%go)\n  } do {\n"
		"    scf.yield %c0 : i32\n  }\n"
		"}\ntt.assert %first, \"later\" : i1");
	i32 x = 0;
	arg_buffer(t, "x", &x, sizeof x);
	t->threads = 2;
	assert_false(test_run(t, 2, 1, 1));
	assert_non_null(strstr(t->error.at, "later (program (1, 0, 0))"));
	test_close(t);
}

/* An accumulator of a dot and pointers, carried: what real matmuls do. */
static void test_carried_tiles(void **state)
{
	(void)state;
	struct test *t = test_open(
		"%a: !tt.ptr<f32>, %d: !tt.ptr<f32>, %n: i32",
		"%r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>\n"
		"%as = tt.splat %a : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>\n"
		"%p0 = tt.addptr %as, %r : tensor<256x!tt.ptr<f32>>, tensor<256xi32>\n"
		"%z = arith.constant dense<0.0> : tensor<16x16xf32>\n"
		"%step = arith.constant dense<256> : tensor<256xi32>\n"
		"%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
		"%s:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z, %p = %p0, %old = %z) -> "
		"(tensor<16x16xf32>, tensor<256x!tt.ptr<f32>>, tensor<16x16xf32>) : i32 {\n"
		"  %v = tt.load %p : tensor<256x!tt.ptr<f32>>\n"
		"  %t = tt.reshape %v : tensor<256xf32> -> tensor<16x16xf32>\n"
		"  %q = tt.addptr %p, %step : tensor<256x!tt.ptr<f32>>, tensor<256xi32>\n"
		"  %new = tt.dot %t, %t, %acc, inputPrecision = ieee : tensor<16x16xf32> * "
		"tensor<16x16xf32> -> tensor<16x16xf32>\n"
		"  scf.yield %new, %q, %acc : tensor<16x16xf32>, tensor<256x!tt.ptr<f32>>, tensor<16x16xf32>\n}\n"
		"%f = arith.subf %s#0, %s#2 : tensor<16x16xf32>\n"
		"%ds = tt.splat %d : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>\n"
		"%dp = tt.addptr %ds, %r : tensor<256x!tt.ptr<f32>>, tensor<256xi32>\n"
		"%g = tt.reshape %f : tensor<16x16xf32> -> tensor<256xf32>\n"
		"tt.store %dp, %g : tensor<256x!tt.ptr<f32>>");
	float a[3 * 256], d[256];
	for (int i = 0; i < 3 * 256; i++)
		a[i] = (float)(test_random() % 16); /* sums are exact */
	arg_buffer(t, "a", a, sizeof a);
	arg_buffer(t, "d", d, sizeof d);
	arg_bits(t, 3);
	expect_ok(t, 1, 1, 1);
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 16; j++) {
			float sum = 0;
			for (int k = 0; k < 16; k++)
				sum += a[512 + i * 16 + k] * a[512 + k * 16 + j];
			assert_true(d[i * 16 + j] == sum);
		}
	test_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_for),
		cmocka_unit_test(test_for_i64),
		cmocka_unit_test(test_if_while),
		cmocka_unit_test(test_waiting_stops),
		cmocka_unit_test(test_carried_tiles),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Operations on whole tiles: shapes, reductions, scans and dots, against plain loops. */
#include "test_interp.h"

#include <math.h>

/* Pointers to a contiguous array: tile $N of N elements from %base. In test_open_with, $0 is the element type. */
#define FLAT(p, base, n) \
	"%" p "i = tt.make_range {start = 0 : i32, end = " n " : i32} : tensor<" n "xi32>\n" \
	"%" p "s = tt.splat %" base " : !tt.ptr<$0> -> tensor<" n "x!tt.ptr<$0>>\n" \
	"%" p " = tt.addptr %" p "s, %" p "i : tensor<" n "x!tt.ptr<$0>>, tensor<" n "xi32>\n"
#define LOAD(v, p, n) "%" v " = tt.load %" p " : tensor<" n "x!tt.ptr<$0>>\n"
#define STORE(v, p, n) "tt.store %" p ", %" v " : tensor<" n "x!tt.ptr<$0>>\n"

/* --- shapes -------------------------------------------------------------------------------------------------- */

static const struct {
	const char *type;
	size_t bytes;
} elements[] = {{"i8", 1}, {"f16", 2}, {"i32", 4}, {"!tt.ptr<f32>", 8}};

/* Runs `body` on 64 elements at %x, for each element size; y[k] must be x[from(k)] for n elements. */
static void check_shape(const char *body, int n, int (*from)(int k))
{
	for (u32 e = 0; e < ARRAY_LEN(elements); e++) {
		size_t bytes = elements[e].bytes;
		struct test *t = test_open_with("%x: !tt.ptr<$0>, %y: !tt.ptr<$0>", body, elements[e].type);
		_Alignas(8) u8 x[64 * 8], y[256 * 8 + 8];
		for (u32 i = 0; i < sizeof x; i++)
			x[i] = (u8)test_random();
		memset(y, 0xEE, sizeof y);
		arg_buffer(t, "x", x, 64 * bytes);
		arg_buffer(t, "y", y, 256 * bytes);
		expect_ok(t, 1, 1, 1);
		for (int k = 0; k < n; k++)
			assert_memory_equal(y + (size_t)k * bytes, x + (size_t)from(k) * bytes, bytes);
		assert_int_equal(y[(size_t)n * bytes], 0xEE);
		test_close(t);
	}
}

static int transposed_2d(int k) { return k % 4 * 16 + k / 4; }
/* order [2, 0, 1] of 4×2×8: result 8×4×2 */
static int transposed_3d(int k) { return k / 2 % 4 * 16 + k % 2 * 8 + k / 8; }
static int unchanged(int k) { return k; }
static int broadcast_rows(int k) { return k % 16; }
static int broadcast_columns(int k) { return k / 16; }
static int broadcast_middle(int k) { return k / 32 * 4 + k % 4; }
static int joined(int k) { return k / 2 + k % 2 * 32; }
static int split_apart(int k) { return k % 32 * 2 + k / 32; }
static int first(int k) { return k * 0; }

static void test_shapes(void **state)
{
	(void)state;
	check_shape(FLAT("p", "x", "64") FLAT("q", "y", "64") LOAD("v", "p", "64")
		"%a = tt.reshape %v : tensor<64x$0> -> tensor<4x16x$0>\n"
		"%b = tt.trans %a {order = array<i32: 1, 0>} : tensor<4x16x$0> -> tensor<16x4x$0>\n"
		"%c = tt.reshape %b : tensor<16x4x$0> -> tensor<64x$0>\n" STORE("c", "q", "64"), 64, transposed_2d);
	check_shape(FLAT("p", "x", "64") FLAT("q", "y", "64") LOAD("v", "p", "64")
		"%a = tt.reshape %v : tensor<64x$0> -> tensor<4x2x8x$0>\n"
		"%b = tt.trans %a {order = array<i32: 2, 0, 1>} : tensor<4x2x8x$0> -> tensor<8x4x2x$0>\n"
		"%c = tt.reshape %b : tensor<8x4x2x$0> -> tensor<64x$0>\n" STORE("c", "q", "64"), 64, transposed_3d);
	check_shape(FLAT("p", "x", "64") FLAT("q", "y", "64") LOAD("v", "p", "64")
		"%a = tt.expand_dims %v {axis = 0 : i32} : tensor<64x$0> -> tensor<1x64x$0>\n"
		"%b = tt.trans %a {order = array<i32: 1, 0>} : tensor<1x64x$0> -> tensor<64x1x$0>\n"
		"%c = tt.reshape %b allow_reorder : tensor<64x1x$0> -> tensor<64x$0>\n" STORE("c", "q", "64"), 64,
		unchanged);
	check_shape(FLAT("p", "x", "16") FLAT("q", "y", "256") LOAD("v", "p", "16")
		"%a = tt.expand_dims %v {axis = 0 : i32} : tensor<16x$0> -> tensor<1x16x$0>\n"
		"%b = tt.broadcast %a : tensor<1x16x$0> -> tensor<16x16x$0>\n"
		"%c = tt.reshape %b : tensor<16x16x$0> -> tensor<256x$0>\n" STORE("c", "q", "256"), 256,
		broadcast_rows);
	check_shape(FLAT("p", "x", "16") FLAT("q", "y", "256") LOAD("v", "p", "16")
		"%a = tt.expand_dims %v {axis = 1 : i32} : tensor<16x$0> -> tensor<16x1x$0>\n"
		"%b = tt.broadcast %a : tensor<16x1x$0> -> tensor<16x16x$0>\n"
		"%c = tt.reshape %b : tensor<16x16x$0> -> tensor<256x$0>\n" STORE("c", "q", "256"), 256,
		broadcast_columns);
	check_shape(FLAT("p", "x", "16") FLAT("q", "y", "128") LOAD("v", "p", "16")
		"%a = tt.reshape %v : tensor<16x$0> -> tensor<4x1x4x$0>\n"
		"%b = tt.broadcast %a : tensor<4x1x4x$0> -> tensor<4x8x4x$0>\n"
		"%c = tt.reshape %b : tensor<4x8x4x$0> -> tensor<128x$0>\n" STORE("c", "q", "128"), 128,
		broadcast_middle);
}

static void test_join_split(void **state)
{
	(void)state;
	check_shape(FLAT("p", "x", "32") FLAT("q", "y", "64") LOAD("v", "p", "32")
		"%k = arith.constant dense<32> : tensor<32xi32>\n"
		"%p2 = tt.addptr %p, %k : tensor<32x!tt.ptr<$0>>, tensor<32xi32>\n" LOAD("w", "p2", "32")
		"%a = tt.join %v, %w : tensor<32x$0> -> tensor<32x2x$0>\n"
		"%c = tt.reshape %a : tensor<32x2x$0> -> tensor<64x$0>\n" STORE("c", "q", "64"), 64, joined);
	check_shape(FLAT("p", "x", "64") FLAT("q", "y", "32") LOAD("v", "p", "64")
		"%a = tt.reshape %v : tensor<64x$0> -> tensor<8x4x2x$0>\n"
		"%b, %c = tt.split %a : tensor<8x4x2x$0> -> tensor<8x4x$0>\n"
		"%d = tt.reshape %b : tensor<8x4x$0> -> tensor<32x$0>\n"
		"%e = tt.reshape %c : tensor<8x4x$0> -> tensor<32x$0>\n"
		"%k = arith.constant dense<32> : tensor<32xi32>\n"
		"%q2 = tt.addptr %q, %k : tensor<32x!tt.ptr<$0>>, tensor<32xi32>\n" STORE("d", "q", "32")
		STORE("e", "q2", "32"), 64, split_apart);
	check_shape("%v = tt.load %x : !tt.ptr<$0>\n" FLAT("q", "y", "4")
		"%a = tt.splat %v : $0 -> tensor<1x1x$0>\n"
		"%b = tt.unsplat %a : tensor<1x1x$0>\n"
		"%c = tt.splat %b : $0 -> tensor<4x$0>\n" STORE("c", "q", "4"), 4, first);
}

/* --- reductions ---------------------------------------------------------------------------------------------- */

#define REGION2(body) "({\n^bb0(%a: $0, %b: $0):\n" body "\n  tt.reduce.return %r : $0\n})"

/* Reduces a 4×8×16 tile of f32 along `axis` with addf: the same tree in float, bit for bit. */
static void check_sum(int axis)
{
	static const char *const types[] = {"8x16", "4x16", "4x8"}, *const counts[] = {"128", "64", "32"},
				 *const axes[] = {"0", "1", "2"};
	struct test *t = test_open_with("%x: !tt.ptr<$0>, %y: !tt.ptr<$0>",
		FLAT("p", "x", "512") FLAT("q", "y", "$2") LOAD("v", "p", "512")
		"%u = tt.reshape %v : tensor<512x$0> -> tensor<4x8x16x$0>\n"
		"%s = \"tt.reduce\"(%u) <{axis = $3 : i32}> " REGION2("%r = arith.addf %a, %b : $0")
		" : (tensor<4x8x16x$0>) -> tensor<$1x$0>\n"
		"%w = tt.reshape %s : tensor<$1x$0> -> tensor<$2x$0>\n" STORE("w", "q", "$2"),
		"f32", types[axis], counts[axis], axes[axis]);
	static const int shape[] = {4, 8, 16};
	int n = shape[axis], inner = axis == 2 ? 1 : axis == 1 ? 16 : 128;
	float x[512], y[512];
	for (int i = 0; i < 512; i++)
		x[i] = random_float(), y[i] = NAN;
	arg_buffer(t, "x", x, sizeof x);
	arg_buffer(t, "y", y, sizeof y);
	expect_ok(t, 1, 1, 1);
	for (int k = 0; k < 512 / n; k++) {
		float tree[16];
		for (int i = 0; i < n; i++)
			tree[i] = x[k / inner * inner * n + k % inner + i * inner];
		for (int half = n / 2; half; half /= 2)
			for (int i = 0; i < half; i++)
				tree[i] = tree[i] + tree[i + half];
		assert_true(y[k] == tree[0]);
	}
	assert_true(isnan(y[512 / n]));
	test_close(t);
}

static void test_reduce(void **state)
{
	(void)state;
	for (int axis = 0; axis < 3; axis++)
		check_sum(axis);
}

/* To a scalar, in every type; the region sees operands in order, so a - b tells them apart. */
static void check_scalar_reduce(const char *type, const char *op, enum dtype d)
{
	struct test *t = test_open_with("%x: !tt.ptr<$0>, %y: !tt.ptr<$0>",
		FLAT("p", "x", "8") LOAD("v", "p", "8")
		"%s = \"tt.reduce\"(%v) <{axis = 0 : i32}> "
		REGION2("%r = arith.$1 %a, %b : $0") " : (tensor<8x$0>) -> $0\n"
		"tt.store %y, %s : !tt.ptr<$0>", type, op);
	_Alignas(8) u8 x[8 * 8], y[8] = {0};
	static const int values[] = {40, 3, 7, 1, 9, 2, 5, 6};
	u64 bits = 0;
	size_t bytes = (size_t)dtype_bytes(d);
	for (int i = 0; i < 8; i++) {
		bits = dtype_is_float(d) ? dtype_encode_float(d, values[i]) : dtype_encode_int(d, values[i]);
		memcpy(x + (size_t)i * bytes, &bits, bytes);
	}
	arg_buffer(t, "x", x, 8 * bytes);
	arg_buffer(t, "y", y, bytes);
	expect_ok(t, 1, 1, 1);
	memcpy(&bits, y, bytes);
	int want = ((40 - 9) - (7 - 5)) - ((3 - 2) - (1 - 6)); /* 31 - 2 - (1 + 5) = 23 */
	assert_int_equal(bits, dtype_is_float(d) ? dtype_encode_float(d, want) : dtype_encode_int(d, want));
	test_close(t);
}

static void test_reduce_types(void **state)
{
	(void)state;
	check_scalar_reduce("i8", "subi", DT_I8);
	check_scalar_reduce("i16", "subi", DT_I16);
	check_scalar_reduce("i32", "subi", DT_I32);
	check_scalar_reduce("i64", "subi", DT_I64);
	check_scalar_reduce("f16", "subf", DT_F16);
	check_scalar_reduce("bf16", "subf", DT_BF16);
	check_scalar_reduce("f32", "subf", DT_F32);
	check_scalar_reduce("f64", "subf", DT_F64);
}

/* Value and index of the maximum along an axis, ties to the smaller index. `$1` is the body that picks. */
static void check_argmax(const char *pick)
{
	struct test *t = test_open_with("%x: !tt.ptr<$0>, %y: !tt.ptr<$0>, %j: !tt.ptr<i32>, %zero: i32",
		FLAT("p", "x", "512") FLAT("q", "y", "32") LOAD("v", "p", "512")
		"%u = tt.reshape %v : tensor<512x$0> -> tensor<32x16x$0>\n"
		"%i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>\n"
		"%i1 = tt.expand_dims %i {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>\n"
		"%i2 = tt.broadcast %i1 : tensor<1x16xi32> -> tensor<32x16xi32>\n"
		"%m:2 = \"tt.reduce\"(%u, %i2) <{axis = 1 : i32}> ({\n"
		"^bb0(%va: $0, %ia: i32, %vb: $0, %ib: i32):\n$1"
		"  tt.reduce.return %rv, %ri : $0, i32\n"
		"}) : (tensor<32x16x$0>, tensor<32x16xi32>) -> (tensor<32x$0>, tensor<32xi32>)\n"
		STORE("m#0", "q", "32")
		"%js = tt.splat %j : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>\n"
		"%jp = tt.addptr %js, %qi : tensor<32x!tt.ptr<i32>>, tensor<32xi32>\n"
		"tt.store %jp, %m#1 : tensor<32x!tt.ptr<i32>>", "f32", pick);
	float x[512], y[32];
	i32 j[32];
	for (int i = 0; i < 512; i++)
		x[i] = (float)(test_random() % 6);
	arg_buffer(t, "x", x, sizeof x);
	arg_buffer(t, "y", y, sizeof y);
	arg_buffer(t, "j", j, sizeof j);
	arg_bits(t, 0);
	expect_ok(t, 1, 1, 1);
	for (int k = 0; k < 32; k++) {
		int best = 0;
		for (int i = 1; i < 16; i++)
			best = x[k * 16 + i] > x[k * 16 + best] ? i : best;
		assert_int_equal(j[k], best);
		assert_true(y[k] == x[k * 16 + best]);
	}
	test_close(t);
}

static void test_argmax(void **state)
{
	(void)state;
	const char *compare = "  %gt = arith.cmpf ogt, %va, %vb : f32\n  %eq = arith.cmpf oeq, %va, %vb : f32\n"
			      "  %lt = arith.cmpi slt, %ia, %ib : i32\n  %tie = arith.andi %eq, %lt : i1\n"
			      "  %take = arith.ori %gt, %tie : i1\n";
	char text[2048];
	snprintf(text, sizeof text, "%s  %%rv = arith.select %%take, %%va, %%vb : f32\n"
		"  %%ri = arith.select %%take, %%ia, %%ib : i32\n", compare);
	check_argmax(text);
	/* captures a scalar and constants from outside */
	snprintf(text, sizeof text, "%s  %%e = arith.extui %%take : i1 to i32\n"
		 "  %%pp = arith.cmpi ne, %%e, %%zero : i32\n"
		 "  %%rv = arith.select %%pp, %%va, %%vb : f32\n  %%ri0 = arith.select %%pp, %%ia, %%ib : i32\n"
		 "  %%ri = arith.addi %%ri0, %%zero : i32\n", compare);
	check_argmax(text);
	/* with control flow: one pair at a time */
	snprintf(text, sizeof text, "%s  %%rv, %%ri = scf.if %%take -> (f32, i32) {\n"
		"    scf.yield %%va, %%ia : f32, i32\n  } else {\n"
		 "    scf.yield %%vb, %%ib : f32, i32\n  }\n", compare);
	check_argmax(text);
}

/* A region that returns its arguments, crossed over. */
static void test_crossed_region(void **state)
{
	(void)state;
	struct test *t = test_open_with("%x: !tt.ptr<$0>, %y: !tt.ptr<$0>",
		FLAT("p", "x", "8") LOAD("v", "p", "8") "%w = arith.addi %v, %v : tensor<8xi32>\n"
		"%m:2 = \"tt.reduce\"(%v, %w) <{axis = 0 : i32}> ({\n^bb0(%va: i32, %wa: i32, %vb: i32, %wb: i32):\n"
		"  tt.reduce.return %wb, %va : i32, i32\n}) : (tensor<8xi32>, tensor<8xi32>) -> (i32, i32)\n"
		"%one = arith.constant 1 : i32\n%y1 = tt.addptr %y, %one : !tt.ptr<i32>, i32\n"
		"tt.store %y, %m#0 : !tt.ptr<i32>\ntt.store %y1, %m#1 : !tt.ptr<i32>", "i32");
	i32 x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[2];
	arg_buffer(t, "x", x, sizeof x);
	arg_buffer(t, "y", y, sizeof y);
	expect_ok(t, 1, 1, 1);
	i32 v[8], w[8];
	for (int i = 0; i < 8; i++)
		v[i] = x[i], w[i] = 2 * x[i];
	for (int half = 4; half; half /= 2)
		for (int i = 0; i < half; i++) {
			i32 a = w[i + half], b = v[i];
			v[i] = a, w[i] = b;
		}
	assert_int_equal(y[0], v[0]);
	assert_int_equal(y[1], w[0]);
	test_close(t);
}

/* --- scans --------------------------------------------------------------------------------------------------- */

/* 2·before + now, along each axis of 4×8×4, both ways. */
static void check_scan(int axis, bool reverse)
{
	static const char *const axes[] = {"0", "1", "2"};
	struct test *t = test_open_with("%x: !tt.ptr<$0>, %y: !tt.ptr<$0>",
		FLAT("p", "x", "128") FLAT("q", "y", "128") LOAD("v", "p", "128")
		"%u = tt.reshape %v : tensor<128x$0> -> tensor<4x8x4x$0>\n"
		"%s = \"tt.scan\"(%u) <{axis = $1 : i32, reverse = $2}> ({\n^bb0(%a: $0, %b: $0):\n"
		"  %r1 = arith.addi %a, %a : $0\n  %r = arith.addi %r1, %b : $0\n  tt.scan.return %r : $0\n"
		"}) : (tensor<4x8x4x$0>) -> tensor<4x8x4x$0>\n"
		"%w = tt.reshape %s : tensor<4x8x4x$0> -> tensor<128x$0>\n" STORE("w", "q", "128"),
		"i32", axes[axis], reverse ? "true" : "false");
	static const int shape[] = {4, 8, 4};
	int n = shape[axis], inner = axis == 2 ? 1 : axis == 1 ? 4 : 32;
	i32 x[128], y[128];
	for (int i = 0; i < 128; i++)
		x[i] = (i32)(test_random() % 1000), y[i] = -1;
	arg_buffer(t, "x", x, sizeof x);
	arg_buffer(t, "y", y, sizeof y);
	expect_ok(t, 1, 1, 1);
	for (int k = 0; k < 128 / n; k++) {
		i32 sum = 0;
		for (int i = 0; i < n; i++) {
			int at = k / inner * inner * n + k % inner + (reverse ? n - 1 - i : i) * inner;
			sum = i ? 2 * sum + x[at] : x[at];
			assert_int_equal(y[at], sum);
		}
	}
	test_close(t);
}

static void test_scan(void **state)
{
	(void)state;
	for (int axis = 0; axis < 3; axis++) {
		check_scan(axis, false);
		check_scan(axis, true);
	}
}

/* --- dots ---------------------------------------------------------------------------------------------------- */

struct dot {
	const char *type, *acc, *precision;
	enum dtype d, c;
};

/* What an operand counts as. */
static double operand_value(const struct dot *w, u64 bits)
{
	double x = dtype_is_float(w->d) ? dtype_decode_float(w->d, bits) : (double)dtype_decode_int(w->d, bits);
	return w->d == DT_F32 && !strcmp(w->precision, "tf32") ? (double)fp_truncate_tf32((float)x) : x;
}

static u64 element(const u8 *base, int i, enum dtype d)
{
	u64 bits = 0;
	memcpy(&bits, base + i * dtype_bytes(d), (size_t)dtype_bytes(d));
	return bits;
}

static void put(u8 *base, int i, enum dtype d)
{
	u64 bits = dtype_is_float(d) ? dtype_encode_float(d, random_float()) : dtype_encode_int(d, (i32)test_random());
	memcpy(base + i * dtype_bytes(d), &bits, (size_t)dtype_bytes(d));
}

static const char *decimal(struct test *t, int n)
{
	return arena_printf(&t->errors, "%d", n);
}

/* Element (i, j) of A·B + C in double, and the sum of magnitudes; integers are exact modulo 2^64. */
static double dot_reference(const struct dot *w, const u8 *a, const u8 *b, const u8 *c, int at_a, int at_b, int at_c,
			    int n, int k, double *size, u64 *exact)
{
	double sum = dtype_is_float(w->c) ? dtype_decode_float(w->c, element(c, at_c, w->c)) : 0;
	*size = fabs(sum);
	*exact = element(c, at_c, w->c);
	for (int x = 0; x < k; x++) {
		u64 p = element(a, at_a + x, w->d), q = element(b, at_b + x * n, w->d);
		double product = operand_value(w, p) * operand_value(w, q);
		sum += product;
		*size += fabs(product);
		*exact += dtype_is_int(w->d) ? (u64)dtype_decode_int(w->d, p) * (u64)dtype_decode_int(w->d, q) : 0;
	}
	return sum;
}

static void check_dot(const struct dot *w, int batch, int m, int n, int k)
{
	struct test names = {0};
	const char *pre = batch ? arena_printf(&names.errors, "%dx", batch) : "";
	const char *na = decimal(&names, MAX(batch, 1) * m * k), *nb = decimal(&names, MAX(batch, 1) * k * n),
		   *nc = decimal(&names, MAX(batch, 1) * m * n);
	const char *ta = arena_printf(&names.errors, "tensor<%s%dx%dx%s>", pre, m, k, w->type);
	const char *tb = arena_printf(&names.errors, "tensor<%s%dx%dx%s>", pre, k, n, w->type);
	const char *tc = arena_printf(&names.errors, "tensor<%s%dx%dx%s>", pre, m, n, w->acc);
	struct test *t = test_open_with("%a: !tt.ptr<$0>, %b: !tt.ptr<$0>, %c: !tt.ptr<$4>, %d: !tt.ptr<$4>",
		FLAT("p", "a", "$1") FLAT("q", "b", "$2") LOAD("va", "p", "$1") LOAD("vb", "q", "$2")
		"%ci = tt.make_range {start = 0 : i32, end = $3 : i32} : tensor<$3xi32>\n"
		"%cs = tt.splat %c : !tt.ptr<$4> -> tensor<$3x!tt.ptr<$4>>\n"
		"%ds = tt.splat %d : !tt.ptr<$4> -> tensor<$3x!tt.ptr<$4>>\n"
		"%cp = tt.addptr %cs, %ci : tensor<$3x!tt.ptr<$4>>, tensor<$3xi32>\n"
		"%dp = tt.addptr %ds, %ci : tensor<$3x!tt.ptr<$4>>, tensor<$3xi32>\n"
		"%vc = tt.load %cp : tensor<$3x!tt.ptr<$4>>\n"
		"%ta = tt.reshape %va : tensor<$1x$0> -> $5\n%tb = tt.reshape %vb : tensor<$2x$0> -> $6\n"
		"%tc = tt.reshape %vc : tensor<$3x$4> -> $7\n"
		"%r = tt.dot %ta, %tb, %tc, inputPrecision = $8 : $5 * $6 -> $7\n"
		"%vr = tt.reshape %r : $7 -> tensor<$3x$4>\n"
		"tt.store %dp, %vr : tensor<$3x!tt.ptr<$4>>",
		w->type, na, nb, nc, w->acc, ta, tb, tc, w->precision);
	static _Alignas(8) u8 a[16384 * 8], b[16384 * 8], c[16384 * 8], d[16384 * 8];
	for (int i = 0; i < MAX(batch, 1) * m * k; i++)
		put(a, i, w->d);
	for (int i = 0; i < MAX(batch, 1) * k * n; i++)
		put(b, i, w->d);
	for (int i = 0; i < MAX(batch, 1) * m * n; i++)
		put(c, i, w->c);
	memset(d, 0xEE, sizeof d);
	arg_buffer(t, "a", a, sizeof a);
	arg_buffer(t, "b", b, sizeof b);
	arg_buffer(t, "c", c, sizeof c);
	arg_buffer(t, "d", d, sizeof d);
	expect_ok(t, 1, 1, 1);
	/* relative to the sum of magnitudes: one rounding of 2^-24 per step (2^-53 for f64), and the result's own */
	double eps = w->c == DT_F64 || w->d == DT_F64 ? 0x1p-53 : 0x1p-24;
	double last = w->c == DT_F16 ? 0x1p-11 : w->c == DT_BF16 ? 0x1p-8 : 0;
	for (int i = 0; i < MAX(batch, 1) * m * n; i++) {
		int x = i / (m * n);
		double size;
		u64 exact, got = element(d, i, w->c);
		double want =
			dot_reference(w, a, b, c, x * m * k + i / n % m * k, x * k * n + i % n, i, n, k, &size, &exact);
		if (dtype_is_int(w->c))
			assert_int_equal(got, dtype_encode_int(w->c, (i64)exact));
		else if (!(fabs(dtype_decode_float(w->c, got) - want) <=
			   size * eps * (k + 1) + fabs(want) * last + 0x1p-24 * (last > 0)))
			fail_msg("%s to %s (%s), %d %d×%d×%d: element %d is %g, not %g", w->type, w->acc, w->precision,
				 batch, m, n, k, i, dtype_decode_float(w->c, got), want);
	}
	assert_int_equal(d[MAX(batch, 1) * m * n * dtype_bytes(w->c)], 0xEE);
	arena_free(&names.errors);
	test_close(t);
}

static void test_dot(void **state)
{
	(void)state;
	static const struct dot types[] = {
		{"f16", "f32", "ieee", DT_F16, DT_F32},	      {"f16", "f16", "ieee", DT_F16, DT_F16},
		{"bf16", "f32", "tf32", DT_BF16, DT_F32},     {"bf16", "bf16", "ieee", DT_BF16, DT_BF16},
		{"f8E4M3FN", "f32", "ieee", DT_E4M3, DT_F32}, {"f8E5M2", "f32", "ieee", DT_E5M2, DT_F32},
		{"f8E5M2", "f16", "ieee", DT_E5M2, DT_F16},   {"f32", "f32", "ieee", DT_F32, DT_F32},
		{"f32", "f32", "tf32", DT_F32, DT_F32},	      {"f32", "f32", "tf32x3", DT_F32, DT_F32},
		{"f64", "f64", "ieee", DT_F64, DT_F64},	      {"f16", "f64", "ieee", DT_F16, DT_F64},
		{"f32", "f64", "tf32", DT_F32, DT_F64},	      {"i8", "i32", "ieee", DT_I8, DT_I32},
		{"i16", "i32", "ieee", DT_I16, DT_I32},	      {"i32", "i32", "ieee", DT_I32, DT_I32},
		{"i8", "i64", "ieee", DT_I8, DT_I64},	      {"i64", "i64", "ieee", DT_I64, DT_I64},
		{"i8", "i16", "ieee", DT_I8, DT_I16},	      {"i64", "i32", "ieee", DT_I64, DT_I32},
	};
	static const int sizes[][4] = {{0, 16, 16, 16}, {0, 64, 32, 128}, {0, 1, 8, 4}, {0, 2, 4, 8}, {0, 4, 1, 2},
				       {4, 8, 16, 32},  {2, 1, 2, 1}};
	for (u32 i = 0; i < ARRAY_LEN(types); i++)
		for (u32 k = 0; k < ARRAY_LEN(sizes); k++)
			check_dot(&types[i], sizes[k][0], sizes[k][1], sizes[k][2], sizes[k][3]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_join_split),
		cmocka_unit_test(test_reduce),
		cmocka_unit_test(test_reduce_types),
		cmocka_unit_test(test_argmax),
		cmocka_unit_test(test_crossed_region),
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_dot),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

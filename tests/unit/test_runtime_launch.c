/* Launching on the interpreter through the public API, against plain C in double precision. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "fixture.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ARGS(...) (tl_arg[]){__VA_ARGS__}, sizeof((tl_arg[]){__VA_ARGS__}) / sizeof(tl_arg)

static const char source[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\n"
	"def offset(x, y, i, j):\n"
	"    tl.store(x + i, tl.load(y + j))\n\n"
	"@triton.jit\n"
	"def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):\n"
	"    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
	"    m = i < n\n"
	"    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=m) + tl.load(y_ptr + i, mask=m), mask=m)\n\n"
	"@triton.jit\n"
	"def unmasked(x_ptr, out_ptr, BLOCK: tl.constexpr):\n"
	"    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
	"    tl.store(out_ptr + i, tl.load(x_ptr + i))\n\n"
	"@triton.jit\n"
	"def softmax_kernel(out_ptr, in_ptr, in_stride, out_stride, n_cols, BLOCK: tl.constexpr):\n"
	"    row = tl.program_id(0)\n"
	"    j = tl.arange(0, BLOCK)\n"
	"    x = tl.load(in_ptr + row * in_stride + j, mask=j < n_cols, other=-float('inf'))\n"
	"    x = x - tl.max(x, axis=0)\n"
	"    e = tl.exp(x)\n"
	"    tl.store(out_ptr + row * out_stride + j, e / tl.sum(e, axis=0), mask=j < n_cols)\n\n"
	"@triton.jit\n"
	"def scalars(out, a, b, c, d, e, f, g=None):\n"
	"    tl.store(out, a)\n    tl.store(out + 1, b)\n    tl.store(out + 2, c)\n"
	"    tl.store(out + 3, d)\n    tl.store(out + 4, e)\n    tl.store(out + 5, f)\n"
	"    if g is not None:\n        tl.store(out + 6, tl.load(g))\n\n"
	"@triton.jit\n"
	"def axpy(x, y, n, s: tl.constexpr, DTYPE: tl.constexpr, OP: tl.constexpr, BLOCK: tl.constexpr = 64):\n"
	"    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
	"    v = tl.load(x + i, mask=i < n).to(DTYPE) * s\n"
	"    if OP == \"relu\":\n        v = tl.maximum(v, 0)\n"
	"    tl.store(y + i, v, mask=i < n)\n";

static int open(void **state)
{
	struct fixture *f = malloc(sizeof *f);
	ok(tl_context_create("interp", &f->ctx));
	ok(tl_module_load_source(f->ctx, "t.tl", source, sizeof source - 1, &f->module));
	*state = f;
	return 0;
}

static tl_buffer *filled(const struct fixture *f, const void *data, size_t bytes)
{
	tl_buffer *b;
	ok(tl_buffer_create(f->ctx, bytes, &b));
	if (data)
		ok(tl_buffer_write(b, 0, data, bytes));
	return b;
}

static float *random_floats(size_t n, uint32_t seed)
{
	float *x = malloc(n * sizeof *x);
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		x[i] = (float)((int)(seed >> 8) - (1 << 23)) / (1 << 21);
	}
	return x;
}

/* --- results ------------------------------------------------------------------------------------------------- */

static void check_add(const struct fixture *f, size_t n, size_t offset, int64_t block)
{
	float *x = random_floats(n + offset, (uint32_t)n), *y = random_floats(n + offset, 7),
	      *z = calloc(n + offset + 1, sizeof *z);
	tl_buffer *bx = filled(f, x, (n + offset) * 4), *by = filled(f, y, (n + offset) * 4),
		  *bz = filled(f, NULL, (n + offset) * 4);
	ok(tl_launch(get(f, "add_kernel"), &(tl_config){.grid = {(uint32_t)((n + (size_t)block - 1) / (size_t)block)}},
		     ARGS(tl_ptr(TL_F32, (float *)tl_buffer_ptr(bx) + offset),
			  tl_ptr(TL_F32, (float *)tl_buffer_ptr(by) + offset),
			  tl_ptr(TL_F32, (float *)tl_buffer_ptr(bz) + offset), tl_int((int64_t)n), tl_int(block))));
	ok(tl_buffer_read(bz, offset * 4, z, n * 4));
	for (size_t i = 0; i < n; i++)
		assert_true(z[i] == (float)((double)x[i + offset] + (double)y[i + offset]));
	tl_buffer_destroy(bx);
	tl_buffer_destroy(by);
	tl_buffer_destroy(bz);
	free(x);
	free(y);
	free(z);
}

static void add(void **state)
{
	static const size_t sizes[] = {1, 2, 15, 16, 17, 1000, 1024, 4097};
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (size_t offset = 0; offset < 2; offset++)
			check_add(*state, sizes[i], offset, 1 << (4 + i % 7));
}

static void check_softmax(const struct fixture *f, int rows, int cols, int block)
{
	size_t n = (size_t)rows * (size_t)cols;
	float *x = random_floats(n, (uint32_t)cols), *y = malloc(n * sizeof *y);
	tl_buffer *bx = filled(f, x, n * 4), *by = filled(f, NULL, n * 4);
	ok(tl_launch(
		get(f, "softmax_kernel"), &(tl_config){.grid = {(uint32_t)rows}, .num_warps = 8},
		ARGS(tl_buf(TL_F32, by), tl_buf(TL_F32, bx), tl_int(cols), tl_int(cols), tl_int(cols), tl_int(block))));
	ok(tl_buffer_read(by, 0, y, n * 4));
	for (int r = 0; r < rows; r++) {
		double most = -INFINITY, sum = 0;
		for (int c = 0; c < cols; c++)
			most = fmax(most, x[r * cols + c]);
		for (int c = 0; c < cols; c++)
			sum += exp(x[r * cols + c] - most);
		for (int c = 0; c < cols; c++) {
			double expect = exp(x[r * cols + c] - most) / sum;
			assert_true(fabs(y[r * cols + c] - expect) <= 1e-6 * expect + 1e-12);
		}
	}
	tl_buffer_destroy(bx);
	tl_buffer_destroy(by);
	free(x);
	free(y);
}

static void softmax(void **state)
{
	check_softmax(*state, 7, 64, 64);
	check_softmax(*state, 33, 100, 128);
	check_softmax(*state, 4, 1, 2);
}

/* Numbers of every type arrive as what they are; a pointer that is left out is None. */
static void scalar_arguments(void **state)
{
	struct fixture *f = *state;
	tl_kernel *k = get(f, "scalars");
	double out[7] = {0}, extra = 42;
	tl_buffer *b = filled(f, out, sizeof out), *g = filled(f, &extra, sizeof extra);
	ok(tl_launch(k, &(tl_config){.grid = {1}},
		     ARGS(tl_buf(TL_F64, b), tl_int(-5), tl_int((int64_t)1 << 40), tl_float(0.1), tl_bool(true),
			  tl_int_typed(TL_U8, 200), tl_float_typed(TL_F16, 0.1))));
	ok(tl_buffer_read(b, 0, out, sizeof out));
	assert_true(out[0] == -5 && out[1] == 0x1p40 && out[2] == (double)0.1f && out[3] == 1 && out[4] == 200);
	assert_true(out[5] == 0.0999755859375 && out[6] == 0);
	ok(tl_launch(k, &(tl_config){.grid = {1}},
		     ARGS(tl_buf(TL_F64, b), tl_int(1), tl_int_typed(TL_I8, -1), tl_float_typed(TL_F64, 0.1),
			  tl_int_typed(TL_U32, 4000000000), tl_int_typed(TL_I16, -300), tl_float_typed(TL_BF16, 1.01),
			  tl_buf(TL_F64, g))));
	ok(tl_buffer_read(b, 0, out, sizeof out));
	assert_true(out[0] == 1 && out[1] == -1 && out[2] == 0.1 && out[3] == 4e9 && out[4] == -300);
	assert_true(out[5] == 1.0078125 && out[6] == 42);
}

static void constexpr_arguments(void **state)
{
	struct fixture *f = *state;
	tl_kernel *k = get(f, "axpy");
	float x[100], y[100];
	for (int i = 0; i < 100; i++)
		x[i] = (float)(i - 50);
	tl_buffer *bx = filled(f, x, sizeof x), *by = filled(f, x, sizeof x);
	ok(tl_launch(k, &(tl_config){.grid = {2}},
		     ARGS(tl_buf(TL_F32, bx), tl_buf(TL_F32, by), tl_int(100), tl_float(1.5), tl_type(TL_F16),
			  tl_str("relu"))));
	ok(tl_buffer_read(by, 0, y, sizeof y));
	for (int i = 0; i < 100; i++)
		assert_true(y[i] == fmaxf(x[i] * 1.5f, 0));
	ok(tl_launch(k, &(tl_config){.grid = {4}}, ARGS(tl_buf(TL_F32, bx), tl_buf(TL_F32, by), tl_int(100), tl_int(2),
							tl_type(TL_F32), tl_none(), tl_int(32))));
	ok(tl_buffer_read(by, 0, y, sizeof y));
	for (int i = 0; i < 100; i++)
		assert_true(y[i] == x[i] * 2);
}

/* --- memory -------------------------------------------------------------------------------------------------- */

static void assert_kernel_error(tl_status s, const char *a, const char *b)
{
	if (s != TL_ERR_KERNEL || !strstr(tl_error(NULL), a) || !strstr(tl_error(NULL), b))
		fail_msg("%s: '%s' lacks '%s' or '%s'", tl_status_name(s), tl_error(NULL), a, b);
}

/* An access outside is reported with the line and the parameter, even when it would land in other memory. */
static void out_of_bounds(void **state)
{
	struct fixture *f = *state;
	tl_kernel *k = get(f, "unmasked");
	tl_buffer *x = filled(f, NULL, 400), *big = filled(f, NULL, 512), *y = filled(f, NULL, 400);
	const tl_config one = {.grid = {1}};
	ok(tl_launch(k, &one, ARGS(tl_buf(TL_F32, big), tl_buf(TL_F32, big), tl_int(128))));
	assert_kernel_error(tl_launch(k, &one, ARGS(tl_buf(TL_F32, x), tl_buf(TL_F32, big), tl_int(128))), "t.tl:17",
			    "x_ptr");
	assert_kernel_error(tl_launch(k, &one, ARGS(tl_buf(TL_F32, big), tl_buf(TL_F32, y), tl_int(128))), "t.tl:17",
			    "out_ptr");
	assert_kernel_error(tl_launch(k, &one, ARGS(tl_ptr(TL_F32, NULL), tl_buf(TL_F32, big), tl_int(128))), "t.tl:17",
			    "null");
	/* a buffer that is gone is nobody's memory */
	void *gone = tl_buffer_ptr(x);
	tl_buffer_destroy(x);
	ok(tl_launch(k, &one, ARGS(tl_buf(TL_F32, big), tl_buf(TL_F32, big), tl_int(128))));
	assert_non_null(gone);
	double ms;
	assert_kernel_error(tl_time(k, &one, ARGS(tl_buf(TL_F32, big), tl_buf(TL_F32, y), tl_int(128)), 0, 3, &ms),
			    "t.tl:17", "out_ptr");
}

/* The caller's own memory is used as it is. */
static void own_memory(void **state)
{
	struct fixture *f = *state;
	float *x = random_floats(64, 3), *y = aligned_alloc(64, 256);
	ok(tl_launch(get(f, "unmasked"), &(tl_config){.grid = {1}},
		     ARGS(tl_ptr(TL_F32, x), tl_ptr(TL_F32, y), tl_int(64))));
	assert_memory_equal(x, y, 256);
	free(x);
	free(y);
}

/* Bounds stay checked where another argument is the caller's own memory, and no access leaves the buffer of its own
 * parameter. */
static void bounds_beside_own_memory(void **state)
{
	struct fixture *f = *state;
	tl_kernel *k = get(f, "unmasked");
	float *mine = random_floats(64, 3);
	tl_buffer *x = filled(f, mine, 128), *y = filled(f, NULL, 256);
	const tl_config one = {.grid = {1}};
	tl_arg own = tl_ptr(TL_F32, mine);
	ok(tl_launch(k, &one, ARGS(own, tl_buf(TL_F32, y), tl_int(64))));
	assert_kernel_error(tl_launch(k, &one, ARGS(tl_buf(TL_F32, x), own, tl_int(64))),
			    "0 bytes past the end of 'x_ptr'", "load");
	assert_kernel_error(tl_launch(k, &one, ARGS(own, tl_buf(TL_F32, x), tl_int(64))),
			    "0 bytes past the end of 'out_ptr'", "store");
	/* from one buffer into another */
	tl_kernel *far = get(f, "offset");
	int64_t distance = ((char *)tl_buffer_ptr(y) - (char *)tl_buffer_ptr(x)) / 4;
	ok(tl_launch(far, &one, ARGS(tl_buf(TL_F32, x), tl_buf(TL_F32, y), tl_int(3), tl_int(3))));
	assert_kernel_error(
		tl_launch(far, &one, ARGS(tl_buf(TL_F32, x), tl_buf(TL_F32, y), tl_int(distance), tl_int(3))),
		"outside its buffer", ", in 'y'");
	assert_kernel_error(tl_launch(far, &one,
				      ARGS(own, tl_buf(TL_F32, y),
					   tl_int(((char *)tl_buffer_ptr(y) - (char *)mine) / 4 + 100), tl_int(3))),
			    "store", "past the end of 'y'");
	free(mine);
}

/* --- several at once ----------------------------------------------------------------------------------------- */

struct worker {
	pthread_t thread;
	const struct fixture *f;
	int id;
};

static void *work(void *arg)
{
	const struct worker *w = arg;
	for (int i = 0; i < 6; i++) {
		check_add(w->f, (size_t)(100 * w->id + 37 * i + 1), (size_t)i % 2, 64);
		check_softmax(w->f, 3, 20 + w->id, 32);
	}
	return NULL;
}

static void several_threads(void **state)
{
	struct worker w[6];
	for (int i = 0; i < (int)COUNT(w); i++) {
		w[i] = (struct worker){.f = *state, .id = i};
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (int i = 0; i < (int)COUNT(w); i++)
		pthread_join(w[i].thread, NULL);
}

/* --- the rest ------------------------------------------------------------------------------------------------ */

static void timing(void **state)
{
	struct fixture *f = *state;
	tl_buffer *b = filled(f, NULL, 4096);
	double ms = -1;
	ok(tl_time(get(f, "unmasked"), &(tl_config){.grid = {16}},
		   ARGS(tl_buf(TL_F32, b), tl_buf(TL_F32, b), tl_int(64)), 1, 4, &ms));
	assert_true(ms > 0 && ms < 10000);
}

/* What a kernel was compiled to can be loaded and launched as a source of its own. */
static void ir_text(void **state)
{
	struct fixture *f = *state;
	float x[64], y[64];
	for (int i = 0; i < 64; i++)
		x[i] = (float)i;
	tl_buffer *bx = filled(f, x, sizeof x), *by = filled(f, NULL, sizeof y);
	char *text;
	tl_module *m;
	tl_kernel *k;
	ok(tl_kernel_dump(get(f, "unmasked"), NULL, ARGS(tl_buf(TL_F32, bx), tl_buf(TL_F32, by), tl_int(64)), "ttir",
			  &text));
	ok(tl_module_load_source(f->ctx, "dump.ttir", text, strlen(text), &m));
	tl_free(text);
	ok(tl_module_kernel(m, "unmasked", &k));
	ok(tl_launch(k, &(tl_config){.grid = {1}}, ARGS(tl_buf(TL_F32, bx), tl_buf(TL_F32, by))));
	ok(tl_buffer_read(by, 0, y, sizeof y));
	assert_memory_equal(x, y, sizeof x);
	assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}},
				   ARGS(tl_ptr(TL_F32, (float *)tl_buffer_ptr(bx) + 1), tl_buf(TL_F32, by))),
			 TL_ERR_ARGUMENT);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open, shut)
	const struct CMUnitTest tests[] = {
		TEST(add),           TEST(softmax),    TEST(scalar_arguments),         TEST(constexpr_arguments),
		TEST(out_of_bounds), TEST(own_memory), TEST(bounds_beside_own_memory), TEST(several_threads),
		TEST(timing),        TEST(ir_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Prepared handles: what they launch, what they refuse, and that they never compile. */
#include <pthread.h>

#include "fixture.h"
#include "test_runtime.h"

static const char text[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\ndef scale(x, y, n, s, BLOCK: tl.constexpr, ACT: tl.constexpr = None):\n"
	"    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
	"    v = tl.load(x + i, mask=i < n) * s\n"
	"    if ACT is not None:\n        v = ACT(v)\n"
	"    tl.store(y + i, v, mask=i < n)\n\n"
	"@triton.jit\ndef relu(x):\n    return tl.maximum(x, 0.0)\n\n"
	"@triton.jit\ndef product(a, b, c, K, sa, sb):\n"
	"    i, j = tl.arange(0, 128)[:, None], tl.arange(0, 256)[None, :]\n"
	"    acc = tl.zeros((128, 256), tl.float32)\n"
	"    for k in range(0, K, 64):\n"
	"        r = k + tl.arange(0, 64)\n"
	"        acc = tl.dot(tl.load(a + i * sa + r[None, :]), tl.load(b + r[:, None] * sb + j), acc)\n"
	"    tl.store(c + i * 256 + j, acc)\n\n"
	"@triton.jit\ndef columns(a, b, c, K, sa, sb):\n"
	"    i = tl.program_id(0) % 2 * 128 + tl.arange(0, 128)\n"
	"    j = tl.program_id(0) // 2 * 256 + tl.arange(0, 256)\n"
	"    acc = tl.zeros((128, 256), tl.float32)\n"
	"    for k in range(0, K, 64):\n"
	"        r = k + tl.arange(0, 64)\n"
	"        x = tl.load(a + i[:, None] * sa + r, mask=(i < 256)[:, None] & (r < K), other=0.0)\n"
	"        y = tl.load(b + r[:, None] * sb + j, mask=(r < K)[:, None] & (j < 512), other=0.0)\n"
	"        acc = tl.dot(x, y, acc)\n"
	"    tl.store(c + i[:, None] * 512 + j, acc)\n\n"
	"@triton.jit\ndef steps(x, y):\n    i = tl.arange(0, 1024)\n"
	"    for k in tl.range(0, 2, num_stages=3):\n"
	"        tl.store(y + k * 1024 + i, tl.load(x + k * 1024 + i) + 1)\n\n"
	"@triton.jit\ndef pair(t, y):\n    tl.store(y + tl.arange(0, 16), tl.load(t[0] + tl.arange(0, 16)) + t[1])\n";

/* --- a simulator that counts compilations and tensor maps -------------------------------------------------------- */

static _Atomic int compiled, encoded;
static struct device_ops ops;

static bool counting_compile(struct device *d, const struct build *b, struct compiled *out)
{
	compiled++;
	const struct target target = sim_ops.target(d);
	return device_compile(&target, b, out);
}

static tl_status counting_map(struct device *d, const struct tensor_map_shape *box, void *out)
{
	encoded++;
	return sim_ops.tensor_map(d, box, out);
}

static int open(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	setenv("TL_CACHE", "0", true);
	ops = sim_ops;
	ops.compile = counting_compile;
	ops.tensor_map = counting_map;
	compiled = encoded = 0;
	ok(tl_context_create("sim", &f->ctx));
	f->ctx->dev->ops = &ops;
	ok(tl_module_load_source(f->ctx, "t.tl", text, sizeof text - 1, &f->module));
	*state = f;
	return 0;
}

static tl_buffer *buffer(const struct fixture *f, size_t bytes)
{
	tl_buffer *b;
	ok(tl_buffer_create(f->ctx, bytes, &b));
	ok(tl_buffer_fill(b, 0));
	return b;
}

/* --- tests ------------------------------------------------------------------------------------------------------- */

/* More may hold than what was prepared, not less; and what was added is taken where it fits. */
static void arguments(void **state)
{
	struct fixture *f = *state;
	tl_kernel *k = get(f, "scale");
	tl_prepared *p;
	enum { N = 256 };
	float x[N], y[N];
	tl_buffer *bx = buffer(f, sizeof x), *by = buffer(f, sizeof y);
	for (int i = 0; i < N; i++)
		x[i] = (float)(i - 100);
	ok(tl_buffer_write(bx, 0, x, sizeof x));
	const tl_arg ax = tl_buf(TL_F32, bx), ay = tl_buf(TL_F32, by), relu = tl_func("relu"), block = tl_int(128);
	ok(tl_prepare(k, &(tl_config){.grid = {2}}, ARGS(ax, ay, tl_int(240), tl_float(1), block, relu), &p));
	assert_int_equal(compiled, 1);
	static const struct {
		int64_t n;
		const char *says;
	} table[] = {{240, NULL},
		     {16, NULL},
		     {0, NULL},
		     {256, NULL},
		     {241,
		      "scale was prepared for other arguments: of argument 3, 'n', it must be a number of type i32 "
		      "and a multiple of 16; it is the integer 241\n"
		      "      = hint: tl_prepared_add prepares the handle for these arguments, too"},
		     {1, "and a multiple of 16; it is the integer 1"},
		     {(int64_t)1 << 40, "a number of type i32"}};
	for (u32 i = 0; i < ARRAY_LEN(table); i++) {
		ok(tl_buffer_fill(by, 0xFF));
		tl_status s =
			tl_prepared_launch(p, NULL, NULL, ARGS(ax, ay, tl_int(table[i].n), tl_float(2), block, relu));
		if (table[i].says) {
			assert_error(s, TL_ERR_ARGUMENT, table[i].says);
			continue;
		}
		ok(s);
		assert_string_equal(tl_error(NULL), "");
		ok(tl_buffer_read(by, 0, y, sizeof y));
		for (int j = 0; j < table[i].n; j++)
			assert_true(y[j] == (x[j] > 0 ? 2 * x[j] : 0));
	}
	assert_error(tl_prepared_launch(p, NULL, NULL, ARGS(ax, ay, tl_int(16), tl_float(2), tl_int(64), relu)),
		     TL_ERR_ARGUMENT, "of argument 5, 'BLOCK', it must be the integer 128; it is the integer 64");
	assert_error(tl_prepared_launch(p, NULL, NULL, ARGS(ax, ay, tl_int(16), tl_float(2), block, tl_none())),
		     TL_ERR_ARGUMENT, "of argument 6, 'ACT', it must be the function 'relu'; it is None");
	assert_error(tl_prepared_launch(p, NULL, NULL, ARGS(ax, ay, tl_int(16), tl_float(2), block)), TL_ERR_ARGUMENT,
		     "for 6 arguments, and 5 were given");
	assert_error(tl_prepared_launch(p, NULL, NULL, ARGS(tl_str("x"), ay, tl_int(16), tl_float(2), block, relu)),
		     TL_ERR_ARGUMENT, "argument 1, 'x', must be a pointer or a number");
	const tl_arg odd = tl_range(TL_F32, (char *)ax.ptr + 4, 16);
	assert_error(tl_prepared_launch(p, NULL, NULL, ARGS(odd, ay, tl_int(0), tl_float(2), block, relu)),
		     TL_ERR_ARGUMENT,
		     "of argument 1, 'x', it must be a pointer to elements of type fp32 and a multiple");
	assert_int_equal(compiled, 1);
	ok(tl_prepared_add(p, NULL, ARGS(ax, ay, tl_int(5), tl_float(2), block, relu)));
	assert_int_equal(compiled, 2);
	ok(tl_prepared_add(p, NULL, ARGS(ax, ay, tl_int(7), tl_float(2), block, relu)));
	assert_int_equal(compiled, 2);
	for (int64_t n = 0; n <= N; n += 15)
		ok(tl_prepared_launch(p, NULL, NULL, ARGS(ax, ay, tl_int(n), tl_float(2), block, relu)));
	assert_int_equal(compiled, 2);
	ok(tl_buffer_fill(by, 0xFF));
	ok(tl_prepared_launch(p, (uint32_t[]){2, 0, 1}, NULL, ARGS(ax, ay, tl_int(16), tl_float(2), block, relu)));
	ok(tl_prepared_launch(p, (uint32_t[]){1, 1, 1}, NULL, ARGS(ax, ay, tl_int(N), tl_float(3), block, relu)));
	ok(tl_buffer_read(by, 0, y, sizeof y));
	assert_true(y[127] == 81 && y[128] != y[128]); /* of the second program's, nothing */
	assert_error(tl_prepared_launch(p, (uint32_t[]){1, 1 << 16, 1}, NULL, ARGS(ax, ay)), TL_ERR_ARGUMENT,
		     "the grid has 65536 programs along axis 1");
	assert_error(tl_prepared_launch(p, NULL, bx, ARGS(ax, ay)), TL_ERR_ARGUMENT, "the sim device has no streams");
	assert_error(tl_prepared_launch(NULL, NULL, NULL, NULL, 0), TL_ERR_ARGUMENT, "the handle is NULL");
	assert_error(tl_prepared_launch(p, NULL, NULL, NULL, 1), TL_ERR_ARGUMENT, "the arguments are NULL");
	tl_prepared_destroy(p);
	tl_prepared_destroy(NULL);
	tl_config all = {.grid = {2}, .launch_cooperative_grid = true};
	assert_error(tl_launch(k, &all, ARGS(ax, ay, tl_int(16), tl_float(2), block)), TL_ERR_ARGUMENT,
		     "a cooperative grid of more than one program, all running at the same time, needs a GPU");
	all = (tl_config){.grid = {1}, .launch_cooperative_grid = true, .launch_pdl = true};
	ok(tl_launch(k, &all, ARGS(ax, ay, tl_int(16), tl_float(2), block)));
	assert_error(tl_prepare(k, NULL, ARGS(ax), &p), TL_ERR_ARGUMENT, "argument 2, 'y', is missing");
	assert_null(p);
}

/* Rows that a tensor map cannot describe take a variant that is part of the handle; a map is made once for the same
 * rows. */
static void rows(void **state)
{
	struct fixture *f = *state;
	tl_kernel *k = get(f, "product");
	tl_prepared *p;
	tl_buffer *a = buffer(f, 2 * 256 * 256), *b = buffer(f, 2 * 256 * 256), *c = buffer(f, 4 * 128 * 256);
	u16 *ones = malloc(2 * 256 * 256);
	float *out = malloc(4 * 128 * 256);
	for (int i = 0; i < 256 * 256; i++)
		ones[i] = 0x3C00;
	ok(tl_buffer_write(a, 0, ones, 2 * 256 * 256));
	ok(tl_buffer_write(b, 0, ones, 2 * 256 * 256));
	const tl_config one = {.grid = {1}, .num_warps = 8};
	const tl_arg aa = tl_buf(TL_F16, a), ab = tl_buf(TL_F16, b), ac = tl_buf(TL_F32, c), k64 = tl_int(256);
	/* the last row first */
	const tl_arg back = tl_range(TL_F16, (char *)aa.ptr + 2 * 256 * 255, 2 * 256);
	ok(tl_prepare(k, &one, ARGS(aa, ab, ac, k64, tl_int(256), tl_int(256)), &p));
	assert_int_equal(compiled, 2);
	for (int round = 0; round < 2; round++) {
		ok(tl_buffer_fill(c, 0xFF));
		ok(tl_prepared_launch(p, NULL, NULL, ARGS(aa, ab, ac, k64, tl_int(256), tl_int(256))));
		assert_int_equal(encoded, 2);
		ok(tl_buffer_read(c, 0, out, 4 * 128 * 256));
		for (int i = 0; i < 128 * 256; i++)
			assert_true(out[i] == 256);
	}
	ok(tl_prepared_launch(p, NULL, NULL, ARGS(back, ab, ac, k64, tl_int(-256), tl_int(256))));
	assert_int_equal(encoded, 2);
	ok(tl_prepared_launch(p, NULL, NULL, ARGS(aa, ab, ac, k64, tl_int(0), tl_int(256))));
	assert_int_equal(encoded, 3);
	/* and through tl_launch */
	ok(tl_launch(k, &one, ARGS(back, ab, ac, k64, tl_int(-256), tl_int(256))));
	ok(tl_launch(k, &one, ARGS(back, ab, ac, k64, tl_int(-256), tl_int(256))));
	ok(tl_launch(k, &one, ARGS(aa, ab, ac, k64, tl_int(0), tl_int(256))));
	assert_int_equal(compiled, 2);
	assert_int_equal(encoded, 3);
	assert_error(tl_prepared_launch(p, NULL, NULL, ARGS(aa, ab, ac, tl_int(-256), tl_int(256), tl_int(256))),
		     TL_ERR_ARGUMENT, "product was prepared for other arguments: its code assumes 0 <= K <= ");
	assert_int_equal(compiled, 2);
	ok(tl_prepared_add(p, NULL, ARGS(aa, ab, ac, tl_int(-256), tl_int(256), tl_int(256))));
	assert_int_equal(compiled, 3);
	ok(tl_prepared_launch(p, NULL, NULL, ARGS(aa, ab, ac, tl_int(-256), tl_int(256), tl_int(256))));
	/* few programs and many */
	ok(tl_prepared_launch(p, (uint32_t[]){133, 1, 1}, NULL, ARGS(aa, ab, ac, k64, tl_int(256), tl_int(256))));
	assert_int_equal(compiled, 3);
	free(ones);
	free(out);
}

static void overlaps(void **state)
{
	struct fixture *f = *state;
	tl_kernel *k = get(f, "steps");
	tl_prepared *p;
	tl_buffer *x = buffer(f, 8192), *y = buffer(f, 8192);
	const tl_arg ax = tl_buf(TL_F32, x), ay = tl_buf(TL_F32, y);
	ok(tl_prepare(k, &(tl_config){.grid = {1}}, ARGS(ax, ay), &p));
	assert_int_equal(compiled, 1);
	assert_error(tl_prepared_launch(p, NULL, NULL, ARGS(ax, ax)), TL_ERR_ARGUMENT,
		     "its code assumes that the memory of 'x' and 'y' does not overlap, but it does");
	ok(tl_prepared_add(p, NULL, ARGS(ax, ax)));
	assert_int_equal(compiled, 2);
	ok(tl_prepared_launch(p, NULL, NULL, ARGS(ax, ax)));
	ok(tl_prepared_launch(p, NULL, NULL, ARGS(ax, ay)));
	float out[2048];
	ok(tl_buffer_read(y, 0, out, sizeof out));
	assert_true(out[0] == 2 && out[2047] == 2);
	assert_int_equal(compiled, 2);
}

/* Tuples are compared by their keys. */
static void composites(void **state)
{
	struct fixture *f = *state;
	tl_kernel *k = get(f, "pair");
	tl_prepared *p;
	tl_buffer *x = buffer(f, 64), *y = buffer(f, 64);
	const tl_arg items[] = {tl_buf(TL_F32, x), tl_int(5)}, others[] = {tl_buf(TL_F32, x), tl_int(1)};
	const tl_tuple t = {2, items, NULL}, u = {2, others, NULL};
	ok(tl_prepare(k, &(tl_config){.grid = {1}}, ARGS(tl_tuple_arg(&t), tl_buf(TL_F32, y)), &p));
	ok(tl_prepared_launch(p, NULL, NULL, ARGS(tl_tuple_arg(&t), tl_buf(TL_F32, y))));
	float out[16];
	ok(tl_buffer_read(y, 0, out, sizeof out));
	assert_true(out[15] == 5);
	assert_error(tl_prepared_launch(p, NULL, NULL, ARGS(tl_tuple_arg(&u), tl_buf(TL_F32, y))), TL_ERR_ARGUMENT,
		     "for arguments with other types, constants, block shapes or divisors");
	ok(tl_prepared_add(p, NULL, ARGS(tl_tuple_arg(&u), tl_buf(TL_F32, y))));
	ok(tl_prepared_launch(p, NULL, NULL, ARGS(tl_tuple_arg(&u), tl_buf(TL_F32, y))));
	ok(tl_buffer_read(y, 0, out, sizeof out));
	assert_true(out[15] == 1);
	assert_int_equal(compiled, 2);
}

/* --- threads ----------------------------------------------------------------------------------------------------- */

struct job {
	pthread_t thread;
	tl_prepared *p;
	const struct fixture *f;
	int id;
};

static void *work(void *arg)
{
	const struct job *j = arg;
	tl_buffer *x = buffer(j->f, 64), *y = buffer(j->f, 64);
	const tl_arg ax = tl_buf(TL_F32, x), ay = tl_buf(TL_F32, y), block = tl_int(16);
	tl_kernel *k = get(j->f, "scale");
	for (int i = 0; i < 30; i++) {
		float in[16], out[16];
		for (int e = 0; e < 16; e++)
			in[e] = (float)(e + j->id);
		ok(tl_buffer_write(x, 0, in, sizeof in));
		if (i % 10 == j->id)
			ok(tl_prepared_add(j->p, NULL, ARGS(ax, ay, tl_int(8 + j->id), tl_float(1), block)));
		const tl_arg n = tl_int(16), s = tl_float(i);
		if (i % 2)
			ok(tl_prepared_launch(j->p, NULL, NULL, ARGS(ax, ay, n, s, block)));
		else
			ok(tl_launch(k, &(tl_config){.grid = {1}}, ARGS(ax, ay, n, s, block)));
		ok(tl_buffer_read(y, 0, out, sizeof out));
		for (int e = 0; e < 16; e++)
			assert_true(out[e] == in[e] * (float)i);
	}
	return NULL;
}

static void threads(void **state)
{
	struct fixture *f = *state;
	tl_prepared *p;
	struct job jobs[6];
	tl_buffer *x = buffer(f, 64), *y = buffer(f, 64);
	ok(tl_prepare(get(f, "scale"), &(tl_config){.grid = {1}},
		      ARGS(tl_buf(TL_F32, x), tl_buf(TL_F32, y), tl_int(16), tl_float(1), tl_int(16)), &p));
	for (int i = 0; i < 6; i++) {
		jobs[i] = (struct job){.p = p, .f = f, .id = i};
		assert_int_equal(pthread_create(&jobs[i].thread, NULL, work, &jobs[i]), 0);
	}
	for (int i = 0; i < 6; i++)
		pthread_join(jobs[i].thread, NULL);
}

/* A map says in each of its words how far rows are apart, and a launch looks whether it got its own. */
static tl_status write_map(struct device *d, const struct tensor_map_shape *box, void *out)
{
	u64 words[TENSOR_MAP_BYTES / 8];
	(void)d;
	for (u32 i = 0; i < ARRAY_LEN(words); i++)
		words[i] = box->strides[0];
	memcpy(out, words, sizeof words);
	encoded++;
	return TL_OK;
}

enum { LAUNCHES = 60000 };
static _Atomic int wrong_maps, checked;

static tl_status check_maps(struct device *d, const struct device_launch *l)
{
	(void)d;
	for (u32 m = 0; m < l->nmaps; m++) {
		u64 words[TENSOR_MAP_BYTES / 8], distance = 2 * l->args[4 + m]; /* sa and sb */
		memcpy(words, (const void *)(uintptr_t)l->args[l->nargs - l->nmaps + m], sizeof words);
		for (u32 i = 0; i < ARRAY_LEN(words); i++)
			wrong_maps += words[i] != distance;
		checked++;
	}
	return TL_OK;
}

static void *launch_rows(void *arg)
{
	const struct job *j = arg;
	tl_kernel *k = get(j->f, "product");
	char *const at = (char *)(uintptr_t)0x10000;
	const tl_arg a = tl_range(TL_F16, at, 16), b = tl_range(TL_F16, at + 0x1000, 16),
		     c = tl_range(TL_F32, at + 0x2000, 16);
	for (int i = 0; i < LAUNCHES; i++) {
		const tl_arg sa = tl_int(256 * (1 + j->id % 2)), sb = tl_int(256 * (1 + i / 16 % 2));
		const tl_config one = {.grid = {1}, .num_warps = 8};
		if (i % 2)
			ok(tl_prepared_launch(j->p, NULL, NULL, ARGS(a, b, c, tl_int(256), sa, sb)));
		else
			ok(tl_launch(k, &one, ARGS(a, b, c, tl_int(256), sa, sb)));
	}
	return NULL;
}

/* Threads that change the map that a variant remembers get whole ones. */
static void maps_of_threads(void **state)
{
	struct fixture *f = *state;
	struct job jobs[4];
	tl_prepared *p;
	ops.tensor_map = write_map;
	ops.launch = check_maps;
	ops.faultless = true;
	const tl_arg x = tl_ptr(TL_F16, x16), y = tl_ptr(TL_F32, x16), n = tl_int(256);
	ok(tl_prepare(get(f, "product"), &(tl_config){.grid = {1}, .num_warps = 8}, ARGS(x, x, y, n, n, n), &p));
	for (int i = 0; i < 4; i++) {
		jobs[i] = (struct job){.p = p, .f = f, .id = i};
		assert_int_equal(pthread_create(&jobs[i].thread, NULL, launch_rows, &jobs[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(jobs[i].thread, NULL);
	assert_int_equal(wrong_maps, 0);
	assert_int_equal(checked, 2 * 4 * LAUNCHES);
	assert_in_range(encoded, 4, checked - 1); /* not for each launch */
}

static bool in_pairs;

static tl_status note_pairs(struct device *d, const struct device_launch *l)
{
	(void)d;
	in_pairs = l->pairs;
	return TL_OK;
}

/* Blocks are launched as clusters of two where rows begin within a sector and the number of blocks is even. */
static void pairs(void **state)
{
	static const struct {
		int64_t sa, sb;
		uint32_t programs;
		int blocks;
		bool pairs;
	} table[] = {{264, 512, 4, 0, true},  {256, 520, 4, 0, true},  {264, 520, 4, 0, true},
		     {256, 512, 4, 0, false}, {272, 528, 4, 0, false}, {264, 512, 3, 0, false},
		     {264, 512, 8, 2, true},  {264, 512, 8, 3, false}, {264, 512, 7, 2, true}};
	struct fixture *f = *state;
	ops.launch = note_pairs;
	char *const at = (char *)(uintptr_t)0x10000;
	const tl_arg a = tl_range(TL_F16, at, 16), b = tl_range(TL_F16, at + 0x1000, 16),
		     c = tl_range(TL_F32, at + 0x2000, 16);
	for (u32 i = 0; i < ARRAY_LEN(table); i++) {
		const tl_arg args[] = {a, b, c, tl_int(256), tl_int(table[i].sa), tl_int(table[i].sb)};
		const tl_config config = {.grid = {table[i].programs},
					  .num_warps = 8,
					  .max_ctas = table[i].blocks ? table[i].blocks : -1};
		in_pairs = !table[i].pairs;
		ok(tl_launch(get(f, "columns"), &config, args, ARRAY_LEN(args)));
		if (in_pairs != table[i].pairs)
			fail_msg("row %u", i);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open, shut)
	const struct CMUnitTest tests[] = {TEST(arguments),  TEST(rows),    TEST(overlaps),
					   TEST(composites), TEST(threads), TEST(maps_of_threads),
					   TEST(pairs)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

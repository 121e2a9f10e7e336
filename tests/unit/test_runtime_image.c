/* Modules that are kernel images: what they launch, and what they refuse. */
#include "random_bits.h"
#include "runtime/image/bundle.h"
#include "runtime/device/conditions.h"
#include "test_runtime.h"

static const char text[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\ndef scale(x, y, n, s, K: tl.constexpr):\n"
	"    i = tl.program_id(0) * 128 + tl.arange(0, 128)\n"
	"    tl.store(y + i, tl.load(x + i, mask=i < n) * s + K, mask=i < n)\n\n"
	"@triton.jit\ndef product(a, b, c, K, sa, sb):\n"
	"    i, j = tl.arange(0, 128)[:, None], tl.arange(0, 256)[None, :]\n"
	"    acc = tl.zeros((128, 256), tl.float32)\n"
	"    for k in range(0, K, 64):\n"
	"        r = k + tl.arange(0, 64)\n"
	"        acc = tl.dot(tl.load(a + i * sa + r[None, :]), tl.load(b + r[:, None] * sb + j), acc)\n"
	"    tl.store(c + i * 256 + j, acc)\n\n"
	"@triton.jit\ndef edge(a, b, c, M, K, sa, sb):\n"
	"    i, j, r = tl.arange(0, 128)[:, None], tl.arange(0, 256)[None, :], tl.arange(0, 64)\n"
	"    x, y = a + i * sa + r[None, :], b + r[:, None] * sb + j\n"
	"    acc = tl.zeros((128, 256), tl.float32)\n"
	"    for k in range(0, K, 64):\n"
	"        left = tl.load(x, mask=(i < M) & (r < K - k)[None, :], other=0)\n"
	"        acc = tl.dot(left, tl.load(y, mask=(r < K - k)[:, None], other=0), acc)\n"
	"        x += 64\n        y += 64 * sb\n"
	"    tl.store(c + i * 256 + j, acc)\n\n"
	"@triton.jit\ndef steps(x, y):\n    i = tl.arange(0, 1024)\n"
	"    for k in tl.range(0, 8, num_stages=3):\n"
	"        tl.store(y + k * 1024 + i, tl.load(x + k * 1024 + i) + 1)\n\n"
	"@triton.jit\ndef indirect(pp, y):\n"
	"    x = tl.load(pp)\n    tl.store(y, tl.load(x) + 1.0)\n";

/* The bytes of an image; *len of them, to be freed. */
static char *image_of(const char *kernel, const struct arg_spec *args, const char *target, int num_warps, size_t *len)
{
	struct unit u;
	struct compiled c = {0};
	struct arena a = {0};
	struct image im;
	struct compile_options o = {.codegen.num_warps = num_warps, .want_code = true};
	assert_true(target_parse(target, &o.target));
	assert_true(unit_open(&u, "t.tl", text, sizeof text - 1));
	const struct func *f = map_get(&u.module->by_name, intern_str(&u.names, kernel));
	if (!compile(&u, f, args, &o, &c))
		fail_msg("%s", u.diags.text.at);
	image_make(&im, &u, f, args, &o.codegen, &c);
	char *bytes = image_write(&im, &a, len), *copy = malloc(*len);
	memcpy(copy, bytes, *len);
	image_free(&im);
	arena_free(&a);
	unit_free(&u);
	return copy;
}

static tl_kernel *load_kernel(tl_context *ctx, const char *kernel, const struct arg_spec *args, int num_warps)
{
	size_t len;
	tl_module *m;
	tl_kernel *k;
	char *bytes = image_of(kernel, args, "sm_90a", num_warps, &len);
	if (tl_module_load_source(ctx, "k.tli", bytes, len, &m) || tl_module_kernel(m, kernel, &k))
		fail_msg("%s", tl_error(ctx));
	free(bytes);
	return k;
}

static tl_context *simulator(void)
{
	tl_context *ctx;
	assert_int_equal(tl_context_create("sim", &ctx), TL_OK);
	return ctx;
}

static const struct arg_spec scale_args[] = {
	{.type = "*fp32:16"}, {.type = "*fp32:16"}, {.type = "i32:16"}, {.type = "fp32"}, {.constant = "3"}};
static const struct arg_spec product_args[] = {{.type = "*fp16:16"}, {.type = "*fp16:16"}, {.type = "*fp32:16"},
					       {.type = "i32:256"},  {.type = "i32:16"},   {.type = "i32:16"}};

/* Constants are in the code: what is left is launched, and what the code counts on is asked for. */
static void launches(void **state)
{
	(void)state;
	tl_context *ctx = simulator();
	tl_kernel *k = load_kernel(ctx, "scale", scale_args, 4);
	float x[256], y[256];
	tl_buffer *bx, *by;
	tl_resources r;
	char *ptx;
	for (int i = 0; i < 256; i++)
		x[i] = (float)i;
	tl_buffer_create(ctx, sizeof x, &bx);
	tl_buffer_create(ctx, sizeof y, &by);
	tl_buffer_write(bx, 0, x, sizeof x);
	tl_buffer_fill(by, 0xFF);
	const tl_config two = {.grid = {2}};
	const tl_arg ax = tl_buf(TL_F32, bx), ay = tl_buf(TL_F32, by);
	for (int round = 0; round < 2; round++)
		assert_int_equal(tl_launch(k, &two, ARGS(ax, ay, tl_int(240), tl_float(2))), TL_OK);
	assert_int_equal(tl_buffer_read(by, 0, y, sizeof y), TL_OK);
	for (int i = 0; i < 240; i++)
		assert_true(y[i] == 2 * x[i] + 3);
	assert_error(tl_launch(k, &two, ARGS(ax, ay, tl_int(241), tl_float(2))), TL_ERR_ARGUMENT,
		     "scale: argument 3, 'n', must be a number of type i32:16; it is the integer 241");
	assert_error(tl_launch(k, &two, ARGS(tl_ptr(TL_F32, (char *)ax.ptr + 4), ay, tl_int(16), tl_float(2))),
		     TL_ERR_ARGUMENT, "argument 1, 'x', must be a pointer of type *fp32:16; it is the pointer");
	assert_error(tl_launch(k, &two, ARGS(tl_buf(TL_F16, bx), ay, tl_int(16), tl_float(2))), TL_ERR_ARGUMENT,
		     "argument 1, 'x', must be a pointer of type *fp32:16");
	assert_error(tl_launch(k, &two, ARGS(ax, ay, tl_int(16))), TL_ERR_ARGUMENT, "argument 4, 's', is missing");
	assert_error(tl_launch(k, &two, ARGS(ax, ay, tl_int(16), tl_float(1), tl_int(3))), TL_ERR_ARGUMENT,
		     "scale takes 4 arguments, and 5 were given");
	assert_error(tl_launch(k, &(tl_config){.grid = {2}, .num_stages = 2}, ARGS(ax, ay, tl_int(16), tl_float(1))),
		     TL_ERR_ARGUMENT, "scale is compiled already, in k.tli: leave tl_config.num_stages 0");
	tl_prepared *p;
	assert_int_equal(tl_prepare(k, &two, ARGS(ax, ay, tl_int(240), tl_float(2)), &p), TL_OK);
	assert_int_equal(tl_prepared_launch(p, NULL, NULL, ARGS(ax, ay, tl_int(16), tl_float(3))), TL_OK);
	assert_int_equal(tl_buffer_read(by, 0, y, sizeof y), TL_OK);
	assert_true(y[15] == 3 * x[15] + 3 && y[16] == 2 * x[16] + 3);
	assert_error(tl_prepared_launch(p, NULL, NULL, ARGS(ax, ay, tl_int(17), tl_float(3))), TL_ERR_ARGUMENT,
		     "argument 3, 'n', must be a number of type i32:16; it is the integer 17");
	assert_int_equal(tl_kernel_resources(k, NULL, ARGS(ax, ay, tl_int(16), tl_float(1)), &r), TL_OK);
	assert_int_equal(r.threads, 128);
	assert_error(tl_kernel_dump(k, NULL, ARGS(ax, ay, tl_int(16), tl_float(1)), "ttir", &ptx), TL_ERR_ARGUMENT,
		     "scale is compiled already: its only stage is \"ptx\"");
	assert_int_equal(tl_kernel_dump(k, NULL, ARGS(ax, ay, tl_int(16), tl_float(1)), "ptx", &ptx), TL_OK);
	assert_non_null(strstr(ptx, ".entry scale"));
	tl_free(ptx);
	tl_context_destroy(ctx);
}

/* What is known at a launch only: the distance of rows, sizes, overlaps. */
static void conditions(void **state)
{
	(void)state;
	tl_context *ctx = simulator();
	tl_kernel *k = load_kernel(ctx, "product", product_args, 8);
	const tl_config one = {.grid = {1}};
	tl_buffer *a, *c;
	tl_buffer_create(ctx, 256 * 256 * 2, &a);
	tl_buffer_create(ctx, 128 * 256 * 4, &c);
	const tl_arg x = tl_buf(TL_F16, a), z = tl_buf(TL_F32, c);
	tl_buffer_fill(a, 0);
	assert_int_equal(tl_launch(k, &one, ARGS(x, x, z, tl_int(256), tl_int(256), tl_int(256))), TL_OK);
	assert_error(tl_launch(k, &one, ARGS(x, x, z, tl_int(256), tl_int(-256), tl_int(256))), TL_ERR_ARGUMENT,
		     "product, which is compiled already, assumes rows that a tensor map can describe: 'sa' is -256, "
		     "and the row stride (2 times that many bytes) must be from 0 to 2^40");
	assert_error(tl_launch(k, &one, ARGS(x, x, z, tl_int(-256), tl_int(256), tl_int(256))), TL_ERR_ARGUMENT,
		     "product, which is compiled already, assumes 0 <= K <= ");
	assert_non_null(strstr(tl_error(NULL), "but the value is -256"));
	static const struct arg_spec edge[] = {{.type = "*fp16:16"}, {.type = "*fp16:16"}, {.type = "*fp32:16"},
					       {.type = "i32"},      {.type = "i32:8"},    {.type = "i32:8"},
					       {.type = "i32:8"}};
	k = load_kernel(ctx, "edge", edge, 8);
	assert_int_equal(tl_launch(k, &one, ARGS(x, x, z, tl_int(100), tl_int(200), tl_int(256), tl_int(256))), TL_OK);
	assert_error(tl_launch(k, &one, ARGS(x, x, z, tl_int(1 << 24), tl_int(200), tl_int(256), tl_int(256))),
		     TL_ERR_ARGUMENT,
		     "edge, which is compiled already, assumes sizes of 'a' from 1 to 2^31 and less "
		     "than 2^31 elements from the first to the last one, but they are 200 and 16777216");
	static const struct arg_spec steps[] = {{.type = "*fp32:16"}, {.type = "*fp32:16"}};
	k = load_kernel(ctx, "steps", steps, 4);
	assert_error(tl_launch(k, &one, ARGS(z, z)), TL_ERR_ARGUMENT,
		     "steps, which is compiled already, assumes that the memory of 'x' and 'y' does not overlap");
	tl_context_destroy(ctx);
}

/* Ranges anywhere in 64 bits, which may say that they go beyond. */
static void overlaps(void **state)
{
	(void)state;
	tl_context *ctx = simulator();
	struct slot slots[] = {{.pointers = 1, .dtype = DT_F32}, {.pointers = 1, .dtype = DT_F32, .leaf = 1}};
	struct param_pair pair = {.a = 0, .b = 1};
	const struct image im = {.nslots = 2, .slots = slots, .napart = 1, .apart = &pair};
	struct loaded k = {.image = &im};
	k.conditions = conditions_make(&im, &k.nconditions);
	for (int n = 0; n < 2000; n++) {
		u64 at[2], size[2];
		tl_arg leaves[2];
		for (int i = 0; i < 2; i++) {
			at[i] = ((random_bits() & 1 ? UINT64_MAX : random_bits()) - random_bits() % 99) & ~(u64)15;
			size[i] = (random_bits() & 1 ? UINT64_MAX - random_bits() % 99 : random_bits() % 99) | 1;
			leaves[i] = tl_range(TL_F32, (void *)(uintptr_t)at[i], size[i]);
		}
		const i128 most = ((i128)1 << 56) - 1; /* that a range says */
		bool apart = at[0] + MIN((i128)size[0], most) <= at[1] || at[1] + MIN((i128)size[1], most) <= at[0];
		enum aliasing alias = at[0] == at[1] ? ALIAS_EQUAL : apart ? ALIAS_NONE : ALIAS_ANY;
		const struct arguments args = {.at = leaves, .bits = at};
		assert_int_equal(conditions_broken(ctx->dev, &k, &args).alias, alias);
	}
	free(k.conditions);
	tl_context_destroy(ctx);
}

static void pointers_to_pointers(void **state)
{
	(void)state;
	tl_context *ctx = simulator();
	static const struct arg_spec args[] = {{.type = "**fp32:16"}, {.type = "*fp32:16"}};
	tl_kernel *k = load_kernel(ctx, "indirect", args, 1);
	tl_buffer *x, *list, *y;
	float value = 41, out = 0;
	tl_buffer_create(ctx, 4, &x);
	tl_buffer_create(ctx, 8, &list);
	tl_buffer_create(ctx, 4, &y);
	void *p = tl_buffer_ptr(x);
	tl_buffer_write(x, 0, &value, 4);
	tl_buffer_write(list, 0, &p, 8);
	assert_error(tl_launch(k, &(tl_config){.grid = {1}}, ARGS(tl_buf(TL_F32, list), tl_buf(TL_F32, y))),
		     TL_ERR_ARGUMENT, "'pp', must be a pointer of type **fp32");
	assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}}, ARGS(tl_buf(TL_I64, list), tl_buf(TL_F32, y))), TL_OK);
	tl_buffer_read(y, 0, &out, 4);
	assert_true(out == 42);
	tl_context_destroy(ctx);
}

/* The image must be whole, of this version, and for this device. */
static void refused(void **state)
{
	(void)state;
	static const struct {
		const char *target, *device, *says; /* NULL: it runs */
	} table[] = {
		{"sm_80", "sim:80", NULL},
		{"sm_80", "sim:86", NULL},
		{"sm_80", "sim", NULL},
		{"sm_86", "sim:80", "k.tli: the image is for cuda:sm_86, and the device is cuda:sm_80"},
		{"sm_90a", "sim:80", "k.tli: the image is for cuda:sm_90a, and the device is cuda:sm_80"},
		{"sm_90a", "interp", "k.tli: the interp device does not run kernel images; cuda, cpu and sim do"},
	};
	tl_module *m;
	tl_kernel *k;
	size_t len;
	for (u32 i = 0; i < ARRAY_LEN(table); i++) {
		tl_context *ctx;
		char *bytes = image_of("scale", scale_args, table[i].target, 4, &len);
		assert_int_equal(tl_context_create(table[i].device, &ctx), TL_OK);
		tl_status s = tl_module_load_source(ctx, "k.tli", bytes, len, &m);
		if (table[i].says) {
			assert_error(s, TL_ERR_ARGUMENT, table[i].says);
		} else {
			assert_int_equal(s, TL_OK);
			float x[16] = {1};
			assert_int_equal(tl_module_kernel(m, "scale", &k), TL_OK);
			tl_buffer *b;
			tl_buffer_create(ctx, sizeof x, &b);
			tl_buffer_write(b, 0, x, sizeof x);
			assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}},
						   ARGS(tl_buf(TL_F32, b), tl_buf(TL_F32, b), tl_int(16), tl_float(5))),
					 TL_OK);
			tl_buffer_read(b, 0, x, sizeof x);
			assert_true(x[0] == 8 && x[1] == 3);
			assert_error(tl_module_kernel(m, "scael", &k), TL_ERR_ARGUMENT, "did you mean 'scale'?");
		}
		tl_context_destroy(ctx);
		free(bytes);
	}
	tl_context *ctx = simulator();
	char *bytes = image_of("scale", scale_args, "sm_90a", 4, &len);
	assert_error(tl_module_load_source(ctx, "k.tli", bytes, len - 1, &m), TL_ERR_FILE,
		     "cannot load 'k.tli': it is damaged");
	assert_error(tl_module_load_source(ctx, "k.tli", bytes, 12, &m), TL_ERR_FILE, "it is");
	bytes[8]++;
	assert_error(tl_module_load_source(ctx, "k.tli", bytes, len, &m), TL_ERR_FILE,
		     "it was written by another version of tlc");
	free(bytes);
	tl_context_destroy(ctx);
}

/* Changes of an image's parameters, which then are not those of its code; its checksum is right. */
static void one_less(struct image *im) { im->nslots--; }
static void one_more(struct image *im)
{
	struct slot *more = arena_array(&im->arena, struct slot, im->nslots + 2);
	memcpy(more, im->slots, im->nslots * sizeof *more);
	more[im->nslots] = im->slots[0];
	im->slots = more;
	im->nslots++;
}
static void pointer_of_number(struct image *im) { im->slots[2].pointers = 1; }
static void number_of_pointer(struct image *im) { im->slots[0].pointers = 0; }
static void narrower(struct image *im) { im->slots[2].dtype = DT_I16; }
static void wider(struct image *im) { im->slots[2].dtype = DT_I64; }
static void float_of_integer(struct image *im) { im->slots[2].dtype = DT_F32; }
static void integer_of_float(struct image *im) { im->slots[3].dtype = DT_I32; }
static void few_blocks(struct image *im) { im->persistent = true; }
static void map(struct image *im)
{
	im->maps = arena_array(&im->arena, struct tensor_map_param, 2);
	im->maps[0] = (struct tensor_map_param){
		.distance.times = 256, .tensor = -1, .box = {64, 1, 1}, .elem_bytes = 2, .swizzle = 128};
	im->nmaps = 1;
}
static void less_scratch(struct image *im) { im->scratch_bytes = im->scratch_bytes ? 0 : 64; }
static void many_warps(struct image *im) { im->num_warps = 33; }

static char *changed(const char *bytes, size_t *len, void (*change)(struct image *im))
{
	struct image im;
	struct arena a = {0};
	assert_null(image_read(&im, bytes, *len));
	change(&im);
	char *out = image_write(&im, &a, len), *copy = malloc(*len);
	memcpy(copy, out, *len);
	arena_free(&a);
	image_free(&im);
	return copy;
}

static void parameters_of_the_code(void **state)
{
	(void)state;
	static void (*const changes[])(struct image *im) = {one_less,         one_more,         pointer_of_number,
							    number_of_pointer, narrower,         wider,
							    float_of_integer,  integer_of_float, few_blocks,
							    map,               less_scratch,     many_warps};
	static const char *const devices[] = {"sim", "cpu"};
	for (u32 d = 0; d < 2; d++)
		for (u32 i = 0; i <= ARRAY_LEN(changes); i++) {
			bool whole = i == ARRAY_LEN(changes), gpu = !d;
			if (!whole && changes[i] == (gpu ? less_scratch : many_warps))
				continue; /* which counts on the other device */
			tl_context *ctx;
			tl_compiled *c;
			tl_device_info info;
			size_t len;
			assert_int_equal(tl_context_create(devices[d], &ctx), TL_OK);
			assert_int_equal(tl_device(ctx, &info), TL_OK);
			char *bytes = image_of("scale", scale_args, info.target, 4, &len);
			char *other = whole ? bytes : changed(bytes, &len, changes[i]);
			tl_status s = tl_compiled_load(ctx, &(tl_blob){other, len}, 1, &c);
			if (s != (whole ? TL_OK : TL_ERR_COMPILE))
				fail_msg("%s, change %u: status %d", devices[d], i, s);
			if (other != bytes)
				free(other);
			free(bytes);
			tl_context_destroy(ctx);
		}
}

/* Launchers of kernels that were compiled ahead of time check it as tl_launch does. */
static void alignment_of_pointers(void **state)
{
	(void)state;
	static const struct arg_spec args[] = {
		{.type = "*fp32"}, {.type = "*fp32"}, {.type = "i32"}, {.type = "fp32"}, {.constant = "3"}};
	tl_context *ctx = simulator();
	tl_compiled *c;
	tl_buffer *x, *y;
	size_t len;
	char *bytes = image_of("scale", args, "sm_90a", 4, &len);
	assert_int_equal(tl_compiled_load(ctx, &(tl_blob){bytes, len}, 1, &c), TL_OK);
	tl_buffer_create(ctx, 2048, &x);
	tl_buffer_create(ctx, 2048, &y);
	tl_buffer_fill(x, 0);
	for (u32 by = 0; by <= 8; by++) {
		const u64 words[] = {(u64)(uintptr_t)tl_buffer_ptr(x), (u64)(uintptr_t)tl_buffer_ptr(y) + by, 100, 0};
		tl_status s = tl_compiled_launch(c, &(tl_config){.grid = {1}}, words, 4);
		if (by % 4)
			assert_error(s, TL_ERR_ARGUMENT, "which is not aligned to its elements of 4 bytes");
		else
			assert_int_equal(s, TL_OK);
	}
	free(bytes);
	tl_context_destroy(ctx);
}

/* A bundle says which kernel it holds, and for which target. */
static void bundles_of_others(void **state)
{
	(void)state;
	static const char *const says[][2] = {
		{"scale", "cuda:sm_90a"}, {"other", "cuda:sm_90a"}, {"scale", "cuda:sm_80"}};
	size_t len, size;
	char *bytes = image_of("scale", scale_args, "sm_90a", 4, &size);
	for (u32 i = 0; i < ARRAY_LEN(says); i++) {
		struct arena a = {0};
		tl_context *ctx = simulator();
		tl_compiled *c;
		const char *bundle = bundle_write(&a, says[i][0], says[i][1], &(tl_blob){bytes, size}, 1, &len);
		tl_status s = tl_compiled_load(ctx, &(tl_blob){bundle, len}, 1, &c);
		if (i)
			assert_error(s, TL_ERR_ARGUMENT, "another kernel or target");
		else
			assert_int_equal(s, TL_OK);
		tl_context_destroy(ctx);
		arena_free(&a);
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(launches),
					   cmocka_unit_test(conditions),
					   cmocka_unit_test(overlaps),
					   cmocka_unit_test(pointers_to_pointers),
					   cmocka_unit_test(refused),
					   cmocka_unit_test(parameters_of_the_code),
					   cmocka_unit_test(alignment_of_pointers),
					   cmocka_unit_test(bundles_of_others)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

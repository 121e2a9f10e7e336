/* Launches through the public calls on a fake CUDA driver: attributes, images, graphs, several GPUs, and the disk
 * cache. */
#include "fake_cuda.h"

#include "runtime/device/grid.h"

/* A kernel of the public calls. */
static const char add_one[] = "import triton\nimport triton.language as tl\n\n@triton.jit\n"
			      "def k(x, n):\n    i = tl.arange(0, 256)\n"
			      "    tl.store(x + i, tl.load(x + i, i < n) + 1, i < n)\n";

/* Attributes, alone and together, of tl_launch and of handles. */
static void attributes(void **state)
{
	(void)state;
	setenv("TL_CACHE", "0", true);
	for (int i = 0; i < 8; i++) {
		tl_context *ctx;
		tl_module *m;
		tl_kernel *k;
		tl_buffer *b;
		tl_prepared *p;
		bool cooperative = i & 1, pdl = i & 2, old = i & 4;
		driver.capability = old ? 80 : 90;
		assert_int_equal(context_new(open_device(NULL), &ctx), TL_OK);
		assert_int_equal(tl_module_load_source(ctx, "k.tl", add_one, sizeof add_one - 1, &m), TL_OK);
		assert_int_equal(tl_module_kernel(m, "k", &k), TL_OK);
		assert_int_equal(tl_buffer_create(ctx, 1024, &b), TL_OK);
		const tl_config config = {
			.grid = {7}, .launch_cooperative_grid = cooperative, .launch_pdl = pdl, .num_warps = 2};
		tl_arg args[] = {tl_buf(TL_F32, b), tl_int(16)};
		assert_int_equal(tl_prepare(k, &config, args, 2, &p), TL_OK);
		driver.launch.nparams = 2;
		for (int way = 0; way < 2; way++) {
			driver.log[0] = 0;
			driver.cooperative = driver.pdl = 0;
			assert_int_equal(way ? tl_launch(k, &config, args, 2)
					     : tl_prepared_launch(p, NULL, NULL, args, 2),
					 TL_OK);
			assert_string_equal(driver.log,
					    i & 3 ? " launch push launch ex pop" : " launch push launch pop");
			assert_int_equal(driver.cooperative, cooperative);
			assert_int_equal(driver.pdl, pdl && !old);
			assert_int_equal(driver.launch.grid[0], 7);
			assert_int_equal(driver.launch.threads, 64);
			assert_int_equal(driver.launch.bits[0], (uintptr_t)tl_buffer_ptr(b));
			assert_int_equal(driver.launch.bits[1] & 0xFFFFFFFF, 16);
		}
		tl_context_destroy(ctx);
		assert_clean(0);
	}
}

/* Kernel images go to the driver as they are, on the GPUs that can run them. */
static void images(void **state)
{
	(void)state;
	static const struct {
		const char *target;
		int capability;
		const char *says; /* NULL: it runs */
	} table[] = {{"cuda:sm_90a", 90, NULL},
		     {"cuda:sm_80", 90, NULL},
		     {"cuda:sm_80", 80, NULL},
		     {"cuda:sm_90", 120, NULL},
		     {"cuda:sm_90a", 100, "k.tli: the image is for cuda:sm_90a, and the device is cuda:sm_90"},
		     {"cuda:sm_86", 80, "k.tli: the image is for cuda:sm_86, and the device is cuda:sm_80"},
		     {"cuda:sm_80", 75, "k.tli: the image is for cuda:sm_80, and the device is cuda:sm_75"}};
	static struct slot slots[] = {{.name = "x", .leaf = 0, .pointers = 1, .dtype = DT_F32, .divisibility = 16},
				      {.name = "n", .leaf = 2, .dtype = DT_I32, .divisibility = 16}};
	for (u32 i = 0; i < ARRAY_LEN(table); i++) {
		struct arena a = {0};
		struct image im = {.source = "k.tl",
				   .signature = "",
				   .target = table[i].target,
				   .codegen = {.fp_fusion = FP_FUSION_ON, .ftz = FTZ_ON},
				   .name = "k",
				   .code = ".version 8.0",
				   .code_bytes = 12,
				   .num_warps = 8,
				   .shared_bytes = 1024,
				   .cluster = 1,
				   .grids = ALL_GRIDS,
				   .slots = slots,
				   .nslots = 2};
		tl_context *ctx;
		tl_module *m;
		tl_kernel *k;
		tl_buffer *b;
		size_t len;
		const char *bytes = image_write(&im, &a, &len);
		driver.capability = table[i].capability;
		assert_int_equal(context_new(open_device(NULL), &ctx), TL_OK);
		tl_status s = tl_module_load_source(ctx, "k.tli", bytes, len, &m);
		arena_free(&a);
		if (table[i].says) {
			assert_error(s, TL_ERR_ARGUMENT, table[i].says);
			tl_context_destroy(ctx);
			continue;
		}
		assert_int_equal(s, TL_OK);
		assert_int_equal(tl_module_kernel(m, "k", &k), TL_OK);
		assert_int_equal(tl_buffer_create(ctx, 64, &b), TL_OK);
		const tl_config config = {.grid = {3, 2}};
		const tl_arg args[] = {tl_buf(TL_F32, b), tl_int(32)}, odd[] = {args[0], tl_int(33)};
		driver.launch.nparams = 2;
		for (int round = 0; round < 2; round++) {
			driver.log[0] = 0;
			assert_int_equal(tl_launch(k, &config, args, 2), TL_OK);
			assert_int_equal(strstr(driver.log, "load") != NULL, !round);
			assert_int_equal(driver.launch.threads, 256);
			assert_int_equal(driver.launch.shared, 1024);
			assert_int_equal(driver.launch.grid[1], 2);
			assert_int_equal(driver.launch.bits[1] & 0xFFFFFFFF, 32);
			assert_error(tl_launch(k, &config, odd, 2), TL_ERR_ARGUMENT,
				     "k: argument 2, 'n', must be a number of type i32:16; it is the integer 33");
		}
		tl_context_destroy(ctx);
		assert_clean(0);
	}
}

static int compilations;

static bool counting_compile(struct device *d, const struct build *b, struct compiled *out)
{
	compilations++;
	const struct target target = cuda_ops.target(d);
	return device_compile(&target, b, out);
}

/* Two GPUs: one compilation, and a module in each. */
static void several_gpus(void **state)
{
	(void)state;
	struct device_ops ops = cuda_ops;
	tl_context *ctx[2];
	ops.compile = counting_compile;
	compilations = 0;
	setenv("TL_CACHE", "0", true);
	for (int i = 0; i < 2; i++) {
		struct device *d;
		tl_module *m;
		tl_kernel *k;
		tl_device_info info;
		assert_int_equal(cuda_device_new(&api, i, NULL, &d), TL_OK);
		d->ops = &ops;
		assert_int_equal(context_new(d, &ctx[i]), TL_OK);
		assert_int_equal(tl_device(ctx[i], &info), TL_OK);
		assert_string_equal(info.name, i ? "Fake GPU 41" : "Fake GPU 40");
		if (i)
			assert_int_equal(tl_context_share(ctx[1], ctx[0]), TL_OK);
		assert_int_equal(tl_module_load_source(ctx[i], "k.tl", add_one, sizeof add_one - 1, &m), TL_OK);
		assert_int_equal(tl_module_kernel(m, "k", &k), TL_OK);
		const tl_arg args[] = {tl_range(TL_F32, (void *)(uintptr_t)0x7000000, 64), tl_int(16)};
		assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}}, args, 2), TL_OK);
		assert_int_equal(driver.modules, i + 1);
	}
	assert_int_equal(compilations, 1);
	tl_context_destroy(ctx[0]);
	tl_context_destroy(ctx[1]);
	assert_clean(0);
}

/* Copies between GPUs: in the context and on the stream of the one that gets the bytes. */
static void copies_between(void **state)
{
	(void)state;
	tl_context *ctx[3];
	tl_buffer *b[3];
	tl_event *done;
	for (int i = 0; i < 3; i++) { /* the last one on the first GPU, too */
		struct device *d;
		assert_int_equal(cuda_device_new(&api, i % 2, NULL, &d), TL_OK);
		assert_int_equal(context_new(d, &ctx[i]), TL_OK);
		assert_int_equal(tl_buffer_create(ctx[i], 256, &b[i]), TL_OK);
	}
	assert_ptr_equal(tl_context_stream(ctx[1]), second_stream);
	CUstream const mine = (CUstream)(uintptr_t)77;
	for (int i = 0; i < 4; i++) {
		int to = i % 2, from = 1 - to;
		driver.log[0] = 0;
		assert_int_equal(tl_buffer_copy_async(b[to], 16, b[from], 64, 100, i < 2 ? NULL : mine), TL_OK);
		assert_string_equal(driver.log, " push peer pop");
		assert_int_equal(driver.peer.dst, (uintptr_t)tl_buffer_ptr(b[to]) + 16);
		assert_int_equal(driver.peer.src, (uintptr_t)tl_buffer_ptr(b[from]) + 64);
		assert_int_equal(driver.peer.bytes, 100);
		assert_ptr_equal(driver.peer.to, to ? second_primary : primary);
		assert_ptr_equal(driver.peer.from, to ? primary : second_primary);
		assert_ptr_equal(driver.copied_on, i >= 2 ? mine : to ? second_stream : first_stream);
	}
	driver.log[0] = 0;
	assert_int_equal(tl_buffer_copy_async(b[2], 0, b[0], 0, 256, NULL), TL_OK);
	assert_string_equal(driver.log, " push copy pop"); /* one GPU, one context of the driver's */
	assert_int_equal(tl_buffer_copy_async(b[1], 0, b[0], 0, 0, NULL), TL_OK);
	assert_error(tl_buffer_copy_async(b[1], 200, b[0], 0, 57, NULL), TL_ERR_ARGUMENT, "tl_buffer_copy_async: ");
	assert_error(tl_buffer_copy_async(b[1], 0, b[0], 200, 57, NULL), TL_ERR_ARGUMENT, "tl_buffer_copy_async: ");
	assert_string_equal(driver.log, " push copy pop");
	/* the stream that copies waits for what the other context has launched */
	assert_int_equal(tl_event_create(ctx[0], &done), TL_OK);
	driver.log[0] = 0;
	assert_int_equal(tl_event_record(done, NULL), TL_OK);
	assert_int_equal(tl_event_wait(done, tl_context_stream(ctx[1])), TL_OK);
	assert_string_equal(driver.log, " push record pop push stream_wait pop");
	assert_ptr_equal(driver.waits, second_stream);
	/* the caller's context is what it was, also when the copy fails */
	driver.stack[driver.depth++] = primary;
	driver.fail = "peer";
	driver.error = 3;
	assert_error(tl_buffer_copy_async(b[1], 0, b[0], 0, 8, NULL), TL_ERR_DRIVER, "cuMemcpyPeerAsync: some failure");
	assert_ptr_equal(driver.stack[driver.depth - 1], primary);
	driver.fail = NULL;
	assert_int_equal(tl_buffer_copy_async(b[1], 0, b[0], 0, 8, NULL), TL_OK);
	/* contexts end in any order, buffers with them */
	tl_context_destroy(ctx[0]);
	tl_context_release(ctx[1]);
	tl_buffer_destroy(b[1]);
	tl_context_destroy(ctx[2]);
	assert_clean(1);
}

/* Another process launches. */
static void launch_cached(int compiles)
{
	struct device_ops ops = cuda_ops;
	struct device *d;
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	ops.compile = counting_compile;
	compilations = driver.loads = 0;
	assert_int_equal(cuda_device_new(&api, 0, NULL, &d), TL_OK);
	d->ops = &ops;
	assert_int_equal(context_new(d, &ctx), TL_OK);
	assert_int_equal(tl_module_load_source(ctx, "k.tl", add_one, sizeof add_one - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "k", &k), TL_OK);
	const tl_arg args[] = {tl_range(TL_F32, (void *)(uintptr_t)0x7000000, 64), tl_int(16)};
	driver.launch.nparams = 2;
	assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}}, args, 2), TL_OK);
	assert_int_equal(driver.modules, 1);
	assert_int_equal(compilations, compiles);
	assert_int_equal(driver.loads, 1);
	tl_context_destroy(ctx);
	assert_clean(0);
}

static void disk_cache(void **state)
{
	(void)state;
	char folder[] = "/tmp/tlc-cuda-XXXXXX", command[64];
	assert_non_null(mkdtemp(folder));
	setenv("TL_CACHE_DIR", folder, true);
	unsetenv("TL_CACHE");
	launch_cached(1);
	launch_cached(0);
	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	setenv("TL_CACHE", "0", true);
	launch_cached(1); /* nothing is kept */
}

/* While a stream is captured into a graph its launches are no more than launches: what is not there is refused. */
static void capturing(void **state)
{
	(void)state;
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	tl_buffer *b;
	double ms;
	setenv("TL_CACHE", "0", true);
	assert_int_equal(context_new(open_device(NULL), &ctx), TL_OK);
	assert_int_equal(tl_module_load_source(ctx, "k.tl", add_one, sizeof add_one - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "k", &k), TL_OK);
	assert_int_equal(tl_buffer_create(ctx, 1024, &b), TL_OK);
	void *const stream = (void *)(uintptr_t)77, *const other = (void *)(uintptr_t)78;
	tl_config config = {.grid = {1}, .stream = stream};
	tl_arg args[] = {tl_buf(TL_F32, b), tl_int(16)}, odd[] = {args[0], tl_int(5)};
	driver.captured = stream;
	for (int i = 0; i < 2; i++) {
		driver.log[0] = 0;
		assert_error(
			tl_launch(k, &config, args, 2), TL_ERR_ARGUMENT,
			"k: the stream is being captured into a CUDA graph, and the variant for these arguments is "
			"not loaded: nothing can be compiled or loaded during the capture\n"
			"      = hint: call tl_prepare with these arguments before the capture begins");
		assert_string_equal(driver.log, " push capturing pop");
	}
	config.stream = (void *)1; /* the legacy stream: the driver's word for it is an error */
	assert_error(tl_launch(k, &config, args, 2), TL_ERR_ARGUMENT, "is being captured");
	/* in another stream all is as ever */
	config.stream = other;
	assert_int_equal(tl_prepare(k, &config, args, 2, NULL), TL_OK);
	config.stream = stream;
	driver.log[0] = 0;
	assert_int_equal(tl_launch(k, &config, args, 2), TL_OK);
	assert_int_equal(tl_launch(k, &config, args, 2), TL_OK);
	assert_string_equal(driver.log, " launch push launch pop launch push launch pop");
	assert_ptr_equal(driver.launch.stream, stream);
	assert_error(tl_launch(k, &config, odd, 2), TL_ERR_ARGUMENT, "is being captured");
	assert_error(tl_time(k, &config, args, 2, 0, 1, &ms), TL_ERR_ARGUMENT, "which cannot be timed");
	driver.captured = NULL;
	assert_int_equal(tl_launch(k, &config, odd, 2), TL_OK);
	assert_int_equal(driver.capture_mode, 0);
	tl_context_destroy(ctx);
	assert_clean(0);
}

/* The kind of a grid, at each of its bounds. */
static void kinds_of_grids(void **state)
{
	enum { MULTIPROCESSORS = 132, MANY = MANY_WAVES * MULTIPROCESSORS };
	static const struct {
		u32 most, grid[3];
		enum grid_kind kind;
	} cases[] = {
		{MULTIPROCESSORS, {MULTIPROCESSORS, 1, 1}, GRID_FEW},
		{MULTIPROCESSORS, {MULTIPROCESSORS + 1, 1, 1}, GRID_MANY},
		{MULTIPROCESSORS, {4, MULTIPROCESSORS / 4 + 1, 1}, GRID_MANY},
		{MULTIPROCESSORS, {MANY, 1, 1}, GRID_MANY},
		{MULTIPROCESSORS, {MANY + 1, 1, 1}, GRID_WAVES},
		{MULTIPROCESSORS, {32, MULTIPROCESSORS, 1}, GRID_WAVES},
		{MULTIPROCESSORS, {33, MULTIPROCESSORS, 1}, GRID_ROWS},
		{MULTIPROCESSORS, {33, 1, MULTIPROCESSORS}, GRID_WAVES},
		{8, {8, 1, 1}, GRID_FEW}, /* max_ctas */
		{8, {64, 1, 1}, GRID_MANY},
		{8, {MANY + 1, 1, 1}, GRID_WAVES},
		{0, {MANY + 1, 2, 1}, GRID_FEW},
	};
	(void)state;
	for (u32 i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(kind_of_programs(MULTIPROCESSORS, cases[i].most, cases[i].grid), cases[i].kind);
}

/* An AOT bundle with a kernel for many programs, and a kernel for few that also serves other grids if the first one
 * refuses the arguments. */
static void bundles_for_grids(void **state)
{
	enum { MANY_BYTES = 1024, FEW_BYTES = 2048 };
	static struct slot slots[] = {{.name = "n", .leaf = 0, .dtype = DT_I32, .divisibility = 16}}, any[1];
	struct arena a = {0};
	tl_blob blobs[2];
	tl_context *ctx;
	tl_compiled *c;
	(void)state;
	any[0] = slots[0];
	any[0].divisibility = 1;
	for (int i = 0; i < 2; i++) {
		struct image im = {.source = "k.tl",
				   .signature = "",
				   .target = "cuda:sm_90",
				   .codegen = {.fp_fusion = FP_FUSION_ON, .ftz = FTZ_ON},
				   .name = "k",
				   .code = ".version 8.0",
				   .code_bytes = 12,
				   .num_warps = 4,
				   .shared_bytes = i ? FEW_BYTES : MANY_BYTES,
				   .cluster = 1,
				   .grids = i ? ALL_GRIDS : 1 << GRID_WAVES | 1 << GRID_ROWS,
				   .slots = i ? any : slots,
				   .nslots = 1};
		blobs[i].bytes = image_write(&im, &a, &blobs[i].size);
	}
	driver.capability = 90;
	assert_int_equal(context_new(open_device(NULL), &ctx), TL_OK);
	assert_int_equal(tl_compiled_load(ctx, blobs, 2, &c), TL_OK);
	tl_device_info info;
	assert_int_equal(tl_device(ctx, &info), TL_OK);
	driver.launch.nparams = 1;
	for (int more = -1; more <= 1; more++)
		for (u64 n = 16; n <= 17; n++) {
			const u32 programs = (u32)(MANY_WAVES * info.num_sms + more);
			assert_int_equal(tl_compiled_launch(c, &(tl_config){.grid = {programs}}, &n, 1), TL_OK);
			assert_int_equal(driver.launch.shared, more > 0 && n == 16 ? MANY_BYTES : FEW_BYTES);
			assert_int_equal(driver.launch.grid[0], programs);
		}
	tl_compiled_destroy(c);
	tl_context_destroy(ctx);
	arena_free(&a);
	assert_clean(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_of_grids),	     cmocka_unit_test_setup(bundles_for_grids, reset),
		cmocka_unit_test_setup(attributes, reset),   cmocka_unit_test_setup(images, reset),
		cmocka_unit_test_setup(several_gpus, reset), cmocka_unit_test_setup(copies_between, reset),
		cmocka_unit_test_setup(disk_cache, reset),   cmocka_unit_test_setup(capturing, reset),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The CUDA device on a simulated driver, a table of functions that record their calls: which calls the device makes, in
 * which context and order, and how it reports their errors. `make test-gpu` makes the same calls on a GPU. */
#include "cache_folder.h"
#include "fake_cuda.h"

static tl_status load_clusters(struct device *d, int num_warps, i32 shared, i32 cluster, void **out)
{
	static const char ptx[] = ".version 8.0";
	struct image im = {.name = "k",
			   .code = ptx,
			   .code_bytes = sizeof ptx - 1,
			   .shared_bytes = shared,
			   .num_warps = num_warps,
			   .cluster = cluster};
	return d->ops->load(d, &(struct device_load){.image = &im}, out);
}

static tl_status load(struct device *d, int num_warps, i32 shared, void **out)
{
	return load_clusters(d, num_warps, shared, 1, out);
}

/* --- tests --------------------------------------------------------------------------------------------------- */

static void opening(void **state)
{
	(void)state;
	struct device *d;
	assert_error(cuda_device_new(&api, 2, NULL, &d), TL_ERR_DEVICE, "there is no device cuda:2: the driver has 2");
	driver.capability = 70;
	assert_error(cuda_device_new(&api, 0, NULL, &d), TL_ERR_DEVICE,
		     "Fake GPU 40 has compute capability 7.0; kernels need 7.5 (Turing) or newer");
	driver.capability = 90;
	static const char *const calls[] = {"count", "get", "retain", "stream"};
	for (u32 i = 0; i < ARRAY_LEN(calls); i++) {
		driver.fail = calls[i];
		driver.error = 999;
		assert_error(cuda_device_new(&api, 0, NULL, &d), TL_ERR_DRIVER, "unknown error (error, 999)");
		assert_clean(0);
	}
	driver.fail = "retain";
	driver.error = 2;
	assert_error(cuda_device_new(&api, 0, NULL, &d), TL_ERR_MEMORY,
		     "cuDevicePrimaryCtxRetain: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2)");
	assert_clean(0);
}

/* Only a missing GPU (and a missing driver) may stand for "use the CPU". */
static void starting(void **state)
{
	(void)state;
	assert_int_equal(cuda_start(&api), TL_OK);
	assert_false(cuda_no_device(&api));
	driver.devices = 0;
	assert_true(cuda_no_device(&api));
	driver.devices = 2;
	static const struct {
		const char *call;
		CUresult error;
		tl_status status;
		bool none;
	} table[] = {{"init", 100, TL_ERR_DEVICE, true}, {"init", 803, TL_ERR_DRIVER, false},
		     {"init", 999, TL_ERR_DRIVER, false},
		     {"init", 101, TL_ERR_DEVICE, false}, {"count", 100, TL_OK, true}, {"count", 3, TL_OK, false}};
	for (u32 i = 0; i < ARRAY_LEN(table); i++) {
		driver.fail = table[i].call;
		driver.error = table[i].error;
		assert_int_equal(cuda_start(&api), table[i].status);
		assert_int_equal(cuda_no_device(&api), table[i].none);
	}
	driver.fail = "init";
	driver.error = 803;
	assert_error(cuda_start(&api), TL_ERR_DRIVER, "cuInit: some failure (CUDA_ERROR_SOME, 803)");
}

static void targets(void **state)
{
	(void)state;
	static const struct {
		int capability;
		const char *target;
	} table[] = {{75, "cuda:sm_75"}, {80, "cuda:sm_80"}, {86, "cuda:sm_86"}, {89, "cuda:sm_89"},
		     {90, "cuda:sm_90a"}, {100, "cuda:sm_90"}, {120, "cuda:sm_90"}};
	for (u32 i = 0; i < ARRAY_LEN(table); i++) {
		driver.capability = table[i].capability;
		struct device *d = open_device(NULL);
		tl_device_info info = {0};
		d->ops->info(d, &info);
		assert_string_equal(info.target, table[i].target);
		assert_string_equal(info.name, "Fake GPU 40");
		assert_int_equal(info.num_sms, 132);
		assert_int_equal(info.shared_bytes, 232448);
		d->ops->close(d);
		assert_clean(0);
	}
}

/* What a product is compiled for is the memory that this GPU has, not that of others which run the same PTX. */
static void limits(void **state)
{
	(void)state;
	static const char text[] =
		"import triton\nimport triton.language as tl\n\n"
		"@triton.jit\ndef k(a, b, c, K):\n"
		"    i, j = tl.arange(0, 128)[:, None], tl.arange(0, 128)[None, :]\n"
		"    acc = tl.zeros((128, 128), tl.float32)\n"
		"    for n in tl.range(0, K, 64, num_stages=6):\n"
		"        r = n + tl.arange(0, 64)\n"
		"        acc = tl.dot(tl.load(a + i * 4096 + r[None, :]), tl.load(b + r[:, None] * 4096 + j), acc)\n"
		"    tl.store(c + i * 128 + j, acc)\n";
	static const struct {
		int capability, shared_bytes;
	} table[] = {{120, 101376}, {100, 232448}, {90, 232448}, {89, 101376}, {80, 166912}, {75, 65536}, {120, 70000}};
	for (u32 i = 0; i < ARRAY_LEN(table); i++) {
		driver.capability = table[i].capability;
		driver.shared_bytes = table[i].shared_bytes;
		struct device *d = open_device(NULL);
		struct unit u;
		struct compiled c = {0};
		static const struct arg_spec args[] = {{.type = "*fp16:16"}, {.type = "*fp16:16"}, {.type = "*fp32:16"},
						       {.type = "i32:16"}};
		assert_true(unit_open(&u, "t.tl", text, sizeof text - 1));
		struct build b = {.unit = &u,
				  .func = u.module->funcs.at[0],
				  .args = args,
				  .codegen = {.num_warps = 8, .num_stages = 3}};
		if (!device_build(d, &b, &c))
			fail_msg("%s", u.diags.text.at);
		assert_true(c.shared_bytes <= table[i].shared_bytes);
		assert_true(c.shared_bytes > table[i].shared_bytes / 2);
		unit_free(&u);
		d->ops->close(d);
	}
}

/* Each call runs in the device's context and restores the caller's; where it is current already, nothing is pushed. */
static void contexts(void **state)
{
	(void)state;
	struct device *d = open_device(NULL);
	void *p;
	assert_int_equal(d->ops->alloc(d, 100, &p), TL_OK);
	assert_string_equal(driver.log, " push alloc pop");
	driver.stack[driver.depth++] = primary;
	driver.log[0] = 0;
	d->ops->free(d, p);
	assert_string_equal(driver.log, " free");
	driver.stack[0] = other_context;
	driver.log[0] = 0;
	assert_int_equal(d->ops->synchronize(d), TL_OK);
	assert_string_equal(driver.log, " push ctx_synchronize pop");
	assert_ptr_equal(driver.stack[0], other_context);
	d->ops->close(d);
	assert_clean(1);
	/* a caller's context is used, and not destroyed */
	driver.depth = 0;
	d = open_device(other_context);
	assert_int_equal(d->ops->alloc(d, 0, &p), TL_OK);
	d->ops->free(d, p);
	assert_null(strstr(driver.log, "retain"));
	d->ops->close(d);
	assert_null(strstr(driver.log, "release"));
	assert_clean(0);
}

static void copies(void **state)
{
	(void)state;
	struct device *d = open_device(NULL);
	char x[4] = {0};
	void *p = (void *)(uintptr_t)0x7000000;
	assert_int_equal(device_write(d, p, x, 4), TL_OK);
	assert_string_equal(driver.log, " push write pop push sync pop");
	driver.log[0] = 0;
	assert_int_equal(device_read(d, x, p, 4), TL_OK);
	assert_string_equal(driver.log, " push read pop push sync pop");
	assert_int_equal(x[3], 7);
	driver.log[0] = 0;
	assert_int_equal(device_fill(d, p, 1, 4), TL_OK);
	assert_string_equal(driver.log, " push set pop push sync pop");
	driver.fail = "sync";
	driver.error = 700;
	assert_error(device_read(d, x, p, 4), TL_ERR_KERNEL,
		     "cuStreamSynchronize: an illegal memory access was encountered (CUDA_ERROR_SOME, 700)");
	assert_non_null(strstr(tl_error(NULL), "hint: a kernel that was launched earlier failed"));
	driver.fail = NULL;
	assert_error(d->ops->alloc(d, (size_t)1 << 40, &p), TL_ERR_MEMORY, "allocating 1099511627776 bytes");
	assert_int_equal(driver.depth, 0);
	d->ops->close(d);
	assert_clean(0);
}

static void loading(void **state)
{
	(void)state;
	struct device *d = open_device(NULL);
	void *k;
	assert_int_equal(load(d, 4, 1024, &k), TL_OK);
	assert_string_equal(driver.log, " push load function func_get func_get pop");
	d->ops->unload(d, k);
	tl_resources r;
	assert_int_equal(load(d, 8, 2048, &k), TL_OK);
	driver.log[0] = 0;
	assert_int_equal(d->ops->resources(d, k, &r), TL_OK);
	assert_string_equal(driver.log, " push func_get func_get occupancy pop");
	assert_int_equal(r.registers, 255);
	assert_int_equal(r.local_bytes, 48);
	assert_int_equal(r.threads, 256);
	assert_int_equal(r.shared_bytes, 2048);
	assert_int_equal(r.blocks, 1);
	assert_int_equal(r.resident, 3);
	driver.fail = "occupancy";
	driver.error = 1;
	assert_error(d->ops->resources(d, k, &r), TL_ERR_DRIVER, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
	driver.fail = NULL;
	d->ops->unload(d, k);
	assert_int_equal(load_clusters(d, 8, 2048, 2, &k), TL_OK);
	assert_int_equal(d->ops->resources(d, k, &r), TL_OK);
	assert_int_equal(r.blocks, 2);
	assert_int_equal(r.resident, 0);
	d->ops->unload(d, k);
	assert_int_equal(load(d, 4, 100000, &k), TL_OK);
	assert_int_equal(driver.max_dynamic_shared, 100000);
	d->ops->unload(d, k);
	assert_error(load(d, 4, 300000, &k), TL_ERR_COMPILE,
		     "k needs 300000 bytes of shared memory per block, and this GPU has 232448");
	driver.most_threads = 128;
	assert_error(load(d, 8, 0, &k), TL_ERR_COMPILE, "has at most 128 threads; num_warps=8 needs 256");
	driver.fail = "load";
	driver.error = 218;
	assert_error(load(d, 4, 0, &k), TL_ERR_DRIVER, "line 7; fatal: nonsense");
	driver.error = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
	assert_error(load(d, 4, 0, &k), TL_ERR_DRIVER, "this driver supports CUDA 12.4");
	driver.fail = "function";
	driver.error = 500;
	assert_error(load(d, 4, 0, &k), TL_ERR_DRIVER, "cuModuleGetFunction");
	driver.fail = "func_set";
	assert_error(load(d, 4, 100000, &k), TL_ERR_DRIVER, "cuFuncSetAttribute");
	d->ops->close(d);
	assert_clean(0);
}

/* In the caller's context, launches join the caller's work on the legacy default stream. */
static void launching_in_callers_context(void **state)
{
	(void)state;
	struct device *d = open_device(other_context);
	void *k;
	assert_int_equal(load(d, 4, 0, &k), TL_OK);
	struct device_launch l = {.kernel = k, .grid = {1, 1, 1}};
	driver.launch.nparams = 0;
	assert_int_equal(d->ops->launch(d, &l), TL_OK);
	assert_int_equal((uintptr_t)driver.launch.stream, CU_STREAM_LEGACY);
	assert_null(strstr(driver.log, "stream"));
	d->ops->unload(d, k);
	d->ops->close(d);
	assert_clean(0);
}

static void launching(void **state)
{
	(void)state;
	struct device *d = open_device(NULL);
	void *k;
	assert_int_equal(load(d, 8, 2048, &k), TL_OK);
	driver.log[0] = 0;
	u64 args[] = {0x7000000, 5, 0x3F800000};
	struct device_launch l = {.kernel = k, .grid = {10, 2, 3}, .args = args, .nargs = 3};
	driver.launch.nparams = 3;
	assert_int_equal(d->ops->launch(d, &l), TL_OK);
	assert_string_equal(driver.log, " launch push launch pop");
	assert_memory_equal(driver.launch.grid, l.grid, sizeof l.grid);
	assert_memory_equal(driver.launch.bits, args, sizeof args);
	assert_int_equal(driver.launch.threads, 256);
	assert_int_equal(driver.launch.shared, 2048);
	assert_ptr_equal(driver.launch.stream, first_stream);
	/* whatever context is current, and stays so; streams by name are the current one's */
	static const struct {
		bool current, other;
		uintptr_t stream;
		const char *calls;
	} table[] = {
		{true, false, 77, " launch"},
		{true, true, 77, " launch elsewhere push launch pop"},
		{false, false, 77, " launch push launch pop"},
		{true, false, CU_STREAM_LEGACY, " launch"},
		{true, true, CU_STREAM_LEGACY, " push launch pop"},
		{false, false, CU_STREAM_PER_THREAD, " push launch pop"},
	};
	for (u32 i = 0; i < ARRAY_LEN(table); i++) {
		driver.depth = table[i].current;
		driver.stack[0] = table[i].other ? other_context : primary;
		driver.log[0] = 0;
		l.stream = (void *)table[i].stream;
		assert_int_equal(d->ops->launch(d, &l), TL_OK);
		assert_string_equal(driver.log, table[i].calls);
		assert_int_equal((uintptr_t)driver.launch.stream, table[i].stream);
		assert_int_equal(driver.depth, table[i].current);
	}
	/* clusters, but not where all blocks must find room at once */
	for (int i = 0; i < 2; i++) {
		l.pairs = true;
		l.cooperative = i;
		assert_int_equal(d->ops->launch(d, &l), TL_OK);
		assert_int_equal(driver.cooperative, i);
		assert_memory_equal(driver.cluster, ((unsigned[]){i ? 0 : 2, !i, !i}), sizeof driver.cluster);
	}
	l.pairs = l.cooperative = false;
	driver.depth = 0;
	driver.fail = "launch";
	driver.error = 701;
	assert_error(d->ops->launch(d, &l), TL_ERR_DRIVER, "cuLaunchKernel: some failure (CUDA_ERROR_SOME, 701)");
	d->ops->unload(d, k);
	d->ops->close(d);
	assert_clean(0);
}

static void timing(void **state)
{
	(void)state;
	struct device *d = open_device(NULL);
	void *k;
	double ms[3] = {0};
	assert_int_equal(load(d, 4, 0, &k), TL_OK);
	struct device_launch l = {.kernel = k, .grid = {1, 1, 1}};
	driver.log[0] = 0;
	assert_int_equal(d->ops->time(d, &l, 1, 2, ms), TL_OK);
	assert_string_equal(driver.log,
			    " push alloc event event event event launch set record launch record set record launch "
					"record sync pop");
	assert_true(ms[0] == 3 && ms[1] == 6);
	driver.log[0] = 0;
	assert_int_equal(d->ops->time(d, &l, 0, 3, ms), TL_OK);
	assert_null(strstr(driver.log, "alloc")); /* kept */
	assert_true(median(ms, 3) == 6);
	driver.fail = "launch";
	driver.error = 1;
	assert_error(d->ops->time(d, &l, 0, 3, ms), TL_ERR_DRIVER, "cuLaunchKernel");
	driver.fail = NULL;
	assert_int_equal(driver.events, 0);
	d->ops->unload(d, k);
	d->ops->close(d);
	assert_clean(0);
	/* less memory: a smaller scratch, then none and a note */
	for (int megabytes = 200; megabytes >= 100; megabytes -= 100) {
		d = open_device(NULL);
		assert_int_equal(load(d, 4, 0, &k), TL_OK);
		l.kernel = k;
		driver.free_bytes = (size_t)megabytes << 20;
		driver.log[0] = 0;
		assert_int_equal(d->ops->time(d, &l, 0, 1, ms), TL_OK);
		assert_int_equal(strstr(driver.log, "set") != NULL, megabytes == 200);
		if (megabytes == 100)
			assert_non_null(strstr(tl_error(NULL), "note: out of memory"));
		d->ops->unload(d, k);
		d->ops->close(d);
		assert_clean(0);
	}
}

/* Through the public calls, as far as they need no compiler. */
static void public_calls(void **state)
{
	(void)state;
	tl_context *ctx;
	tl_buffer *b;
	tl_device_info info;
	char x[16] = {0};
	assert_int_equal(context_new(open_device(NULL), &ctx), TL_OK);
	assert_int_equal(tl_device(ctx, &info), TL_OK);
	assert_string_equal(info.kind, "cuda");
	assert_int_equal(tl_buffer_create(ctx, 16, &b), TL_OK);
	assert_int_equal(tl_buffer_write(b, 0, x, 16), TL_OK);
	assert_int_equal(tl_buffer_read(b, 8, x, 8), TL_OK);
	tl_context_destroy(ctx);
	assert_clean(0);
}

static void queue(void **state)
{
	(void)state;
	tl_context *ctx, *other;
	tl_buffer *a, *b, *host, *wrapped;
	tl_event *from, *to;
	double ms = 0;
	float x = 1.5f;
	u16 half = 0x3C00;
	u8 byte = 9;
	u64 wide = 0x1122334455667788, same = 0x0000000500000005;
	CUstream const mine = (CUstream)(uintptr_t)77;
	assert_int_equal(context_new(open_device(NULL), &ctx), TL_OK);
	assert_ptr_equal(tl_context_stream(ctx), first_stream);
	assert_int_equal(tl_buffer_create(ctx, 64, &a), TL_OK);
	assert_int_equal(tl_buffer_create(ctx, 64, &b), TL_OK);
	assert_int_equal(tl_buffer_create_host(ctx, 64, &host), TL_OK);
	assert_int_equal(tl_buffer_wrap(ctx, (void *)(uintptr_t)0x9000000, 64, &wrapped), TL_OK);
	memset(tl_buffer_ptr(host), 1, 64);
	driver.log[0] = 0;
	assert_int_equal(tl_buffer_write_async(a, 0, tl_buffer_ptr(host), 64, NULL), TL_OK);
	assert_ptr_equal(driver.copied_on, first_stream);
	assert_int_equal(tl_buffer_read_async(a, 0, tl_buffer_ptr(host), 64, mine), TL_OK);
	assert_ptr_equal(driver.copied_on, mine);
	assert_int_equal(tl_buffer_copy_async(b, 0, a, 32, 32, mine), TL_OK);
	assert_string_equal(driver.log, " push write pop push read pop push copy pop"); /* nothing waits */
	assert_error(tl_buffer_copy_async(a, 0, a, 8, 16, NULL), TL_ERR_ARGUMENT, "the two parts overlap");
	driver.log[0] = 0;
	assert_int_equal(tl_buffer_fill_async(a, 0, &byte, 1, 3, NULL), TL_OK);
	assert_int_equal(tl_buffer_fill_async(a, 0, &half, 2, 3, NULL), TL_OK);
	assert_int_equal(driver.set_values[0], 9);
	assert_int_equal(driver.set_values[1], 0x3C00);
	assert_int_equal(tl_buffer_fill_async(a, 0, &x, 4, 3, NULL), TL_OK);
	assert_int_equal(driver.set_values[2], 0x3FC00000);
	assert_int_equal(tl_buffer_fill_async(a, 0, &wide, 8, 3, NULL), TL_OK);
	assert_int_equal(driver.set_values[0], 0x55667788);
	assert_int_equal(driver.set_values[1], 0x11223344);
	assert_int_equal(tl_buffer_fill_async(a, 0, &same, 8, 3, NULL), TL_OK);
	assert_int_equal(driver.set_values[2], 5);
	assert_int_equal(driver.set_values[3], 6); /* words */
	assert_string_equal(driver.log, " push set pop push set16 pop push set32 pop push set_rows set_rows pop"
					" push set32 pop");
	assert_int_equal(tl_event_create(ctx, &from), TL_OK);
	assert_int_equal(tl_event_create(ctx, &to), TL_OK);
	driver.log[0] = 0;
	assert_int_equal(tl_event_record(from, NULL), TL_OK);
	assert_int_equal(tl_event_record(to, mine), TL_OK);
	assert_int_equal(tl_event_wait(to, NULL), TL_OK);
	assert_int_equal(tl_event_synchronize(to), TL_OK);
	assert_int_equal(tl_event_elapsed(from, to, &ms), TL_OK);
	assert_true(ms == 3);
	assert_string_equal(driver.log,
			    " push record pop push record pop push stream_wait pop push event_sync pop push pop");
	/* another context: another GPU */
	assert_int_equal(context_new(open_device(other_context), &other), TL_OK);
	tl_buffer *c;
	assert_int_equal(tl_buffer_create(other, 64, &c), TL_OK);
	driver.log[0] = 0;
	assert_int_equal(tl_buffer_copy_async(c, 0, a, 0, 64, NULL), TL_OK);
	assert_string_equal(driver.log, " push peer pop");
	tl_context_destroy(other);
	tl_buffer_destroy(wrapped); /* not freed: it is the caller's */
	tl_buffer_destroy(host);
	tl_event_destroy(from);
	tl_context_destroy(ctx);
	assert_clean(0);
}

static void enumeration(void **state)
{
	(void)state;
	int n;
	tl_device_info info = {0};
	assert_int_equal(cuda_count(&api, &n), TL_OK);
	assert_int_equal(n, 2);
	assert_int_equal(cuda_describe(&api, 1, &info), TL_OK);
	assert_string_equal(info.spec, "cuda:1");
	assert_string_equal(info.name, "Fake GPU 41");
	assert_string_equal(info.target, "cuda:sm_90a");
	assert_int_equal(info.capability, 90);
	assert_int_equal(info.num_sms, 132);
	driver.capability = 120;
	assert_int_equal(cuda_describe(&api, 0, &info), TL_OK);
	assert_int_equal(info.capability, 120);
	driver.capability = 70; /* it is there, and no kernel runs on it */
	assert_int_equal(cuda_describe(&api, 0, &info), TL_OK);
	assert_int_equal(info.capability, 70);
	assert_string_equal(info.target, "");
	assert_null(strstr(driver.log, "retain"));
	driver.fail = "init";
	driver.error = 803;
	assert_error(cuda_count(&api, &n), TL_ERR_DRIVER, "cuInit: some failure");
	assert_int_equal(tl_error_details()->driver_result, 803);
	driver.error = 100;
	assert_int_equal(cuda_count(&api, &n), TL_OK);
	assert_int_equal(n, 0);
}

static const char one_kernel[] = "import triton\nimport triton.language as tl\n\n@triton.jit\n"
				 "def k(x):\n    tl.store(x, 1)\n";

static tl_context *open_context(void)
{
	tl_context *ctx;
	assert_int_equal(context_new(open_device(NULL), &ctx), TL_OK);
	return ctx;
}

/* The status of a failure, its text and details; and the next context is as good as new. */
static void faults(void **state)
{
	static const struct {
		const char *call;
		CUresult error;
		bool stays; /* the context is lost */
		tl_status status;
		const char *text;
	} table[] = {{"sync", 700, true, TL_ERR_KERNEL, "the kernel is 'k'"},
		     {"sync", 719, true, TL_ERR_KERNEL, "the kernel is 'k'"},
		     {"sync", 710, true, TL_ERR_KERNEL, "the kernel is 'k'"},
		     {"sync", 709, true, TL_ERR_DRIVER, "this context is lost"},
		     {"sync", 214, true, TL_ERR_DRIVER, "this context is lost"},
		     {"launch", 2, false, TL_ERR_MEMORY, "the kernel is 'k'"},
		     {"launch", 701, false, TL_ERR_DRIVER, "the kernel is 'k'"},
		     {"load", 2, false, TL_ERR_MEMORY, "the kernel is 'k'"}};
	for (u32 i = 0; i < ARRAY_LEN(table); i++) {
		reset(state);
		tl_context *ctx = open_context();
		tl_module *m;
		tl_kernel *k;
		tl_buffer *b;
		char bytes[16];
		bool behind = !strcmp(table[i].call, "sync");
		assert_int_equal(tl_buffer_create(ctx, 16, &b), TL_OK);
		tl_arg arg = tl_buf(TL_I32, b);
		assert_int_equal(tl_module_load_source(ctx, "k.tl", one_kernel, sizeof one_kernel - 1, &m), TL_OK);
		assert_int_equal(tl_module_kernel(m, "k", &k), TL_OK);
		driver.fail = behind ? NULL : table[i].call;
		driver.error = table[i].error;
		tl_status s = tl_launch(k, &(tl_config){.grid = {1}}, &arg, 1);
		assert_int_equal(s, behind ? TL_OK : table[i].status);
		if (behind) {
			driver.fail = table[i].call;
			driver.lost = table[i].error;
			s = tl_buffer_read(b, 0, bytes, sizeof bytes);
		}
		assert_error(s, table[i].status, table[i].text);
		const tl_error_info *e = tl_error_details();
		assert_int_equal(e->status, table[i].status);
		assert_int_equal(e->driver_result, table[i].error);
		assert_non_null(e->driver_call);
		if (table[i].status != TL_ERR_DRIVER || !behind)
			assert_string_equal(e->kernel, "k");
		driver.fail = NULL;
		s = tl_launch(k, &(tl_config){.grid = {1}}, &arg, 1);
		assert_int_equal(s, table[i].stays ? table[i].status : TL_OK);
		tl_context_destroy(ctx);
		assert_clean(0);
		ctx = open_context(); /* the next one works */
		assert_int_equal(tl_buffer_create(ctx, 16, &b), TL_OK);
		assert_int_equal(tl_buffer_read(b, 0, bytes, sizeof bytes), TL_OK);
		assert_string_equal(tl_error_details()->text, "");
		tl_context_destroy(ctx);
		assert_clean(0);
	}
}

/* A context that was lost before any kernel of ours ran names none. */
static void foreign_fault(void **state)
{
	(void)state;
	tl_context *ctx = open_context();
	tl_module *m;
	tl_kernel *k;
	tl_buffer *b;
	assert_int_equal(tl_buffer_create(ctx, 16, &b), TL_OK);
	tl_arg arg = tl_buf(TL_I32, b);
	assert_int_equal(tl_module_load_source(ctx, "k.tl", one_kernel, sizeof one_kernel - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "k", &k), TL_OK);
	assert_int_equal(tl_prepare(k, NULL, &arg, 1, NULL), TL_OK);
	driver.lost = 700;
	assert_error(tl_launch(k, &(tl_config){.grid = {1}}, &arg, 1), TL_ERR_KERNEL,
		     "a kernel that was launched earlier failed");
	assert_null(tl_error_details()->kernel);
	tl_context_destroy(ctx);
	assert_clean(0);
}

/* --- a folder for the disk cache ----------------------------------------------------------------------------- */

static int new_driver_and_folder(void **state)
{
	reset(state);
	return new_folder(state);
}

/* --- each driver call fails in turn -------------------------------------------------------------------------- */

/* The same call succeeds afterwards. */
#define STEP(call)                                                                                            \
	do {                                                                                                  \
		tl_status s_ = (call);                                                                        \
		if (s_ && (s_ != TL_ERR_DRIVER || !strstr(tl_error(NULL), "some failure")))                   \
			fail_msg("call %d: '%s', '%s'", driver.fail_at, tl_status_name(s_), tl_error(NULL));  \
		if (s_ && (call))                                                                             \
			fail_msg("after call %d: '%s'", driver.fail_at, tl_error(NULL));                      \
	} while (0)

static void each_call_fails(void **state)
{
	static const char
		source[] = "import triton\nimport triton.language as tl\n\n@triton.jit\n"
			   "def k(x):\n    i = tl.arange(0, 256)\n    tl.store(x + i, tl.load(x + i) + 1)\n",
		product[] =
			"@triton.jit\ndef k(a, b, c, n, r):\n"
			"    i, j = tl.arange(0, 128)[:, None], tl.arange(0, 256)[None, :]\n"
			"    acc = tl.zeros((128, 256), tl.float32)\n"
			"    for at in range(0, n, 64):\n"
			"        l = at + tl.arange(0, 64)\n"
			"        acc = tl.dot(tl.load(a + i * r + l[None, :]), tl.load(b + l[:, None] * r + j), acc)\n"
			"    tl.store(c + i * 256 + j, acc)\n";
	struct cuda_api whole = api;
	whole.tensor_map = f_tensor_map;
	int n = 0, made = 0;
	do {
		remove_folder(state);
		new_driver_and_folder(state);
		driver.error = 3;
		driver.fail_at = ++n;
		struct device *d;
		tl_context *ctx;
		tl_module *m, *of_product;
		tl_kernel *k, *multiply;
		tl_buffer *b, *to, *host, *wrapped;
		tl_event *from, *end;
		tl_resources resources;
		tl_device_info info;
		int devices;
		u64 wide = 0x100000002;
		double ms;
		char bytes[1024] = {0};
		STEP(cuda_count(&whole, &devices));
		STEP(cuda_describe(&whole, 0, &info));
		STEP(cuda_device_new(&whole, 0, NULL, &d));
		STEP(context_new(d, &ctx));
		STEP(tl_buffer_create(ctx, sizeof bytes, &b));
		STEP(tl_buffer_write(b, 0, bytes, sizeof bytes));
		STEP(tl_buffer_fill(b, 1));
		STEP(tl_module_load_source(ctx, "k.tl", source, sizeof source - 1, &m));
		STEP(tl_module_kernel(m, "k", &k));
		tl_config config = {.grid = {1}};
		tl_arg arg = tl_buf(TL_F32, b);
		STEP(tl_launch(k, &config, &arg, 1));
		STEP(tl_launch(k, &config, &arg, 1));
		tl_prepared *p;
		STEP(tl_prepare(k, &config, &arg, 1, &p));
		STEP(tl_prepared_launch(p, NULL, NULL, &arg, 1));
		tl_config together = {.grid = {1}, .launch_cooperative_grid = true};
		STEP(tl_launch(k, &together, &arg, 1));
		/* with tensor maps */
		const tl_arg matrices[] = {tl_ptr(TL_F16, (void *)(uintptr_t)0x8000000),
					   tl_ptr(TL_F16, (void *)(uintptr_t)0x8100000),
					   tl_ptr(TL_F32, (void *)(uintptr_t)0x8200000), tl_int(256), tl_int(256)};
		STEP(tl_module_load_source(ctx, "p.tl", product, sizeof product - 1, &of_product));
		STEP(tl_module_kernel(of_product, "k", &multiply));
		STEP(tl_launch(multiply, &(tl_config){.grid = {1}, .num_warps = 8}, matrices, ARRAY_LEN(matrices)));
		STEP(tl_time(k, &config, &arg, 1, 1, 3, &ms));
		STEP(tl_kernel_resources(k, &config, &arg, 1, &resources));
		STEP(tl_buffer_read(b, 0, bytes, sizeof bytes));
		STEP(tl_buffer_create(ctx, sizeof bytes, &to));
		STEP(tl_buffer_create_host(ctx, sizeof bytes, &host));
		STEP(tl_buffer_wrap(ctx, (void *)(uintptr_t)0x9000000, 64, &wrapped));
		STEP(tl_buffer_write_async(b, 0, tl_buffer_ptr(host), sizeof bytes, NULL));
		STEP(tl_buffer_copy_async(to, 0, b, 0, sizeof bytes, NULL));
		STEP(tl_buffer_read_async(to, 0, tl_buffer_ptr(host), sizeof bytes, NULL));
		STEP(tl_buffer_fill_async(b, 0, &wide, 1, 3, NULL));
		STEP(tl_buffer_fill_async(b, 0, &wide, 2, 3, NULL));
		STEP(tl_buffer_fill_async(b, 0, &wide, 4, 3, NULL));
		STEP(tl_buffer_fill_async(b, 0, &wide, 8, 3, NULL));
		STEP(tl_event_create(ctx, &from));
		STEP(tl_event_create(ctx, &end));
		STEP(tl_event_record(from, NULL));
		STEP(tl_event_record(end, NULL));
		STEP(tl_event_wait(end, NULL));
		STEP(tl_event_synchronize(end));
		STEP(tl_event_elapsed(from, end, &ms));
		STEP(tl_synchronize(ctx));
		made = driver.calls;
		tl_event_destroy(from);
		tl_buffer_destroy(host);
		tl_buffer_destroy(b);
		tl_module_destroy(m);
		tl_context_destroy(ctx);
		if (n <= made || n > driver.calls) /* what the driver does not take back is lost */
			assert_clean(0);
	} while (n <= driver.calls);
	assert_true(n > 150);
	assert_non_null(strstr(driver.log, " tensor map "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(opening, reset),
		cmocka_unit_test_setup(starting, reset),
		cmocka_unit_test_setup(targets, reset),
		cmocka_unit_test_setup(limits, reset),
		cmocka_unit_test_setup(contexts, reset),
		cmocka_unit_test_setup(copies, reset),
		cmocka_unit_test_setup(loading, reset),
		cmocka_unit_test_setup(launching, reset),
		cmocka_unit_test_setup(launching_in_callers_context, reset),
		cmocka_unit_test_setup(timing, reset),
		cmocka_unit_test_setup(public_calls, reset),
		cmocka_unit_test_setup(queue, reset),
		cmocka_unit_test_setup(enumeration, reset),
		cmocka_unit_test_setup(faults, reset),
		cmocka_unit_test_setup(foreign_fault, reset),
		cmocka_unit_test_setup_teardown(each_call_fails, new_driver_and_folder, remove_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

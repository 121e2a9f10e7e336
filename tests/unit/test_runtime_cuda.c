/* The CUDA device on a driver that is not there: a table of functions that keep a record. What is asked of the driver,
 * in which context and order, and what becomes of its errors. The same calls on a real GPU are what `make test-gpu`
 * makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/cuda_api.h"
#include "runtime/internal.h"

/* --- the driver ---------------------------------------------------------------------------------------------- */

enum { MAX_DEPTH = 8, LOG = 4000 };

static struct driver {
	char log[LOG]; /* names of the calls, between spaces */
	int capability, devices, most_threads, shared_bytes;
	CUcontext stack[MAX_DEPTH];
	int depth;
	const char *fail; /* the call that fails */
	int calls, fail_at; /* or the one of this number */
	CUresult error;
	size_t free_bytes;
	int streams, modules, allocations, events, retained;
	struct {
		unsigned grid[3], threads, shared;
		CUstream stream;
		void **params;
		u64 bits[8];
		u32 nparams;
	} launch;
	int max_dynamic_shared;
	int cooperative, pdl; /* attributes of the launch */
	CUstream captured; /* into a graph */
	int capture_mode;
	int version, links, binaries; /* binaries: loaded from what has been linked */
} driver;

static CUcontext const primary = (CUcontext)&driver, other_context = (CUcontext)&driver.capability;
static CUstream const first_stream = (CUstream)&driver.streams;

/* Records the call; without a current context, most of them fail as CUDA's do. */
static CUresult called(const char *name, bool needs_context)
{
	size_t len = strlen(driver.log);
	snprintf(driver.log + len, LOG - len, " %s", name);
	if (++driver.calls == driver.fail_at || (driver.fail && !strcmp(driver.fail, name)))
		return driver.error;
	return needs_context && !driver.depth ? 201 : 0;
}

static CUresult f_init(unsigned flags)
{
	(void)flags;
	return called("init", false);
}
static CUresult f_driver_version(int *v)
{
	*v = driver.version;
	return 0;
}
static CUresult f_error_string(CUresult r, const char **text)
{
	*text = r == 2 ? "out of memory" : r == 700 ? "an illegal memory access was encountered" : "some failure";
	return r == 999 ? 1 : 0;
}
static CUresult f_error_name(CUresult r, const char **text)
{
	*text = r == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_SOME";
	return r == 999 ? 1 : 0;
}
static CUresult f_device_count(int *n)
{
	*n = driver.devices;
	return called("count", false);
}
static CUresult f_device_get(CUdevice *d, int ordinal)
{
	*d = 40 + ordinal;
	return called("get", false);
}
static CUresult f_device_name(char *name, int len, CUdevice d)
{
	snprintf(name, (size_t)len, "Fake GPU %d", d);
	return 0;
}
static CUresult f_device_attribute(int *v, int attribute, CUdevice d)
{
	(void)d;
	switch (attribute) {
	case CU_DEVICE_COMPUTE_CAPABILITY_MAJOR: *v = driver.capability / 10; return 0;
	case CU_DEVICE_COMPUTE_CAPABILITY_MINOR: *v = driver.capability % 10; return 0;
	case CU_DEVICE_MULTIPROCESSOR_COUNT: *v = 132; return 0;
	case CU_DEVICE_L2_CACHE_SIZE: *v = 50 << 20; return 0;
	case CU_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *v = driver.shared_bytes; return 0;
	default: return 1;
	}
}
static CUresult f_device_memory(size_t *bytes, CUdevice d)
{
	(void)d;
	*bytes = driver.free_bytes;
	return 0;
}
static CUresult f_primary_retain(CUcontext *ctx, CUdevice d)
{
	(void)d;
	*ctx = primary;
	CUresult r = called("retain", false);
	driver.retained += !r;
	return r;
}
static CUresult f_primary_release(CUdevice d)
{
	(void)d;
	driver.retained--;
	return called("release", false);
}
static CUresult f_ctx_current(CUcontext *ctx)
{
	*ctx = driver.depth ? driver.stack[driver.depth - 1] : NULL;
	return 0;
}
static CUresult f_ctx_device(CUdevice *d)
{
	*d = 42;
	return called("ctx_device", true);
}
static CUresult f_ctx_push(CUcontext ctx)
{
	assert_true(driver.depth < MAX_DEPTH);
	CUresult r = called("push", false);
	if (!r)
		driver.stack[driver.depth++] = ctx;
	return r;
}
static CUresult f_ctx_pop(CUcontext *ctx)
{
	assert_true(driver.depth > 0);
	*ctx = driver.stack[--driver.depth];
	return called("pop", false);
}
static CUresult f_ctx_synchronize(void) { return called("ctx_synchronize", true); }
static CUresult f_mem_alloc(CUdeviceptr *p, size_t bytes)
{
	CUresult r = called("alloc", true);
	if (!bytes)
		return 1;
	if (!r && bytes > driver.free_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		*p = 0x7000000 + (CUdeviceptr)driver.allocations++ * 256;
		driver.free_bytes -= bytes;
	}
	return r;
}
static CUresult f_mem_free(CUdeviceptr p)
{
	(void)p;
	driver.allocations--;
	return called("free", true);
}
static CUresult f_copy_to_device(CUdeviceptr dst, const void *src, size_t bytes, CUstream s)
{
	(void)dst, (void)src, (void)bytes;
	assert_ptr_equal(s, first_stream);
	return called("write", true);
}
static CUresult f_copy_to_host(void *dst, CUdeviceptr src, size_t bytes, CUstream s)
{
	(void)src;
	memset(dst, 7, bytes);
	assert_ptr_equal(s, first_stream);
	return called("read", true);
}
static CUresult f_mem_set(CUdeviceptr p, unsigned char byte, size_t bytes, CUstream s)
{
	(void)p, (void)byte, (void)bytes, (void)s;
	return called("set", true);
}
static CUresult f_module_load(CUmodule *m, const void *image, unsigned n, const int *options, void **values)
{
	bool binary = !strncmp(image, "binary", 6);
	CUresult r = called(binary ? "load binary" : "load", true);
	assert_true(!driver.captured || driver.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED);
	assert_true(binary || strstr(image, ".version"));
	if (binary && !r) {
		assert_int_equal(((const char *)image)[6], driver.version % 100);
		driver.binaries++;
	}
	for (unsigned i = 0; i < n && r; i++)
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
			strcpy(values[i], "ptxas application ptx input, line 7; fatal: nonsense");
	if (!r) {
		driver.modules++;
		*m = (CUmodule)&driver.modules;
	}
	return r;
}
static CUresult f_module_unload(CUmodule m)
{
	assert_ptr_equal(m, &driver.modules);
	driver.modules--;
	return called("unload", true);
}
static CUresult f_module_function(CUfunction *f, CUmodule m, const char *name)
{
	(void)m;
	*f = (CUfunction)&driver.launch;
	assert_string_equal(name, "k");
	return called("function", true);
}
static CUresult f_func_set_attribute(CUfunction f, int attribute, int value)
{
	(void)f;
	if (attribute == CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES)
		driver.max_dynamic_shared = value;
	return called("func_set", true);
}
static CUresult f_func_get_attribute(int *value, int attribute, CUfunction f)
{
	(void)f;
	*value = attribute == CU_FUNC_MAX_THREADS_PER_BLOCK ? driver.most_threads
		 : attribute == CU_FUNC_LOCAL_SIZE_BYTES    ? 48
							    : 255;
	return called("func_get", true);
}
static CUresult f_occupancy(int *blocks, CUfunction f, int threads, size_t shared)
{
	(void)f;
	*blocks = threads == 256 && shared == 2048 ? 3 : 0;
	return called("occupancy", true);
}
static CUresult f_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
			 unsigned shared, CUstream s, void **params, void **extra)
{
	assert_ptr_equal(f, &driver.launch);
	assert_true(by == 1 && bz == 1 && !extra);
	driver.launch.grid[0] = gx;
	driver.launch.grid[1] = gy;
	driver.launch.grid[2] = gz;
	driver.launch.threads = bx;
	driver.launch.shared = shared;
	driver.launch.stream = s;
	for (u32 i = 0; i < driver.launch.nparams; i++)
		memcpy(&driver.launch.bits[i], params[i], 8);
	return called("launch", true);
}
static CUresult f_stream_create(CUstream *s, unsigned flags)
{
	assert_int_equal(flags, 0); /* in step with the legacy default stream */
	CUresult r = called("stream", true);
	driver.streams += !r;
	*s = r ? NULL : first_stream;
	return r;
}
static CUresult f_stream_destroy(CUstream s)
{
	(void)s;
	driver.streams--;
	return called("stream_destroy", true);
}
static CUresult f_stream_synchronize(CUstream s)
{
	(void)s;
	return called("sync", true);
}
static CUresult f_event_create(CUevent *e, unsigned flags)
{
	(void)flags;
	CUresult r = called("event", true);
	driver.events += !r;
	*e = r ? NULL : (CUevent)(uintptr_t)driver.events;
	return r;
}
static CUresult f_event_destroy(CUevent e)
{
	(void)e;
	driver.events--;
	return 0;
}
static CUresult f_event_record(CUevent e, CUstream s)
{
	(void)e, (void)s;
	return called("record", true);
}
static CUresult f_event_elapsed(float *ms, CUevent from, CUevent to)
{
	assert_int_equal((uintptr_t)to, (uintptr_t)from + 1);
	*ms = (float)((uintptr_t)to * 7 % 11);
	return 0;
}

static CUresult f_launch_ex(const struct cu_launch_config *c, CUfunction f, void **params, void **extra)
{
	driver.cooperative = driver.pdl = 0;
	for (unsigned i = 0; i < c->nattributes; i++) {
		int id = c->attributes[i].id;
		assert_true(id == 2 || id == 6);
		*(id == 2 ? &driver.cooperative : &driver.pdl) = c->attributes[i].value;
	}
	CUresult r = f_launch(f, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared,
			      c->stream, params, extra);
	return r ? r : called("ex", true);
}
static CUresult f_stream_capturing(CUstream s, int *status)
{
	if (s == (CUstream)1 && driver.captured)
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	*status = s == driver.captured;
	return called("capturing", true);
}
static CUresult f_capture_mode(int *mode)
{
	int before = driver.capture_mode;
	driver.capture_mode = *mode;
	*mode = before;
	return 0;
}

static CUresult f_link_create(unsigned n, const int *options, void **values, CUlinkState *state)
{
	(void)n, (void)options, (void)values;
	*state = (CUlinkState)&driver.links;
	return called("link", true);
}
static CUresult f_link_add(CUlinkState state, int type, const void *data, size_t bytes, const char *name, unsigned n,
			   const int *options, void **values)
{
	(void)n, (void)options, (void)values;
	assert_ptr_equal(state, &driver.links);
	assert_int_equal(type, CU_JIT_INPUT_PTX);
	assert_int_equal(bytes, strlen(data) + 1);
	assert_string_equal(name, "k");
	return called("link add", true);
}
/* It holds zeros, as machine code does. */
static CUresult f_link_complete(CUlinkState state, void **binary, size_t *bytes)
{
	static char code[64] = "binary";
	(void)state;
	code[6] = (char)(driver.version % 100);
	code[60] = 1;
	*binary = code;
	*bytes = sizeof code;
	driver.links++;
	return called("link complete", true);
}
static CUresult f_link_destroy(CUlinkState state)
{
	(void)state;
	return called("link destroy", true);
}

static const struct cuda_api api = {
#define X(name, symbol, params) .name = f_##name,
	CUDA_API(X)
#undef X
		.launch_ex = f_launch_ex,
	.stream_capturing = f_stream_capturing,
	.capture_mode = f_capture_mode,
};

/* --- helpers ------------------------------------------------------------------------------------------------- */

static int reset(void **state)
{
	(void)state;
	driver = (struct driver){.capability = 90,
				 .devices = 2,
				 .most_threads = 1024,
				 .shared_bytes = 232448,
				 .free_bytes = (size_t)1 << 32,
				 .version = 12040};
	return 0;
}

static struct device *open_device(CUcontext adopted)
{
	struct device *d;
	if (cuda_device_new(&api, 0, adopted, &d))
		fail_msg("%s", tl_error(NULL));
	driver.log[0] = 0;
	return d;
}

static void assert_error(tl_status is, tl_status expected, const char *part)
{
	if (is != expected || !strstr(tl_error(NULL), part))
		fail_msg("status '%s', text '%s'; expected '%s', '%s'", tl_status_name(is), tl_error(NULL),
			 tl_status_name(expected), part);
}

static tl_status load_clusters(struct device *d, int num_warps, i32 shared, i32 cluster, void **out)
{
	static const char ptx[] = ".version 8.0";
	const struct image im = {.name = "k",
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

/* Everything was given back, and the thread's context is as it was. */
static void assert_clean(int depth)
{
	assert_int_equal(driver.streams, 0);
	assert_int_equal(driver.modules, 0);
	assert_int_equal(driver.allocations, 0);
	assert_int_equal(driver.events, 0);
	assert_int_equal(driver.retained, 0);
	assert_int_equal(driver.depth, depth);
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
		struct build b = {
			.unit = &u, .func = u.module->funcs.at[0], .args = args, .num_warps = 8, .num_stages = 3};
		if (!d->ops->compile(d, &b, &c))
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
	assert_int_equal(d->ops->write(d, p, x, 4), TL_OK);
	assert_string_equal(driver.log, " push write sync pop");
	driver.log[0] = 0;
	assert_int_equal(d->ops->read(d, x, p, 4), TL_OK);
	assert_string_equal(driver.log, " push read sync pop");
	assert_int_equal(x[3], 7);
	driver.log[0] = 0;
	assert_int_equal(d->ops->fill(d, p, 1, 4), TL_OK);
	assert_string_equal(driver.log, " push set sync pop");
	driver.fail = "sync";
	driver.error = 700;
	assert_error(d->ops->read(d, x, p, 4), TL_ERR_KERNEL,
		     "cuStreamSynchronize: an illegal memory access was encountered (CUDA_ERROR_SOME, 700)");
	assert_non_null(strstr(tl_error(NULL), "hint: a kernel launched before failed"));
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
		     "k needs 300000 bytes of shared memory a block, and this GPU has 232448");
	driver.most_threads = 128;
	assert_error(load(d, 8, 0, &k), TL_ERR_COMPILE, "has at most 128 threads; num_warps=8 makes 256");
	driver.fail = "load";
	driver.error = 218;
	assert_error(load(d, 4, 0, &k), TL_ERR_DRIVER, "line 7; fatal: nonsense");
	driver.error = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
	assert_error(load(d, 4, 0, &k), TL_ERR_DRIVER, "this driver serves CUDA 12.4");
	driver.fail = "function";
	driver.error = 500;
	assert_error(load(d, 4, 0, &k), TL_ERR_DRIVER, "cuModuleGetFunction");
	driver.fail = "func_set";
	assert_error(load(d, 4, 100000, &k), TL_ERR_DRIVER, "cuFuncSetAttribute");
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
	assert_string_equal(driver.log, " push launch pop");
	assert_memory_equal(driver.launch.grid, l.grid, sizeof l.grid);
	assert_memory_equal(driver.launch.bits, args, sizeof args);
	assert_int_equal(driver.launch.threads, 256);
	assert_int_equal(driver.launch.shared, 2048);
	assert_ptr_equal(driver.launch.stream, first_stream);
	l.stream = (void *)(uintptr_t)77;
	assert_int_equal(d->ops->launch(d, &l), TL_OK);
	assert_int_equal((uintptr_t)driver.launch.stream, 77);
	driver.fail = "launch";
	driver.error = 701;
	assert_error(d->ops->launch(d, &l), TL_ERR_DRIVER, "cuLaunchKernel: some failure (CUDA_ERROR_SOME, 701)");
	d->ops->unload(d, k);
	d->ops->close(d);
	assert_clean(0);
}

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
			assert_string_equal(driver.log, i & 3 ? " push launch ex pop" : " push launch pop");
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
		     {"cuda:sm_90a", 100, "k.tli: the image is for cuda:sm_90a, and the device is a GPU of sm_90"},
		     {"cuda:sm_86", 80, "k.tli: the image is for cuda:sm_86, and the device is a GPU of sm_80"},
		     {"cuda:sm_80", 75, "k.tli: the image is for cuda:sm_80, and the device is a GPU of sm_75"}};
	static struct slot slots[] = {{.name = "x", .leaf = 0, .pointers = 1, .dtype = DT_F32, .divisibility = 16},
				      {.name = "n", .leaf = 2, .dtype = DT_I32, .divisibility = 16}};
	for (u32 i = 0; i < ARRAY_LEN(table); i++) {
		struct arena a = {0};
		struct image im = {.source = "k.tl",
				   .signature = "",
				   .target = table[i].target,
				   .name = "k",
				   .code = ".version 8.0",
				   .code_bytes = 12,
				   .binary = "",
				   .num_warps = 8,
				   .shared_bytes = 1024,
				   .cluster = 1,
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
	return cuda_ops.compile(d, b, out);
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

/* Another process launches with a driver: one binary is loaded, so many have been linked, from PTX so many modules. */
static void launch_cached(const struct cuda_api *with, int compiles, int links, int binaries)
{
	struct device_ops ops = cuda_ops;
	struct device *d;
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	ops.compile = counting_compile;
	compilations = driver.links = driver.binaries = 0;
	assert_int_equal(cuda_device_new(with, 0, NULL, &d), TL_OK);
	d->ops = &ops;
	assert_int_equal(context_new(d, &ctx), TL_OK);
	assert_int_equal(tl_module_load_source(ctx, "k.tl", add_one, sizeof add_one - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "k", &k), TL_OK);
	const tl_arg args[] = {tl_range(TL_F32, (void *)(uintptr_t)0x7000000, 64), tl_int(16)};
	driver.launch.nparams = 2;
	assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}}, args, 2), TL_OK);
	assert_int_equal(driver.modules, 1);
	assert_int_equal(compilations, compiles);
	assert_int_equal(driver.links, links);
	assert_int_equal(driver.binaries, binaries);
	tl_context_destroy(ctx);
	assert_clean(0);
}

/* What the driver makes of a kernel is kept with it, for processes with the same driver. */
static void binaries(void **state)
{
	(void)state;
	char folder[] = "/tmp/tlc-cuda-XXXXXX", command[64];
	struct cuda_api linking = api;
	linking.link_create = f_link_create;
	linking.link_add = f_link_add;
	linking.link_complete = f_link_complete;
	linking.link_destroy = f_link_destroy;
	assert_non_null(mkdtemp(folder));
	setenv("TL_CACHE_DIR", folder, true);
	unsetenv("TL_CACHE");
	launch_cached(&api, 1, 0, 0); /* a driver without a linker */
	launch_cached(&api, 0, 0, 0);
	launch_cached(&linking, 0, 1, 1);
	launch_cached(&linking, 0, 0, 1);
	driver.version++; /* another driver */
	launch_cached(&linking, 0, 1, 1);
	launch_cached(&linking, 0, 0, 1);
	driver.fail = "load binary"; /* it cannot be used after all */
	driver.error = 200;
	launch_cached(&linking, 0, 0, 0);
	driver.version++;
	for (const char *const *call = (const char *const[]){"link", "link add", "link complete", NULL}; *call;
	     call++) {
		driver.fail = *call;
		launch_cached(&linking, 0, !strcmp(*call, "link complete"), 0);
	}
	driver.fail = NULL;
	launch_cached(&linking, 0, 1, 1);
	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	setenv("TL_CACHE", "0", true);
	launch_cached(&linking, 1, 0, 0); /* nothing is kept */
}

static void timing(void **state)
{
	(void)state;
	struct device *d = open_device(NULL);
	void *k;
	double ms = 0;
	assert_int_equal(load(d, 4, 0, &k), TL_OK);
	struct device_launch l = {.kernel = k, .grid = {1, 1, 1}};
	driver.log[0] = 0;
	assert_int_equal(d->ops->time(d, &l, 1, 2, &ms), TL_OK);
	assert_string_equal(driver.log,
			    " push alloc event event event event launch set record launch record set record launch "
					"record sync pop");
	assert_true(ms == (3 + 6) / 2.0);
	driver.log[0] = 0;
	assert_int_equal(d->ops->time(d, &l, 0, 3, &ms), TL_OK);
	assert_null(strstr(driver.log, "alloc")); /* kept */
	assert_true(ms == 6);
	driver.fail = "launch";
	driver.error = 1;
	assert_error(d->ops->time(d, &l, 0, 3, &ms), TL_ERR_DRIVER, "cuLaunchKernel");
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
		assert_int_equal(d->ops->time(d, &l, 0, 1, &ms), TL_OK);
		assert_int_equal(strstr(driver.log, "set") != NULL, megabytes == 200);
		if (megabytes == 100)
			assert_non_null(strstr(tl_error(NULL), "note: no room"));
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
			"not there: nothing is compiled or loaded meanwhile\n"
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
	assert_string_equal(driver.log, " push launch pop push launch pop");
	assert_ptr_equal(driver.launch.stream, stream);
	assert_error(tl_launch(k, &config, odd, 2), TL_ERR_ARGUMENT, "is being captured");
	assert_error(tl_time(k, &config, args, 2, 0, 1, &ms), TL_ERR_ARGUMENT, "nothing can be timed");
	driver.captured = NULL;
	assert_int_equal(tl_launch(k, &config, odd, 2), TL_OK);
	assert_int_equal(driver.capture_mode, 0);
	tl_context_destroy(ctx);
	assert_clean(0);
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
	static const char source[] = "import triton\nimport triton.language as tl\n\n@triton.jit\n"
				     "def k(x):\n    i = tl.arange(0, 256)\n    tl.store(x + i, tl.load(x + i) + 1)\n";
	int n = 0, made = 0;
	do {
		reset(state);
		driver.error = 3;
		driver.fail_at = ++n;
		struct device *d;
		tl_context *ctx;
		tl_module *m;
		tl_kernel *k;
		tl_buffer *b;
		tl_resources resources;
		double ms;
		char bytes[1024] = {0};
		STEP(cuda_device_new(&api, 0, NULL, &d));
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
		STEP(tl_time(k, &config, &arg, 1, 1, 3, &ms));
		STEP(tl_kernel_resources(k, &config, &arg, 1, &resources));
		STEP(tl_buffer_read(b, 0, bytes, sizeof bytes));
		STEP(tl_synchronize(ctx));
		made = driver.calls;
		tl_buffer_destroy(b);
		tl_module_destroy(m);
		tl_context_destroy(ctx);
		if (n <= made || n > driver.calls) /* what the driver does not take back is lost */
			assert_clean(0);
	} while (n <= driver.calls);
	assert_true(n > 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(opening, reset),         cmocka_unit_test_setup(starting, reset),
		cmocka_unit_test_setup(targets, reset),         cmocka_unit_test_setup(limits, reset),
		cmocka_unit_test_setup(contexts, reset),        cmocka_unit_test_setup(copies, reset),
		cmocka_unit_test_setup(loading, reset),         cmocka_unit_test_setup(launching, reset),
		cmocka_unit_test_setup(several_gpus, reset),    cmocka_unit_test_setup(binaries, reset),
		cmocka_unit_test_setup(images, reset),
		cmocka_unit_test_setup(attributes, reset),      cmocka_unit_test_setup(timing, reset),
		cmocka_unit_test_setup(public_calls, reset),    cmocka_unit_test_setup(capturing, reset),
		cmocka_unit_test_setup(each_call_fails, reset),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

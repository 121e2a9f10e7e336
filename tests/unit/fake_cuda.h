/* A fake CUDA driver: a table of functions that record the calls. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fixture.h"
#include "runtime/device/cuda_api.h"
#include "runtime/api/objects.h"

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
	CUresult lost; /* the result of every call in the context, until the context is released */
	size_t free_bytes;
	int streams, modules, allocations, events, retained, pinned;
	CUstream copied_on, waits; /* waits: for an event */
	struct {
		CUdeviceptr dst, src;
		CUcontext to, from;
		size_t bytes;
	} peer;                 /* the last copy between contexts */
	unsigned set_values[4]; /* of fills, one after the other */
	int sets;
	struct {
		unsigned grid[3], threads, shared;
		CUstream stream;
		void **params;
		u64 bits[8];
		u32 nparams;
	} launch;
	CUcontext loaded_in; /* the function */
	int max_dynamic_shared;
	int cooperative, pdl; /* attributes of the launch */
	unsigned cluster[3];
	CUstream captured; /* into a graph */
	int capture_mode;
	int version;
	bool never_ends; /* the launched kernel */
	/* the assembler: registers of a thread (0: 255), and bytes that it spills for the sake of more blocks */
	int registers, spilled;
	struct {
		int blocks; /* the directive .minnctapersm of the code, or 0 */
	} functions[33];
	int loads; /* of PTX */
} driver;

static CUcontext const primary = (CUcontext)&driver, other_context = (CUcontext)&driver.capability,
		       second_primary = (CUcontext)&driver.devices; /* of device 1 */
static CUstream const first_stream = (CUstream)&driver.streams, second_stream = (CUstream)&driver.modules;

/* Records the call; without a current context, most of them fail as CUDA's do. */
static CUresult called(const char *name, bool needs_context)
{
	size_t len = strlen(driver.log);
	snprintf(driver.log + len, LOG - len, " %s", name);
	if (++driver.calls == driver.fail_at || (driver.fail && !strcmp(driver.fail, name)))
		return driver.error;
	return !needs_context ? 0 : !driver.depth ? 201 : driver.lost;
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
	*ctx = d == 41 ? second_primary : primary;
	CUresult r = called("retain", false);
	driver.retained += !r;
	return r;
}
static CUresult f_primary_release(CUdevice d)
{
	(void)d;
	if (!--driver.retained)
		driver.lost = 0;
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
		*p = 0x7000000 + (CUdeviceptr)driver.allocations++ * 4096;
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
	driver.copied_on = s;
	return called("write", true);
}
static CUresult f_copy_to_host(void *dst, CUdeviceptr src, size_t bytes, CUstream s)
{
	(void)src;
	memset(dst, 7, bytes);
	driver.copied_on = s;
	return called("read", true);
}
static CUresult f_mem_set(CUdeviceptr p, unsigned char byte, size_t bytes, CUstream s)
{
	(void)p, (void)bytes, (void)s;
	driver.set_values[driver.sets++ % 4] = byte;
	return called("set", true);
}
static CUresult f_mem_set_16(CUdeviceptr p, unsigned short value, size_t count, CUstream s)
{
	(void)p, (void)count, (void)s;
	driver.set_values[driver.sets++ % 4] = value;
	return called("set16", true);
}
static CUresult f_mem_set_32(CUdeviceptr p, unsigned value, size_t count, CUstream s)
{
	(void)p, (void)s;
	driver.set_values[driver.sets++ % 4] = value;
	driver.set_values[driver.sets++ % 4] = (unsigned)count;
	return called("set32", true);
}
static CUresult f_mem_set_rows(CUdeviceptr p, size_t pitch, unsigned value, size_t width, size_t height, CUstream s)
{
	(void)s;
	assert_true(pitch == 8 && width == 1 && height == 3 && p % 4 == 0);
	driver.set_values[driver.sets++ % 4] = value;
	return called("set_rows", true);
}
static CUresult f_copy_on_device(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s)
{
	(void)dst, (void)src, (void)bytes;
	driver.copied_on = s;
	return called("copy", true);
}
static CUresult f_copy_peer(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes, CUstream s)
{
	assert_ptr_equal(to, driver.stack[driver.depth - 1]);
	assert_ptr_not_equal(to, from);
	driver.peer.dst = dst;
	driver.peer.src = src;
	driver.peer.to = to;
	driver.peer.from = from;
	driver.peer.bytes = bytes;
	driver.copied_on = s;
	return called("peer", true);
}
static CUresult f_host_alloc(void **p, size_t bytes, unsigned flags)
{
	static _Alignas(16) char memory[4096]; /* one for all; what a call that fails does not give back is no leak */
	assert_int_equal(flags, 1);
	assert_true(bytes <= sizeof memory);
	CUresult r = called("host_alloc", true);
	*p = r ? NULL : memory;
	driver.pinned += !r;
	return r;
}
static CUresult f_host_free(void *p)
{
	(void)p;
	driver.pinned--;
	return called("host_free", true);
}
static CUresult f_event_synchronize(CUevent e)
{
	(void)e;
	return called("event_sync", true);
}
static CUresult f_stream_wait(CUstream s, CUevent e, unsigned flags)
{
	(void)e;
	assert_int_equal(flags, 0);
	driver.waits = s;
	return called("stream_wait", true);
}
static CUresult f_module_load(CUmodule *m, const void *image, unsigned n, const int *options, void **values)
{
	CUresult r = called("load", true);
	const char *blocks = strstr(image, "\n.minnctapersm ");
	assert_true(!driver.captured || driver.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED);
	assert_non_null(strstr(image, ".version"));
	int least = blocks ? atoi(blocks + 15) : 0;
	driver.loads++;
	for (unsigned i = 0; i < n && r; i++)
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
			strcpy(values[i], "ptxas application ptx input, line 7; fatal: nonsense");
	if (!r) {
		driver.modules++;
		driver.functions[least].blocks = least;
		*m = (CUmodule)&driver.functions[least];
	}
	return r;
}
static CUresult f_module_unload(CUmodule m)
{
	assert_in_range((uintptr_t)m, (uintptr_t)driver.functions, (uintptr_t)(driver.functions + 32));
	driver.modules--;
	return called("unload", true);
}
static CUresult f_module_function(CUfunction *f, CUmodule m, const char *name)
{
	*f = (CUfunction)m;
	driver.loaded_in = driver.depth ? driver.stack[driver.depth - 1] : NULL;
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
	int blocks = *(const int *)f, registers = driver.registers ? driver.registers : 255;
	if (blocks) /* all that blocks of 4 warps leave, in units of 8 */
		registers = 65536 / 128 / blocks > 255 ? 255 : 65536 / 128 / blocks / 8 * 8;
	*value = attribute == CU_FUNC_MAX_THREADS_PER_BLOCK ? driver.most_threads
		 : attribute == CU_FUNC_LOCAL_SIZE_BYTES    ? 48 + (registers < driver.registers ? driver.spilled : 0)
							    : registers;
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
	assert_ptr_equal(f, &driver.functions[0]);
	if (driver.depth && driver.stack[driver.depth - 1] != driver.loaded_in)
		return called("launch elsewhere", false) ? driver.error : CUDA_ERROR_INVALID_HANDLE;
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
	*s = r ? NULL : driver.stack[driver.depth - 1] == second_primary ? second_stream : first_stream;
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
static CUresult f_event_query(CUevent e)
{
	(void)e;
	CUresult r = called("query", true);
	return r ? r : driver.never_ends ? CUDA_ERROR_NOT_READY : 0;
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
	memset(driver.cluster, 0, sizeof driver.cluster);
	for (unsigned i = 0; i < c->nattributes; i++) {
		int id = c->attributes[i].id;
		assert_true(id == 2 || id == 4 || id == 6);
		if (id == 4)
			memcpy(driver.cluster, c->attributes[i].dimensions, sizeof driver.cluster);
		else
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

static inline CUresult f_tensor_map(void *map, int type, unsigned rank, void *base, const u64 *sizes,
				    const u64 *strides, const unsigned *box, const unsigned *steps, int interleave,
				    int swizzle, int promotion, int fill)
{
	(void)type, (void)sizes, (void)strides, (void)box, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
	assert_true(rank >= 1 && rank <= 5 && steps[rank - 1] == 1);
	assert_true((uintptr_t)map % 64 == 0 && (uintptr_t)base % 16 == 0);
	memset(map, 1, 128);
	return called("tensor map", true);
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

static inline int reset(void **state)
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

static inline struct device *open_device(CUcontext adopted)
{
	struct device *d;
	if (cuda_device_new(&api, 0, adopted, &d))
		fail_msg("%s", tl_error(NULL));
	driver.log[0] = 0;
	return d;
}

/* Everything was given back, and the thread's context is as it was. */
static inline void assert_clean(int depth)
{
	assert_int_equal(driver.streams, 0);
	assert_int_equal(driver.modules, 0);
	assert_int_equal(driver.allocations, 0);
	assert_int_equal(driver.pinned, 0);
	assert_int_equal(driver.events, 0);
	assert_int_equal(driver.retained, 0);
	assert_int_equal(driver.depth, depth);
}

#endif

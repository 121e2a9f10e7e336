/* NVIDIA GPUs, through the driver API.
 *
 * The device's context is the GPU's primary context, which the CUDA runtime of the process uses too, or the caller's.
 * Each call makes it current, and restores the caller's current context. Launches without a stream use the device's own
 * stream: a new stream, or in the caller's context the legacy default stream, which the caller uses, too. A new stream
 * and the legacy default stream synchronise with each other, so a program that uses the legacy stream needs no events.
 * On an H200 each change between them takes 0.3 µs. Copies use the same stream, so they are ordered after launches.
 *
 * Kernel parameters are 8-byte slots with the value in the low bytes. The driver reads from a slot as many bytes
 * as the parameter has. All shared memory is dynamic, so one attribute raises the limit of 48 KB. */
#include <stdlib.h>

#include "runtime/device/dev_cuda.h"
#include "runtime/image/error.h"

enum { STATIC_SHARED_LIMIT = 48 * 1024 };

#define LEGACY_STREAM ((CUstream)CU_STREAM_LEGACY)

/* --- errors and contexts ------------------------------------------------------------------------------------- */

static tl_status status_of(CUresult r)
{
	switch (r) {
	case CUDA_ERROR_OUT_OF_MEMORY: return TL_ERR_MEMORY;
	case CUDA_ERROR_NO_DEVICE:
	case CUDA_ERROR_INVALID_DEVICE: return TL_ERR_DEVICE;
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED: return TL_ERR_KERNEL;
	default: return TL_ERR_DRIVER;
	}
}

tl_status driver_error(const struct cuda_api *api, const char *call, CUresult r)
{
	const char *text = NULL, *name = NULL;
	if (api->error_string(r, &text) || !text)
		text = "unknown error";
	if (api->error_name(r, &name) || !name)
		name = "error";
	tl_status s = failed(status_of(r), "%s: %s (%s, %d)", call, text, name, r);
	failed_driver(call, r);
	if (s == TL_ERR_KERNEL)
		failed_more(
			"\n      = hint: a kernel that was launched earlier failed; CUDA allows nothing more in this "
			"process's context. Run the kernel on the \"interp\" device, which reports where it fails");
	else if (r == CUDA_ERROR_CONTEXT_IS_DESTROYED || r == CUDA_ERROR_ECC_UNCORRECTABLE)
		failed_more("\n      = hint: this context is lost: destroy it, and create another one");
	return s;
}

tl_status cuda_error(struct cuda *d, const char *call, CUresult r)
{
	tl_status s = driver_error(&d->api, call, r);
	const struct cuda_kernel *k = s == TL_ERR_KERNEL ? atomic_load(&d->last) : NULL;
	if (k) {
		failed_more("\n      = note: %s'%s'",
			    atomic_load(&d->several) ? "the last kernel that was launched is " : "the kernel is ",
			    k->name);
		failed_in(k->name);
	}
	return s;
}

tl_status cuda_enter(struct cuda *d, bool *pushed)
{
	tl_status s = TL_OK;
	CUcontext now = NULL;
	TRY("cuCtxGetCurrent", d->api.ctx_current(&now));
	*pushed = !s && now != d->ctx;
	if (*pushed)
		TRY("cuCtxPushCurrent", d->api.ctx_push(d->ctx));
	*pushed = *pushed && !s;
	return s;
}

void cuda_leave(struct cuda *d, bool pushed)
{
	CUcontext ctx;
	if (pushed)
		d->api.ctx_pop(&ctx);
}

/* --- opening ------------------------------------------------------------------------------------------------- */

static int attribute(struct cuda *d, int which)
{
	int v = 0;
	return d->api.device_attribute(&v, which, d->id) ? 0 : v;
}

/* Chooses the newest target that this GPU runs and the code generator knows, with this GPU's limits. PTX of a target
 * without 'a' runs on later GPUs. */
static tl_status choose_target(struct cuda *d)
{
	int major = attribute(d, CU_DEVICE_COMPUTE_CAPABILITY_MAJOR),
	    minor = attribute(d, CU_DEVICE_COMPUTE_CAPABILITY_MINOR);
	int sm = major * 10 + minor;
	if (sm < 75) {
		char name[128] = "this GPU";
		d->api.device_name(name, sizeof name, d->id);
		return failed(TL_ERR_DEVICE, "%s has compute capability %d.%d; kernels need 7.5 (Turing) or newer",
			      name, major, minor);
	}
	d->target = cuda_description(MIN(sm, 90), sm == 90);
	d->target.shared_bytes = MAX(attribute(d, CU_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), STATIC_SHARED_LIMIT);
	d->target.multiprocessors = attribute(d, CU_DEVICE_MULTIPROCESSOR_COUNT);
	int registers = attribute(d, CU_DEVICE_MAX_REGISTERS_PER_MULTIPROCESSOR);
	d->target.registers = registers ? registers : d->target.registers;
	return TL_OK;
}

static tl_status find_device(struct cuda *d, int ordinal)
{
	tl_status s = TL_OK;
	int count = 0;
	TRY("cuDeviceGetCount", d->api.device_count(&count));
	if (!s && ordinal >= count)
		return failed(TL_ERR_DEVICE, "there is no device cuda:%d: the driver has %d", ordinal, count);
	TRY("cuDeviceGet", d->api.device_get(&d->id, ordinal));
	if (!s)
		s = choose_target(d);
	if (s)
		return s;
	TRY("cuDevicePrimaryCtxRetain", d->api.primary_retain(&d->ctx, d->id));
	d->own_context = !s;
	return s;
}

static tl_status use_context(struct cuda *d, CUcontext adopted)
{
	tl_status s = TL_OK;
	bool pushed;
	d->ctx = adopted;
	if ((s = cuda_enter(d, &pushed)))
		return s;
	TRY("cuCtxGetDevice", d->api.ctx_device(&d->id));
	cuda_leave(d, pushed);
	return s ? s : choose_target(d);
}

static void cuda_close(struct device *device)
{
	struct cuda *d = (struct cuda *)device;
	bool pushed;
	if (d->ctx && !cuda_enter(d, &pushed)) {
		if (d->stream && d->stream != LEGACY_STREAM)
			d->api.stream_destroy(d->stream);
		if (d->scratch)
			d->api.mem_free(d->scratch);
		cuda_leave(d, pushed);
	}
	if (d->own_context)
		d->api.primary_release(d->id);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

tl_status cuda_device_new(const struct cuda_api *api, int ordinal, CUcontext adopted, struct device **out)
{
	struct cuda *d = calloc(1, sizeof *d);
	if (!d)
		return failed(TL_ERR_MEMORY, "out of host memory");
	d->device.ops = &cuda_ops;
	d->api = *api;
	d->ordinal = adopted ? -1 : ordinal;
	pthread_mutex_init(&d->lock, NULL);
	tl_status s = adopted ? use_context(d, adopted) : find_device(d, ordinal);
	bool pushed = false;
	if (!s)
		s = cuda_enter(d, &pushed);
	if (adopted)
		d->stream = LEGACY_STREAM;
	else
		TRY("cuStreamCreate", d->api.stream_create(&d->stream, 0));
	cuda_leave(d, pushed);
	if (s) {
		cuda_close(&d->device);
		return s;
	}
	d->device.num_sms = (u32)d->target.multiprocessors;
	d->l2_bytes = attribute(d, CU_DEVICE_L2_CACHE_SIZE);
	d->nvtx = nvtx_tool();
	*out = &d->device;
	return TL_OK;
}

tl_status cuda_start(const struct cuda_api *api)
{
	CUresult r = api->init(0);
	return r ? driver_error(api, "cuInit", r) : TL_OK;
}

static tl_status open_driver(struct cuda_api *api)
{
	bool absent;
	tl_status s = cuda_api_open(api, &absent);
	return s ? s : cuda_start(api);
}

bool cuda_no_device(const struct cuda_api *api)
{
	int count = 0;
	CUresult r = api->init(0);
	if (!r)
		r = api->device_count(&count);
	return r == CUDA_ERROR_NO_DEVICE || (!r && !count);
}

bool cuda_absent(void)
{
	struct cuda_api api;
	bool absent;
	tl_status s = cuda_api_open(&api, &absent);
	return s ? absent : cuda_no_device(&api);
}

static tl_status cuda_open(int ordinal, struct device **out)
{
	struct cuda_api api;
	tl_status s = open_driver(&api);
	return s ? s : cuda_device_new(&api, ordinal, NULL, out);
}

bool cuda_probe(struct target *out)
{
	struct cuda d = {0};
	if (open_driver(&d.api) || d.api.device_get(&d.id, 0) || choose_target(&d))
		return false;
	*out = d.target;
	return true;
}

tl_status cuda_adopt(void *cu_context, struct device **out)
{
	struct cuda_api api;
	tl_status s = open_driver(&api);
	if (s)
		return s;
	CUcontext ctx = cu_context;
	if (!ctx && (api.ctx_current(&ctx) || !ctx))
		return failed(TL_ERR_ARGUMENT, "tl_context_from_cuda: no CUDA context is current on this thread");
	return cuda_device_new(&api, 0, ctx, out);
}

static int ordinal_of(const struct cuda *d)
{
	CUdevice id;
	int n = 0;
	for (int i = 0; d->ordinal < 0 && !d->api.device_count(&n) && i < n; i++)
		if (!d->api.device_get(&id, i) && id == d->id)
			return i;
	return d->ordinal;
}

static void cuda_info(struct device *device, tl_device_info *out)
{
	struct cuda *d = (struct cuda *)device;
	int ordinal = ordinal_of(d);
	d->api.device_name(out->name, sizeof out->name, d->id);
	if (ordinal >= 0)
		snprintf(out->spec, sizeof out->spec, "cuda:%d", ordinal);
	out->capability = attribute(d, CU_DEVICE_COMPUTE_CAPABILITY_MAJOR) * 10 +
			  attribute(d, CU_DEVICE_COMPUTE_CAPABILITY_MINOR);
	snprintf(out->target, sizeof out->target, "cuda:sm_%d%s", d->target.sm, d->target.arch_specific ? "a" : "");
	out->num_sms = (int)device->num_sms;
	out->shared_bytes = (size_t)d->target.shared_bytes;
	d->api.device_memory(&out->memory_bytes, d->id);
}

tl_status cuda_count(const struct cuda_api *api, int *out)
{
	struct cuda d = {.api = *api};
	*out = 0;
	CUresult r = api->init(0);
	const char *call = "cuInit";
	if (!r) {
		call = "cuDeviceGetCount";
		r = api->device_count(out);
	}
	return r && r != CUDA_ERROR_NO_DEVICE ? cuda_error(&d, call, r) : TL_OK;
}

tl_status cuda_describe(const struct cuda_api *api, int index, tl_device_info *out)
{
	struct cuda c = {.api = *api, .ordinal = index}, *d = &c;
	tl_status s = cuda_start(api);
	TRY("cuDeviceGet", d->api.device_get(&d->id, index));
	if (s)
		return s;
	bool serves = !choose_target(d);
	d->device.num_sms = (u32)attribute(d, CU_DEVICE_MULTIPROCESSOR_COUNT);
	cuda_info(&d->device, out);
	if (!serves)
		out->target[0] = 0;
	return TL_OK;
}

static tl_status count(int *out)
{
	struct cuda_api api;
	bool absent;
	*out = 0;
	tl_status s = cuda_api_open(&api, &absent);
	return s ? absent ? TL_OK : s : cuda_count(&api, out);
}

static tl_status at(int index, tl_device_info *out)
{
	struct cuda_api api;
	bool absent;
	tl_status s = cuda_api_open(&api, &absent);
	return s ? s : cuda_describe(&api, index, out);
}

/* --- memory -------------------------------------------------------------------------------------------------- */

static tl_status cuda_alloc(struct device *device, size_t size, void **out)
{
	struct cuda *d = (struct cuda *)device;
	bool pushed;
	CUdeviceptr p = 0;
	tl_status s = cuda_enter(d, &pushed);
	if (s)
		return s;
	TRY("cuMemAlloc", d->api.mem_alloc(&p, MAX(size, 1)));
	if (s == TL_ERR_MEMORY)
		failed_more(" allocating %zu bytes", size);
	cuda_leave(d, pushed);
	*out = (void *)(uintptr_t)p;
	return s;
}

static void cuda_free(struct device *device, void *p)
{
	struct cuda *d = (struct cuda *)device;
	bool pushed;
	if (cuda_enter(d, &pushed))
		return;
	d->api.mem_free((CUdeviceptr)(uintptr_t)p);
	cuda_leave(d, pushed);
}

static tl_status cuda_synchronize(struct device *device)
{
	struct cuda *d = (struct cuda *)device;
	bool pushed;
	tl_status s = cuda_enter(d, &pushed);
	if (s)
		return s;
	TRY("cuCtxSynchronize", d->api.ctx_synchronize()); /* the caller's streams too */
	if (!s) {
		atomic_store(&d->last, NULL);
		atomic_store(&d->several, false);
	}
	cuda_leave(d, pushed);
	return s;
}

static bool cuda_allocation(struct device *device, const void *p, void **base, size_t *size)
{
	struct cuda *d = (struct cuda *)device;
	CUdeviceptr from = 0;
	bool pushed;
	if (!d->api.address_range || cuda_enter(d, &pushed))
		return false;
	bool known = !d->api.address_range(&from, size, (CUdeviceptr)(uintptr_t)p);
	cuda_leave(d, pushed);
	*base = (void *)(uintptr_t)from;
	return known;
}

/* The driver reports an error for CU_STREAM_LEGACY if a stream that synchronises with it is being captured. */
static bool cuda_capturing(struct device *device, void *stream)
{
	struct cuda *d = (struct cuda *)device;
	int status = CU_STREAM_CAPTURE_STATUS_NONE;
	bool pushed;
	if (!d->api.stream_capturing || cuda_enter(d, &pushed))
		return false;
	CUresult r = d->api.stream_capturing(stream, &status);
	cuda_leave(d, pushed);
	return r ? r == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* --- kernels ------------------------------------------------------------------------------------------------- */

static struct target cuda_target(const struct device *device)
{
	return ((const struct cuda *)device)->target;
}

/* Sets the kernel's shared memory limit, and checks that a block fits the GPU. */
static tl_status configure(struct cuda *d, const struct image *im, struct cuda_kernel *k)
{
	tl_status s = TL_OK;
	int most = 0, regs = 0;
	if (im->shared_bytes > d->target.shared_bytes)
		return failed(TL_ERR_COMPILE,
			      "%s needs %d bytes of shared memory per block, and this GPU has %d\n      = hint: use "
			      "smaller tiles or a smaller num_stages",
			      im->name, im->shared_bytes, d->target.shared_bytes);
	if (im->shared_bytes > STATIC_SHARED_LIMIT) {
		TRY("cuFuncSetAttribute",
		    d->api.func_set_attribute(k->function, CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, im->shared_bytes));
		TRY("cuFuncSetAttribute",
		    d->api.func_set_attribute(k->function, CU_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT, 100));
	}
	/* with lazy loading, this call loads the code now, not at the first launch */
	TRY("cuFuncGetAttribute", d->api.func_get_attribute(&most, CU_FUNC_MAX_THREADS_PER_BLOCK, k->function));
	TRY("cuFuncGetAttribute", d->api.func_get_attribute(&regs, CU_FUNC_NUM_REGS, k->function));
	if (!s && (int)k->threads > most)
		return failed(TL_ERR_COMPILE,
			      "%s uses %d registers per thread, so that a block has at most %d threads; num_warps=%d "
			      "needs %u\n      = hint: use fewer warps or smaller tiles",
			      im->name, regs, most, im->num_warps, k->threads);
	return s;
}

static tl_status cuda_load(struct device *device, const struct device_load *l, void **out)
{
	const struct image *im = l->image;
	struct cuda *d = (struct cuda *)device;
	size_t name = strlen(im->name) + 1;
	struct cuda_kernel *k = calloc(1, sizeof *k + name);
	if (!k)
		return failed(TL_ERR_MEMORY, "out of host memory");
	k->name = memcpy(k + 1, im->name, name);
	k->threads = 32 * (unsigned)im->num_warps;
	k->shared = (unsigned)im->shared_bytes;
	k->cluster = (unsigned)im->cluster;
	k->most = INT32_MAX / k->cluster;
	bool pushed;
	tl_status s = cuda_enter(d, &pushed);
	if (s) {
		free(k);
		return s;
	}
	/* other threads may be capturing their streams; the load is not part of a capture */
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	if (d->api.capture_mode)
		TRY("cuThreadExchangeStreamCaptureMode", d->api.capture_mode(&mode));
	if (!s)
		s = cuda_assemble(d, l, &k->module);
	TRY("cuModuleGetFunction", d->api.module_function(&k->function, k->module, im->name));
	if (!s)
		s = configure(d, im, k);
	if (s && k->module)
		d->api.module_unload(k->module);
	if (d->api.capture_mode)
		d->api.capture_mode(&mode);
	cuda_leave(d, pushed);
	if (s)
		free(k);
	else
		*out = k;
	return s;
}

static void cuda_unload(struct device *device, void *kernel)
{
	struct cuda *d = (struct cuda *)device;
	struct cuda_kernel *k = kernel;
	const struct cuda_kernel *last = k;
	bool pushed;
	atomic_compare_exchange_strong(&d->last, &last, NULL);
	if (!cuda_enter(d, &pushed)) {
		d->api.module_unload(k->module);
		cuda_leave(d, pushed);
	}
	free(k);
}

static tl_status cuda_resources(struct device *device, void *kernel, tl_resources *out)
{
	struct cuda *d = (struct cuda *)device;
	const struct cuda_kernel *k = kernel;
	int local = 0;
	*out = (tl_resources){.threads = (int)k->threads, .shared_bytes = k->shared, .blocks = (int)k->cluster};
	bool pushed;
	tl_status s = cuda_enter(d, &pushed);
	if (s)
		return s;
	TRY("cuFuncGetAttribute", d->api.func_get_attribute(&out->registers, CU_FUNC_NUM_REGS, k->function));
	TRY("cuFuncGetAttribute", d->api.func_get_attribute(&local, CU_FUNC_LOCAL_SIZE_BYTES, k->function));
	if (k->cluster == 1) /* blocks of a cluster must also be resident together */
		TRY("cuOccupancyMaxActiveBlocksPerMultiprocessor",
		    d->api.occupancy(&out->resident, k->function, out->threads, out->shared_bytes));
	out->local_bytes = (size_t)local;
	cuda_leave(d, pushed);
	return s;
}

static tl_status cuda_tensor_map(struct device *device, const struct tensor_map_shape *b, void *out)
{
	static const unsigned steps[] = {1, 1, 1, 1, 1};
	if (!((struct cuda *)device)->api.tensor_map)
		return failed(TL_ERR_DEVICE, "this CUDA driver has no cuTensorMapEncodeTiled: it is too old");
	/* encoding needs no GPU, but needs a current context */
	IN_CONTEXT(device, "cuTensorMapEncodeTiled",
		   d->api.tensor_map(out, tensor_map_type(b->dtype), b->rank, b->base, b->sizes, b->strides, b->box,
				     steps, TENSOR_INTERLEAVE_NONE, tensor_swizzle_mode(b->swizzle),
				     tensor_promotion(b), b->fills_nan ? TENSOR_FILL_NAN : TENSOR_FILL_ZERO));
}

const struct device_ops cuda_ops = {
	.name = "cuda",
	.stages = " ttir ttgir llir ptx remarks calls accesses schedule metadata ",
	.has_streams = true,
	.target = cuda_target,
	.numbered = true,
	.faultless = true,
	.queue = &cuda_queue,
	.count = count,
	.at = at,
	.open = cuda_open,
	.close = cuda_close,
	.info = cuda_info,
	.alloc = cuda_alloc,
	.free = cuda_free,
	.load = cuda_load,
	.unload = cuda_unload,
	.resources = cuda_resources,
	.launch = cuda_launch,
	.time = cuda_time,
	.try = cuda_try,
	.synchronize = cuda_synchronize,
	.capturing = cuda_capturing,
	.allocation = cuda_allocation,
	.tensor_map = cuda_tensor_map,
};

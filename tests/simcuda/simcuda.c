/* A libcuda.so.1 without a GPU, for tests: the driver's calls that libtl makes, on the simulator.
 *
 * There is one device, an sm_90a, or what $SIMCUDA names: 75, 80 …; 0: there is none. Device memory is checked, and
 * launches are over when they return. A kernel that fails says why on standard error, and later calls fail as on a GPU,
 * with CUDA_ERROR_LAUNCH_FAILED. A kernel that does not end ($TL_SIM_MAX_STEPS) is waited for without end. The
 * functions are the driver's in runtime/device/cuda_api.h. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/device/cuda_api.h"
#include "runtime/device/device.h"
#include "runtime/image/error.h"
#include "runtime/sim/ptx.h"
#include "runtime/sim/tensormap.h"

#define CALL __attribute__((visibility("default"))) CUresult

enum {
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_INVALID_IMAGE = 200,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	MAX_PARAMS = 1024
};

struct CUmod_st {
	char *text;
	int level; /* of optimization */
	struct CUfunc_st *functions;
};

struct CUfunc_st {
	struct CUfunc_st *next;
	struct arena arena; /* of its parameters' sizes */
	const struct ptx_kernel *ptx;
	struct image image;
	int level;    /* of optimization */
	void *kernel; /* the simulator's */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device *sim;
static bool lost; /* a kernel has failed */
static bool endless; /* a kernel does not end */

static CUcontext the_context(void)
{
	return (CUcontext)&sim;
}

static CUresult result_of(tl_status s)
{
	return !s                   ? lost ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS
	       : s == TL_ERR_MEMORY ? CUDA_ERROR_OUT_OF_MEMORY
				    : CUDA_ERROR_INVALID_VALUE;
}

/* Waits for all kernels. */
static CUresult wait_for_all(void)
{
	while (endless)
		pause();
	return result_of(TL_OK);
}

/* --- the device -------------------------------------------------------------------------------------------------- */

static int architecture(void)
{
	const char *sm = getenv("SIMCUDA");
	return sm && *sm ? atoi(sm) : 90;
}

CALL cuInit(unsigned flags)
{
	(void)flags;
	if (!architecture())
		return CUDA_ERROR_NO_DEVICE;
	pthread_mutex_lock(&lock);
	tl_status s = sim ? TL_OK : sim_ops.open(architecture(), &sim);
	pthread_mutex_unlock(&lock);
	return result_of(s);
}

CALL cuDriverGetVersion(int *version)
{
	*version = 12080;
	return CUDA_SUCCESS;
}

CALL cuGetErrorString(CUresult error, const char **text)
{
	*text = error == CUDA_ERROR_LAUNCH_FAILED ? "a kernel failed on the simulator" : "the simulator refused";
	return CUDA_SUCCESS;
}

CALL cuGetErrorName(CUresult error, const char **text)
{
	*text = error == CUDA_ERROR_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR";
	return CUDA_SUCCESS;
}

CALL cuDeviceGetCount(int *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

CALL cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CALL cuDeviceGetName(char *name, int len, CUdevice device)
{
	snprintf(name, (size_t)len, "simulated sm_%d on device %d", architecture(), device);
	return CUDA_SUCCESS;
}

CALL cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
	const struct target t = sim_ops.target(sim);
	*value = attribute == CU_DEVICE_MULTIPROCESSOR_COUNT                ? t.multiprocessors
		 : attribute == CU_DEVICE_COMPUTE_CAPABILITY_MAJOR          ? t.sm / 10
		 : attribute == CU_DEVICE_COMPUTE_CAPABILITY_MINOR          ? t.sm % 10
		 : attribute == CU_DEVICE_MAX_REGISTERS_PER_MULTIPROCESSOR  ? t.registers
		 : attribute == CU_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? t.shared_bytes
									    : 0;
	return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CALL cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	*bytes = (size_t)1 << 30;
	return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

/* --- contexts, streams and events, of which there is one each ---------------------------------------------------- */

CALL cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device)
{
	*ctx = the_context();
	return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CALL cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

static _Thread_local int depth;

CALL cuCtxGetCurrent(CUcontext *ctx)
{
	*ctx = depth ? the_context() : NULL;
	return CUDA_SUCCESS;
}

CALL cuCtxGetDevice(CUdevice *device)
{
	*device = 0;
	return depth ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CALL cuCtxPushCurrent_v2(CUcontext ctx)
{
	depth++;
	return ctx == the_context() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CALL cuCtxPopCurrent_v2(CUcontext *ctx)
{
	*ctx = the_context();
	depth--;
	return CUDA_SUCCESS;
}

CALL cuCtxSynchronize(void)
{
	return wait_for_all();
}

CALL cuStreamCreate(CUstream *s, unsigned flags)
{
	(void)flags;
	*s = (CUstream)&depth;
	return CUDA_SUCCESS;
}

CALL cuStreamDestroy_v2(CUstream s)
{
	(void)s;
	return CUDA_SUCCESS;
}

CALL cuStreamSynchronize(CUstream s)
{
	(void)s;
	return wait_for_all();
}

CALL cuEventCreate(CUevent *e, unsigned flags)
{
	(void)flags;
	*e = (CUevent)&depth;
	return CUDA_SUCCESS;
}

CALL cuEventDestroy_v2(CUevent e)
{
	(void)e;
	return CUDA_SUCCESS;
}

CALL cuEventRecord(CUevent e, CUstream s)
{
	(void)e;
	(void)s;
	return CUDA_SUCCESS;
}

CALL cuEventQuery(CUevent e)
{
	(void)e;
	return endless ? CUDA_ERROR_NOT_READY : result_of(TL_OK);
}

CALL cuEventSynchronize(CUevent e)
{
	(void)e;
	return wait_for_all();
}

CALL cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
	(void)s;
	(void)e;
	(void)flags;
	return CUDA_SUCCESS;
}

CALL cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	(void)from;
	(void)to;
	*ms = 1;
	return CUDA_SUCCESS;
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static void *address(CUdeviceptr p)
{
	return (void *)(uintptr_t)p;
}

CALL cuMemAlloc_v2(CUdeviceptr *p, size_t bytes)
{
	void *at;
	CUresult r = result_of(sim_ops.alloc(sim, bytes, &at));
	*p = r ? 0 : (CUdeviceptr)(uintptr_t)at;
	return r;
}

CALL cuMemFree_v2(CUdeviceptr p)
{
	wait_for_all(); /* as a GPU's does */
	sim_ops.free(sim, address(p));
	return CUDA_SUCCESS;
}

CALL cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream s)
{
	(void)s;
	return result_of(device_write(sim, address(dst), src, bytes));
}

CALL cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream s)
{
	(void)s;
	return result_of(device_read(sim, dst, address(src), bytes));
}

CALL cuMemsetD8Async(CUdeviceptr p, unsigned char byte, size_t bytes, CUstream s)
{
	(void)s;
	return result_of(device_fill(sim, address(p), byte, bytes));
}

CALL cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s)
{
	return cuMemcpyHtoDAsync_v2(dst, address(src), bytes, s);
}

CALL cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes, CUstream s)
{
	return to != from ? CUDA_ERROR_INVALID_VALUE : cuMemcpyHtoDAsync_v2(dst, address(src), bytes, s);
}

/* `height` rows of elements, `pitch` bytes apart. */
static CUresult fill_rows(CUdeviceptr p, size_t pitch, const void *value, size_t size, size_t width, size_t height)
{
	CUresult r = CUDA_SUCCESS;
	for (size_t y = 0; y < height && !r; y++)
		for (size_t x = 0; x < width && !r; x++)
			r = cuMemcpyHtoDAsync_v2(p + y * pitch + x * size, value, size, NULL);
	return r;
}

CALL cuMemsetD16Async(CUdeviceptr p, unsigned short value, size_t count, CUstream s)
{
	(void)s;
	return fill_rows(p, 0, &value, sizeof value, count, 1);
}

CALL cuMemsetD32Async(CUdeviceptr p, unsigned value, size_t count, CUstream s)
{
	(void)s;
	return fill_rows(p, 0, &value, sizeof value, count, 1);
}

CALL cuMemsetD2D32Async(CUdeviceptr p, size_t pitch, unsigned value, size_t width, size_t height, CUstream s)
{
	(void)s;
	return fill_rows(p, pitch, &value, sizeof value, width, height);
}

CALL cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
	(void)flags;
	*p = malloc(bytes ? bytes : 1);
	return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CALL cuMemFreeHost(void *p)
{
	free(p);
	return CUDA_SUCCESS;
}

CALL cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr p)
{
	void *from;
	if (!sim_ops.allocation(sim, address(p), &from, size))
		return CUDA_ERROR_INVALID_VALUE;
	*base = (CUdeviceptr)(uintptr_t)from;
	return CUDA_SUCCESS;
}

/* --- kernels ----------------------------------------------------------------------------------------------------- */

#define LINKED "// linked, level "

static int level_of(unsigned n, const int *options, void **values)
{
	for (unsigned i = 0; i < n; i++)
		if (options[i] == CU_JIT_OPTIMIZATION_LEVEL)
			return (int)(uintptr_t)values[i];
	return 4;
}

CALL cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned n, const int *options, void **values)
{
	*m = calloc(1, sizeof **m);
	char *text = strdup(image);
	if (!*m || !text)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*m)->text = text;
	(*m)->level = strncmp(text, LINKED, strlen(LINKED)) ? level_of(n, options, values) : text[strlen(LINKED)] - '0';
	return CUDA_SUCCESS;
}

/* The linker's machine code is a line with the level, and the PTX. */
struct CUlink_st {
	struct arena arena;
	struct strbuf code;
};

CALL cuLinkCreate_v2(unsigned n, const int *options, void **values, struct CUlink_st **state)
{
	struct CUlink_st *s = calloc(1, sizeof *s);
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->code.arena = &s->arena;
	sb_printf(&s->code, LINKED "%d\n", level_of(n, options, values));
	*state = s;
	return CUDA_SUCCESS;
}

CALL cuLinkAddData_v2(struct CUlink_st *s, int type, const void *data, size_t bytes, const char *name, unsigned n,
		      const int *options, void **values)
{
	(void)type;
	(void)bytes;
	(void)name;
	(void)n;
	(void)options;
	(void)values;
	sb_printf(&s->code, "%s", (const char *)data);
	return CUDA_SUCCESS;
}

CALL cuLinkComplete(struct CUlink_st *s, void **binary, size_t *bytes)
{
	*binary = s->code.at;
	*bytes = s->code.len + 1;
	return CUDA_SUCCESS;
}

CALL cuLinkDestroy(struct CUlink_st *s)
{
	arena_free(&s->arena);
	free(s);
	return CUDA_SUCCESS;
}

CALL cuModuleUnload(CUmodule m)
{
	for (CUfunction f = m->functions, next; f; f = next) {
		next = f->next;
		sim_ops.unload(sim, f->kernel);
		arena_free(&f->arena);
		free(f);
	}
	free(m->text);
	free(m);
	return CUDA_SUCCESS;
}

/* A driver has no image: the parameters come from the PTX. */
static void take_parameters(CUfunction f)
{
	static const enum dtype words[] = {DT_U8, DT_U16, DT_U32, DT_U64};
	struct image *im = &f->image;
	im->slots = arena_array(&f->arena, struct slot, f->ptx->nparams + 1);
	for (u32 i = 0; i < f->ptx->nparams; i++) {
		const struct ptx_var *p = &f->ptx->params[i];
		im->slots[im->nslots++].dtype = p->size > 8         ? DT_COUNT
						: p->type == PT_F32 ? DT_F32
						: p->type == PT_F64 ? DT_F64
								    : words[ilog2(p->size)];
	}
}

CALL cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name)
{
	const char *error;
	CUfunction f = calloc(1, sizeof *f);
	if (!f)
		return CUDA_ERROR_OUT_OF_MEMORY;
	f->image = (struct image){.code = m->text, .code_bytes = (u32)strlen(m->text), .cluster = 1, .num_warps = 1};
	f->image.name = arena_str(&f->arena, name, strlen(name));
	const struct ptx_module *ptx = ptx_read(&f->arena, m->text, strlen(m->text), &error);
	for (u32 i = 0; ptx && i < ptx->nkernels; i++)
		if (!strcmp(ptx->kernels[i].name, name))
			f->ptx = &ptx->kernels[i];
	if (f->ptx)
		take_parameters(f);
	if (!f->ptx || sim_ops.load(sim, &(struct device_load){.image = &f->image}, &f->kernel)) {
		fprintf(stderr, "simcuda: %s\n", f->ptx ? tl_error(NULL) : ptx ? "no such kernel" : error);
		arena_free(&f->arena);
		free(f);
		return ptx ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_IMAGE;
	}
	f->level = m->level;
	f->next = m->functions;
	*out = m->functions = f;
	return CUDA_SUCCESS;
}

CALL cuFuncSetAttribute(CUfunction f, int attribute, int value)
{
	(void)f;
	(void)attribute;
	(void)value;
	return CUDA_SUCCESS;
}

CALL cuFuncGetAttribute(int *value, int attribute, CUfunction f)
{
	/* $SIMCUDA_GIVES_UP: the assembler cannot allocate registers above level 1 */
	bool tried = getenv("SIMCUDA_GIVES_UP"), given_up = tried && f->level > 1;
	*value = attribute == CU_FUNC_MAX_THREADS_PER_BLOCK ? 1024
		 : attribute == CU_FUNC_NUM_REGS            ? (tried && !given_up ? 255 : 32)
		 : attribute == CU_FUNC_LOCAL_SIZE_BYTES    ? (given_up ? 10000 : 0)
							    : 0;
	return CUDA_SUCCESS;
}

CALL cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads, size_t shared)
{
	(void)f;
	(void)shared;
	*blocks = 2048 / threads;
	return CUDA_SUCCESS;
}

CALL cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		    unsigned shared, CUstream s, void **params, void **extra)
{
	(void)s;
	u64 args[MAX_PARAMS] = {0};
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (lost)
		return CUDA_ERROR_LAUNCH_FAILED;
	if (by * bz != 1 || bx % 32 || !bx || !gx || !gy || !gz || extra || f->ptx->nparams > MAX_PARAMS)
		return CUDA_ERROR_INVALID_VALUE;
	for (u32 i = 0; i < f->ptx->nparams; i++) {
		u64 size = f->ptx->params[i].size;
		if (size > sizeof *args)
			args[i] = (u64)(uintptr_t)params[i];
		else
			memcpy(&args[i], params[i], size);
	}
	const struct device_launch l = {
		.kernel = f->kernel, .grid = {gx, gy, gz}, .args = args, .nargs = f->ptx->nparams};
	pthread_mutex_lock(&lock);
	f->image.num_warps = (i32)(bx / 32);
	f->image.shared_bytes = (i32)shared;
	tl_status status = sim_ops.launch(sim, &l);
	pthread_mutex_unlock(&lock);
	if (!status)
		return CUDA_SUCCESS;
	fprintf(stderr, "simcuda: %s\n", tl_error(NULL));
	lost = status == TL_ERR_KERNEL;
	endless = strstr(tl_error(NULL), "does not end");
	return lost ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; /* a GPU tells later */
}

CALL cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *base, const u64 *sizes, const u64 *strides,
			    const unsigned *box, const unsigned *steps, int interleave, int swizzle, int promotion,
			    int fill)
{
	struct arena a = {0};
	struct strbuf error = {.arena = &a};
	sb_puts(&error, "");
	bool good = tensor_map_encode(map, type, rank, base, sizes, strides, box, steps, interleave, swizzle, promotion,
				      fill, &error);
	if (!good)
		fprintf(stderr, "simcuda: %s\n", error.at);
	arena_free(&a);
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

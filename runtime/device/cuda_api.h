/* The functions of the CUDA driver API that libtl calls, from NVIDIA's public documentation ("CUDA Driver API").
 *
 * They are declared here so that building and starting a program needs no CUDA: the library is opened at run time. The
 * types are opaque pointers in the driver's ABI too. The functions are in a table of pointers, so that tests can
 * substitute a mock driver. */
#ifndef TL_DEVICE_CUDA_API_H
#define TL_DEVICE_CUDA_API_H

#include "support/base.h"
#include "runtime/tl.h"

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_ECC_UNCORRECTABLE = 214,
	CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_ILLEGAL_ADDRESS = 700,
	CUDA_ERROR_LAUNCH_TIMEOUT = 702,
	CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
	CUDA_ERROR_ASSERT = 710,
	CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
	CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
	CUDA_ERROR_MISALIGNED_ADDRESS = 716,
	CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
	CUDA_ERROR_INVALID_PC = 718,
	CUDA_ERROR_LAUNCH_FAILED = 719,
	CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
};

enum { CU_STREAM_LEGACY = 1, CU_STREAM_PER_THREAD = 2 }; /* handles of streams */

enum { CU_STREAM_CAPTURE_STATUS_NONE = 0, CU_STREAM_CAPTURE_MODE_RELAXED = 2 };

enum { /* CUdevice_attribute */
	CU_DEVICE_MULTIPROCESSOR_COUNT = 16,
	CU_DEVICE_L2_CACHE_SIZE = 38,
	CU_DEVICE_COMPUTE_CAPABILITY_MAJOR = 75,
	CU_DEVICE_COMPUTE_CAPABILITY_MINOR = 76,
	CU_DEVICE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
	CU_DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
};

enum { /* CUfunction_attribute */
	CU_FUNC_MAX_THREADS_PER_BLOCK = 0,
	CU_FUNC_LOCAL_SIZE_BYTES = 3,
	CU_FUNC_NUM_REGS = 4,
	CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
	CU_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
};

enum { /* CUlaunchAttributeID */
       CU_LAUNCH_COOPERATIVE = 2,
       CU_LAUNCH_CLUSTER_DIMENSION = 4,
       CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
};

struct cu_launch_attribute {
	int id;
	union {
		int value;
		unsigned dimensions[3];
		_Alignas(8) char bytes[64];
	};
};

struct cu_launch_config {
	unsigned grid[3], block[3], shared;
	CUstream stream;
	struct cu_launch_attribute *attributes;
	unsigned nattributes;
};
_Static_assert(sizeof(struct cu_launch_attribute) == 72 && sizeof(struct cu_launch_config) == 56,
	       "as CUlaunchAttribute and CUlaunchConfig are");

enum { /* CUjit_option */
	CU_JIT_ERROR_LOG_BUFFER = 5,
	CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
	CU_JIT_OPTIMIZATION_LEVEL = 7,
};

/* X(name in the table, symbol, parameters), the most frequently called functions first */
#define CUDA_API(X)                                                                                                    \
	X(launch, "cuLaunchKernel",                                                                                    \
	  (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,                 \
	   unsigned shared, CUstream s, void **params, void **extra))                                                  \
	X(init, "cuInit", (unsigned flags))                                                                            \
	X(driver_version, "cuDriverGetVersion", (int *version))                                                        \
	X(error_string, "cuGetErrorString", (CUresult error, const char **text))                                       \
	X(error_name, "cuGetErrorName", (CUresult error, const char **text))                                           \
	X(device_count, "cuDeviceGetCount", (int *count))                                                              \
	X(device_get, "cuDeviceGet", (CUdevice * device, int ordinal))                                                 \
	X(device_name, "cuDeviceGetName", (char *name, int len, CUdevice device))                                      \
	X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, CUdevice device))                      \
	X(device_memory, "cuDeviceTotalMem_v2", (size_t *bytes, CUdevice device))                                      \
	X(primary_retain, "cuDevicePrimaryCtxRetain", (CUcontext * ctx, CUdevice device))                              \
	X(primary_release, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))                                          \
	X(ctx_current, "cuCtxGetCurrent", (CUcontext * ctx))                                                           \
	X(ctx_device, "cuCtxGetDevice", (CUdevice * device))                                                           \
	X(ctx_push, "cuCtxPushCurrent_v2", (CUcontext ctx))                                                            \
	X(ctx_pop, "cuCtxPopCurrent_v2", (CUcontext * ctx))                                                            \
	X(ctx_synchronize, "cuCtxSynchronize", (void))                                                                 \
	X(mem_alloc, "cuMemAlloc_v2", (CUdeviceptr * p, size_t bytes))                                                 \
	X(mem_free, "cuMemFree_v2", (CUdeviceptr p))                                                                   \
	X(copy_to_device, "cuMemcpyHtoDAsync_v2", (CUdeviceptr dst, const void *src, size_t bytes, CUstream s))        \
	X(copy_to_host, "cuMemcpyDtoHAsync_v2", (void *dst, CUdeviceptr src, size_t bytes, CUstream s))                \
	X(copy_on_device, "cuMemcpyDtoDAsync_v2", (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s))        \
	X(copy_peer, "cuMemcpyPeerAsync",                                                                              \
	  (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes, CUstream s))                  \
	X(host_alloc, "cuMemHostAlloc", (void **p, size_t bytes, unsigned flags))                                      \
	X(host_free, "cuMemFreeHost", (void *p))                                                                       \
	X(mem_set_16, "cuMemsetD16Async", (CUdeviceptr p, unsigned short value, size_t count, CUstream s))             \
	X(mem_set_32, "cuMemsetD32Async", (CUdeviceptr p, unsigned value, size_t count, CUstream s))                   \
	X(mem_set_rows, "cuMemsetD2D32Async",                                                                          \
	  (CUdeviceptr p, size_t pitch, unsigned value, size_t width, size_t height, CUstream s))                      \
	X(mem_set, "cuMemsetD8Async", (CUdeviceptr p, unsigned char byte, size_t bytes, CUstream s))                   \
	X(module_load, "cuModuleLoadDataEx",                                                                           \
	  (CUmodule * m, const void *image, unsigned n, const int *options, void **values))                            \
	X(module_unload, "cuModuleUnload", (CUmodule m))                                                               \
	X(module_function, "cuModuleGetFunction", (CUfunction * f, CUmodule m, const char *name))                      \
	X(func_set_attribute, "cuFuncSetAttribute", (CUfunction f, int attribute, int value))                          \
	X(func_get_attribute, "cuFuncGetAttribute", (int *value, int attribute, CUfunction f))                         \
	X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                                    \
	  (int *blocks, CUfunction f, int threads, size_t shared))                                                     \
	X(stream_create, "cuStreamCreate", (CUstream * s, unsigned flags))                                             \
	X(stream_destroy, "cuStreamDestroy_v2", (CUstream s))                                                          \
	X(stream_synchronize, "cuStreamSynchronize", (CUstream s))                                                     \
	X(event_create, "cuEventCreate", (CUevent * e, unsigned flags))                                                \
	X(event_destroy, "cuEventDestroy_v2", (CUevent e))                                                             \
	X(event_record, "cuEventRecord", (CUevent e, CUstream s))                                                      \
	X(event_query, "cuEventQuery", (CUevent e))                                                                    \
	X(event_synchronize, "cuEventSynchronize", (CUevent e))                                                        \
	X(stream_wait, "cuStreamWaitEvent", (CUstream s, CUevent e, unsigned flags))                                   \
	X(event_elapsed, "cuEventElapsedTime", (float *ms, CUevent from, CUevent to))

/* NULL in drivers without them: cuLaunchKernelEx is new in CUDA 12. */
#define CUDA_API_NEW(X)                                                                                                \
	X(launch_ex, "cuLaunchKernelEx",                                                                               \
	  (const struct cu_launch_config *config, CUfunction f, void **params, void **extra))                          \
	X(stream_capturing, "cuStreamIsCapturing", (CUstream s, int *status))                                          \
	X(capture_mode, "cuThreadExchangeStreamCaptureMode", (int *mode))                                              \
	X(address_range, "cuMemGetAddressRange_v2", (CUdeviceptr * base, size_t *size, CUdeviceptr p))                 \
	X(tensor_map, "cuTensorMapEncodeTiled",                                                                        \
	  (void *map, int type, unsigned rank, void *base, const u64 *sizes, const u64 *strides, const unsigned *box,  \
	   const unsigned *steps, int interleave, int swizzle, int promotion, int fill))

struct cuda_api {
#define X(name, symbol, params) CUresult(*name) params;
	CUDA_API(X)
	CUDA_API_NEW(X)
#undef X
};

/* Opens the driver's library. TL_ERR_DEVICE: there is no library, and *absent is set. TL_ERR_DRIVER: it lacks a
 * function. */
tl_status cuda_api_open(struct cuda_api *out, bool *absent);
/* Initialises the driver. */
tl_status cuda_start(const struct cuda_api *api);
/* cuda_count: the number of GPUs, which may be 0. cuda_describe: describes a GPU; its target is "" if the GPU is too
 * old. */
tl_status cuda_count(const struct cuda_api *api, int *out);
tl_status cuda_describe(const struct cuda_api *api, int index, tl_device_info *out);
/* True if the driver works and reports that there is no GPU. */
bool cuda_no_device(const struct cuda_api *api);

/* Creates a device: GPU `ordinal` in its primary context, or in the caller's context `adopted` if that is not NULL. */
struct device;
tl_status cuda_device_new(const struct cuda_api *api, int ordinal, CUcontext adopted, struct device **out);

#endif

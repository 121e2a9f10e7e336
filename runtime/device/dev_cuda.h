/* Declarations shared by the files of the CUDA device: the device, its context during a call, and driver errors. */
#ifndef TL_DEVICE_DEV_CUDA_H
#define TL_DEVICE_DEV_CUDA_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/device/cuda_api.h"
#include "runtime/device/device.h"
#include "runtime/device/nvtx.h"

struct cuda_kernel {
	CUmodule module;
	CUfunction function;
	unsigned threads, shared, cluster, most; /* cluster: blocks of a program; most: the most programs along x */
	const char *name;
};

/* Members that launches use come first. */
struct cuda {
	struct device device; /* first */
	CUstream stream;
	/* The kernel launched last, and whether other kernels were launched since the device was waited for: a kernel
	 * fails asynchronously, after its launch. */
	_Atomic(const struct cuda_kernel *) last;
	atomic_bool several;
	struct cuda_api api;
	CUdevice id;
	CUcontext ctx;
	const struct nvtx *nvtx; /* or NULL */
	bool own_context;
	int ordinal;               /* -1: unknown */
	struct target target; /* with this GPU's limits */
	int l2_bytes;
	pthread_mutex_t lock; /* of the scratch memory for timing */
	CUdeviceptr scratch;
	size_t scratch_bytes;
};

tl_status driver_error(const struct cuda_api *api, const char *call, CUresult r);
/* The status of a failed driver call. If a kernel failed, the error names the kernel. */
tl_status cuda_error(struct cuda *d, const char *call, CUresult r);

/* Makes a driver call in a function with `d` and `s`. The first failure stays in s. */
#define TRY(call, ...)                                                                                                 \
	do {                                                                                                           \
		if (!s) {                                                                                              \
			CUresult r_ = __VA_ARGS__;                                                                     \
			if (r_)                                                                                        \
				s = cuda_error(d, call, r_);                                                           \
		}                                                                                                      \
	} while (0)

/* cuda_enter makes the device's context current; cuda_leave restores the caller's context, with cuda_enter's
 * *pushed. */
tl_status cuda_enter(struct cuda *d, bool *pushed);
void cuda_leave(struct cuda *d, bool pushed);

/* The body of a function that makes one driver call. */
#define IN_CONTEXT(device, call, ...)                                                                                  \
	struct cuda *d = (struct cuda *)(device);                                                                      \
	bool pushed;                                                                                                   \
	tl_status s = cuda_enter(d, &pushed);                                                                          \
	if (s)                                                                                                         \
		return s;                                                                                              \
	TRY(call, __VA_ARGS__);                                                                                        \
	cuda_leave(d, pushed);                                                                                         \
	return s

/* Loads the image's PTX, which the driver assembles (cuda_assemble.c). May add directives to it. The caller has made
 * the context current. */
tl_status cuda_assemble(struct cuda *d, const struct device_load *l, CUmodule *out);

/* As in struct device_ops. */
tl_status cuda_launch(struct device *device, const struct device_launch *l);
tl_status cuda_try(struct device *device, const struct device_launch *l, int limit_ms, bool *ended);
tl_status cuda_time(struct device *device, const struct device_launch *l, int warmup, int repeats, double *ms);

#endif

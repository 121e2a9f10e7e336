/* What the files of the CUDA device share: the device, its context around a call, and errors of the driver. */
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
	unsigned threads, shared, cluster, most; /* cluster: blocks a program; most: programs along x */
	const char *name;
};

/* What launches need comes first. */
struct cuda {
	struct device device; /* first */
	CUstream stream;
	/* Launched last, and whether others were since the device was waited for: kernels fail behind their launch. */
	_Atomic(const struct cuda_kernel *) last;
	atomic_bool several;
	struct cuda_api api;
	CUdevice id;
	CUcontext ctx;
	const struct nvtx *nvtx; /* or NULL */
	bool own_context;
	int ordinal;               /* -1: not known */
	struct target target; /* with this GPU's own limits */
	int l2_bytes, driver;      /* driver: the version of CUDA that it serves */
	pthread_mutex_t lock; /* of the scratch memory, while something is timed */
	CUdeviceptr scratch;
	size_t scratch_bytes;
};

/* The status of a failed driver call; of a kernel's failure it names the kernel. */
tl_status cuda_error(struct cuda *d, const char *call, CUresult r);

/* Runs a driver call inside a function with `d` and `s`: the first failure stays in s. */
#define TRY(call, ...)                                                                                                 \
	do {                                                                                                           \
		if (!s) {                                                                                              \
			CUresult r_ = __VA_ARGS__;                                                                     \
			if (r_)                                                                                        \
				s = cuda_error(d, call, r_);                                                           \
		}                                                                                                      \
	} while (0)

/* Makes the device's context current; *pushed: for leave(), which restores the caller's. */
tl_status cuda_enter(struct cuda *d, bool *pushed);
void cuda_leave(struct cuda *d, bool pushed);

/* As in struct device_ops. */
tl_status cuda_launch(struct device *device, const struct device_launch *l);
tl_status cuda_try(struct device *device, const struct device_launch *l, int limit_ms, bool *ended);
tl_status cuda_time(struct device *device, const struct device_launch *l, int warmup, int repeats, double *ms);

#endif

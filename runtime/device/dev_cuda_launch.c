/* Launches of the CUDA device: asynchronous, with a time limit, and timed. */
#include <stdlib.h>
#include <time.h>

#include "runtime/device/dev_cuda.h"
#include "runtime/image/error.h"
#include "runtime/device/grid.h"

static CUresult launch_plain(struct cuda *d, const struct device_launch *l, CUstream stream, void **params)
{
	const struct cuda_kernel *k = l->kernel;
	return d->api.launch(k->function, l->grid[0] * k->cluster, l->grid[1], l->grid[2], k->threads, 1, 1, k->shared,
			     stream, params, NULL);
}

static CUresult launch_with_attributes(struct cuda *d, const struct device_launch *l, CUstream stream, void **params)
{
	const struct cuda_kernel *k = l->kernel;
	struct cu_launch_attribute attributes[3];
	struct cu_launch_config config = {.grid = {l->grid[0] * k->cluster, l->grid[1], l->grid[2]},
					  .block = {k->threads, 1, 1},
					  .shared = k->shared,
					  .stream = stream,
					  .attributes = attributes};
	if (l->cooperative)
		attributes[config.nattributes++] = (struct cu_launch_attribute){CU_LAUNCH_COOPERATIVE, {1}};
	if (l->pdl && d->target.sm >= 90)
		attributes[config.nattributes++] =
			(struct cu_launch_attribute){CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION, {1}};
	/* a cooperative grid is launched without clusters, because all its blocks must be resident at once */
	if (l->pairs && !l->cooperative)
		attributes[config.nattributes++] =
			(struct cu_launch_attribute){CU_LAUNCH_CLUSTER_DIMENSION, {.dimensions = {2, 1, 1}}};
	return d->api.launch_ex(&config, k->function, params, NULL);
}

/* Launches with attributes, or in a range of the profiler. */
static __attribute__((noinline)) CUresult launch_otherwise(struct cuda *d, const struct device_launch *l,
							   CUstream stream, void **params)
{
	if (d->nvtx)
		d->nvtx->push(((const struct cuda_kernel *)l->kernel)->name);
	bool attributes = l->cooperative || l->pdl || (l->pairs && d->api.launch_ex);
	CUresult r = attributes ? launch_with_attributes(d, l, stream, params) : launch_plain(d, l, stream, params);
	if (d->nvtx)
		d->nvtx->pop();
	return r;
}

/* Records the kernel for cuda_error. */
static inline void note_launched(struct cuda *d, const struct cuda_kernel *k)
{
	const struct cuda_kernel *before = atomic_load_explicit(&d->last, memory_order_relaxed);
	if (before == k)
		return;
	if (before)
		atomic_store_explicit(&d->several, true, memory_order_relaxed);
	atomic_store_explicit(&d->last, k, memory_order_relaxed);
}

/* The device's context is current. */
static inline CUresult launch(struct cuda *d, const struct device_launch *l, CUstream stream)
{
	void *params[MAX_KERNEL_PARAMS + GRID_PARAMS + MAX_TENSOR_MAPS];
	const u64 *args = l->args;
	for (u32 i = 0; i < l->nargs; i++)
		params[i] = (void *)&args[i];
	for (u32 i = l->nargs - l->nmaps; i < l->nargs; i++)
		params[i] = (void *)(uintptr_t)args[i];
	return l->cooperative || l->pdl || l->pairs || d->nvtx ? launch_otherwise(d, l, stream, params)
							       : launch_plain(d, l, stream, params);
}

static inline tl_status check_launch(const struct cuda *d, const struct device_launch *l)
{
	const struct cuda_kernel *k = l->kernel;
	if ((l->cooperative || l->pdl) && !d->api.launch_ex)
		return failed(TL_ERR_DRIVER, "this CUDA driver has no cuLaunchKernelEx: it is too old");
	if (l->grid[0] <= k->most)
		return TL_OK;
	return failed(TL_ERR_ARGUMENT, "a grid of %u programs along x, each on %u blocks, is too large", l->grid[0],
		      k->cluster);
}

/* Launches in the device's context. `refused`: the driver's error of a launch in the caller's context; 0: there was
 * none. */
static __attribute__((noinline)) tl_status launch_in_context(struct cuda *d, const struct device_launch *l,
							     CUstream stream, CUresult refused)
{
	bool pushed;
	tl_status s = cuda_enter(d, &pushed);
	if (s)
		return s;
	TRY("cuLaunchKernel", pushed || !refused ? launch(d, l, stream) : refused);
	if (!s)
		note_launched(d, l->kernel);
	cuda_leave(d, pushed);
	return s;
}

/* The driver checks which context is current, and refuses a function of another context. So this launches without a
 * check first. Two cases are exceptions: stream handles that depend on the current context, and a profiler, which would
 * see two launches. */
tl_status cuda_launch(struct device *device, const struct device_launch *l)
{
	struct cuda *d = (struct cuda *)device;
	CUstream stream = l->stream ? l->stream : d->stream;
	CUresult r = CUDA_SUCCESS;
	tl_status s = check_launch(d, l);
	if (s)
		return s;
	if ((uintptr_t)stream <= CU_STREAM_PER_THREAD || d->nvtx || (r = launch(d, l, stream)))
		return launch_in_context(d, l, stream, r);
	note_launched(d, l->kernel);
	return TL_OK;
}

/* Polls for the end of the launch, with pauses that grow. */
static tl_status wait_for(struct cuda *d, CUevent event, int limit_ms, bool *ended)
{
	CUresult r;
	i64 waited = 0, pause = 10 * 1000; /* nanoseconds */
	while ((r = d->api.event_query(event)) == CUDA_ERROR_NOT_READY) {
		*ended = waited <= (i64)limit_ms * 1000 * 1000;
		if (!*ended)
			return failed(TL_ERR_KERNEL, "the kernel has not ended after %d ms", limit_ms);
		nanosleep(&(struct timespec){0, pause}, NULL);
		waited += pause;
		pause = MIN(pause * 2, 10 * 1000 * 1000);
	}
	return r ? cuda_error(d, "cuEventQuery", r) : TL_OK;
}

tl_status cuda_try(struct device *device, const struct device_launch *l, int limit_ms, bool *ended)
{
	struct cuda *d = (struct cuda *)device;
	CUstream stream = l->stream ? l->stream : d->stream;
	CUevent end = NULL;
	bool pushed;
	tl_status s = check_launch(d, l);
	*ended = true;
	if (s)
		return s;
	s = cuda_enter(d, &pushed);
	if (s)
		return s;
	TRY("cuEventCreate", d->api.event_create(&end, 0));
	TRY("cuLaunchKernel", launch(d, l, stream));
	TRY("cuEventRecord", d->api.event_record(end, stream));
	if (!s)
		s = wait_for(d, end, limit_ms, ended);
	if (end)
		d->api.event_destroy(end);
	cuda_leave(d, pushed);
	return s;
}

/* Allocates memory that is written between timed launches, so that each launch has a cold L2: 256 MB, or less if memory
 * is short, but at least twice the cache. */
static bool get_scratch(struct cuda *d)
{
	size_t least = MAX((size_t)d->l2_bytes, (size_t)1 << 20) * 2;
	for (size_t size = (size_t)256 << 20; !d->scratch && size >= least; size /= 2)
		if (!d->api.mem_alloc(&d->scratch, size))
			d->scratch_bytes = size;
	return d->scratch;
}

struct span {
	CUevent from, to;
};

static tl_status timed_launches(struct cuda *d, const struct device_launch *l, struct span *spans, int warmup,
				int repeats, double *ms)
{
	tl_status s = TL_OK;
	CUstream stream = l->stream ? l->stream : d->stream;
	bool flush = get_scratch(d);
	note_launched(d, l->kernel);
	for (int i = 0; i < repeats && !s; i++) {
		TRY("cuEventCreate", d->api.event_create(&spans[i].from, 0));
		TRY("cuEventCreate", d->api.event_create(&spans[i].to, 0));
	}
	for (int i = 0; i < warmup && !s; i++)
		TRY("cuLaunchKernel", launch(d, l, stream));
	for (int i = 0; i < repeats && !s; i++) {
		if (flush)
			TRY("cuMemsetD8Async", d->api.mem_set(d->scratch, 0, d->scratch_bytes, stream));
		TRY("cuEventRecord", d->api.event_record(spans[i].from, stream));
		TRY("cuLaunchKernel", launch(d, l, stream));
		TRY("cuEventRecord", d->api.event_record(spans[i].to, stream));
	}
	TRY("cuStreamSynchronize", d->api.stream_synchronize(stream));
	for (int i = 0; i < repeats && !s; i++) {
		float t = 0;
		TRY("cuEventElapsedTime", d->api.event_elapsed(&t, spans[i].from, spans[i].to));
		ms[i] = t;
	}
	if (!s && !flush)
		failed(TL_OK, "note: out of memory for the buffer that flushes the L2 cache between launches; the "
			      "times may be too short");
	return s;
}

static void destroy_events(struct cuda *d, const struct span *spans, int n)
{
	for (int i = 0; i < n; i++) {
		if (spans[i].from)
			d->api.event_destroy(spans[i].from);
		if (spans[i].to)
			d->api.event_destroy(spans[i].to);
	}
}

tl_status cuda_time(struct device *device, const struct device_launch *l, int warmup, int repeats, double *ms)
{
	struct cuda *d = (struct cuda *)device;
	tl_status s = check_launch(d, l);
	if (s)
		return s;
	struct span *spans = calloc((size_t)repeats, sizeof *spans);
	bool pushed;
	s = cuda_enter(d, &pushed);
	if (!s && spans) {
		pthread_mutex_lock(&d->lock);
		s = timed_launches(d, l, spans, warmup, repeats, ms);
		pthread_mutex_unlock(&d->lock);
		destroy_events(d, spans, repeats);
	} else if (!s) {
		s = failed(TL_ERR_MEMORY, "out of host memory");
	}
	cuda_leave(d, pushed);
	free(spans);
	return s;
}

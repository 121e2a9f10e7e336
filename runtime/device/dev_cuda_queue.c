/* Asynchronous operations of the CUDA device: copies and fills on a stream, events, page-locked host memory. */
#include <string.h>

#include "runtime/device/dev_cuda.h"
#include "runtime/image/error.h"

enum { HOST_PORTABLE = 1 }; /* CU_MEMHOSTALLOC_PORTABLE: page-locked for every context */

static CUstream stream_of(struct cuda *d, void *stream)
{
	return stream ? stream : d->stream;
}

static CUdeviceptr address(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

static void *own_stream(struct device *device)
{
	return ((struct cuda *)device)->stream;
}

/* --- copies -------------------------------------------------------------------------------------------------- */

static tl_status queue_write(struct device *device, void *dst, const void *src, size_t size, void *stream)
{
	IN_CONTEXT(device, "cuMemcpyHtoDAsync", d->api.copy_to_device(address(dst), src, size, stream_of(d, stream)));
}

static tl_status queue_read(struct device *device, void *dst, const void *src, size_t size, void *stream)
{
	IN_CONTEXT(device, "cuMemcpyDtoHAsync", d->api.copy_to_host(dst, address(src), size, stream_of(d, stream)));
}

static tl_status queue_copy(struct device *device, void *dst, struct device *from, const void *src, size_t size,
			    void *stream)
{
	CUcontext other = ((struct cuda *)from)->ctx;
	IN_CONTEXT(device, other == d->ctx ? "cuMemcpyDtoDAsync" : "cuMemcpyPeerAsync",
		   other == d->ctx
			   ? d->api.copy_on_device(address(dst), address(src), size, stream_of(d, stream))
			   : d->api.copy_peer(address(dst), d->ctx, address(src), other, size, stream_of(d, stream)));
}

/* Fills elements of eight bytes, as two columns of 32-bit words. */
static tl_status fill_columns(struct cuda *d, CUdeviceptr p, u64 element, size_t count, CUstream stream)
{
	tl_status s = TL_OK;
	for (u32 i = 0; i < 2; i++)
		TRY("cuMemsetD2D32Async",
		    d->api.mem_set_rows(p + 4 * i, 8, (unsigned)(element >> 32 * i), 1, count, stream));
	return s;
}

static tl_status queue_fill(struct device *device, void *dst, u64 element, u32 width, size_t count, void *stream)
{
	struct cuda *d = (struct cuda *)device;
	CUstream on = stream_of(d, stream);
	bool pushed, halves = width == 8 && (u32)element == element >> 32;
	tl_status s = cuda_enter(d, &pushed);
	if (s)
		return s;
	if (width == 1)
		TRY("cuMemsetD8Async", d->api.mem_set(address(dst), (unsigned char)element, count, on));
	else if (width == 2)
		TRY("cuMemsetD16Async", d->api.mem_set_16(address(dst), (unsigned short)element, count, on));
	else if (width == 4 || halves)
		TRY("cuMemsetD32Async", d->api.mem_set_32(address(dst), (unsigned)element, count * (width / 4), on));
	else
		s = fill_columns(d, address(dst), element, count, on);
	cuda_leave(d, pushed);
	return s;
}

static tl_status queue_finish(struct device *device)
{
	IN_CONTEXT(device, "cuStreamSynchronize", d->api.stream_synchronize(d->stream));
}

/* --- host memory --------------------------------------------------------------------------------------------- */

/* With unified addressing, which every 64-bit system has, the device uses the same address as the host. */
static tl_status alloc_host(struct device *device, size_t size, void **out)
{
	IN_CONTEXT(device, "cuMemHostAlloc", d->api.host_alloc(out, MAX(size, 1), HOST_PORTABLE));
}

static void free_host(struct device *device, void *p)
{
	struct cuda *d = (struct cuda *)device;
	bool pushed;
	if (cuda_enter(d, &pushed))
		return;
	d->api.host_free(p);
	cuda_leave(d, pushed);
}

/* --- events -------------------------------------------------------------------------------------------------- */

static tl_status event_create(struct device *device, void **out)
{
	IN_CONTEXT(device, "cuEventCreate", d->api.event_create((CUevent *)out, 0));
}

static void event_destroy(struct device *device, void *event)
{
	struct cuda *d = (struct cuda *)device;
	bool pushed;
	if (cuda_enter(d, &pushed))
		return;
	d->api.event_destroy(event);
	cuda_leave(d, pushed);
}

static tl_status event_record(struct device *device, void *event, void *stream)
{
	IN_CONTEXT(device, "cuEventRecord", d->api.event_record(event, stream_of(d, stream)));
}

static tl_status event_wait(struct device *device, void *event, void *stream)
{
	IN_CONTEXT(device, "cuStreamWaitEvent", d->api.stream_wait(stream_of(d, stream), event, 0));
}

static tl_status event_synchronize(struct device *device, void *event)
{
	IN_CONTEXT(device, "cuEventSynchronize", d->api.event_synchronize(event));
}

static tl_status event_elapsed(struct device *device, void *from, void *to, double *ms)
{
	float t = 0;
	struct cuda *d = (struct cuda *)device;
	bool pushed;
	tl_status s = cuda_enter(d, &pushed);
	if (s)
		return s;
	TRY("cuEventElapsedTime", d->api.event_elapsed(&t, from, to));
	*ms = t;
	cuda_leave(d, pushed);
	return s;
}

const struct queue_ops cuda_queue = {
	.stream = own_stream,
	.write = queue_write,
	.read = queue_read,
	.copy = queue_copy,
	.fill = queue_fill,
	.finish = queue_finish,
	.alloc_host = alloc_host,
	.free_host = free_host,
	.event_create = event_create,
	.event_destroy = event_destroy,
	.event_record = event_record,
	.event_wait = event_wait,
	.event_synchronize = event_synchronize,
	.event_elapsed = event_elapsed,
};

/* The asynchronous operations of devices with host memory: they are complete on return. An event is the time of its
 * recording. */
#include <stdlib.h>
#include <string.h>

#include "runtime/image/error.h"
#include "runtime/device/host_memory.h"

static tl_status queue_write(struct device *device, void *dst, const void *src, size_t size, void *stream)
{
	(void)stream;
	memcpy(dst, src, size);
	host_mark_written(device, dst, size);
	return TL_OK;
}

static tl_status queue_read(struct device *device, void *dst, const void *src, size_t size, void *stream)
{
	(void)stream;
	if (device->ops->check_read)
		device->ops->check_read(device, src, size);
	memcpy(dst, src, size);
	return TL_OK;
}

static tl_status queue_copy(struct device *device, void *dst, struct device *from, const void *src, size_t size,
			    void *stream)
{
	(void)from;
	return queue_write(device, dst, src, size, stream);
}

static tl_status queue_fill(struct device *device, void *dst, u64 element, u32 width, size_t count, void *stream)
{
	(void)stream;
	if (width == 1)
		memset(dst, (int)element, count);
	for (size_t i = 0; width > 1 && i < count; i++)
		memcpy((char *)dst + i * width, &element, width);
	host_mark_written(device, dst, count * width);
	return TL_OK;
}

static tl_status event_create(struct device *device, void **out)
{
	(void)device;
	*out = calloc(1, sizeof(double));
	return *out ? TL_OK : failed(TL_ERR_MEMORY, "out of host memory");
}

static void event_destroy(struct device *device, void *event)
{
	(void)device;
	free(event);
}

static tl_status event_record(struct device *device, void *event, void *stream)
{
	(void)device, (void)stream;
	*(double *)event = host_now_ms();
	return TL_OK;
}

static tl_status event_wait(struct device *device, void *event, void *stream)
{
	(void)device, (void)event, (void)stream;
	return TL_OK;
}

static tl_status event_synchronize(struct device *device, void *event)
{
	return event_wait(device, event, NULL);
}

static tl_status event_elapsed(struct device *device, void *from, void *to, double *ms)
{
	(void)device;
	double begin = *(double *)from, end = *(double *)to;
	if (!begin || !end)
		return failed(TL_ERR_ARGUMENT, "tl_event_elapsed: %s has not been recorded",
			      begin ? "the second event" : "the first event");
	*ms = end - begin;
	return TL_OK;
}

const struct queue_ops host_queue = {
	.guard = HOST_GUARD,
	.write = queue_write,
	.read = queue_read,
	.copy = queue_copy,
	.fill = queue_fill,
	.alloc_host = host_alloc,
	.free_host = host_free,
	.wrap = host_wrap,
	.unwrap = host_unwrap,
	.event_create = event_create,
	.event_destroy = event_destroy,
	.event_record = event_record,
	.event_wait = event_wait,
	.event_synchronize = event_synchronize,
	.event_elapsed = event_elapsed,
};

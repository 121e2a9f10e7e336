/* Asynchronous copies and events: checks the arguments and calls the device. */
#include <stdlib.h>

#include "runtime/api/api_guard.h"
#include "runtime/device/grid.h"

void *tl_context_stream(tl_context *ctx)
{
	return ctx && ctx->dev->ops->queue->stream ? ctx->dev->ops->queue->stream(ctx->dev) : NULL;
}

/* --- copies -------------------------------------------------------------------------------------------------- */

API_FUNCTION(tl_buffer_write_async, b ? b->ctx : NULL,
	     (tl_buffer *b, size_t offset, const void *src, size_t bytes, void *stream),
	     (b, offset, src, bytes, stream))
{
	tl_status s = check_range("tl_buffer_write_async", b, offset, src, bytes);
	if (s || (s = check_stream("tl_buffer_write_async", b->ctx->dev, stream)) || !bytes)
		return s;
	struct device *d = b->ctx->dev;
	return d->ops->queue->write(d, (char *)b->ptr + offset, src, bytes, stream);
}

API_FUNCTION(tl_buffer_read_async, b ? b->ctx : NULL,
	     (tl_buffer *b, size_t offset, void *dst, size_t bytes, void *stream), (b, offset, dst, bytes, stream))
{
	tl_status s = check_range("tl_buffer_read_async", b, offset, dst, bytes);
	if (s || (s = check_stream("tl_buffer_read_async", b->ctx->dev, stream)) || !bytes)
		return s;
	struct device *d = b->ctx->dev;
	return d->ops->queue->read(d, dst, (char *)b->ptr + offset, bytes, stream);
}

API_FUNCTION(tl_buffer_copy_async, dst ? dst->ctx : NULL,
	     (tl_buffer *dst, size_t dst_offset, const tl_buffer *src, size_t src_offset, size_t bytes, void *stream),
	     (dst, dst_offset, src, src_offset, bytes, stream))
{
	static const char call[] = "tl_buffer_copy_async";
	tl_status s = check_range(call, dst, dst_offset, call, bytes);
	if (!s)
		s = check_range(call, src, src_offset, call, bytes);
	if (s || (s = check_stream(call, dst->ctx->dev, stream)) || !bytes)
		return s;
	struct device *to = dst->ctx->dev, *from = src->ctx->dev;
	if (to->ops->queue != from->ops->queue)
		return failed(TL_ERR_ARGUMENT, "%s: cannot copy from %s to %s: read into host memory, then write", call,
			      from->ops->name, to->ops->name);
	char *x = (char *)dst->ptr + dst_offset, *y = (char *)src->ptr + src_offset;
	if (x < y + bytes && y < x + bytes)
		return failed(TL_ERR_ARGUMENT, "%s: the two parts overlap", call);
	return to->ops->queue->copy(to, x, from, y, bytes, stream);
}

API_FUNCTION(tl_buffer_fill_async, b ? b->ctx : NULL,
	     (tl_buffer *b, size_t offset, const void *element, size_t size, size_t count, void *stream),
	     (b, offset, element, size, count, stream))
{
	static const char call[] = "tl_buffer_fill_async";
	u64 bits = 0;
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return failed(TL_ERR_ARGUMENT, "%s: elements of %zu bytes; possible are 1, 2, 4 and 8", call, size);
	if (count > SIZE_MAX / size || !element)
		return failed(TL_ERR_ARGUMENT, element ? "%s: too many elements" : "%s: the element is NULL", call);
	tl_status s = check_range(call, b, offset, call, count * size);
	if (s || (s = check_stream(call, b->ctx->dev, stream)))
		return s;
	if ((uintptr_t)((char *)b->ptr + offset) % size)
		return failed(TL_ERR_ARGUMENT, "%s: elements of %zu bytes must be aligned to their size", call, size);
	memcpy(&bits, element, size);
	struct device *d = b->ctx->dev;
	return count ? d->ops->queue->fill(d, (char *)b->ptr + offset, bits, (u32)size, count, stream) : TL_OK;
}

/* --- events -------------------------------------------------------------------------------------------------- */

static void event_free(struct link *l)
{
	tl_event *e = (tl_event *)l;
	e->ctx->dev->ops->queue->event_destroy(e->ctx->dev, e->event);
	free(e);
}

API_FUNCTION(tl_event_create, ctx, (tl_context *ctx, tl_event **out), (ctx, out))
{
	if (!ctx || !out)
		return failed(TL_ERR_ARGUMENT, "tl_event_create: %s is NULL", ctx ? "out" : "the context");
	*out = NULL;
	tl_event *e = tl_calloc(sizeof *e);
	e->ctx = ctx;
	e->link.free = event_free;
	tl_status s = ctx->dev->ops->queue->event_create(ctx->dev, &e->event);
	if (s) {
		free(e);
		return s;
	}
	context_enter(ctx, &ctx->events, &e->link);
	*out = e;
	return TL_OK;
}

API_DESTRUCTOR(tl_event_destroy, e ? e->ctx : NULL, (tl_event *e), (e))
{
	if (!e)
		return;
	tl_context *ctx = e->ctx;
	context_remove(ctx, &e->link);
	event_free(&e->link);
	context_leave(ctx);
}

static tl_status check_event(const char *call, const tl_event *e, const void *stream)
{
	return e ? check_stream(call, e->ctx->dev, stream) : failed(TL_ERR_ARGUMENT, "%s: the event is NULL", call);
}

API_FUNCTION(tl_event_record, e ? e->ctx : NULL, (tl_event *e, void *stream), (e, stream))
{
	tl_status s = check_event("tl_event_record", e, stream);
	return s ? s : e->ctx->dev->ops->queue->event_record(e->ctx->dev, e->event, stream);
}

API_FUNCTION(tl_event_wait, e ? e->ctx : NULL, (tl_event *e, void *stream), (e, stream))
{
	tl_status s = check_event("tl_event_wait", e, stream);
	return s ? s : e->ctx->dev->ops->queue->event_wait(e->ctx->dev, e->event, stream);
}

API_FUNCTION(tl_event_synchronize, e ? e->ctx : NULL, (tl_event *e), (e))
{
	tl_status s = check_event("tl_event_synchronize", e, NULL);
	return s ? s : e->ctx->dev->ops->queue->event_synchronize(e->ctx->dev, e->event);
}

API_FUNCTION(tl_event_elapsed, from ? from->ctx : NULL, (const tl_event *from, const tl_event *to, double *ms),
	     (from, to, ms))
{
	if (!from || !to || !ms)
		return failed(TL_ERR_ARGUMENT, "tl_event_elapsed: %s is NULL", from && to ? "ms" : "an event");
	if (from->ctx != to->ctx)
		return failed(TL_ERR_ARGUMENT, "tl_event_elapsed: the events belong to different contexts");
	return from->ctx->dev->ops->queue->event_elapsed(from->ctx->dev, from->event, to->event, ms);
}

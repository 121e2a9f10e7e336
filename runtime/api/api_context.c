/* The functions of tl.h for contexts, buffers and events, each under a guard: see runtime/launch/api_module.c. */
#include "runtime/api/api_guard.h"

static tl_context *of_buffer(const tl_buffer *b)
{
	return b ? b->ctx : NULL;
}

static tl_context *of_event(const tl_event *e)
{
	return e ? e->ctx : NULL;
}

tl_status tl_context_create(const char *device, tl_context **out)
{
	GUARDED(NULL, context_create(device, out));
}

tl_status tl_context_from_cuda(void *cu_context, tl_context **out)
{
	GUARDED(NULL, context_from_cuda(cu_context, out));
}

tl_status tl_context_share(tl_context *ctx, tl_context *with)
{
	GUARDED(ctx, context_share(ctx, with));
}

void tl_context_destroy(tl_context *ctx)
{
	DESTROYED(ctx, context_destroy(ctx));
}

void tl_context_release(tl_context *ctx)
{
	DESTROYED(ctx, context_release(ctx));
}

tl_status tl_device_count(int *out)
{
	GUARDED(NULL, device_count(out));
}

tl_status tl_device_at(int index, tl_device_info *out)
{
	GUARDED(NULL, device_at(index, out));
}

tl_status tl_synchronize(tl_context *ctx)
{
	GUARDED(ctx, context_synchronize(ctx));
}

tl_status tl_device(tl_context *ctx, tl_device_info *out)
{
	GUARDED(ctx, context_device(ctx, out));
}

tl_status tl_buffer_create(tl_context *ctx, size_t bytes, tl_buffer **out)
{
	GUARDED(ctx, buffer_create(ctx, bytes, out));
}

void tl_buffer_destroy(tl_buffer *b)
{
	DESTROYED(of_buffer(b), buffer_destroy(b));
}

tl_status tl_buffer_write(tl_buffer *b, size_t offset, const void *src, size_t bytes)
{
	GUARDED(of_buffer(b), buffer_write(b, offset, src, bytes));
}

tl_status tl_buffer_read(tl_buffer *b, size_t offset, void *dst, size_t bytes)
{
	GUARDED(of_buffer(b), buffer_read(b, offset, dst, bytes));
}

tl_status tl_buffer_fill(tl_buffer *b, uint8_t byte)
{
	GUARDED(of_buffer(b), buffer_fill(b, byte));
}

tl_status tl_buffer_create_host(tl_context *ctx, size_t bytes, tl_buffer **out)
{
	GUARDED(ctx, buffer_create_host(ctx, bytes, out));
}

tl_status tl_buffer_wrap(tl_context *ctx, void *p, size_t bytes, tl_buffer **out)
{
	GUARDED(ctx, buffer_wrap(ctx, p, bytes, out));
}

tl_status tl_buffer_write_async(tl_buffer *b, size_t offset, const void *src, size_t bytes, void *stream)
{
	GUARDED(of_buffer(b), buffer_write_async(b, offset, src, bytes, stream));
}

tl_status tl_buffer_read_async(tl_buffer *b, size_t offset, void *dst, size_t bytes, void *stream)
{
	GUARDED(of_buffer(b), buffer_read_async(b, offset, dst, bytes, stream));
}

tl_status tl_buffer_copy_async(tl_buffer *dst, size_t dst_offset, const tl_buffer *src, size_t src_offset, size_t bytes,
			       void *stream)
{
	GUARDED(of_buffer(dst), buffer_copy_async(dst, dst_offset, src, src_offset, bytes, stream));
}

tl_status tl_buffer_fill_async(tl_buffer *b, size_t offset, const void *element, size_t size, size_t count,
			       void *stream)
{
	GUARDED(of_buffer(b), buffer_fill_async(b, offset, element, size, count, stream));
}

tl_status tl_event_create(tl_context *ctx, tl_event **out)
{
	GUARDED(ctx, event_create(ctx, out));
}

void tl_event_destroy(tl_event *e)
{
	DESTROYED(of_event(e), event_destroy(e));
}

tl_status tl_event_record(tl_event *e, void *stream)
{
	GUARDED(of_event(e), event_record(e, stream));
}

tl_status tl_event_wait(tl_event *e, void *stream)
{
	GUARDED(of_event(e), event_wait(e, stream));
}

tl_status tl_event_synchronize(tl_event *e)
{
	GUARDED(of_event(e), event_synchronize(e));
}

tl_status tl_event_elapsed(const tl_event *from, const tl_event *to, double *ms)
{
	GUARDED(of_event(from), event_elapsed(from, to, ms));
}

tl_status tl_context_allocator(tl_context *ctx, const tl_allocator *a)
{
	GUARDED(ctx, context_allocator(ctx, a));
}

tl_status tl_context_threads(tl_context *ctx, int threads)
{
	GUARDED(ctx, context_threads(ctx, threads));
}

tl_status tl_context_log(tl_context *ctx, tl_log_fn *fn, void *user)
{
	GUARDED(ctx, context_log(ctx, fn, user));
}

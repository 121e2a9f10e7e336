/* Contexts and buffers: checks the arguments and calls the device. */
#include <stdlib.h>

#include "runtime/api/objects.h"

/* --- contexts ------------------------------------------------------------------------------------------------ */

tl_status context_new(struct device *dev, tl_context **out)
{
	tl_context *ctx = calloc(1, sizeof *ctx);
	if (!ctx || !(ctx->store = store_new())) {
		free(ctx);
		dev->ops->close(dev);
		return failed(TL_ERR_MEMORY, "out of host memory");
	}
	ctx->dev = dev;
	pthread_mutex_init(&ctx->lock, NULL);
	link_init(&ctx->owned);
	link_init(&ctx->buffers);
	link_init(&ctx->events);
	atomic_init(&ctx->refs, 1);
	*out = ctx;
	return TL_OK;
}

tl_status context_create(const char *device, tl_context **out)
{
	if (!out)
		return failed(TL_ERR_ARGUMENT, "tl_context_create: out is NULL");
	*out = NULL;
	struct device *dev;
	tl_status s = device_open(device, &dev);
	return s ? s : context_new(dev, out);
}

tl_status context_share(tl_context *ctx, tl_context *with)
{
	if (!ctx || !with)
		return failed(TL_ERR_ARGUMENT, "tl_context_share: %s is NULL",
			      ctx ? "the other context" : "the context");
	if (ctx->store == with->store)
		return TL_OK;
	if (!store_empty(ctx->store))
		return failed(TL_ERR_ARGUMENT, "tl_context_share: the context has compiled kernels already");
	struct store *own = ctx->store;
	ctx->store = store_keep(with->store);
	store_drop(own);
	return TL_OK;
}

tl_status context_from_cuda(void *cu_context, tl_context **out)
{
	if (!out)
		return failed(TL_ERR_ARGUMENT, "tl_context_from_cuda: out is NULL");
	*out = NULL;
	struct device *dev;
	tl_status s = cuda_adopt(cu_context, &dev);
	return s ? s : context_new(dev, out);
}

static void buffer_free(tl_buffer *b)
{
	struct device *d = b->ctx->dev;
	const struct queue_ops *q = d->ops->queue;
	if (b->kind == BUFFER_OWN)
		d->ops->free(d, b->ptr);
	else if (b->kind == BUFFER_HOST)
		q->free_host(d, b->ptr);
	else if (q->unwrap)
		q->unwrap(d, b->ptr);
	if (b->kind == BUFFER_LENT)
		b->allocator.free(b->allocator.user, (char *)b->ptr - q->guard, b->size + 2 * q->guard);
	free(b);
}

void context_enter(tl_context *ctx, struct link *list, struct link *object)
{
	atomic_fetch_add(&ctx->refs, 1);
	pthread_mutex_lock(&ctx->lock);
	link_add(list, object);
	pthread_mutex_unlock(&ctx->lock);
}

void context_remove(tl_context *ctx, struct link *object)
{
	pthread_mutex_lock(&ctx->lock);
	link_remove(object);
	pthread_mutex_unlock(&ctx->lock);
}

void context_leave(tl_context *ctx)
{
	if (atomic_fetch_sub(&ctx->refs, 1) == 1)
		context_destroy(ctx);
}

void context_release(tl_context *ctx)
{
	if (ctx)
		context_leave(ctx);
}

void context_destroy(tl_context *ctx)
{
	if (!ctx)
		return;
	ctx->dev->ops->synchronize(ctx->dev);
	for (struct link *l = ctx->owned.next, *next; l != &ctx->owned; l = next) {
		next = l->next;
		l->free(l);
	}
	for (struct link *l = ctx->buffers.next, *next; l != &ctx->buffers; l = next) {
		next = l->next;
		buffer_free((tl_buffer *)l);
	}
	for (struct link *l = ctx->events.next, *next; l != &ctx->events; l = next) {
		next = l->next;
		event_free((tl_event *)l);
	}
	ctx->dev->ops->close(ctx->dev);
	store_drop(ctx->store);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx);
}

tl_status context_synchronize(tl_context *ctx)
{
	if (!ctx)
		return failed(TL_ERR_ARGUMENT, "tl_synchronize: the context is NULL");
	return ctx->dev->ops->synchronize(ctx->dev);
}

tl_status context_device(tl_context *ctx, tl_device_info *out)
{
	if (!ctx || !out)
		return failed(TL_ERR_ARGUMENT, "tl_device: %s is NULL", ctx ? "out" : "the context");
	*out = (tl_device_info){0};
	snprintf(out->kind, sizeof out->kind, "%s", ctx->dev->ops->name);
	ctx->dev->ops->info(ctx->dev, out);
	return TL_OK;
}

/* --- buffers ------------------------------------------------------------------------------------------------- */

/* Takes a buffer's memory from the program's allocator, and registers it with the device. */
static tl_status borrow(tl_buffer *b)
{
	enum { ALIGN = 256 };
	struct device *d = b->ctx->dev;
	const struct queue_ops *q = d->ops->queue;
	char *p = NULL;
	size_t bytes = b->size + 2 * q->guard;
	b->allocator = b->ctx->allocator;
	if (bytes >= b->size)
		p = b->allocator.alloc(b->allocator.user, bytes, ALIGN);
	if (!p || (uintptr_t)p % ALIGN) {
		if (p)
			b->allocator.free(b->allocator.user, p, bytes);
		return failed(p ? TL_ERR_ARGUMENT : TL_ERR_MEMORY, "the program's allocator has no %zu bytes%s", bytes,
			      p ? " at a multiple of 256" : "");
	}
	b->ptr = p + q->guard;
	tl_status s = q->wrap ? q->wrap(d, b->ptr, b->size, true) : TL_OK;
	if (s)
		b->allocator.free(b->allocator.user, p, bytes);
	return s;
}

/* `like` has the buffer's kind and size, and the address of a wrapped buffer. */
static tl_status buffer_new(tl_context *ctx, const tl_buffer *like, tl_buffer **out)
{
	struct device *d = ctx->dev;
	const struct queue_ops *q = d->ops->queue;
	tl_buffer *b = calloc(1, sizeof *b);
	if (!b)
		return failed(TL_ERR_MEMORY, "out of host memory");
	*b = *like;
	b->ctx = ctx;
	tl_status s = b->kind == BUFFER_OWN    ? d->ops->alloc(d, b->size, &b->ptr)
		      : b->kind == BUFFER_HOST ? q->alloc_host(d, b->size, &b->ptr)
		      : b->kind == BUFFER_LENT ? borrow(b)
		      : q->wrap                ? q->wrap(d, b->ptr, b->size, false)
					       : TL_OK;
	if (s) {
		free(b);
		return s;
	}
	context_enter(ctx, &ctx->buffers, &b->link);
	*out = b;
	return TL_OK;
}

tl_status buffer_create(tl_context *ctx, size_t bytes, tl_buffer **out)
{
	if (!ctx || !out)
		return failed(TL_ERR_ARGUMENT, "tl_buffer_create: %s is NULL", ctx ? "out" : "the context");
	*out = NULL;
	return buffer_new(ctx, &(tl_buffer){.size = bytes, .kind = ctx->allocator.alloc ? BUFFER_LENT : BUFFER_OWN},
			  out);
}

tl_status buffer_create_host(tl_context *ctx, size_t bytes, tl_buffer **out)
{
	if (!ctx || !out)
		return failed(TL_ERR_ARGUMENT, "tl_buffer_create_host: %s is NULL", ctx ? "out" : "the context");
	*out = NULL;
	return buffer_new(ctx, &(tl_buffer){.size = bytes, .kind = BUFFER_HOST}, out);
}

tl_status buffer_wrap(tl_context *ctx, void *p, size_t bytes, tl_buffer **out)
{
	if (!ctx || !p || !out)
		return failed(TL_ERR_ARGUMENT, "tl_buffer_wrap: %s is NULL",
			      !ctx ? "the context"
			      : p  ? "out"
				   : "the address");
	*out = NULL;
	if (bytes > UINTPTR_MAX - (uintptr_t)p)
		return failed(TL_ERR_ARGUMENT, "tl_buffer_wrap: %zu bytes from %p on exceed the address space", bytes,
			      p);
	return buffer_new(ctx, &(tl_buffer){.ptr = p, .size = bytes, .kind = BUFFER_WRAPPED}, out);
}

void buffer_destroy(tl_buffer *b)
{
	if (!b)
		return;
	tl_context *ctx = b->ctx;
	context_remove(ctx, &b->link);
	buffer_free(b);
	context_leave(ctx);
}

tl_status context_allocator(tl_context *ctx, const tl_allocator *a)
{
	if (!ctx || (a && (!a->alloc || !a->free)))
		return failed(TL_ERR_ARGUMENT, "tl_context_allocator: %s NULL",
			      ctx ? "a function of the allocator is" : "the context is");
	ctx->allocator = a ? *a : (tl_allocator){0};
	return TL_OK;
}

tl_status context_threads(tl_context *ctx, int threads)
{
	if (!ctx)
		return failed(TL_ERR_ARGUMENT, "tl_context_threads: the context is NULL");
	if (threads < 0)
		return failed(TL_ERR_ARGUMENT, "tl_context_threads: %d threads", threads);
	ctx->dev->threads = threads;
	return TL_OK;
}

tl_status context_log(tl_context *ctx, tl_log_fn *fn, void *user)
{
	if (!ctx)
		return failed(TL_ERR_ARGUMENT, "tl_context_log: the context is NULL");
	ctx->dev->log = fn;
	ctx->dev->log_user = user;
	return TL_OK;
}

void *tl_buffer_ptr(const tl_buffer *b)
{
	return b ? b->ptr : NULL;
}

size_t tl_buffer_size(const tl_buffer *b)
{
	return b ? b->size : 0;
}

tl_status check_range(const char *call, const tl_buffer *b, size_t offset, const void *host, size_t bytes)
{
	if (!b || (!host && bytes))
		return failed(TL_ERR_ARGUMENT, "%s: %s is NULL", call, b ? "the host address" : "the buffer");
	if (offset > b->size || bytes > b->size - offset)
		return failed(TL_ERR_ARGUMENT, "%s: %zu bytes at offset %zu end outside this buffer of %zu bytes", call,
			      bytes, offset, b->size);
	return TL_OK;
}

tl_status buffer_write(tl_buffer *b, size_t offset, const void *src, size_t bytes)
{
	tl_status s = check_range("tl_buffer_write", b, offset, src, bytes);
	return s || !bytes ? s : b->ctx->dev->ops->write(b->ctx->dev, (char *)b->ptr + offset, src, bytes);
}

tl_status buffer_read(tl_buffer *b, size_t offset, void *dst, size_t bytes)
{
	tl_status s = check_range("tl_buffer_read", b, offset, dst, bytes);
	return s || !bytes ? s : b->ctx->dev->ops->read(b->ctx->dev, dst, (char *)b->ptr + offset, bytes);
}

tl_status buffer_fill(tl_buffer *b, uint8_t byte)
{
	if (!b)
		return failed(TL_ERR_ARGUMENT, "tl_buffer_fill: the buffer is NULL");
	return b->size ? b->ctx->dev->ops->fill(b->ctx->dev, b->ptr, byte, b->size) : TL_OK;
}

/* --- versions ---------------------------------------------------------------------------------------------- */

int tl_version(void)
{
	return TL_VERSION_NUMBER;
}

const char *tl_version_text(void)
{
	return TL_VERSION;
}

/* --- types --------------------------------------------------------------------------------------------------- */

_Static_assert((int)TL_I1 == DT_I1 && (int)TL_I64 == DT_I64 && (int)TL_U8 == DT_U8 && (int)TL_U64 == DT_U64 &&
		       (int)TL_F8E4M3 == DT_E4M3 && (int)TL_F8E5M2 == DT_E5M2 && (int)TL_F16 == DT_F16 &&
		       (int)TL_BF16 == DT_BF16 && (int)TL_F32 == DT_F32 && (int)TL_F64 == DT_F64 &&
		       (int)TL_F8E4B15 == DT_E4B15 && (int)TL_F8E5B16 == DT_E5B16 && DT_E5B16 + 1 == DT_COUNT,
	       "tl_dtype and enum dtype have the same order");

const char *tl_dtype_name(tl_dtype t)
{
	return (unsigned)t < DT_COUNT ? dtype_name((enum dtype)t) : "unknown";
}

size_t tl_dtype_size(tl_dtype t)
{
	return (unsigned)t < DT_COUNT ? (size_t)dtype_bytes((enum dtype)t) : 0;
}

void tl_free(void *p)
{
	free(p);
}

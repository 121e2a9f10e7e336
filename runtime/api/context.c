/* Contexts and buffers: checks the arguments and calls the device. */
#include <stdlib.h>

#include "runtime/api/api_guard.h"

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

API_FUNCTION(tl_context_create, NULL, (const char *device, tl_context **out), (device, out))
{
	if (!out)
		return failed(TL_ERR_ARGUMENT, "tl_context_create: out is NULL");
	*out = NULL;
	struct device *dev;
	tl_status s = device_open(device, &dev);
	return s ? s : context_new(dev, out);
}

API_FUNCTION(tl_context_share, ctx, (tl_context *ctx, tl_context *with), (ctx, with))
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

API_FUNCTION(tl_context_from_cuda, NULL, (void *cu_context, tl_context **out), (cu_context, out))
{
	if (!out)
		return failed(TL_ERR_ARGUMENT, "tl_context_from_cuda: out is NULL");
	*out = NULL;
	struct device *dev;
	tl_status s = cuda_adopt(cu_context, &dev);
	return s ? s : context_new(dev, out);
}

static void buffer_free(struct link *l)
{
	tl_buffer *b = (tl_buffer *)l;
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

static void free_objects(struct link *list)
{
	for (struct link *l = list->next, *next; l != list; l = next) {
		next = l->next;
		l->free(l);
	}
}

static void context_destroy(tl_context *ctx)
{
	if (!ctx)
		return;
	ctx->dev->ops->synchronize(ctx->dev);
	free_objects(&ctx->owned);
	free_objects(&ctx->buffers);
	free_objects(&ctx->events);
	ctx->dev->ops->close(ctx->dev);
	store_drop(ctx->store);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx);
}

API_DESTRUCTOR(tl_context_destroy, ctx, (tl_context *ctx), (ctx))
{
	context_destroy(ctx);
}

void context_leave(tl_context *ctx)
{
	if (atomic_fetch_sub(&ctx->refs, 1) == 1)
		context_destroy(ctx);
}

API_DESTRUCTOR(tl_context_release, ctx, (tl_context *ctx), (ctx))
{
	if (ctx)
		context_leave(ctx);
}

API_FUNCTION(tl_synchronize, ctx, (tl_context *ctx), (ctx))
{
	if (!ctx)
		return failed(TL_ERR_ARGUMENT, "tl_synchronize: the context is NULL");
	return ctx->dev->ops->synchronize(ctx->dev);
}

API_FUNCTION(tl_device, ctx, (tl_context *ctx, tl_device_info *out), (ctx, out))
{
	if (!ctx || !out)
		return failed(TL_ERR_ARGUMENT, "tl_device: %s is NULL", ctx ? "out" : "the context");
	*out = (tl_device_info){0};
	snprintf(out->kind, sizeof out->kind, "%s", ctx->dev->ops->name);
	ctx->dev->ops->info(ctx->dev, out);
	return TL_OK;
}

API_FUNCTION(tl_device_count, NULL, (int *out), (out))
{
	return device_count(out);
}

API_FUNCTION(tl_device_at, NULL, (int index, tl_device_info *out), (index, out))
{
	return device_at(index, out);
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
	tl_buffer *b = tl_calloc(sizeof *b);
	*b = *like;
	b->ctx = ctx;
	b->link.free = buffer_free;
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

API_FUNCTION(tl_buffer_create, ctx, (tl_context *ctx, size_t bytes, tl_buffer **out), (ctx, bytes, out))
{
	if (!ctx || !out)
		return failed(TL_ERR_ARGUMENT, "tl_buffer_create: %s is NULL", ctx ? "out" : "the context");
	*out = NULL;
	return buffer_new(ctx, &(tl_buffer){.size = bytes, .kind = ctx->allocator.alloc ? BUFFER_LENT : BUFFER_OWN},
			  out);
}

API_FUNCTION(tl_buffer_create_host, ctx, (tl_context *ctx, size_t bytes, tl_buffer **out), (ctx, bytes, out))
{
	if (!ctx || !out)
		return failed(TL_ERR_ARGUMENT, "tl_buffer_create_host: %s is NULL", ctx ? "out" : "the context");
	*out = NULL;
	return buffer_new(ctx, &(tl_buffer){.size = bytes, .kind = BUFFER_HOST}, out);
}

API_FUNCTION(tl_buffer_wrap, ctx, (tl_context *ctx, void *p, size_t bytes, tl_buffer **out), (ctx, p, bytes, out))
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

API_DESTRUCTOR(tl_buffer_destroy, b ? b->ctx : NULL, (tl_buffer *b), (b))
{
	if (!b)
		return;
	tl_context *ctx = b->ctx;
	context_remove(ctx, &b->link);
	buffer_free(&b->link);
	context_leave(ctx);
}

API_FUNCTION(tl_context_allocator, ctx, (tl_context *ctx, const tl_allocator *a), (ctx, a))
{
	if (!ctx || (a && (!a->alloc || !a->free)))
		return failed(TL_ERR_ARGUMENT, "tl_context_allocator: %s NULL",
			      ctx ? "a function of the allocator is" : "the context is");
	ctx->allocator = a ? *a : (tl_allocator){0};
	return TL_OK;
}

API_FUNCTION(tl_context_threads, ctx, (tl_context *ctx, int threads), (ctx, threads))
{
	if (!ctx)
		return failed(TL_ERR_ARGUMENT, "tl_context_threads: the context is NULL");
	if (threads < 0)
		return failed(TL_ERR_ARGUMENT, "tl_context_threads: %d threads", threads);
	ctx->dev->threads = threads;
	return TL_OK;
}

API_FUNCTION(tl_context_log, ctx, (tl_context *ctx, tl_log_fn *fn, void *user), (ctx, fn, user))
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

API_FUNCTION(tl_buffer_write, b ? b->ctx : NULL, (tl_buffer *b, size_t offset, const void *src, size_t bytes),
	     (b, offset, src, bytes))
{
	tl_status s = check_range("tl_buffer_write", b, offset, src, bytes);
	return s || !bytes ? s : device_write(b->ctx->dev, (char *)b->ptr + offset, src, bytes);
}

API_FUNCTION(tl_buffer_read, b ? b->ctx : NULL, (tl_buffer *b, size_t offset, void *dst, size_t bytes),
	     (b, offset, dst, bytes))
{
	tl_status s = check_range("tl_buffer_read", b, offset, dst, bytes);
	return s || !bytes ? s : device_read(b->ctx->dev, dst, (char *)b->ptr + offset, bytes);
}

API_FUNCTION(tl_buffer_fill, b ? b->ctx : NULL, (tl_buffer *b, uint8_t byte), (b, byte))
{
	if (!b)
		return failed(TL_ERR_ARGUMENT, "tl_buffer_fill: the buffer is NULL");
	return b->size ? device_fill(b->ctx->dev, b->ptr, byte, b->size) : TL_OK;
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

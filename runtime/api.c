/* The calls of tl.h that can fail: each is what another file does, under a guard.
 *
 * The guard is a recovery point (base/recover.h): memory that runs out, a broken invariant and LLVM's fatal errors end
 * the call, not the process. What the call had of its own is freed. After a broken invariant in the middle of a change
 * to what threads share, the context is marked: all later calls on it fail, and it can be destroyed. */
#include "runtime/internal.h"

#define GUARDED(context, call)                        \
	struct guard g;                               \
	if (!guard_begin(&g, (context)))              \
		return TL_ERR_INTERNAL;               \
	if (setjmp(g.recovery.to))                    \
		return guard_caught(&g);              \
	tl_status s = (call);                         \
	recovery_end(&g.recovery);                    \
	return s

/* The same of a kernel's, whose errors name it. */
#define GUARDED_KERNEL(k, call) GUARDED(of_kernel(k), named((k), (call)))

/* Of calls that cannot say that they failed: what is left of the object is left alone. */
#define DESTROYED(call)                                                      \
	char text[64];                                                       \
	struct recovery r = {.text = text, .size = sizeof text};             \
	recovery_begin(&r);                                                  \
	if (setjmp(r.to))                                                    \
		return;                                                      \
	call;                                                                \
	recovery_end(&r)

static tl_context *of_buffer(const tl_buffer *b)
{
	return b ? b->ctx : NULL;
}

static tl_context *of_event(const tl_event *e)
{
	return e ? e->ctx : NULL;
}

static tl_context *of_module(const tl_module *m)
{
	return m ? m->ctx : NULL;
}

static tl_context *of_kernel(const tl_kernel *k)
{
	return k ? k->module->ctx : NULL;
}

static tl_kernel *prepared_kernel(const tl_prepared *p)
{
	return p ? p->kernel : NULL;
}

static tl_status named(const tl_kernel *k, tl_status s)
{
	/* on a GPU another one may have failed, which the device has named if it knows it */
	if (s && k && (s != TL_ERR_KERNEL || !tl_error_details()->driver_result))
		failed_in(k->name);
	return s;
}

/* --- contexts and buffers ------------------------------------------------------------------------------------ */

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
	DESTROYED(context_destroy(ctx));
}

void tl_context_release(tl_context *ctx)
{
	DESTROYED(context_release(ctx));
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
	DESTROYED(buffer_destroy(b));
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
	DESTROYED(event_destroy(e));
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

tl_status tl_context_diagnostics(tl_context *ctx, tl_diagnostic_fn *fn, void *user, bool remarks)
{
	GUARDED(ctx, context_diagnostics(ctx, fn, user, remarks));
}

/* --- modules and kernels ------------------------------------------------------------------------------------- */

tl_status tl_module_load(tl_context *ctx, const char *path, tl_module **out)
{
	GUARDED(ctx, module_load(ctx, path, out));
}

tl_status tl_module_load_source(tl_context *ctx, const char *name, const char *text, size_t len, tl_module **out)
{
	GUARDED(ctx, module_load_source(ctx, name, text, len, out));
}

void tl_module_destroy(tl_module *m)
{
	DESTROYED(module_destroy(m));
}

tl_status tl_module_diagnostics(tl_module *m, char **text)
{
	GUARDED(of_module(m), module_diagnostics(m, text));
}

tl_status tl_module_kernel(tl_module *m, const char *name, tl_kernel **out)
{
	GUARDED(of_module(m), module_kernel(m, name, out));
}

tl_status tl_launch(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs)
{
	tl_status known;
	if (launch_known(k, cfg, args, nargs, false, &known))
		return named(k, known);
	GUARDED_KERNEL(k, kernel_launch(k, cfg, args, nargs));
}

tl_status tl_prepare(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, tl_prepared **out)
{
	GUARDED_KERNEL(k, kernel_prepare(k, cfg, args, nargs, out));
}

tl_status tl_prepared_add(tl_prepared *p, const uint32_t grid[3], const tl_arg *args, size_t nargs)
{
	GUARDED_KERNEL(prepared_kernel(p), prepared_add(p, grid, args, nargs));
}

tl_status tl_prepared_launch(const tl_prepared *p, const uint32_t grid[3], void *stream, const tl_arg *args,
			     size_t nargs)
{
	tl_status known;
	if (prepared_known(p, grid, stream, args, nargs, false, &known))
		return named(prepared_kernel(p), known);
	GUARDED_KERNEL(prepared_kernel(p), prepared_launch(p, grid, stream, args, nargs));
}

void tl_prepared_destroy(tl_prepared *p)
{
	DESTROYED(prepared_destroy(p));
}

tl_status tl_time(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, int warmup, int repeats,
		  double *median_ms)
{
	GUARDED_KERNEL(k, kernel_time(k, cfg, args, nargs, warmup, repeats, median_ms));
}

tl_status tl_kernel_dump(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, const char *stage,
			 char **text)
{
	GUARDED_KERNEL(k, kernel_stage(k, cfg, args, nargs, stage, text));
}

tl_status tl_kernel_resources(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, tl_resources *out)
{
	GUARDED_KERNEL(k, kernel_resources(k, cfg, args, nargs, out));
}

/* --- tuning -------------------------------------------------------------------------------------------------- */

tl_status tl_tuner_create(tl_kernel *k, const tl_tuning *t, tl_tuner **out)
{
	GUARDED(of_kernel(k), tuner_create(k, t, out));
}

void tl_tuner_destroy(tl_tuner *t)
{
	DESTROYED(tuner_destroy(t));
}

tl_status tl_tuner_add(tl_tuner *t, const tl_config *options, const tl_named_arg *values, size_t n)
{
	GUARDED(tuner_context(t), tuner_add(t, options, values, n));
}

tl_status tl_tuner_launch(tl_tuner *t, const tl_config *cfg, tl_plan_fn *plan, void *user, const tl_arg *args,
			  size_t nargs)
{
	GUARDED(tuner_context(t), tuner_launch(t, cfg, plan, user, args, nargs));
}

tl_status tl_tuner_choose(tl_tuner *t, const tl_config *cfg, tl_plan_fn *plan, void *user, const tl_arg *args,
			  size_t nargs, tl_choice *out)
{
	GUARDED(tuner_context(t), tuner_choose(t, cfg, plan, user, args, nargs, out));
}

tl_status tl_tuner_report(tl_tuner *t, char **json)
{
	GUARDED(tuner_context(t), tuner_report(t, json));
}

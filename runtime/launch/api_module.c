/* The functions of tl.h that can fail: each calls its implementation under a guard.
 *
 * The guard is a recovery point (support/recover.h). When memory runs out, an invariant is broken or LLVM reports a
 * fatal error, the call ends and the process continues. Memory that the call had allocated is freed. If an invariant is
 * broken during a change of data that threads share, the context is marked: all later calls on it fail, and it can only
 * be destroyed. */
#include "runtime/api/api_guard.h"

/* For functions of a kernel: errors have the kernel's name. */
#define GUARDED_KERNEL(k, call) GUARDED(of_kernel(k), named((k), (call)))

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
	/* on a GPU another kernel may have failed, and the device has set its name if it knows it */
	if (s && k && (s != TL_ERR_KERNEL || !tl_error_details()->driver_result))
		failed_in(k->name);
	return s;
}

tl_status tl_context_diagnostics(tl_context *ctx, tl_diagnostic_fn *fn, void *user, bool remarks)
{
	GUARDED(ctx, context_diagnostics(ctx, fn, user, remarks));
}

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
	DESTROYED(of_module(m), module_destroy(m));
}

tl_status tl_module_diagnostics(tl_module *m, char **text)
{
	GUARDED(of_module(m), module_diagnostics(m, text));
}

tl_status tl_module_kernel(tl_module *m, const char *name, tl_kernel **out)
{
	GUARDED(of_module(m), module_kernel(m, name, out));
}

/* Separate from the functions of most launches, so that their stack frames are small. */
static __attribute__((noinline)) tl_status launch_guarded(tl_kernel *k, const tl_config *cfg, const tl_arg *args,
							  size_t nargs)
{
	GUARDED_KERNEL(k, kernel_launch(k, cfg, args, nargs));
}

tl_status tl_launch(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs)
{
	tl_status s;
	if (!launch_known(k, cfg, args, nargs, false, &s))
		return launch_guarded(k, cfg, args, nargs);
	return s ? named(k, s) : TL_OK;
}

tl_status tl_prepare(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, tl_prepared **out)
{
	GUARDED_KERNEL(k, kernel_prepare(k, cfg, args, nargs, out));
}

tl_status tl_prepared_add(tl_prepared *p, const uint32_t grid[3], const tl_arg *args, size_t nargs)
{
	GUARDED_KERNEL(prepared_kernel(p), prepared_add(p, grid, args, nargs));
}

static __attribute__((noinline)) tl_status prepared_guarded(const tl_prepared *p, const uint32_t *grid, void *stream,
							    const tl_arg *args, size_t nargs)
{
	GUARDED_KERNEL(prepared_kernel(p), prepared_launch(p, grid, stream, args, nargs));
}

tl_status tl_prepared_launch(const tl_prepared *p, const uint32_t grid[3], void *stream, const tl_arg *args,
			     size_t nargs)
{
	tl_status s;
	if (!prepared_known(p, grid, stream, args, nargs, false, &s))
		return prepared_guarded(p, grid, stream, args, nargs);
	return s ? named(prepared_kernel(p), s) : TL_OK;
}

void tl_prepared_destroy(tl_prepared *p)
{
	DESTROYED(of_kernel(prepared_kernel(p)), prepared_destroy(p));
}

tl_status tl_time(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, int warmup, int repeats,
		  double *median_ms)
{
	GUARDED_KERNEL(k, kernel_time(k, cfg, args, nargs, warmup, repeats, median_ms));
}

tl_status tl_time_each(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, int warmup, int repeats,
		       double *ms)
{
	GUARDED_KERNEL(k, kernel_time_each(k, cfg, args, nargs, warmup, repeats, ms));
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
	DESTROYED(tuner_context(t), tuner_destroy(t));
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

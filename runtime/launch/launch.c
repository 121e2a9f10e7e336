/* Launching: the calls of a host program's inner loop.
 *
 * A launch similar to one of the last few uses an argument guard (argument_guard.h): one pass over the arguments
 * compares them and makes their bits, then the driver is called. Other launches make the arguments' key and look up the
 * variant, or compile it. Neither path allocates memory or formats text if the variant exists, and the first takes no
 * lock. */
#include "runtime/launch/launch.h"

#include <stdlib.h>

#include "runtime/launch/composite.h"
#include "runtime/launch/decorated.h"

tl_status named(const tl_kernel *k, tl_status s)
{
	/* on a GPU another kernel may have failed, and the device has set its name if it knows it */
	if (s && k && (s != TL_ERR_KERNEL || !tl_error_details()->driver_result))
		failed_in(k->name);
	return s;
}

/* --- checks -------------------------------------------------------------------------------------------------- */

tl_status check_call(const char *call, const tl_kernel *k, const tl_arg *args, size_t nargs)
{
	if (!k || (!args && nargs))
		return failed(TL_ERR_ARGUMENT, "%s: %s NULL", call, k ? "the arguments are" : "the kernel is");
	return TL_OK;
}

enum grid_kind kind_of_grid(const tl_kernel *k, const tl_config *cfg, const u32 *grid)
{
	const struct device *dev = k->module->ctx->dev;
	return k->has_dots ? kind_of_programs(dev->num_sms, most_blocks(dev, cfg), grid) : GRID_FEW;
}

/* An image fixes the options of its kernel, so the config must not set them. */
static tl_status check_compiled(const tl_kernel *k, const tl_config *cfg)
{
	const struct codegen_options o = options_of_config(cfg);
	const char *given = o.debug ? "debug" : NULL;
	for (u32 i = CODEGEN_NUMBERS; i-- > 0;)
		given = o.numbers[i] ? codegen_numbers[i].name : given;
	if (!given)
		return TL_OK;
	return failed(TL_ERR_ARGUMENT, "%s is compiled already, in %s: leave tl_config.%s 0", k->name, k->module->name,
		      given);
}

static inline bool is_reserved_used(const tl_config *cfg)
{
	return cfg->reserved[0];
}

tl_status check_options(const tl_kernel *k, const tl_config *cfg, struct options *out)
{
	*out = (struct options){.stream = NULL};
	if (cfg) {
		tl_status s = check_grid(k->name, cfg);
		if (!s && k->module->compiled)
			s = check_compiled(k, cfg);
		if (s)
			return s;
		out->codegen = options_of_config(cfg);
		out->general = cfg->specialization == TL_SPECIALIZE_NONE;
		out->stream = cfg->stream;
		u32 grid[3];
		grid_of(cfg, grid);
		out->codegen.grid = kind_of_grid(k, cfg, grid);
	}
	if (cfg && is_reserved_used(cfg))
		return failed(TL_ERR_ARGUMENT,
			      "%s: a reserved field of tl_config is not 0: this is libtl %s, and the program was built "
			      "for a later version, or did not initialise the config to 0",
			      k->name, TL_VERSION);
	if (cfg && (unsigned)cfg->specialization > TL_SPECIALIZE_NONE)
		return failed(TL_ERR_ARGUMENT, "%s: specialization is %d, which does not exist", k->name,
			      (int)cfg->specialization);
	out->codegen = codegen_options_complete(out->codegen);
	int wrong = codegen_options_wrong(&out->codegen);
	if (wrong >= 0)
		return failed(TL_ERR_ARGUMENT, "%s: %s is %d; it must %s", k->name, codegen_numbers[wrong].name,
			      out->codegen.numbers[wrong], codegen_numbers[wrong].rule);
	if (out->codegen.abi > ABI_TRITON)
		return failed(TL_ERR_ARGUMENT, "%s: abi is %d, which does not exist", k->name, (int)out->codegen.abi);
	if (cfg && cfg->max_ctas < -1)
		return failed(TL_ERR_ARGUMENT, "%s: max_ctas is %d; it must be at least -1", k->name,
			      cfg->max_ctas);
	return TL_OK;
}

tl_status complete_call(const char *call, tl_kernel *k, const tl_arg **args, size_t *nargs, tl_arg *room)
{
	tl_status s = check_call(call, k, *args, *nargs);
	return s || !k->decorated ? s : complete_arguments(k, args, nargs, room);
}

/* --- the variant --------------------------------------------------------------------------------------------- */

/* The error of a launch of a module that is a kernel image, which has no other variant. */
static tl_status missed(const tl_kernel *k, const struct loaded *l, const struct arguments *a)
{
	failed(TL_ERR_ARGUMENT, "%s, which is compiled already, ", k->name);
	conditions_explain(k->module->ctx->dev, l, a);
	return TL_ERR_ARGUMENT;
}

tl_status choose_variant(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, u64 *bits,
			 struct choice *out)
{
	u32 grid[3] = {1, 1, 1}, n;
	tl_arg leaves[MAX_KERNEL_PARAMS];
	const struct arguments a = {leaves, bits, grid};
	struct broken all = {0};
	*out = (struct choice){.first = NULL};
	tl_status s = check_options(k, cfg, &out->asked);
	if (s)
		return s;
	out->options = out->asked;
	if (out->asked.codegen.abi)
		return failed(TL_ERR_ARGUMENT, "%s: code for Triton's launcher is for tl_kernel_dump: leave "
			      "tl_config.abi 0", k->name);
	if (cfg)
		grid_of(cfg, grid);
	for (;;) {
		if ((s = variant_get(k, &out->options, args, nargs, &out->variant)))
			return s;
		if (!out->first) {
			bool fit = flatten_arguments(&k->params, args, nargs, leaves, NULL, &n);
			tl_assert(fit); /* otherwise the variant would not have been compiled */
			out->first = out->variant;
		}
		const struct loaded *l = &out->variant->loaded;
		arguments_bits(&out->variant->image, leaves, bits);
		struct broken b = conditions_broken(k->module->ctx->dev, l, &a);
		if (!is_broken(&b))
			return TL_OK;
		if (k->module->compiled)
			return missed(k, l, &a);
		broken_add(&all, &b);
		out->options.codegen.no_tma = all.maps;
		out->options.codegen.sizes = all.sizes;
		out->options.codegen.alias = all.alias;
		out->way = conversion_of(&all);
	}
}

/* --- launching ----------------------------------------------------------------------------------------------- */

/* The variant, compiled if needed, and the bits of its slots. */
static tl_status take_launch(const char *call, tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs,
			     u64 *bits, struct choice *c)
{
	tl_status s = check_call(call, k, args, nargs);
	if (s)
		return s;
	if (!cfg)
		return failed(TL_ERR_ARGUMENT, "%s: the config is NULL; its grid is needed", call);
	s = check_stream(k->name, k->module->ctx->dev, cfg->stream);
	return s ? s : choose_variant(k, cfg, args, nargs, bits, c);
}

/* True if check_options succeeds with the guard's options. */
static inline bool same_options(const tl_kernel *k, const struct arg_guard *b, const tl_config *cfg, const u32 *grid)
{
	if (k->module->compiled)
		return !(cfg->num_warps | cfg->num_stages | cfg->group_pids | cfg->maxnreg | cfg->debug |
			 (int)cfg->fp_fusion | (int)cfg->ftz | (int)cfg->abi);
	const struct codegen_options o = codegen_options_complete(options_of_config(cfg));
	return codegen_options_same_choice(&o, &b->options.codegen) &&
	       b->options.general == (cfg->specialization == TL_SPECIALIZE_NONE) &&
	       (!k->has_dots || serves_grid(&b->variant->image, kind_of_grid(k, cfg, grid)));
}

/* True if check_grid succeeds. */
static inline bool good_grid(const tl_config *cfg, const u32 *grid)
{
	bool dims = (unsigned)cfg->grid_dims <= 3 && grid[0] == cfg->grid[0] &&
		    (grid[1] == cfg->grid[1] || cfg->grid[1] <= 1) && (grid[2] == cfg->grid[2] || cfg->grid[2] <= 1);
	return dims && grid_fits(grid) && cfg->max_ctas >= -1 && !is_reserved_used(cfg) &&
	       (unsigned)cfg->specialization <= TL_SPECIALIZE_NONE;
}

/* Launches if a recent launch had the same kind of arguments. False: there was no such launch, or a launch on the
 * device may fault and the caller has not begun a guarded call (`guarded`: it has). Without a guarded call this
 * function never faults. */
static bool launch_known(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, bool guarded,
			 tl_status *s)
{
	if (!k || !cfg || (!args && nargs) || (k->decorated && !all_given(&k->params, args, nargs)))
		return false;
	struct device *dev = k->module->ctx->dev;
	struct launch l;
	u32 grid[3];
	if (!guarded && (!dev->ops->faultless || !begin_call(k->module->ctx)))
		return false;
	grid_of(cfg, grid);
	if (!good_grid(cfg, grid) || (cfg->stream && !dev->ops->has_streams))
		return false;
	for (u32 i = 0; i < RECENT; i++) {
		const struct arg_guard *b = atomic_load_explicit(&k->recent[i], memory_order_acquire);
		if (!b || !same_options(k, b, cfg, grid))
			continue;
		const struct variant *v = arg_guard_find(b, dev, args, nargs, grid, false, l.bits);
		if (!v)
			continue;
		*s = loaded_launch(dev, &v->loaded, cfg, grid, cfg->stream, &l);
		return true;
	}
	return false;
}

void launch_remember(tl_kernel *k, const struct choice *c, const tl_arg *args, size_t nargs)
{
	struct arg_guard *b = atomic_load_explicit(&c->first->binding, memory_order_acquire), *none = NULL;
	if (!b) {
		b = arg_guard_new(c->first, &c->asked, args, nargs, true);
		if (!b || b->by_key) {
			arg_guard_free(b);
			return;
		}
		if (!atomic_compare_exchange_strong(&c->first->binding, &none, b)) {
			arg_guard_free(b);
			b = none;
		}
	}
	arg_guard_add(b, c->way, c->variant);
	for (u32 i = 0; i < RECENT; i++)
		if (atomic_load_explicit(&k->recent[i], memory_order_relaxed) == b)
			return;
	atomic_store_explicit(&k->recent[atomic_fetch_add(&k->turn, 1) % RECENT], b, memory_order_release);
}

/* Separate from tl_launch, so that its stack frame is small. */
static __attribute__((noinline)) tl_status kernel_launch(tl_kernel *k, const tl_config *cfg, const tl_arg *args,
							 size_t nargs);
API_KERNEL_FUNCTION(kernel_launch, k, (tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs),
		    (k, cfg, args, nargs))
{
	struct launch l;
	struct choice c;
	u32 grid[3];
	tl_arg room[MAX_KERNEL_PARAMS];
	tl_status s;
	if ((s = complete_call("tl_launch", k, &args, &nargs, room)))
		return s;
	if (launch_known(k, cfg, args, nargs, true, &s))
		return s;
	if ((s = take_launch("tl_launch", k, cfg, args, nargs, l.bits, &c)))
		return s;
	launch_remember(k, &c, args, nargs);
	grid_of(cfg, grid);
	return loaded_start(k->module->ctx->dev, &c.variant->loaded, cfg, grid, cfg->stream, &l);
}

tl_status tl_launch(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs)
{
	tl_status s;
	if (!launch_known(k, cfg, args, nargs, false, &s))
		return kernel_launch(k, cfg, args, nargs);
	return s ? named(k, s) : TL_OK;
}

API_KERNEL_FUNCTION(tl_time_each, k,
		    (tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, int warmup, int repeats,
		     double *ms),
		    (k, cfg, args, nargs, warmup, repeats, ms))
{
	if (!ms)
		return failed(TL_ERR_ARGUMENT, "tl_time: the pointer to the time is NULL");
	if (warmup < 0 || repeats < 1 || repeats > MAX_REPEATS)
		return failed(
			TL_ERR_ARGUMENT,
			"tl_time: %d warm-up launches and %d repeats; the limits are at least 0, and 1 to 1000000",
			warmup, repeats);
	struct launch l;
	struct choice c;
	u32 grid[3];
	tl_arg room[MAX_KERNEL_PARAMS];
	memset(ms, 0, (size_t)repeats * sizeof *ms);
	tl_status s = complete_call("tl_time", k, &args, &nargs, room);
	if (s || (s = take_launch("tl_time", k, cfg, args, nargs, l.bits, &c)))
		return s;
	grid_of(cfg, grid);
	if (!grid[0] || !grid[1] || !grid[2])
		return TL_OK;
	struct device *dev = k->module->ctx->dev;
	if (is_captured(dev, cfg->stream))
		return failed(TL_ERR_ARGUMENT,
			      "tl_time: the stream is being captured into a CUDA graph, which cannot be timed");
	s = loaded_fill(dev, &c.variant->loaded, cfg, grid, cfg->stream, &l);
	return s ? s : dev->ops->time(dev, &l.device, warmup, repeats, ms);
}

API_KERNEL_FUNCTION(tl_time, k,
		    (tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, int warmup, int repeats,
		     double *median_ms),
		    (k, cfg, args, nargs, warmup, repeats, median_ms))
{
	bool possible = median_ms && repeats > 0 && repeats <= MAX_REPEATS;
	double *ms = possible ? calloc((size_t)repeats, sizeof *ms) : NULL;
	if (possible && !ms)
		return failed(TL_ERR_MEMORY, "out of host memory");
	struct cleanup c;
	cleanup_push(&c, free, ms);
	double nowhere;
	tl_status s = tl_time_each(k, cfg, args, nargs, warmup, repeats, !median_ms ? NULL : ms ? ms : &nowhere);
	if (median_ms)
		*median_ms = s ? 0 : median(ms, repeats);
	cleanup_run(&c);
	return s;
}

tl_status kernel_variant(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs,
			 const struct image **image, void **code, u64 *bits)
{
	struct choice c;
	tl_status s = take_launch("tl_tuner_choose", k, cfg, args, nargs, bits, &c);
	*image = s ? NULL : &c.variant->image;
	*code = s ? NULL : c.variant->loaded.code;
	return s;
}

tl_status kernel_pointers(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs,
			  void (*fn)(void *arg, const struct slot *s, const tl_arg *a), void *arg)
{
	const struct image *im;
	void *code;
	u64 bits[MAX_KERNEL_PARAMS];
	tl_arg leaves[MAX_KERNEL_PARAMS];
	u32 n;
	tl_status s = kernel_variant(k, cfg, args, nargs, &im, &code, bits);
	if (s || !flatten_arguments(&k->params, args, nargs, leaves, NULL, &n))
		return s;
	for (u32 i = 0; i < im->nslots; i++)
		if (im->slots[i].pointers && im->slots[i].leaf < n)
			fn(arg, &im->slots[i], &leaves[im->slots[i].leaf]);
	return TL_OK;
}

/* --- compiling ----------------------------------------------------------------------------------------------- */

API_KERNEL_FUNCTION(tl_kernel_resources, k,
		    (tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, tl_resources *out),
		    (k, cfg, args, nargs, out))
{
	tl_arg room[MAX_KERNEL_PARAMS];
	tl_status s = complete_call("tl_kernel_resources", k, &args, &nargs, room);
	struct choice c;
	u64 bits[MAX_KERNEL_PARAMS];
	if (!s && !out)
		return failed(TL_ERR_ARGUMENT, "tl_kernel_resources: out is NULL");
	if (s)
		return s;
	*out = (tl_resources){0};
	s = choose_variant(k, cfg, args, nargs, bits, &c);
	return s ? s : variant_resources(k, c.variant, out);
}

API_KERNEL_FUNCTION(tl_kernel_dump, k,
		    (tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, const char *stage,
		     char **text),
		    (k, cfg, args, nargs, stage, text))
{
	tl_arg room[MAX_KERNEL_PARAMS];
	tl_status s = check_call("tl_kernel_dump", k, args, nargs);
	if (s)
		return s;
	if (!stage || !text)
		return failed(TL_ERR_ARGUMENT, "tl_kernel_dump: %s is NULL", stage ? "text" : "the stage");
	*text = NULL;
	const struct device_ops *ops = k->module->ctx->dev->ops;
	char word[16];
	int n = snprintf(word, sizeof word, " %s ", stage);
	if (n >= (int)sizeof word || strchr(stage, ' ') || !strstr(ops->stages, word))
		return failed(TL_ERR_ARGUMENT, "tl_kernel_dump: the %s device has no stage '%.40s'; it has%.*s",
			      ops->name, stage, (int)strlen(ops->stages) - 1, ops->stages);
	struct choice c;
	u64 bits[MAX_KERNEL_PARAMS];
	s = complete_call("tl_kernel_dump", k, &args, &nargs, room);
	if (s || (s = check_options(k, cfg, &c.asked)))
		return s;
	/* a kernel that the device cannot take, or that fails to compile, still has the stages before the failure */
	c.options = c.asked;
	bool there = !c.asked.codegen.abi && !choose_variant(k, cfg, args, nargs, bits, &c);
	if (!strcmp(stage, "metadata") && !c.asked.codegen.abi)
		return failed(TL_ERR_ARGUMENT, "tl_kernel_dump: \"metadata\" is for Triton's launcher: set "
			      "tl_config.abi to TL_ABI_TRITON");
	return variant_dump(k, &c.options, there ? c.variant : NULL, args, nargs, stage, text);
}

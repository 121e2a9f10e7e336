/* Prepared handles: argument guards of the variants that launches will need, made in advance. A launch checks its
 * arguments against the guards, and calls the driver. */
#include <stdlib.h>

#include "runtime/launch/decorated.h"
#include "runtime/launch/launch.h"

static tl_kernel *prepared_kernel(const tl_prepared *p)
{
	return p ? p->kernel : NULL;
}

/* --- preparing ----------------------------------------------------------------------------------------------- */

/* Adds the variant for the same launch with rows that a tensor map cannot describe. */
static tl_status bind_without_tma(tl_kernel *k, struct options o, const tl_arg *args, size_t nargs, struct arg_guard *b)
{
	struct variant *v;
	const struct broken maps = {.maps = true};
	if (!maps_can_miss(&b->variant->image) || k->module->compiled)
		return TL_OK;
	o.codegen.no_tma = true;
	tl_status s = variant_get(k, &o, args, nargs, &v);
	if (!s)
		arg_guard_add(b, conversion_of(&maps), v);
	return s;
}

/* The handle's guard for the variant, or a new one, inserted in order of its divisors; NULL: out of memory. */
static struct arg_guard *bind_variant(tl_prepared *p, const struct options *o, const struct variant *v,
				    const tl_arg *args, size_t nargs)
{
	u64 bits[BOUND_BITS];
	_Atomic(struct arg_guard *) *at = &p->bindings;
	struct arg_guard *new = arg_guard_new(v, o, args, nargs, false), *b;
	for (; new && (b = atomic_load(at)); at = &b->next) {
		if (b->variant == v && arg_guard_takes(b, args, nargs, bits)) {
			arg_guard_free(new);
			return b;
		}
		if (b->divisors < new->divisors)
			break;
	}
	if (!new)
		return NULL;
	atomic_store(&new->next, atomic_load(at));
	atomic_store_explicit(at, new, memory_order_release);
	return new;
}

static tl_status bind(tl_prepared *p, const tl_config *cfg, const tl_arg *args, size_t nargs)
{
	tl_kernel *k = p->kernel;
	struct choice c;
	struct held h;
	u64 bits[BOUND_BITS];
	tl_arg room[MAX_KERNEL_PARAMS];
	tl_status s = complete_call("tl_prepare", k, &args, &nargs, room);
	if (s || (s = choose_variant(k, cfg, args, nargs, bits, &c)))
		return s;
	lock_hold(&h, &k->lock);
	struct arg_guard *b = bind_variant(p, &c.asked, c.first, args, nargs);
	if (b)
		arg_guard_add(b, c.way, c.variant);
	lock_release(&h);
	return b ? bind_without_tma(k, c.asked, args, nargs, b) : failed(TL_ERR_MEMORY, "out of host memory");
}

void prepared_free(tl_prepared *p)
{
	link_remove(&p->link);
	for (struct arg_guard *b = p->bindings, *next; b; b = next) {
		next = b->next;
		arg_guard_free(b);
	}
	free(p);
}

static void prepared_destroy(void *prepared)
{
	tl_prepared *p = prepared;
	struct held h;
	if (!p)
		return;
	pthread_mutex_t *lock = &p->kernel->lock;
	lock_hold(&h, lock);
	prepared_free(p);
	lock_release(&h);
}

API_DESTRUCTOR(tl_prepared_destroy, context_of(prepared_kernel(p)), (tl_prepared *p), (p))
{
	prepared_destroy(p);
}

static tl_status prepared_new(tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, tl_prepared **out)
{
	tl_prepared *p = tl_calloc(sizeof *p);
	p->kernel = k;
	p->config = cfg ? *cfg : (tl_config){.grid = {1}};
	grid_of(&p->config, p->grid);
	pthread_mutex_lock(&k->lock);
	link_add(&k->prepared, &p->link);
	pthread_mutex_unlock(&k->lock);
	struct cleanup c;
	cleanup_push(&c, prepared_destroy, p);
	tl_status s = bind(p, &p->config, args, nargs);
	cleanup_drop(&c);
	if (s)
		prepared_destroy(p);
	else
		*out = p;
	return s;
}

API_KERNEL_FUNCTION(tl_prepare, k,
		    (tl_kernel *k, const tl_config *cfg, const tl_arg *args, size_t nargs, tl_prepared **out),
		    (k, cfg, args, nargs, out))
{
	struct choice c;
	u64 bits[BOUND_BITS];
	if (out)
		*out = NULL;
	tl_status s = check_call("tl_prepare", k, args, nargs);
	if (!s && out)
		return prepared_new(k, cfg, args, nargs, out);
	tl_arg room[MAX_KERNEL_PARAMS];
	if (!s)
		s = complete_call("tl_prepare", k, &args, &nargs, room);
	if (!s)
		s = choose_variant(k, cfg, args, nargs, bits, &c);
	if (!s)
		launch_remember(k, &c, args, nargs);
	return s;
}

static tl_status check_handle(const char *call, const tl_prepared *p, const tl_arg *args, size_t nargs)
{
	if (!p || (!args && nargs))
		return failed(TL_ERR_ARGUMENT, "%s: %s NULL", call, p ? "the arguments are" : "the handle is");
	return TL_OK;
}

/* The handle's config with this grid; NULL: the config's grid. */
static tl_config with_grid(const tl_prepared *p, const uint32_t *grid)
{
	tl_config cfg = p->config;
	memcpy(cfg.grid, grid ? grid : p->grid, sizeof cfg.grid);
	cfg.grid_dims = 3;
	return cfg;
}

API_KERNEL_FUNCTION(tl_prepared_add, prepared_kernel(p),
		    (tl_prepared *p, const uint32_t grid[3], const tl_arg *args, size_t nargs), (p, grid, args, nargs))
{
	tl_status s = check_handle("tl_prepared_add", p, args, nargs);
	if (s)
		return s;
	const tl_config cfg = with_grid(p, grid);
	return bind(p, &cfg, args, nargs);
}

/* --- launching ----------------------------------------------------------------------------------------------- */

/* The variant of the first guard that accepts the arguments. `kind`: only variants for this kind of grid; NULL: all. */
static const struct variant *find(const tl_prepared *p, const tl_arg *args, size_t nargs, const u32 *grid,
				  const enum grid_kind *kind, u64 *bits)
{
	struct device *dev = p->kernel->module->ctx->dev;
	for (const struct arg_guard *b = atomic_load_explicit(&p->bindings, memory_order_acquire); b;
	     b = atomic_load_explicit(&b->next, memory_order_acquire)) {
		if (kind && !serves_grid(&b->variant->image, *kind))
			continue;
		const struct variant *v = arg_guard_find(b, dev, args, nargs, grid, true, bits);
		if (v)
			return v;
	}
	return NULL;
}

/* The error of the guard with the fewest divisors. */
static tl_status explain(const tl_prepared *p, const tl_arg *args, size_t nargs, const u32 *grid)
{
	const struct arg_guard *b = p->bindings;
	while (b->next)
		b = b->next;
	return arg_guard_missed(b, p->kernel->module->ctx->dev, args, nargs, grid);
}

/* Launches if a guard of the handle accepts the arguments. `guarded`: see launch_known. */
static bool prepared_known(const tl_prepared *p, const uint32_t *to, void *stream, const tl_arg *args, size_t nargs,
		    bool guarded, tl_status *s)
{
	if (!p || (!args && nargs))
		return false;
	const tl_kernel *k = p->kernel;
	if (k->decorated && !all_given(&k->params, args, nargs))
		return false;
	const struct device_ops *ops = k->module->ctx->dev->ops;
	const u32 *grid = to ? to : p->grid;
	if (!guarded && (!ops->faultless || !begin_call(k->module->ctx)))
		return false;
	if (!grid_fits(grid) || (stream && !ops->has_streams))
		return false;
	struct launch l;
	const struct variant *v = NULL;
	if (k->has_dots) {
		enum grid_kind kind = kind_of_grid(k, &p->config, grid);
		v = find(p, args, nargs, grid, &kind, l.bits);
	}
	if (!v)
		v = find(p, args, nargs, grid, NULL, l.bits);
	if (v)
		*s = loaded_launch(k->module->ctx->dev, &v->loaded, &p->config, grid, stream, &l);
	return v;
}

/* Launches, or sets the error message. Separate from tl_prepared_launch, so that its stack frame is small. */
static __attribute__((noinline)) tl_status prepared_launch(const tl_prepared *p, const uint32_t *to, void *stream,
							   const tl_arg *args, size_t nargs);
API_KERNEL_FUNCTION(prepared_launch, prepared_kernel(p),
		    (const tl_prepared *p, const uint32_t *to, void *stream, const tl_arg *args, size_t nargs),
		    (p, to, stream, args, nargs))
{
	tl_arg room[MAX_KERNEL_PARAMS];
	tl_status s = check_handle("tl_prepared_launch", p, args, nargs);
	if (s || (s = complete_call("tl_prepared_launch", p->kernel, &args, &nargs, room)))
		return s;
	if (prepared_known(p, to, stream, args, nargs, true, &s))
		return s;
	const tl_config cfg = with_grid(p, to);
	const tl_kernel *k = p->kernel;
	if ((s = check_grid(k->name, &cfg)) || (s = check_stream(k->name, k->module->ctx->dev, stream)))
		return s;
	return explain(p, args, nargs, cfg.grid);
}

tl_status tl_prepared_launch(const tl_prepared *p, const uint32_t grid[3], void *stream, const tl_arg *args,
			     size_t nargs)
{
	tl_status s;
	if (!prepared_known(p, grid, stream, args, nargs, false, &s))
		return prepared_launch(p, grid, stream, args, nargs);
	return s ? named(prepared_kernel(p), s) : TL_OK;
}

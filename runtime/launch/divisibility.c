/* Which properties of the arguments' values can change a kernel's code. This is known from the IR, so the kernel is
 * evaluated once for each choice of types and compile-time values. Passes and code generation run for variants only. */
#include "runtime/launch/divisibility.h"

#include <stdlib.h>

#include "runtime/launch/composite.h"

/* Data for all arguments with the same types and compile-time values. */
struct shape {
	struct keyed keyed; /* first */
	struct params params;
	i16 most[MAX_KERNEL_PARAMS]; /* by leaf */
};

/* False: the kernel cannot be evaluated. Compiling it will report the error. */
static bool evaluate(const tl_kernel *k, const struct params *ps, const tl_arg *args, size_t nargs, i16 *most)
{
	struct device *dev = k->module->ctx->dev;
	struct unit *u = unit_new();
	struct cleanup c;
	struct c_locale l;
	cleanup_push(&c, unit_delete, u);
	enter_c_locale(&l);
	struct compile_options o = {0};
	if (dev->ops->target)
		o.target = dev->ops->target(dev);
	const struct func *f = unit_again(u, &k->module->unit) ? unit_function(u, k->name) : NULL;
	bool good = f && unit_divisors(u, f, specialize_text(&u->arena, ps, args, nargs), &o, most, MAX_KERNEL_PARAMS);
	leave_c_locale(&l);
	cleanup_run(&c);
	return good;
}

/* Adds a shape, unless another thread has added it meanwhile. */
static const struct shape *new_shape(tl_kernel *k, const struct params *ps, const tl_arg *args, size_t nargs,
				     const struct key *key)
{
	struct shape *s = keyed_new(sizeof *s, key);
	struct held h;
	struct cleanup c;
	cleanup_push(&c, free, s);
	s->params = k->params;
	if (evaluate(k, ps, args, nargs, s->most))
		s->params.most = s->most;
	cleanup_drop(&c);
	lock_hold(&h, &k->lock);
	const struct shape *there = key_table_find(&k->shapes, key);
	if (!there)
		key_table_add(&k->shapes, &s->keyed);
	lock_release(&h);
	if (there)
		free(s);
	return there ? there : s;
}

const struct params *divisibility_params(tl_kernel *k, const struct options *o, const tl_arg *args, size_t nargs)
{
	if (o->general || !k->module->unit.module)
		return o->general ? &k->general : &k->params;
	const struct params *useful = &k->params;
	struct params types = k->params;
	types.any_alignment = true;
	struct key key;
	key_init(&key, 0);
	if (!specialize(&types, args, nargs, &key)) {
		struct held h;
		lock_hold(&h, &k->lock);
		const struct shape *s = key_table_find(&k->shapes, &key);
		lock_release(&h);
		s = s ? s : new_shape(k, &types, args, nargs, &key);
		useful = &s->params;
	}
	key_free(&key);
	return useful;
}

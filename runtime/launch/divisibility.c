/* Which properties of the arguments' values can change a kernel's code. This is known from the IR, so the kernel is
 * evaluated once for each choice of types and compile-time values. Passes and code generation run for variants only. */
#include "runtime/launch/divisibility.h"

#include <stdlib.h>

#include "runtime/launch/composite.h"

/* Data for all arguments with the same types and compile-time values. */
struct shape {
	struct shape *next;
	struct params params;
	i16 most[MAX_KERNEL_PARAMS]; /* by leaf */
	u64 hash;
	u32 key_len;
	u64 key[];
};

static const struct shape *find(const tl_kernel *k, const struct key *key, u64 hash)
{
	const struct shape *s = k->shapes[hash % SHAPE_LISTS];
	while (s && (s->hash != hash || !key_equals(key, s->key, s->key_len)))
		s = s->next;
	return s;
}

static void free_unit(void *unit)
{
	unit_free(unit);
	free(unit);
}

/* False: the kernel cannot be evaluated. Compiling it will report the error. */
static bool evaluate(const tl_kernel *k, const struct params *ps, const tl_arg *args, size_t nargs, i16 *most)
{
	struct device *dev = k->module->ctx->dev;
	struct unit *u = calloc(1, sizeof *u);
	if (!u)
		tl_out_of_memory(sizeof *u);
	struct cleanup c;
	struct c_locale l;
	cleanup_push(&c, free_unit, u);
	enter_c_locale(&l);
	struct compile_options o = {0};
	if (dev->ops->target)
		o.target = dev->ops->target(dev);
	const struct func *f =
		unit_again(u, &k->module->unit) ? map_get(&u->module->by_name, intern_str(&u->names, k->name)) : NULL;
	bool good = f && unit_divisors(u, f, specialize_text(&u->arena, ps, args, nargs), &o, most, MAX_KERNEL_PARAMS);
	leave_c_locale(&l);
	cleanup_run(&c);
	return good;
}

/* Adds the shape unless another thread has added it. */
static const struct shape *add(tl_kernel *k, const struct key *key, u64 hash, struct shape *s)
{
	struct held h;
	s->hash = hash;
	s->key_len = key->len;
	memcpy(s->key, key->at, key->len * sizeof *key->at);
	lock_hold(&h, &k->lock);
	const struct shape *there = find(k, key, hash);
	if (!there) {
		s->next = k->shapes[hash % SHAPE_LISTS];
		k->shapes[hash % SHAPE_LISTS] = s;
	}
	lock_release(&h);
	if (there)
		free(s);
	return there ? there : s;
}

static const struct shape *new_shape(tl_kernel *k, const struct params *ps, const tl_arg *args, size_t nargs,
				     const struct key *key, u64 hash)
{
	struct shape *s = calloc(1, sizeof *s + key->len * sizeof *key->at);
	if (!s)
		tl_out_of_memory(sizeof *s);
	struct cleanup c;
	cleanup_push(&c, free, s);
	s->params = k->params;
	if (evaluate(k, ps, args, nargs, s->most))
		s->params.most = s->most;
	cleanup_drop(&c);
	return add(k, key, hash, s);
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
		u64 hash = hash_bytes(key.at, key.len * sizeof *key.at, 0);
		lock_hold(&h, &k->lock);
		const struct shape *s = find(k, &key, hash);
		lock_release(&h);
		s = s ? s : new_shape(k, &types, args, nargs, &key, hash);
		useful = &s->params;
	}
	key_free(&key);
	return useful;
}

void shapes_free(tl_kernel *k)
{
	for (u32 i = 0; i < SHAPE_LISTS; i++)
		for (struct shape *s = k->shapes[i], *next; s; s = next) {
			next = s->next;
			free(s);
		}
}

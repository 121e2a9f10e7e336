#include "runtime/launch/decorated.h"

#include <stdlib.h>

#include "runtime/launch/composite.h"

/* --- evaluating ------------------------------------------------------------------------------------------------ */

/* The argument as host code sees it: the values of numbers, the types of pointers. */
static struct arg_spec seen_by_host(struct arena *a, const struct params *ps, const tl_arg *x, u32 i)
{
	switch (x->kind) {
	case TL_ARG_PTR: return (struct arg_spec){.type = arena_printf(a, "*%s", dtype_name((enum dtype)x->dtype))};
	case TL_ARG_TUPLE:
	case TL_ARG_DESCRIPTOR: return composite_spec(a, ps, &ps->at[i], x, &(u32){0});
	default: return (struct arg_spec){.constant = literal_text(a, x)};
	}
}

static struct arg_spec *host_specs(struct arena *a, const tl_kernel *k, const tl_arg *args, size_t nargs)
{
	struct arg_spec *out = arena_array(a, struct arg_spec, k->params.len);
	for (u32 i = 0; i < k->params.len; i++)
		if (is_given(args, nargs, i))
			out[i] = seen_by_host(a, &k->params, &args[i], i);
	return out;
}

static tl_status evaluate(const tl_kernel *k, const tl_arg *args, size_t nargs, enum decorators_of of,
			  struct decorators *out)
{
	struct device *dev = k->module->ctx->dev;
	const struct func *f = unit_function(&k->module->unit, k->name);
	struct unit *u = out->unit;
	struct c_locale c;
	struct target t = dev->ops->target ? dev->ops->target(dev) : (struct target){.kind = TARGET_CPU};
	if (!unit_again(u, &k->module->unit) || !f)
		return failed(TL_ERR_COMPILE, "%s: its decorators cannot be read", k->name);
	enter_c_locale(&c);
	unit_tuning(u, f, of == DECORATORS_KNOWN ? NULL : host_specs(&u->arena, k, args, nargs),
		    target_capability(&t), of, &out->tuning);
	leave_c_locale(&c);
	return u->diags.nerrors ? failed_text(TL_ERR_COMPILE, u->diags.text.at) : TL_OK;
}

tl_status decorators_read(const tl_kernel *k, const tl_arg *args, size_t nargs, enum decorators_of of,
			  struct decorators *out)
{
	tl_status s = check_arguments(&k->params, args, nargs, true);
	*out = (struct decorators){.unit = NULL};
	if (s)
		return s;
	out->unit = unit_new();
	cleanup_push(&out->cleanup, unit_delete, out->unit);
	s = evaluate(k, args, nargs, of, out);
	if (s)
		decorators_free(out);
	return s;
}

void decorators_free(struct decorators *d)
{
	cleanup_run(&d->cleanup);
}

/* --- do_not_specialize --------------------------------------------------------------------------------------- */

tl_status take_jit(tl_kernel *k)
{
	const struct func *f = unit_function(&k->module->unit, k->name);
	struct decorators d;
	if (!f || !f->jit.name || f->jit.end - f->jit.start <= strlen(f->jit.name)) /* not a call */
		return TL_OK;
	tl_status s = decorators_read(k, NULL, 0, DECORATORS_KNOWN, &d);
	if (s)
		return s;
	for (u32 i = 0; i < k->params.len; i++) {
		struct tl_param *p = &k->params.at[i];
		for (u32 n = 0; n < d.tuning.any_value.len; n++)
			p->any_value |= !strcmp(d.tuning.any_value.at[n], p->name);
		for (u32 n = 0; n < d.tuning.any_alignment.len; n++)
			p->any_alignment |= !strcmp(d.tuning.any_alignment.at[n], p->name);
	}
	decorators_free(&d);
	return TL_OK;
}

/* --- values of heuristics -------------------------------------------------------------------------------------- */

enum { MOST_ENTRIES = 4096, MOST_COMPUTED = 32 };

/* The values of heuristics for one set of arguments. */
struct entry {
	struct keyed keyed; /* first */
	tl_arg values[MOST_COMPUTED];
};

struct computed {
	pthread_mutex_t lock;               /* of all members below except `params`, `configured` and `misnamed` */
	struct arena arena;                 /* of the names */
	struct interner names;              /* texts that values point to: they outlive the entries */
	u32 params[MOST_COMPUTED], nparams; /* the parameters that heuristics set */
	bool configured[MAX_KERNEL_PARAMS]; /* the parameters that configurations set */
	bool misnamed;                      /* a heuristic names an unknown parameter */
	struct key_table entries;
};

void computed_free(struct computed *c)
{
	if (!c)
		return;
	key_table_clear(&c->entries, free);
	arena_free(&c->arena);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void free_computed(void *c)
{
	computed_free(c);
}

/* Finds the parameters that decorators set, as far as this is known without a launch. */
static tl_status find_parameters(const tl_kernel *k, struct computed *c)
{
	struct decorators d;
	tl_status s = decorators_read(k, NULL, 0, DECORATORS_KNOWN, &d);
	if (s)
		return s;
	for (u32 i = 0; !s && i < d.tuning.heuristics.len; i++) {
		i32 p = param_index(&k->params, d.tuning.heuristics.at[i].name);
		c->misnamed |= p < 0;
		if (p >= 0 && c->nparams == MOST_COMPUTED)
			s = failed(TL_ERR_ARGUMENT, "%s: its heuristics give more than %d parameters", k->name,
				   MOST_COMPUTED);
		else if (p >= 0)
			c->params[c->nparams++] = (u32)p;
	}
	for (u32 i = 0; !s && i < d.tuning.configurations.len; i++)
		for (u32 v = 0; v < d.tuning.configurations.at[i].nvalues; v++) {
			i32 p = param_index(&k->params, d.tuning.configurations.at[i].values[v].name);
			if (p >= 0)
				c->configured[p] = true;
		}
	decorators_free(&d);
	return s;
}

static tl_status get_computed(tl_kernel *k, struct computed **out)
{
	struct computed *c = atomic_load_explicit(&k->computed, memory_order_acquire), *none = NULL;
	*out = c;
	if (c)
		return TL_OK;
	c = tl_calloc(sizeof *c);
	pthread_mutex_init(&c->lock, NULL);
	c->names.arena = &c->arena;
	struct cleanup cleanup;
	cleanup_push(&cleanup, free_computed, c);
	tl_status s = find_parameters(k, c);
	cleanup_drop(&cleanup);
	if (!s && atomic_compare_exchange_strong(&k->computed, &none, c)) {
		*out = c;
		return TL_OK;
	}
	computed_free(c); /* another thread was faster */
	*out = none;
	return s;
}

void key_add_value(struct key *key, const tl_arg *a)
{
	u64 word = (u64)a->kind | (u64)a->dtype << 8;
	if ((a->kind == TL_ARG_STR || a->kind == TL_ARG_FUNC) && a->s) {
		key_add_text(key, word, a->s);
		return;
	}
	u64 *p = key_extend(key, 2);
	p[0] = word;
	p[1] = a->kind == TL_ARG_PTR                                                       ? a->ptr != NULL
	       : a->kind == TL_ARG_FLOAT                                                   ? fp_bits_f64(a->f)
	       : a->kind == TL_ARG_INT || a->kind == TL_ARG_UINT || a->kind == TL_ARG_BOOL ? a->u
											   : 0;
}

/* Adds everything that host code can see of the arguments to the key. */
static void add_values(const tl_kernel *k, const tl_arg *args, size_t nargs, struct key *key)
{
	for (u32 i = 0; i < k->params.len; i++)
		if (is_given(args, nargs, i))
			key_add_value(key, &args[i]);
		else
			*key_extend(key, 1) = TL_ARG_OPEN;
}

static bool find_entry(struct computed *c, const struct key *key, tl_arg *values)
{
	pthread_mutex_lock(&c->lock);
	const struct entry *e = key_table_find(&c->entries, key);
	if (e)
		memcpy(values, e->values, sizeof e->values);
	pthread_mutex_unlock(&c->lock);
	return e;
}

/* If memory runs out, the entry is not kept, and the texts of the values are the unit's. */
static void add_entry(struct computed *c, const struct key *key, tl_arg *values)
{
	struct entry *e = keyed_new(sizeof *e, key);
	struct held h;
	struct cleanup cleanup;
	cleanup_push(&cleanup, free, e);
	lock_hold(&h, &c->lock);
	for (u32 i = 0; i < c->nparams; i++)
		if (values[i].kind == TL_ARG_STR || values[i].kind == TL_ARG_FUNC)
			values[i].s = intern_str(&c->names, values[i].s);
	if (c->entries.n == MOST_ENTRIES)
		key_table_clear(&c->entries, free);
	memcpy(e->values, values, sizeof e->values);
	bool known = key_table_find(&c->entries, key); /* another thread has computed the same values */
	if (!known)
		key_table_add(&c->entries, &e->keyed);
	lock_release(&h);
	cleanup_drop(&cleanup);
	if (known)
		free(e);
}

/* The values of all parameters that heuristics set. Values that the call gives are not changed. */
static tl_status compute(const tl_kernel *k, struct computed *c, const tl_arg *args, size_t nargs,
			 const struct key *key, tl_arg *values)
{
	struct decorators d;
	tl_status s = decorators_read(k, args, nargs, LAUNCH_HEURISTICS, &d);
	if (s)
		return s;
	for (u32 i = 0; i < c->nparams && !s; i++) {
		values[i] = tl_open();
		const char *name = k->params.at[c->params[i]].name;
		for (u32 h = 0; h < d.tuning.heuristics.len && !s; h++) {
			const struct tuned_value *v = &d.tuning.heuristics.at[h];
			if (strcmp(v->name, name) != 0 || !v->literal)
				continue;
			if (!argument_of_text(&d.unit->arena, v->literal, &values[i]))
				s = failed(TL_ERR_COMPILE,
					   "%s: the heuristic of '%s' returns %s; a parameter takes numbers, strings, "
					   "dtypes, functions and None",
					   k->name, name, v->literal);
		}
	}
	if (!s)
		add_entry(c, key, values);
	decorators_free(&d);
	return s;
}

static tl_status open_configured(const tl_kernel *k, u32 i)
{
	return failed(TL_ERR_ARGUMENT,
		      "%s: argument %u, '%s', is set by the kernel's configurations\n      = hint: tl_tuner_launch "
		      "finds the best configuration; tl_launch needs the value",
		      k->name, i + 1, k->params.at[i].name);
}

tl_status complete_arguments(tl_kernel *k, const tl_arg **args, size_t *nargs, tl_arg *room)
{
	struct computed *c;
	if (all_given(&k->params, *args, *nargs) || *nargs > k->params.len)
		return TL_OK;
	tl_status s = get_computed(k, &c);
	bool open = !s && c->misnamed; /* an error is reported for it */
	for (u32 i = 0; !s && i < c->nparams; i++)
		open |= !is_given(*args, *nargs, c->params[i]);
	for (u32 i = 0; !s && i < k->params.len; i++)
		if (c->configured[i] && !is_given(*args, *nargs, i) && !k->params.at[i].has_default)
			s = open_configured(k, i);
	if (s || !open)
		return s;
	tl_arg values[MOST_COMPUTED];
	struct key key;
	key_init(&key, 0);
	add_values(k, *args, *nargs, &key);
	if (!find_entry(c, &key, values))
		s = compute(k, c, *args, *nargs, &key, values);
	key_free(&key);
	if (s)
		return s;
	for (u32 i = 0; i < k->params.len; i++)
		room[i] = i < *nargs ? (*args)[i] : tl_open();
	for (u32 i = 0; i < c->nparams; i++)
		if (room[c->params[i]].kind == TL_ARG_OPEN)
			room[c->params[i]] = values[i];
	*args = room;
	*nargs = k->params.len;
	return TL_OK;
}

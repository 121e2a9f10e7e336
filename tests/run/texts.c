/* `--texts DIR`: each launch is done a second time from a text of the same kernel's tile IR that another compiler made,
 * DIR/HASH.ttir, where HASH is that of the command line that write_command gives. What it writes is compared with what
 * the launch from the source has written, bit by bit, and then, by the case, with the reference. */
#include "suite.h"

/* Every array of the case, as it is on the device; as many as the case has. */
static void read_arrays(struct suite *s, unsigned char **to)
{
	int i = 0;
	for (struct array *a = s->arrays; a; a = a->next, i++) {
		to[i] = to[i] ? to[i] : malloc(a->bytes);
		if (!to[i])
			exit(2);
		if (tl_buffer_read(a->buffer, 0, to[i], a->bytes))
			case_fail(s, "%s: read back: %s", a->name, tl_error(s->ctx));
	}
}

static void write_arrays(struct suite *s, unsigned char *const *from)
{
	int i = 0;
	for (struct array *a = s->arrays; a; a = a->next, i++)
		if (tl_buffer_write(a->buffer, 0, from[i], a->bytes))
			case_fail(s, "%s: upload: %s", a->name, tl_error(s->ctx));
}

static bool same_arrays(const struct suite *s, unsigned char *const *a, unsigned char *const *b)
{
	int i = 0;
	bool same = true;
	for (const struct array *x = s->arrays; x; x = x->next, i++)
		same &= !memcmp(a[i], b[i], x->bytes);
	return same;
}

enum { MOST_ARGS = 256, MOST_ARRAYS = 64 };

struct arguments {
	tl_arg at[MOST_ARGS];
	int n;
	bool unlike; /* the text does not say what a descriptor's loads give outside of the tensor: 0 there */
};

static void add(struct arguments *to, tl_arg a)
{
	if (to->n < MOST_ARGS)
		to->at[to->n++] = a;
}

static tl_arg integer(tl_dtype t, int64_t v)
{
	tl_arg a = tl_int(v);
	a.dtype = t;
	a.typed = 1;
	return a;
}

/* The text's integers have no sign. */
static tl_dtype without_sign(tl_dtype t)
{
	switch (t) {
	case TL_U8: return TL_I8;
	case TL_U16: return TL_I16;
	case TL_U32: return TL_I32;
	case TL_U64: return TL_I64;
	default: return t;
	}
}

/* A parameter of the text for each leaf that is known at run time only. */
static void add_leaves(struct arguments *to, const tl_arg *a)
{
	tl_arg leaf = *a;
	if (a->kind == TL_ARG_INT)
		leaf.i = wrap(without_sign(a->dtype == TL_I1 || !a->typed ? TL_I64 : a->dtype), a->i);
	if (a->kind == TL_ARG_TUPLE) {
		for (size_t i = 0; i < a->tuple->len; i++)
			add_leaves(to, &a->tuple->items[i]);
		return;
	}
	if (a->kind == TL_ARG_DESCRIPTOR) { /* with all strides, as 64-bit numbers, behind the sizes */
		const tl_descriptor *d = a->descriptor;
		to->unlike |= d->pads_with_nan;
		add(to, tl_ptr(without_sign(d->dtype), d->base));
		for (int i = 0; i < d->rank; i++)
			add(to, integer(TL_I32, d->shape[i]));
		for (int i = 0; i < d->rank; i++)
			add(to, integer(TL_I64, d->strides[i]));
		return;
	}
	bool runtime = a->kind == TL_ARG_PTR || a->kind == TL_ARG_INT || a->kind == TL_ARG_UINT ||
		       a->kind == TL_ARG_FLOAT || a->kind == TL_ARG_BOOL;
	if (!runtime || a->constant)
		return;
	if (a->kind == TL_ARG_UINT) {
		leaf = integer(a->typed ? a->dtype : a->u <= INT32_MAX ? TL_I32 : TL_I64, (int64_t)a->u);
		leaf.i = wrap(without_sign(leaf.dtype), leaf.i);
	}
	leaf.dtype = without_sign(leaf.dtype);
	add(to, leaf);
}

static tl_status launch_from(struct suite *s, const char *path, const char *kernel, const tl_config *cfg,
			     const struct arguments *args)
{
	tl_module *m;
	tl_kernel *k;
	tl_status status = tl_module_load(s->ctx, path, &m);
	if (status)
		return status;
	status = tl_module_kernel(m, kernel, &k);
	if (!status)
		status = tl_launch(k, cfg, args->at, (size_t)args->n);
	if (!status)
		status = tl_synchronize(s->ctx);
	if (status)
		case_fail(s, "from %s: %s: %s", path, tl_status_name(status), tl_error(s->ctx));
	tl_module_destroy(m);
	return status;
}

static bool exists(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (f)
		fclose(f);
	return f;
}

void text_before(struct suite *s)
{
	int n = 0;
	for (const struct array *a = s->arrays; a; a = a->next)
		n++;
	if (n > MOST_ARRAYS)
		exit(2);
	if (!s->before)
		s->before = calloc(MOST_ARRAYS, sizeof *s->before);
	if (!s->before)
		exit(2);
	read_arrays(s, s->before);
}

void text_after(struct suite *s, unsigned long long hash, const char *kernel, const tl_config *cfg,
		const tl_arg *args, const bool *constant, size_t nargs)
{
	char path[1024];
	unsigned char *own[MOST_ARRAYS] = {0}, *its[MOST_ARRAYS] = {0};
	struct arguments leaves = {0};
	snprintf(path, sizeof path, "%s/%016llx.ttir", s->texts, hash);
	for (size_t i = 0; i < nargs; i++)
		if (!constant[i])
			add_leaves(&leaves, &args[i]);
	bool found = !leaves.unlike && exists(path);
	s->notext += !found;
	if (found) {
		read_arrays(s, own);
		write_arrays(s, s->before);
		if (launch_from(s, path, kernel, cfg, &leaves)) {
			case_fail(s, "from %s: %s", path, tl_error(s->ctx));
		} else {
			read_arrays(s, its);
			bool same = same_arrays(s, own, its);
			s->same += same;
			s->differ += !same;
			if (!same && s->verbose)
				printf("note  %s: %s: other bits\n", s->name, path);
		}
	}
	for (int i = 0; i < MOST_ARRAYS; i++) {
		free(own[i]), free(its[i]), free(s->before[i]);
		s->before[i] = NULL;
	}
}

/* Composite arguments, tuples and descriptors, as lists of leaves. Specialisation, keys and the bits of a launch have
 * numbers and pointers only, and the structure of the composites.
 *
 * A leaf of a tuple is an argument for a parameter without annotation. The leaves of a descriptor have the types that
 * its tensor map needs: the base, the sizes, the strides except the last. */
#include "runtime/launch/composite.h"

#include "runtime/image/error.h"

enum { MAX_DEPTH = 32, MAX_MAP_BYTES = 1 << 30 };

/* The path of a leaf in the argument that was passed. */
struct leaf_path {
	const struct leaf_path *outer;
	const char *name; /* or NULL */
	size_t index;
};

/* --- the leaves of a descriptor ------------------------------------------------------------------------------ */

struct leaf {
	tl_arg arg;
	struct tl_param param;
};

/* The number of bytes from the base to the end; 0: unknown. */
static u64 descriptor_bytes(const tl_descriptor *d)
{
	i64 last = 0, step;
	for (int i = 0; i < d->rank; i++)
		if (d->strides[i] < 0 || __builtin_mul_overflow(d->shape[i] - 1, d->strides[i], &step) ||
		    __builtin_add_overflow(last, step, &last) || last >> 50)
			return 0;
	return ((u64)last + 1) * tl_dtype_size(d->dtype);
}

static struct leaf typed_leaf(const struct tl_param *p, tl_arg arg, enum dtype type, int pointers, i32 divisibility)
{
	return (struct leaf){arg,
			     {.name = p->name,
			      .annotated = true,
			      .any_value = p->any_value,
			      .any_alignment = p->any_alignment,
			      .type = {.dtype = type, .pointers = pointers, .divisibility = divisibility}}};
}

static u32 descriptor_leaves(const struct tl_param *p, const tl_descriptor *d, struct leaf *out)
{
	int by = (int)(16 / tl_dtype_size(d->dtype));
	u32 n = 0;
	out[n++] = typed_leaf(p, tl_range(d->dtype, d->base, descriptor_bytes(d)), (enum dtype)d->dtype, 1, 16);
	for (int i = 0; i < d->rank; i++)
		out[n++] = typed_leaf(p, tl_int_typed(TL_I64, d->shape[i]), DT_I32, 0, 0);
	for (int i = 0; i + 1 < d->rank; i++)
		out[n++] = typed_leaf(p, tl_int_typed(TL_I64, d->strides[i]), DT_I64, 0, by > 1 ? by : 0);
	return n;
}

/* The parameter that stands for one element of a tuple, if the tuple is the argument of parameter p. */
static struct tl_param element(const struct tl_param *p, const tl_arg *a)
{
	bool constant = p->constant || a->kind == TL_ARG_STR || a->kind == TL_ARG_TYPE;
	return (struct tl_param){
		.name = p->name, .constant = constant, .any_value = p->any_value, .any_alignment = p->any_alignment};
}

/* --- checks and the key -------------------------------------------------------------------------------------- */

static void show_place(const struct leaf_path *at)
{
	if (!at)
		return;
	show_place(at->outer);
	if (at->name)
		failed_more(".%.60s", at->name);
	else
		failed_more("[%zu]", at->index);
}

struct walk {
	const struct params *params;
	u32 param;
	struct key *key;
	u32 leaves, depth;
};

static void name_argument(const struct walk *w, const struct leaf_path *at)
{
	failed(TL_ERR_ARGUMENT, "%s: argument %u, '%s'", w->params->kernel, w->param + 1, w->params->at[w->param].name);
	show_place(at);
}

/* The error in a descriptor; NULL: it is correct. */
static const char *descriptor_fault(const tl_descriptor *d)
{
	i64 numel = 1;
	if ((unsigned)d->dtype >= DT_COUNT)
		return "has no dtype";
	i64 size = (i64)tl_dtype_size(d->dtype);
	if (d->rank < 1 || d->rank > TL_MAX_RANK)
		return "must have 1 to 5 dimensions";
	if ((uintptr_t)d->base % 16)
		return "has a base that is not a multiple of 16";
	if (d->strides[d->rank - 1] != 1)
		return "must have contiguous elements along the last dimension: its last stride must be 1";
	for (int i = 0; i < d->rank; i++) {
		if (d->shape[i] < 1 || d->shape[i] > INT32_MAX)
			return "has a size that is not from 1 to 2^31 - 1";
		if (i + 1 < d->rank && (i128)d->strides[i] * size % 16)
			return "has a stride that is not a multiple of 16 bytes";
		if (d->block_shape[i] < 1 || !is_pow2((u64)d->block_shape[i]))
			return "has a block shape that is not a power of two";
		numel *= d->block_shape[i];
		if (numel > IR_MAX_NUMEL)
			return "has a block of more than 2^20 elements";
	}
	if (d->block_shape[d->rank - 1] * size < 16)
		return "has a block with less than 16 bytes along the last dimension";
	if (d->rounds_to_tf32 && d->dtype != TL_F32)
		return "rounds to tf32, but is not of type fp32";
	if (d->pads_with_nan && !dtype_is_float((enum dtype)d->dtype))
		return "pads with NaN, but is not of a float type";
	return NULL;
}

static tl_status add(struct walk *w, const struct leaf_path *at, const struct tl_param *p, const tl_arg *a);

static tl_status add_leaf(struct walk *w, const struct leaf_path *at, const struct tl_param *p, const tl_arg *a)
{
	if (++w->leaves > MAX_KERNEL_PARAMS)
		return failed(TL_ERR_ARGUMENT, "%s: the arguments have more than %d parts", w->params->kernel,
			      MAX_KERNEL_PARAMS);
	if (key_add_leaf(w->key, w->params, p, a))
		return TL_OK;
	name_argument(w, at);
	return refuse_more(p, a);
}

static tl_status add_descriptor(struct walk *w, const struct leaf_path *at, const struct tl_param *p,
				const tl_descriptor *d)
{
	const char *fault = !d ? "is NULL" : p->constant ? "is not a compile-time value" : descriptor_fault(d);
	if (fault) {
		name_argument(w, at);
		failed_more(": the descriptor %s", fault);
		return TL_ERR_ARGUMENT;
	}
	struct leaf leaves[2 * TL_MAX_RANK];
	u32 n = descriptor_leaves(p, d, leaves);
	u64 *words = key_extend(w->key, 1 + (u32)d->rank);
	words[0] = SPEC_DESCRIPTOR | (u64)d->rank << 8 | (u64)d->pads_with_nan << 16 | (u64)d->rounds_to_tf32 << 17;
	for (int i = 0; i < d->rank; i++)
		words[1 + i] = (u64)d->block_shape[i];
	tl_status s = TL_OK;
	for (u32 i = 0; i < n && !s; i++)
		s = add_leaf(w, at, &leaves[i].param, &leaves[i].arg);
	return s;
}

static tl_status add_tuple(struct walk *w, const struct leaf_path *at, const struct tl_param *p, const tl_tuple *t)
{
	const char *fault = !t                           ? "is NULL"
			    : t->len && !t->items        ? "has no items"
			    : w->depth > MAX_DEPTH       ? "is nested too deeply"
			    : t->len > MAX_KERNEL_PARAMS ? "is too long"
							 : NULL;
	for (size_t i = 0; !fault && t->names && i < t->len; i++)
		if (!t->names[i] || !*t->names[i])
			fault = "has a field without a name";
	if (fault) {
		name_argument(w, at);
		failed_more(": the tuple %s", fault);
		return TL_ERR_ARGUMENT;
	}
	*key_extend(w->key, 1) = SPEC_TUPLE | (u64)t->len << 8 | (u64)(t->names != NULL) << 40;
	tl_status s = TL_OK;
	w->depth++;
	for (size_t i = 0; i < t->len && !s; i++) {
		struct tl_param q = element(p, &t->items[i]);
		struct leaf_path inner = {at, t->names ? t->names[i] : NULL, i};
		if (t->names)
			key_add_text(w->key, SPEC_TUPLE, t->names[i]);
		s = add(w, &inner, &q, &t->items[i]);
	}
	w->depth--;
	return s;
}

static tl_status add(struct walk *w, const struct leaf_path *at, const struct tl_param *p, const tl_arg *a)
{
	return a->kind == TL_ARG_TUPLE        ? add_tuple(w, at, p, a->tuple)
	       : a->kind == TL_ARG_DESCRIPTOR ? add_descriptor(w, at, p, a->descriptor)
					      : add_leaf(w, at, p, a);
}

tl_status specialize_composite(const struct params *ps, u32 i, const tl_arg *a, struct key *key)
{
	struct walk w = {.params = ps, .param = i, .key = key};
	const struct tl_param *p = &ps->at[i];
	if (p->annotated || a->constant) {
		name_argument(&w, NULL);
		return refuse_more(p, a);
	}
	return add(&w, NULL, p, a);
}

/* --- the leaves as a list ------------------------------------------------------------------------------------ */

struct list {
	const struct params *params;
	tl_arg *at;
	u32 *owner; /* the parameter of each leaf; or NULL */
	u32 n;
};

static bool append(struct list *l, u32 param, const tl_arg *a)
{
	if (a->kind == TL_ARG_TUPLE) {
		bool good = true;
		for (size_t i = 0; i < a->tuple->len && good; i++)
			good = append(l, param, &a->tuple->items[i]);
		return good;
	}
	struct leaf leaves[2 * TL_MAX_RANK] = {{.arg = *a}};
	u32 n = a->kind == TL_ARG_DESCRIPTOR ? descriptor_leaves(&l->params->at[param], a->descriptor, leaves) : 1;
	for (u32 i = 0; i < n; i++) {
		if (l->n == MAX_KERNEL_PARAMS)
			return false;
		if (l->owner)
			l->owner[l->n] = param;
		l->at[l->n++] = leaves[i].arg;
	}
	return true;
}

bool flatten_arguments(const struct params *ps, const tl_arg *args, size_t nargs, tl_arg *out, u32 *owner, u32 *n)
{
	static const tl_arg none = {.kind = TL_ARG_NONE};
	struct list l = {ps, out, owner, 0};
	bool good = true;
	for (u32 i = 0; i < ps->len && good; i++) {
		const tl_arg *a = argument(ps, args, nargs, i);
		good = append(&l, i, a ? a : &none);
	}
	*n = l.n;
	return good;
}

/* --- for the evaluator --------------------------------------------------------------------------------------- */

struct arg_spec composite_spec(struct arena *a, const struct params *ps, const struct tl_param *p, const tl_arg *x,
			       u32 *leaf)
{
	if (x->kind == TL_ARG_DESCRIPTOR) {
		const tl_descriptor *d = x->descriptor;
		struct leaf leaves[2 * TL_MAX_RANK];
		u32 n = descriptor_leaves(p, d, leaves);
		struct arg_spec *items = arena_array(a, struct arg_spec, n);
		for (u32 i = 0; i < n; i++)
			items[i] = leaf_spec(a, ps, &leaves[i].param, &leaves[i].arg, leaf);
		struct arg_spec s = {.shape = ARG_DESCRIPTOR,
				     .items = items,
				     .nitems = n,
				     .pads_with_nan = d->pads_with_nan,
				     .rounds_to_tf32 = d->rounds_to_tf32};
		memcpy(s.block_shape, d->block_shape, (size_t)d->rank * sizeof *d->block_shape);
		return s;
	}
	const tl_tuple *t = x->tuple;
	struct arg_spec *items = arena_array(a, struct arg_spec, t->len);
	const char **fields = t->names ? arena_array(a, const char *, t->len) : NULL;
	for (size_t i = 0; i < t->len; i++) {
		struct tl_param q = element(p, &t->items[i]);
		bool composite = is_composite(&t->items[i]);
		items[i] = composite ? composite_spec(a, ps, &q, &t->items[i], leaf)
				     : leaf_spec(a, ps, &q, &t->items[i], leaf);
		if (fields)
			fields[i] = arena_str(a, t->names[i], strlen(t->names[i]));
	}
	return (struct arg_spec){.shape = ARG_TUPLE, .items = items, .nitems = (u32)t->len, .fields = fields};
}

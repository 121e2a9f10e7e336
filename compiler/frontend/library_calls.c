/* Calls of library functions by the reader of IR text: see ir/import/library_calls.h. */
#include "frontend/frontend_internal.h"
#include "ir/import/library_calls.h"

/* An operand of the text as a value of the language. */
static struct val val_of(struct eval *e, const struct text_arg *a)
{
	switch (a->kind) {
	case TEXT_NONE: return val_none();
	case TEXT_INT: return val_int(a->integer);
	case TEXT_BOOL: return val_bool(a->integer);
	case TEXT_STR: return val_str(a->text, (u32)strlen(a->text));
	case TEXT_TUPLE: {
		struct val *items = arena_array(e->arena, struct val, a->nitems);
		for (u32 i = 0; i < a->nitems; i++)
			items[i] = val_of(e, &a->items[i]);
		return val_tuple(items, a->nitems);
	}
	case TEXT_VALUE: break;
	}
	int pointers = 0;
	const struct type *t = type_elem(a->value->type);
	for (; t->kind == TY_PTR; t = t->elem)
		pointers++;
	enum dtype d = t->dtype;
	return val_tensor(a->value, a->is_unsigned && d != DT_I1 ? dtype_unsigned(d) : d, pointers);
}

static void add_values(struct eval *e, const struct val *v, value_vec *out)
{
	for (u32 i = 0; v->kind == V_TUPLE && i < v->nitems; i++)
		add_values(e, &v->items[i], out);
	if (v->kind == V_TENSOR)
		vec_push(e->arena, out, v->ssa);
}

/* Converts v to type t by a cast or a reshape if possible: loads from a descriptor leave out dimensions of 1. */
static struct val of_type(struct eval *e, struct val v, const struct type *t)
{
	if (v.kind == V_TENSOR && type_elem(v.ssa->type) != type_elem(t)) {
		struct val cast[] = {v, val_dtype(type_dtype(t))};
		v = call_std(e, "cast", cast, 2);
	}
	if (is_tile(&v) && type_is_tensor(t) && v.ssa->type != t && type_elem(v.ssa->type) == type_elem(t) &&
	    type_numel(v.ssa->type) == type_numel(t))
		v.ssa = build1(&e->b, IR_RESHAPE, t, v.ssa);
	return v;
}

static bool call_function(void *arg, struct builder *b, const char *function, const struct text_arg *args, u32 n,
			  const struct type *t, value_vec *out)
{
	enum { MOST = 16 };
	struct eval *e = arg;
	struct frame f = {.func = e->std->funcs.at[0]};
	struct val v[MOST];
	u32 errors = e->diags->nerrors;
	tl_assert(n <= MOST);
	e->frame = &f;
	e->b = *b;
	e->steps = 0;
	for (u32 i = 0; i < n; i++)
		v[i] = val_of(e, &args[i]);
	struct val given = call_std(e, function, v, n);
	if (t)
		given = of_type(e, given, t);
	*b = e->b;
	e->frame = NULL;
	add_values(e, &given, out);
	return e->diags->nerrors == errors;
}

/* Symbols that differ from the function's name by more than a type prefix or suffix. */
static const char *const odd_symbols[][2] = {
	{"mul64hi", "mulhi"},   {"umul64hi", "mulhi"}, {"llabs", "abs"},   {"fabsf", "abs"},
	{"fmaf_rn", "fma_rn"},  {"fmaf_rz", "fma_rz"}, {"fmaf_rd", "fma_rd"}, {"fmaf_ru", "fma_ru"},
	{"fast_fdividef", "fast_dividef"}, {"isnand", "isnan"}, {"isinfd", "isinf"}, {"signbitd", "signbit"},
	{"powif", "pow"},       {"powi", "pow"},
};

/* The function of the language that implements libdevice.name, or NULL. */
static const char *libdevice_function(struct eval *e, const char *name, size_t len)
{
	const char *own = arena_printf(e->arena, LIBDEVICE_PREFIX "%.*s", (int)len, name);
	if (library_function(e, intern_str(e->ctx->names, own)))
		return own;
	const struct builtin *b = builtin_find(NS_LIBDEVICE, name, len);
	return b ? arena_printf(e->arena, "%.*s", (int)len, name) : NULL;
}

static const char *extern_function(void *arg, const char *symbol)
{
	static const char prefix[] = "__nv_";
	struct eval *e = arg;
	const char *found = NULL, *s = symbol + sizeof prefix - 1;
	if (strncmp(symbol, prefix, sizeof prefix - 1) != 0 || !*s)
		return NULL;
	size_t n = strlen(s);
	for (u32 i = 0; i < ARRAY_LEN(odd_symbols) && !found; i++)
		if (!strcmp(odd_symbols[i][0], s))
			found = libdevice_function(e, odd_symbols[i][1], strlen(odd_symbols[i][1]));
	found = found ? found : libdevice_function(e, s, n);
	if (!found && s[n - 1] == 'f')
		found = libdevice_function(e, s, n - 1);
	if (!found && n > 2 && !strcmp(s + n - 2, "ll"))
		found = libdevice_function(e, s, n - 2);
	if (!found && n > 1 && strchr("fdu", *s))
		found = libdevice_function(e, s + 1, n - 1);
	return found;
}

const struct text_library *text_library_new(struct ir_context *ctx, const struct module *std)
{
	const struct eval_request req = {.module = std, .std = std, .num_warps = 4};
	struct text_library *l = arena_new(ctx->arena, struct text_library);
	struct eval *e = arena_new(ctx->arena, struct eval);
	*e = eval_new(ctx, &req);
	*l = (struct text_library){call_function, extern_function, e};
	return l;
}

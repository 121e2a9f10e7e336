/* The parameters of a kernel. Each argument becomes a value of the language, and its leaves that are known only at run
 * time become parameters of the IR function. */
#include <stdlib.h>
#include <strings.h>

#include "frontend/control_flow.h"
#include "ir/launch_abi.h"

struct binding_of {
	struct eval *e;
	const struct param *param;
	u32 leaf; /* number of preceding leaves */
};

/* The type of an annotation: "*fp32", tl.int64, tl.pointer_type(tl.float16), int. False if it is not a type. */
static bool annotation_type(struct eval *e, const struct expr *x, struct sig_type *out)
{
	if (!x)
		return false;
	u64 dtypes;
	if (x->kind == EX_STR)
		return parse_annotation(x->text, out, &dtypes);
	*out = (struct sig_type){0};
	if (x->kind == EX_NAME) {
		static const struct {
			const char *name;
			enum dtype dtype;
		} python[] = {{"int", DT_I32}, {"float", DT_F32}, {"bool", DT_I1}};
		for (u32 i = 0; i < ARRAY_LEN(python); i++)
			if (!strcmp(x->name, python[i].name)) {
				out->dtype = python[i].dtype;
				return true;
			}
	}
	if (x->kind != EX_NAME && x->kind != EX_ATTR && x->kind != EX_CALL)
		return false;
	struct diags_point before = diags_point(e->diags);
	struct val v = eval_expr(e, x); /* other annotations, such as torch.Tensor, are ignored */
	if (e->diags->nerrors != before.errors)
		diags_rewind(e->diags, before);
	if (v.kind != V_TYPE || v.nitems)
		return false;
	out->dtype = v.dtype;
	out->pointers = v.pointers;
	return true;
}

/* Warns about text that is a malformed pointer type, such as "*fp61". Other text may name a class, such as
 * "torch.Tensor". */
static void check_annotation(struct eval *e, const struct expr *x)
{
	struct sig_type t;
	u64 dtypes;
	if (x && x->kind == EX_STR && x->text[strspn(x->text, " ")] == '*' && !parse_annotation(x->text, &t, &dtypes))
		diag(e->diags, W_ANNOTATION, x->loc, x->text);
}

/* True for annotations of pointers to data that the kernel only reads: tl.const, "*kfp32". */
static bool is_const_annotation(const struct expr *x)
{
	if (x && x->kind == EX_STR) {
		const char *t = x->text + strspn(x->text, " ");
		return t[0] == '*' && t[strspn(t, "*")] == 'k';
	}
	return x && (x->kind == EX_ATTR || x->kind == EX_NAME) && !strcmp(x->name, "const");
}

static struct val add_param(struct binding_of *b, const char *name, const struct sig_type *t)
{
	struct kernel *k = b->e->kernel;
	if (!dtype_has_values(t->dtype))
		return eval_error(b->e, E_FP8_FORMAT, b->param->loc, dtype_name(t->dtype));
	struct value *v = block_add_arg(b->e->ctx, k->body, type_with_pointers(b->e, t->dtype, t->pointers));
	v->name = name;
	abi_add(k, ABI_PARAM, k->nparams, t->dtype);
	k->params[k->nparams++] = (struct kernel_param){.name = name,
							.value = v,
							.divisibility = t->divisibility,
							.is_unsigned = dtype_is_unsigned(t->dtype),
							.leaf = b->leaf};
	struct val arg = val_tensor(v, t->dtype, t->pointers);
	arg.is_const = t->pointers && (t->is_const || is_const_annotation(b->param->annotation));
	return arg;
}

/* The value of inf or nan, which have no Python literals; 0 for other text. */
static double named_float(const char *text)
{
	const char *name = text + (*text == '-' || *text == '+');
	bool known = !strcasecmp(name, "inf") || !strcasecmp(name, "infinity") || !strcasecmp(name, "nan");
	return known ? strtod(text, NULL) : 0;
}

struct val constant_argument(struct eval *e, const char *name, const char *constant)
{
	char *text = arena_str(e->arena, constant, strlen(constant));
	double number = named_float(text);
	u16 file = diags_add_source(e->diags, arena_printf(e->arena, "-D %s", name), text, strlen(text));
	struct expr *x = parse_expression(e->arena, e->ctx->names, e->diags, file, 0, (u32)strlen(text));
	bool bare = x && x->kind == EX_NAME && !map_get(&e->module->by_name, x->name);
	enum dtype d = bare ? dtype_parse(x->name, strlen(x->name)) : DT_COUNT;
	if (d != DT_COUNT) /* fp16 for tl.float16 */
		return val_dtype(d);
	if (number != 0 && (bare || (x && x->kind == EX_UNARY))) /* also true for NaN */
		return val_float(number);
	struct val v = x ? eval_expr(e, x) : val_error();
	if (bare && v.kind == V_ERROR)
		diag_hint(e->diags,
			  "a string needs quotes: -D %s='\"%s\"'; -D also takes 128, 0.5, True, None, a dtype "
			  "(tl.float16) and a jit function",
			  name, x->name);
	return v;
}

/* True if the kernel assigns to the parameter of that name. */
static bool is_assigned(struct eval *e, const char *name)
{
	name_vec names = {0};
	assigned_names(e, &e->frame->func->body, &names);
	for (u32 i = 0; i < names.len; i++)
		if (names.at[i] == name)
			return true;
	return false;
}

/* Binds a leaf to a compile-time value, or to a parameter of the IR function. */
static struct val bind_leaf(struct binding_of *b, const struct arg_spec *a, const char *name,
			    const struct expr *annotation)
{
	struct eval *e = b->e;
	const struct param *p = b->param;
	struct sig_type t = {0};
	bool constexpr = p->annotation && is_constexpr_annotation(p->annotation);
	bool typed = a->type && parse_sig_type(a->type, &t);
	check_annotation(e, annotation);
	if (p->star)
		return eval_error(e, E_STAR_PARAM, p->loc, "*", p->name);
	if (typed && !t.constant && constexpr && !a->constant)
		return eval_error(e, E_SIGNATURE_CONSTEXPR, p->loc, p->name);
	if (a->constant)
		return constant_argument(e, p->name, a->constant);
	if (!typed && !constexpr)
		typed = annotation_type(e, annotation, &t) && !t.constant;
	if (typed && t.one) { /* a compile-time 1, but an IR constant if the kernel also assigns to the parameter */
		vec_push(e->ctx->arena, &e->kernel->ones, b->leaf);
		return is_assigned(e, p->name) ? const_tensor(e, val_int(1), t.dtype) : val_int(1);
	}
	if (typed && !t.constant)
		return add_param(b, name, &t);
	if (p->value)
		return eval_in_module(e, e->frame->func, p->value);
	if (!constexpr && !t.constant)
		return eval_error(e, E_MISSING_TYPE, p->loc, p->name);
	eval_error(e, E_MISSING_CONSTEXPR, p->loc, p->name);
	diag_hint(e->diags, "pass it, as in -D %s=128", p->name);
	return val_error();
}

static struct val bind(struct binding_of *b, const struct arg_spec *a, const char *name, const struct expr *annotation);

/* Binds a part of a descriptor: a size or a stride. */
static struct val bind_part(struct binding_of *b, const struct arg_spec *a, const char *name, enum dtype d)
{
	struct kernel *k = b->e->kernel;
	u32 before = k->nparams;
	struct val v = bind(b, a, name, NULL);
	if (k->nparams == before)
		abi_add(k, ABI_UNUSED, 0, d);
	return v;
}

static struct val property(struct eval *e, i32 param, bool given)
{
	return param < 0 ? val_bool(given) : val_tensor(e->kernel->params[param].value, DT_I1, 0);
}

/* The value that tl.make_tensor_descriptor would return in a kernel. */
static struct val bind_descriptor(struct binding_of *b, const struct arg_spec *a, const char *name)
{
	struct eval *e = b->e;
	u32 rank = descriptor_rank(a);
	i32 nan = -1, tf32 = -1;
	struct val *sizes = arena_array(e->arena, struct val, 3 * rank), *strides = sizes + rank,
		   *block = strides + rank;
	struct val base = bind(b, &a->items[0], name, NULL);
	if (base.kind == V_ERROR)
		return base;
	if (e->ctx->abi)
		abi_add_descriptor(e->kernel, e->kernel->nparams - 1, rank, a->block_shape, !a->padding_given, &nan,
				   &tf32);
	for (u32 i = 0; i < rank; i++) {
		sizes[i] = bind_part(b, &a->items[1 + i], arena_printf(e->arena, "%s.shape.%u", name, i), DT_I32);
		block[i] = val_int(a->block_shape[i]);
	}
	for (u32 i = 0; i + 1 < rank; i++)
		strides[i] = bind_part(b, &a->items[1 + rank + i], arena_printf(e->arena, "%s.strides.%u", name, i),
				       DT_I64);
	abi_add(e->kernel, ABI_UNUSED, 0, DT_I64);
	strides[rank - 1] = val_int(1);
	struct val args[] = {base,
			     val_tuple(sizes, rank),
			     val_tuple(strides, rank),
			     val_tuple(block, rank),
			     property(e, nan, a->pads_with_nan),
			     property(e, tf32, a->rounds_to_tf32)};
	e->b.loc = b->param->loc;
	return call_std(e, "_descriptor", args, ARRAY_LEN(args));
}

static struct val bind_tuple(struct binding_of *b, const struct arg_spec *a, const char *name)
{
	struct eval *e = b->e;
	struct val *items = arena_array(e->arena, struct val, a->nitems), tuple = val_tuple(items, a->nitems);
	for (u32 i = 0; i < a->nitems; i++) {
		const char *part = a->fields ? arena_printf(e->arena, "%s.%s", name, a->fields[i])
					     : arena_printf(e->arena, "%s.%u", name, i);
		items[i] = bind(b, &a->items[i], part, NULL);
		if (items[i].kind == V_ERROR)
			return val_error();
	}
	tuple.class = a->fields ? tuple_class(e, a->fields, a->nitems) : NULL;
	return tuple;
}

static struct val bind(struct binding_of *b, const struct arg_spec *a, const char *name, const struct expr *annotation)
{
	if (a->shape == ARG_DESCRIPTOR)
		return bind_descriptor(b, a, name);
	if (a->shape == ARG_TUPLE)
		return bind_tuple(b, a, name);
	struct val v = bind_leaf(b, a, name, annotation);
	b->leaf++;
	return v;
}

/* The argument of parameter p as a tree; false after an error. */
static bool read_spec(struct eval *e, const struct param *p, const struct arg_spec *given, struct arg_spec *out)
{
	const struct expr *x = p->annotation;
	*out = *given;
	if (given->type && !parse_arg_spec(e->arena, given->type, out)) {
		eval_error(e, E_SIGNATURE_TYPE, p->loc, given->type, p->name);
		return false;
	}
	out->constant = given->constant ? given->constant : out->constant;
	if (given->shape == ARG_LEAF && !given->type && !given->constant && x && x->kind == EX_STR &&
	    (!parse_arg_spec(e->arena, x->text, out) || out->shape == ARG_LEAF))
		*out = *given;
	return true;
}

void bind_params(struct eval *e, const struct eval_request *req)
{
	const struct func *f = req->func;
	struct arg_spec *specs = arena_array(e->arena, struct arg_spec, f->nparams);
	bool *good = arena_array(e->arena, bool, f->nparams);
	u32 leaves = 0;
	for (u32 i = 0; i < f->nparams; i++) {
		good[i] = read_spec(e, &f->params[i], &req->args[i], &specs[i]);
		leaves += good[i] ? arg_leaves(&specs[i]) : 0;
	}
	/* descriptors of at least two leaves may take two more parameters: see abi_add_descriptor */
	e->kernel->params = arena_array(e->arena, struct kernel_param, 2 * leaves);
	struct binding_of b = {.e = e};
	for (u32 i = 0; i < f->nparams; i++) {
		b.param = &f->params[i];
		struct val v = good[i] ? bind(&b, &specs[i], b.param->name, b.param->annotation) : val_error();
		vec_push(e->arena, &e->frame->vars,
			 ((struct binding){.name = b.param->name, .val = v, .region = e->region}));
	}
}

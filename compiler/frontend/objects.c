/* Objects: values with named fields. The methods of their classes are in lang/std/blocks.tl. */
#include <string.h>

#include "frontend/builtin_args.h"
#include "frontend/control_flow.h"
#include "ir/scalar.h"

static const struct class library_classes[] = {
	{.name = "block_pointer",
	 .fields = (const char *const[]){"base", "shape", "strides", "offsets", "block_shape"},
	 .nfields = 5},
	{.name = "tensor_descriptor",
	 .fields = (const char *const[]){"base", "shape", "strides", "block_shape", "pads_with_nan", "rounds_to_tf32"},
	 .nfields = 6},
};

bool is_block_pointer(const struct val *v)
{
	return v->kind == V_OBJECT && v->class == &library_classes[0];
}

static bool is_loaded(const struct value *v)
{
	while (v->def && (v->def->code == IR_ADDPTR || v->def->code == IR_BITCAST || v->def->code == IR_INT_TO_PTR))
		v = operand(v->def, 0);
	return def_if(v, IR_LOAD) != NULL;
}

/* v with the hint that it is a multiple of `of`. With --debug the kernel checks the hint. */
static struct val promised_multiple(struct eval *e, struct val v, i32 of)
{
	if (v.kind != V_TENSOR || of == 1)
		return v;
	if (e->debug) {
		const struct type *t = type_is_ptr(v.ssa->type) ? type_scalar(e->ctx, DT_I64) : v.ssa->type;
		struct value *n = t == v.ssa->type ? v.ssa : build1(&e->b, IR_PTR_TO_INT, t, v.ssa);
		struct value *rest = build2(&e->b, IR_ANDI, t, n, build_int(&e->b, t, of - 1));
		struct value *ok = build_cmpi(&e->b, CMPI_EQ, rest, build_int(&e->b, t, 0));
		build(&e->b, IR_ASSERT, &ok, 1, NULL, 0, 0)->text =
			"base and strides of a tensor descriptor whose base is loaded from memory are multiples of 16 "
			"bytes";
	}
	v.ssa = value_with_hints(&e->b, v.ssa, &(struct hints){.divisibility = {of}});
	return v;
}

/* Adds alignment hints to a descriptor whose base is loaded from memory, where no launch can check it. By a rule of the
 * language its base and strides are multiples of 16 bytes. */
static void promise_alignment(struct eval *e, struct val *base, struct val *strides)
{
	enum { BYTES = 16 };
	if (base->kind != V_TENSOR || !is_loaded(base->ssa))
		return;
	struct val *items = arena_dup(e->arena, strides->items, strides->nitems * sizeof *items);
	for (u32 i = 0; i + 1 < strides->nitems; i++) /* the last stride is 1 */
		items[i] = promised_multiple(e, items[i], BYTES / (i32)pointee_bytes(base->ssa->type));
	strides->items = items;
	*base = promised_multiple(e, *base, BYTES);
}

/* For the library: creates an object of the class with that name. */
struct val bi_object(struct eval *e, const struct args *a)
{
	const struct class *c = library_classes;
	while (strcmp(c->name, a->at[0].text) != 0)
		c++;
	struct val *items = arena_dup(e->arena, a->at[1].items, a->at[1].nitems * sizeof *items);
	struct val v = {.kind = V_OBJECT, .class = c, .items = items, .nitems = a->at[1].nitems};
	if (!is_block_pointer(&v))
		promise_alignment(e, &items[class_field(c, "base")], &items[class_field(c, "strides")]);
	return v;
}

int class_field(const struct class *c, const char *name)
{
	for (u32 i = 0; c && i < c->nfields; i++)
		if (!strcmp(c->fields[i], name))
			return (int)i;
	return -1;
}

const struct class *tuple_class(struct eval *e, const char *const *fields, u32 n)
{
	for (u32 i = 0; i < e->tuple_classes.len; i++) {
		const struct class *c = e->tuple_classes.at[i];
		u32 same = 0;
		while (c->nfields == n && same < n && !strcmp(c->fields[same], fields[same]))
			same++;
		if (c->nfields == n && same == n)
			return c;
	}
	struct class *c = arena_new(e->arena, struct class);
	*c = (struct class){.name = "tuple", .fields = fields, .nfields = n};
	vec_push(e->arena, &e->tuple_classes, c);
	return c;
}

struct val object_attribute(struct eval *e, struct val v, const char *name)
{
	bool pointer = is_block_pointer(&v);
	int field = class_field(v.class, name);
	if (field >= 0) /* a loop makes flags SSA values; before the loop they are known constants */
		return is_descriptor(&v) && v.items[field].kind == V_TENSOR && v.items[field].dtype == DT_I1
			       ? known_number(v.items[field])
			       : v.items[field];
	if (!strcmp(name, "padding_option") && is_descriptor(&v)) {
		struct val nan = object_attribute(e, v, "pads_with_nan");
		if (nan.kind == V_BOOL)
			return nan.boolean ? val_str("nan", 3) : val_str("zero", 4);
	}
	if (!strcmp(name, "dtype") && !pointer)
		return val_dtype(v.items[0].dtype);
	if (!strcmp(name, "type") || !strcmp(name, "block_type") || !strcmp(name, "dtype")) {
		struct val shape = object_attribute(e, v, "block_shape");
		return (struct val){.kind = V_TYPE,
				    .dtype = v.items[0].dtype,
				    .pointers = pointer,
				    .to_block = pointer,
				    .items = shape.items,
				    .nitems = shape.nitems};
	}
	const char *method = arena_printf(e->arena, "_%s_%s", v.class->name, name);
	const struct func *f = library_function(e, intern_str(e->ctx->names, method));
	return f ? bind_method(e, v, (struct val){.kind = V_FUNC, .func = f}) : val_error();
}

/* getattr and hasattr (code 1): an attribute by its name. A missing attribute is not an error if there is a default. */
struct val bi_python_getattr(struct eval *e, const struct args *a)
{
	bool only_asks = a->b->code;
	const struct val *otherwise = only_asks ? NULL : a->at[2].nitems ? &a->at[2].items[0] : NULL;
	if (a->at[1].kind != V_STR)
		return wrong_kind(e, a, 1, "a string");
	/* a number has no attributes for hasattr, although its run-time value would have them */
	if (only_asks && val_is_number(&a->at[0]))
		return val_bool(false);
	struct diags_point before = diags_point(e->diags);
	struct val v = get_attribute(e, a->at[0], intern_str(e->ctx->names, a->at[1].text), a->loc[0]);
	bool found = v.kind != V_ERROR;
	if (!found && (only_asks || otherwise))
		diags_rewind(e->diags, before);
	return only_asks ? val_bool(found) : !found && otherwise ? *otherwise : v;
}

/* Checks that every dimension in boundary_check is one of the block's. */
static bool check_boundary(struct eval *e, const struct args *a, u32 i, struct val *out)
{
	const struct val shape = object_attribute(e, a->at[0], "block_shape");
	struct val v = a->at[i];
	if (v.kind == V_NONE)
		v = val_tuple(NULL, 0);
	if (v.kind != V_TUPLE)
		v = val_tuple(&a->at[i], 1);
	struct val *dims = arena_array(e->arena, struct val, v.nitems);
	for (u32 k = 0; k < v.nitems; k++) {
		struct args one = {
			.b = a->b, .at = (struct val[]){a->at[0], v.items[k]}, .loc = a->loc + i - 1, .n = 2};
		int axis;
		if (!arg_axis(e, &one, 1, (int)shape.nitems, &axis))
			return false;
		dims[k] = val_int(axis);
	}
	*out = val_tuple(dims, v.nitems);
	return true;
}

static bool unwanted(struct eval *e, const struct args *a, u32 i)
{
	if (a->at[i].kind == V_NONE)
		return false;
	eval_error(e, E_BLOCK_POINTER_MASK, a->loc[i], arg_name(e, a, i));
	return true;
}

static bool check_block_pointer(struct eval *e, const struct args *a)
{
	if (is_block_pointer(&a->at[0]))
		return true;
	eval_error(e, E_NOT_A_POINTER, a->loc[0], a->b->name, describe(e, &a->at[0]));
	diag_hint(e->diags, "a descriptor has methods: x.load([…]), x.store([…], value)");
	return false;
}

struct val load_block(struct eval *e, const struct args *a)
{
	static const char *const paddings[] = {"", "zero", "nan", NULL};
	struct val checked;
	i64 padding;
	if (!check_block_pointer(e, a) || unwanted(e, a, 1) || unwanted(e, a, 2) ||
	    !check_boundary(e, a, 3, &checked) || !arg_choice(e, a, 4, paddings, &padding))
		return val_error();
	const struct val in[] = {a->at[0], checked, a->at[4], a->at[5], a->at[6], a->at[7]};
	return call_std(e, "_block_pointer_load", in, ARRAY_LEN(in));
}

struct val store_block(struct eval *e, const struct args *a)
{
	struct val checked;
	if (!check_block_pointer(e, a) || unwanted(e, a, 2) || !check_boundary(e, a, 3, &checked))
		return val_error();
	const struct val in[] = {a->at[0], a->at[1], checked, a->at[4], a->at[5]};
	return call_std(e, "_block_pointer_store", in, ARRAY_LEN(in));
}

/* Scopes of profilers and tasks of warps, which are ignored. Code 1: context managers for `with`. */
struct val bi_context(struct eval *e, const struct args *a)
{
	diag(e->diags, W_CONTEXT, user_loc(e, e->b.loc), a->b->name,
	     a->b->code ? ": its body is compiled unchanged" : "");
	return a->b->code ? (struct val){.kind = V_CONTEXT} : val_none();
}

/* Types as values in a kernel: x.type, attributes of types, and isinstance. */
#include <string.h>

#include "frontend/builtin_args.h"

struct val type_of(struct eval *e, const struct val *v)
{
	struct val t = {.kind = V_CONSTEXPR_TYPE};
	if (v->kind == V_TENSOR) {
		const struct val shape = shape_tuple(e, v->ssa->type->rank, v->ssa->type->shape);
		return (struct val){.kind = V_TYPE,
				    .dtype = v->dtype,
				    .pointers = v->pointers,
				    .is_const = v->is_const,
				    .items = shape.items,
				    .nitems = shape.nitems};
	}
	if (v->kind == V_TUPLE) {
		struct val *items = arena_array(e->arena, struct val, v->nitems);
		for (u32 i = 0; i < v->nitems; i++)
			items[i] = type_of(e, &v->items[i]);
		t = val_tuple(items, v->nitems);
		t.kind = V_TUPLE_TYPE;
		return t;
	}
	if (v->kind == V_OBJECT && v->class->def)
		return (struct val){.kind = V_CLASS, .class = v->class};
	if (v->kind == V_OBJECT)
		return object_attribute(e, *v, "type");
	t.self = arena_dup(e->arena, v, sizeof *v);
	return t;
}

/* --- attributes of types ------------------------------------------------------------------------------------- */

static i64 numel(const struct val *t)
{
	i64 n = 1;
	for (u32 i = 0; i < t->nitems; i++)
		n *= (i64)t->items[i].integer;
	return n;
}

/* A property of the type of a tile. */
static bool block_property(const struct val *t, const char *name, struct val *out)
{
	i64 bits = t->pointers ? 64 : dtype_bits(t->dtype);
	if (!strcmp(name, "shape"))
		*out = val_tuple(t->items, t->nitems);
	else if (!strcmp(name, "numel"))
		*out = val_int(numel(t));
	else if (!strcmp(name, "nbytes"))
		*out = val_int(numel(t) * bits / 8);
	else
		return false;
	return true;
}

/* The mantissa width and exponent bias of a float type. */
static bool float_property(enum dtype d, const char *name, struct val *out)
{
	static const struct {
		enum dtype dtype;
		u16 mantissa, bias;
	} formats[] = {{DT_E4M3, 3, 7},	  {DT_E5M2, 2, 15},  {DT_F16, 10, 15},
		       {DT_BF16, 7, 127}, {DT_F32, 23, 127}, {DT_F64, 52, 1023}};
	bool mantissa = !strcmp(name, "fp_mantissa_width");
	if (!mantissa && strcmp(name, "exponent_bias") != 0)
		return false;
	for (u32 i = 0; i < ARRAY_LEN(formats); i++)
		if (formats[i].dtype == d) {
			*out = val_int(mantissa ? formats[i].mantissa : formats[i].bias);
			return true;
		}
	return false;
}

struct val type_attribute(struct eval *e, struct val v, const char *name)
{
	bool block = v.nitems && !v.to_block, pointer = v.pointers && !block;
	struct val r;
	if (v.kind == V_CONSTEXPR_TYPE)
		return val_error();
	if (v.kind == V_TUPLE_TYPE)
		return !strcmp(name, "types") ? val_tuple(v.items, v.nitems) : val_error();
	if (!strcmp(name, "element_ty") && (block || pointer)) {
		v.nitems = block ? 0 : v.nitems;
		v.pointers -= pointer;
		v.is_const &= block;
		v.to_block = false;
		return v;
	}
	if (!strcmp(name, "scalar")) {
		v.nitems = block ? 0 : v.nitems;
		return v;
	}
	if ((block && block_property(&v, name, &r)) || (!pointer && float_property(v.dtype, name, &r)))
		return r;
	if (!strcmp(name, "shape") && !pointer)
		return val_tuple(NULL, 0);
	int bits = v.pointers ? 64 : dtype_bits(v.dtype);
	if (!strcmp(name, "primitive_bitwidth") || (!strcmp(name, "int_bitwidth") && dtype_is_int(v.dtype)))
		return val_int(bits);
	if (!strcmp(name, "itemsize"))
		return val_int((bits + 7) / 8);
	if (!strcmp(name, "name")) { /* "int32", "fp32", … */
		const char *s = dtype_is_int(v.dtype) ? dtype_tl_name(v.dtype) : dtype_name(v.dtype);
		for (int i = 0; i < v.pointers; i++)
			s = arena_printf(e->arena, v.is_const ? "const_pointer<%s>" : "pointer<%s>", s);
		return val_str(s, (u32)strlen(s));
	}
	const struct builtin *b = builtin_find(NS_TYPE, name, strlen(name));
	if (b)
		return bind_method(e, v, (struct val){.kind = V_BUILTIN, .builtin = b});
	return val_error();
}

/* The methods is_…() of types. */
struct val bi_type_is(struct eval *e, const struct args *a)
{
	const struct val *t = &a->at[0];
	bool block = t->nitems && !t->to_block, number = !t->pointers && !block;
	(void)e;
	switch (a->b->code) {
	case 0: return val_bool(number && dtype_is_float(t->dtype));
	case 1: return val_bool(number && dtype_is_float(t->dtype) && !dtype_is_fp8(t->dtype));
	case 2: return val_bool(number && dtype_is_int(t->dtype));
	case 3: return val_bool(number && dtype_is_signed(t->dtype));
	case 4: return val_bool(number && dtype_is_unsigned(t->dtype));
	case 5: return val_bool(number && dtype_is_fp8(t->dtype));
	case 6: return val_bool(t->pointers && !block);
	case 7: return val_bool(block);
	case 8: return val_bool(t->is_const && !block);
	case 9: return val_bool(false);
	default: return val_bool(number && t->dtype == (enum dtype)(a->b->code - 100));
	}
}

struct val bi_type_shape(struct eval *e, const struct args *a)
{
	const struct val *t = &a->at[0];
	if (!t->nitems || t->to_block)
		return wrong_kind(e, a, 0, "the type of a tile");
	return val_tuple(t->items, t->nitems);
}

/* The least integer of a type, or the greatest one (code 1). */
struct val bi_type_limit(struct eval *e, const struct args *a)
{
	const struct val *t = &a->at[0];
	const i128 one = 1;
	if (!dtype_is_int(t->dtype) || t->pointers)
		return wrong_kind(e, a, 0, "an integer type");
	bool is_signed = dtype_is_signed(t->dtype);
	int bits = dtype_bits(t->dtype) - is_signed;
	return val_int(a->b->code ? (one << bits) - 1 : is_signed ? -(one << bits) : 0);
}

struct val bi_type_with(struct eval *e, const struct args *a)
{
	struct val t, shape = a->at[0];
	if (!arg_type(e, a, 1, &t))
		return val_error();
	t.items = shape.items;
	t.nitems = shape.to_block ? 0 : shape.nitems;
	return t;
}

/* --- types created by kernels -------------------------------------------------------------------------------- */

struct val bi_pointer_type(struct eval *e, const struct args *a)
{
	struct val t;
	if (!arg_type(e, a, 0, &t) || !arg_bool(e, a, 2, &t.is_const))
		return val_error();
	t.pointers++;
	return t;
}

struct val bi_block_type(struct eval *e, const struct args *a)
{
	i32 shape[MAX_RANK];
	int rank;
	struct val t;
	if (!arg_type(e, a, 0, &t) || !arg_shape(e, a, 1, &rank, shape))
		return val_error();
	t.items = shape_tuple(e, rank, shape).items;
	t.nitems = (u32)rank;
	return t;
}

struct val bi_dtype(struct eval *e, const struct args *a)
{
	struct val t;
	return arg_type(e, a, 0, &t) ? t : val_error();
}

struct val bi_get_int_dtype(struct eval *e, const struct args *a)
{
	i64 bits;
	bool is_signed;
	if (!arg_int(e, a, 0, &bits) || !arg_bool(e, a, 1, &is_signed))
		return val_error();
	for (int d = 0; d < DT_COUNT; d++)
		if (dtype_is_int((enum dtype)d) && dtype_bits((enum dtype)d) == bits &&
		    (bits == 1 || dtype_is_signed((enum dtype)d) == is_signed))
			return val_dtype((enum dtype)d);
	return wrong_kind(e, a, 0, "1, 8, 16, 32 or 64");
}

struct val bi_constexpr_type(struct eval *e, const struct args *a)
{
	return (struct val){.kind = V_CONSTEXPR_TYPE, .self = arena_dup(e->arena, &a->at[0], sizeof *a->at)};
}

struct val bi_tuple_type(struct eval *e, const struct args *a)
{
	struct val t = a->at[0];
	if (t.kind != V_TUPLE)
		return wrong_kind(e, a, 0, "a list of types");
	t.kind = V_TUPLE_TYPE;
	return t;
}

/* tl.tuple, and Python's tuple and list. */
struct val bi_tuple(struct eval *e, const struct args *a)
{
	const struct val *v = &a->at[0];
	struct val all;
	if (sequence_items(e, v, &all)) {
		all = val_tuple(arena_dup(e->arena, all.items, all.nitems * sizeof *all.items), all.nitems);
		all.list = a->b->code ? LIST_OWNED : LIST_NOT;
		if (!count_made(e, all.nitems, a->loc[0]))
			return val_error();
		return all;
	}
	return wrong_kind(e, a, 0, "a tuple or a list");
}

/* A call of a Triton class that kernels cannot instantiate: reports an error. */
struct val bi_only_class(struct eval *e, const struct args *a)
{
	return eval_error(e, E_NOT_CALLABLE, e->b.loc,
			  describe(e, &(struct val){.kind = V_BUILTIN, .builtin = a->b}));
}

/* --- isinstance ---------------------------------------------------------------------------------------------- */

enum builtin_class {
	TENSOR,
	TUPLE,
	DTYPE,
	POINTER_TYPE,
	BLOCK_TYPE,
	CONSTEXPR_TYPE,
	TUPLE_TYPE,
	DESCRIPTOR,
	INT,
	FLOAT,
	BOOL,
	STR,
};

static const struct {
	enum namespace_ in;
	const char *name;
	enum builtin_class class;
} builtin_classes[] = {
	{NS_TL, "tensor", TENSOR},
	{NS_TL, "tuple", TUPLE},
	{NS_TL, "dtype", DTYPE},
	{NS_TL, "pointer_type", POINTER_TYPE},
	{NS_TL, "block_type", BLOCK_TYPE},
	{NS_TL, "constexpr_type", CONSTEXPR_TYPE},
	{NS_TL, "tuple_type", TUPLE_TYPE},
	{NS_TL, "tensor_descriptor", DESCRIPTOR},
	{NS_TL, "tensor_descriptor_base", DESCRIPTOR},
	{NS_PYTHON, "tuple", TUPLE},
	{NS_PYTHON, "list", TUPLE},
	{NS_PYTHON, "int", INT},
	{NS_PYTHON, "float", FLOAT},
	{NS_PYTHON, "bool", BOOL},
	{NS_PYTHON, "str", STR},
};

static bool is_of(const struct val *v, enum builtin_class class)
{
	bool block = v->nitems && !v->to_block;
	switch (class) {
	case TENSOR: return v->kind == V_TENSOR || is_block_pointer(v);
	case TUPLE: return v->kind == V_TUPLE;
	case DTYPE: return v->kind == V_TYPE;
	case POINTER_TYPE: return v->kind == V_TYPE && v->pointers && !block;
	case BLOCK_TYPE: return v->kind == V_TYPE && block;
	case CONSTEXPR_TYPE: return v->kind == V_CONSTEXPR_TYPE;
	case TUPLE_TYPE: return v->kind == V_TUPLE_TYPE;
	case DESCRIPTOR: return v->kind == V_OBJECT && !strcmp(v->class->name, "tensor_descriptor");
	case INT: return v->kind == V_INT || v->kind == V_BOOL;
	case FLOAT: return v->kind == V_FLOAT;
	case BOOL: return v->kind == V_BOOL;
	case STR: return v->kind == V_STR;
	}
	tl_unreachable("class");
}

/* True in functions under @builtin, where a compile-time value is an object of class tl.constexpr. In all others Triton
 * tests the value inside the object. */
static bool has_constexprs(const struct func *f)
{
	static const char builtin[] = "builtin";
	size_t n = f->jit.name ? strlen(f->jit.name) : 0;
	return n >= strlen(builtin) && !strcmp(f->jit.name + n - strlen(builtin), builtin);
}

/* 1: v is an instance, 0: it is not, -1: `class` is not a class. */
static int instance_of(const struct eval *e, const struct val *v, const struct val *class)
{
	if (class->kind == V_CONSTEXPR)
		return has_constexprs(e->frame->func) && v->kind != V_TENSOR && !val_has_parts(v);
	if (class->kind == V_TUPLE) {
		int any = 0;
		for (u32 i = 0; i < class->nitems && any == 0; i++)
			any = instance_of(e, v, &class->items[i]);
		return any;
	}
	if (class->kind == V_CLASS)
		return is_object_of(v, class->class);
	if (class->kind != V_BUILTIN)
		return -1;
	for (u32 i = 0; i < ARRAY_LEN(builtin_classes); i++)
		if (builtin_find(builtin_classes[i].in, builtin_classes[i].name, strlen(builtin_classes[i].name)) ==
		    class->builtin)
			return is_of(v, builtin_classes[i].class);
	return -1;
}

struct val bi_isinstance(struct eval *e, const struct args *a)
{
	int is = instance_of(e, &a->at[0], &a->at[1]);
	if (is < 0)
		return wrong_kind(e, a, 1, "a class such as tl.tensor or int");
	return val_bool(is);
}

/* Expressions: attributes, subscripts, operators. Names are in frontend/python/names.c, calls in call.c. */
#include <math.h>

#include "support/suggest.h"
#include "frontend/control_flow.h"

/* --- attributes and subscripts ------------------------------------------------------------------------------- */

struct val bind_method(struct eval *e, struct val self, struct val callee)
{
	struct val *pair = arena_array(e->arena, struct val, 2);
	pair[0] = self;
	pair[1] = callee;
	return (struct val){.kind = V_METHOD, .self = &pair[0], .callee = &pair[1]};
}

struct val shape_tuple(struct eval *e, int rank, const i32 *shape)
{
	struct val *items = arena_array(e->arena, struct val, rank);
	for (int i = 0; i < rank; i++)
		items[i] = val_int(shape[i]);
	return val_tuple(items, (u32)rank);
}

struct val unknown_attribute(struct eval *e, const struct val *v, const char *name, struct loc at)
{
	const char *near[512];
	u32 n = 0;
	if (v->kind == V_NAMESPACE) {
		n = builtin_names(v->namespace_, near, 400);
		if (v->namespace_ == NS_TL)
			n += library_names(e, "", near + n, ARRAY_LEN(near) - n);
		else if (v->namespace_ == NS_MATH || v->namespace_ == NS_LIBDEVICE)
			n += library_names(e, LIBDEVICE_PREFIX, near + n, ARRAY_LEN(near) - n);
		else if (v->namespace_ == NS_INDUCTOR)
			n += library_names(e, INDUCTOR_PREFIX, near + n, ARRAY_LEN(near) - n);
	} else if (v->class && (v->kind == V_OBJECT || v->kind == V_CLASS || v->kind == V_TUPLE)) {
		n = class_names(v->class, near, ARRAY_LEN(near));
	} else if (v->kind == V_TENSOR) {
		static const char *const attributes[] = {"dtype", "shape", "type", "numel", "T"};
		n = builtin_names(NS_TL, near, 400);
		n += library_names(e, "", near + n, 500 - n);
		for (u32 i = 0; i < ARRAY_LEN(attributes); i++)
			near[n++] = attributes[i];
	}
	static const char *const namespace_names[] = {
		[NS_TRITON] = "triton",
		[NS_TL] = "tl",
		[NS_MATH] = "tl.math",
		[NS_EXTRA] = "tl.extra",
		[NS_LIBDEVICE] = "libdevice",
		[NS_INDUCTOR] = "triton_helpers",
		[NS_PYMATH] = "math",
		[NS_PYTHON] = "python",
		[NS_TYPE] = "dtype",
		[NS_PROPAGATE_NAN] = "tl.PropagateNan",
		[NS_PROFILER] = "triton.profiler.language",
		[NS_TARGET] = "tl.target_info",
	};
	bool of_triton = v->kind == V_NAMESPACE && v->namespace_ != NS_PYMATH && v->namespace_ != NS_PYTHON;
	if (of_triton && triton_has(name))
		return eval_error(e, E_NOT_YET, at, namespace_names[v->namespace_], name);
	struct val r = v->kind == V_NAMESPACE
			       ? eval_error(e, E_UNKNOWN_BUILTIN, at, namespace_names[v->namespace_], name)
			       : eval_error(e, E_UNKNOWN_ATTRIBUTE, at, describe(e, v), name);
	if ((of_triton || v->kind == V_TENSOR) && advise_member(e, name))
		return r;
	if (v->kind == V_NAMESPACE && v->namespace_ == NS_PYMATH && advise_host(e, "math", name))
		return r;
	const char *like = did_you_mean(name, near, n);
	if (like)
		diag_hint(e->diags, "did you mean '%s'?", like);
	else if (v->kind == V_NAMESPACE && v->namespace_ == NS_INDUCTOR)
		diag_hint(e->diags,
			  "with -I FOLDER, where FOLDER contains torch, kernels call PyTorch's own triton_helpers");
	return r;
}

static struct val transpose(struct eval *e, struct val v, struct loc at)
{
	if (!is_tile(&v) || v.ssa->type->rank != 2)
		return eval_error(e, E_TRANSPOSE_RANK, at, describe_type(e, &v));
	return call_std(e, "trans", &v, 1);
}

static struct val tensor_attribute(struct eval *e, struct val v, const char *name, struct loc at)
{
	if (!strcmp(name, "dtype"))
		return (struct val){
			.kind = V_TYPE, .dtype = v.dtype, .pointers = v.pointers, .is_const = v.is_const};
	if (!strcmp(name, "shape"))
		return shape_tuple(e, v.ssa->type->rank, v.ssa->type->shape);
	if (!strcmp(name, "numel"))
		return val_int(type_numel(v.ssa->type));
	if (!strcmp(name, "T"))
		return transpose(e, v, at);
	const struct builtin *b = builtin_find(NS_TL, name, strlen(name));
	if (b && b->method)
		return bind_method(e, v, (struct val){.kind = V_BUILTIN, .builtin = b});
	const struct func *f = library_function(e, name);
	if (f && name[0] != '_' && f->nparams)
		return bind_method(e, v, (struct val){.kind = V_FUNC, .func = f});
	return unknown_attribute(e, &v, name, at);
}

struct val get_attribute(struct eval *e, struct val v, const char *name, struct loc at)
{
	struct val r;
	bool constant = v.kind != V_TENSOR && v.kind != V_NAMESPACE && v.kind != V_HOST && v.kind != V_MODULE;
	bool composite = v.kind == V_OBJECT || v.kind == V_CLASS || v.kind == V_TUPLE;
	constant &= !composite || !v.class || !class_has(v.class, name);
	if (constant && !strcmp(name, "value"))
		return v;
	if ((constant || v.kind == V_TENSOR) && v.kind != V_ERROR && v.kind != V_OBJECT && !strcmp(name, "type"))
		return type_of(e, &v);
	switch (v.kind) {
	case V_ERROR: return v;
	case V_NAMESPACE:
		r = namespace_lookup(e, v.namespace_, name);
		if (r.kind == V_ERROR && v.namespace_ == NS_TRITON && e->host)
			return host_attribute(e, host_val("triton"), name);
		e->raised += r.kind == V_ERROR;
		return r.kind == V_ERROR ? unknown_attribute(e, &v, name, at) : r;
	case V_TENSOR: return tensor_attribute(e, v, name, at);
	case V_TUPLE: {
		int field = class_field(v.class, name);
		r = field < 0 ? python_method(e, v, name) : part_of(v.items[field]);
		return r.kind == V_ERROR && field < 0 ? unknown_attribute(e, &v, name, at) : r;
	}
	case V_TYPE:
	case V_CONSTEXPR_TYPE:
	case V_TUPLE_TYPE:
	case V_OBJECT:
		if (v.kind == V_OBJECT && v.class->def)
			return class_attribute(e, v, name, at);
		r = v.kind == V_OBJECT ? object_attribute(e, v, name) : type_attribute(e, v, name);
		return r.kind == V_ERROR ? unknown_attribute(e, &v, name, at) : r;
	case V_CLASS: return class_attribute(e, v, name, at);
	case V_HOST: return host_attribute(e, v, name);
	case V_STR:
	case V_DICT:
		r = python_method(e, v, name);
		return r.kind == V_ERROR ? unknown_attribute(e, &v, name, at) : r;
	case V_MODULE: return module_attribute(e, v, name, at);
	case V_BOOL:
	case V_INT:
	case V_FLOAT: /* a number is treated like a run-time scalar: x.dtype and x.to(…) work on both */
		v = to_tensor(e, v, at);
		return v.kind == V_ERROR ? v : tensor_attribute(e, v, name, at);
	default: return unknown_attribute(e, &v, name, at);
	}
}

/* Indexes a scalar. It has no dimension that a ':' could keep, and each None adds one, as in Triton. */
static struct val index_scalar(struct eval *e, struct val v, const struct val *items, u32 n, struct loc at)
{
	int rank = 0;
	for (u32 i = 0; i < n; i++)
		rank += items[i].kind == V_NONE;
	if (rank > MAX_RANK)
		return eval_error(e, E_TILE_INDEX_COUNT, at, describe_type(e, &v), 0);
	for (int i = 0; i < rank; i++)
		v = expand_dim(e, v, 0);
	return v;
}

/* Indexes a tile, as in x[:, None]: each ':' keeps a dimension, each None adds one. */
static struct val index_tile(struct eval *e, struct val v, struct val index, struct loc at)
{
	u32 n;
	const struct val *items = items_of(&index, &n);
	int kept = 0, rank = v.ssa->type->rank;
	for (u32 i = 0; i < n; i++) {
		if (items[i].kind == V_SLICE)
			kept++;
		else if (items[i].kind != V_NONE && !rank && v.pointers)
			return eval_error(e, E_POINTER_INDEX, at);
		else if (items[i].kind != V_NONE)
			return eval_error(e, E_TILE_INDEX, at, describe(e, &items[i]));
	}
	if (!rank)
		return index_scalar(e, v, items, n, at);
	if (kept > rank || rank + (int)n - kept > MAX_RANK)
		return eval_error(e, E_TILE_INDEX_COUNT, at, describe_type(e, &v), rank);
	for (u32 i = 0; i < n; i++)
		if (items[i].kind == V_NONE)
			v = expand_dim(e, v, (int)i);
	return v;
}

/* The value of the last of several equal keys, or NULL. */
const struct val *dict_find(const struct val *dict, const struct val *key)
{
	for (u32 i = dict->nitems; i > 0; i -= 2)
		if (val_equal(&dict->items[i - 2], key))
			return &dict->items[i - 1];
	return NULL;
}

static struct val text_item(struct eval *e, struct val v, struct val index, struct loc at)
{
	index = known_number(index);
	i128 i = index.kind == V_INT && index.integer < 0 ? index.integer + v.len : index.integer;
	if (index.kind != V_INT)
		return eval_error(e, E_TUPLE_INDEX, at, describe(e, &index));
	if (i < 0 || i >= v.len)
		return eval_error(e, E_TUPLE_RANGE, at, (long long)index.integer, v.len);
	return val_str(arena_str(e->arena, v.text + i, 1), 1);
}

struct val get_item(struct eval *e, struct val v, struct val index, struct loc at)
{
	if (v.kind == V_ERROR || index.kind == V_ERROR)
		return val_error();
	if (v.kind == V_TENSOR)
		return index_tile(e, v, index, at);
	if (v.kind == V_OBJECT) {
		struct val method = find_special(e, v, "__getitem__", at);
		struct call call = {.pos = &index, .pos_loc = &at, .npos = 1, .at = at};
		if (method.kind != V_ERROR)
			return call_value(e, method, &call);
	}
	if (v.kind == V_DICT) {
		const struct val *found = dict_find(&v, &index);
		return found ? part_of(*found) : eval_error(e, E_DICT_KEY, at, describe(e, &index), describe(e, &v));
	}
	if (v.kind == V_STR)
		return text_item(e, v, index, at);
	if (v.kind != V_TUPLE) {
		eval_error(e, E_NOT_SUBSCRIPTABLE, at, describe(e, &v));
		if (v.kind == V_FUNC)
			diag_hint(e->diags,
				  "only the host launches kernels: in a kernel, call it as a function, without a grid");
		return val_error();
	}
	index = known_number(index);
	if (index.kind != V_INT)
		return eval_error(e, E_TUPLE_INDEX, at, describe(e, &index));
	i128 i = index.integer < 0 ? index.integer + v.nitems : index.integer;
	if (i < 0 || i >= v.nitems)
		return eval_error(e, E_TUPLE_RANGE, at, (long long)index.integer, v.nitems);
	return part_of(v.items[i]);
}

static struct val eval_attribute(struct eval *e, const struct expr *x)
{
	if (x->a->kind == EX_NAME)
		e->attribute = x->name;
	struct val v = eval_expr(e, x->a);
	e->attribute = NULL;
	return get_attribute(e, v, x->name, x->loc);
}

/* True if x is v.shape[i] for a v without dimensions. */
static bool is_shape_of_scalar(struct eval *e, const struct expr *x, const struct val *shape)
{
	if (x->a->kind != EX_ATTR || strcmp(x->a->name, "shape") || shape->kind != V_TUPLE || shape->nitems ||
	    x->a->a->kind != EX_NAME)
		return false;
	struct val v = eval_expr(e, x->a->a);
	if (v.kind != V_TENSOR)
		return false;
	eval_error(e, E_SCALAR_SHAPE, x->loc, describe(e, &v));
	if (v.pointers)
		diag_hint(e->diags,
			  "a kernel gets the address of a tensor only: pass its sizes as separate parameters");
	return true;
}

static struct val eval_subscript(struct eval *e, const struct expr *x)
{
	struct val v = eval_expr(e, x->a);
	if (is_shape_of_scalar(e, x, &v))
		return val_error();
	if ((v.kind == V_TUPLE || v.kind == V_STR) && x->b->kind == EX_SLICE)
		return slice_tuple(e, v, x->b);
	return get_item(e, v, eval_expr(e, x->b), x->loc);
}

/* --- operators on compile-time values ------------------------------------------------------------------------ */

/* Compile-time integers are limited to magnitudes below 2^100. */
enum { MAX_INT_BITS = 100 };

static i128 floor_div(i128 a, i128 b)
{
	i128 q = a / b;
	return q - (a % b != 0 && (a < 0) != (b < 0));
}

static struct val int_pow(struct eval *e, i128 base, i128 n, struct loc at)
{
	i128 r = 1;
	if (base >= -1 && base <= 1) /* the exponent may be huge */
		return val_int(n == 0 ? 1 : base == -1 && n % 2 == 0 ? 1 : base);
	for (; n > 0; n--)
		if (__builtin_mul_overflow(r, base, &r) || r > (i128)1 << MAX_INT_BITS ||
		    r < -((i128)1 << MAX_INT_BITS))
			return eval_error(e, E_INT_TOO_BIG, at);
	return val_int(r);
}

/* Operators of Python integers, within the limit of MAX_INT_BITS. */
static struct val int_binary(struct eval *e, enum operator op, i128 a, i128 b, struct loc at)
{
	const i128 limit = (i128)1 << MAX_INT_BITS;
	i128 r = 0;
	bool over = false;
	switch (op) {
	case OP_ADD: over = __builtin_add_overflow(a, b, &r); break;
	case OP_SUB: over = __builtin_sub_overflow(a, b, &r); break;
	case OP_MUL: over = __builtin_mul_overflow(a, b, &r); break;
	case OP_FLOORDIV:
	case OP_MOD:
		if (!b)
			return eval_error(e, E_DIVISION_BY_ZERO, at);
		r = op == OP_FLOORDIV ? floor_div(a, b) : a - floor_div(a, b) * b;
		break;
	case OP_POW:
		if (b < 0)
			return val_float(pow((double)a, (double)b));
		return int_pow(e, a, b, at);
	case OP_SHL:
		over = b < 0 || b > MAX_INT_BITS || a > limit >> b || a < -(limit >> b);
		r = over ? 0 : (i128)((unsigned __int128)a << b);
		break;
	case OP_SHR:
		over = b < 0;
		r = over ? 0 : a >> MIN(b, 127);
		break;
	case OP_BITAND: r = a & b; break;
	case OP_BITOR: r = a | b; break;
	case OP_BITXOR: r = a ^ b; break;
	default: tl_unreachable("integer operator");
	}
	return over || r > limit || r < -limit ? eval_error(e, E_INT_TOO_BIG, at) : val_int(r);
}

/* Python's // and % of floats. The remainder is exact and has the sign of the divisor (float_divmod in CPython). */
static double float_divmod(double a, double b, double *remainder)
{
	double r = fmod(a, b), q = (a - r) / b;
	if (r == 0) {
		r = copysign(0, b);
	} else if ((b < 0) != (r < 0)) {
		r += b;
		q -= 1;
	}
	*remainder = r;
	if (q == 0)
		return copysign(0, a / b);
	double whole = floor(q);
	return q - whole > 0.5 ? whole + 1 : whole;
}

static struct val float_binary(struct eval *e, enum operator op, double a, double b, struct loc at)
{
	double quotient, remainder;
	switch (op) {
	case OP_ADD: return val_float(a + b);
	case OP_SUB: return val_float(a - b);
	case OP_MUL: return val_float(a * b);
	case OP_POW: return val_float(pow(a, b));
	case OP_DIV:
	case OP_FLOORDIV:
	case OP_MOD:
		if (b == 0)
			return eval_error(e, E_DIVISION_BY_ZERO, at);
		if (op == OP_DIV)
			return val_float(a / b);
		quotient = float_divmod(a, b, &remainder);
		return val_float(op == OP_FLOORDIV ? quotient : remainder);
	default: return eval_error(e, E_OPERAND, at, operator_text(op), "a float");
	}
}

static struct val concat(struct eval *e, const struct val *a, const struct val *b, struct loc at)
{
	bool text = a->kind == V_STR;
	if (text ? !count_text(e, (u64)a->len + b->len, at) : !count_made(e, (u64)a->nitems + b->nitems, at))
		return val_error();
	if (a->kind == V_STR) {
		const char *s = arena_printf(e->arena, "%.*s%.*s", (int)a->len, a->text, (int)b->len, b->text);
		return val_str(s, a->len + b->len);
	}
	struct val *items = arena_array(e->arena, struct val, a->nitems + b->nitems);
	for (u32 i = 0; i < a->nitems; i++)
		items[i] = a->items[i];
	for (u32 i = 0; i < b->nitems; i++)
		items[a->nitems + i] = b->items[i];
	struct val v = val_tuple(items, a->nitems + b->nitems);
	v.list = a->list || b->list ? LIST_OWNED : LIST_NOT;
	return v;
}

/* A tuple or string repeated n times. */
static struct val repeat(struct eval *e, const struct val *v, i128 n, struct loc at)
{
	u32 len = v->kind == V_STR ? v->len : v->nitems;
	n = MAX(n, 0);
	if (!len)
		return *v;
	u64 all = n > MAX_PARTS ? MAX_PARTS + 1ull : (u64)n * len;
	if (v->kind == V_STR ? !count_text(e, all, at) : !count_made(e, all, at))
		return val_error();
	u32 total = len * (u32)n;
	if (v->kind == V_STR) {
		char *text = arena_alloc(e->arena, total + 1);
		for (u32 i = 0; i < total; i++)
			text[i] = v->text[i % len];
		text[total] = 0;
		return val_str(text, total);
	}
	struct val *items = arena_array(e->arena, struct val, total);
	for (u32 i = 0; i < total; i++)
		items[i] = v->items[i % len];
	struct val r = val_tuple(items, total);
	r.list = v->list ? LIST_OWNED : LIST_NOT;
	return r;
}

struct val binary_values(struct eval *e, enum operator op, struct val a, struct val b, struct loc at)
{
	if (a.kind == V_ERROR || b.kind == V_ERROR)
		return val_error();
	if (a.kind == V_HOST || b.kind == V_HOST)
		return eval_error(e, E_HOST_VALUE, at, a.kind == V_HOST ? a.text : b.text);
	struct val r;
	if ((a.kind == V_OBJECT || b.kind == V_OBJECT) && object_operator(e, op, a, b, at, &r))
		return r;
	if (op == OP_MATMUL)
		return eval_error(e, E_MATMUL_OPERATOR, at);
	bool sequences = a.kind == V_TUPLE || b.kind == V_TUPLE || a.kind == V_STR || b.kind == V_STR;
	if (!sequences && (a.kind == V_TENSOR || b.kind == V_TENSOR))
		return binary_op(e, op, a, b, at);
	if (op == OP_MOD && a.kind == V_STR)
		return format_percent(e, &a, &b, at);
	if (op == OP_ADD && a.kind == b.kind && (a.kind == V_STR || a.kind == V_TUPLE))
		return concat(e, &a, &b, at);
	if (op == OP_MUL && (b.kind == V_STR || b.kind == V_TUPLE)) {
		struct val t = a;
		a = b;
		b = t;
	}
	if (op == OP_MUL && (a.kind == V_STR || a.kind == V_TUPLE) && known_number(b).kind == V_INT)
		return repeat(e, &a, known_number(b).integer, at);
	if (!val_is_number(&a) || !val_is_number(&b)) {
		const struct val *bad = val_is_number(&a) || a.kind == V_TENSOR ? &b : &a;
		eval_error(e, E_OPERAND, at, operator_text(op), describe(e, bad));
		advise_value(e, bad);
		return val_error();
	}
	if (a.kind == V_FLOAT || b.kind == V_FLOAT || op == OP_DIV)
		return float_binary(e, op, double_of(&a), double_of(&b), at);
	r = int_binary(e, op, int_of(&a), int_of(&b), at);
	if (a.kind == V_BOOL && b.kind == V_BOOL && (op == OP_BITAND || op == OP_BITOR || op == OP_BITXOR))
		return val_bool(r.integer != 0);
	return r;
}

struct val compare_values(struct eval *e, enum operator op, struct val a, struct val b, struct loc at);

static struct val compare_constants(struct eval *e, enum operator op, struct val a, struct val b, struct loc at)
{
	if (op == OP_EQ || op == OP_NE)
		return val_bool(val_equal(&a, &b) == (op == OP_EQ));
	int c;
	if (a.kind == V_TUPLE && b.kind == V_TUPLE) { /* the first elements that differ decide */
		u32 i = 0;
		while (i < a.nitems && i < b.nitems && val_equal(&a.items[i], &b.items[i]))
			i++;
		if (i < a.nitems && i < b.nitems)
			return compare_values(e, op, a.items[i], b.items[i], at);
		c = (a.nitems > b.nitems) - (a.nitems < b.nitems);
	} else if (a.kind == V_STR && b.kind == V_STR)
		c = strcmp(a.text, b.text);
	else if (!val_is_number(&a) || !val_is_number(&b))
		return eval_error(e, E_OPERAND, at, operator_text(op), describe(e, val_is_number(&a) ? &b : &a));
	else if (a.kind == V_FLOAT || b.kind == V_FLOAT) {
		double x = double_of(&a), y = double_of(&b);
		if (isnan(x) || isnan(y))
			return val_bool(false);
		c = (x > y) - (x < y);
	} else {
		c = (int_of(&a) > int_of(&b)) - (int_of(&a) < int_of(&b));
	}
	return val_bool(op == OP_LT ? c < 0 : op == OP_LE ? c <= 0 : op == OP_GT ? c > 0 : c >= 0);
}

/* True if the equality of a and b is known only at run time. */
static bool undecided(const struct val *a, const struct val *b)
{
	if (a->kind == V_TUPLE && b->kind == V_TUPLE && a->nitems == b->nitems) {
		for (u32 i = 0; i < a->nitems; i++)
			if (undecided(&a->items[i], &b->items[i]))
				return true;
		return false;
	}
	return (a->kind == V_TENSOR && (b->kind == V_TENSOR || val_is_number(b))) ||
	       (b->kind == V_TENSOR && val_is_number(a));
}

static struct val undecided_error(struct eval *e, enum operator op, const struct val *v, struct loc at)
{
	struct val r = eval_error(e, E_OPERAND, at, operator_text(op), describe(e, v));
	diag_hint(e->diags, "compare run-time values one by one, as in (x == a) | (x == b)");
	return r;
}

struct val compare_values(struct eval *e, enum operator op, struct val a, struct val b, struct loc at)
{
	if (a.kind == V_ERROR || b.kind == V_ERROR)
		return val_error();
	if (a.kind == b.kind && (!count_parts(e, &a, at) || !count_parts(e, &b, at)))
		return val_error();
	if ((op == OP_IS || op == OP_IS_NOT) && b.kind == V_NONE && host_is_something(&a))
		return val_bool(op == OP_IS_NOT);
	struct val r;
	if ((a.kind == V_OBJECT || b.kind == V_OBJECT) && object_operator(e, op, a, b, at, &r))
		return r;
	if (a.kind == V_HOST || b.kind == V_HOST)
		return eval_error(e, E_HOST_VALUE, at, a.kind == V_HOST ? a.text : b.text);
	if (op == OP_IS || op == OP_IS_NOT)
		return val_bool((a.kind == b.kind && val_equal(&a, &b)) == (op == OP_IS));
	if (op == OP_IN || op == OP_NOT_IN) {
		if (b.kind == V_DICT)
			return val_bool((dict_find(&b, &a) != NULL) == (op == OP_IN));
		if (b.kind == V_STR && a.kind == V_STR)
			return val_bool((strstr(b.text, a.text) != NULL) == (op == OP_IN));
		if (b.kind != V_TUPLE)
			return eval_error(e, E_OPERAND, at, operator_text(op), describe(e, &b));
		bool found = false;
		a = known_numbers(e, a);
		b = known_numbers(e, b);
		for (u32 i = 0; i < b.nitems && !found; i++) {
			if (undecided(&a, &b.items[i]))
				return undecided_error(e, op, a.kind == V_TENSOR ? &a : &b, at);
			found = val_equal(&a, &b.items[i]);
		}
		return val_bool(found == (op == OP_IN));
	}
	if (a.kind == V_TUPLE && b.kind == V_TUPLE) {
		a = known_numbers(e, a);
		b = known_numbers(e, b);
		if ((op == OP_EQ || op == OP_NE) && undecided(&a, &b))
			return undecided_error(e, op, &a, at);
	}
	bool run_time = a.kind == V_TENSOR || b.kind == V_TENSOR;
	if (run_time && (a.kind == V_NONE || b.kind == V_NONE || a.kind == V_STR || b.kind == V_STR) &&
	    (op == OP_EQ || op == OP_NE))
		return val_bool(op == OP_NE); /* no other value equals None */
	return run_time ? compare_op(e, op, a, b, at) : compare_constants(e, op, a, b, at);
}

/* The operands of `and`, `or` and chained comparisons that follow a run-time operand, which Python evaluates
 * conditionally. They form a region. Compile-time values (strings, types, lists) that ':=' assigns there are unset
 * afterwards. */
struct operands {
	u32 region;
	bool sometimes;
	scope before;
};

static void begin_operands(struct eval *e, struct operands *o)
{
	if (o->sometimes)
		return;
	o->sometimes = true;
	o->region = enter_region(e);
	if (e->frame->func->has_named_exprs)
		o->before = copy_scope(e, &e->frame->vars);
}

static void end_operands(struct eval *e, const struct operands *o)
{
	if (!o->sometimes)
		return;
	leave_region(e, o->region);
	if (e->frame->func->has_named_exprs)
		forget_assigned(e, &o->before, true, "':=' assigns it after a run-time operand");
}

static struct val compare_chain(struct eval *e, const struct expr *x, struct operands *o)
{
	struct val left = eval_expr(e, x->items[0]), all = val_bool(true);
	for (u32 i = 1; i < x->nitems; i++) {
		if (all.kind == V_TENSOR)
			begin_operands(e, o);
		struct val right = eval_expr(e, x->items[i]);
		struct loc at = loc_join(x->items[i - 1]->loc, x->items[i]->loc);
		struct val r = compare_values(e, x->ops[i - 1], left, right, at);
		if (r.kind == V_ERROR)
			return r;
		if (r.kind == V_BOOL && !r.boolean)
			return r;
		all = all.kind == V_BOOL ? r : r.kind == V_BOOL ? all : logical_op(e, true, all, r, x->loc);
		left = right;
	}
	return all;
}

static struct val eval_compare(struct eval *e, const struct expr *x)
{
	struct operands o = {0};
	struct val v = compare_chain(e, x, &o);
	end_operands(e, &o);
	return v;
}

int truth(struct eval *e, struct val v, struct loc at, struct value **cond)
{
	switch (v.kind) {
	case V_ERROR: return -2;
	case V_NONE: return 0;
	case V_BOOL: return v.boolean;
	case V_INT: return v.integer != 0;
	case V_FLOAT: return v.real != 0;
	case V_STR: return v.len != 0;
	case V_TUPLE:
	case V_DICT: return v.nitems != 0;
	case V_TENSOR: break;
	case V_HOST:
		if (host_is_something(&v))
			return 1;
		eval_error(e, E_HOST_VALUE, at, v.text);
		return -2;
	default: return 1;
	}
	if (is_tile(&v)) {
		if (type_numel(v.ssa->type) != 1) {
			eval_error(e, E_TILE_CONDITION, at, describe_type(e, &v));
			return -2;
		}
		v.ssa = build1(&e->b, IR_UNSPLAT, v.ssa->type->elem, v.ssa);
	}
	v = cast_to(e, v, DT_I1, ROUND_DEFAULT, at);
	if (v.kind == V_ERROR)
		return -2;
	*cond = v.ssa;
	return -1;
}

/* Evaluates `and` / `or`: constants short-circuit, run-time values are combined. */
static struct val logical_operands(struct eval *e, const struct expr *x, struct operands *o)
{
	bool is_and = x->kind == EX_AND;
	struct val acc = val_none(), last = val_none();
	bool have = false;
	for (u32 i = 0; i < x->nitems; i++) {
		last = eval_expr(e, x->items[i]);
		if (last.kind == V_ERROR)
			return last;
		if (last.kind != V_TENSOR) {
			struct value *unused;
			if (truth(e, last, x->items[i]->loc, &unused) != is_and)
				return last;
			continue;
		}
		acc = have ? logical_op(e, is_and, acc, last, x->loc) : last;
		have = true;
		begin_operands(e, o);
		if (acc.kind == V_ERROR)
			return acc;
	}
	return have ? acc : last;
}

static struct val eval_logical(struct eval *e, const struct expr *x)
{
	struct operands o = {0};
	struct val v = logical_operands(e, x, &o);
	end_operands(e, &o);
	return v;
}

static struct val eval_unary(struct eval *e, const struct expr *x)
{
	struct val a = eval_expr(e, x->a);
	if (a.kind == V_TENSOR || a.kind == V_ERROR)
		return unary_op(e, x->op, a, x->loc);
	if (x->op == OP_NOT) {
		struct value *unused;
		int t = truth(e, a, x->loc, &unused);
		return t < 0 ? val_error() : val_bool(!t);
	}
	if (!val_is_number(&a) || (x->op == OP_INVERT && a.kind == V_FLOAT))
		return eval_error(e, E_OPERAND, x->loc, operator_text(x->op), describe(e, &a));
	if (a.kind == V_FLOAT)
		return x->op == OP_NEG ? val_float(-a.real) : a;
	return val_int(x->op == OP_NEG ? -int_of(&a) : x->op == OP_INVERT ? ~int_of(&a) : int_of(&a));
}

struct val bi_operator(struct eval *e, const struct args *a)
{
	return binary_values(e, (enum operator)a->b->code, a->at[0], a->at[1], a->loc[0]);
}

struct val bi_logical(struct eval *e, const struct args *a)
{
	return logical_op(e, a->b->code, a->at[0], a->at[1], a->loc[0]);
}

/* --- by kind of expression
 * --------------------------------------------------------------------------------------------- */

static struct val eval_tuple(struct eval *e, const struct expr *x)
{
	struct val *items = arena_array(e->arena, struct val, x->nitems);
	for (u32 i = 0; i < x->nitems; i++) {
		items[i] = eval_expr(e, x->items[i]);
		if (items[i].kind == V_ERROR)
			return val_error();
	}
	struct val v = val_tuple(items, x->nitems);
	v.kind = x->kind == EX_DICT ? V_DICT : V_TUPLE;
	v.list = x->kind == EX_TUPLE ? LIST_NOT : LIST_OWNED;
	return v;
}

/* A slice in the index of a tile. It takes the whole dimension, so its bounds must be None. */
static struct val eval_slice(struct eval *e, const struct expr *x)
{
	const struct expr *bounds[] = {x->a, x->b, x->c};
	for (u32 i = 0; i < ARRAY_LEN(bounds); i++) {
		struct val v = bounds[i] ? eval_expr(e, bounds[i]) : val_none();
		if (v.kind == V_ERROR)
			return v;
		if (v.kind != V_NONE)
			return eval_error(e, E_TILE_INDEX, x->loc, "a slice with bounds");
	}
	return (struct val){.kind = V_SLICE};
}

static struct val eval_node(struct eval *e, const struct expr *x)
{
	switch (x->kind) {
	case EX_NAME: return eval_name(e, x->name, x->loc);
	case EX_INT: return x->too_big ? eval_error(e, E_INT_TOO_BIG, x->loc) : val_int(x->integer);
	case EX_FLOAT: return val_float(x->real);
	case EX_STR: return val_str(x->text, x->text_len);
	case EX_FSTR: return eval_fstring(e, x);
	case EX_NONE: return val_none();
	case EX_TRUE: return val_bool(true);
	case EX_FALSE: return val_bool(false);
	case EX_ELLIPSIS: return (struct val){.kind = V_ELLIPSIS};
	case EX_TUPLE:
	case EX_LIST:
	case EX_DICT: return eval_tuple(e, x);
	case EX_ATTR: return eval_attribute(e, x);
	case EX_SUBSCRIPT: return eval_subscript(e, x);
	case EX_SLICE: return eval_slice(e, x);
	case EX_CALL: return eval_call(e, x);
	case EX_STAR: return eval_error(e, E_STAR, x->loc);
	case EX_UNARY: return eval_unary(e, x);
	case EX_BINARY: {
		struct val a = eval_expr(e, x->a), b = eval_expr(e, x->b);
		e->b.loc = user_loc(e, x->loc);
		return binary_values(e, x->op, a, b, x->loc);
	}
	case EX_AND:
	case EX_OR: return eval_logical(e, x);
	case EX_COMPARE: return eval_compare(e, x);
	case EX_IFEXP: return eval_ternary(e, x, true);
	case EX_NAMED:
		assign(e, x->a, eval_expr(e, x->b), x->b->loc);
		return eval_name(e, x->a->name, x->a->loc);
	case EX_COMPREHENSION: return eval_comprehension(e, x);
	case EX_FOR:
	case EX_IF: break;
	case EX_LAMBDA:
		if (!e->host)
			return unsupported_syntax(e, "lambda", x->loc);
		x->func->module = e->frame->func->module; /* a separately parsed expression has no module */
		return (struct val){.kind = V_FUNC, .func = x->func};
	}
	tl_unreachable("expression kind");
}

struct val eval_expr(struct eval *e, const struct expr *x)
{
	if (!step(e, x->loc))
		return val_error();
	if (++e->nesting > MAX_NESTING) {
		e->stopped = true;
		return eval_error(e, E_NESTED_TOO_DEEP, x->loc);
	}
	struct val v = eval_node(e, x);
	e->nesting--;
	return v;
}

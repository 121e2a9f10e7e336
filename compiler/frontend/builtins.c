/* The registry of builtins, and the builtins that create, reshape and inspect values. builtins_tile.c has the builtins
 * that compute, builtins_checks.c the hints and assertions. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "frontend/builtin_args.h"
#include "ir/text.h"

/* --- registry ------------------------------------------------------------------------------------------------ */

typedef struct val handler(struct eval *e, const struct args *a);
#define B(ns, name, method, run, code, signature) handler run;
#include "frontend/builtins.def"
#undef B

static const struct builtin table[] = {
#define B(ns, name, method, run, code, signature) {name, signature, run, code, method, NS_##ns},
#include "frontend/builtins.def"
#undef B
};

/* The namespace that defines the members of s. tl.math repeats the elementwise functions of tl. */
static enum namespace_ defining_namespace(enum namespace_ s)
{
	return s == NS_MATH ? NS_TL : s;
}

const struct builtin *builtin_find(enum namespace_ s, const char *name, size_t len)
{
	for (u32 i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].namespace_ == defining_namespace(s) && strlen(table[i].name) == len &&
		    !memcmp(table[i].name, name, len))
			return &table[i];
	return NULL;
}

u32 builtin_names(enum namespace_ s, const char **out, u32 max)
{
	u32 n = 0;
	for (u32 i = 0; i < ARRAY_LEN(table) && n < max; i++)
		if (table[i].namespace_ == defining_namespace(s) && table[i].name[0] != '_')
			out[n++] = table[i].name;
	for (int d = 0; d < DT_COUNT && s == NS_TL && n < max; d++)
		out[n++] = dtype_tl_name((enum dtype)d);
	return n;
}

void builtin_each(void (*each)(void *arg, const struct builtin *b), void *arg)
{
	for (u32 i = 0; i < ARRAY_LEN(table); i++)
		each(arg, &table[i]);
}

/* --- arguments ----------------------------------------------------------------------------------------------- */

const char *arg_name(struct eval *e, const struct args *a, u32 i)
{
	const char *s = a->b->signature;
	for (; i; i--)
		s = strchr(s, ',') + 1;
	s += *s == '*';
	return arena_str(e->arena, s, strcspn(s, ",="));
}

/* The name of the callee for messages: the library function that the user called (sum), not the builtin inside it. */
static const char *callee(const struct eval *e, const struct args *a)
{
	const char *name = a->b->name;
	for (const struct frame *f = e->frame; f && f->func->module->is_library; f = f->caller)
		name = f->func->name[0] == '_' ? name : f->func->name;
	return name;
}

struct val wrong_kind(struct eval *e, const struct args *a, u32 i, const char *wanted)
{
	return eval_error(e, E_ARG_KIND, a->loc[i], arg_name(e, a, i), callee(e, a), wanted, describe(e, &a->at[i]));
}

/* Reports a run-time value v where a compile-time value is required. */
static void not_constexpr(struct eval *e, const struct args *a, u32 i, const struct val *v)
{
	eval_error(e, E_ARG_NOT_CONSTEXPR, a->loc[i], arg_name(e, a, i), callee(e, a), describe(e, v));
	const struct frame *f = e->frame;
	while (f->func->module->is_library && f->caller)
		f = f->caller;
	bool extremum = !strcmp(callee(e, a), "max") || !strcmp(callee(e, a), "min");
	if (extremum && !strcmp(arg_name(e, a, i), "axis"))
		diag_hint(e->diags, "tl.maximum(x, y) and tl.minimum(x, y) compare two values");
	for (u32 k = 0; k < f->func->nparams; k++)
		if (v->kind == V_TENSOR && !v->ssa->def && v->ssa->name == f->func->params[k].name) {
			diag_hint(e->diags, "make the parameter a constexpr: `%s: tl.constexpr`%s", v->ssa->name,
				  f->caller ? "" : ", and pass its value with -D");
			return;
		}
	diag_hint(e->diags, "make it a parameter `x: tl.constexpr` or a variable `x: tl.constexpr = …`; a variable "
			    "that a loop or a run-time `if` assigns has a run-time value");
}

bool arg_int(struct eval *e, const struct args *a, u32 i, i64 *out)
{
	const struct val *v = &a->at[i], n = known_number(*v);
	if (n.kind == V_INT && n.integer >= INT64_MIN && n.integer <= INT64_MAX) {
		*out = (i64)n.integer;
		return true;
	}
	if (v->kind == V_TENSOR) {
		not_constexpr(e, a, i, v);
		return false;
	}
	wrong_kind(e, a, i, "an integer");
	advise_value(e, v);
	return false;
}

bool arg_bool(struct eval *e, const struct args *a, u32 i, bool *out)
{
	struct value *cond;
	struct val v = known_number(a->at[i]);
	if (v.kind == V_TENSOR) {
		not_constexpr(e, a, i, &v);
		return false;
	}
	*out = truth(e, v, a->loc[i], &cond) == 1;
	return true;
}

bool arg_type(struct eval *e, const struct args *a, u32 i, struct val *out)
{
	*out = a->at[i];
	if (out->kind == V_STR) {
		enum dtype d = dtype_parse(out->text, out->len);
		if (d != DT_COUNT)
			*out = val_dtype(d);
	}
	if (out->kind == V_TYPE && !dtype_has_values(out->dtype)) {
		*out = eval_error(e, E_FP8_FORMAT, a->loc[i], dtype_name(out->dtype));
		return false;
	}
	if (out->kind == V_TYPE) {
		out->nitems = 0;
		out->to_block = false;
		return true;
	}
	*out = wrong_kind(e, a, i, "a dtype such as tl.float16");
	advise_value(e, &a->at[i]);
	return false;
}

bool arg_tensor(struct eval *e, const struct args *a, u32 i, struct val *out)
{
	if (a->at[i].kind != V_TENSOR && !val_is_number(&a->at[i])) {
		*out = wrong_kind(e, a, i, "a tile or a number");
		advise_value(e, &a->at[i]);
		return false;
	}
	*out = to_tensor(e, a->at[i], a->loc[i]);
	return out->kind != V_ERROR;
}

bool arg_tile(struct eval *e, const struct args *a, u32 i, struct val *out)
{
	*out = a->at[i];
	if (is_tile(out))
		return true;
	*out = wrong_kind(e, a, i, "a tile");
	return false;
}

bool arg_shape(struct eval *e, const struct args *a, u32 i, int *rank, i32 *shape)
{
	const struct val *v = &a->at[i];
	if (v->kind == V_TUPLE && v->nitems == 1 && v->items[0].kind == V_TUPLE)
		v = &v->items[0];
	u32 n;
	const struct val *items = items_of(v, &n);
	i64 numel = 1;
	if (n > MAX_RANK) {
		eval_error(e, E_RANK, a->loc[i], n);
		return false;
	}
	for (u32 k = 0; k < n; k++) {
		struct val size = known_number(items[k]);
		if (size.kind == V_TENSOR) {
			eval_error(e, E_SHAPE_NOT_CONSTEXPR, a->loc[i], describe(e, &size));
			return false;
		}
		if (size.kind != V_INT || size.integer < 1 || size.integer > IR_MAX_NUMEL ||
		    !is_pow2((i64)size.integer)) {
			eval_error(e, E_SHAPE_POW2, a->loc[i], describe(e, &size));
			advise_value(e, &size);
			return false;
		}
		shape[k] = (i32)size.integer;
		numel *= shape[k];
		if (numel > IR_MAX_NUMEL) {
			eval_error(e, E_TILE_TOO_BIG, a->loc[i], (long long)numel);
			return false;
		}
	}
	*rank = (int)n;
	return true;
}

bool arg_axis(struct eval *e, const struct args *a, u32 i, int rank, int *axis)
{
	i64 n;
	if (a->at[i].kind == V_FLOAT) {
		wrong_kind(e, a, i, "an integer");
		diag_hint(e->diags, "tl.maximum(x, y) and tl.minimum(x, y) compare two values");
		return false;
	}
	if (!arg_int(e, a, i, &n))
		return false;
	if (n < -rank || n >= rank) {
		eval_error(e, E_AXIS, a->loc[i], (long long)n, rank);
		return false;
	}
	*axis = (int)(n < 0 ? n + rank : n);
	return true;
}

bool arg_choice(struct eval *e, const struct args *a, u32 i, const char *const *names, i64 *out)
{
	const struct val *v = &a->at[i];
	struct strbuf sb = {.arena = e->arena};
	*out = 0;
	if (v->kind == V_NONE || (v->kind == V_STR && !v->len))
		return true;
	for (int k = 0; names[k]; k++) {
		if (v->kind == V_STR && !strcmp(names[k], v->text)) {
			*out = k;
			return true;
		}
		if (names[k][0])
			sb_printf(&sb, "%s'%s'", sb.len ? ", " : "", names[k]);
	}
	eval_error(e, E_ARG_CHOICE, a->loc[i], arg_name(e, a, i), callee(e, a), describe(e, v));
	diag_hint(e->diags, "one of %s", sb.at);
	return false;
}

void remark_no_effect(struct eval *e, const struct args *a, u32 i)
{
	if (e->remarks)
		diag(e->diags, R_NO_EFFECT, user_loc(e, a->loc[i]), arg_name(e, a, i), callee(e, a));
}

/* --- program and tiles --------------------------------------------------------------------------------------- */

struct val bi_program(struct eval *e, const struct args *a)
{
	i64 axis;
	if (!arg_int(e, a, 0, &axis))
		return val_error();
	if (axis < 0 || axis > 2)
		return eval_error(e, E_PROGRAM_AXIS, a->loc[0], (long long)axis);
	struct value *v = build1(&e->b, (enum opcode)a->b->code, type_scalar(e->ctx, DT_I32), NULL);
	v->def->attr[ATTR_AXIS] = axis;
	return val_tensor(v, DT_I32, 0);
}

struct val bi_arange(struct eval *e, const struct args *a)
{
	i64 start, end;
	if (!arg_int(e, a, 0, &start) || !arg_int(e, a, 1, &end))
		return val_error();
	if (start < INT32_MIN || end > INT32_MAX)
		return eval_error(e, E_INT_TOO_BIG, a->loc[1]);
	if (end <= start)
		return eval_error(e, E_ARANGE_EMPTY, a->loc[1], (long long)start, (long long)end);
	if (!is_pow2(end - start)) {
		struct val v = eval_error(e, E_ARANGE_POW2, a->loc[1], (long long)(end - start));
		diag_hint(e->diags, "use %lld and mask off the elements past %lld", 2ll << ilog2((u64)(end - start)),
			  (long long)end);
		return v;
	}
	if (end - start > IR_MAX_NUMEL)
		return eval_error(e, E_TILE_TOO_BIG, a->loc[1], (long long)(end - start));
	i32 n = (i32)(end - start);
	struct value *v = build1(&e->b, IR_MAKE_RANGE, type_tensor(e->ctx, type_scalar(e->ctx, DT_I32), 1, &n), NULL);
	v->def->attr[ATTR_START] = start;
	v->def->attr[ATTR_END] = end;
	return val_tensor(v, DT_I32, 0);
}

struct val bi_full(struct eval *e, const struct args *a)
{
	i32 shape[MAX_RANK];
	int rank;
	struct val type, v = a->at[1];
	if (!arg_shape(e, a, 0, &rank, shape) || !arg_type(e, a, 2, &type))
		return val_error();
	if (type.pointers)
		return wrong_kind(e, a, 2, "a number's dtype");
	if (is_tile(&v)) {
		if (type_numel(v.ssa->type) != 1)
			return wrong_kind(e, a, 1, "a scalar");
		v.ssa = build1(&e->b, IR_UNSPLAT, v.ssa->type->elem, v.ssa);
	}
	if (!val_is_number(&v) && v.kind != V_TENSOR)
		return wrong_kind(e, a, 1, "a number");
	if (v.kind != V_TENSOR && !number_fits(&v, type.dtype))
		return eval_error(e, E_VALUE_RANGE, a->loc[1], describe(e, &v), dtype_name(type.dtype));
	v = v.kind == V_TENSOR ? cast_to(e, v, type.dtype, ROUND_DEFAULT, a->loc[1]) : const_tensor(e, v, type.dtype);
	return v.kind == V_ERROR ? v : broadcast_to(e, v, rank, shape, a->loc[0]);
}

/* --- shapes -------------------------------------------------------------------------------------------------- */

struct val bi_expand_dims(struct eval *e, const struct args *a)
{
	struct val v, axes = a->at[1];
	if (!arg_tensor(e, a, 0, &v))
		return val_error();
	u32 n;
	const struct val *items = items_of(&axes, &n);
	int rank = v.ssa->type->rank + (int)n, at[MAX_RANK];
	if (rank > MAX_RANK)
		return eval_error(e, E_RANK, a->loc[1], (u32)rank);
	for (u32 i = 0; i < n; i++) {
		struct args one = {.b = a->b, .at = (struct val[]){v, items[i]}, .loc = a->loc, .n = 2};
		if (!arg_axis(e, &one, 1, rank, &at[i]))
			return val_error();
		for (u32 k = 0; k < i; k++)
			if (at[k] == at[i])
				return eval_error(e, E_REPEATED_AXIS, a->loc[1], at[i]);
	}
	for (int axis = 0; axis < rank; axis++)
		for (u32 i = 0; i < n; i++)
			if (at[i] == axis) {
				v = expand_dim(e, v, axis);
				break;
			}
	return v;
}

struct val bi_broadcast_to(struct eval *e, const struct args *a)
{
	i32 shape[MAX_RANK];
	int rank;
	struct val v;
	if (!arg_tensor(e, a, 0, &v) || !arg_shape(e, a, 1, &rank, shape))
		return val_error();
	while (is_tile(&v) && v.ssa->type->rank < rank)
		v = expand_dim(e, v, 0);
	return broadcast_to(e, v, rank, shape, a->loc[0]);
}

struct val bi_broadcast(struct eval *e, const struct args *a)
{
	struct val pair[2];
	if (!arg_tensor(e, a, 0, &pair[0]) || !arg_tensor(e, a, 1, &pair[1]) ||
	    !broadcast_pair(e, &pair[0], &pair[1], a->loc[0]))
		return val_error();
	return val_tuple(arena_dup(e->arena, pair, sizeof pair), 2);
}

struct val bi_reshape(struct eval *e, const struct args *a)
{
	i32 shape[MAX_RANK];
	int rank;
	bool reorder;
	struct val v;
	if (!arg_tensor(e, a, 0, &v) || !arg_shape(e, a, 1, &rank, shape) || !arg_bool(e, a, 2, &reorder))
		return val_error();
	if (!is_tile(&v))
		return broadcast_to(e, v, rank, shape, a->loc[0]);
	const struct type *t = v.ssa->type, *to = rank ? type_tensor(e->ctx, t->elem, rank, shape) : t->elem;
	if (type_numel(t) != (rank ? type_numel(to) : 1)) {
		struct val want = v;
		want.ssa = &(struct value){.type = to};
		return eval_error(e, E_RESHAPE, a->loc[1], describe_type(e, &v), (long long)type_numel(t),
				  describe_type(e, &want), (long long)(rank ? type_numel(to) : 1));
	}
	if (to == t)
		return v;
	v.ssa = build1(&e->b, rank ? IR_RESHAPE : IR_UNSPLAT, to, v.ssa);
	if (rank)
		v.ssa->def->attr[0] = reorder;
	return v;
}

struct val bi_trans(struct eval *e, const struct args *a)
{
	struct val v, dims = a->at[1];
	int perm[MAX_RANK];
	if (!arg_tile(e, a, 0, &v))
		return v;
	const struct type *t = v.ssa->type;
	if (dims.kind == V_TUPLE && dims.nitems == 1 && dims.items[0].kind == V_TUPLE)
		dims = dims.items[0];
	u32 n, seen = 0;
	const struct val *items = items_of(&dims, &n);
	if (dims.kind == V_TUPLE && !n && !a->b->code) { /* trans without dims swaps the last two dimensions */
		if (t->rank < 2)
			return eval_error(e, E_TRANSPOSE_RANK, a->loc[0], describe_type(e, &v));
		for (int i = 0; i < t->rank; i++)
			perm[i] = i;
		perm[t->rank - 2] = t->rank - 1;
		perm[t->rank - 1] = t->rank - 2;
	} else {
		bool ok = (int)n == t->rank;
		for (u32 i = 0; ok && i < n; i++) {
			const struct val d = known_number(items[i]);
			i64 k = d.kind == V_INT ? (i64)d.integer : -99;
			k = k < 0 ? k + t->rank : k;
			ok = k >= 0 && k < t->rank && !(seen >> k & 1);
			if (ok) {
				seen |= 1u << k;
				perm[i] = (int)k;
			}
		}
		if (!ok)
			return eval_error(e, E_PERMUTATION, a->loc[1], t->rank - 1, describe_type(e, &v));
	}
	i32 shape[MAX_RANK];
	for (int i = 0; i < t->rank; i++)
		shape[i] = t->shape[perm[i]];
	v.ssa = build1(&e->b, IR_TRANS, type_tensor(e->ctx, t->elem, t->rank, shape), v.ssa);
	v.ssa->def->attr[ATTR_ORDER] = perm_pack(perm, t->rank);
	return v;
}

struct val bi_item(struct eval *e, const struct args *a)
{
	struct val v;
	if (!arg_tensor(e, a, 0, &v) || !is_tile(&v))
		return v;
	if (type_numel(v.ssa->type) != 1)
		return wrong_kind(e, a, 0, "a tile of one element");
	v.ssa = build1(&e->b, IR_UNSPLAT, v.ssa->type->elem, v.ssa);
	return v;
}

struct val bi_join(struct eval *e, const struct args *a)
{
	struct val x, y;
	if (!arg_tensor(e, a, 0, &x) || !arg_tensor(e, a, 1, &y))
		return val_error();
	/* integers of equal width are joined without conversion, with the signedness of the first */
	bool signs = dtype_is_int(x.dtype) && dtype_is_int(y.dtype) && dtype_bits(x.dtype) == dtype_bits(y.dtype);
	if ((x.dtype != y.dtype && !(signs && !x.pointers)) || x.pointers != y.pointers)
		return eval_error(e, E_OPERAND_TYPES, a->loc[1], "join", describe_type(e, &x), describe_type(e, &y));
	if (!broadcast_pair(e, &x, &y, a->loc[0]))
		return val_error();
	if (!is_tile(&x)) {
		x = expand_dim(e, x, 0);
		y = expand_dim(e, y, 0);
		struct val pair = {.kind = V_TENSOR};
		i32 shape[] = {1, 2}, flat = 2;
		pair.ssa = build2(&e->b, IR_JOIN, type_tensor(e->ctx, x.ssa->type->elem, 2, shape), x.ssa, y.ssa);
		x.ssa = build1(&e->b, IR_RESHAPE, type_tensor(e->ctx, x.ssa->type->elem, 1, &flat), pair.ssa);
		return x;
	}
	const struct type *t = x.ssa->type;
	i32 shape[MAX_RANK];
	if (t->rank == MAX_RANK)
		return eval_error(e, E_RANK, a->loc[0], MAX_RANK + 1u);
	memcpy(shape, t->shape, sizeof shape);
	shape[t->rank] = 2;
	x.ssa = build2(&e->b, IR_JOIN, type_tensor(e->ctx, t->elem, t->rank + 1, shape), x.ssa, y.ssa);
	return x;
}

struct val bi_split(struct eval *e, const struct args *a)
{
	struct val v;
	if (!arg_tile(e, a, 0, &v))
		return v;
	const struct type *t = v.ssa->type;
	if (t->shape[t->rank - 1] != 2)
		return eval_error(e, E_SPLIT, a->loc[0], describe_type(e, &v));
	if (t->rank == 1) { /* split a tile of two elements through a 1×2 tile */
		v = expand_dim(e, v, 0);
		t = v.ssa->type;
	}
	const struct type *half = type_tensor(e->ctx, t->elem, t->rank - 1, t->shape), *two[] = {half, half};
	struct op *o = build(&e->b, IR_SPLIT, &v.ssa, 1, two, 2, 0);
	struct val *pair = arena_array(e->arena, struct val, 2);
	for (int i = 0; i < 2; i++) {
		pair[i] = v;
		pair[i].ssa = &o->results[i];
		if (a->at[0].ssa->type->rank == 1)
			pair[i].ssa = build1(&e->b, IR_UNSPLAT, t->elem, pair[i].ssa);
	}
	return val_tuple(pair, 2);
}

struct val bi_cast(struct eval *e, const struct args *a)
{
	struct val v, type;
	i64 rounding;
	bool bitcast;
	if (!arg_tensor(e, a, 0, &v) || !arg_type(e, a, 1, &type) ||
	    !arg_choice(e, a, 2, attr_enum(KIND_rounding), &rounding) || !arg_bool(e, a, 3, &bitcast))
		return val_error();
	if (bitcast || type.pointers)
		return bitcast_to(e, v, type, a->loc[0]);
	return cast_to(e, v, type.dtype, (enum rounding)rounding, a->loc[0]);
}

/* --- compile-time values ------------------------------------------------------------------------------------- */

/* An optional integer argument of tl.range; 0 if absent. */
static bool range_option(struct eval *e, const struct args *a, u32 i, i64 *out)
{
	*out = 0;
	return a->at[i].kind == V_NONE || arg_int(e, a, i, out);
}

/* Reads the options of tl.range. disallow_acc_multi_buffer and disable_licm have no effect. */
static bool range_options(struct eval *e, const struct args *a, struct loop_range *r)
{
	bool single_buffer, stay;
	if (!range_option(e, a, 3, &r->num_stages) || !range_option(e, a, 4, &r->unroll) ||
	    !arg_bool(e, a, 5, &single_buffer) || !arg_bool(e, a, 6, &r->flatten) ||
	    !arg_bool(e, a, 7, &r->warp_specialize) || !arg_bool(e, a, 8, &stay))
		return false;
	if (single_buffer)
		remark_no_effect(e, a, 5);
	if (stay)
		remark_no_effect(e, a, 8);
	return true;
}

struct val bi_range(struct eval *e, const struct args *a)
{
	struct loop_range *r = arena_new(e->arena, struct loop_range);
	r->is_static = a->b->code == 1;
	bool two = a->at[1].kind != V_NONE;
	r->start = two ? a->at[0] : val_int(0);
	r->end = two ? a->at[1] : a->at[0];
	r->step = a->at[2].kind == V_NONE ? val_int(1) : a->at[2];
	for (u32 i = 0; i < 3 && r->is_static; i++) {
		struct val *v = i == 0 ? &r->start : i == 1 ? &r->end : &r->step;
		*v = known_number(*v);
		if (v->kind == V_TENSOR)
			return eval_error(e, E_STATIC_RANGE, a->loc[MIN(i, a->n - 1)]);
	}
	if (a->n > 3 && !range_options(e, a, r))
		return val_error();
	if (r->num_stages < 0 || r->num_stages > 64)
		return eval_error(e, E_NUM_STAGES, a->loc[3], (long long)r->num_stages);
	if (r->unroll < 0 || r->unroll > INT32_MAX)
		return eval_error(e, E_UNROLL_FACTOR, a->loc[4], (long long)r->unroll);
	return (struct val){.kind = V_RANGE, .range = r};
}

/* tl.condition: the condition of a `while` with options. */
struct val bi_condition(struct eval *e, const struct args *a)
{
	bool stay;
	if (!arg_bool(e, a, 1, &stay))
		return val_error();
	if (stay)
		remark_no_effect(e, a, 1);
	return a->at[0];
}

/* True if v is NaN or -0.0: the minimum or maximum of such constants depends on the order of the comparisons. */
static bool is_unordered(const struct val *v)
{
	return v->kind == V_FLOAT && (isnan(v->real) || (v->real == 0 && signbit(v->real)));
}

struct val bi_python_minmax(struct eval *e, const struct args *a)
{
	struct val values = a->at[0];
	bool sequence = values.nitems == 1 && sequence_items(e, &values.items[0], &values), numbers = true;
	const struct val *items = values.items;
	u32 n = values.nitems;
	for (u32 i = 0; i < n; i++)
		numbers &= val_is_number(&items[i]) || items[i].kind == V_TENSOR;
	if (a->at[1].nitems || (sequence && n && (n == 1 || !numbers)) || (n > 1 && items[0].kind == V_STR))
		return extreme_value(e, items, n, &a->at[1], a->b->code, a->loc[0]);
	if (n < 2)
		return eval_error(e, E_MINMAX_COUNT, a->loc[0], a->b->name);
	struct val best = items[0];
	for (u32 i = 1; i < n; i++) {
		struct val pair[2] = {best, items[i]};
		if (best.kind == V_TENSOR || items[i].kind == V_TENSOR) {
			best = call_std(e, a->b->code ? "maximum" : "minimum", pair, 2);
		} else if (is_unordered(&best) || is_unordered(&items[i])) {
			return eval_error(e, E_MINMAX_CONSTANT, a->loc[0], a->b->name);
		} else if (!val_is_number(&best) || !val_is_number(&items[i])) {
			return eval_error(e, E_ARG_KIND, a->loc[0], "values", a->b->name, "numbers",
					  describe(e, val_is_number(&best) ? &items[i] : &best));
		} else if (a->b->code ? double_of(&items[i]) > double_of(&best)
				      : double_of(&items[i]) < double_of(&best)) {
			best = items[i];
		}
	}
	return best;
}

struct val bi_python_abs(struct eval *e, const struct args *a)
{
	struct val v = a->at[0];
	if (v.kind == V_TENSOR)
		return call_std(e, "abs", &v, 1);
	if (!val_is_number(&v))
		return wrong_kind(e, a, 0, "a number");
	if (v.kind == V_FLOAT)
		return val_float(fabs(v.real));
	i128 n = int_of(&v);
	return val_int(n < 0 ? -n : n);
}

struct val bi_python_float(struct eval *e, const struct args *a)
{
	const struct val *v = &a->at[0];
	if (val_is_number(v))
		return val_float(double_of(v));
	if (v->kind == V_STR) { /* Python accepts neither hexadecimal floats nor nan(…) */
		char *end;
		double d = strtod(v->text, &end);
		if (end > v->text && !*(end + strspn(end, " ")) && !strpbrk(v->text, "xXpP("))
			return val_float(d);
	}
	struct val r = wrong_kind(e, a, 0, "a compile-time number or text such as '-1e8', 'inf', 'nan'");
	if (v->kind == V_TENSOR)
		diag_hint(e->diags, "use x.to(tl.float32) for a run-time value");
	return r;
}

struct val bi_python_int(struct eval *e, const struct args *a)
{
	const struct val *v = &a->at[0];
	if (v->kind == V_FLOAT && fabs(v->real) < 0x1p100)
		return val_int((i128)v->real);
	if (v->kind == V_INT || v->kind == V_BOOL)
		return val_int(int_of(v));
	if (v->kind == V_STR && v->len && a->at[1].kind == V_INT && a->at[1].integer >= 0 && a->at[1].integer <= 36) {
		char *end;
		errno = 0;
		long long n = strtoll(v->text, &end, (int)a->at[1].integer);
		if (!errno && end > v->text && !*(end + strspn(end, " \t\n")))
			return val_int(n);
	}
	struct val r = wrong_kind(e, a, 0, "a compile-time number");
	if (v->kind == V_TENSOR)
		diag_hint(e->diags, "use x.to(tl.int32) for a run-time value");
	return r;
}

struct val bi_python_str(struct eval *e, const struct args *a)
{
	struct strbuf sb = {.arena = e->arena};
	if (a->at[0].kind == V_TENSOR)
		return wrong_kind(e, a, 0, "a compile-time value");
	sb_puts(&sb, "");
	if (!count_parts(e, &a->at[0], a->loc[0]))
		return val_error();
	print_val(&sb, &a->at[0]);
	return count_text(e, sb.len, a->loc[0]) ? val_str(sb.at, sb.len) : val_error();
}

struct val bi_python_bool(struct eval *e, const struct args *a)
{
	bool b;
	return arg_bool(e, a, 0, &b) ? val_bool(b) : val_error();
}

struct val bi_python_len(struct eval *e, const struct args *a)
{
	const struct val *v = &a->at[0];
	if (v->kind == V_TUPLE)
		return val_int(v->nitems);
	if (v->kind == V_DICT)
		return val_int(v->nitems / 2);
	if (v->kind == V_STR)
		return val_int(v->len);
	if (is_tile(v))
		return val_int(v->ssa->type->shape[0]);
	wrong_kind(e, a, 0, "a tuple or a tile");
	if (v->kind == V_TENSOR && v->pointers)
		diag_hint(e->diags, "a kernel gets the address of a tensor only: pass its sizes as parameters");
	return val_error();
}

struct val bi_next_power_of_2(struct eval *e, const struct args *a)
{
	i64 n;
	if (!arg_int(e, a, 0, &n))
		return val_error();
	if (n < 1 || n > (i64)1 << 62)
		return val_int(n < 1 ? 0 : n);
	return val_int(is_pow2(n) ? n : (i128)2 << ilog2((u64)n));
}

/* triton.cdiv: computed here for compile-time numbers, as on the host; calls tl.cdiv for run-time values. */
struct val bi_host_cdiv(struct eval *e, const struct args *a)
{
	if (a->at[0].kind != V_INT || a->at[1].kind != V_INT)
		return call_std(e, "cdiv", a->at, 2);
	i128 x = a->at[0].integer, y = a->at[1].integer;
	if (!y)
		return eval_error(e, E_DIVISION_BY_ZERO, a->loc[1]);
	x += y - 1;
	return val_int(x / y - (x % y != 0 && (x < 0) != (y < 0)));
}

static struct val not_compile_time(struct eval *e, const struct args *a)
{
	struct val r =
		wrong_kind(e, a, 0, "a compile-time number");
	if (a->at[0].kind == V_TENSOR)
		diag_hint(e->diags, "Python's math runs at compile time; use tl.%s for a run-time value", a->b->name);
	return r;
}

struct val bi_python_math(struct eval *e, const struct args *a)
{
	const struct val *v = &a->at[0];
	if (!val_is_number(v))
		return not_compile_time(e, a);
	double x = double_of(v);
	switch (a->b->code) {
	case 0: return val_float(log2(x));
	case 1: return val_float(log(x));
	case 2: return val_float(sqrt(x));
	case 3: return val_float(exp(x));
	default:
		x = a->b->code == 4 ? ceil(x) : floor(x);
		if (!(fabs(x) < 0x1p100))
			return eval_error(e, E_INT_TOO_BIG, a->loc[0]);
		return val_int((i128)x);
	}
}

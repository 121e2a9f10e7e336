/* Builtins that compute: elementwise functions, dot, reductions, maps, and gathers of elements by index. */
#include <strings.h>

#include "frontend/builtin_args.h"

/* --- elementwise --------------------------------------------------------------------------------------------- */

struct val bi_math(struct eval *e, const struct args *a)
{
	struct val v;
	if (!arg_tensor(e, a, 0, &v))
		return v;
	if (v.pointers || (v.dtype != DT_F32 && v.dtype != DT_F64)) {
		struct val r = eval_error(e, E_MATH_TYPE, a->loc[0], a->b->name, describe(e, &v));
		diag_hint(e->diags, "convert it first: x.to(tl.float32)");
		return r;
	}
	v.ssa = build1(&e->b, (enum opcode)a->b->code, v.ssa->type, v.ssa);
	return v;
}

struct val bi_abs(struct eval *e, const struct args *a)
{
	struct val v;
	if (!arg_tensor(e, a, 0, &v))
		return v;
	if (v.pointers)
		return eval_error(e, E_MATH_TYPE, a->loc[0], "abs", describe(e, &v));
	if (dtype_is_fp8(v.dtype))
		return call_std(e, "_abs_fp8", &v, 1);
	if (!dtype_is_unsigned(v.dtype))
		v.ssa = build1(&e->b, dtype_is_float(v.dtype) ? IR_ABSF : IR_ABSI, v.ssa->type, v.ssa);
	return v;
}

/* A tile or a number. A constant stays a constant, and takes the type of the other operand. */
static bool arg_operand(struct eval *e, const struct args *a, u32 i, struct val *out)
{
	*out = a->at[i];
	return val_is_number(out) || arg_tensor(e, a, i, out);
}

/* tl.PropagateNan is given as True / False, as "all" / "none", or omitted. */
static bool propagates_nan(const struct val *v)
{
	return (v->kind == V_BOOL && v->boolean) ||
	       (v->kind == V_STR && (!strcmp(v->text, "all") || !strcmp(v->text, "ALL")));
}

static struct val extremum(struct eval *e, bool max, bool nan, struct val x, struct val y)
{
	enum opcode code;
	if (dtype_is_fp8(x.dtype)) {
		const struct val in[] = {x, y, val_bool(max), val_bool(nan)};
		return call_std(e, "_extremum_fp8", in, ARRAY_LEN(in));
	}
	if (dtype_is_float(x.dtype))
		code = max ? (nan ? IR_MAXIMUMF : IR_MAXNUMF) : (nan ? IR_MINIMUMF : IR_MINNUMF);
	else if (dtype_is_unsigned(x.dtype))
		code = max ? IR_MAXUI : IR_MINUI;
	else
		code = max ? IR_MAXSI : IR_MINSI;
	x.ssa = build2(&e->b, code, x.ssa->type, x.ssa, y.ssa);
	return x;
}

struct val bi_minmax(struct eval *e, const struct args *a)
{
	struct val x, y;
	if (!arg_operand(e, a, 0, &x) || !arg_operand(e, a, 1, &y) || !promote(e, &x, &y, 0, a->loc[0], a->b->name))
		return val_error();
	return extremum(e, a->b->code, propagates_nan(&a->at[2]), x, y);
}

/* Converts the three operands of clamp or fma to one type. */
static bool arg_three(struct eval *e, const struct args *a, struct val *v)
{
	for (u32 i = 0; i < 3; i++)
		if (!arg_operand(e, a, i, &v[i]))
			return false;
	return promote_three(e, v, a->loc[0], a->b->name);
}

struct val bi_clamp(struct eval *e, const struct args *a)
{
	struct val v[3];
	if (!arg_three(e, a, v))
		return val_error();
	bool nan = propagates_nan(&a->at[3]);
	if (!dtype_is_float(v[0].dtype) || dtype_is_fp8(v[0].dtype))
		return extremum(e, false, nan, extremum(e, true, nan, v[0], v[1]), v[2]);
	v[0].ssa = build3(&e->b, IR_CLAMPF, v[0].ssa->type, v[0].ssa, v[1].ssa, v[2].ssa);
	v[0].ssa->def->attr[ATTR_NAN] = nan;
	return v[0];
}

struct val bi_fma(struct eval *e, const struct args *a)
{
	struct val v[3];
	if (!arg_three(e, a, v))
		return val_error();
	if (!dtype_is_float(v[0].dtype) || dtype_is_fp8(v[0].dtype))
		return eval_error(e, E_MATH_TYPE, a->loc[0], "fma", describe(e, &v[0]));
	v[0].ssa = build3(&e->b, IR_FMA, v[0].ssa->type, v[0].ssa, v[1].ssa, v[2].ssa);
	return v[0];
}

struct val bi_fdiv(struct eval *e, const struct args *a)
{
	struct val x, y;
	bool ieee = a->b->code == IR_PRECISE_DIVF, approx = false;
	if (!arg_operand(e, a, 0, &x) || !arg_operand(e, a, 1, &y) || (a->n > 2 && !arg_bool(e, a, 2, &ieee)) ||
	    !promote(e, &x, &y, PROMOTE_DIV, a->loc[0], a->b->name))
		return val_error();
	if (a->n > 3 && !arg_bool(e, a, 3, &approx))
		return val_error();
	if (ieee && approx)
		return eval_error(e, E_FDIV_OPTIONS, a->loc[3]);
	if (!dtype_is_float(x.dtype) || (approx && x.dtype != DT_F32))
		return eval_error(e, E_MATH_TYPE, a->loc[0], a->b->name, describe(e, &x));
	x.ssa = build2(&e->b, ieee ? IR_PRECISE_DIVF : IR_DIVF, x.ssa->type, x.ssa, y.ssa);
	return x;
}

struct val bi_umulhi(struct eval *e, const struct args *a)
{
	struct val x, y;
	for (u32 i = 0; i < 2; i++) {
		struct val *v = i ? &y : &x;
		if (!arg_operand(e, a, i, v))
			return val_error();
		if (v->kind == V_TENSOR && (v->pointers || !dtype_is_int(v->dtype) || dtype_bits(v->dtype) < 32))
			return eval_error(e, E_UMULHI_TYPE, a->loc[i], describe(e, v));
	}
	if (!promote(e, &x, &y, 0, a->loc[0], "umulhi"))
		return val_error();
	if (!dtype_is_int(x.dtype) || x.dtype == DT_I1)
		return eval_error(e, E_UMULHI_TYPE, a->loc[0], describe(e, &x));
	x.ssa = build2(&e->b, IR_MULHIUI, x.ssa->type, x.ssa, y.ssa);
	return x;
}

struct val bi_where(struct eval *e, const struct args *a)
{
	struct val c, x = a->at[1], y = a->at[2];
	if (!arg_tensor(e, a, 0, &c))
		return c;
	c = cast_to(e, c, DT_I1, ROUND_DEFAULT, a->loc[0]);
	if (c.kind == V_ERROR || !promote(e, &x, &y, PROMOTE_PTR, a->loc[1], "where"))
		return val_error();
	if (x.pointers != y.pointers) /* cannot choose between a pointer and an offset */
		return eval_error(e, E_OPERAND_TYPES, a->loc[1], "where", describe_type(e, &x), describe_type(e, &y));
	if (is_tile(&c) && (!broadcast_pair(e, &c, &x, a->loc[0]) || !broadcast_pair(e, &x, &y, a->loc[1])))
		return val_error();
	if (is_tile(&c))
		c = broadcast_to(e, c, x.ssa->type->rank, x.ssa->type->shape, a->loc[0]);
	if (c.kind == V_ERROR)
		return c;
	x.ssa = build3(&e->b, IR_SELECT, x.ssa->type, c.ssa, x.ssa, y.ssa);
	return x;
}

struct val bi_unlikely(struct eval *e, const struct args *a)
{
	struct val c;
	if (!arg_tensor(e, a, 0, &c))
		return c;
	c = cast_to(e, c, DT_I1, ROUND_DEFAULT, a->loc[0]);
	if (c.kind != V_ERROR)
		c.ssa = build1(&e->b, IR_UNLIKELY, c.ssa->type, c.ssa);
	return c;
}

/* --- dot ----------------------------------------------------------------------------------------------------- */

static bool dot_precision(struct eval *e, const struct args *a, i64 *out)
{
	static const char *const names[] = {"", "ieee", "tf32", "tf32x3", "bf16x3", "bf16x6", NULL};
	i64 n;
	bool allow;
	if (a->at[3].kind != V_NONE && a->at[4].kind != V_NONE) {
		eval_error(e, E_DOT_PRECISION_TWICE, a->loc[4]);
		return false;
	}
	*out = PRECISION_TF32;
	if (a->at[4].kind != V_NONE) {
		if (!arg_bool(e, a, 4, &allow))
			return false;
		*out = allow ? PRECISION_TF32 : PRECISION_IEEE;
	} else if (a->at[3].kind != V_NONE) {
		for (n = ARRAY_LEN(names) - 2; n && a->at[3].kind == V_STR; n--) /* case-insensitive */
			if (!strcasecmp(names[n], a->at[3].text))
				break;
		if ((a->at[3].kind != V_STR || !n) && !arg_choice(e, a, 3, names, &n))
			return false;
		*out = n ? n - 1 : PRECISION_TF32;
	}
	return true;
}

/* The element type of the accumulator; DT_COUNT after an error. out_dtype matters for fp16 and fp8 operands only. */
static enum dtype dot_result(struct eval *e, const struct args *a, enum dtype d)
{
	const struct val *acc = &a->at[2];
	struct val want = val_dtype(is_tile(acc) && acc->dtype == DT_F16 ? DT_F16 : DT_F32);
	if (a->at[6].kind != V_NONE && !arg_type(e, a, 6, &want))
		return DT_COUNT;
	if (dtype_is_int(d))
		return DT_I32;
	bool chosen = d == DT_F16 || dtype_is_fp8(d);
	if (want.dtype == DT_BF16 || want.pointers || (chosen && want.dtype != DT_F32 && want.dtype != DT_F16)) {
		eval_error(e, E_DOT_OUT_DTYPE, a->loc[6], dtype_name(want.dtype), dtype_name(d));
		return DT_COUNT;
	}
	return chosen ? want.dtype : d == DT_F64 ? DT_F64 : DT_F32;
}

static bool check_dot_types(struct eval *e, const struct args *a, const struct val *x, const struct val *y)
{
	bool both_fp8 = dtype_is_fp8(x->dtype) && dtype_is_fp8(y->dtype);
	bool known = x->dtype == DT_I8 || x->dtype >= DT_F16 || both_fp8;
	if (!x->pointers && !y->pointers && known && (x->dtype == y->dtype || both_fp8))
		return true;
	eval_error(e, E_DOT_TYPES, a->loc[0], describe_type(e, x), describe_type(e, y));
	if (x->dtype != y->dtype && dtype_is_float(x->dtype) && dtype_is_float(y->dtype))
		diag_hint(e->diags, "convert one of them, for example with .to(tl.%s)", dtype_tl_name(x->dtype));
	else
		diag_hint(e->diags,
			  "both tiles must have the same type: fp16, bf16, fp32, fp64 or int8, or any two fp8 types");
	return false;
}

static bool check_dot_shapes(struct eval *e, const struct args *a, const struct val *x, const struct val *y)
{
	const struct type *s = x->ssa->type, *t = y->ssa->type;
	const char *left = describe_type(e, x), *right = describe_type(e, y);
	int r = s->rank, bits = dtype_bits(x->dtype), min_k = bits == 8 ? 32 : 256 / bits;
	if (r != t->rank || r < 2) {
		eval_error(e, E_DOT_RANK, a->loc[0], left, right);
		return false;
	}
	for (int d = 0; d < r - 2; d++)
		if (s->shape[d] != t->shape[d]) {
			eval_error(e, E_DOT_BATCH, a->loc[0], left, right, s->shape[d], t->shape[d]);
			return false;
		}
	if (s->shape[r - 1] != t->shape[r - 2]) {
		eval_error(e, E_DOT_SHAPE, a->loc[0], left, right, s->shape[r - 1], t->shape[r - 2]);
		note_origin(e, x, a->loc[0]);
		note_origin(e, y, a->loc[0]);
		return false;
	}
	if (s->shape[r - 1] < min_k) {
		eval_error(e, E_DOT_K, a->loc[0], s->shape[r - 1], min_k, dtype_name(x->dtype));
		return false;
	}
	return true;
}

static bool dot_imprecise(struct eval *e, const struct args *a, const struct val *x, i64 *out)
{
	const struct type *t = x->ssa->type;
	i32 k = t->shape[t->rank - 1];
	*out = 0;
	if (a->at[5].kind != V_NONE && !arg_int(e, a, 5, out))
		return false;
	if (!dtype_is_fp8(x->dtype))
		*out = 0;
	if (*out > k) {
		eval_error(e, E_DOT_IMPRECISE, a->loc[5], (long long)*out, k);
		return false;
	}
	if (*out)
		remark_no_effect(e, a, 5);
	return true;
}

/* Collapses batch dimensions into one, since tt.dot has a single batch dimension. */
static struct value *one_batch(struct eval *e, struct value *v)
{
	const struct type *t = v->type;
	if (t->rank <= 3)
		return v;
	i32 shape[] = {1, t->shape[t->rank - 2], t->shape[t->rank - 1]};
	for (int d = 0; d < t->rank - 2; d++)
		shape[0] *= t->shape[d];
	return build1(&e->b, IR_RESHAPE, type_tensor(e->ctx, t->elem, 3, shape), v);
}

struct val bi_dot(struct eval *e, const struct args *a)
{
	struct val x, y, acc = a->at[2];
	i64 precision, imprecise;
	if (!arg_tile(e, a, 0, &x) || !arg_tile(e, a, 1, &y) || !dot_precision(e, a, &precision))
		return val_error();
	bool fp8 = dtype_is_fp8(x.dtype) && dtype_is_fp8(y.dtype) && !x.pointers && !y.pointers;
	if (fp8 && (x.dtype == DT_E4B15 || y.dtype == DT_E4B15)) { /* no tensor core supports fp8e4b15 */
		x = cast_to(e, x, DT_F16, ROUND_DEFAULT, a->loc[0]);
		y = cast_to(e, y, DT_F16, ROUND_DEFAULT, a->loc[1]);
	}
	if (!check_dot_types(e, a, &x, &y) || !check_dot_shapes(e, a, &x, &y) || !dot_imprecise(e, a, &x, &imprecise))
		return val_error();
	enum dtype d = dot_result(e, a, x.dtype);
	if (d == DT_COUNT)
		return val_error();
	int r = x.ssa->type->rank;
	i32 shape[MAX_RANK];
	memcpy(shape, x.ssa->type->shape, sizeof shape);
	shape[r - 1] = y.ssa->type->shape[r - 1];
	const struct type *result = type_tensor(e->ctx, type_scalar(e->ctx, d), r, shape);
	struct value *c;
	if (acc.kind == V_NONE) {
		c = build_splat(&e->b, build_constant(&e->b, result->elem, 0), r, result->shape);
	} else {
		/* out_dtype contradicts the accumulator */
		bool other = a->at[6].kind == V_TYPE && a->at[6].dtype != acc.dtype;
		if (!is_tile(&acc) || acc.ssa->type != result || acc.dtype != d || other) {
			struct val want = val_tensor(&(struct value){.type = result}, d, 0);
			return eval_error(e, E_DOT_ACC, a->loc[2], describe_type(e, &want), describe(e, &acc));
		}
		c = acc.ssa;
	}
	c = one_batch(e, c);
	struct value *left = one_batch(e, x.ssa), *right = one_batch(e, y.ssa);
	struct value *v = build3(&e->b, IR_DOT, c->type, left, right, c);
	v->def->attr[ATTR_PRECISION] = precision;
	v->def->attr[ATTR_IMPRECISE] = imprecise;
	return val_tensor(r > 3 ? build1(&e->b, IR_RESHAPE, result, v) : v, d, 0);
}

/* --- reduce and scan ----------------------------------------------------------------------------------------- */

enum { MOST_TILES = 8 /* limit of tt.reduce and tt.scan: see ir/ops.def */, MOST_PACK = 64 };

/* Finds an operation that a region on elements may not contain: see check_combine_region in ir/verify.c. */
static void note_effect(struct op *o, void *arg)
{
	const struct op **found = arg;
	bool control = op_is_loop(o) || o->code == IR_IF || op_has(o, END);
	if (!*found && !control && !op_is_report(o) && (!op_has(o, PURE) || op_has(o, SYNC)))
		*found = o;
}

static void note_tile(struct op *o, void *arg)
{
	bool *found = arg;
	for (u32 i = 0; i < o->nresults; i++)
		*found |= type_is_tensor(o->results[i].type);
}

/* True if the region has neither tiles nor effects; otherwise reports an error for its function, argument i. */
static bool region_is_scalar(struct eval *e, struct block *b, const struct args *a, u32 i)
{
	bool makes_tile = false;
	const struct op *effect = NULL;
	block_erase_unused(b);
	walk(b, note_tile, &makes_tile);
	walk(b, note_effect, &effect);
	if (makes_tile) {
		eval_error(e, E_ARG_KIND, a->loc[i], arg_name(e, a, i), a->b->name, "a function of scalars",
			   "a function that makes a tile");
	} else if (effect) {
		eval_error(e, E_COMBINE_EFFECT, effect->loc, a->at[i].func->name);
		diag(e->diags, N_COMBINE_USED, user_loc(e, a->loc[i]), a->at[i].func->name);
	}
	return !makes_tile && !effect;
}

/* Builds the region: (a0, b0, …, a1, b1, …) → combine_fn(a0, b0, …, a1, b1, …). */
static bool build_combine(struct eval *e, struct op *o, const struct val *in, u32 n, const struct args *a)
{
	const struct val *f = &a->at[2];
	struct val *pos = arena_array(e->arena, struct val, 2 * n);
	struct builder outer = enter_block(e, o->blocks[0]);
	for (u32 i = 0; i < 2 * n; i++) {
		const struct val *x = &in[i % n];
		pos[i] = *x;
		pos[i].ssa = block_add_arg(e->ctx, o->blocks[0], x->ssa->type->elem);
	}
	struct val r = call_func(e, f->func, pos, 2 * n, NULL, 0);
	bool ok = r.kind != V_ERROR && (r.kind == V_TUPLE ? r.nitems == n : n == 1);
	struct val *out = arena_dup(e->arena, r.kind == V_TUPLE ? r.items : &r, (ok ? n : 0) * sizeof r);
	struct value **vals = arena_array(e->arena, struct value *, n);
	for (u32 i = 0; ok && i < n; i++) {
		if (val_is_number(&out[i]))
			out[i] = to_tensor(e, out[i], a->loc[2]);
		ok = out[i].kind == V_TENSOR && out[i].ssa->type == in[i].ssa->type->elem &&
		     out[i].dtype == in[i].dtype;
		vals[i] = ok ? out[i].ssa : NULL;
	}
	if (!ok && r.kind != V_ERROR)
		eval_error(e, E_COMBINE, a->loc[2], f->func->name, describe(e, &r));
	for (u32 i = 0; !ok && i < n; i++)
		vals[i] = pos[i].ssa;
	build(&e->b, o->code == IR_REDUCE ? IR_REDUCE_RETURN : IR_SCAN_RETURN, vals, n, NULL, 0, 0);
	ok = ok && region_is_scalar(e, o->blocks[0], a, 2);
	leave_block(e, outer);
	return ok;
}

static bool combine_inputs(struct eval *e, const struct args *a, struct val *in, u32 *n)
{
	const struct val *v = &a->at[0];
	const struct val *items = items_of(v, n);
	if (!*n || *n > MOST_TILES) {
		wrong_kind(e, a, 0, "one to eight tiles");
		return false;
	}
	for (u32 i = 0; i < *n; i++) {
		struct args one = {.b = a->b, .at = (struct val *)&items[i], .loc = a->loc, .n = 1};
		if (!arg_tile(e, &one, 0, &in[i]))
			return false;
		if (in[i].ssa->type->rank != in[0].ssa->type->rank ||
		    memcmp(in[i].ssa->type->shape, in[0].ssa->type->shape, sizeof in[0].ssa->type->shape)) {
			eval_error(e, E_REDUCE_SHAPES, a->loc[0], describe_type(e, &in[0]), describe_type(e, &in[i]));
			return false;
		}
	}
	if (a->at[2].kind != V_FUNC) {
		wrong_kind(e, a, 2, "a jit function");
		return false;
	}
	return true;
}

static struct val results_of(struct eval *e, struct op *o, const struct val *in, u32 n, bool tuple)
{
	struct val *out = arena_array(e->arena, struct val, n);
	for (u32 i = 0; i < n; i++) {
		out[i] = in[i];
		out[i].ssa = &o->results[i];
	}
	return tuple ? val_tuple(out, n) : out[0];
}

struct val bi_axis(struct eval *e, const struct args *a)
{
	struct val v;
	int axis;
	if (a->at[1].kind == V_NONE)
		return eval_error(e, E_INDEX_AXIS, a->loc[1]);
	if (!arg_tile(e, a, 0, &v) || !arg_axis(e, a, 1, v.ssa->type->rank, &axis))
		return val_error();
	return val_int(axis);
}

struct val bi_reduce(struct eval *e, const struct args *a)
{
	struct val in[MOST_TILES];
	const struct type *types[MOST_TILES];
	struct value *ops[MOST_TILES];
	u32 n;
	int axis = 0, rank;
	bool keep, all = a->at[1].kind == V_NONE;
	if (!combine_inputs(e, a, in, &n) || !arg_bool(e, a, 3, &keep))
		return val_error();
	rank = in[0].ssa->type->rank;
	if (!all && !arg_axis(e, a, 1, rank, &axis))
		return val_error();
	for (u32 i = 0; i < n; i++) {
		const struct type *t = in[i].ssa->type;
		if (all && rank > 1) {
			i32 flat = (i32)type_numel(t);
			in[i].ssa = build1(&e->b, IR_RESHAPE, type_tensor(e->ctx, t->elem, 1, &flat), in[i].ssa);
			in[i].ssa->def->attr[0] = 1; /* sets allow_reorder */
			t = in[i].ssa->type;
		}
		i32 shape[MAX_RANK];
		int r = 0;
		for (int d = 0; d < t->rank; d++)
			if (d != axis)
				shape[r++] = t->shape[d];
		types[i] = r ? type_tensor(e->ctx, t->elem, r, shape) : t->elem;
		ops[i] = in[i].ssa;
	}
	struct op *o = build(&e->b, IR_REDUCE, ops, n, types, n, 1);
	o->attr[ATTR_AXIS] = axis;
	if (!build_combine(e, o, in, n, a))
		return val_error();
	struct val r = results_of(e, o, in, n, a->at[0].kind == V_TUPLE);
	struct val *out = r.kind == V_TUPLE ? (struct val *)r.items : &r;
	for (u32 i = 0; keep && i < n; i++)
		for (int d = 0; d < (all ? rank : 1); d++)
			out[i] = expand_dim(e, out[i], axis);
	return r;
}

struct val bi_scan(struct eval *e, const struct args *a)
{
	struct val in[MOST_TILES];
	const struct type *types[MOST_TILES];
	struct value *ops[MOST_TILES];
	u32 n;
	int axis;
	bool reverse;
	if (!combine_inputs(e, a, in, &n) || !arg_axis(e, a, 1, in[0].ssa->type->rank, &axis) ||
	    !arg_bool(e, a, 3, &reverse))
		return val_error();
	for (u32 i = 0; i < n; i++) {
		ops[i] = in[i].ssa;
		types[i] = in[i].ssa->type;
	}
	struct op *o = build(&e->b, IR_SCAN, ops, n, types, n, 1);
	o->attr[ATTR_AXIS] = axis;
	o->attr[ATTR_REVERSE] = reverse;
	if (!build_combine(e, o, in, n, a))
		return val_error();
	return results_of(e, o, in, n, a->at[0].kind == V_TUPLE);
}

/* --- maps ---------------------------------------------------------------------------------------------------- */

/* Broadcasts the inputs of a map to one shape. With a pack of n, each input becomes n tiles with 1/n of its
 * elements. */
static bool map_inputs(struct eval *e, const struct args *a, i64 pack, struct val *in, u32 n, struct val *shape)
{
	for (u32 i = 0; i < n; i++) {
		struct args one = {.b = a->b, .at = (struct val *)&a->at[1].items[i], .loc = a->loc + 1, .n = 1};
		if (!arg_tensor(e, &one, 0, &in[i * pack]))
			return false;
	}
	for (u32 pass = 0; pass < 2; pass++)
		for (u32 i = 0; i + 1 < n; i++)
			if (!broadcast_pair(e, &in[i * pack], &in[(i + 1) * pack], a->loc[1]))
				return false;
	for (u32 i = n - 1; i-- > 0;)
		if (!broadcast_pair(e, &in[(i + 1) * pack], &in[i * pack], a->loc[1]))
			return false;
	if (pack > (is_tile(&in[0]) ? type_numel(in[0].ssa->type) : 1)) {
		eval_error(e, E_MAP_PACK, a->loc[2], (long long)pack);
		return false;
	}
	*shape = is_tile(&in[0]) ? get_attribute(e, in[0], "shape", a->loc[1]) : val_none();
	for (u32 i = 0; i < n && pack > 1; i++) {
		struct val two[] = {in[i * pack], val_int(pack)}, parts = call_std(e, "_unpack", two, 2);
		if (parts.kind != V_TUPLE)
			return false;
		memcpy(&in[i * pack], parts.items, (size_t)pack * sizeof *in);
	}
	return true;
}

/* The results of the function on scalars, as run-time values, and their number in *n. NULL after an error. */
static struct val *map_results(struct eval *e, const struct args *a, struct val r, i64 pack, u32 *n)
{
	u32 many;
	const struct val *items = items_of(&r, &many);
	struct val *out = arena_array(e->arena, struct val, many);
	bool ok = many && many % (u64)pack == 0;
	for (u32 i = 0; i < many && ok; i++) {
		ok = items[i].kind == V_TENSOR || val_is_number(&items[i]);
		out[i] = ok ? to_tensor(e, items[i], a->loc[0]) : val_error();
		ok = ok && out[i].kind == V_TENSOR && !is_tile(&out[i]) &&
		     out[i].ssa->type == out[i - i % (u32)pack].ssa->type &&
		     out[i].dtype == out[i - i % (u32)pack].dtype;
	}
	if (!ok && r.kind != V_ERROR)
		eval_error(e, E_MAP_RESULTS, a->loc[0], a->at[0].func->name, (long long)pack, describe(e, &r));
	*n = many;
	return ok ? out : NULL;
}

/* Builds the region of map o with the operands `in`. Returns the results in one array; NULL after an error. */
static struct val *build_map(struct eval *e, const struct args *a, struct op *o, const struct val *in, i64 pack,
			     struct val *returned, u32 *n)
{
	struct val *args = arena_array(e->arena, struct val, o->noperands);
	struct builder outer = enter_block(e, o->blocks[0]);
	for (u32 i = 0; i < o->noperands; i++)
		args[i] = val_tensor(block_add_arg(e->ctx, o->blocks[0], in[i].ssa->type->elem), in[i].dtype,
				     in[i].pointers);
	*returned = call_func(e, a->at[0].func, args, o->noperands, NULL, 0);
	struct val *out = map_results(e, a, *returned, pack, n);
	/* after an error the region returns its argument, which keeps it valid */
	struct value **vals = arena_array(e->arena, struct value *, *n);
	const struct type **types = arena_array(e->arena, const struct type *, *n);
	for (u32 i = 0; i < *n; i++) {
		vals[i] = out ? out[i].ssa : args[0].ssa;
		types[i] = type_with_elem(e->ctx, in[0].ssa->type, vals[i]->type);
	}
	build(&e->b, IR_MAP_RETURN, vals, *n, NULL, 0, 0);
	op_set_results(e->ctx, o, types, *n);
	bool ok = out && region_is_scalar(e, o->blocks[0], a, 0);
	leave_block(e, outer);
	for (u32 i = 0; ok && i < *n; i++)
		out[i].ssa = &o->results[i];
	return ok ? out : NULL;
}

/* tl.map_elementwise: a region that runs for each element. With a pack of n, each input tile becomes n tiles of every
 * n-th element, and the function takes one element of each. */
struct val bi_map_elementwise(struct eval *e, const struct args *a)
{
	const struct val *f = &a->at[0];
	u32 n = a->at[1].nitems, nresults;
	i64 pack;
	if (f->kind != V_FUNC)
		return wrong_kind(e, a, 0, "a jit function");
	if (!n)
		return eval_error(e, E_MISSING_ARG, a->loc[0], a->b->name, "args");
	if (!arg_int(e, a, 2, &pack))
		return val_error();
	if (pack < 1 || pack & (pack - 1) || pack > MOST_PACK)
		return eval_error(e, E_MAP_PACK, a->loc[2], (long long)pack);
	struct val *in = arena_array(e->arena, struct val, n * (u64)pack), r, shape;
	if (!map_inputs(e, a, pack, in, n, &shape))
		return val_error();
	if (!is_tile(&in[0]))
		return call_func(e, f->func, in, n, NULL, 0);
	struct value **ops = arena_array(e->arena, struct value *, n * (u64)pack);
	for (u32 i = 0; i < n * (u32)pack; i++)
		ops[i] = in[i].ssa;
	struct op *o = build(&e->b, IR_MAP, ops, n * (u32)pack, NULL, 0, 1);
	o->attr[ATTR_MAP_PACK] = 1;
	struct val *out = build_map(e, a, o, in, pack, &r, &nresults);
	if (!out)
		return val_error();
	if (pack == 1)
		return r.kind == V_TUPLE ? val_tuple(out, nresults) : out[0];
	struct val *whole = arena_array(e->arena, struct val, nresults / (u32)pack);
	for (u32 i = 0; i < nresults / (u32)pack; i++) {
		struct val two[] = {val_tuple(out + i * pack, (u32)pack), shape};
		whole[i] = call_std(e, "_pack", two, 2);
		if (whole[i].kind == V_ERROR)
			return val_error();
	}
	return val_tuple(whole, nresults / (u32)pack);
}

/* --- elements by index --------------------------------------------------------------------------------------- */

struct val bi_gather(struct eval *e, const struct args *a)
{
	struct val x, index;
	int axis;
	if (!arg_tile(e, a, 0, &x) || !arg_tile(e, a, 1, &index) || !arg_axis(e, a, 2, x.ssa->type->rank, &axis))
		return val_error();
	const struct type *t = x.ssa->type, *by = index.ssa->type;
	bool fits = !index.pointers && dtype_is_int(index.dtype) && t->rank == by->rank;
	for (int d = 0; d < t->rank && fits; d++)
		fits = d == axis || t->shape[d] == by->shape[d];
	if (!fits)
		return eval_error(e, E_GATHER_INDEX, a->loc[1], describe_type(e, &x), axis, describe_type(e, &index));
	if (dtype_bits(index.dtype) < 32) /* the IR requires a signed index */
		index = cast_to(e, index, DT_I32, ROUND_DEFAULT, a->loc[1]);
	x.ssa = build2(&e->b, IR_GATHER, type_with_elem(e->ctx, by, t->elem), x.ssa, index.ssa);
	x.ssa->def->attr[ATTR_AXIS] = axis;
	return x;
}

struct val bi_histogram(struct eval *e, const struct args *a)
{
	struct val x, mask;
	i64 bins;
	if (!arg_tile(e, a, 0, &x) || !arg_int(e, a, 1, &bins) || !arg_mask(e, a, 2, &mask))
		return val_error();
	const struct type *t = x.ssa->type;
	if (x.pointers || !dtype_is_int(x.dtype) || dtype_bits(x.dtype) != 32 || t->rank != 1)
		return eval_error(e, E_HISTOGRAM_TYPE, a->loc[0], describe_type(e, &x));
	if (bins < 1 || bins & (bins - 1) || bins > IR_MAX_NUMEL)
		return eval_error(e, E_HISTOGRAM_BINS, a->loc[1], (long long)bins);
	if (mask.kind != V_NONE)
		mask = broadcast_to(e, mask, t->rank, t->shape, a->loc[2]);
	if (mask.kind == V_ERROR)
		return mask;
	i32 n = (i32)bins;
	struct value *ops[] = {x.ssa, mask.kind == V_NONE ? NULL : mask.ssa};
	const struct type *r = type_tensor(e->ctx, type_scalar(e->ctx, DT_I32), 1, &n);
	struct op *o = build(&e->b, IR_HISTOGRAM, ops, mask.kind == V_NONE ? 1 : 2, &r, 1, 0);
	return val_tensor(result(o), DT_I32, 0);
}

/* Operators on run-time values: type promotion, broadcasting and conversions. The rules are those of Triton 3.9.
 * docs/guide/language.md states them for users, and tests/types compares tlc with them. */
#include "frontend/frontend_internal.h"
#include "ir/scalar.h"

/* --- constants → SSA ----------------------------------------------------------------------------------------- */

/* The type of a plain Python number: i32, u32, i64, u64, fp32; fp64 for floats out of the range of fp32. */
static bool number_type(const struct val *v, enum dtype *out)
{
	const i128 one = 1;
	if (v->kind == V_BOOL) {
		*out = DT_I1;
		return true;
	}
	if (v->kind == V_INT) {
		i128 x = v->integer;
		if (x >= -(one << 31) && x < one << 31)
			*out = DT_I32;
		else if (x >= one << 31 && x < one << 32)
			*out = DT_U32;
		else if (x >= -(one << 63) && x < one << 63)
			*out = DT_I64;
		else if (x >= 0 && x < one << 64)
			*out = DT_U64;
		else
			return false;
		return true;
	}
	double a = __builtin_fabs(v->real);
	bool fits = !(a <= 0x1.fffffep127) || a == 0 || a >= 0x1p-126;
	*out = fits && !(a > 0x1.fffffep127 && a < __builtin_inf()) ? DT_F32 : DT_F64;
	return true;
}

struct val const_tensor(struct eval *e, struct val n, enum dtype d)
{
	const struct type *t = type_scalar(e->ctx, d);
	u64 bits;
	if (dtype_is_float(d))
		bits = dtype_encode_float(d, double_of(&n));
	else if (d == DT_I1)
		bits = n.kind == V_FLOAT ? n.real != 0 : int_of(&n) != 0;
	else
		bits = dtype_encode_int(d, (i64)(n.kind == V_FLOAT ? (i128)n.real : int_of(&n)));
	return val_tensor(build_constant(&e->b, t, bits), d, 0);
}

struct val to_tensor(struct eval *e, struct val v, struct loc at)
{
	enum dtype d;
	if (v.kind == V_TENSOR || v.kind == V_ERROR)
		return v;
	if (!val_is_number(&v))
		return eval_error(e, E_NOT_A_NUMBER, at, describe(e, &v));
	if (!number_type(&v, &d))
		return eval_error(e, E_INT_TOO_BIG, at);
	return const_tensor(e, v, d);
}

/* --- SSA → constants ----------------------------------------------------------------------------------------- */

/* The bits of a scalar that is computed only from constants. *budget limits the number of visited operations. */
static bool constant_bits(const struct value *v, u32 *budget, u64 *out)
{
	const struct op *o = v->def;
	u64 in[3] = {0};
	if (!o || v->type->kind != TY_SCALAR || !(*budget)--)
		return *budget = 0, false;
	if (o->code == IR_CONSTANT)
		return value_const_bits(v, out);
	if (!op_has(o, ELEM) || o->noperands > ARRAY_LEN(in))
		return false;
	for (u32 i = 0; i < o->noperands; i++)
		if (!constant_bits(operand(o, i), budget, &in[i]))
			return false;
	return scalar_eval(o, in, out);
}

struct val known_number(struct val v)
{
	u64 bits;
	u32 budget = 100;
	if (v.kind != V_TENSOR || v.pointers || !constant_bits(v.ssa, &budget, &bits))
		return v;
	if (dtype_is_float(v.dtype))
		return val_float(dtype_decode_float(v.dtype, bits));
	if (v.dtype == DT_I1)
		return val_bool(bits & 1);
	int unused = 64 - dtype_bits(v.dtype);
	return val_int(dtype_is_unsigned(v.dtype) ? (i128)(bits << unused >> unused)
						  : (i128)((i64)(bits << unused) >> unused));
}

struct val known_numbers(struct eval *e, struct val v)
{
	if (v.kind != V_TUPLE)
		return known_number(v);
	struct val *items = arena_array(e->arena, struct val, v.nitems);
	for (u32 i = 0; i < v.nitems; i++)
		items[i] = known_numbers(e, v.items[i]);
	return val_tuple(items, v.nitems);
}

/* --- shapes -------------------------------------------------------------------------------------------------- */

struct val expand_dim(struct eval *e, struct val v, int axis)
{
	const struct type *t = v.ssa->type;
	i32 shape[MAX_RANK];
	for (int i = 0; i <= t->rank; i++)
		shape[i] = i == axis ? 1 : t->shape[i - (i > axis)];
	if (!type_is_tensor(t)) {
		v.ssa = build_splat(&e->b, v.ssa, 1, shape);
		return v;
	}
	v.ssa = build1(&e->b, IR_EXPAND_DIMS, type_tensor(e->ctx, t->elem, t->rank + 1, shape), v.ssa);
	v.ssa->def->attr[ATTR_AXIS] = axis;
	return v;
}

struct val broadcast_to(struct eval *e, struct val v, int rank, const i32 *shape, struct loc at)
{
	const struct type *t = v.ssa->type;
	if (!type_is_tensor(t)) {
		if (rank)
			v.ssa = build_splat(&e->b, v.ssa, rank, shape);
		return v;
	}
	const struct type *to = rank ? type_tensor(e->ctx, t->elem, rank, shape) : t->elem;
	bool ok = t->rank == rank;
	for (int i = 0; ok && i < rank; i++)
		ok = t->shape[i] == shape[i] || t->shape[i] == 1;
	if (!ok) {
		struct val want = v;
		want.ssa = &(struct value){.type = to};
		return eval_error(e, E_BROADCAST_TO, at, describe_type(e, &v), describe_type(e, &want));
	}
	if (to != t)
		v.ssa = build1(&e->b, IR_BROADCAST, to, v.ssa);
	return v;
}

/* Adds hints after the message that the shapes of a and b do not match. */
static void advise_shapes(struct eval *e, const struct val *a, const struct val *b, struct loc at)
{
	const struct type *s = a->ssa->type, *t = b->ssa->type;
	const struct type *row = s->rank < t->rank ? s : t, *tile = s->rank < t->rank ? t : s;
	if (row->rank == 1 && tile->rank == 2 && row->shape[0] == tile->shape[0])
		diag_hint(e->diags, "a one-dimensional tile is aligned with the last dimension; x[:, None] aligns it "
				    "with the first");
	note_origin(e, a, at);
	note_origin(e, b, at);
}

bool broadcast_pair(struct eval *e, struct val *a, struct val *b, struct loc at)
{
	if (!is_tile(a) && !is_tile(b))
		return true;
	struct val x = *a, y = *b;
	while (is_tile(&x) && is_tile(&y) && x.ssa->type->rank < y.ssa->type->rank)
		x = expand_dim(e, x, 0);
	while (is_tile(&x) && is_tile(&y) && y.ssa->type->rank < x.ssa->type->rank)
		y = expand_dim(e, y, 0);
	const struct type *s = x.ssa->type, *t = y.ssa->type;
	i32 shape[MAX_RANK];
	int rank = MAX(s->rank, t->rank);
	i64 numel = 1;
	for (int i = 0; i < rank; i++) {
		i32 m = type_is_tensor(s) ? s->shape[i] : 1, n = type_is_tensor(t) ? t->shape[i] : 1;
		if (m != n && m != 1 && n != 1) {
			eval_error(e, E_SHAPE_MISMATCH, at, describe_type(e, a), describe_type(e, b), i, m, n);
			advise_shapes(e, a, b, at);
			return false;
		}
		shape[i] = MAX(m, n);
		numel *= shape[i];
	}
	if (numel > IR_MAX_NUMEL) {
		eval_error(e, E_TILE_TOO_BIG, at, (long long)numel);
		return false;
	}
	*a = broadcast_to(e, x, rank, shape, at);
	*b = broadcast_to(e, y, rank, shape, at);
	return true;
}

/* --- conversions --------------------------------------------------------------------------------------------- */

static struct val tensor_of(struct value *v, enum dtype d)
{
	return val_tensor(v, d, 0);
}

static struct value *zero_like(struct eval *e, struct value *v)
{
	return build_constant(&e->b, v->type, 0);
}

static struct val to_bool(struct eval *e, struct val v)
{
	struct value *zero = zero_like(e, v.ssa);
	if (!dtype_is_float(v.dtype))
		return tensor_of(build_cmpi(&e->b, CMPI_NE, v.ssa, zero), DT_I1);
	struct value *r = build2(&e->b, IR_CMPF, type_with_dtype(e->ctx, v.ssa->type, DT_I1), v.ssa, zero);
	r->def->attr[ATTR_PREDICATE] = CMPF_UNE; /* NaN converts to true */
	return tensor_of(r, DT_I1);
}

static struct val float_to_float(struct eval *e, struct val v, enum dtype d, enum rounding r, const struct type *to)
{
	int from_bits = dtype_bits(v.dtype), to_bits = dtype_bits(d);
	bool custom = r != ROUND_DEFAULT && r != ROUND_RTNE;
	if (dtype_is_fp8(v.dtype) || dtype_is_fp8(d) || custom) {
		struct value *x = build1(&e->b, IR_FP_TO_FP, to, v.ssa);
		x->def->attr[ATTR_ROUNDING] =
			to_bits < from_bits ? (r == ROUND_DEFAULT ? ROUND_RTNE : r) : ROUND_DEFAULT;
		return tensor_of(x, d);
	}
	if (from_bits == 16 && d != DT_F32) /* fp16 ↔ bf16 and fp64 convert through fp32 */
		return float_to_float(e, float_to_float(e, v, DT_F32, r, type_with_dtype(e->ctx, to, DT_F32)), d, r,
				      to);
	return tensor_of(build1(&e->b, from_bits > to_bits ? IR_TRUNCF : IR_EXTF, to, v.ssa), d);
}

const struct type *type_with_pointers(struct eval *e, enum dtype d, int pointers)
{
	const struct type *t = type_scalar(e->ctx, d);
	for (int i = 0; i < pointers; i++)
		t = type_ptr(e->ctx, t);
	return t;
}

static struct val cast_pointer(struct eval *e, struct val v, struct val want, struct loc at)
{
	const struct type *to =
		type_with_elem(e->ctx, v.ssa->type, type_with_pointers(e, want.dtype, want.pointers));
	enum opcode code;
	if (to == v.ssa->type) {
		v.dtype = want.dtype;
		v.is_const = want.is_const;
		return v;
	}
	if (v.pointers && want.pointers)
		code = IR_BITCAST;
	else if (v.pointers && dtype_bits(want.dtype) == 64 && dtype_is_int(want.dtype))
		code = IR_PTR_TO_INT;
	else if (v.pointers && want.dtype == DT_I1)
		return to_bool(e, cast_pointer(e, v, val_dtype(DT_I64), at));
	else if (want.pointers && dtype_is_int(v.dtype) && dtype_bits(v.dtype) == 64)
		code = IR_INT_TO_PTR;
	else
		return eval_error(e, E_CAST, at, describe_type(e, &v), describe_type(e, &want));
	v = val_tensor(build1(&e->b, code, to, v.ssa), want.dtype, want.pointers);
	v.is_const = want.is_const;
	return v;
}

/* Converts from or to float8e4b15 through fp16 or fp32, with functions of the library. */
static struct val cast_e4b15(struct eval *e, struct val v, enum dtype d, struct loc at)
{
	if (v.dtype == DT_E4B15) {
		v.dtype = DT_U8;
		return cast_to(e, call_std(e, "_from_e4b15", &v, 1), d, ROUND_DEFAULT, at);
	}
	if (v.dtype != DT_F16) /* digits beyond fp32 are truncated, so that the value is rounded only once */
		v = cast_to(e, v, DT_F32, v.dtype == DT_F64 ? ROUND_RTZ : ROUND_DEFAULT, at);
	if (v.kind == V_ERROR)
		return v;
	v = call_std(e, "_to_e4b15", &v, 1);
	v.dtype = DT_E4B15;
	return v;
}

struct val cast_to(struct eval *e, struct val v, enum dtype d, enum rounding r, struct loc at)
{
	if (v.kind == V_ERROR)
		return v;
	if (v.pointers && r != ROUND_DEFAULT)
		return eval_error(e, E_ROUNDING_NOT_NARROWING, at, describe_type(e, &v), dtype_name(d));
	if (v.pointers)
		return cast_pointer(e, v, val_dtype(d), at);
	if (v.dtype == d)
		return v;
	const struct type *to = type_with_dtype(e->ctx, v.ssa->type, d);
	bool from_float = dtype_is_float(v.dtype), to_float = dtype_is_float(d);
	int from_bits = dtype_bits(v.dtype), to_bits = dtype_bits(d);
	if (r != ROUND_DEFAULT && !(from_float && to_float && to_bits < from_bits))
		return eval_error(e, E_ROUNDING_NOT_NARROWING, at, dtype_name(v.dtype), dtype_name(d));
	if (v.dtype == DT_E4B15 || d == DT_E4B15)
		return cast_e4b15(e, v, d, at);
	if (from_float && to_float)
		return float_to_float(e, v, d, r, to);
	if (d == DT_I1)
		return to_bool(e, v);
	if (from_float && dtype_is_fp8(v.dtype))
		v = cast_to(e, v, DT_F32, ROUND_DEFAULT, at);
	if (from_float)
		return tensor_of(build1(&e->b, dtype_is_unsigned(d) ? IR_FPTOUI : IR_FPTOSI, to, v.ssa), d);
	if (to_float && dtype_is_fp8(d))
		return cast_to(e, cast_to(e, v, DT_F32, ROUND_DEFAULT, at), d, r, at);
	if (to_float)
		return tensor_of(build1(&e->b, dtype_is_unsigned(v.dtype) ? IR_UITOFP : IR_SITOFP, to, v.ssa), d);
	if (from_bits == to_bits)
		return tensor_of(v.ssa, d);
	enum opcode code = from_bits > to_bits ? IR_TRUNCI : dtype_is_unsigned(v.dtype) ? IR_EXTUI : IR_EXTSI;
	return tensor_of(build1(&e->b, code, to, v.ssa), d);
}

struct val bitcast_to(struct eval *e, struct val v, struct val want, struct loc at)
{
	if (v.kind == V_ERROR)
		return v;
	if (v.pointers || want.pointers)
		return cast_pointer(e, v, want, at);
	if (dtype_bits(v.dtype) != dtype_bits(want.dtype))
		return eval_error(e, E_BITCAST_SIZE, at, dtype_name(v.dtype), dtype_name(want.dtype));
	const struct type *to = type_with_dtype(e->ctx, v.ssa->type, want.dtype);
	return tensor_of(to == v.ssa->type ? v.ssa : build1(&e->b, IR_BITCAST, to, v.ssa), want.dtype);
}

/* --- promotion ----------------------------------------------------------------------------------------------- */

static int dtype_kind(enum dtype d)
{
	return d == DT_I1 ? 0 : dtype_is_int(d) ? 1 : 2;
}

enum dtype promote_int(enum dtype a, enum dtype b)
{
	int m = dtype_bits(a), n = dtype_bits(b);
	bool ua = dtype_is_unsigned(a), ub = dtype_is_unsigned(b);
	if (ua == ub)
		return m > n ? a : b;
	if (ua)
		return m >= n ? a : b;
	return n >= m ? b : a;
}

/* The type in which two operands are computed. A weak operand (a constant) matters only if its kind is higher. */
static bool computation_type(enum dtype a, bool a_weak, enum dtype b, bool b_weak, bool div, enum dtype *out)
{
	if (a_weak != b_weak) {
		enum dtype weak = a_weak ? a : b, strong = a_weak ? b : a;
		if (dtype_kind(weak) <= dtype_kind(strong))
			a = b = strong;
	}
	if (a == DT_F64 || b == DT_F64)
		*out = DT_F64;
	else if (div && (dtype_is_float(a) || dtype_is_float(b)))
		*out = DT_F32;
	else if (a == DT_F32 || b == DT_F32)
		*out = DT_F32;
	else if (a == DT_F16 || b == DT_F16)
		*out = DT_F16;
	else if (a == DT_BF16 || b == DT_BF16)
		*out = a == b ? DT_BF16 : DT_F32;
	else if (dtype_is_fp8(a) && dtype_is_fp8(b))
		*out = a == b ? a : DT_F16;
	else if (!dtype_is_int(a) || !dtype_is_int(b))
		return false;
	else if (div && dtype_is_unsigned(a) != dtype_is_unsigned(b))
		return false;
	else
		*out = promote_int(a, b);
	return true;
}

static bool fits(i128 x, enum dtype d)
{
	const i128 one = 1;
	int bits = dtype_bits(d);
	if (d == DT_I1)
		return x == 0 || x == 1;
	if (dtype_is_unsigned(d))
		return x >= 0 && x < one << bits;
	return x >= -(one << (bits - 1)) && x < one << (bits - 1);
}

bool number_fits(const struct val *n, enum dtype d)
{
	if (dtype_is_float(d) || d == DT_I1)
		return true;
	if (n->kind != V_FLOAT)
		return fits(int_of(n), d);
	double x = n->real;
	return x >= -0x1p63 && x < 0x1p64 && (double)(i128)x == x && fits((i128)x, d);
}

/* Converts an operand to the common type. A weak operand (a constant) must fit that type: false, after an error,
 * otherwise. */
static bool resolve_weak_type(struct eval *e, struct val *v, enum dtype d, struct loc at)
{
	if (v->kind == V_TENSOR) {
		*v = cast_to(e, *v, d, ROUND_DEFAULT, at);
		return v->kind != V_ERROR;
	}
	if (v->kind == V_INT && dtype_is_int(d) && !fits(v->integer, d)) {
		eval_error(e, E_CONSTANT_RANGE, at, describe(e, v), dtype_name(d));
		return false;
	}
	*v = const_tensor(e, *v, d);
	return true;
}

bool promote_three(struct eval *e, struct val *v, struct loc at, const char *what)
{
	enum dtype of[2] = {DT_COUNT, DT_COUNT}; /* [0]: common type of run-time operands; [1]: of constants */
	for (u32 i = 0; i < 3; i++) {
		bool weak = v[i].kind != V_TENSOR;
		enum dtype d = v[i].dtype, *sum = &of[weak];
		if (weak && !number_type(&v[i], &d))
			return eval_error(e, E_INT_TOO_BIG, at), false;
		if (v[i].pointers || (*sum != DT_COUNT && !computation_type(*sum, weak, d, weak, false, &d)))
			return eval_error(e, E_MATH_TYPE, at, what, describe(e, &v[i])), false;
		*sum = d;
	}
	enum dtype common = of[of[0] == DT_COUNT];
	if (of[0] != DT_COUNT && of[1] != DT_COUNT && !computation_type(of[0], false, of[1], true, false, &common))
		return eval_error(e, E_MATH_TYPE, at, what, dtype_name(of[0])), false;
	for (u32 i = 0; i < 3; i++)
		if (!resolve_weak_type(e, &v[i], common, at))
			return false;
	return broadcast_pair(e, &v[0], &v[1], at) && broadcast_pair(e, &v[0], &v[2], at) &&
	       broadcast_pair(e, &v[1], &v[2], at);
}

/* Adds hints for an operand `other` that is not a valid offset of a pointer. */
static void advise_offset(struct eval *e, bool takes_offset, const struct val *other)
{
	diag_hint(e->diags, "a pointer only takes integer offsets, as in ptr + i");
	if (!takes_offset)
		diag_hint(e->diags, "tl.load(ptr) is the value that it points to");
	else if (other->kind == V_TENSOR && !other->pointers)
		diag_hint(e->diags, "a // b divides integers, and x.to(tl.int32) converts");
}

bool promote(struct eval *e, struct val *a, struct val *b, int flags, struct loc at, const char *what)
{
	if (a->kind == V_ERROR || b->kind == V_ERROR)
		return false;
	for (int i = 0; i < 2; i++) {
		struct val *v = i ? b : a;
		if (v->kind != V_TENSOR && !val_is_number(v)) {
			eval_error(e, E_OPERAND, at, what, describe(e, v));
			advise_value(e, v);
			return false;
		}
	}
	bool a_weak = a->kind != V_TENSOR, b_weak = b->kind != V_TENSOR;
	enum dtype da = a->dtype, db = b->dtype, common;
	if ((a_weak && !number_type(a, &da)) || (b_weak && !number_type(b, &db))) {
		eval_error(e, E_INT_TOO_BIG, at);
		return false;
	}
	if (a->pointers || b->pointers) {
		const struct val *other = a->pointers ? b : a;
		enum dtype od = a->pointers ? db : da;
		bool same = a->pointers == b->pointers && a->dtype == b->dtype;
		if (!(flags & PROMOTE_PTR) || (other->pointers ? !same : !dtype_is_int(od))) {
			eval_error(e, E_OPERAND_TYPES, at, what, describe_type(e, a), describe_type(e, b));
			advise_offset(e, flags & PROMOTE_PTR, other);
			return false;
		}
		*a = to_tensor(e, *a, at);
		*b = to_tensor(e, *b, at);
		return broadcast_pair(e, a, b, at);
	}
	if (!computation_type(da, a_weak, db, b_weak, flags & PROMOTE_DIV, &common)) {
		if (dtype_is_int(da) && dtype_is_int(db))
			eval_error(e, E_MIXED_SIGN_DIV, at, what, dtype_name(da), dtype_name(db));
		else
			eval_error(e, E_OPERAND_TYPES, at, what, describe_type(e, a), describe_type(e, b));
		return false;
	}
	return resolve_weak_type(e, a, common, at) && resolve_weak_type(e, b, common, at) &&
	       broadcast_pair(e, a, b, at);
}

/* --- arithmetic ---------------------------------------------------------------------------------------------- */

static struct val emit2(struct eval *e, enum opcode code, struct val a, struct val b)
{
	a.ssa = build2(&e->b, code, a.ssa->type, a.ssa, b.ssa);
	return a;
}

/* Offsets of pointers are signed. An unsigned offset is widened to i64, so that it stays positive, also under
 * negation. */
static struct val signed_offset(struct eval *e, struct val off, struct loc at)
{
	bool narrow = dtype_is_unsigned(off.dtype) && dtype_bits(off.dtype) < 64;
	return narrow ? cast_to(e, off, DT_I64, ROUND_DEFAULT, at) : off;
}

static struct val add_pointer(struct eval *e, struct val ptr, struct val off)
{
	ptr.ssa = build2(&e->b, IR_ADDPTR, ptr.ssa->type, ptr.ssa, off.ssa);
	return ptr;
}

static struct val divide(struct eval *e, struct val a, struct val b, struct loc at)
{
	if (!dtype_is_float(a.dtype)) {
		a = cast_to(e, a, DT_F32, ROUND_DEFAULT, at);
		b = cast_to(e, b, DT_F32, ROUND_DEFAULT, at);
	}
	return emit2(e, IR_DIVF, a, b);
}

/* With debug, adds overflow checks to sums, differences and products of integers narrower than 64 bits, where Triton
 * checks them: in user code, and in library functions that compute with the user's numbers. */
static void check_overflow(struct eval *e, enum operator op, struct val a, struct val b, struct loc at)
{
	const struct module *m = e->frame->func->module;
	const char *name = op == OP_ADD ? "add" : op == OP_SUB ? "sub" : op == OP_MUL ? "mul" : NULL;
	int bits = dtype_bits(a.dtype);
	if (!e->debug || !name || !dtype_is_int(a.dtype) || bits == 64 || (m->is_library && m != e->std))
		return;
	bool is_unsigned = dtype_is_unsigned(a.dtype);
	a = cast_to(e, a, DT_I64, ROUND_DEFAULT, at);
	b = cast_to(e, b, DT_I64, ROUND_DEFAULT, at);
	struct val wide = binary_op(e, op, a, b, at);
	i64 most = ((i64)1 << (is_unsigned ? bits : bits - 1)) - 1, least = is_unsigned ? 0 : -most - 1;
	struct val fits = compare_op(e, OP_LE, wide, val_int(most), at),
		   ok = binary_op(e, OP_BITAND, fits, compare_op(e, OP_GE, wide, val_int(least), at), at);
	struct op *o = build(&e->b, IR_ASSERT, &ok.ssa, 1, NULL, 0, 0);
	o->text = arena_printf(e->arena, "int%d overflow detected for operation %s", bits, name);
}

struct val binary_op(struct eval *e, enum operator op, struct val a, struct val b, struct loc at)
{
	const char *what = operator_text(op);
	int flags = op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD ? PROMOTE_DIV : 0;
	if (op == OP_ADD || op == OP_SUB)
		flags |= PROMOTE_PTR;
	if (op == OP_POW)
		return eval_error(e, E_POW, at);
	bool b_was_pointer = b.kind == V_TENSOR && b.pointers, a_was_pointer = a.kind == V_TENSOR && a.pointers;
	if (b_was_pointer && (a_was_pointer || op == OP_SUB)) {
		eval_error(e, E_OPERAND_TYPES, at, what, describe_type(e, &a), describe_type(e, &b));
		diag_hint(e->diags, "a pointer only takes integer offsets, as in ptr + i");
		return val_error();
	}
	/* >> is arithmetic or logical by the signedness of the left operand, or of the shift count if the left one is
	 * constant */
	enum dtype shifted = a.kind == V_TENSOR ? a.dtype : b.dtype;
	if (!promote(e, &a, &b, flags, at, what))
		return val_error();
	if (a.pointers) {
		b = signed_offset(e, b, at);
		return add_pointer(e, a, op == OP_SUB ? unary_op(e, OP_NEG, b, at) : b);
	}
	if (b.pointers)
		return add_pointer(e, b, signed_offset(e, a, at));
	bool f = dtype_is_float(a.dtype), u = dtype_is_unsigned(op == OP_SHR ? shifted : a.dtype);
	if (dtype_is_fp8(a.dtype))
		return eval_error(e, E_FP8_ARITHMETIC, at, what, dtype_name(a.dtype));
	check_overflow(e, op, a, b, at);
	switch (op) {
	case OP_ADD: return emit2(e, f ? IR_ADDF : IR_ADDI, a, b);
	case OP_SUB: return emit2(e, f ? IR_SUBF : IR_SUBI, a, b);
	case OP_MUL: return emit2(e, f ? IR_MULF : IR_MULI, a, b);
	case OP_DIV: return divide(e, a, b, at);
	case OP_FLOORDIV:
		if (f)
			return eval_error(e, E_FLOAT_FLOORDIV, at, describe_type(e, &a));
		return emit2(e, u ? IR_DIVUI : IR_DIVSI, a, b);
	case OP_MOD: return emit2(e, f ? IR_REMF : u ? IR_REMUI : IR_REMSI, a, b);
	default: break;
	}
	if (f)
		return eval_error(e, E_INTEGER_OPERATOR, at, what, describe_type(e, &a));
	switch (op) {
	case OP_SHL: return emit2(e, IR_SHLI, a, b);
	case OP_SHR: return emit2(e, u ? IR_SHRUI : IR_SHRSI, a, b);
	case OP_BITAND: return emit2(e, IR_ANDI, a, b);
	case OP_BITOR: return emit2(e, IR_ORI, a, b);
	case OP_BITXOR: return emit2(e, IR_XORI, a, b);
	default: tl_unreachable("binary operator");
	}
}

struct val compare_op(struct eval *e, enum operator op, struct val a, struct val b, struct loc at)
{
	static const enum cmpi_predicate s[] = {CMPI_SLT, CMPI_SLE, CMPI_SGT, CMPI_SGE, CMPI_EQ, CMPI_NE};
	static const enum cmpi_predicate u[] = {CMPI_ULT, CMPI_ULE, CMPI_UGT, CMPI_UGE, CMPI_EQ, CMPI_NE};
	static const enum cmpf_predicate f[] = {CMPF_OLT, CMPF_OLE, CMPF_OGT, CMPF_OGE, CMPF_OEQ, CMPF_UNE};
	bool p = a.kind == V_TENSOR && a.pointers, q = b.kind == V_TENSOR && b.pointers;
	if ((p || q) && !(p && q && a.dtype == b.dtype && a.pointers == b.pointers)) {
		eval_error(e, E_OPERAND_TYPES, at, operator_text(op), describe_type(e, &a), describe_type(e, &b));
		diag_hint(e->diags, "`if ptr:` tests for null, and ptr.to(tl.int64) is the address");
		return val_error();
	}
	if (p) {
		a = cast_to(e, a, DT_I64, ROUND_DEFAULT, at);
		b = cast_to(e, b, DT_I64, ROUND_DEFAULT, at);
	}
	if (!promote(e, &a, &b, 0, at, operator_text(op)))
		return val_error();
	if (dtype_is_fp8(a.dtype))
		return eval_error(e, E_FP8_ARITHMETIC, at, operator_text(op), dtype_name(a.dtype));
	bool is_float = dtype_is_float(a.dtype);
	struct value *v =
		build2(&e->b, is_float ? IR_CMPF : IR_CMPI, type_with_dtype(e->ctx, a.ssa->type, DT_I1), a.ssa, b.ssa);
	int i = (int)op - OP_LT;
	v->def->attr[ATTR_PREDICATE] = is_float ? (int)f[i] : dtype_is_unsigned(a.dtype) ? (int)u[i] : (int)s[i];
	return tensor_of(v, DT_I1);
}

struct val unary_op(struct eval *e, enum operator op, struct val a, struct loc at)
{
	if (a.kind == V_ERROR || op == OP_POS)
		return a;
	if (op == OP_NOT && a.pointers)
		a = cast_to(e, a, DT_I1, ROUND_DEFAULT, at);
	if (op == OP_INVERT && !a.pointers && dtype_is_float(a.dtype))
		return eval_error(e, E_INTEGER_OPERATOR, at, "~", describe_type(e, &a));
	if (op == OP_NEG && !a.pointers && dtype_is_fp8(a.dtype))
		return eval_error(e, E_FP8_ARITHMETIC, at, "-", dtype_name(a.dtype));
	if (a.pointers)
		return eval_error(e, E_OPERAND, at, operator_text(op), describe(e, &a));
	if (op == OP_NEG) { /* floats negate as -0 - x, so that the negative of 0 is -0 */
		bool f = dtype_is_float(a.dtype);
		struct val zero = a;
		zero.ssa = build_constant(&e->b, a.ssa->type, f ? (u64)1 << (dtype_bits(a.dtype) - 1) : 0);
		return emit2(e, f ? IR_SUBF : IR_SUBI, zero, a);
	}
	if (op == OP_NOT && a.dtype != DT_I1)
		return eval_error(e, E_LOGICAL_TYPE, at, "not", describe_type(e, &a));
	struct val ones = a;
	ones.ssa = build_int(&e->b, a.ssa->type, -1);
	return emit2(e, IR_XORI, a, ones);
}

struct val logical_op(struct eval *e, bool is_and, struct val a, struct val b, struct loc at)
{
	if (a.kind == V_ERROR || b.kind == V_ERROR)
		return val_error();
	a = a.pointers ? cast_to(e, a, DT_I1, ROUND_DEFAULT, at) : a;
	b = b.pointers ? cast_to(e, b, DT_I1, ROUND_DEFAULT, at) : b;
	const struct val *bad = a.dtype != DT_I1 ? &a : b.dtype != DT_I1 ? &b : NULL;
	if (bad)
		return eval_error(e, E_LOGICAL_TYPE, at, is_and ? "and" : "or", describe_type(e, bad));
	return binary_op(e, is_and ? OP_BITAND : OP_BITOR, a, b, at);
}

/* Canonicalisation: folds constants, removes identities, and moves elementwise operations to the smallest shape.
 *
 * The last of these keeps index arithmetic cheap: an operation on splats becomes a scalar operation, and an operation
 * on broadcast tiles is done before the broadcast, so that offs[:, None] * stride costs one multiplication for each
 * row. The rules run over the kernel to a fixed point. Every rule reduces the work, so few rounds are needed. */
#include <math.h>

#include "ir/scalar.h"
#include "ir/pass.h"
#include "analysis/index_forms.h"

struct canon {
	const struct kernel *k;
	struct ir_context *ctx;
	bool changed;
};

/* --- constants ----------------------------------------------------------------------------------------------- */

static bool is_zero(const struct value *v)
{
	u64 bits;
	return value_const_bits(v, &bits) && bits == 0;
}

static bool is_float(const struct value *v, double x)
{
	u64 bits;
	enum dtype d = type_dtype(v->type);
	return dtype_is_float(d) && value_const_bits(v, &bits) && dtype_decode_float(d, bits) == x;
}

static bool is_bool(const struct value *v, bool b)
{
	u64 bits;
	return type_elem_bits(v->type) == 1 && value_const_bits(v, &bits) && (bits & 1) == b;
}

/* Folds an elementwise operation on constants. Multiply-adds are left to LLVM: to compare passes, the interpreter
 * rounds a multiply-add twice, like the multiplication and addition that it may have been. */
static struct value *fold_constants(struct builder *b, const struct op *o)
{
	u64 in[4], out;
	if (!op_has(o, ELEM) || o->code == IR_FMA || type_is_ptr(o->results[0].type) || o->noperands > 4)
		return NULL;
	for (u32 i = 0; i < o->noperands; i++)
		if (type_is_ptr(operand(o, i)->type) || !value_const_bits(operand(o, i), &in[i]))
			return NULL;
	if (!scalar_eval(o, in, &out))
		return NULL;
	return build_constant(b, o->results[0].type, out);
}

/* --- identities ---------------------------------------------------------------------------------------------- */

/* v as a value of the narrower type t: the operand of its sign extension, or a constant. NULL if v is neither. */
static struct value *unextended(struct builder *b, struct value *v, const struct type *t)
{
	const struct op *o = def_if(v, IR_EXTSI);
	i64 c;
	if (o)
		return operand(o, 0)->type == t ? operand(o, 0) : NULL;
	i64 most = (i64)(~0ull >> (65 - type_elem_bits(t)));
	return value_const_int(v, &c) && c >= -most - 1 && c <= most ? build_int(b, t, c) : NULL;
}

/* Compares numbers before their sign extension, which keeps the order of signed and of unsigned numbers. */
static struct value *compare_unextended(struct builder *b, const struct op *o)
{
	const struct op *ext = def_if(operand(o, 0), IR_EXTSI);
	if (!ext)
		ext = def_if(operand(o, 1), IR_EXTSI);
	if (!ext || type_elem_bits(operand(ext, 0)->type) == 1)
		return NULL;
	const struct type *t = operand(ext, 0)->type;
	struct value *x = unextended(b, operand(o, 0), t), *y = x ? unextended(b, operand(o, 1), t) : NULL;
	return y ? build_cmpi(b, (enum cmpi_predicate)o->attr[ATTR_PREDICATE], x, y) : NULL;
}

/* Folds a comparison of equal values. A comparison of tiles gets the uniform operand on the right. */
static struct value *fold_compare(struct builder *b, const struct op *o)
{
	struct value *x = operand(o, 0), *y = operand(o, 1);
	enum cmpi_predicate p = (enum cmpi_predicate)o->attr[ATTR_PREDICATE];
	if (type_is_tensor(x->type) && (def_if(x, IR_SPLAT) || def_if(x, IR_CONSTANT)) && !def_if(y, IR_SPLAT) &&
	    !def_if(y, IR_CONSTANT))
		return build_cmpi(b, mirrored_predicate(p), y, x);
	if (x != y)
		return compare_unextended(b, o);
	bool equal = p == CMPI_EQ || p == CMPI_SLE || p == CMPI_SGE || p == CMPI_ULE || p == CMPI_UGE;
	return build_int(b, o->results[0].type, equal);
}

static struct value *fold_select(struct builder *b, const struct op *o)
{
	struct value *c = operand(o, 0), *x = operand(o, 1), *y = operand(o, 2);
	if (x == y || is_bool(c, true))
		return x;
	if (is_bool(c, false))
		return y;
	/* select(c, true, false) */
	if (is_bool(x, true) && is_bool(y, false) && c->type == x->type)
		return c;
	(void)b;
	return NULL;
}

/* (x * c) * d → x * (c * d), if c * d fits 32 bits. */
static struct value *fold_factors(struct builder *b, const struct op *o)
{
	i64 c, d;
	const struct type *t = result(o)->type;
	const struct op *inner = o->code == IR_MULI ? def_if(operand(o, 0), IR_MULI) : NULL;
	if (!inner || !value_const_int(operand(o, 1), &d) || !value_const_int(operand(inner, 1), &c) ||
	    __builtin_mul_overflow(c, d, &c) || c != (i32)c || type_elem_bits(t) < 32)
		return NULL;
	return build2(b, IR_MULI, t, operand(inner, 0), build_int(b, t, c));
}

static bool is_sum(const struct op *o)
{
	return o && (o->code == IR_ADDI || o->code == IR_SUBI);
}

/* True if adding w, or its negative, cancels the addition of y, or its negative. */
static bool cancel(const struct value *w, bool minus_w, const struct value *y, bool minus_y)
{
	i64 c, d;
	if (value_const_int(w, &c) && value_const_int(y, &d))
		return (u64)c == (minus_w == minus_y ? -(u64)d : (u64)d);
	return w == y && minus_w != minus_y;
}

/* Folds v + y (v - y if `minus`) if v contains the inverse term: (z - y) + y → z, also inside a sum. NULL if it does
 * not. */
static struct value *fold_there_and_back(struct builder *b, const struct value *v, struct value *y, bool minus)
{
	const struct op *o = v->def;
	if (!is_sum(o))
		return NULL;
	if (cancel(operand(o, 1), o->code == IR_SUBI, y, minus))
		return operand(o, 0);
	if (o->code == IR_ADDI && cancel(operand(o, 0), false, y, minus))
		return operand(o, 1);
	for (u32 i = 0; i < 2 && o->code == IR_ADDI; i++) {
		const struct op *in = operand(o, i)->def;
		if (is_sum(in) && cancel(operand(in, 1), in->code == IR_SUBI, y, minus))
			return build2(b, IR_ADDI, v->type, operand(o, 1 - i), operand(in, 0));
	}
	return NULL;
}

/* The predicate that is also true if an operand is NaN, for a predicate that is false then; otherwise -1. */
static int unordered_predicate(enum cmpf_predicate p)
{
	switch (p) {
	case CMPF_OEQ: return CMPF_UEQ;
	case CMPF_ONE: return CMPF_UNE;
	case CMPF_OLT: return CMPF_ULT;
	case CMPF_OLE: return CMPF_ULE;
	case CMPF_OGT: return CMPF_UGT;
	case CMPF_OGE: return CMPF_UGE;
	default: return -1;
	}
}

static bool is_number(const struct value *v)
{
	u64 bits;
	return value_const_bits(v, &bits) && !isnan(dtype_decode_float(type_dtype(v->type), bits));
}

/* a > c or a != a → a > c or unordered, for a constant c: in maxima that keep NaN. Likewise for other comparisons. */
static struct value *fold_or_nan(struct builder *b, const struct value *ordered, const struct value *nan)
{
	const struct op *o = def_if(ordered, IR_CMPF), *n = def_if(nan, IR_CMPF);
	if (!o || !n || n->attr[ATTR_PREDICATE] != CMPF_UNE || operand(n, 0) != operand(n, 1))
		return NULL;
	struct value *x = operand(o, 0), *y = operand(o, 1);
	int p = unordered_predicate((enum cmpf_predicate)o->attr[ATTR_PREDICATE]);
	if (p < 0 || !((x == operand(n, 0) && is_number(y)) || (y == operand(n, 0) && is_number(x))))
		return NULL;
	struct value *v = build2(b, IR_CMPF, ordered->type, x, y);
	v->def->attr[ATTR_PREDICATE] = p;
	return v;
}

/* Folds x op x and x op constant. */
static struct value *fold_identity(struct builder *b, const struct op *o)
{
	if (!o->noperands || !o->nresults)
		return NULL;
	struct value *x = operand(o, 0), *y = operand(o, o->noperands > 1);
	const struct type *t = o->results[0].type;
	switch (o->code) {
	case IR_ADDI:
	case IR_ORI:
	case IR_XORI:
		if (is_zero(y))
			return x;
		if (is_zero(x))
			return y;
		if (o->code == IR_ORI && (x == y || is_bool(x, true)))
			return x;
		if (o->code == IR_ORI && is_bool(y, true))
			return y;
		if (o->code == IR_XORI && x == y)
			return build_int(b, t, 0);
		if (o->code == IR_ORI && type_elem_bits(t) == 1) {
			struct value *v = fold_or_nan(b, x, y);
			return v ? v : fold_or_nan(b, y, x);
		}
		return o->code == IR_ADDI ? fold_there_and_back(b, x, y, false) : NULL;
	case IR_SUBI:
		if (is_zero(y))
			return x;
		if (x == y)
			return build_int(b, t, 0);
		return def_if(y, IR_SUBI) && operand(y->def, 0) == x ? operand(y->def, 1)
								     : fold_there_and_back(b, x, y, true);
	case IR_SHLI:
	case IR_SHRSI:
	case IR_SHRUI: return is_zero(y) ? x : NULL;
	case IR_MULI:
		if (value_is_int(y, 1) && type_elem_bits(t) > 1)
			return x;
		if (value_is_int(x, 1) && type_elem_bits(t) > 1)
			return y;
		return is_zero(x) ? x : is_zero(y) ? y : NULL;
	case IR_DIVSI:
	case IR_DIVUI: return value_is_int(y, 1) && type_elem_bits(t) > 1 ? x : NULL;
	case IR_REMSI:
	case IR_REMUI: return value_is_int(y, 1) && type_elem_bits(t) > 1 ? build_int(b, t, 0) : NULL;
	case IR_ANDI:
		if (x == y || is_bool(y, true) || value_is_int(y, -1) || is_zero(x))
			return x;
		return is_bool(x, true) || value_is_int(x, -1) || is_zero(y) ? y : NULL;
	case IR_MAXSI:
	case IR_MAXUI:
	case IR_MINSI:
	case IR_MINUI: return x == y ? x : NULL;
	case IR_MULF:
		return is_float(y, 1) ? x : is_float(x, 1) ? y : NULL;
	case IR_DIVF: return is_float(y, 1) ? x : NULL;
	case IR_ADDPTR: return is_zero(y) ? x : NULL;
	case IR_BITCAST: return x->type == t && !o->hints ? x : NULL;
	case IR_CMPI: return fold_compare(b, o);
	case IR_SELECT: return fold_select(b, o);
	case IR_TRUNCF:
		return x->def && x->def->code == IR_EXTF && operand(x->def, 0)->type == t ? operand(x->def, 0) : NULL;
	case IR_TRUNCI:
		return x->def && (x->def->code == IR_EXTSI || x->def->code == IR_EXTUI) && operand(x->def, 0)->type == t
			? operand(x->def, 0)
			: NULL;
	default: return NULL;
	}
}

/* --- shapes -------------------------------------------------------------------------------------------------- */

static int identity_perm(const struct op *o)
{
	for (int i = 0; i < o->results[0].type->rank; i++)
		if (perm_get(o->attr[ATTR_ORDER], i) != i)
			return 0;
	return 1;
}

static struct value *fold_shape(struct builder *b, const struct op *o)
{
	if (o->code != IR_SPLAT && o->code != IR_EXPAND_DIMS && o->code != IR_BROADCAST && o->code != IR_RESHAPE &&
	    o->code != IR_TRANS && o->code != IR_UNSPLAT && o->code != IR_CONVERT_LAYOUT)
		return NULL;
	struct value *x = operand(o, 0);
	const struct type *t = o->results[0].type;
	u64 bits;
	if (o->code == IR_UNSPLAT)
		return def_if(x, IR_SPLAT) ? operand(x->def, 0) : NULL;
	if (!type_is_ptr(t) && def_if(x, IR_CONSTANT) && value_const_bits(x, &bits))
		return build_constant(b, t, bits);
	if (o->code != IR_SPLAT && def_if(x, IR_SPLAT))
		return build1(b, IR_SPLAT, t, operand(x->def, 0));
	if (o->code == IR_BROADCAST && def_if(x, IR_BROADCAST))
		return build1(b, IR_BROADCAST, t, operand(x->def, 0));
	if (x->type == t && (o->code != IR_TRANS || identity_perm(o)))
		return x;
	if (o->code == IR_RESHAPE && def_if(x, IR_RESHAPE)) {
		struct value *v = build1(b, IR_RESHAPE, t, operand(x->def, 0));
		v->def->attr[0] = o->attr[0] && x->def->attr[0];
		return v;
	}
	if (o->code == IR_TRANS && def_if(x, IR_TRANS)) {
		int perm[MAX_RANK];
		for (int i = 0; i < t->rank; i++)
			perm[i] = perm_get(x->def->attr[ATTR_ORDER], perm_get(o->attr[ATTR_ORDER], i));
		struct value *v = build1(b, IR_TRANS, t, operand(x->def, 0));
		v->def->attr[ATTR_ORDER] = perm_pack(perm, t->rank);
		return v;
	}
	return NULL;
}

/* The uniform tile v (a splat or constant) in the smaller shape `small`. */
static struct value *shrink_uniform(struct builder *b, struct value *v, const struct type *small)
{
	const struct type *t = type_with_elem(b->ctx, small, type_elem(v->type));
	u64 bits;
	if (def_if(v, IR_SPLAT))
		return type_is_tensor(small) ? build1(b, IR_SPLAT, t, operand(v->def, 0)) : operand(v->def, 0);
	return value_const_bits(v, &bits) ? build_constant(b, t, bits) : NULL;
}

static bool is_uniform(const struct value *v)
{
	return def_if(v, IR_SPLAT) || (def_if(v, IR_CONSTANT) && type_is_tensor(v->type));
}

/* Moves an elementwise operation before the broadcast, expand_dims or splat of its operands, if they all come from the
 * same smaller shape: op(broadcast(a), splat(s)) → broadcast(op(a, splat(s))). */
static struct value *hoist_above_broadcast(struct builder *b, const struct op *o)
{
	if (!op_has(o, ELEM) || !type_is_tensor(o->results[0].type))
		return NULL;
	const struct op *shape = NULL; /* a broadcast or expand_dims whose operand has the smaller shape */
	for (u32 i = 0; i < o->noperands; i++) {
		struct value *v = operand(o, i);
		if (!type_is_tensor(v->type))
			continue; /* the scalar condition of a select */
		if (is_uniform(v))
			continue;
		if (!v->def || (v->def->code != IR_BROADCAST && v->def->code != IR_EXPAND_DIMS))
			return NULL;
		if (shape &&
		    (shape->code != v->def->code || shape->attr[ATTR_AXIS] != v->def->attr[ATTR_AXIS] ||
		     memcmp(operand(shape, 0)->type->shape, operand(v->def, 0)->type->shape, sizeof(i32) * MAX_RANK)))
			return NULL;
		shape = v->def;
	}
	const struct type *small = shape ? operand(shape, 0)->type : type_scalar(b->ctx, DT_I1);
	struct value *ops[4];
	if (o->noperands > ARRAY_LEN(ops))
		return NULL;
	for (u32 i = 0; i < o->noperands; i++) {
		struct value *v = operand(o, i);
		ops[i] = !type_is_tensor(v->type) ? v
			 : is_uniform(v)          ? shrink_uniform(b, v, small)
						  : operand(v->def, 0);
	}
	const struct type *t = o->results[0].type, *r = type_with_elem(b->ctx, small, type_elem(t));
	struct op *n = build(b, o->code, ops, o->noperands, &r, 1, 0);
	memcpy(n->attr, o->attr, sizeof n->attr);
	if (!shape)
		return build1(b, IR_SPLAT, t, result(n));
	struct value *v = build1(b, shape->code, t, result(n));
	memcpy(v->def->attr, shape->attr, sizeof shape->attr);
	return v;
}

/* --- dots, loads, stores ------------------------------------------------------------------------------------- */

/* dot(a, b, 0) + c → dot(a, b, c), if the dot has no other use. */
static struct value *combine_dot(struct builder *b, const struct op *o)
{
	if (o->code != IR_ADDF && o->code != IR_ADDI)
		return NULL;
	enum dtype d = type_dtype(o->results[0].type);
	for (u32 i = 0; i < 2; i++) {
		struct op *dot = def_if(operand(o, i), IR_DOT);
		if (!dot || !is_zero(operand(dot, 2)) || !value_has_one_use(result(dot)) || d == DT_F16 ||
		    dot->block != o->block)
			continue;
		struct value *v =
			build3(b, IR_DOT, o->results[0].type, operand(dot, 0), operand(dot, 1), operand(o, 1 - i));
		memcpy(v->def->attr, dot->attr, sizeof dot->attr);
		v->def->loc = dot->loc;
		return v;
	}
	return NULL;
}

static struct value *fold_load(struct builder *b, struct op *o)
{
	if (o->code != IR_LOAD || o->noperands < 2)
		return NULL;
	if (is_bool(operand(o, 1), false) && o->noperands > 2)
		return operand(o, 2);
	if (!is_bool(operand(o, 1), true))
		return NULL;
	struct value *v = build1(b, IR_LOAD, o->results[0].type, operand(o, 0));
	memcpy(v->def->attr, o->attr, sizeof o->attr);
	return v;
}

/* Simplifies stores and assertions, which have no results. True if the operation is erased; otherwise it may be changed
 * in place. */
static bool simplify_effect(struct canon *c, struct op *o)
{
	if (o->code == IR_STORE && o->noperands > 2) {
		if (is_bool(operand(o, 2), true)) {
			op_remove_operand(o, 2);
			c->changed = true;
		} else if (is_bool(operand(o, 2), false)) {
			op_erase(o);
			return true;
		}
	}
	if (o->code == IR_ASSERT && is_bool(operand(o, 0), true)) {
		op_erase(o);
		return true;
	}
	return false;
}

/* --- control flow -------------------------------------------------------------------------------------------- */

/* Moves the operations of `from` before `at`, except its terminator, which is returned. */
static struct op *splice(struct block *from, struct op *at)
{
	while (from->first != from->last)
		op_insert_before(from->first, at);
	return from->last;
}

/* True if a select can replace the branch: the block is empty or, outside loops, has a few scalar operations. Facts
 * about their results then hold for the select. In a loop, a branch may mark where a tile begins
 * (unflatten_loops.c). */
static bool is_choice(const struct block *b)
{
	enum { FEW = 2 };
	u32 n = 0;
	for (const struct op *o = b->parent->block->parent; o && b->first != b->last; o = o->block->parent)
		if (op_is_loop(o))
			return false;
	for (const struct op *o = b->first; o != b->last; o = o->next) {
		if (!op_has(o, ELEM) || !op_has(o, PURE) || type_is_tensor(result(o)->type) || o->hints ||
		    op_may_trap(o) || ++n > FEW)
			return false;
	}
	return true;
}

static bool simplify_if(struct canon *c, struct op *o)
{
	i64 cond;
	struct op *y[2] = {o->blocks[0]->last, o->blocks[1]->last};
	if (value_const_int(operand(o, 0), &cond)) {
		struct op *t = splice(o->blocks[cond ? 0 : 1], o);
		for (u32 i = 0; i < o->nresults; i++)
			replace_uses(&o->results[i], operand(t, i));
		op_erase(o);
		return true;
	}
	if (!is_choice(o->blocks[0]) || !is_choice(o->blocks[1]))
		return false;
	splice(o->blocks[0], o);
	splice(o->blocks[1], o);
	struct builder b = builder_before(c->ctx, o);
	for (u32 i = 0; i < o->nresults; i++)
		replace_uses(&o->results[i], build3(&b, IR_SELECT, o->results[i].type, operand(o, 0), operand(y[0], i),
						    operand(y[1], i)));
	op_erase(o);
	return true;
}

/* True if the loop is better replaced by its only iteration. Of a loop in a flattened loop, the copies run ahead across
 * the iterations of the flattened loop. */
static bool runs_once(const struct op *loop)
{
	const struct op *around = loop->block->parent;
	while (around && around->code == IR_IF)
		around = around->block->parent;
	return for_iterations(loop) == 1 && !(around && around->code == IR_FOR && around->attr[ATTR_FLATTEN]);
}

/* Replaces the loop by its only iteration. */
static void inline_iteration(struct op *loop)
{
	replace_uses(for_index(loop), for_lower(loop));
	for (u32 i = 0; i < loop->nresults; i++)
		replace_uses(for_arg(loop, i), for_init(loop, i));
	const struct op *yield = splice(loop->blocks[0], loop);
	for (u32 i = 0; i < loop->nresults; i++)
		replace_uses(&loop->results[i], operand(yield, i));
	op_erase(loop);
}

/* Erases a loop without iterations, and replaces a loop of one iteration, such as a loop over the parts of a tile that
 * is not divided, by its body. Replaces a carried value that never changes by its initial value. */
static bool simplify_for(struct canon *c, struct op *o)
{
	i64 lb, ub;
	bool known = value_const_int(for_lower(o), &lb) && value_const_int(for_upper(o), &ub);
	if (for_lower(o) == for_upper(o) || (known && lb >= ub)) {
		for (u32 i = 0; i < o->nresults; i++)
			replace_uses(&o->results[i], for_init(o, i));
		op_erase(o);
		return true;
	}
	if (runs_once(o)) {
		inline_iteration(o);
		return true;
	}
	for (u32 i = 0; i < o->nresults; i++) {
		struct value *arg = for_arg(o, i), *next = for_yielded(o, i), *init = for_init(o, i);
		if (next != arg && next != init)
			continue;
		replace_uses(arg, init);
		replace_uses(&o->results[i], init);
		for_remove_carried(o, i);
		c->changed = true;
		i--;
	}
	return false;
}

/* Replaces carried values of an scf.while that never change by their initial values, and removes carried values without
 * uses. */
static bool simplify_while(struct canon *c, struct op *o)
{
	struct block *before = o->blocks[0], *after = o->blocks[1];
	for (u32 i = o->nresults; i-- > 0;) {
		struct value *arg = before->args[i], *in = after->args[i], *init = operand(o, i),
			     *next = operand(after->last, i);
		if (operand(before->last, i + 1) != arg)
			continue;
		bool unread = value_has_one_use(arg) && value_unused(in) && value_unused(&o->results[i]);
		if (next != in && next != init && !unread)
			continue;
		op_remove_operand(before->last, i + 1);
		op_remove_operand(after->last, i);
		replace_uses(arg, init);
		replace_uses(in, init);
		replace_uses(&o->results[i], init);
		op_remove_operand(o, i);
		block_remove_arg(before, i);
		block_remove_arg(after, i);
		op_remove_result(o, i);
		c->changed = true;
	}
	return false;
}

/* x / n * n → x, and x % n → 0, if x is a multiple of n. */
static struct value *fold_multiple(struct canon *c, struct builder *b, const struct op *o)
{
	i64 n;
	bool remains = o->code == IR_REMSI && value_const_int(operand(o, 1), &n) && n > 0;
	struct value *x = remains ? operand(o, 0) : rounded_down(result(o), &n);
	if (!x || !is_known_multiple(c->k, x, n))
		return NULL;
	return remains ? build_int(b, x->type, 0) : x;
}

/* Moves a constant to the start of the kernel, so that cse merges equal constants and no loop contains any. */
static void hoist_constant(struct op *o)
{
	struct block *top = o->block;
	while (top->parent)
		top = top->parent->block;
	if (o->block != top)
		op_insert_before(o, top->first);
}

static bool simplify_op(struct canon *c, struct op *o)
{
	struct builder b = builder_before(c->ctx, o);
	struct value *(*const rules[])(struct builder *, const struct op *) = {
		fold_constants, fold_identity, fold_factors, fold_shape, combine_dot, hoist_above_broadcast};
	if (o->code == IR_CONSTANT) {
		hoist_constant(o);
		return false;
	}
	if (o->code == IR_IF)
		return simplify_if(c, o);
	if (o->code == IR_FOR)
		return simplify_for(c, o);
	if (o->code == IR_WHILE)
		return simplify_while(c, o);
	if (!o->nresults)
		return simplify_effect(c, o);
	struct value *v = fold_load(&b, o);
	for (u32 i = 0; i < ARRAY_LEN(rules) && !v && op_has(o, PURE); i++)
		v = rules[i](&b, o);
	if (!v)
		v = fold_multiple(c, &b, o);
	if (!v)
		return false;
	if (!v->name && v->def && v->def->code != IR_CONSTANT)
		v->name = o->results[0].name;
	if (o->hints)
		v = value_with_hints(&b, v, o->hints);
	replace_uses(&o->results[0], v);
	op_erase(o);
	return true;
}

static void simplify_block(struct canon *c, struct block *b)
{
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		if (simplify_op(c, o)) {
			c->changed = true;
			continue;
		}
		for (u32 i = 0; i < o->nblocks; i++)
			simplify_block(c, o->blocks[i]);
	}
}

void pass_canonicalize(struct pass_state *s)
{
	struct canon c = {.ctx = s->ctx, .k = s->k};
	int rounds = 0;
	do {
		c.changed = false;
		simplify_block(&c, s->k->body);
		remove_dead_code(s->k);
	} while (c.changed && ++rounds < 20);
}

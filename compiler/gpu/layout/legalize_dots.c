/* Dots: operand types that the target's tensor cores take.
 *
 * fp8 types without an instruction are widened to fp16, which is exact. A dot of fp32 with more precision than one
 * number of tf32 or bf16 becomes several dots of its operands' parts. A dot that still has no instruction is left to
 * multiply-adds. Remarks report each case. */
#include "gpu/layout/mma.h"
#include "gpu/gpu_passes.h"

static struct value *widen(struct builder *b, struct value *v)
{
	return build1(b, IR_FP_TO_FP, type_with_dtype(b->ctx, v->type, DT_F16), v);
}

/* --- dots of parts ---------------------------------------------------------------------------------------------- */

/* An fp32 operand as a sum of parts, the largest first. Each part is the number nearest to the remainder after the
 * parts before it. */
enum { MAX_PARTS = 3 };
struct parts {
	struct value *at[MAX_PARTS];
};

/* The products of parts to sum, in this order, the largest last: to sum small ones first is more exact. The omitted
 * products are smaller than an error of fp32 (six products), or of the smallest part. Henry, Tang, Heinecke:
 * "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations", arXiv:1904.06376. */
struct split {
	enum dtype dtype;
	enum dot_precision of_products;
	int parts, products;
	const char *name, *precision; /* for remarks */
	u8 left[6], right[6];
};

static const struct split *split_of(const struct op *dot)
{
	static const struct split splits[] = {
		[PRECISION_TF32X3] = {DT_F32, PRECISION_TF32, 2, 3, "tf32", "tf32x3", {1, 0, 0}, {0, 1, 0}},
		[PRECISION_BF16X3] = {DT_BF16, PRECISION_IEEE, 2, 3, "bf16", "bf16x3", {1, 0, 0}, {0, 1, 0}},
		[PRECISION_BF16X6] =
			{DT_BF16, PRECISION_IEEE, 3, 6, "bf16", "bf16x6", {1, 2, 0, 1, 0, 0}, {1, 0, 2, 0, 1, 0}},
	};
	i64 precision = dot->attr[ATTR_PRECISION];
	bool fp32 = type_dtype(operand(dot, 0)->type) == DT_F32;
	return fp32 && precision < (i64)ARRAY_LEN(splits) && splits[precision].parts ? &splits[precision] : NULL;
}

/* The nearest tf32 number, ties away from zero. NaN stays NaN. */
static struct value *round_tf32(struct builder *b, struct value *v)
{
	const struct type *t = v->type, *bits = type_with_dtype(b->ctx, t, DT_I32);
	struct value *x = build1(b, IR_BITCAST, bits, v);
	x = build2(b, IR_ADDI, bits, x, build_constant(b, bits, 0x1000));
	x = build1(b, IR_BITCAST, t, build2(b, IR_ANDI, bits, x, build_constant(b, bits, 0xFFFFE000)));
	struct value *nan = build2(b, IR_CMPF, type_with_dtype(b->ctx, t, DT_I1), v, v);
	nan->def->attr[ATTR_PREDICATE] = CMPF_UNO;
	return build3(b, IR_SELECT, t, nan, v, x);
}

/* The parts of an operand, computed right after its definition: outside loops in which it is invariant, and once for
 * all dots. */
static struct parts *split_operand(struct pass_state *s, struct map *done, struct value *v, const struct split *how)
{
	struct parts *p = map_get(done, v);
	if (p && p->at[how->parts - 1] && type_dtype(p->at[0]->type) == how->dtype)
		return p;
	struct block *block = v->def ? v->def->block : v->block;
	struct builder b = v->def	? builder_after(s->ctx, v->def)
			   : block->first ? builder_before(s->ctx, block->first)
					  : builder_at_end(s->ctx, block);
	p = arena_new(s->ctx->arena, struct parts);
	struct value *rest = v;
	for (int i = 0; i < how->parts; i++) {
		bool last = i == how->parts - 1;
		struct value *wide;
		if (how->dtype == DT_F32) {
			wide = p->at[i] = last ? rest : round_tf32(&b, rest); /* the dot truncates the last */
		} else {
			p->at[i] = build1(&b, IR_TRUNCF, type_with_dtype(s->ctx, v->type, how->dtype), rest);
			wide = last ? NULL : build1(&b, IR_EXTF, v->type, p->at[i]);
		}
		if (!last)
			rest = build2(&b, IR_SUBF, v->type, rest, wide);
	}
	map_put(done, v, p);
	return p;
}

/* v with NaN replaced by 0: the small parts of an infinite operand are NaN, and their products must not count. */
static struct value *without_nan(struct builder *b, struct value *v)
{
	struct value *nan = build2(b, IR_CMPF, type_with_dtype(b->ctx, v->type, DT_I1), v, v);
	nan->def->attr[ATTR_PREDICATE] = CMPF_UNO;
	return build3(b, IR_SELECT, v->type, nan, build_constant(b, v->type, 0), v);
}

static void split_dot(struct pass_state *s, struct map *done, struct op *o, const struct split *how)
{
	const struct type *t = result(o)->type;
	struct parts *a = split_operand(s, done, operand(o, 0), how),
		     *b = split_operand(s, done, operand(o, 1), how);
	struct builder at = builder_before(s->ctx, o);
	struct value *sum = build_constant(&at, t, 0);
	for (int i = 0; i < how->products; i++) {
		if (i == how->products - 1)
			sum = without_nan(&at, sum);
		sum = build3(&at, IR_DOT, t, a->at[how->left[i]], b->at[how->right[i]], sum);
		sum->def->attr[ATTR_PRECISION] = how->of_products;
	}
	replace_uses(result(o), build2(&at, IR_ADDF, t, sum, operand(o, 2)));
	op_erase(o);
	if (s->remarks)
		diag(s->diags, R_DOT_SPLIT, at.loc, how->name, how->products, how->precision);
}

/* --- the pass ------------------------------------------------------------------------------------------------ */

struct legalize {
	struct pass_state *s;
	struct map split;
};

static void legalize(struct op *o, void *arg)
{
	struct legalize *l = arg;
	struct pass_state *s = l->s;
	if (o->code != IR_DOT)
		return;
	enum dtype a = type_dtype(operand(o, 0)->type), b = type_dtype(operand(o, 1)->type);
	const struct split *how = split_of(o);
	if (how && mma_select(s->target, how->dtype, how->dtype, DT_F32, how->of_products)) {
		split_dot(s, &l->split, o, how);
		return;
	}
	if (dtype_is_fp8(a) && !mma_for_dot(s->target, o)) {
		struct builder at = builder_before(s->ctx, o);
		op_set_operand(o, 0, widen(&at, operand(o, 0)));
		op_set_operand(o, 1, widen(&at, operand(o, 1)));
		if (s->remarks)
			diag(s->diags, R_DOT_WIDENED, o->loc, dtype_name(a), dtype_name(b),
			     dtype_name(type_dtype(result(o)->type)), s->target->sm);
	}
	if (s->remarks && !mma_for_dot(s->target, o)) {
		diag(s->diags, R_DOT_FMA, o->loc, dtype_name(type_dtype(operand(o, 0)->type)),
		     dtype_name(type_dtype(result(o)->type)), s->target->sm);
		if (a == DT_F32)
			diag_hint(s->diags, "from sm_80 on, input_precision=\"tf32\" uses tensor cores; \"tf32x3\" "
					    "also does, with almost the precision of fp32");
	}
}

void pass_legalize_dots(struct pass_state *s)
{
	struct legalize l = {.s = s, .split = {.arena = s->ctx->arena}};
	walk(s->k->body, legalize, &l);
}

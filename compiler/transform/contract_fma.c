/* Contraction to fma: x * y + z becomes one instruction, rounded once, if the product has no other use. Triton leaves
 * this to LLVM and ptxas, which contract unless enable_fp_fusion is False. */
#include "ir/pass.h"

static bool has_fma(enum dtype d)
{
	return d == DT_F16 || d == DT_F32 || d == DT_F64;
}

/* True if v has one use, not counting debug variables. */
static bool has_one_use(const struct value *v)
{
	u32 n = 0;
	for (const struct use *u = v->uses; u; u = u->next)
		n += !op_is_debug(u->user);
	return n == 1;
}

static void contract(struct op *o, void *arg)
{
	struct ir_context *ctx = arg;
	if ((o->code != IR_ADDF && o->code != IR_SUBF) || !has_fma(type_dtype(o->results[0].type)))
		return;
	for (u32 i = 0; i < 2; i++) {
		struct op *mul = def_if(operand(o, i), IR_MULF);
		if (!mul || !has_one_use(result(mul)) || mul->block != o->block)
			continue;
		struct builder b = builder_before(ctx, o);
		struct value *x = operand(mul, 0), *y = operand(mul, 1), *z = operand(o, 1 - i);
		if (o->code == IR_SUBF && i == 0)
			z = build1(&b, IR_NEGF, z->type, z);
		else if (o->code == IR_SUBF)
			x = build1(&b, IR_NEGF, x->type, x);
		struct value *v = build3(&b, IR_FMA, o->results[0].type, x, y, z);
		v->name = o->results[0].name;
		replace_uses(&o->results[0], v);
		return;
	}
}

void pass_contract_fma(struct pass_state *s)
{
	if (s->options.fp_fusion == FP_FUSION_OFF)
		return;
	walk(s->k->body, contract, s->ctx);
	remove_dead_code(s->k);
}

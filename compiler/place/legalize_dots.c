/* Dots: operand types that the target's tensor cores take.
 *
 * fp8 that no instruction takes is exact in fp16, so it is widened; a dot that then no instruction does is left for
 * multiply-adds. A remark says which. */
#include "place/mma.h"
#include "place/place.h"

static struct value *widen(struct builder *b, struct value *v)
{
	return build1(b, IR_FP_TO_FP, type_with_dtype(b->ctx, v->type, DT_F16), v);
}

static void legalize(struct op *o, void *arg)
{
	struct pass_state *s = arg;
	if (o->code != IR_DOT)
		return;
	enum dtype a = type_dtype(operand(o, 0)->type), b = type_dtype(operand(o, 1)->type);
	if (dtype_is_fp8(a) && !mma_of_dot(s->target, o)) {
		struct builder at = builder_before(s->ctx, o);
		op_set_operand(o, 0, widen(&at, operand(o, 0)));
		op_set_operand(o, 1, widen(&at, operand(o, 1)));
		if (s->remarks)
			diag(s->diags, R_DOT_WIDENED, o->loc, dtype_name(a), dtype_name(b),
			     dtype_name(type_dtype(result(o)->type)), s->target->sm);
	}
	if (s->remarks && !mma_of_dot(s->target, o)) {
		diag(s->diags, R_DOT_FMA, o->loc, dtype_name(type_dtype(operand(o, 0)->type)),
		     dtype_name(type_dtype(result(o)->type)), s->target->sm);
		if (a == DT_F32)
			diag_hint(s->diags, "input_precision=\"tf32\" uses tensor cores from sm_80 on");
	}
}

void pass_legalize_dots(struct pass_state *s)
{
	walk(s->k->body, legalize, s);
}

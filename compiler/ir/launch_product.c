#include "ir/launch_product.h"

bool multiply_products(const struct launch_product *x, const struct launch_product *y, struct launch_product *out)
{
	struct launch_product made = {0};
	u32 i = 0, k = 0, n = (u32)(x->nparams + y->nparams);
	if (n > PRODUCT_PARAMS || __builtin_mul_overflow(x->times, y->times, &made.times))
		return false;
	while (made.times && made.nparams < (i16)n) {
		bool first = k == (u32)y->nparams || (i < (u32)x->nparams && x->params[i] <= y->params[k]);
		made.params[made.nparams++] = first ? x->params[i++] : y->params[k++];
	}
	*out = made;
	return true;
}

bool is_launch_product(const struct kernel *k, struct value *v, struct launch_product *out)
{
	enum { MOST = PRODUCT_PARAMS + 2 }; /* factors, including constants that are not folded into one */
	struct value *work[MOST] = {v};
	u32 n = 1, own = k->nparams - (k->cuda.persistent ? GRID_PARAMS : 0);
	*out = (struct launch_product){.times = 1};
	for (u32 looked_at = 0; n; looked_at++) {
		struct launch_product factor = {.times = 1};
		for (v = work[--n]; v->def && (op_is_shape(v->def) || v->def->code == IR_SPLAT ||
					       v->def->code == IR_EXTSI || v->def->code == IR_CONVERT_LAYOUT);)
			v = operand(v->def, 0);
		if (v->def && v->def->code == IR_MULI && n + 2 <= MOST && looked_at < 2 * MOST) {
			work[n++] = operand(v->def, 0);
			work[n++] = operand(v->def, 1);
			continue;
		}
		i32 param = param_number(k, v);
		if (param >= 0 && (u32)param < own && v->type->kind == TY_SCALAR && dtype_is_int(v->type->dtype))
			factor.params[factor.nparams++] = (i16)param;
		else if (!value_const_int(v, &factor.times))
			return false;
		if (!multiply_products(out, &factor, out))
			return false;
	}
	return true;
}

bool is_host_sum(const struct kernel *k, struct value *v, struct launch_product *out)
{
	i64 plus = 0;
	if (def_if(v, IR_ADDI) && type_elem_bits(v->type) == 64 && value_const_int(operand(v->def, 1), &plus))
		v = operand(v->def, 0);
	bool yes = is_launch_product(k, v, out);
	out->plus = plus;
	return yes && plus >= 0 && plus <= INT32_MAX;
}

struct value *build_product(struct kernel *k, const struct launch_product *p)
{
	struct builder b = builder_before(k->ctx, k->body->first);
	const struct type *t = type_scalar(k->ctx, DT_I64);
	struct value *made = p->nparams ? NULL : build_int(&b, t, p->times);
	if (p->nparams == 1 && p->times == 1 && !p->plus)
		return k->params[p->params[0]].value;
	for (int i = 0; i < p->nparams; i++) {
		struct value *v = build_i64(&b, k->params[p->params[i]].value);
		made = made ? build2(&b, IR_MULI, t, made, v) : v;
	}
	if (p->nparams && p->times != 1)
		made = build2(&b, IR_MULI, t, made, build_int(&b, t, p->times));
	return p->plus ? build2(&b, IR_ADDI, t, made, build_int(&b, t, p->plus)) : made;
}

/* A warning about statements that only compute a value and do not use it. */
#include "frontend/frontend_internal.h"

static bool has_effect(const struct op *o)
{
	return op_has(o, WRITE) || (o->code == IR_LOAD && o->attr[ATTR_VOLATILE]);
}

static bool has_effect_within(const struct op *o)
{
	bool yes = has_effect(o);
	for (u32 i = 0; i < o->nblocks && !yes; i++)
		yes = block_has(o->blocks[i], has_effect);
	return yes;
}

static bool has_effect_since(const struct eval *e, const struct op *before)
{
	const struct op *o = before ? before->next : e->b.block->first;
	while (o && !has_effect_within(o))
		o = o->next;
	return o != NULL;
}

bool is_name_path(const struct expr *x)
{
	while (x->kind == EX_ATTR)
		x = x->a;
	return x->kind == EX_NAME;
}

/* True if x, an evaluated expression, calls a function of the language rather than of the source. Hints are excluded:
 * they apply to the value itself. */
static bool calls_builtin(struct eval *e, const struct expr *x)
{
	static const char *const promises[] = {"multiple_of", "max_contiguous", "max_constancy"};
	if (x->kind != EX_CALL || !is_name_path(x->a))
		return false;
	struct val f = eval_expr(e, x->a);
	if (f.kind == V_METHOD)
		f = *f.callee;
	for (u32 i = 0; i < ARRAY_LEN(promises) && f.kind == V_BUILTIN; i++)
		if (!strcmp(f.builtin->name, promises[i]))
			return false;
	return f.kind == V_BUILTIN || (f.kind == V_FUNC && f.func->module->is_library);
}

/* True if x consists only of names, literals and operators. */
static bool is_plain(const struct expr *x)
{
	switch (x->kind) {
	case EX_NAME:
	case EX_INT:
	case EX_FLOAT:
	case EX_NONE:
	case EX_TRUE:
	case EX_FALSE:
	case EX_STR: return true;
	case EX_ATTR:
	case EX_UNARY: return is_plain(x->a);
	case EX_BINARY: return is_plain(x->a) && is_plain(x->b);
	case EX_COMPARE:
		for (u32 i = 0; i < x->nitems; i++)
			if (!is_plain(x->items[i]))
				return false;
		return true;
	default: return false;
	}
}

static bool computes(const struct expr *x)
{
	return (x->kind == EX_COMPARE || x->kind == EX_BINARY || x->kind == EX_UNARY) && is_plain(x);
}

void warn_of_unused(struct eval *e, const struct expr *x, const struct val *v, const struct op *before)
{
	const struct func *f = e->frame->func;
	bool is_value = v->kind == V_TENSOR || val_is_number(v) || v->kind == V_TUPLE || v->kind == V_OBJECT;
	if (!is_value || f->kind != FUNC_JIT || f->host || f->module->is_library || has_effect_since(e, before) ||
	    !(computes(x) || calls_builtin(e, x)))
		return;
	diag(e->diags, W_UNUSED, x->loc, x->kind == EX_CALL ? source_text(e, x->a->loc) : "this operator");
	if (x->kind == EX_COMPARE && x->nitems == 2 && x->ops[0] == OP_EQ)
		diag_hint(e->diags, "write '=' to assign this value to a variable; '==' compares");
	else
		diag_hint(e->diags, "operators and functions do not change their operands: assign the result, as in y "
				    "= …, or remove it");
}

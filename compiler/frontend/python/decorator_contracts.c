/* Requirements of a function's decorators: a result that calls must use, and parameters that are not specialised. */
#include "frontend/frontend_internal.h"

static const struct decorator *decorator_of(const struct func *f, const char *name)
{
	for (u32 i = 0; i < f->ndecorators; i++) {
		const char *dot = strrchr(f->decorators[i].name, '.');
		if (!strcmp(dot ? dot + 1 : f->decorators[i].name, name))
			return &f->decorators[i];
	}
	return NULL;
}

/* The value of x, in the module of f or, if f is NULL, at the current place; an error value, without a diagnostic, if
 * it is unknown. */
static struct val value_if_known(struct eval *e, const struct func *f, const struct expr *x)
{
	struct diags_point before = diags_point(e->diags);
	struct val v = f ? eval_in_module(e, f, x) : eval_expr(e, x);
	if (e->diags->nerrors == before.errors)
		return v;
	diags_rewind(e->diags, before);
	return val_error();
}

void check_must_use(struct eval *e, const struct expr *x)
{
	struct val v = value_if_known(e, NULL, x->a);
	const struct func *f = v.kind == V_METHOD ? v.callee->func : v.kind == V_FUNC ? v.func : NULL;
	if (!f || (v.kind == V_METHOD && v.callee->kind != V_FUNC))
		return;
	const struct decorator *d = decorator_of(f, "must_use_result");
	const struct expr *call = d ? decorator_call(e, f->module, d) : f->must_use;
	if (!d && !call)
		return;
	eval_error(e, E_MUST_USE, x->loc, source_text(e, x->a->loc));
	struct val why = call && call->kind == EX_CALL && call->nitems ? value_if_known(e, f, call->items[0])
								       : val_error();
	diag_hint(e->diags, "%s",
		  why.kind == V_STR ? why.text : "assign the result to a variable, or leave out the call");
}

/* Reports a tl.constexpr parameter in one list of @triton.jit(...). */
static void check_list(struct eval *e, const struct func *f, const char *list, const struct val *v)
{
	for (u32 i = 0; v->kind == V_TUPLE && i < v->nitems; i++)
		for (u32 k = 0; k < f->nparams; k++) {
			const struct val *x = &v->items[i];
			const struct param *p = &f->params[k];
			bool named = x->kind == V_STR ? !strcmp(x->text, p->name) : x->kind == V_INT && x->integer == k;
			if (named && p->annotation && is_constexpr_annotation(p->annotation))
				eval_error(e, E_CONSTEXPR_UNSPECIALIZED, p->loc, p->name, list);
		}
}

void check_unspecialized(struct eval *e, const struct func *f)
{
	static const char *const lists[] = {"do_not_specialize", "do_not_specialize_on_alignment"};
	const struct expr *call = f->jit.name ? decorator_call(e, f->module, &f->jit) : NULL;
	for (u32 i = 0; call && i < ARRAY_LEN(lists); i++)
		for (u32 k = 0; k < call->nkeywords; k++) {
			const struct keyword *w = &call->keywords[k];
			if (w->name && !strcmp(w->name, lists[i])) {
				struct val v = value_if_known(e, f, w->value);
				check_list(e, f, lists[i], &v);
			}
		}
}

/* Builtins that state or check facts about values: hints, assumptions, static assertions, and static_print. */
#include "frontend/builtin_args.h"

struct val bi_hint(struct eval *e, const struct args *a)
{
	struct val v, values = a->at[1];
	if (!arg_tensor(e, a, 0, &v))
		return v;
	u32 n, rank = (u32)MAX(v.ssa->type->rank, 1);
	const struct val *items = items_of(&values, &n);
	if (n != rank)
		return eval_error(e, E_HINT_COUNT, a->loc[1], a->b->name, n, PLURAL(n), rank);
	struct hints h = {0};
	i32 *want = a->b->code == 0 ? h.divisibility : a->b->code == 1 ? h.contiguity : h.constancy;
	for (u32 i = 0; i < n; i++) {
		struct val n = known_number(items[i]);
		if (n.kind != V_INT || n.integer < 1)
			return eval_error(e, E_ARG_KIND, a->loc[1], "values", a->b->name, "positive integers",
					  describe(e, &n));
		/* a number counts as the largest power of two that divides it */
		want[i] = (i32)MIN(n.integer & -n.integer, (i128)1 << 30);
	}
	/* the divisibility of a parameter holds for the whole kernel if every execution reaches the hint */
	if (!v.ssa->def && v.ssa->block == e->b.block && !v.ssa->block->parent && a->b->code == 0 &&
	    always_reaches(e->b.block, NULL, e->b.before)) {
		e->kernel->params[v.ssa->index].divisibility =
			MAX(e->kernel->params[v.ssa->index].divisibility, want[0]);
		return v;
	}
	v.ssa = value_with_hints(&e->b, v.ssa, &h);
	return v;
}

struct val bi_assume(struct eval *e, const struct args *a)
{
	struct value *cond = NULL;
	int known = truth(e, a->at[0], a->loc[0], &cond);
	if (known == -1)
		build(&e->b, IR_ASSUME, &cond, 1, NULL, 0, 0);
	if (known == 0)
		diag(e->diags, W_ASSUME_FALSE, user_loc(e, a->loc[0]));
	return val_none();
}

struct val bi_static_assert(struct eval *e, const struct args *a)
{
	struct value *cond;
	int known = truth(e, known_number(a->at[0]), a->loc[0], &cond);
	bool in_library = e->frame->func->module->is_library; /* the text of a library assertion names the condition */
	if (known == -1 && !in_library)
		return eval_error(e, E_STATIC_ASSERT_RUNTIME, a->loc[0]);
	if (known == 0 || known == -1)
		return eval_error(e, E_STATIC_ASSERT, a->loc[0],
				  a->at[1].kind == V_STR && a->at[1].len ? a->at[1].text : source_text(e, a->loc[0]));
	return val_none();
}

struct val bi_static_print(struct eval *e, const struct args *a)
{
	struct strbuf sb = {.arena = e->arena};
	for (u32 i = 0; i < a->at[0].nitems; i++) {
		if (i)
			print_val(&sb, &a->at[1]);
		print_val(&sb, &a->at[0].items[i]);
	}
	diag(e->diags, R_STATIC_PRINT, user_loc(e, a->loc[0]), sb.at ? sb.at : "");
	return val_none();
}

#include "gpu/layout/register_operand.h"

static bool has(const op_vec *run, const struct op *o)
{
	bool yes = false;
	for (u32 i = 0; i < run->len && !yes; i++)
		yes = run->at[i] == o;
	return yes;
}

bool is_for_operand(const struct op *o, const struct op *dot, const op_vec *run)
{
	bool yes = o->nresults == 1 && type_is_tensor(o->results[0].type);
	for (const struct use *u = yes ? o->results[0].uses : NULL; u && yes; u = u->next)
		yes = u->user == dot ? u == dot->operands + dot->attr[ATTR_EXCHANGED] : has(run, u->user);
	return yes;
}

op_vec operand_run(struct arena *a, const struct op *dot)
{
	op_vec run = {0};
	for (struct op *o = dot->prev; o && (op_is_orderless(o) || o->code == IR_LOCAL_LOAD); o = o->prev)
		if (is_for_operand(o, dot, &run))
			vec_push(a, &run, o);
	for (u32 i = 0; i < run.len / 2; i++) {
		struct op *last = run.at[run.len - 1 - i];
		run.at[run.len - 1 - i] = run.at[i];
		run.at[i] = last;
	}
	return run;
}

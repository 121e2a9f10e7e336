/* Debug operations: the statements that run, the values of variables, and the calls around a statement. */
#include "frontend/control_flow.h"

/* True if code under evaluation gets debug operations. Statements of the library, and of functions that it calls, count
 * as part of the user's statement that calls the library. A function on elements has no statements that run in
 * sequence. */
static bool is_marked(const struct eval *e)
{
	if (!e->lines || e->host)
		return false;
	for (const struct op *o = e->b.block->parent; o; o = o->block->parent)
		if (op_runs_on_elements(o))
			return false;
	for (const struct frame *f = e->frame; f; f = f->caller)
		if (f->func->kind != FUNC_JIT || f->func->module->is_library)
			return false;
	return true;
}

static struct op *mark(struct eval *e, enum opcode code, struct value *v, struct loc at, const char *text)
{
	struct builder b = e->b;
	b.loc = at;
	struct op *o = build(&b, code, &v, v != NULL, NULL, 0, 0);
	o->text = text;
	e->b.count = b.count;
	return o;
}

void mark_line(struct eval *e, struct loc at)
{
	if (is_marked(e))
		mark(e, IR_DEBUG_LINE, NULL, at, NULL);
}

/* True if v may be used at the current place. After a branch or a loop a variable may have a value that is only defined
 * inside. */
static bool is_visible(const struct eval *e, const struct value *v)
{
	const struct block *of = v->def ? v->def->block : v->block, *b = e->b.block;
	while (b != of && b->parent)
		b = b->parent->block;
	return b == of || (!v->def && !v->block);
}

void mark_value(struct eval *e, const char *name, const struct val *v)
{
	if (v->kind == V_TENSOR && is_marked(e) && is_visible(e, v->ssa))
		mark(e, IR_DEBUG_VALUE, v->ssa, e->b.loc, name);
}

void mark_variables(struct eval *e, const scope *before)
{
	const scope *vars = &e->frame->vars;
	for (u32 i = 0; e->lines && i < vars->len; i++) {
		const struct binding *b = &vars->at[i], *old = before ? lookup(before, b->name) : NULL;
		if (b->val.kind == V_TENSOR && !(old && old->val.kind == V_TENSOR && old->val.ssa == b->val.ssa))
			mark_value(e, b->name, &b->val);
	}
}

void mark_call(struct eval *e)
{
	if (!is_marked(e))
		return;
	mark(e, IR_DEBUG_CALL, NULL, e->frame->func->loc, e->frame->func->name);
	mark_variables(e, NULL);
}

void mark_return(struct eval *e)
{
	if (is_marked(e))
		mark(e, IR_DEBUG_RETURN, NULL, e->b.loc, NULL);
}

/* Which parameters the kernel reads and writes memory through. A tuner must preserve the memory of those parameters. */
#include "ir/ir.h"

struct uses {
	struct kernel *k;
	bool reads_any, writes_any; /* through pointers of unknown origin */
};

/* Notes an access by o. Every program executes an access in the kernel's own body that has no mask; `unmasked` is the
 * number of operands without a mask. */
static void note(struct uses *u, const struct op *o, u32 unmasked, bool reads, bool writes)
{
	const struct value *base = pointer_base(operand(o, 0));
	i32 i = base ? param_number(u->k, base) : -1;
	if (i < 0) {
		u->reads_any |= reads;
		u->writes_any |= writes;
		return;
	}
	u->k->params[i].reads |= reads;
	u->k->params[i].writes |= writes;
	u->k->params[i].always |= o->block == u->k->body && o->noperands == unmasked;
}

static void visit(struct op *o, void *arg)
{
	struct uses *u = arg;
	switch (o->code) {
	case IR_LOAD: note(u, o, 1, true, false); break;
	case IR_STORE: note(u, o, 2, false, true); break;
	case IR_ATOMIC_RMW: note(u, o, 2, true, true); break;
	case IR_ATOMIC_CAS: note(u, o, 3, true, true); break;
	case IR_INLINE_ASM: u->reads_any = u->writes_any = true; break;
	default: break;
	}
}

void kernel_note_uses(struct kernel *k)
{
	struct uses u = {.k = k};
	walk(k->body, visit, &u);
	for (u32 i = 0; i < k->nparams; i++) {
		bool pointer = k->params[i].value->type->kind == TY_PTR;
		k->params[i].reads |= pointer && u.reads_any;
		k->params[i].writes |= pointer && u.writes_any;
	}
}

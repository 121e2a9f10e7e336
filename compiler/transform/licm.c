/* Loop-invariant code motion: pure operations on values from outside a loop move before it.
 *
 * Divisions move only if the divisor is a non-zero constant: a loop without iterations must not divide by zero.
 * Operations with hints stay, because hints inside the loop need not hold before it. */
#include "ir/pass.h"

static bool invariant(const struct op *o, const struct block *loop)
{
	if (!op_has(o, PURE) || o->nblocks || op_may_trap(o) || o->hints)
		return false;
	for (u32 i = 0; i < o->noperands; i++)
		if (!value_defined_outside(operand(o, i), loop))
			return false;
	return true;
}

static void hoist_from(struct block *b)
{
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		for (u32 i = 0; i < o->nblocks; i++) {
			hoist_from(o->blocks[i]);
			for (struct op *in = o->blocks[i]->first, *after; in && op_is_loop(o); in = after) {
				after = in->next;
				if (invariant(in, o->blocks[i]))
					op_insert_before(in, o);
			}
		}
	}
}

void pass_licm(struct pass_state *s)
{
	hoist_from(s->k->body);
}

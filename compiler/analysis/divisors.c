#include "analysis/divisors.h"

#include "ir/graph.h"
#include "ir/pass.h"

/* Only the axis analysis (analysis/axis.h) uses divisors of scalars. Its results are queried for tiles of pointers, for
 * masks, for tiles that a quotient, a shift or a comparison makes constant in runs, and for the ends of loops. The
 * search starts at these values and follows their operands backward. */
struct divisor_search {
	struct value_walk walk;
	bool has_dots;
};

static bool is_tile(const struct value *v)
{
	return type_is_tensor(v->type);
}

static void visit_tile(struct divisor_search *s, const struct op *o, u32 i)
{
	if (i < o->noperands && is_tile(operand(o, i)))
		visit_later(&s->walk, operand(o, i));
}

static bool loads_tile(const struct op *o)
{
	return o->code == IR_LOAD && is_tile(result(o));
}

/* True if the unroll pass may unroll the loop. No iterations remain after the unrolled loop if their number is a known
 * multiple of the factor. */
static bool may_be_unrolled(const struct op *loop)
{
	return loop->attr[ATTR_UNROLL] > 1 || (only_sums(loop) && block_has(loop->blocks[0], loads_tile));
}

/* Adds the operands of o for which the axis analysis is queried. */
static void find_questions(struct op *o, void *arg)
{
	struct divisor_search *s = arg;
	switch (o->code) {
	case IR_LOAD: /* pointers and mask */
	case IR_ATOMIC_CAS:
		visit_tile(s, o, 0);
		visit_tile(s, o, 1);
		break;
	case IR_STORE:
	case IR_ATOMIC_RMW:
		visit_tile(s, o, 0);
		visit_tile(s, o, 2);
		break;
	case IR_DIVSI: /* of scalars too, because remainders are folded */
	case IR_DIVUI:
	case IR_REMSI:
	case IR_REMUI: visit_operands(&s->walk, o); break;
	case IR_SHRSI:
	case IR_SHRUI:
	case IR_CMPI:
		visit_tile(s, o, 0);
		visit_tile(s, o, 1);
		break;
	case IR_FOR:
		/* consecutive TMA loops are joined if the first ends at a multiple of its step */
		if (s->has_dots || may_be_unrolled(o))
			visit_later(&s->walk, for_upper(o));
		if (may_be_unrolled(o)) {
			visit_later(&s->walk, for_lower(o));
			visit_later(&s->walk, for_step(o));
		}
		break;
	case IR_WHILE: /* may become such a loop: the bound is an operand of the condition */
		if (s->has_dots)
			visit_later(&s->walk, operand(o->blocks[0]->last, 0));
		break;
	default: break;
	}
}

/* True if a divisor of an operand gives a divisor or a run of the result. For other operations the analysis knows only
 * which elements are equal. That does not follow from divisors directly, only through the operations above. */
static bool keeps_divisors(const struct op *o)
{
	switch (o->code) {
	case IR_ADDI:
	case IR_SUBI:
	case IR_MULI:
	case IR_DIVSI:
	case IR_DIVUI:
	case IR_REMSI:
	case IR_REMUI:
	case IR_ANDI:
	case IR_SHLI:
	case IR_SHRSI:
	case IR_SHRUI:
	case IR_MAXSI:
	case IR_MAXUI:
	case IR_MINSI:
	case IR_MINUI:
	case IR_SELECT:
	case IR_CMPI: /* part of a mask */
	case IR_ORI:
	case IR_EXTSI:
	case IR_EXTUI:
	case IR_TRUNCI:
	case IR_BITCAST:
	case IR_SPLAT:
	case IR_ADDPTR: return true;
	default: return op_is_shape(o);
	}
}

/* Visits the values that a block argument, or the result of an operation with blocks, may receive. */
static void visit_flow(struct divisor_search *s, const struct op *o, const struct value *v)
{
	struct use *from[2];
	u32 n = operands_passed_to(v, from);
	for (u32 i = 0; i < n; i++)
		visit_later(&s->walk, from[i]->value);
	if (loop_of_index(v)) {
		visit_later(&s->walk, for_lower(o));
		visit_later(&s->walk, for_step(o));
	} else if (!n) {
		visit_operands(&s->walk, o);
		for (u32 b = 0; b < o->nblocks; b++)
			visit_operands(&s->walk, o->blocks[b]->last);
	}
}

void useful_divisors(struct kernel *k, i16 *most)
{
	struct divisor_search s = {.walk = {.id = begin_walk(k->ctx)}, .has_dots = block_has(k->body, op_is_dot)};
	const struct value *v;
	for (u32 i = 0; i < k->nparams; i++)
		most[i] = DIVISOR_NONE;
	walk(k->body, find_questions, &s);
	while ((v = visit_next(&s.walk))) {
		i32 param = param_number(k, v);
		const struct op *o = v->def ? v->def : v->block->parent;
		if (param >= 0)
			most[param] = s.has_dots ? DIVISOR_TILE : DIVISOR_ACCESS;
		else if (o && o->nblocks)
			visit_flow(&s, o, v);
		else if (o && keeps_divisors(o))
			visit_operands(&s.walk, o);
	}
}

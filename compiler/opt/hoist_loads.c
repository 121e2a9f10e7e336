/* Load hoisting: a load that does not depend on the reductions, scans and loops in front of it moves above them, so
 * that its latency overlaps with theirs.
 *
 * It moves over stores only if they go through another pointer parameter to another type, and over no atomic, barrier,
 * assertion or volatile access. The registers that it holds meanwhile are limited: a layer normalisation that loads its
 * weights and biases early has fewer rows on a multiprocessor at once, which on an H200 made some configurations a
 * quarter slower and none faster. The loads of a pipelined loop's prologue, which all others wait for, may hold
 * more. */
#include "base/tuning.h"
#include "opt/alias.h"

struct hoisting {
	struct pass_state *s;
	bool first;            /* only loops' first loads */
	u32 most, most_in_all; /* registers of a thread that a load may hold, and all of them */
	u32 clock, registers;  /* registers: held by loads that have moved */
};

/* Does o, or an operation inside it, forbid the load to move over it? */
static bool conflicts(struct pass_state *s, const struct op *load, const struct op *o)
{
	const struct value *mine = pointer_base(operand(load, 0)), *other;
	switch (o->code) {
	case IR_ATOMIC_RMW:
	case IR_ATOMIC_CAS:
	case IR_BARRIER:
	case IR_ASSERT:
	/* the program may end or hang here; promises behind it do not hold in front of it */
	case IR_WHILE: return true;
	case IR_LOAD: return o->attr[ATTR_VOLATILE];
	case IR_STORE:
		other = pointer_base(operand(o, 0));
		return o->attr[ATTR_VOLATILE] || !mine || !other || type_elem(mine->type) == type_elem(other->type) ||
		       may_overlap(s, mine, other, false);
	default: break;
	}
	for (u32 i = 0; i < o->nblocks; i++)
		for (const struct op *in = o->blocks[i]->first; in; in = in->next)
			if (conflicts(s, load, in))
				return true;
	return false;
}

static bool has_dot(const struct op *o)
{
	bool yes = op_is_dot(o);
	for (u32 i = 0; i < o->nblocks; i++)
		yes |= block_has(o->blocks[i], op_is_dot);
	return yes;
}

/* Can v be computed in front of `at`, an earlier operation of the same block? */
static bool can_come_before(const struct value *v, const struct op *at, u32 walk)
{
	const struct op *o = v->def;
	if (!o || o->block != at->block || o->mark < at->mark || !first_visit(v, walk))
		return true;
	if (!op_has(o, PURE) || op_has(o, SYNC) || o->nblocks || op_may_trap(o))
		return false;
	for (u32 i = 0; i < o->noperands; i++)
		if (!can_come_before(operand(o, i), at, walk))
			return false;
	return true;
}

static void bring_before(struct value *v, struct op *at)
{
	struct op *o = v->def;
	if (!o || o->block != at->block || o->mark < at->mark)
		return;
	for (u32 i = 0; i < o->noperands; i++)
		bring_before(operand(o, i), at);
	op_insert_before(o, at);
	o->mark = at->mark - 1; /* o now stands in front of at */
}

static u32 registers_of(const struct hoisting *e, const struct value *v)
{
	i64 bits = type_is_tensor(v->type) ? type_numel(v->type) / (32 * e->s->num_warps) * type_elem_bits(v->type)
					   : type_elem_bits(v->type);
	return (u32)MIN(MAX((bits + 31) / 32, 1), 1 << 20);
}

/* Is a loop the only user of the load? */
static bool is_first_load(const struct op *load)
{
	const struct use *u = result(load)->uses;
	return u && !u->next && u->user->code == IR_FOR;
}

/* The earliest reduction, scan or loop that the load can move above; NULL if there is none. */
static struct op *highest_place(const struct hoisting *e, const struct op *load)
{
	struct op *best = NULL;
	u32 registers = registers_of(e, result(load));
	if ((e->first && !is_first_load(load)) || registers > e->most || e->registers + registers > e->most_in_all)
		return NULL;
	for (struct op *o = load->prev; o; o = o->prev) {
		if (conflicts(e->s, load, o) || has_dot(o) || (op_is_loop(o) && registers > MAX_REGISTERS_OVER_LOOP))
			break;
		bool possible = true;
		for (u32 i = 0; possible && i < load->noperands; i++)
			possible = can_come_before(operand(load, i), o, begin_walk(e->s->ctx));
		if (!possible)
			break;
		if (op_is_loop(o) || o->code == IR_REDUCE || o->code == IR_SCAN)
			best = o;
	}
	return best;
}

static void number_ops(struct hoisting *e, struct block *b)
{
	for (struct op *o = b->first; o; o = o->next)
		o->mark = e->clock += 2;
}

static void visit(struct hoisting *e, struct block *b)
{
	for (struct op *o = b->first; o; o = o->next)
		for (u32 i = 0; i < o->nblocks; i++)
			if (o->code != IR_REDUCE && o->code != IR_SCAN)
				visit(e, o->blocks[i]);
	for (const struct op *o = b->first; o; o = o->next)
		if (op_is_dot(o))
			return; /* the pipeliner schedules its operands */
	number_ops(e, b);
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		struct op *at = o->code == IR_LOAD && !o->attr[ATTR_VOLATILE] ? highest_place(e, o) : NULL;
		if (!at)
			continue;
		for (u32 i = 0; i < o->noperands; i++)
			bring_before(operand(o, i), at);
		op_insert_before(o, at);
		number_ops(e, b);
		e->registers += registers_of(e, result(o));
	}
}

void pass_hoist_loads(struct pass_state *s)
{
	struct hoisting e = {.s = s, .most = MAX_HOISTED_REGISTERS, .most_in_all = MAX_HOISTED_REGISTERS_IN_ALL};
	visit(&e, s->k->body);
}

void pass_hoist_prologue_loads(struct pass_state *s)
{
	struct hoisting e = {.s = s, .first = true, .most = MAX_PROLOGUE_REGISTERS,
				  .most_in_all = MAX_PROLOGUE_REGISTERS_IN_ALL};
	visit(&e, s->k->body);
}

/* Load hoisting: a load that does not depend on the preceding reductions, scans and loops moves above them, so that its
 * latency overlaps with them.
 *
 * A load moves above stores only if they go through another pointer parameter with another element type, and never
 * above atomics, barriers, assertions or volatile accesses. The registers that are live meanwhile are limited: a layer
 * normalisation that loads its weights and biases early has fewer rows on a multiprocessor at once, which on an H200
 * made some configurations a quarter slower and none faster. Loads in the prologue of a pipelined loop, for which all
 * iterations wait, have a higher limit. */
#include "support/thresholds.h"
#include "ir/graph.h"
#include "analysis/alias.h"
#include "analysis/register_pressure.h"

struct hoisting {
	struct pass_state *s;
	bool first;            /* only loads in the prologues of pipelined loops */
	i64 most, most_in_all; /* limits on the registers of a thread, for each load and for all hoisted loads */
	i64 registers;  /* registers of the loads that have moved */
};

/* True if o, or an operation inside it, prevents the load from moving above it. */
static bool conflicts(struct pass_state *s, const struct op *load, const struct op *o)
{
	const struct value *mine = pointer_base(operand(load, 0)), *other;
	switch (o->code) {
	case IR_ATOMIC_RMW:
	case IR_ATOMIC_CAS:
	case IR_BARRIER:
	case IR_ASSERT:
	case IR_INLINE_ASM:
	case IR_GRID_WAIT:
	/* the program may end or hang here; hints after it do not hold before it */
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

/* True if a loop is the only user of the load. */
static bool is_first_load(const struct op *load)
{
	const struct use *u = result(load)->uses;
	return u && !u->next && u->user->code == IR_FOR;
}

static bool is_worth_passing(const struct op *o)
{
	return op_is_loop(o) || op_runs_on_elements(o);
}

/* The earliest reduction, scan or loop that the load can move above; NULL if none. `needed` is empty at first, and
 * receives the operands that move along. */
static struct op *highest_place(const struct hoisting *e, const struct op *load, struct value_set *needed)
{
	struct op *best = NULL;
	i64 registers = registers_of(e->s, result(load));
	if ((e->first && !is_first_load(load)) || registers > e->most || e->registers + registers > e->most_in_all)
		return NULL;
	add_operands(needed, load);
	for (struct op *o = load->prev; o; o = o->prev) {
		if (conflicts(e->s, load, o) || has_dot(o) || (op_is_loop(o) && registers > MAX_REGISTERS_OVER_LOOP) ||
		    !take_along(needed, o))
			break;
		if (is_worth_passing(o))
			best = o;
	}
	return best;
}

/* Moves the load, and its operands in `needed` defined after `at`, before `at`. */
static void move_before(struct op *load, struct op *at, const struct value_set *needed)
{
	for (struct op *o = at, *next; o != load; o = next) {
		next = o->next;
		if (set_has_result(needed, o))
			op_insert_before(o, at);
	}
	op_insert_before(load, at);
}

static void visit(struct hoisting *e, struct block *b)
{
	for (struct op *o = b->first; o; o = o->next)
		for (u32 i = 0; i < o->nblocks; i++)
			if (!op_runs_on_elements(o))
				visit(e, o->blocks[i]);
	for (const struct op *o = b->first; o; o = o->next)
		if (op_is_dot(o))
			return; /* the pipeliner schedules its operands */
	bool worth = false; /* true after the first reduction, scan or loop */
	for (struct op *o = b->first, *next; o; o = next) {
		next = o->next;
		worth |= is_worth_passing(o);
		if (o->code != IR_LOAD || o->attr[ATTR_VOLATILE] || !worth)
			continue;
		struct value_set needed = {0};
		struct op *at = highest_place(e, o, &needed);
		if (at) {
			move_before(o, at, &needed);
			e->registers += registers_of(e->s, result(o));
		}
		arena_free(&needed.scratch);
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

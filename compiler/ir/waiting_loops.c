/* Analysis of waiting loops: the end of such a loop may depend on data that another program, or the host, writes.
 *
 * Such a loop reads the same address repeatedly. Its exit depends on a load or an atomic operation in the loop, and
 * there is a path through an iteration on which the address does not change. A search that leaves the loop when it has
 * found an entry moves to another address in each iteration, and does not wait. */
#include "support/recover.h"
#include "ir/ir.h"

/* A goal of the search: on the path v equals `arg`, or 0 if `arg` is NULL. */
struct same {
	struct value *v, *arg;
};

enum { MOST_STEPS = 1000 };

/* The side of a branch or select that the execution path under search takes. */
struct side {
	const struct value *condition;
	u32 taken;
};

struct wait_search {
	const struct op *loop;
	struct arena arena;
	struct map seen;
	VEC(struct value *) work;
	VEC(struct same) goals;
	VEC(struct side) sides;
	u32 steps; /* remaining steps */
};

static bool outside(const struct wait_search *s, const struct value *v)
{
	return value_defined_outside(v, s->loop->blocks[0]) && value_defined_outside(v, s->loop->blocks[1]);
}

static void reach(struct wait_search *s, struct value *v)
{
	if (outside(s, v) || map_get(&s->seen, v))
		return;
	map_put(&s->seen, v, v);
	vec_push(&s->arena, &s->work, v);
}

static void reach_operands(struct wait_search *s, const struct op *o)
{
	for (u32 i = 0; i < o->noperands; i++)
		reach(s, operand(o, i));
}

/* Adds the operands of an operation and the operands of the terminators of its blocks. */
static void reach_inputs(struct wait_search *s, const struct op *o)
{
	reach_operands(s, o);
	for (u32 i = 0; i < o->nblocks; i++)
		if (o->blocks[i]->last)
			reach_operands(s, o->blocks[i]->last);
}

/* Adds the values from which v is computed: within one iteration, or with `iterations` also in earlier iterations. */
static void reach_from(struct wait_search *s, const struct value *v, bool iterations)
{
	const struct block *before = s->loop->blocks[0], *after = s->loop->blocks[1];
	if (v->def)
		reach_inputs(s, v->def);
	else if (v->block == after)
		reach(s, operand(before->last, 1 + v->index));
	else if (v->block != before)
		reach_inputs(s, v->block->parent);
	else if (iterations)
		reach(s, operand(after->last, v->index));
}

static void begin(struct wait_search *s)
{
	s->seen = (struct map){.arena = &s->arena};
	s->work.len = 0;
}

/* --- addresses that stay the same ----------------------------------------------------------------------------- */

static bool all_same(struct wait_search *s);

static bool then_same(struct wait_search *s, struct value *v, struct value *arg)
{
	vec_push(&s->arena, &s->goals, ((struct same){v, arg}));
	bool good = all_same(s);
	s->goals.len--;
	return good;
}

/* Solves the goal for a choice between two values by a condition: on the side already taken by the path, or on either
 * side. */
static bool side_same(struct wait_search *s, const struct value *condition, struct value *const *from,
		      struct value *arg)
{
	for (u32 i = 0; i < s->sides.len; i++)
		if (s->sides.at[i].condition == condition)
			return then_same(s, from[s->sides.at[i].taken], arg);
	bool good = false;
	for (u32 k = 0; k < 2 && !good; k++) {
		vec_push(&s->arena, &s->sides, ((struct side){condition, k}));
		good = then_same(s, from[k], arg);
		s->sides.len--;
	}
	return good;
}

static bool result_same(struct wait_search *s, const struct value *v, struct value *arg)
{
	const struct op *o = v->def;
	struct value *from[2];
	switch (o->code) {
	case IR_IF:
		for (u32 k = 0; k < 2; k++)
			from[k] = operand(o->blocks[k]->last, v->index);
		return side_same(s, operand(o, 0), from, arg);
	case IR_SELECT:
		for (u32 k = 0; k < 2; k++)
			from[k] = operand(o, 1 + k);
		return side_same(s, operand(o, 0), from, arg);
	case IR_FOR: return then_same(s, for_init(o, v->index), arg); /* the inner loop may have no iterations */
	case IR_WHILE: {
		const struct value *passed = operand(o->blocks[0]->last, 1 + v->index);
		return !passed->def && passed->block == o->blocks[0] && then_same(s, operand(o, passed->index), arg);
	}
	case IR_EXTUI:
	case IR_EXTSI: return !arg && then_same(s, operand(o, 0), arg);
	case IR_CMPI:
	case IR_CMPF: return !arg && all_same(s);
	case IR_ADDI:
	case IR_ADDPTR: {
		vec_push(&s->arena, &s->goals, ((struct same){operand(o, 1), NULL}));
		bool good = then_same(s, operand(o, 0), arg);
		s->goals.len--;
		return good;
	}
	default: return false;
	}
}

/* True if a path satisfies the last goal and all goals before it. */
static bool all_same(struct wait_search *s)
{
	if (!s->goals.len || !s->steps)
		return true; /* if the search takes too long, the loop is assumed to wait */
	s->steps--;
	struct same g = s->goals.at[--s->goals.len];
	const struct block *before = s->loop->blocks[0];
	bool good = false;
	if (g.arg ? g.v == g.arg : value_is_int(g.v, 0))
		good = all_same(s);
	else if (g.v->def && !outside(s, g.v))
		good = result_same(s, g.v, g.arg);
	else if (!g.v->def && g.v->block == s->loop->blocks[1])
		good = then_same(s, operand(before->last, 1 + g.v->index), g.arg);
	s->goals.at[s->goals.len++] = g;
	return good;
}

/* True if an iteration may leave the address unchanged. */
static bool address_may_stay(struct wait_search *s, const struct op *look)
{
	const struct block *before = s->loop->blocks[0], *after = s->loop->blocks[1];
	s->goals.len = s->sides.len = 0;
	s->steps = MOST_STEPS;
	begin(s);
	for (u32 i = 0; i < (look->code == IR_INLINE_ASM ? look->noperands : 1); i++)
		reach(s, operand(look, i));
	for (u32 i = 0; i < s->work.len; i++) {
		struct value *v = s->work.at[i];
		if (!v->def && v->block == before)
			vec_push(&s->arena, &s->goals, ((struct same){operand(after->last, v->index), v}));
		else
			reach_from(s, v, false);
	}
	return all_same(s);
}

/* True for a load, or an atomic operation that may leave memory unchanged. */
static bool looks_at_memory(const struct op *o)
{
	u64 bits;
	if (o->code != IR_ATOMIC_RMW)
		return o->code == IR_LOAD || o->code == IR_ATOMIC_CAS || o->code == IR_INLINE_ASM;
	bool adds = o->attr[ATTR_RMW] == RMW_ADD || o->attr[ATTR_RMW] == RMW_FADD;
	return !adds || !value_const_bits(operand(o, 1), &bits) || !bits;
}

static bool loop_may_wait(const struct op *loop)
{
	struct wait_search s = {.loop = loop};
	VEC(const struct op *) looks = {0};
	struct cleanup c;
	bool waits = false;
	cleanup_arena(&c, &s.arena);
	begin(&s);
	reach(&s, operand(loop->blocks[0]->last, 0));
	for (u32 i = 0; i < s.work.len; i++) {
		const struct value *v = s.work.at[i];
		if (v->def && looks_at_memory(v->def))
			vec_push(&s.arena, &looks, v->def);
		reach_from(&s, v, true);
	}
	for (u32 i = 0; i < looks.len && !waits; i++)
		waits = address_may_stay(&s, looks.at[i]);
	cleanup_run(&c);
	return waits;
}

bool op_may_wait(const struct op *o)
{
	if (o->code == IR_INLINE_ASM)
		return strstr(o->text, "bra"); /* the assembly contains a loop */
	return o->code == IR_WHILE && loop_may_wait(o);
}

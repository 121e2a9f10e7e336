/* If-conversion: if a branch in a loop of dots computes the addresses of the loop's loads, both sides are computed in
 * every iteration, and selects choose between their results.
 *
 *     for …                                 for …
 *         if k == 0:                            i_next = i_of(tile)
 *             i = i_of(tile)                    i = select(k == 0, i_next, i)
 *         x = load(a + i …)                     x = load(a + i …)
 *
 * Loads are issued ahead of their iteration if their addresses are index arithmetic only, without branches. A loop over
 * all slices of all tiles needs this if unflatten_loops.c does not split it into two loops. Hints about a value in the
 * branch hold where the select chooses it, and so for all uses. */
#include "support/thresholds.h"
#include "ir/graph.h"
#include "ir/pass.h"

static bool is_index(const struct type *t)
{
	return type_is_ptr(t) || !dtype_is_float(type_dtype(t));
}

/* True if the block contains only index arithmetic, which may be executed speculatively. */
static bool is_index_arithmetic(const struct block *b)
{
	u32 n = 0;
	for (const struct op *o = b->first; o != b->last; o = o->next)
		if (!op_has(o, PURE) || op_has(o, SYNC) || o->nblocks || o->nresults != 1 ||
		    !is_index(result(o)->type) || ++n > MAX_SELECTED_OPERATIONS)
			return false;
	return true;
}

/* True if the address or the mask of a load in the same block depends on the branch. */
static bool is_loaded_by(const struct op *branch)
{
	struct value_set found = {0};
	bool yes = false;
	for (u32 i = 0; i < branch->nresults; i++)
		if (set_add(&found, &branch->results[i]))
			vec_push(&found.scratch, &found.work, &branch->results[i]);
	while (found.work.len && !yes)
		for (const struct use *u = found.work.at[--found.work.len]->uses; u && !yes; u = u->next) {
			const struct op *o = u->user;
			yes = o->block == branch->block && o->code == IR_LOAD;
			if (o->block == branch->block && op_has(o, PURE) && !o->nblocks && o->nresults == 1 &&
			    set_add(&found, result(o)))
				vec_push(&found.scratch, &found.work, result(o));
		}
	arena_free(&found.scratch);
	return yes;
}

static bool can_convert(const struct op *branch)
{
	bool yes = branch->code == IR_IF && is_index_arithmetic(branch->blocks[0]) &&
		   is_index_arithmetic(branch->blocks[1]);
	for (u32 i = 0; i < branch->nresults && yes; i++)
		yes = is_index(branch->results[i].type);
	return yes && is_loaded_by(branch);
}

/* Replaces the divisor by 1 if the branch is not taken, since it may be 0 then. */
static void divide_safely(struct builder *b, struct op *o, struct value *condition, bool taken)
{
	struct value *by = operand(o, 1), *one = build_int(b, by->type, 1);
	op_set_operand(o, 1, build3(b, IR_SELECT, by->type, condition, taken ? by : one, taken ? one : by));
}

static void convert(struct ir_context *ctx, struct op *branch)
{
	struct value *condition = operand(branch, 0);
	for (u32 k = 0; k < 2; k++) {
		struct block *from = branch->blocks[k];
		while (from->first != from->last) {
			struct op *o = from->first;
			op_insert_before(o, branch);
			struct builder b = builder_before(ctx, o);
			if (op_may_trap(o))
				divide_safely(&b, o, condition, k == 0);
		}
	}
	struct builder b = builder_before(ctx, branch);
	b.loc = branch->loc;
	for (u32 i = 0; i < branch->nresults; i++) {
		struct value *v = &branch->results[i], *yes = operand(branch->blocks[0]->last, i),
			     *no = operand(branch->blocks[1]->last, i);
		replace_uses(v, build3(&b, IR_SELECT, v->type, condition, yes, no));
	}
	op_erase(branch);
}

static void visit(struct op *loop, void *arg)
{
	struct pass_state *s = arg;
	if (loop->code != IR_FOR || loop->attr[ATTR_STAGES] == 1 || !block_has(loop->blocks[0], op_is_dot))
		return;
	for (struct op *o = loop->blocks[0]->first, *next; o; o = next) {
		next = o->next;
		if (can_convert(o))
			convert(s->ctx, o);
	}
}

void pass_if_conversion(struct pass_state *s)
{
	walk(s->k->body, visit, s);
}

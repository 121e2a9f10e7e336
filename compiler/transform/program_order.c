/* Program order: reorders the programs of a two-dimensional grid into groups of rows, for reuse in the L2 cache.
 *
 * Blocks start in the order of their linear number, x fastest. A kernel that takes the row and column of its tile from
 * axes 0 and 1 then walks down the columns of tiles one by one. With groups of G rows, it walks through G rows, column
 * by column, before the next G rows. So the tiles that run at the same time share both rows and columns. (The mapping
 * is that of tl.swizzle2d, without a change of the kernel's source.)
 *
 * Without an option, this is done in launches of many rows, for a loop with independent dots that loads some values by
 * the row alone and some by the column: all rows may exceed L2, and each column would load them again. On an H100 the
 * mixture of experts of the benchmarks, with 16,384 tokens (64 MB), goes from 582 to 463 µs. */
#include "transform/program_order.h"

#include "support/thresholds.h"
#include "ir/graph.h"
#include "analysis/launch_bounds.h"

static bool may_talk(const struct op *o)
{
	return o->code == IR_ATOMIC_RMW || o->code == IR_ATOMIC_CAS || o->code == IR_BARRIER ||
	       o->code == IR_INLINE_ASM || o->code == IR_GRID_WAIT || o->code == IR_GRID_LAUNCH ||
	       (o->code == IR_LOAD && o->attr[ATTR_VOLATILE]);
}

static bool talks_inside(const struct op *o)
{
	bool talks = may_talk(o);
	for (u32 i = 0; i < o->nblocks && !talks; i++)
		talks = block_has(o->blocks[i], may_talk);
	return talks;
}

bool kernel_talks(const struct kernel *k)
{
	return block_has(k->body, may_talk);
}

bool talks_until(const struct op *last)
{
	bool talks = talks_inside(last);
	for (; last && !talks; last = last->block->parent)
		for (const struct op *o = last->block->first; o != last && !talks; o = o->next)
			talks = talks_inside(o);
	return talks;
}

u32 axes_behind(struct ir_context *ctx, const struct value *v, u32 memory)
{
	struct value_walk w = {.id = begin_walk(ctx)};
	u32 axes = 0;
	visit_later(&w, v);
	while ((v = visit_next(&w))) {
		const struct op *o = v->def;
		axes |= !o ? 0 : o->code == IR_PROGRAM_ID ? 1u << o->attr[ATTR_AXIS] : o->code == IR_LOAD ? memory : 0;
		if (o)
			visit_operands(&w, o);
	}
	end_walk(&w, true);
	return axes;
}

/* State of the search for loops of dots with loads that gain from shared rows. */
struct wish {
	struct pass_state *s;
	bool yes;
};

static void look_at_loop(struct op *loop, void *arg)
{
	enum { ROW = 1, COLUMN = 2 };
	struct wish *w = arg;
	bool rows = false, columns = false;
	if (loop->code != IR_FOR || !block_has(loop->blocks[0], op_is_dot) || chains_dots(w->s->ctx, loop->blocks[0]))
		return;
	for (const struct op *o = loop->blocks[0]->first; o; o = o->next) {
		u32 axes = o->code == IR_LOAD ? axes_behind(w->s->ctx, operand(o, 0), 0) : 0;
		rows |= (axes & (ROW | COLUMN)) == ROW;
		columns |= (axes & COLUMN) != 0;
	}
	w->yes |= rows && columns;
}

static void note_axis(struct op *o, void *arg)
{
	if (o->code == IR_PROGRAM_ID)
		*(u32 *)arg |= 1u << o->attr[ATTR_AXIS];
}

i64 rows_in_group(struct pass_state *s, bool many)
{
	struct wish w = {.s = s};
	u32 axes = 0;
	walk(s->k->body, note_axis, &axes);
	if ((axes & 3) != 3) /* the kernel does not use a two-dimensional grid */
		return 0;
	if (s->options.group_pids)
		return s->options.group_pids > 1 ? s->options.group_pids : 0;
	if (many && !kernel_talks(s->k))
		walk(s->k->body, look_at_loop, &w);
	return w.yes ? ROWS_IN_GROUP : 0;
}

void split_by_groups(struct builder *b, struct value *linear, struct value *rows, struct value *cols, i64 group,
		     struct value **row, struct value **col)
{
	const struct type *t = linear->type;
	struct value *size = build_int(b, t, group);
	struct value *per_group = build2(b, IR_MULI, t, size, cols);
	struct value *first = build2(b, IR_MULI, t, build2(b, IR_DIVSI, t, linear, per_group), size);
	struct value *height = build2(b, IR_MINSI, t, build2(b, IR_SUBI, t, rows, first), size);
	struct value *inside = build2(b, IR_REMSI, t, linear, per_group);
	*row = build2(b, IR_ADDI, t, first, build2(b, IR_REMSI, t, inside, height));
	*col = build2(b, IR_DIVSI, t, inside, height);
	set_program_axis((*row)->def, 0);
	set_program_axis((*col)->def, 1);
}

/* --- blocks of one program each ---------------------------------------------------------------------------------- */

struct pids {
	struct op *own[2]; /* the program ids that the order is computed from */
	struct value *id[2];
};

static void replace_id(struct op *o, void *arg)
{
	const struct pids *p = arg;
	if (o->code == IR_PROGRAM_ID && o->attr[ATTR_AXIS] < 2 && o != p->own[0] && o != p->own[1])
		replace_uses(result(o), p->id[o->attr[ATTR_AXIS]]);
}

static struct value *of_axis(struct builder *b, enum opcode code, int axis)
{
	struct value *v = build1(b, code, type_scalar(b->ctx, DT_I32), NULL);
	v->def->attr[ATTR_AXIS] = axis;
	return v;
}

bool group_programs(struct pass_state *s, i64 group)
{
	if (!group || !bounds_keep_plane(s->k))
		return false;
	struct builder b = builder_before(s->ctx, s->k->body->first);
	const struct type *t = type_scalar(s->ctx, DT_I32);
	struct value *x = of_axis(&b, IR_PROGRAM_ID, 0), *y = of_axis(&b, IR_PROGRAM_ID, 1);
	struct value *rows = of_axis(&b, IR_NUM_PROGRAMS, 0), *cols = of_axis(&b, IR_NUM_PROGRAMS, 1);
	struct value *linear = build2(&b, IR_ADDI, t, build2(&b, IR_MULI, t, y, rows), x);
	struct pids p = {.own = {x->def, y->def}};
	split_by_groups(&b, linear, rows, cols, group, &p.id[0], &p.id[1]);
	walk(s->k->body, replace_id, &p);
	return true;
}

void pass_swizzle_pids(struct pass_state *s)
{
	group_programs(s, rows_in_group(s, false));
}

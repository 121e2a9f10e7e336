/* Program order: remaps a plain two-dimensional grid in groups, for reuse in the L2 cache.
 *
 * Blocks start in the order of their linear number, x fastest. A kernel that reads its tile's row and column from axes
 * 0 and 1 then walks down one column of tiles after the other. With a group of G, it walks through G rows at a time,
 * column by column inside them, so that the tiles in flight share both rows and columns (the remapping is that of
 * tl.swizzle2d, done here without touching the kernel's source). */
#include "opt/pass.h"

struct pids {
	struct value *id[2];
	int found;
};

static void replace_id(struct op *o, void *arg)
{
	const struct pids *p = arg;
	if (o->code == IR_PROGRAM_ID && o->attr[ATTR_AXIS] < 2 && &o->results[0] != p->id[0] &&
	    &o->results[0] != p->id[1] && !o->mark)
		replace_uses(&o->results[0], p->id[o->attr[ATTR_AXIS]]);
}

static void note_axis(struct op *o, void *arg)
{
	o->mark = 0;
	if (o->code == IR_PROGRAM_ID && o->attr[ATTR_AXIS] < 2)
		((struct pids *)arg)->found |= 1 << o->attr[ATTR_AXIS];
}

static struct value *axis_value(struct builder *b, enum opcode code, int axis)
{
	struct value *v = build1(b, code, type_scalar(b->ctx, DT_I32), NULL);
	v->def->attr[ATTR_AXIS] = axis;
	v->def->mark = 1;
	return v;
}

void pass_swizzle_pids(struct pass_state *s)
{
	struct pids p = {0};
	if (s->group_pids < 2)
		return;
	walk(s->k->body, note_axis, &p);
	if (p.found != 3) /* not a two-dimensional grid */
		return;
	struct builder b = builder_before(s->ctx, s->k->body->first);
	const struct type *t = type_scalar(s->ctx, DT_I32);
	struct value *x = axis_value(&b, IR_PROGRAM_ID, 0), *y = axis_value(&b, IR_PROGRAM_ID, 1);
	struct value *rows = axis_value(&b, IR_NUM_PROGRAMS, 0), *cols = axis_value(&b, IR_NUM_PROGRAMS, 1);
	struct value *size = build_int(&b, t, s->group_pids);
	struct value *linear = build2(&b, IR_ADDI, t, build2(&b, IR_MULI, t, y, rows), x);
	struct value *per_group = build2(&b, IR_MULI, t, size, cols);
	struct value *first = build2(&b, IR_MULI, t, build2(&b, IR_DIVSI, t, linear, per_group), size);
	struct value *height = build2(&b, IR_MINSI, t, build2(&b, IR_SUBI, t, rows, first), size);
	struct value *inside = build2(&b, IR_REMSI, t, linear, per_group);
	p.id[0] = build2(&b, IR_ADDI, t, first, build2(&b, IR_REMSI, t, inside, height));
	p.id[1] = build2(&b, IR_DIVSI, t, inside, height);
	walk(s->k->body, replace_id, &p);
}

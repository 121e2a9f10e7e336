/* Dots that no tensor core does: their operands in shared memory, where multiply-adds read them a few steps of k at a time.
 *
 * What a pipelined loop has copied is read from its buffer; the rest is stored for the dot. */
#include "layout/convert.h"
#include "place/mma.h"
#include "place/place.h"

struct stored {
	struct pass_state *s;
	struct arena scratch;
	struct map memory; /* what is stored → its last buffer */
};

/* Does the buffer that `load` reads stay as it is up to the dot? */
static bool stays(const struct op *load, const struct op *dot)
{
	const struct op *o = load->block == dot->block ? load->next : NULL;
	while (o && o != dot && ((op_has(o, PURE) && !o->nblocks) || o->code == IR_LOCAL_LOAD))
		o = o->next;
	return o == dot;
}

static struct value *in_memory(struct stored *all, struct op *dot, u32 i)
{
	struct pass_state *s = all->s;
	struct value *v = operand(dot, i);
	struct op *load = def_if(v, IR_LOCAL_LOAD), *convert = def_if(v, IR_CONVERT_LAYOUT);
	if (load && stays(load, dot))
		return operand(load, 0);
	struct value *src = convert ? operand(convert, 0) : v;
	const struct type *t = v->type;
	const struct layout *to = layout_fma_operand(&s->ctx->layouts, result(dot)->type->layout, t->shape, (int)i),
			    *mem = plan_shared(&s->ctx->layouts, src->type->layout, to, type_elem_bits(t), s->sm >= 90).mem;
	struct value *known = map_get(&all->memory, v);
	if (known && known->type->layout == mem)
		return known;
	struct builder b = v->def ? builder_after(s->ctx, v->def) : builder_before(s->ctx, dot);
	const struct type *desc = type_memdesc(s->ctx, t->elem, t->rank, t->shape, mem, 0);
	struct value *alloc = result(build(&b, IR_LOCAL_ALLOC, NULL, 0, &desc, 1, 0)), *ops[] = {src, alloc};
	build(&b, IR_LOCAL_STORE, ops, 2, NULL, 0, 0);
	alloc->name = v->name;
	if (v->def) /* visible wherever v is */
		map_put(&all->memory, v, alloc);
	return alloc;
}

static void visit(struct op *o, void *arg)
{
	struct stored *all = arg;
	if (o->code == IR_DOT && !mma_of_dot(all->s->sm, o))
		for (u32 i = 0; i < 2; i++)
			op_set_operand(o, i, in_memory(all, o, i));
}

void pass_multiply_adds(struct pass_state *s)
{
	struct stored all = {.s = s};
	all.memory.arena = &all.scratch;
	walk(s->k->body, visit, &all);
	remove_dead_code(s->k);
	arena_free(&all.scratch);
}

/* Dots without tensor cores: their operands go to shared memory, from which multiply-adds read them a few steps of k at
 * a time.
 *
 * An operand that a pipelined loop has copied is read from its buffer. Other operands are stored for the dot. */
#include "layout/conversion.h"
#include "gpu/layout/memory_access.h"
#include "gpu/layout/mma.h"
#include "gpu/gpu_passes.h"

struct stored {
	struct pass_state *s;
	struct arena scratch;
	struct map memory; /* stored value → its last buffer */
};

static bool writes(const struct op *o, const struct value *buffer)
{
	return (o->code == IR_LOCAL_STORE || o->code == IR_ASYNC_COPY || op_is_tensor_copy(o)) &&
	       operand(o, 1) == buffer;
}

/* True if nothing writes the buffer that `load` reads before the dot. Copies for later iterations go to other buffers
 * of the load. */
static bool stays(const struct op *load, const struct op *dot)
{
	while (dot && dot->block != load->block)
		dot = dot->block->parent;
	const struct op *o = dot ? load->next : NULL;
	while (o && o != dot && !writes(o, operand(load, 0)))
		o = o->next;
	return o && o == dot;
}

/* The value that v is a transposition of, or v. */
static struct value *straight(struct value *v)
{
	while (def_if(v, IR_TRANS))
		v = operand(v->def, 0);
	return v;
}

/* Applies to `base` the transpositions that lead from straight(v) to v. */
static struct value *transposed_value(struct pass_state *s, struct builder *b, const struct value *v,
				      struct value *base)
{
	if (!def_if(v, IR_TRANS))
		return base;
	struct value *in = transposed_value(s, b, operand(v->def, 0), base);
	const struct layout *l = transposed(&s->ctx->layouts, v->def, in->type->layout);
	bool memory = in->type->kind == TY_MEMDESC;
	const struct type *t = memory ? type_memdesc(s->ctx, v->type->elem, v->type->rank, v->type->shape, l, 0)
				      : type_with_layout(s->ctx, v->type, l);
	struct value *out = build1(b, memory ? IR_MEMDESC_TRANS : IR_TRANS, t, in);
	out->def->attr[ATTR_ORDER] = v->def->attr[ATTR_ORDER];
	return out;
}

/* The operation of the block that is `o`, or contains it. */
static struct op *ancestor_in(const struct block *block, struct op *o)
{
	while (o->block != block)
		o = o->block->parent;
	return o;
}

/* Operand i of the dot in shared memory. The store of a value goes before the first dot that reads it, in the block
 * that defines the value: later dots find the buffer there, and the store of a pipelined loop's results comes after the
 * waits that follow the loop. */
static struct value *in_memory(struct stored *all, struct op *dot, u32 i)
{
	struct pass_state *s = all->s;
	struct value *v = operand(dot, i), *base = straight(v);
	struct op *load = def_if(base, IR_LOCAL_LOAD), *convert = def_if(base, IR_CONVERT_LAYOUT);
	struct builder b = builder_before(s->ctx, dot);
	if (load && stays(load, dot))
		return transposed_value(s, &b, v, operand(load, 0));
	b = builder_before(s->ctx, ancestor_in(v->def ? v->def->block : v->block, dot));
	b.loc = v->def ? v->def->loc : dot->loc;
	struct value *src = convert ? transposed_value(s, &b, v, operand(convert, 0)) : v;
	const struct type *t = v->type;
	const struct layout *to = layout_fma_operand(&s->ctx->layouts, result(dot)->type->layout, t->shape, (int)i),
			    *mem = plan_shared(&s->ctx->layouts, src->type->layout, to, type_elem_bits(t),
					       s->target->has_stmatrix)
					   .mem;
	struct value *known = map_get(&all->memory, v);
	if (known && known->type->layout == mem)
		return known;
	struct value *buffer = store_shared(&b, src, mem);
	buffer->name = v->name;
	map_put(&all->memory, v, buffer);
	return buffer;
}

static void visit(struct op *o, void *arg)
{
	struct stored *all = arg;
	if (o->code == IR_DOT && !o->attr[ATTR_INSTR])
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

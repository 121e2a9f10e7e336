/* Operands of tensor-core dots wait in shared memory.
 *
 * mma.sync takes its operands from registers. A tile in another layout is converted through shared memory, and in the
 * layout of an operand it takes many registers: all warps that share the rows or columns hold a copy. If the conversion
 * stands well before the dot, for instance where the tile is loaded, these registers are occupied in between, and the
 * next conversion waits until all threads have read the scratch memory. So a large operand is stored in a buffer of
 * shared memory where it was converted, and loaded from the buffer right before each dot. If the tile comes from global
 * memory, cp.async then copies it to the buffer (direct_to_shared.c), without registers.
 *
 * The loads of all operands from buffers, including the multi-buffers of loops, move down to their dots (load_late).
 *
 * The buffers must leave shared memory for the blocks that the registers allow. */
#include "analysis/register_pressure.h"
#include "gpu/gpu_passes.h"
#include "gpu/pipeline/resource_use.h"
#include "gpu/pipeline/plan.h"
#include "layout/conversion.h"
#include "support/thresholds.h"

struct operand_buffers {
	struct pass_state *s;
	struct arena scratch;
	struct used_memory memory;
};

static bool is_mma_operand(const struct use *u)
{
	const struct op *o = u->user;
	return o->code == IR_DOT && o->attr[ATTR_INSTR] && u - o->operands < 2;
}

/* The dots that take a converted tile. */
struct dots {
	const struct op *first;
	u32 last; /* number of the last */
};

/* True if the use takes a tile to dots of its block: it is a dot's operand, or a transposition for dots. */
static bool leads_to_dots(const struct use *u, struct dots *d)
{
	const struct op *o = u->user;
	bool yes = is_mma_operand(u) || (o->code == IR_TRANS && !value_unused(result(o)));
	if (is_mma_operand(u)) {
		d->first = d->first && d->first->mark < o->mark ? d->first : o;
		d->last = MAX(d->last, o->mark);
	}
	for (u = o->code == IR_TRANS ? result(o)->uses : NULL; u && yes; u = u->next)
		yes = is_mma_operand(u) && u->user->block == o->block && leads_to_dots(u, d);
	return yes;
}

/* The dots that take the result of the conversion, perhaps transposed, if dots in its block are all that do. */
static struct dots dots_of(const struct op *convert)
{
	struct dots d = {0};
	bool only = true;
	for (const struct use *u = result(convert)->uses; u && only; u = u->next)
		only = u->user->block == convert->block && leads_to_dots(u, &d);
	return only ? d : (struct dots){0};
}

/* True if an operation of all threads of a block, such as another conversion, stands in between. */
static bool threads_meet_between(const struct op *from, const struct op *to)
{
	const struct op *o = from->next;
	while (o != to && !op_has(o, SYNC))
		o = o->next;
	return o != to;
}

/* True if the operand that the conversion makes can wait in a buffer of `bytes` bytes. A conversion right before the
 * first dot needs scratch memory of the same size at the same time, unless it is done in pieces. */
static bool can_wait(const struct operand_buffers *b, const struct op *convert, const struct dots *dots, i64 bytes)
{
	const struct value *v = operand(convert, 0);
	if (registers_of(b->s, result(convert)) < BUFFERED_OPERAND_REGISTERS ||
	    plan_conversion(v->type->layout, result(convert)->type->layout).kind != CONVERSION_MEMORY)
		return false;
	bool waits = bytes > MOST_SCRATCH || threads_meet_between(convert, dots->first);
	i64 room = waits ? b->memory.of_block : b->s->target->shared_bytes;
	return most_used(&b->memory, convert->mark, dots->last) + bytes <= room;
}

/* Replaces the use: the tile is loaded from the buffer before the dot, or before each dot that reads it transposed. */
static void load_before(struct ir_context *ctx, struct use *u, struct value *buffer, const struct type *t)
{
	struct op *o = u->user;
	struct builder at = builder_before(ctx, o);
	if (o->code != IR_TRANS) {
		op_set_operand(o, (u32)(u - o->operands), build1(&at, IR_LOCAL_LOAD, t, buffer));
		return;
	}
	for (struct use *dot; (dot = result(o)->uses);) {
		at = builder_before(ctx, dot->user);
		struct value *v = build1(&at, IR_LOCAL_LOAD, t, buffer);
		v = build1(&at, IR_TRANS, result(o)->type, v);
		v->def->attr[ATTR_ORDER] = o->attr[ATTR_ORDER];
		op_set_operand(dot->user, (u32)(dot - dot->user->operands), v);
	}
	op_erase(o);
}

/* A buffer in which v is stored in layout `mem` before `o`, in the same block; NULL: there is none. */
static struct value *buffer_with(const struct value *v, const struct layout *mem, const struct op *o)
{
	struct value *found = NULL;
	for (const struct use *u = v->uses; u && !found; u = u->next) {
		const struct op *store = u->user;
		const struct op *alloc = store->code == IR_LOCAL_STORE ? operand(store, 1)->def : NULL;
		if (alloc && alloc->code == IR_LOCAL_ALLOC && alloc->block == o->block && store->block == o->block &&
		    result(alloc)->type->layout == mem && comes_behind(o, store))
			found = operand(store, 1);
	}
	return found;
}

static void store_operand(struct operand_buffers *b, struct op *convert)
{
	const struct target *target = b->s->target;
	struct ir_context *ctx = b->s->ctx;
	struct value *v = operand(convert, 0);
	const struct layout *from = v->type->layout, *to = result(convert)->type->layout;
	int bits = MAX(type_elem_bits(v->type), 8);
	struct builder at = builder_before(ctx, convert);
	const struct layout *mem = plan_shared(&ctx->layouts, from, to, bits, target->has_stmatrix).mem;
	struct value *buffer = buffer_with(v, mem, convert);
	buffer = buffer ? buffer : store_shared(&at, v, mem);
	for (struct use *u; (u = result(convert)->uses);)
		load_before(ctx, u, buffer, result(convert)->type);
	op_erase(convert);
}

/* True if the load of a buffer cannot move down across o, which may write the buffer or release it. */
static bool keeps_load(const struct op *load, const struct op *o)
{
	switch (o->code) {
	case IR_LOCAL_STORE: return operand(o, 1) == operand(load, 0);
	case IR_LOCAL_ALLOC:
	case IR_LOCAL_LOAD:
	case IR_LOAD:
	case IR_STORE: return false;
	default: return !op_has(o, PURE) || (o->nblocks && !op_runs_on_elements(o));
	}
}

/* Moves a load of dots' operands down to the first of them, if threads meet in between: no load moves across a barrier
 * in the generated code, and the operand would occupy registers. */
static void load_late(struct operand_buffers *b, struct op *load)
{
	struct dots dots = dots_of(load);
	const struct op *o = load->next;
	if (!dots.first || !threads_meet_between(load, dots.first))
		return;
	while (o != dots.first && !keeps_load(load, o))
		o = o->next;
	if (o != dots.first)
		return;
	b->s->cuda.operands_moved = true;
	op_insert_before(load, (struct op *)dots.first);
	for (struct use *u = result(load)->uses; u; u = u->next)
		if (u->user->code == IR_TRANS)
			op_insert_before(u->user, (struct op *)dots.first);
}

static void visit(struct operand_buffers *b, struct block *in)
{
	for (struct op *o = in->first, *next; o; o = next) {
		next = o->next;
		for (u32 i = 0; i < o->nblocks; i++)
			visit(b, o->blocks[i]);
		struct dots dots = o->code == IR_CONVERT_LAYOUT ? dots_of(o) : (struct dots){0};
		if (!dots.first)
			continue;
		while (next->code == IR_TRANS && operand(next, 0) == result(o)) /* store_operand may erase it */
			next = next->next;
		i64 bytes = type_numel(result(o)->type) * MAX(type_elem_bits(result(o)->type), 8) / 8;
		if (can_wait(b, o, &dots, bytes)) {
			use_memory(&b->memory, o->mark, dots.last, bytes);
			store_operand(b, o);
			b->s->cuda.operands_moved = true;
		}
	}
	for (struct op *o = in->first, *next; o; o = next) {
		next = o->next;
		if (o->code == IR_LOCAL_LOAD)
			load_late(b, o);
	}
}

void store_operands(struct pass_state *s)
{
	/* A cluster's conversions exchange data between blocks. With a producer warp, barriers are for the other warps
	 * alone. */
	if (s->k->cuda.cluster > 1 || s->k->cuda.more_warps || s->cuda.limits.operands_in_place)
		return;
	struct operand_buffers b = {.s = s};
	struct live_registers live = count_live_registers(s, &b.scratch);
	b.memory = count_used_memory(s, &live, &b.scratch);
	visit(&b, s->k->body);
	arena_free(&b.scratch);
}

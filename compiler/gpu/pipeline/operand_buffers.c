/* Operands of tensor-core dots wait in shared memory.
 *
 * mma.sync takes its operands from registers. A tile in another layout is converted through shared memory, and in the
 * layout of an operand it takes many registers: all warps that share the rows or columns hold a copy. If the conversion
 * stands well before the dot, for instance where the tile is loaded, these registers are occupied in between, and the
 * next conversion waits until all threads have read the scratch memory. So a large operand is stored in a buffer of
 * shared memory where it was converted, and loaded from the buffer right before each dot. If the tile comes from global
 * memory, cp.async then copies it to the buffer (direct_to_shared.c), without registers.
 *
 * The buffers must leave shared memory for the blocks that the registers allow. */
#include "analysis/register_pressure.h"
#include "gpu/gpu_passes.h"
#include "gpu/pipeline/live_registers.h"
#include "gpu/pipeline/plan.h"
#include "layout/conversion.h"
#include "support/thresholds.h"

struct operand_buffers {
	struct pass_state *s;
	struct arena scratch;
	i64 *used; /* bytes of shared memory used during each operation, by its number (number_ops) */
	i64 of_block; /* bytes for each of the blocks that the registers allow */
};

static bool is_mma_operand(const struct use *u)
{
	const struct op *o = u->user;
	return o->code == IR_DOT && o->attr[ATTR_INSTR] && u - o->operands < 2;
}

/* The first dot that takes the result of the conversion, if dots in its block are all that do. */
static struct op *first_user_dot(const struct op *convert)
{
	struct op *first = NULL;
	for (const struct use *u = result(convert)->uses; u; u = u->next) {
		if (!is_mma_operand(u) || u->user->block != convert->block)
			return NULL;
		if (!first || u->user->mark < first->mark)
			first = u->user;
	}
	return first;
}

/* True if an operation of all threads of a block, such as another conversion, stands in between. */
static bool threads_meet_between(const struct op *from, const struct op *to)
{
	const struct op *o = from->next;
	while (o != to && !op_has(o, SYNC))
		o = o->next;
	return o != to;
}

static void use_memory(struct operand_buffers *b, u32 first, u32 last, i64 bytes)
{
	for (u32 i = first; i <= last; i++)
		b->used[i] += bytes;
}

static i64 most_used(const struct operand_buffers *b, u32 first, u32 last)
{
	i64 most = 0;
	for (u32 i = first; i <= last; i++)
		most = MAX(most, b->used[i]);
	return most;
}

static void count_used_memory(struct operand_buffers *b, const struct block *in)
{
	for (const struct op *o = in->first; o; o = o->next) {
		u32 last = o->code == IR_LOCAL_ALLOC ? last_use(result(o), in, o->mark) : o->mark;
		use_memory(b, o->mark, last, own_bytes(b->s, o));
		for (u32 i = 0; i < o->nblocks; i++)
			count_used_memory(b, o->blocks[i]);
	}
}

/* True if the operand of `dot` that the conversion makes can wait in a buffer of so many bytes. A conversion right
 * before the dot needs as many bytes of scratch memory at the same time, unless it is done in pieces. */
static bool can_wait(const struct operand_buffers *b, const struct op *convert, const struct op *dot, u32 last,
		     i64 bytes)
{
	const struct value *v = operand(convert, 0);
	if (registers_of(b->s, result(convert)) < BUFFERED_OPERAND_REGISTERS ||
	    plan_conversion(v->type->layout, result(convert)->type->layout).kind != CONVERSION_MEMORY)
		return false;
	bool waits = bytes > MOST_SCRATCH || threads_meet_between(convert, dot);
	return most_used(b, convert->mark, last) + bytes <= (waits ? b->of_block : b->s->target->shared_bytes);
}

static void store_operand(struct operand_buffers *b, struct op *convert)
{
	const struct target *target = b->s->target;
	struct ir_context *ctx = b->s->ctx;
	struct value *v = operand(convert, 0);
	const struct layout *from = v->type->layout, *to = result(convert)->type->layout;
	int bits = MAX(type_elem_bits(v->type), 8);
	struct builder at = builder_before(ctx, convert);
	struct value *buffer =
		store_shared(&at, v, plan_shared(&ctx->layouts, from, to, bits, target->has_stmatrix).mem);
	for (struct use *u; (u = result(convert)->uses);) {
		at = builder_before(ctx, u->user);
		op_set_operand(u->user, (u32)(u - u->user->operands),
			       build1(&at, IR_LOCAL_LOAD, result(convert)->type, buffer));
	}
	op_erase(convert);
}

static void visit(struct operand_buffers *b, struct block *in)
{
	for (struct op *o = in->first, *next; o; o = next) {
		next = o->next;
		for (u32 i = 0; i < o->nblocks; i++)
			visit(b, o->blocks[i]);
		const struct op *dot = o->code == IR_CONVERT_LAYOUT ? first_user_dot(o) : NULL;
		if (!dot)
			continue;
		u32 last = last_use(result(o), in, o->mark);
		i64 bytes = type_numel(result(o)->type) * MAX(type_elem_bits(result(o)->type), 8) / 8;
		if (can_wait(b, o, dot, last, bytes)) {
			use_memory(b, o->mark, last, bytes);
			store_operand(b, o);
			b->s->cuda.operand_buffers = true;
		}
	}
}

void store_operands(struct pass_state *s)
{
	/* A cluster's conversions exchange data between blocks. With a producer warp, barriers are for the other warps
	 * alone. */
	if (s->k->cuda.cluster > 1 || s->k->cuda.more_warps || s->cuda.limits.no_operand_buffers)
		return;
	struct operand_buffers b = {.s = s};
	struct live_registers live = count_live_registers(s, &b.scratch);
	i64 registers = live.most + REGISTERS_BESIDE_DATA;
	i64 blocks = s->target->registers / (32 * s->num_warps * MIN(registers, s->target->thread_registers));
	b.of_block = s->target->shared_bytes / MAX(blocks, 1);
	b.used = arena_array(&b.scratch, i64, live.n + 1);
	count_used_memory(&b, s->k->body);
	visit(&b, s->k->body);
	arena_free(&b.scratch);
}

/* Dots of a loop that run once for several iterations.
 *
 * A dot loads and stores all of C for the k of one tile: with a tile of 16 along k, this takes a fifth of the time. If
 * nothing else reads C in the loop, the iterations only store their operands, one iteration's after the other's (a slot
 * each), and the dot multiplies all slots when the last slot is full, or in the last iteration. An accumulator adds the
 * same products in the same order, and stays in its register meanwhile. */
#include "cpu/vector_ops.h"

enum {
	MOST_K = 128,         /* products of an accumulator in all slots: with more, loads and stores of C cost 3 % */
	MOST_K_TILES = 256,   /* the same on tile registers, where they cost more */
	MOST_BYTES = 1 << 18, /* of a dot's operands in all slots: they stay in the second cache */
	/* The same for a C of fewer than MANY_ROWS rows, where an element of B is used only a few times: they stay in
	 * the first cache. */
	MOST_BYTES_FEW_ROWS = 1 << 15,
	MANY_ROWS = 64,
};

/* Whether all uses of operand `which` of the dot are dots of the same block, which stores it in their format. */
static bool is_packed_here(struct cpu_codegen *h, const struct op *dot, u32 which)
{
	const struct value *v = operand(dot, which);
	const struct op *user;
	u32 as;
	if (!v->def || v->def->block != dot->block || !cpu_is_inline(v->def) || !cpu_dot_takes(h, v, &user, &as))
		return false;
	for (const struct use *u = v->uses; u; u = u->next)
		if (u->user->block != dot->block)
			return false;
	return true;
}

/* Whether nothing but the dot reads the accumulators that the loop carries for it, and they are exact in C. */
static bool owns_accumulators(const struct op *loop, const struct op *dot)
{
	const struct value *c = operand(dot, 2), *sum = result(dot);
	if (c->def || c->block != loop->blocks[0] || !value_has_one_use(c) || !value_has_one_use(sum) ||
	    type_dtype(sum->type) != cpu_sum_dtype(dot))
		return false;
	return for_yielded(loop, for_arg_number(c)) == sum;
}

/* The number of slots for one dot, a power of two. */
static i64 slots_for(struct cpu_codegen *h, const struct op *dot)
{
	const struct type *a = operand(dot, 0)->type, *b = operand(dot, 1)->type;
	const struct dot_unit *unit = &cpu_dot_units[cpu_dot_unit(h, dot)];
	i64 rows = a->shape[a->rank - 2], k = a->shape[a->rank - 1], most_k = unit->rows > 1 ? MOST_K_TILES : MOST_K;
	i64 element = unit->bits ? unit->bits / 8 : dtype_bytes(cpu_sum_dtype(dot));
	i64 bytes = (type_numel(a) + type_numel(b)) * element;
	i64 most = rows < MANY_ROWS ? MOST_BYTES_FEW_ROWS : MOST_BYTES, slots = 1;
	while (2 * slots * k <= most_k && 2 * slots * bytes <= most)
		slots *= 2;
	return slots;
}

static i64 slots_of(struct cpu_codegen *h, const struct op *loop)
{
	i64 slots = 0, iterations = for_iterations(loop);
	for (const struct op *o = loop->blocks[0]->first; o; o = o->next) {
		if (o->code != IR_DOT)
			continue;
		if (!owns_accumulators(loop, o) || !is_packed_here(h, o, 0) || !is_packed_here(h, o, 1))
			return 1;
		i64 n = slots_for(h, o);
		slots = slots && slots < n ? slots : n;
	}
	while (iterations > 0 && slots >= 2 * iterations)
		slots /= 2;
	return slots ? slots : 1;
}

struct deferred *cpu_deferred(struct cpu_codegen *h, const struct op *loop)
{
	if (!loop || loop->code != IR_FOR || h->debug)
		return NULL;
	struct deferred *d = map_get(&h->deferred, loop);
	if (!d) {
		d = arena_new(&h->scratch, struct deferred);
		*d = (struct deferred){.slots = slots_of(h, loop)};
		map_put(&h->deferred, loop, d);
	}
	return d->slots > 1 ? d : NULL;
}

/* Lets the operands of the loop's dots be stored in slot `slot` (i64) of their memory. */
static void choose_slot(struct cpu_codegen *h, const struct op *loop, LLVMValueRef slot)
{
	for (const struct op *o = loop->blocks[0]->first; o; o = o->next)
		for (u32 which = 0; o->code == IR_DOT && which < 2; which++) {
			struct buffer *b = info_of(h, operand(o, which))->buffer;
			LLVMValueRef first = LLVMGetOperand(b->first_slot, 1);
			LLVMValueRef bytes = cpu_i64(h, b->slot_stride * (type_bits(b->elem) / 8));
			LLVMValueRef offset = LLVMBuildAdd(h->b, first, LLVMBuildMul(h->b, slot, bytes, ""), "");
			b->at = gep(h->b, h->memory, h->i8, offset);
		}
}

void cpu_deferred_begin(struct cpu_codegen *h, const struct op *loop, LLVMValueRef round, LLVMValueRef last)
{
	struct deferred *d = cpu_deferred(h, loop);
	LLVMValueRef slot = LLVMBuildAnd(h->b, round, cpu_i64(h, d->slots - 1), "");
	d->filled = LLVMBuildAdd(h->b, slot, cpu_i64(h, 1), "");
	d->due = LLVMBuildICmp(h->b, LLVMIntEQ, d->filled, cpu_i64(h, d->slots), "");
	d->due = LLVMBuildOr(h->b, d->due, last, "");
	choose_slot(h, loop, slot);
}

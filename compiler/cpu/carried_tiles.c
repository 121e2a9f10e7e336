/* IR_FOR loops that run inside a nest (the loops over the elements of a tile shape). The IR_FOR carries tiles, and each
 * iteration computes an element only from elements of carried tiles at the same index. If a row of each carried tile
 * fits a few vector registers, the nest's loop over the rows is the outer loop, and its body is the whole IR_FOR for
 * one row. The IR_FOR then carries rows in registers, without memory traffic, and stores the results at its end. Longer
 * rows would have to be split, and the IR_FOR for a part of a row would access memory in short pieces, a row's length
 * apart. */
#include "cpu/cpu_internal.h"

/* The rows of all carried tiles may use 1/PART of the vector registers. With half of the registers, or two rows at a
 * time, a matrix-vector product with the matrix in memory took up to three times as long. */
enum { PART = 4 };

static bool same_shape(const struct value *a, const struct value *b)
{
	const struct type *x = a->type, *y = b->type;
	return type_is_tensor(y) && x->rank == y->rank &&
	       !memcmp(x->shape, y->shape, (size_t)x->rank * sizeof *x->shape);
}

/* The first of the n carried tiles, which have one shape. NULL if there are none, or if the loop carries other values
 * that have uses. */
static const struct value *carried_tile(const struct op *loop, u32 *n)
{
	const struct value *first = NULL;
	*n = 0;
	for (u32 i = 0; i < loop->nresults; i++) {
		const struct value *arg = for_arg(loop, i);
		if (!type_is_tensor(arg->type)) {
			if (loop->results[i].uses)
				return NULL;
			continue;
		}
		if (type_is_ptr(arg->type) || (first && !same_shape(first, arg)))
			return NULL;
		first = first ? first : arg;
		++*n;
	}
	return first;
}

/* Whether o is a scalar operation without side effects. */
static bool is_scalar(const struct op *o)
{
	for (u32 i = 0; i < o->noperands; i++)
		if (type_is_tensor(operand(o, i)->type))
			return false;
	return o->nresults == 1 && !type_is_tensor(result(o)->type) && !o->nblocks &&
	       (op_has(o, PURE) || (o->code == IR_LOAD && !o->attr[ATTR_VOLATILE]));
}

static bool is_yielded(const struct value *v)
{
	for (const struct use *u = v->uses; u; u = u->next)
		if (op_has(u->user, END))
			return true;
	return false;
}

/* A nest for the loop's loads and its n carried tiles, in which a vector has the lanes of a whole row. fits: whether
 * the rows of all carried tiles fit 1/PART of the vector registers. */
static struct cpu_nest nest_of(struct cpu_codegen *h, const struct op *loop, const struct value *tile, u32 n,
			       bool *fits)
{
	struct cpu_nest nest = {.rank = tile->type->rank};
	u32 bytes = 4;
	memcpy(nest.shape, tile->type->shape, sizeof nest.shape);
	for (const struct op *o = loop->blocks[0]->first; o; o = o->next)
		if (o->code == IR_LOAD && type_is_tensor(result(o)->type))
			vec_push(&h->scratch, &nest.loads, o);
	for (u32 i = 0; i < loop->nresults; i++) {
		const struct value *v = for_yielded(loop, i);
		struct root r = {.op = v->def, .v = v};
		if (!type_is_tensor(v->type))
			continue;
		bytes = MAX(bytes, (u32)type_elem_bits(v->type) / 8);
		if (v->def && v->def->block == loop->blocks[0])
			vec_push(&h->scratch, &nest.roots, r);
	}
	nest_choose_lanes(h, &nest);
	nest.lanes = (u32)nest.shape[nest.lane_dim];
	u32 registers = (nest.lanes * bytes + (u32)h->s->target->vector_bytes - 1) / (u32)h->s->target->vector_bytes;
	*fits = n * registers <= (u32)h->s->target->vector_registers / PART;
	return nest;
}

bool cpu_carries_elements(struct cpu_codegen *h, const struct op *loop)
{
	struct map carried = {.arena = &h->scratch};
	u32 n;
	bool fits;
	const struct value *tile = carried_tile(loop, &n);
	if (!tile || h->debug)
		return false;
	for (u32 i = 0; i < loop->nresults; i++)
		map_put(&carried, for_arg(loop, i), for_arg(loop, i));
	for (const struct op *o = loop->blocks[0]->first; !op_has(o, END); o = o->next) {
		bool depends = false;
		if (is_scalar(o))
			continue;
		if (o->nresults != 1 || !type_is_tensor(result(o)->type) || !cpu_is_inline(o) ||
		    (info_of(h, result(o))->stored && !is_yielded(result(o)) && !cpu_cheap_again(h, result(o))))
			return false;
		for (u32 i = 0; i < o->noperands; i++)
			depends |= type_is_tensor(operand(o, i)->type) && map_get(&carried, operand(o, i));
		if (!depends)
			continue;
		if (!op_has(o, ELEM) || !same_shape(tile, result(o)))
			return false;
		map_put(&carried, result(o), result(o));
	}
	nest_of(h, loop, tile, n, &fits);
	return fits;
}

void cpu_emit_for_elements(struct cpu_codegen *h, const struct op *loop)
{
	u32 n;
	bool fits;
	const struct value *tile = carried_tile(loop, &n);
	struct cpu_nest nest = nest_of(h, loop, tile, n, &fits);
	struct cpu_loop loops[MAX_RANK];
	struct at at = {.along = nest.lanes > 1 ? nest.lane_dim : -1, .lanes = nest.lanes > 1 ? nest.lanes : 0};
	for (u32 i = 0; i < loop->nresults; i++)
		if (type_is_tensor(loop->results[i].type))
			buffer_of(h, &loop->results[i]);
	for (int d = 0; d < nest.rank; d++) {
		at.i[d] = cpu_i64(h, 0);
		if (d == nest.lane_dim)
			continue;
		loops[d] = cpu_loop(h, cpu_i64(h, 0), cpu_i64(h, nest.shape[d]), 1, false);
		at.i[d] = loops[d].index;
	}
	cpu_emit_for(h, loop, &at);
	for (int d = nest.rank - 1; d >= 0; d--)
		if (d != nest.lane_dim)
			cpu_loop_end(h, &loops[d]);
	for (u32 i = 0; i < loop->nresults; i++)
		info_of(h, &loop->results[i])->made = type_is_tensor(loop->results[i].type);
}

#include "gpu/smem/shared_access.h"
#include "layout/conversion.h"

static const struct op *allocation(const struct value *v)
{
	while (v->def->code == IR_MEMDESC_INDEX || v->def->code == IR_MEMDESC_TRANS)
		v = operand(v->def, 0);
	return v->def;
}

bool is_transposed(const struct op *o, u32 i)
{
	return o->code == IR_WARP_GROUP_DOT && o->attr[ATTR_TRANSPOSED] && i != o->attr[ATTR_EXCHANGED];
}

/* The bit of an element's position that selects which of two warpgroups holds the element in this layout; 0: there is
 * no such bit. */
static u32 warpgroup_bit(const struct layout *l)
{
	enum { WARPS_BITS = 3, GROUP = 2 };
	u32 bit = l->bits[LL_WARP] == WARPS_BITS ? l->basis[LL_WARP][GROUP] : 0, others = 0;
	for (int dim = 0; dim < LL_DIMS; dim++)
		for (int i = 0; i < l->bits[dim]; i++)
			others |= dim == LL_WARP && i == GROUP ? 0 : l->basis[dim][i];
	return is_pow2(bit) && !(others & bit) ? bit : 0;
}

/* Length in bytes of the stretches of memory with layout `mem` in which this bit of the position is constant; 0: the
 * bit does not correspond to one bit of the offset. */
static i32 bytes_alike(const struct layout *mem, u32 bit, int elem_bits)
{
	u32 offsets = 0;
	for (int i = 0; i < mem->bits[LL_OFFSET]; i++)
		offsets |= mem->basis[LL_OFFSET][i] & bit ? 1u << i : 0;
	return is_pow2(offsets) ? (i32)offsets * elem_bits / 8 : 0;
}

static int bits_in_memory(const struct type *t)
{
	return MAX(type_elem_bits(t), 8);
}

/* bytes_alike for a buffer to which a tile of layout l is written. */
static i32 half_stored(const struct layout *l, const struct value *buffer)
{
	return bytes_alike(buffer->type->layout, warpgroup_bit(l), bits_in_memory(buffer->type));
}

/* bytes_alike for operand i of a dot whose warpgroups divide the rows (i = 0) or columns of the result. */
static i32 half_multiplied(const struct op *o, u32 i)
{
	const struct layout *sums = result(o)->type->layout, *mem = operand(o, i)->type->layout;
	u32 bit = warpgroup_bit(sums);
	if (!(bit & layout_dim_mask(sums, (int)i)))
		return 0;
	bit = bit >> layout_dim_shift(sums, (int)i) << layout_dim_shift(mem, (int)i);
	return bytes_alike(mem, bit, bits_in_memory(operand(o, i)->type));
}

/* bytes_alike for the scratch of a conversion within warps. */
static i32 half_converted(const struct pass_state *s, const struct op *o)
{
	struct layout_pool *pool = &s->ctx->layouts;
	int bits = bits_in_memory(result(o)->type);
	struct pieces p =
		plan_pieces(pool, operand(o, 0)->type->layout, result(o)->type->layout, bits, o->scratch_size);
	const struct layout *mem = plan_shared(pool, p.src, p.dst, bits, s->target->has_stmatrix).mem;
	return bytes_alike(mem, warpgroup_bit(p.src), bits);
}

u32 shared_accesses(const struct op *o, struct shared_access *out)
{
	struct shared_access a = {.operand = -1};
	u32 n = 0;
	switch (o->code) {
	case IR_LOCAL_ALLOC: return 0;
	case IR_LOCAL_LOAD: a.memory = allocation(operand(o, 0)); break;
	case IR_LOCAL_STORE:
	case IR_ASYNC_COPY:
	case IR_TMA_COPY:
	case IR_TMA_TENSOR_COPY:
		a.memory = allocation(operand(o, 1));
		a.write = true;
		break;
	case IR_INIT_BARRIER:
	case IR_INVAL_BARRIER:
		a.memory = allocation(operand(o, 0));
		a.write = true;
		break;
	case IR_DOT:
	case IR_WARP_GROUP_DOT:
		for (u32 i = 0; i < 2; i++)
			if (operand(o, i)->type->kind == TY_MEMDESC)
				out[n++] = (struct shared_access){.memory = allocation(operand(o, i)),
								  .write = is_transposed(o, i),
								  .operand = (int)i};
		return n;
	default:
		if (o->scratch_size <= 0)
			return 0;
		a.memory = o;
		a.write = true;
		a.within_warps = o->code == IR_CONVERT_LAYOUT && o->attr[ATTR_CONVERSION] == CONVERSION_WARP_MEMORY;
	}
	out[0] = a;
	return 1;
}

/* The bytes that each warpgroup uses in alternation, the first warpgroup first: a power of two; 0: unknown. */
static i32 half_of(const struct pass_state *s, const struct op *o, const struct shared_access *a)
{
	if (o->code == IR_LOCAL_STORE)
		return half_stored(operand(o, 0)->type->layout, operand(o, 1));
	if (o->code == IR_WARP_GROUP_DOT)
		return a->write ? 0 : half_multiplied(o, (u32)a->operand);
	return a->within_warps ? half_converted(s, o) : 0;
}

struct memory {
	const struct op *op;
	i32 half; /* half_of all accesses, NOT_APART if they differ, or 0 before the first */
};
enum { NOT_APART = -1 };

struct memories {
	struct pass_state *s;
	struct arena scratch;
	struct map numbers; /* operation → its number in `at`, + 1 */
	VEC(struct memory) at;
};

static struct memory *memory_of(struct memories *m, const struct op *o)
{
	size_t number = (size_t)map_get(&m->numbers, o);
	if (!number) {
		vec_push(&m->scratch, &m->at, ((struct memory){.op = o}));
		number = m->at.len;
		map_put(&m->numbers, o, (void *)number);
	}
	return &m->at.at[number - 1];
}

static void note_half(struct op *o, void *arg)
{
	struct memories *m = arg;
	struct shared_access at[2];
	for (u32 n = shared_accesses(o, at); n--;) {
		struct memory *to = memory_of(m, at[n].memory);
		i32 half = half_of(m->s, o, &at[n]);
		to->half = half && (!to->half || to->half == half) ? half : NOT_APART;
	}
}

/* True if a and b share no bytes, or each warpgroup uses the same bytes of both. */
static bool go_together(const struct memory *a, const struct memory *b)
{
	i32 distance = b->op->scratch_offset - a->op->scratch_offset;
	return distance >= a->op->scratch_size || -distance >= b->op->scratch_size ||
	       (a->half == b->half && !(distance & (2 * a->half - 1)));
}

static bool awaits_turn(const struct op *o)
{
	return o->code == IR_PINGPONG_WAIT;
}

bool has_turns(const struct block *b)
{
	return block_has(b, awaits_turn);
}

void find_halves(struct pass_state *s, struct map *halves)
{
	struct memories m = {.s = s};
	m.numbers.arena = &m.scratch;
	if (!has_turns(s->k->body))
		return;
	walk(s->k->body, note_half, &m);
	for (u32 i = 0; i < m.at.len; i++) {
		const struct memory *a = &m.at.at[i];
		bool apart = a->half > 0;
		for (u32 k = 0; k < m.at.len && apart; k++)
			apart = go_together(a, &m.at.at[k]);
		if (apart)
			map_put(halves, a->op, (void *)(size_t)a->half);
	}
	arena_free(&m.scratch);
}

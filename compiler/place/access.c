#include "ir/inline_asm.h"
#include "layout/convert.h"
#include "opt/alias.h"
#include "place/access.h"

struct value *mask_of(const struct op *o)
{
	u32 i = o->code == IR_LOAD ? 1 : 2;
	return o->code != IR_ATOMIC_CAS && o->noperands > i ? operand(o, i) : NULL;
}

static int reg_bit(const struct layout *l, u32 basis)
{
	for (int i = 0; i < l->bits[LL_REG]; i++)
		if (l->basis[LL_REG][i] == basis)
			return i;
	return -1;
}

/* The register bits of up to `width` neighbours along d. */
static struct access_vector neighbours(const struct layout *l, int d, int width)
{
	struct access_vector v = {0};
	while (1 << v.bits < width && v.bits < (int)sizeof v.reg) {
		int r = v.bits < l->log2_size[d] ? reg_bit(l, 1u << (layout_dim_shift(l, d) + v.bits)) : -1;
		if (r < 0)
			break;
		v.reg[v.bits++] = (u8)r;
	}
	return v;
}

struct access_vector access_vector(const struct axis_analysis *a, const struct value *ptr, const struct value *mask)
{
	struct access_vector best = {0};
	for (int d = 0; d < ptr->type->rank; d++) {
		struct access_vector v = neighbours(ptr->type->layout, d, axis_vector_width(a, ptr, mask, d));
		if (v.bits > best.bits)
			best = v;
	}
	return best;
}

struct access_vector copied_together(const struct axis_analysis *a, const struct value *ptr, const struct value *mask,
				     const struct layout *mem)
{
	struct access_vector best = {0};
	for (int d = 0; d < ptr->type->rank; d++) {
		struct access_vector v = neighbours(ptr->type->layout, d, axis_vector_width(a, ptr, mask, d));
		struct memory_map m = map_to_memory(ptr->type->layout, mem, v.bits);
		int bits = 0;
		while (bits < m.vec_bits && m.vec_reg[bits] == v.reg[bits])
			bits++;
		v.bits = bits;
		if (v.bits > best.bits)
			best = v;
	}
	return best;
}

struct access_vector access_run(const struct axis_analysis *a, const struct value *ptr, const struct value *mask,
				int *unit)
{
	for (int d = 0; d < ptr->type->rank; d++) {
		int n = axis_run_length(a, ptr, mask, d, unit);
		struct access_vector v = neighbours(ptr->type->layout, d, n);
		if (n && 1 << v.bits == n)
			return v;
	}
	return (struct access_vector){0};
}

/* Does o tell the program what another one has done, so that what comes behind it must not be loaded before? */
static bool acquires(const struct op *o)
{
	bool rmw = o->code == IR_ATOMIC_RMW;
	if ((!rmw && o->code != IR_ATOMIC_CAS) || value_unused(result(o)))
		return false;
	i64 sem = o->attr[rmw ? ATTR_RMW_SEM : ATTR_CAS_SEM];
	return sem == SEM_ACQUIRE || sem == SEM_ACQ_REL;
}

bool may_be_written(struct pass_state *s, const struct block *b, const struct value *base)
{
	for (const struct op *o = b->first; o; o = o->next) {
		if (acquires(o) || op_is_opaque(o) || o->code == IR_GRID_WAIT)
			return true;
		if (writes_memory(o) && may_overlap(s, base, pointer_base(operand(o, 0)), false))
			return true;
		for (u32 i = 0; i < o->nblocks; i++)
			if (may_be_written(s, o->blocks[i], base))
				return true;
	}
	return false;
}

struct access_vector added_together(const struct pass_state *s, const struct op *o)
{
	struct access_vector one = {0};
	bool adds = o->code == IR_ATOMIC_RMW && o->attr[ATTR_RMW] == RMW_FADD && type_is_tensor(operand(o, 0)->type) &&
		    value_unused(result(o));
	enum dtype d = adds ? type_dtype(result(o)->type) : DT_F64;
	bool all = s->target->has_vector_atomics && (d == DT_F32 || d == DT_F16 || d == DT_BF16);
	if (!all && d != DT_F16)
		return one;
	struct access_vector v = access_vector(s->axis, operand(o, 0), mask_of(o));
	if (!all)
		v.bits = MIN(v.bits, 1);
	return v;
}

u32 beside_axis(const struct layout *from, const struct layout *to, int axis, u32 position)
{
	u32 moved = 0;
	for (int d = 0; d < from->rank; d++)
		if (d != axis)
			moved |= (position & layout_dim_mask(from, d)) >> layout_dim_shift(from, d)
				 << layout_dim_shift(to, d);
	return moved;
}

bool gathers_in_warp(const struct op *o)
{
	enum { MOST_SHUFFLES = 4 /* an element; a way through shared memory is a store, a barrier and a load */ };
	const struct layout *from = operand(o, 0)->type->layout, *to = result(o)->type->layout;
	int axis = (int)o->attr[ATTR_AXIS], shuffles = 1;
	u32 along = layout_dim_mask(from, axis), fixed = 0;
	for (int i = 0; i < to->bits[LL_WARP] || i < from->bits[LL_WARP]; i++) {
		u32 a = i < from->bits[LL_WARP] ? from->basis[LL_WARP][i] : 0,
		    b = i < to->bits[LL_WARP] ? beside_axis(to, from, axis, to->basis[LL_WARP][i]) : 0;
		if (a != b || a & along)
			return false;
	}
	for (int i = 0; i < to->bits[LL_REG]; i++)
		fixed |= beside_axis(to, from, axis, to->basis[LL_REG][i]);
	for (int i = 0; i < from->bits[LL_REG] && shuffles <= MOST_SHUFFLES; i++)
		shuffles *= from->basis[LL_REG][i] & fixed ? 1 : 2;
	return shuffles <= MOST_SHUFFLES;
}

bool can_be_repeated(struct pass_state *s, const struct op *o, const struct block *b)
{
	bool load = o->code == IR_LOAD && !o->attr[ATTR_VOLATILE] && !may_be_written(s, b, pointer_base(operand(o, 0)));
	return !o->nblocks && !op_has(o, SYNC) && (op_has(o, PURE) || load);
}

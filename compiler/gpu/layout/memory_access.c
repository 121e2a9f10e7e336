#include "support/thresholds.h"
#include "ir/inline_asm.h"
#include "ir/scalar.h"
#include "layout/conversion.h"
#include "analysis/alias.h"
#include "gpu/layout/memory_access.h"
#include "gpu/gpu_passes.h"

/* The register bits of up to `width` adjacent elements along d. */
static struct access_vector neighbours(const struct layout *l, int d, int width)
{
	struct access_vector v = {.dim = d};
	while (1 << v.bits < width && v.bits < (int)sizeof v.reg) {
		u32 next = layout_dim_mask(l, d) & 1u << (layout_dim_shift(l, d) + v.bits),
		    bit = layout_bits_in(l, LL_REG, next);
		if (!bit)
			break;
		v.reg[v.bits++] = (u8)ilog2(bit);
	}
	return v;
}

struct access_vector vector_in_layout(const struct axis_analysis *a, const struct value *ptr, const struct value *mask,
				      const struct layout *l)
{
	struct access_vector best = {0};
	for (int d = 0; d < ptr->type->rank; d++) {
		struct access_vector v = neighbours(l, d, axis_vector_width(a, ptr, mask, d));
		if (v.bits > best.bits)
			best = v;
	}
	return best;
}

struct access_vector access_vector(const struct axis_analysis *a, const struct value *ptr, const struct value *mask,
				   const struct layout *mem)
{
	struct access_vector best = {0};
	if (!mem)
		return vector_in_layout(a, ptr, mask, ptr->type->layout);
	for (int d = 0; d < ptr->type->rank; d++) {
		struct access_vector v = neighbours(ptr->type->layout, d, axis_vector_width(a, ptr, mask, d));
		struct memory_map m = map_to_memory(ptr->type->layout, mem, v.bits);
		int most = m.vec_bits;
		for (v.bits = 0; v.bits < most && m.vec_reg[v.bits] == v.reg[v.bits];)
			v.bits++;
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

/* True if o is an acquire: loads after it must not move before it, because it may observe another program's writes. */
static bool acquires(const struct op *o)
{
	enum mem_sem sem = memory_order_of(o);
	return (sem == SEM_ACQUIRE || sem == SEM_ACQ_REL) && !value_unused(result(o));
}

bool op_may_write(struct pass_state *s, const struct op *o, const struct value *base)
{
	bool yes = acquires(o) || op_is_opaque(o) || o->code == IR_GRID_WAIT ||
		   (writes_memory(o) && may_overlap(s, base, pointer_base(operand(o, 0)), false));
	for (u32 i = 0; i < o->nblocks && !yes; i++)
		yes = may_be_written(s, o->blocks[i], base);
	return yes;
}

bool may_be_written(struct pass_state *s, const struct block *b, const struct value *base)
{
	for (const struct op *o = b->first; o; o = o->next)
		if (op_may_write(s, o, base))
			return true;
	return false;
}

struct access_vector vector_of(const struct op *o, i64 sizes)
{
	const struct type *t = operand(o, 0)->type;
	for (int d = 0; d < t->rank; d++)
		if (perm_get(sizes, d))
			return neighbours(t->layout, d, 1 << perm_get(sizes, d));
	return (struct access_vector){0};
}

/* True if a warp reads consecutive lines, but parts of two lines at a time, because rows may begin at any address. With
 * prefetch into L2, available from sm_80 on, an H100 reads rows of 50,257 floats 5 % faster. For aligned rows it makes
 * no difference. For tiles with short rows, as in a GEMM, L2 then fetches unneeded neighbouring data (2–7 % slower). */
static bool straddles_lines(const struct pass_state *s, const struct value *ptr)
{
	enum { ALIGNED = 16 /* bytes: the greatest alignment known of pointers */ };
	const struct axis_info *a = axis_of(s->axis, ptr);
	bool yes = false;
	for (int d = 0; s->target->has_cache_policies && type_is_tensor(ptr->type) && d < ptr->type->rank; d++)
		yes |= (u64)a->contiguity[d] * pointee_bytes(ptr->type) >= MIN_LONG_ROW_BYTES &&
		       a->divisibility[d] < ALIGNED;
	return yes;
}

/* The floats that one atomic instruction adds to memory: 16 bytes from sm_90 on, two fp16 numbers before. Otherwise, or
 * if the result is used: single elements. */
static struct access_vector added_together(const struct pass_state *s, const struct op *o)
{
	struct access_vector one = {0};
	bool adds = o->code == IR_ATOMIC_RMW && o->attr[ATTR_RMW] == RMW_FADD && type_is_tensor(operand(o, 0)->type) &&
		    value_unused(result(o));
	enum dtype d = adds ? type_dtype(result(o)->type) : DT_F64;
	bool all = s->target->has_vector_atomics && (d == DT_F32 || d == DT_F16 || d == DT_BF16);
	if (!all && d != DT_F16)
		return one;
	struct access_vector v = access_vector(s->axis, operand(o, 0), mask_of(o), NULL);
	if (!all)
		v.bits = MIN(v.bits, 1);
	return v;
}

static i64 sizes_of(struct access_vector v)
{
	return (i64)v.bits << (4 * v.dim);
}

void choose_vectors(struct op *o, void *state)
{
	const struct pass_state *s = state;
	const struct value *ptr = o->noperands ? operand(o, 0) : NULL, *mask = mask_of(o);
	int unit;
	if (o->code == IR_ASYNC_COPY) {
		const struct layout *mem = operand(o, 1)->type->layout;
		o->attr[ATTR_VECTOR] = sizes_of(access_vector(s->axis, ptr, mask, mem));
	} else if (o->code == IR_STORE) {
		o->attr[ATTR_VECTOR] = sizes_of(access_vector(s->axis, ptr, mask, NULL));
	} else if (o->code == IR_ATOMIC_RMW) {
		o->attr[ATTR_VECTOR] = sizes_of(added_together(s, o));
	} else if (o->code == IR_LOAD) {
		struct access_vector run = access_run(s->axis, ptr, mask, &unit);
		bool runs = run.bits && !o->attr[ATTR_VOLATILE];
		o->attr[ATTR_VECTOR] = sizes_of(runs ? run : access_vector(s->axis, ptr, mask, NULL));
		o->attr[ATTR_UNIT] = runs ? unit : 0;
		o->attr[ATTR_ADDRESS] = runs ? 0 : sizes_of(access_run(s->axis, ptr, NULL, &unit));
		o->attr[ATTR_PREFETCH] = straddles_lines(s, ptr);
	}
}

void pass_vectorize(struct pass_state *s)
{
	walk(s->k->body, choose_vectors, s);
}

const struct layout *transposed(struct layout_pool *pool, const struct op *o, const struct layout *l)
{
	int perm[MAX_RANK];
	for (int d = 0; d < l->rank; d++)
		perm[d] = perm_get(o->attr[ATTR_ORDER], d);
	return layout_trans(pool, l, perm);
}

u32 warps_along_axis(const struct op *o)
{
	const struct layout *l = operand(o, 0)->type->layout;
	u32 axis = layout_dim_mask(l, (int)o->attr[ATTR_AXIS]);
	return 1u << __builtin_popcount(layout_bits_in(l, LL_WARP, axis));
}

i32 partial_bytes(const struct op *o, u32 operands)
{
	const struct type *t = operand(o, 0)->type;
	i64 results = type_numel(t) >> t->layout->log2_size[o->attr[ATTR_AXIS]] << ilog2(warps_along_axis(o));
	i32 bytes = 0;
	for (u32 i = 0; i < operands; i++)
		bytes += (i32)((results * dtype_bytes(type_dtype(operand(o, i)->type)) + 15) & ~15);
	return bytes;
}

u32 source_position(const struct op *o, u32 position)
{
	const struct layout *from = operand(o, 0)->type->layout, *to = o->results[0].type->layout;
	u32 p = 0;
	if (o->code == IR_JOIN)
		return position >> 1;
	if (o->code == IR_SPLIT)
		return position << 1;
	if (o->code != IR_BROADCAST && o->code != IR_TRANS)
		return position;
	for (int d = 0; d < to->rank; d++) {
		int k = o->code == IR_TRANS ? perm_get(o->attr[ATTR_ORDER], d) : d;
		if (from->log2_size[k])
			p |= (position & layout_dim_mask(to, d)) >> layout_dim_shift(to, d)
									    << layout_dim_shift(from, k);
	}
	return p;
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

bool can_be_repeated(struct pass_state *s, const struct op *o, const struct block *b)
{
	bool load = o->code == IR_LOAD && !o->attr[ATTR_VOLATILE] && !may_be_written(s, b, pointer_base(operand(o, 0)));
	return !o->nblocks && !op_has(o, SYNC) && (op_has(o, PURE) || load);
}

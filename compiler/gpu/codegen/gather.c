/* Gathers, histograms, and maps. */
#include "gpu/codegen/nvptx_internal.h"

/* The element of register r of an integer tile as i32; wider integers are truncated. */
static LLVMValueRef number(struct lower *l, const struct value *v, u32 r)
{
	LLVMValueRef x = elem(l, v, r);
	int bits = type_bits(LLVMTypeOf(x));
	return bits < 32 ? LLVMBuildSExt(l->b, x, l->i32, "") : bits > 32 ? LLVMBuildTrunc(l->b, x, l->i32, "") : x;
}

/* --- gathers ------------------------------------------------------------------------------------------------- */

struct gather {
	const struct value *from, *index;
	const struct layout *in, *out;
	int axis;
	/* The position in the source `from`, with coordinate 0 along the axis, of this thread's register 0 of the
	 * result. */
	LLVMValueRef thread;
};

/* Computes g->thread. */
static LLVMValueRef thread_beside_axis(struct lower *l, const struct gather *g)
{
	u32 bases[LL_DIMS][LAYOUT_MAX_BITS];
	for (int dim = LL_LANE; dim <= LL_WARP; dim++)
		for (int i = 0; i < g->out->bits[dim]; i++)
			bases[dim][i] = beside_axis(g->out, g->in, g->axis, g->out->basis[dim][i]);
	return thread_map(l, l->b, bases[LL_LANE], bases[LL_WARP], g->out->bits[LL_WARP]);
}

/* The position in the source (i32) of the element that register r of the result gets. */
static LLVMValueRef taken_position(struct lower *l, const struct gather *g, u32 r)
{
	u32 here = beside_axis(g->out, g->in, g->axis, layout_apply(g->out, r, 0, 0));
	LLVMValueRef at = LLVMBuildShl(l->b, number(l, g->index, r), c_i32(l, layout_dim_shift(g->in, g->axis)), "");
	at = LLVMBuildAnd(l->b, at, c_i32(l, layout_dim_mask(g->in, g->axis)), "");
	at = LLVMBuildOr(l->b, at, g->thread, "");
	return LLVMBuildOr(l->b, at, c_i32(l, here), "");
}

/* Bit `basis` of the position, as an i32. */
static LLVMValueRef position_bit(struct lower *l, LLVMValueRef position, u32 basis)
{
	LLVMValueRef x = LLVMBuildLShr(l->b, position, c_i32(l, __builtin_ctz(basis)), "");
	return LLVMBuildAnd(l->b, x, c_i32(l, 1), "");
}

static LLVMValueRef source_lane(struct lower *l, const struct gather *g, LLVMValueRef position)
{
	u32 bases[LAYOUT_MAX_BITS] = {0}, copies = 31 & ~layout_bits_in(g->in, LL_LANE, ~0u);
	for (int i = 0; i < g->in->bits[LL_LANE]; i++)
		if (!(copies >> i & 1))
			bases[ilog2(g->in->basis[LL_LANE][i])] = 1u << i;
	LLVMValueRef own = LLVMBuildAnd(l->b, l->lane, c_i32(l, copies), "");
	return LLVMBuildOr(l->b, linear_map(l, l->b, position, bases, layout_tile_bits(g->in)), own, "");
}

/* The source's element at `position`, shuffled from `lane`. Its register there differs from `first` only in the
 * register bits `open`: each register that remains is shuffled, and selects by bits of the position choose one. */
static LLVMValueRef shuffle_registers(struct lower *l, const struct gather *g, LLVMValueRef position, LLVMValueRef lane,
				      u32 first, u32 open)
{
	if (!open)
		return shuffle(l, elem(l, g->from, first), lane);
	u32 bit = open & -open;
	LLVMValueRef no = shuffle_registers(l, g, position, lane, first, open & ~bit),
		     yes = shuffle_registers(l, g, position, lane, first | bit, open & ~bit),
		     set = position_bit(l, position, g->in->basis[LL_REG][__builtin_ctz(bit)]);
	return LLVMBuildSelect(l->b, LLVMBuildTrunc(l->b, set, l->i1, ""), yes, no, "");
}

static LLVMValueRef gather_in_warp(struct lower *l, const struct gather *g, u32 r)
{
	LLVMValueRef position = taken_position(l, g, r);
	u32 here = beside_axis(g->out, g->in, g->axis, layout_apply(g->out, r, 0, 0)), fixed = 0;
	for (int i = 0; i < g->out->bits[LL_REG]; i++)
		fixed |= beside_axis(g->out, g->in, g->axis, g->out->basis[LL_REG][i]);
	u32 first = layout_bits_in(g->in, LL_REG, fixed & here),
	    open = ((u32)layout_num_regs(g->in) - 1) & ~layout_bits_in(g->in, LL_REG, fixed);
	return shuffle_registers(l, g, position, source_lane(l, g, position), first, open);
}

void lower_gather(struct lower *l, const struct op *o)
{
	struct gather g = {.from = operand(o, 0), .index = operand(o, 1), .axis = (int)o->attr[ATTR_AXIS]};
	LLVMValueRef *at = new_tile(l, result(o)), base = NULL;
	bool in_warp = !o->scratch_size;
	g.in = g.from->type->layout;
	g.out = result(o)->type->layout;
	g.thread = thread_beside_axis(l, &g);
	if (!in_warp) {
		base = shared_base(l, o);
		write_shared(l, g.from, row_major_of(l, g.from->type), base);
		barrier(l);
	}
	int bytes = MAX(type_elem_bits(g.from->type) / 8, 1);
	for (u32 r = 0; r < num_elems(result(o)); r++) {
		if (in_warp) {
			at[r] = gather_in_warp(l, &g, r);
			continue;
		}
		LLVMValueRef offset = LLVMBuildMul(l->b, taken_position(l, &g, r), c_i32(l, bytes), "");
		at[r] = read_element(l, shared_at(l, base, offset, 0), llvm_type(l, g.from->type));
	}
}

/* --- histograms ---------------------------------------------------------------------------------------------- */

static void clear_bins(struct lower *l, LLVMValueRef base, u32 bins)
{
	u32 threads = 32 * (u32)l->k->num_warps, width = MIN(MAX(bins / threads, 1), 4);
	LLVMValueRef zero = c_i32(l, 0), zeros[] = {zero, zero, zero, zero};
	LLVMValueRef offset = LLVMBuildMul(l->b, l->thread, c_i32(l, 4 * width), "");
	LLVMValueRef mine = bins < threads ? LLVMBuildICmp(l->b, LLVMIntULT, l->thread, c_i32(l, bins), "") : NULL;
	struct guarded g = begin_if(l->b, mine);
	for (u32 at = 0; at < bins; at += threads * width)
		store_vector(l, zeros, width, shared_at(l, base, offset, 4 * at));
	end_if(l->b, &g);
}

/* Each element adds one to its bin in shared memory by an atomic addition. Lanes with equal bins are serialized. */
void lower_histogram(struct lower *l, const struct op *o)
{
	const struct value *v = operand(o, 0), *mask = o->noperands > 1 ? operand(o, 1) : NULL;
	u32 bins = (u32)type_numel(result(o)->type);
	LLVMValueRef base = shared_base(l, o), mine = owner(l, v->type->layout);
	clear_bins(l, base, bins);
	barrier(l);
	for (u32 r = 0; r < num_elems(v); r++) {
		LLVMValueRef bin = number(l, v, r), inside = LLVMBuildICmp(l->b, LLVMIntULT, bin, c_i32(l, bins), "");
		inside = and_i1(l, inside, and_i1(l, mine, mask ? elem(l, mask, r) : NULL));
		LLVMValueRef args[] = {shared_at(l, base, LLVMBuildMul(l->b, bin, c_i32(l, 4), ""), 0), inside};
		inline_asm(l, "@$1 red.shared.add.u32 [$0], 1;", "r,b,~{memory}", ASM_EFFECT, l->v, args, 2);
	}
	barrier(l);
	read_shared(l, result(o), row_major_of(l, result(o)->type), base);
}

/* --- maps ---------------------------------------------------------------------------------------------------- */

void lower_map(struct lower *l, const struct op *o)
{
	u32 n = num_elems(operand(o, 0));
	LLVMValueRef **at = arena_array(&l->scratch, LLVMValueRef *, o->nresults),
		     *args = arena_array(&l->scratch, LLVMValueRef, o->noperands),
		     *given = arena_array(&l->scratch, LLVMValueRef, o->nresults);
	for (u32 i = 0; i < o->nresults; i++)
		at[i] = new_tile(l, &o->results[i]);
	for (u32 r = 0; r < n; r++) {
		for (u32 i = 0; i < o->noperands; i++)
			args[i] = elem(l, operand(o, i), r);
		run_region(l, o->blocks[0], args, given);
		for (u32 i = 0; i < o->nresults; i++)
			at[i][r] = given[i];
	}
}

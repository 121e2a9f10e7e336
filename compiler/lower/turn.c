/* An operand of wgmma that lies across k in shared memory is turned where it lies: all threads read it, meet, and write
 * it along k. */
#include "lower/internal.h"

/* The bits of a position along dimension d, from number `low` up to `high`. */
static int bits_along(const struct layout *lay, int d, int low, int high, u32 *out)
{
	int n = 0;
	for (int i = low; i < MIN(high, lay->log2_size[d]); i++)
		out[n++] = 1u << (layout_dim_shift(lay, d) + i);
	return n;
}

/* Gives these bits of the tile's positions to lanes as far as they have none, then to warps, and the rest to registers.
 */
static const struct layout *share_out(struct lower *l, struct layout *lay, const u32 *rest, int n)
{
	int warp_bits = ilog2((u64)l->k->num_warps);
	for (int i = 0; i < n; i++) {
		enum layout_dim dim = lay->bits[LL_LANE] < LANE_BITS   ? LL_LANE
				      : lay->bits[LL_WARP] < warp_bits ? LL_WARP
								       : LL_REG;
		lay->basis[dim][lay->bits[dim]++] = rest[i];
	}
	tl_assert(lay->bits[LL_WARP] == warp_bits);
	return layout_intern(&l->s->ctx->layouts, lay);
}

static struct value *tile_like(struct lower *l, enum dtype d, const struct layout *lay)
{
	struct value *v = arena_new(&l->scratch, struct value);
	const i32 shape[] = {1 << lay->log2_size[0], 1 << lay->log2_size[1]};
	v->type = type_with_layout(l->s->ctx, type_tensor(l->s->ctx, type_scalar(l->s->ctx, d), 2, shape), lay);
	return v;
}

/* A thread has four words along k at a time. Lanes read neighbours across k, and write to rows that follow each other,
 * which the swizzle puts into different banks. */
static void turn_words(struct lower *l, const struct value *v, int k, const struct layout *to)
{
	enum { VECTOR_BITS = 2 };
	struct layout lay = layout_empty(2, v->type->shape);
	u32 rest[LAYOUT_MAX_BITS];
	lay.bits[LL_REG] = (u8)bits_along(&lay, k, 0, VECTOR_BITS, lay.basis[LL_REG]);
	int n = bits_along(&lay, 1 - k, 0, LANE_BITS, rest);
	n += bits_along(&lay, k, VECTOR_BITS, LAYOUT_MAX_BITS, rest + n);
	n += bits_along(&lay, 1 - k, LANE_BITS, LAYOUT_MAX_BITS, rest + n);
	const struct value *held = tile_like(l, type_dtype(v->type), share_out(l, &lay, rest, n));
	read_shared(l, held, v->type->layout, elem(l, v, 0));
	barrier(l);
	write_shared(l, held, to, elem(l, v, 0));
}

void byte_selectors(struct lower *l, LLVMValueRef *which)
{
	LLVMValueRef latter = lane_bit(l, 1);
	which[0] = LLVMBuildSelect(l->b, latter, c_i32(l, 0x2064), c_i32(l, 0x6420), "");
	which[1] = LLVMBuildSelect(l->b, latter, c_i32(l, 0x3175), c_i32(l, 0x7531), "");
}

/* Makes words along k of pairs across k, which ldmatrix has brought; in the upper lanes the second neighbour comes
 * first. */
static void turn_pairs(struct lower *l, const struct value *pairs, const struct value *bytes)
{
	struct tile *t = arena_new(&l->scratch, struct tile);
	LLVMValueRef *in = words_of_tile(l, pairs), which[2], upper = lane_bit(l, LANE_BITS - 1);
	t->n = num_elems(bytes);
	t->words = arena_array(&l->scratch, LLVMValueRef, t->n / 4);
	byte_selectors(l, which);
	LLVMValueRef second = LLVMBuildSelect(l->b, upper, which[0], which[1], "");
	which[0] = LLVMBuildSelect(l->b, upper, which[1], which[0], "");
	which[1] = second;
	for (u32 i = 0; i < t->n / 4; i++) {
		LLVMValueRef args[] = {in[i & ~1u], in[i | 1], which[i % 2]};
		t->last = t->words[i] = intrinsic(l, "llvm.nvvm.prmt", l->i32, args, 3);
	}
	map_put(&l->tiles, bytes, t);
}

/* Pairs of bytes come by ldmatrix, and words go by stmatrix, whose rows of 8 lanes then differ modulo 8 too. */
static void turn_bytes(struct lower *l, const struct value *v, int k, const struct layout *to)
{
	i32 half[] = {v->type->shape[0], v->type->shape[1]};
	half[1 - k] /= 2;
	struct layout in = layout_empty(2, half), out = layout_empty(2, v->type->shape);
	int ik = layout_dim_shift(&in, k), im = layout_dim_shift(&in, 1 - k), ok = layout_dim_shift(&out, k),
	    om = layout_dim_shift(&out, 1 - k);
	const u32 in_regs[] = {1u << ik, 2u << ik, 16u << ik},
		  in_lanes[] = {4u << ik, 10u << ik, 1u << im, 2u << im, 4u << im},
		  out_regs[] = {1u << ok, 2u << ok, 1u << om, 16u << ok},
		  out_lanes[] = {4u << ok, 8u << ok, 2u << om, 4u << om, 9u << om};
	memcpy(in.basis[LL_REG], in_regs, sizeof in_regs);
	memcpy(in.basis[LL_LANE], in_lanes, sizeof in_lanes);
	memcpy(out.basis[LL_REG], out_regs, sizeof out_regs);
	memcpy(out.basis[LL_LANE], out_lanes, sizeof out_lanes);
	in.bits[LL_REG] = ARRAY_LEN(in_regs), out.bits[LL_REG] = ARRAY_LEN(out_regs);
	in.bits[LL_LANE] = out.bits[LL_LANE] = LANE_BITS;
	u32 rest[LAYOUT_MAX_BITS];
	int n = bits_along(&in, 1 - k, 3, LAYOUT_MAX_BITS, rest);
	n += bits_along(&in, k, 5, LAYOUT_MAX_BITS, rest + n);
	const struct value *pairs = tile_like(l, DT_I16, share_out(l, &in, rest, n));
	n = bits_along(&out, 1 - k, 4, LAYOUT_MAX_BITS, rest);
	n += bits_along(&out, k, 5, LAYOUT_MAX_BITS, rest + n);
	const struct value *bytes = tile_like(l, DT_I8, share_out(l, &out, rest, n));
	read_shared(l, pairs, layout_swizzled(&l->s->ctx->layouts, 2, half, 1 - k, 16), elem(l, v, 0));
	turn_pairs(l, pairs, bytes);
	barrier(l);
	write_shared(l, bytes, to, elem(l, v, 0));
}

void turn_in_place(struct lower *l, const struct value *v, int k, const struct layout *to)
{
	(type_elem_bits(v->type) == 8 ? turn_bytes : turn_words)(l, v, k, to);
	fence_async(l, false);
	barrier(l);
}

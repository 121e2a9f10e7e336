/* Dots: tensor-core fragments, or multiply-adds from shared memory. */
#include "lower/internal.h"

/* --- tensor cores -------------------------------------------------------------------------------------------- */

/* The register that holds the element at `pos`, or -1 when its thread's part does not reach that far (a tile smaller
 * than the instruction): only bits that registers decide are looked at. */
static int register_at(const struct layout *lay, u32 pos)
{
	u32 r = 0;
	for (int i = 0; i < lay->bits[LL_REG]; i++)
		if (pos & lay->basis[LL_REG][i]) {
			r |= 1u << i;
			pos &= ~lay->basis[LL_REG][i];
		}
	return pos ? -1 : (int)r;
}

/* The part of a position along d: coordinate c, or an impossible bit when the tile is not that long. */
static u32 coordinate(const struct layout *lay, int d, u32 c)
{
	return c >> lay->side[d] ? 1u << 31 : c << layout_dim_shift(lay, d);
}

static LLVMValueRef to_tf32(struct lower *l, LLVMValueRef word)
{
	LLVMValueRef f = LLVMBuildBitCast(l->b, word, l->f32, "");
	return inline_asm(l, "cvt.rna.tf32.f32 $0, $1;", "=r,f", ASM_PURE, l->i32, &f, 1);
}

/* The packed register that starts at position pos; zero beyond the tile. */
static LLVMValueRef fragment_word(struct fragments *f, u32 pos)
{
	struct lower *l = f->l;
	int reg = register_at(f->lay, pos);
	LLVMTypeRef t = llvm_type(l, f->v->type);
	bool wide = type_bits(t) == 64;
	if (reg < 0)
		return wide ? LLVMConstNull(l->f64) : c_i32(l, 0);
	if (wide)
		return elem(l, f->v, (u32)reg);
	u32 w = (u32)reg / (u32)f->per_word;
	if (f->cache[w])
		return f->cache[w];
	LLVMValueRef word = word_of(l, f->v, w);
	if (f->tf32)
		word = to_tf32(l, word);
	return f->cache[w] = word;
}

struct fragments fragments_of(struct lower *l, const struct value *v, int operand_index, const struct mma *m)
{
	struct fragments f = {.l = l, .v = v, .lay = v->type->layout, .tf32 = m->tf32, .k_half = -1};
	int rank = v->type->rank, bits = type_bits(llvm_type(l, v->type));
	f.k_dim = operand_index == 0 ? rank - 1 : rank - 2;
	f.other_dim = operand_index == 0 ? rank - 2 : rank - 1;
	f.per_word = MAX(32 / bits, 1);
	if (m->k > 4 * f.per_word)
		f.k_half = ilog2(4 * (u64)f.per_word);
	f.row8 = operand_index == 0 && m->m == 16;
	f.cache = arena_array(&l->scratch, LLVMValueRef, num_elems(v) / (u32)f.per_word + 1);
	return f;
}

u32 load_fragment(struct fragments *f, u32 batch, u32 other, u32 k, LLVMValueRef *out)
{
	u32 n = 0;
	for (u32 half = 0; half < (f->k_half >= 0 ? 2u : 1u); half++)
		for (u32 row = 0; row < (f->row8 ? 2u : 1u); row++) {
			u32 pos = coordinate(f->lay, f->other_dim, other + 8 * row) |
				  coordinate(f->lay, f->k_dim, k + (half ? 1u << f->k_half : 0));
			if (f->v->type->rank == 3)
				pos |= coordinate(f->lay, 0, batch);
			out[n++] = fragment_word(f, pos);
		}
	return n;
}

/* Multiples of `unit` up to the side of dimension d that a thread reaches by registers: the offsets of its instructions
 * along d. */
static const u32 *offsets_along(struct lower *l, const struct layout *lay, int d, u32 unit, u32 *count)
{
	u32 n = 1, *out = arena_array(&l->scratch, u32, 1u << lay->bits[LL_REG]);
	for (int i = 0; i < lay->bits[LL_REG]; i++) {
		u32 c = (lay->basis[LL_REG][i] & layout_dim_mask(lay, d)) >> layout_dim_shift(lay, d);
		if (c < unit || !c)
			continue;
		for (u32 k = 0; k < n; k++)
			out[n + k] = out[k] | c;
		n *= 2;
	}
	*count = n;
	return out;
}

static void emit_mma(struct lower *l, const struct ptx_mma *p, LLVMValueRef *a, LLVMValueRef *b, LLVMValueRef *c)
{
	LLVMValueRef args[12];
	LLVMTypeRef types[4], t = p->acc == DT_F32 ? l->f32 : p->acc == DT_F64 ? l->f64 : l->i32;
	u32 n = 0;
	for (u32 i = 0; i < p->na; i++)
		args[n++] = a[i];
	for (u32 i = 0; i < p->nb; i++)
		args[n++] = b[i];
	for (u32 i = 0; i < p->nc; i++) {
		args[n++] = c[i];
		types[i] = t;
	}
	LLVMValueRef r = inline_asm(l, p->text, p->constraints, ASM_CONVERGENT, LLVMStructTypeInContext(l->ctx, types, p->nc, false), args, n);
	for (u32 i = 0; i < p->nc; i++)
		c[i] = LLVMBuildExtractValue(l->b, r, i, "");
}

/* The accumulator registers of the instruction at (row, col): elements (0,0) (0,1) (8,0) (8,1), or the first two. */
struct accumulator {
	int reg[4];
	u32 n;
};

static struct accumulator accumulator_at(const struct layout *lay, u32 batch, u32 row, u32 col, u32 n)
{
	struct accumulator a = {.n = n};
	for (u32 i = 0; i < n; i++) {
		u32 pos = coordinate(lay, lay->rank - 2, row + 8 * (i >> 1)) | coordinate(lay, lay->rank - 1, col + (i & 1));
		if (lay->rank == 3)
			pos |= coordinate(lay, 0, batch);
		a.reg[i] = register_at(lay, pos);
	}
	return a;
}

static void load_accumulator(struct lower *l, const struct accumulator *a, LLVMValueRef *tile, LLVMTypeRef t, bool packed, LLVMValueRef *c)
{
	LLVMValueRef e[4];
	for (u32 i = 0; i < a->n; i++)
		e[i] = a->reg[i] < 0 ? LLVMConstNull(t) : tile[a->reg[i]];
	if (packed)
		pack(l, e, a->n, 32, c);
	else
		memcpy(c, e, sizeof e);
}

static void store_accumulator(struct lower *l, const struct accumulator *a, LLVMValueRef *c, LLVMTypeRef t, bool packed, LLVMValueRef *tile)
{
	LLVMValueRef e[4];
	if (packed)
		unpack(l, c, a->n / 2, t, a->n, e);
	else
		memcpy(e, c, sizeof e);
	for (u32 i = 0; i < a->n; i++)
		if (a->reg[i] >= 0)
			tile[a->reg[i]] = e[i];
}

/* A tile narrower than the instruction: two columns that one thread computes may be the same element. */
static void lower_mma(struct lower *l, const struct op *o, const struct mma *m)
{
	const struct value *v = result(o), *acc = operand(o, 2);
	const struct layout *lay = v->type->layout;
	const struct ptx_mma *p = ptx_mma(m->name);
	struct fragments fa = fragments_of(l, operand(o, 0), 0, m), fb = fragments_of(l, operand(o, 1), 1, m);
	u32 nrows, ncols, nk, nbatch = 1, one = 0, n = num_elems(v);
	const u32 *rows = offsets_along(l, lay, lay->rank - 2, m->m, &nrows);
	const u32 *cols = offsets_along(l, lay, lay->rank - 1, m->n, &ncols);
	const u32 *ks = offsets_along(l, fa.lay, fa.k_dim, m->k, &nk), *batches = &one;
	if (lay->rank == 3)
		batches = offsets_along(l, lay, 0, 1, &nbatch);
	LLVMTypeRef t = llvm_type(l, v->type);
	LLVMValueRef *at = arena_array(&l->scratch, LLVMValueRef, n), a[4] = {0}, b[4] = {0}, c[4] = {0};
	bool packed = type_bits(t) == 16;
	for (u32 i = 0; i < n; i++)
		at[i] = elem(l, acc, i);
	for (u32 k = 0; k < nk; k++)
		for (u32 z = 0; z < nbatch; z++)
			for (u32 i = 0; i < nrows; i++) {
				load_fragment(&fa, batches[z], rows[i], ks[k], a);
				for (u32 j = 0; j < ncols; j++) {
					struct accumulator r = accumulator_at(lay, batches[z], rows[i], cols[j], m->m == 16 ? 4 : 2);
					load_fragment(&fb, batches[z], cols[j], ks[k], b);
					load_accumulator(l, &r, at, t, packed, c);
					emit_mma(l, p, a, b, c);
					store_accumulator(l, &r, c, t, packed, at);
				}
			}
	set_tile(l, v, at, n);
}

/* --- multiply-adds ------------------------------------------------------------------------------------------- */

static const struct layout *row_major(struct lower *l, const struct type *t)
{
	struct layout mem = layout_empty(t->rank, t->shape);
	for (int i = 0; i < layout_tile_bits(&mem); i++)
		mem.basis[LL_OFFSET][mem.bits[LL_OFFSET]++] = 1u << i;
	return layout_intern(&l->s->ctx->layouts, &mem);
}

/* An element of an operand in row-major shared memory, widened to what the products are computed in. */
static LLVMValueRef load_operand(struct lower *l, LLVMValueRef base, LLVMValueRef index, enum dtype d, LLVMTypeRef wide)
{
	LLVMTypeRef t = d == DT_F16 ? l->f16 : d == DT_F32 ? l->f32 : d == DT_F64 ? l->f64 : int_type(l, dtype_bits(d));
	LLVMValueRef p = LLVMBuildInBoundsGEP2(l->b, t, base, &index, 1, ""), x = LLVMBuildLoad2(l->b, t, p, "");
	if (wide == l->i32)
		return LLVMBuildSExt(l->b, x, l->i32, "");
	return wide == l->f64 ? x : small_to_f32(l, x, d);
}

/* Both operands go to shared memory in row-major order; a loop over k loads a column of one and a row of the other. */
static void lower_fma(struct lower *l, const struct op *o)
{
	const struct value *v = result(o), *a = operand(o, 0), *b = operand(o, 1), *acc = operand(o, 2);
	const struct layout *lay = v->type->layout;
	enum dtype d = type_dtype(a->type), out = type_dtype(v->type);
	LLVMTypeRef wide = out == DT_F64 ? l->f64 : out == DT_I32 ? l->i32 : l->f32;
	int rank = v->type->rank;
	i32 M = a->type->shape[rank - 2], K = a->type->shape[rank - 1], N = b->type->shape[rank - 1];
	u32 n = num_elems(v);
	LLVMValueRef pa = shared_base(l, o), pb = shared_at(l, pa, NULL, (u32)(type_numel(a->type) * dtype_bytes(d)));
	write_shared(l, a, row_major(l, a->type), pa);
	write_shared(l, b, row_major(l, b->type), pb);
	barrier(l);
	LLVMValueRef *at = arena_array(&l->scratch, LLVMValueRef, n), *sum = arena_array(&l->scratch, LLVMValueRef, n);
	for (u32 i = 0; i < n; i++) {
		sum[i] = elem(l, acc, i);
		if (out == DT_F16)
			sum[i] = small_to_f32(l, sum[i], DT_F16);
	}
	LLVMValueRef pos = thread_position(l, lay);
	LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b), loop = LLVMAppendBasicBlockInContext(l->ctx, l->fn, ""),
			  exit = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	LLVMBuildBr(l->b, loop);
	LLVMPositionBuilderAtEnd(l->b, loop);
	LLVMValueRef k = LLVMBuildPhi(l->b, l->i32, ""), zero = c_i32(l, 0);
	for (u32 i = 0; i < n; i++) {
		at[i] = LLVMBuildPhi(l->b, wide, "");
		LLVMAddIncoming(at[i], &sum[i], &before, 1);
	}
	LLVMValueRef *next = arena_array(&l->scratch, LLVMValueRef, n), *ea = arena_array(&l->scratch, LLVMValueRef, n), *eb = arena_array(&l->scratch, LLVMValueRef, n);
	u32 mask_m = layout_dim_mask(lay, rank - 2) | (rank == 3 ? layout_dim_mask(lay, 0) : 0), mask_n = layout_dim_mask(lay, rank - 1) | (rank == 3 ? layout_dim_mask(lay, 0) : 0);
	for (u32 i = 0; i < n; i++) {
		u32 at_i = layout_apply(lay, i, 0, 0);
		for (u32 j = 0; j < i && (!ea[i] || !eb[i]); j++) { /* loaded already for another result? */
			u32 at_j = layout_apply(lay, j, 0, 0);
			if ((at_i & mask_m) == (at_j & mask_m))
				ea[i] = ea[j];
			if ((at_i & mask_n) == (at_j & mask_n))
				eb[i] = eb[j];
		}
		LLVMValueRef full = LLVMBuildOr(l->b, pos, c_i32(l, at_i), "");
		LLVMValueRef col = LLVMBuildAnd(l->b, full, c_i32(l, N - 1), ""), row = LLVMBuildLShr(l->b, full, c_i32(l, ilog2((u64)N)), "");
		LLVMValueRef batch = LLVMBuildLShr(l->b, row, c_i32(l, ilog2((u64)M)), "");
		if (!ea[i]) /* rows of all batches are consecutive: row · K + k */
			ea[i] = load_operand(l, pa, LLVMBuildAdd(l->b, LLVMBuildMul(l->b, row, c_i32(l, K), ""), k, ""), d, wide);
		if (!eb[i]) {
			LLVMValueRef line = LLVMBuildAdd(l->b, LLVMBuildMul(l->b, batch, c_i32(l, K), ""), k, "");
			eb[i] = load_operand(l, pb, LLVMBuildAdd(l->b, LLVMBuildMul(l->b, line, c_i32(l, N), ""), col, ""), type_dtype(b->type), wide);
		}
		LLVMValueRef args[] = {ea[i], eb[i], at[i]};
		if (wide == l->i32)
			next[i] = LLVMBuildAdd(l->b, at[i], LLVMBuildMul(l->b, ea[i], eb[i], ""), "");
		else
			next[i] = intrinsic(l, wide == l->f64 ? "llvm.fma.f64" : "llvm.fma.f32", wide, args, 3);
	}
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->b);
	LLVMValueRef k1 = LLVMBuildAdd(l->b, k, c_i32(l, 1), "");
	LLVMAddIncoming(k, &zero, &before, 1);
	LLVMAddIncoming(k, &k1, &latch, 1);
	for (u32 i = 0; i < n; i++)
		LLVMAddIncoming(at[i], &next[i], &latch, 1);
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntULT, k1, c_i32(l, K), ""), loop, exit);
	LLVMPositionBuilderAtEnd(l->b, exit);
	for (u32 i = 0; i < n && out == DT_F16; i++)
		next[i] = f32_to_small(l, next[i], DT_F16, ROUND_DEFAULT);
	set_tile(l, v, next, n);
}

void lower_dot(struct lower *l, const struct op *o)
{
	const struct mma *m = mma_of_dot(l->s->sm, o);
	if (m)
		lower_mma(l, o, m);
	else
		lower_fma(l, o);
}

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
	if (f->widened)
		w = 2 * w + f->half;
	if (f->cache[w])
		return f->cache[w];
	LLVMValueRef word = f->widened ? fp8_pair_to_f16(l, f->v, w) : word_of(l, f->v, w);
	if (f->tf32)
		word = to_tf32(l, word);
	return f->cache[w] = word;
}

struct fragments fragments_of(struct lower *l, const struct value *v, int operand_index, const struct mma *m)
{
	struct fragments f = {.l = l, .v = v, .lay = v->type->layout, .tf32 = m->tf32, .widened = mma_is_widened(l->s->sm, m), .k_half = -1};
	int rank = v->type->rank, bits = type_bits(llvm_type(l, v->type));
	f.k_dim = operand_index == 0 ? rank - 1 : rank - 2;
	f.other_dim = operand_index == 0 ? rank - 2 : rank - 1;
	f.per_word = MAX(32 / bits, 1);
	if (m->k > 4 * f.per_word)
		f.k_half = ilog2(4 * (u64)f.per_word);
	f.row8 = operand_index == 0 && m->m == 16;
	f.cache = arena_array(&l->scratch, LLVMValueRef, num_elems(v) / (u32)f.per_word * (1 + f.widened) + 1);
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
	const struct ptx_mma *p = ptx_mma(mma_is_widened(l->s->sm, m) ? "mma_f16_f32" : m->name);
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
	u32 halves = 1 + fa.widened;
	for (u32 i = 0; i < n; i++)
		at[i] = elem(l, acc, i);
	for (u32 k = 0; k < nk * halves; k++)
		for (u32 z = 0; z < nbatch; z++)
			for (u32 i = 0; i < nrows; i++) {
				fa.half = fb.half = k % halves;
				load_fragment(&fa, batches[z], rows[i], ks[k / halves], a);
				for (u32 j = 0; j < ncols; j++) {
					struct accumulator r = accumulator_at(lay, batches[z], rows[i], cols[j], m->m == 16 ? 4 : 2);
					load_fragment(&fb, batches[z], cols[j], ks[k / halves], b);
					load_accumulator(l, &r, at, t, packed, c);
					emit_mma(l, p, a, b, c);
					store_accumulator(l, &r, c, t, packed, at);
				}
			}
	set_tile(l, v, at, n);
}

/* --- multiply-adds ------------------------------------------------------------------------------------------- */

/* Lines of an operand: see struct lines. Lanes that write elements of different lines meet in the same banks, since lines are multiples
 * of all banks long: so bit i of a line's number flips bit flips[i] - 1 of its elements' places (0: none), one that no lanes differ in. */
static void find_flips(const struct layout *lay, int along, int k, u32 bytes, u8 *flips)
{
	u32 taken = 0, vector = 16 / bytes, banks = 128 / bytes, at = vector;
	for (int i = 0; i < lay->bits[LL_LANE]; i++)
		taken |= (lay->basis[LL_LANE][i] & layout_dim_mask(lay, along)) >> layout_dim_shift(lay, along);
	for (int i = 0; i < lay->bits[LL_LANE]; i++) {
		u32 line = (lay->basis[LL_LANE][i] & layout_dim_mask(lay, k)) >> layout_dim_shift(lay, k);
		while (at & taken)
			at <<= 1;
		if (!line || at >= MIN(banks, 1u << lay->side[along]))
			continue;
		flips[ilog2(line)] = (u8)(1 + ilog2(at));
		at <<= 1;
	}
}

/* Shared memory in which the elements along dimension `first` lie side by side, then those along the last of the others. */
static const struct layout *lines_along(struct lower *l, const struct value *x, int first, u8 *flips)
{
	const struct type *t = x->type;
	struct layout mem = layout_empty(t->rank, t->shape);
	int k = first == t->rank - 1 ? t->rank - 2 : t->rank - 1;
	find_flips(t->layout, first, k, (u32)dtype_bytes(type_dtype(t)), flips);
	for (int i = -1; i < t->rank; i++) {
		int d = i < 0 ? first : t->rank - 1 - i, shift = layout_dim_shift(&mem, d);
		for (int bit = 0; bit < mem.side[d] && (i < 0 || d != first); bit++) {
			u32 flip = d == k && flips[bit] ? 1u << (flips[bit] - 1) << layout_dim_shift(&mem, first) : 0;
			mem.basis[LL_OFFSET][mem.bits[LL_OFFSET]++] = 1u << bit << shift | flip;
		}
	}
	return layout_intern(&l->s->ctx->layouts, &mem);
}

/* One operand as the results need it: for each step of k a line of as many elements as the result has rows (or columns). */
struct lines {
	enum dtype dtype;
	LLVMTypeRef elem, wide;
	LLVMValueRef base;
	i32 length, k;
	u32 mask, low; /* bits of the result's position that choose an element of a line; those that count through a vector */
	int shift, batch_shift;
	LLVMValueRef pos;
	u8 flips[LAYOUT_MAX_BITS];
};

/* The place in line k of the thread's first element, and `at` further. */
static LLVMValueRef place_in_line(struct lower *l, const struct lines *r, LLVMValueRef k, u32 at)
{
	LLVMValueRef place = LLVMBuildAnd(l->b, LLVMBuildLShr(l->b, r->pos, c_i32(l, r->shift), ""), c_i32(l, r->length - 1), "");
	u32 flippable = 0;
	for (int i = 0; i < LAYOUT_MAX_BITS; i++) {
		if (!r->flips[i])
			continue;
		LLVMValueRef bit = LLVMBuildAnd(l->b, LLVMBuildLShr(l->b, k, c_i32(l, i), ""), c_i32(l, 1), "");
		place = LLVMBuildXor(l->b, place, LLVMBuildShl(l->b, bit, c_i32(l, r->flips[i] - 1), ""), "");
		flippable |= 1u << (r->flips[i] - 1);
	}
	at = (at >> r->shift) & (u32)(r->length - 1);
	place = LLVMBuildXor(l->b, place, c_i32(l, at & flippable), "");
	return LLVMBuildAdd(l->b, place, c_i32(l, at & ~flippable), "");
}

/* Writes the operand's lines too. */
static struct lines lines_of(struct lower *l, const struct op *o, int dim, const struct value *x, i32 k, LLVMValueRef base, LLVMTypeRef wide, LLVMValueRef pos)
{
	const struct layout *lay = result(o)->type->layout;
	enum dtype d = type_dtype(x->type);
	LLVMTypeRef t = d == DT_F16 ? l->f16 : d == DT_F32 ? l->f32 : d == DT_F64 ? l->f64 : int_type(l, dtype_bits(d));
	struct lines r = {d, t, wide, base, result(o)->type->shape[dim], k, layout_dim_mask(lay, dim), 0, layout_dim_shift(lay, dim),
			  lay->rank == 3 ? layout_dim_shift(lay, 0) : -1, pos, {0}};
	write_shared(l, x, lines_along(l, x, dim, r.flips), base);
	for (u32 bit = 1u << r.shift; (r.low >> r.shift) + 1 < 16u / (u32)dtype_bytes(d); bit <<= 1) {
		bool alone = false; /* a register's */
		for (int i = 0; i < lay->bits[LL_REG]; i++)
			alone |= lay->basis[LL_REG][i] == bit && bit & r.mask;
		if (!alone)
			break;
		r.low |= bit;
	}
	return r;
}

/* The elements of line k of the vector that result `at` belongs to. */
static LLVMValueRef load_line(struct lower *l, const struct lines *r, LLVMValueRef k, u32 at)
{
	u32 width = (r->low >> r->shift) + 1;
	LLVMValueRef along = place_in_line(l, r, k, at & ~r->low);
	LLVMValueRef full = LLVMBuildOr(l->b, r->pos, c_i32(l, at & ~r->low), "");
	if (r->batch_shift >= 0)
		k = LLVMBuildAdd(l->b, LLVMBuildMul(l->b, LLVMBuildLShr(l->b, full, c_i32(l, r->batch_shift), ""), c_i32(l, r->k), ""), k, "");
	LLVMValueRef index = LLVMBuildAdd(l->b, LLVMBuildMul(l->b, k, c_i32(l, r->length), ""), along, "");
	LLVMTypeRef t = width > 1 ? LLVMVectorType(r->elem, width) : r->elem;
	LLVMValueRef v = LLVMBuildLoad2(l->b, t, LLVMBuildInBoundsGEP2(l->b, r->elem, r->base, &index, 1, ""), "");
	LLVMSetAlignment(v, width * (u32)dtype_bytes(r->dtype));
	return v;
}

/* One of them, widened to what the products are computed in. */
static LLVMValueRef line_element(struct lower *l, const struct lines *r, LLVMValueRef line, u32 at)
{
	if (r->low)
		line = LLVMBuildExtractElement(l->b, line, c_i32(l, (at & r->low) >> r->shift), "");
	if (r->wide == l->i32)
		return LLVMBuildSExt(l->b, line, l->i32, "");
	return r->wide == l->f64 ? line : small_to_f32(l, line, r->dtype);
}

/* sum[i] += a[row of i, k] b[k, column of i] */
static void add_products(struct lower *l, const struct lines *a, const struct lines *b, const struct layout *lay, LLVMValueRef k, LLVMValueRef *sum, u32 n)
{
	LLVMValueRef *la = arena_array(&l->scratch, LLVMValueRef, n), *lb = arena_array(&l->scratch, LLVMValueRef, n);
	u32 batch = lay->rank == 3 ? layout_dim_mask(lay, 0) : 0;
	for (u32 i = 0; i < n; i++) {
		u32 at = layout_apply(lay, i, 0, 0);
		for (u32 j = 0; j < i && (!la[i] || !lb[i]); j++) { /* loaded already for another result? */
			u32 differ = at ^ layout_apply(lay, j, 0, 0);
			if (!(differ & (a->mask | batch) & ~a->low))
				la[i] = la[j];
			if (!(differ & (b->mask | batch) & ~b->low))
				lb[i] = lb[j];
		}
		if (!la[i])
			la[i] = load_line(l, a, k, at);
		if (!lb[i])
			lb[i] = load_line(l, b, k, at);
		LLVMValueRef args[] = {line_element(l, a, la[i], at), line_element(l, b, lb[i], at), sum[i]};
		if (a->wide == l->i32)
			sum[i] = LLVMBuildAdd(l->b, sum[i], LLVMBuildMul(l->b, args[0], args[1], ""), "");
		else
			sum[i] = intrinsic(l, a->wide == l->f64 ? "llvm.fma.f64" : "llvm.fma.f32", a->wide, args, 3);
	}
}

/* Both operands go to shared memory, where a column of one and a row of the other are lines; a loop over k loads a part of each. */
static void lower_fma(struct lower *l, const struct op *o)
{
	enum { UNROLLED = 2 /* steps: more take registers from other blocks */ };
	const struct value *v = result(o), *a = operand(o, 0), *b = operand(o, 1), *acc = operand(o, 2);
	const struct layout *lay = v->type->layout;
	enum dtype out = type_dtype(v->type);
	LLVMTypeRef wide = out == DT_F64 ? l->f64 : out == DT_I32 ? l->i32 : l->f32;
	int rank = v->type->rank, K = a->type->shape[rank - 1], by = MIN(K, UNROLLED);
	u32 n = num_elems(v);
	LLVMValueRef pa = shared_base(l, o), pb = shared_at(l, pa, NULL, (u32)(type_numel(a->type) * dtype_bytes(type_dtype(a->type))));
	LLVMValueRef pos = thread_position(l, lay);
	struct lines rows = lines_of(l, o, rank - 2, a, K, pa, wide, pos), cols = lines_of(l, o, rank - 1, b, K, pb, wide, pos);
	barrier(l);
	LLVMValueRef *at = arena_array(&l->scratch, LLVMValueRef, n), *sum = arena_array(&l->scratch, LLVMValueRef, n);
	for (u32 i = 0; i < n; i++) {
		sum[i] = elem(l, acc, i);
		if (out == DT_F16)
			sum[i] = small_to_f32(l, sum[i], DT_F16);
	}
	LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b), loop = LLVMAppendBasicBlockInContext(l->ctx, l->fn, ""),
			  exit = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	LLVMBuildBr(l->b, loop);
	LLVMPositionBuilderAtEnd(l->b, loop);
	LLVMValueRef k = LLVMBuildPhi(l->b, l->i32, ""), zero = c_i32(l, 0);
	for (u32 i = 0; i < n; i++) {
		at[i] = LLVMBuildPhi(l->b, wide, "");
		LLVMAddIncoming(at[i], &sum[i], &before, 1);
		sum[i] = at[i];
	}
	for (int step = 0; step < by; step++)
		add_products(l, &rows, &cols, lay, LLVMBuildAdd(l->b, k, c_i32(l, step), ""), sum, n);
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->b);
	LLVMValueRef next = LLVMBuildAdd(l->b, k, c_i32(l, by), "");
	LLVMAddIncoming(k, &zero, &before, 1);
	LLVMAddIncoming(k, &next, &latch, 1);
	for (u32 i = 0; i < n; i++)
		LLVMAddIncoming(at[i], &sum[i], &latch, 1);
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntULT, next, c_i32(l, K), ""), loop, exit);
	LLVMPositionBuilderAtEnd(l->b, exit);
	for (u32 i = 0; i < n && out == DT_F16; i++)
		sum[i] = f32_to_small(l, sum[i], DT_F16, ROUND_DEFAULT);
	set_tile(l, v, sum, n);
}

void lower_dot(struct lower *l, const struct op *o)
{
	const struct mma *m = mma_of_dot(l->s->sm, o);
	if (m)
		lower_mma(l, o, m);
	else
		lower_fma(l, o);
}

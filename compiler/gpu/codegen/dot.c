/* Dots by mma.sync from registers, or by multiply-adds from shared memory. */
#include "support/thresholds.h"
#include "gpu/codegen/nvptx_internal.h"

/* --- tensor cores -------------------------------------------------------------------------------------------- */

/* The register that holds the element at position `pos` relative to that of the thread's register 0. -1 if no register
 * bit gives a bit of pos: the tile is smaller than the instruction. */
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

/* The position bits of coordinate c along dimension d. If the tile has no such coordinate, bit 31, which no register
 * has. */
static u32 coordinate(const struct layout *lay, int d, u32 c)
{
	return c >> lay->log2_size[d] ? 1u << 31 : c << layout_dim_shift(lay, d);
}

/* The 32-bit PTX register (64-bit for fp64) of an operand whose first element is at position pos; zero beyond the
 * tile. */
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
	return f->cache[w] = word;
}

struct fragments fragments_of(struct lower *l, const struct value *v, int operand_index, const struct mma *m)
{
	struct fragments f = {.l = l,
			      .v = v,
			      .lay = v->type->layout,
			      .widened = m->operands == TO_F16,
			      .k_half = -1};
	int rank = v->type->rank, bits = type_bits(llvm_type(l, v->type));
	f.k_dim = operand_index == 0 ? rank - 1 : rank - 2;
	f.other_dim = operand_index == 0 ? rank - 2 : rank - 1;
	f.per_word = MAX(32 / bits, 1);
	if (m->k > 4 * f.per_word)
		f.k_half = ilog2(4 * (u64)f.per_word);
	f.second = operand_index == 0 && m->m == 16 ? 8 : 0;
	f.cache = arena_array(&l->scratch, LLVMValueRef, num_elems(v) / (u32)f.per_word * (1 + f.widened) + 1);
	return f;
}

u32 load_fragment(struct fragments *f, u32 batch, u32 other, u32 k, LLVMValueRef *out)
{
	u32 n = 0;
	for (u32 half = 0; half < (f->k_half >= 0 ? 2u : 1u); half++)
		for (u32 row = 0; row < (f->second ? 2u : 1u); row++) {
			u32 pos = coordinate(f->lay, f->other_dim, other + f->second * row) |
				  coordinate(f->lay, f->k_dim, k + (half ? 1u << f->k_half : 0));
			if (f->v->type->rank == 3)
				pos |= coordinate(f->lay, 0, batch);
			out[n++] = fragment_word(f, pos);
		}
	return n;
}

/* The coordinates along dimension d, relative to the thread's register 0, at which the mma instructions of a thread
 * begin: all multiples of the instruction's size `unit` that register bits reach. */
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
	LLVMValueRef r = inline_asm(l, p->text, p->constraints, ASM_CONVERGENT,
				    LLVMStructTypeInContext(l->ctx, types, p->nc, false), args, n);
	for (u32 i = 0; i < p->nc; i++)
		c[i] = LLVMBuildExtractValue(l->b, r, i, "");
}

/* The n accumulators that a thread passes to one instruction, whose tile begins at (row, col), as registers of the
 * result tile: for the elements (0,0) (0,1) (8,0) (8,1) from there, or the first two. -1: beyond the result tile. */
struct accumulator {
	int reg[4];
	u32 n;
};

static struct accumulator accumulator_at(const struct layout *lay, u32 batch, u32 row, u32 col, u32 n)
{
	struct accumulator a = {.n = n};
	for (u32 i = 0; i < n; i++) {
		u32 pos = coordinate(lay, lay->rank - 2, row + 8 * (i >> 1)) |
			  coordinate(lay, lay->rank - 1, col + (i & 1));
		if (lay->rank == 3)
			pos |= coordinate(lay, 0, batch);
		a.reg[i] = register_at(lay, pos);
	}
	return a;
}

static void load_accumulator(struct lower *l, const struct accumulator *a, LLVMValueRef *tile, LLVMTypeRef t,
			     bool packed, LLVMValueRef *c)
{
	LLVMValueRef e[4];
	for (u32 i = 0; i < a->n; i++)
		e[i] = a->reg[i] < 0 ? LLVMConstNull(t) : tile[a->reg[i]];
	if (packed)
		pack(l, e, a->n, 32, c);
	else
		memcpy(c, e, sizeof e);
}

static void store_accumulator(struct lower *l, const struct accumulator *a, LLVMValueRef *c, LLVMTypeRef t, bool packed,
			      LLVMValueRef *tile)
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

/* Emits a dot as mma.sync instructions. In a result narrower than the instruction, two accumulators of a thread may be
 * the same element. */
static void lower_mma(struct lower *l, const struct op *o, const struct mma *m)
{
	const struct value *v = result(o), *acc = operand(o, 2);
	const struct layout *lay = v->type->layout;
	const struct ptx_mma *p = ptx_mma(m->name);
	struct fragments fa = fragments_of(l, operand(o, 0), 0, m), fb = fragments_of(l, operand(o, 1), 1, m);
	u32 nrows, ncols, nk, nbatch = 1, one = 0, n = num_elems(v);
	int warps[MAX_RANK];
	for (int d = 0; d < lay->rank; d++)
		warps[d] = dims_get(o->attr[ATTR_WARPS], d);
	/* the instruction's order of k: positions have other numbers, registers the same */
	fa.lay = mma_operand(&l->s->ctx->layouts, operand(o, 0)->type, 0, warps, m, 0);
	fb.lay = mma_operand(&l->s->ctx->layouts, operand(o, 1)->type, 1, warps, m, 0);
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
					struct accumulator r =
						accumulator_at(lay, batches[z], rows[i], cols[j], m->m == 16 ? 4 : 2);
					load_fragment(&fb, batches[z], cols[j], ks[k / halves], b);
					load_accumulator(l, &r, at, t, packed, c);
					emit_mma(l, p, a, b, c);
					store_accumulator(l, &r, c, t, packed, at);
				}
			}
	set_tile(l, v, at, n);
}

/* --- multiply-adds ------------------------------------------------------------------------------------------- */

/* An operand in shared memory for multiply-adds. `lay` (layout_fma_operand) numbers the elements that the thread reads
 * as if they were registers. The last register bits number the values of k; the last `turn_bits` of these number the
 * iterations of the loop over k. */
struct lines {
	enum dtype dtype;
	LLVMTypeRef elem, wide; /* type of an element in memory; type in which products are added */
	const struct layout *lay;
	struct mapped at;      /* addresses of the elements of `lay`; its `thread` includes the iteration */
	int k, turn_bits;      /* k: the dimension K of the operand */
	LLVMValueRef *vectors; /* vectors already loaded in this iteration, by their first register */
};

static struct lines lines_of(struct lower *l, const struct op *o, int i, int turn_bits, LLVMTypeRef wide)
{
	const struct value *x = operand(o, (u32)i);
	const struct type *t = x->type;
	enum dtype d = type_dtype(t);
	struct lines r = {
		.dtype = d, .elem = llvm_dtype(l->ctx, d), .wide = wide, .k = t->rank - 1 - i, .turn_bits = turn_bits};
	r.lay = layout_fma_operand(&l->s->ctx->layouts, result(o)->type->layout, t->shape, i);
	r.at = map_layout(l, r.lay, t->layout, elem(l, x, 0), (u32)dtype_bytes(d));
	struct memory_map *m = &r.at.m;
	int in_turn = m->bits[LL_REG] - turn_bits;
	for (int bit = 0; bit < m->vec_bits; bit++)
		if (m->vec_reg[bit] >= in_turn)
			m->vec_bits = bit;
	for (int bit = in_turn; bit < m->bits[LL_REG]; bit++)
		r.at.thread_bits |= m->basis[LL_REG][bit];
	r.vectors = arena_array(&l->scratch, LLVMValueRef, 1u << in_turn);
	return r;
}

/* The operand in iteration `turn` (i32) of the loop over k. */
static struct lines at_turn(struct lower *l, const struct lines *all, LLVMValueRef turn)
{
	struct lines r = *all;
	const u32 *bases = r.at.m.basis[LL_REG] + r.at.m.bits[LL_REG] - r.turn_bits;
	r.at.thread = LLVMBuildXor(l->b, r.at.thread, linear_map(l, l->b, turn, bases, r.turn_bits), "");
	return r;
}

/* The operand's element for value k of the current iteration and the result at position `pos`, converted to r->wide. */
static LLVMValueRef line_element(struct lower *l, const struct lines *r, const struct layout *acc, u32 pos, u32 k)
{
	const struct memory_map *m = &r->at.m;
	u32 at = coordinate(r->lay, r->k, k), nth = 0;
	for (int d = 0; d < acc->rank; d++)
		if (d != r->k)
			at |= coordinate(r->lay, d, (pos & layout_dim_mask(acc, d)) >> layout_dim_shift(acc, d));
	u32 reg = (u32)register_at(r->lay, at);
	for (int i = 0; i < m->vec_bits; i++) {
		nth |= (reg >> m->vec_reg[i] & 1) << i;
		reg &= ~(1u << m->vec_reg[i]);
	}
	if (!r->vectors[reg]) {
		LLVMTypeRef t = m->vec_bits ? LLVMVectorType(r->elem, 1u << m->vec_bits) : r->elem;
		LLVMValueRef at = mapped_address(l, &r->at, linear(m->basis[LL_REG], reg));
		r->vectors[reg] = LLVMBuildLoad2(l->b, t, at, "");
		LLVMSetAlignment(r->vectors[reg], r->at.bytes << m->vec_bits);
	}
	LLVMValueRef x =
		m->vec_bits ? LLVMBuildExtractElement(l->b, r->vectors[reg], c_i32(l, nth), "") : r->vectors[reg];
	if (r->wide == l->i32)
		return LLVMBuildSExt(l->b, x, l->i32, "");
	return r->wide == l->f64 ? x : small_to_f32(l, x, r->dtype);
}

/* sum[i] += a[row of i, k] * b[k, column of i] for the `steps` values of k of this iteration. sum[i]: register i of the
 * result. */
static void add_products(struct lower *l, const struct lines *a, const struct lines *b, const struct layout *lay,
			 u32 steps, LLVMValueRef *sum, u32 n)
{
	for (u32 k = 0; k < steps; k++)
		for (u32 i = 0; i < n; i++) {
			u32 pos = layout_apply(lay, i, 0, 0);
			LLVMValueRef x = line_element(l, a, lay, pos, k), y = line_element(l, b, lay, pos, k);
			LLVMValueRef args[] = {x, y, sum[i]};
			if (a->wide == l->i32)
				sum[i] = LLVMBuildAdd(l->b, sum[i], LLVMBuildMul(l->b, args[0], args[1], ""), "");
			else
				sum[i] = intrinsic_on(l->b, "llvm.fma", args, 3);
		}
}

/* Emits a dot as multiply-adds, in a loop over k. Each iteration loads the elements of at most MAX_FMA_STEPS values of
 * k. ptxas overlaps loads and multiply-adds within an iteration, but not across iterations: loops with four values of k
 * per iteration take 9 % longer. */
static void lower_fma(struct lower *l, const struct op *o)
{
	const struct value *v = result(o), *acc = operand(o, 2);
	const struct type *a = operand(o, 0)->type;
	const struct layout *lay = v->type->layout;
	enum dtype out = type_dtype(v->type);
	LLVMTypeRef wide = out == DT_F64 ? l->f64 : out == DT_I32 ? l->i32 : l->f32;
	u32 n = num_elems(v);
	int steps = MIN(MIN(a->shape[a->rank - 1], MAX_FMA_STEPS), (i32)MAX(MAX_FMA_PRODUCTS / n, 1));
	int turns = a->shape[a->rank - 1] / steps, turn_bits = ilog2((u64)turns);
	struct lines rows = lines_of(l, o, 0, turn_bits, wide), cols = lines_of(l, o, 1, turn_bits, wide);
	LLVMValueRef *at = arena_array(&l->scratch, LLVMValueRef, n), *sum = arena_array(&l->scratch, LLVMValueRef, n);
	for (u32 i = 0; i < n; i++) {
		sum[i] = elem(l, acc, i);
		if (out == DT_F16)
			sum[i] = small_to_f32(l, sum[i], DT_F16);
	}
	LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b), loop = new_block(l->b), exit = new_block(l->b);
	LLVMBuildBr(l->b, loop);
	LLVMPositionBuilderAtEnd(l->b, loop);
	LLVMValueRef turn = LLVMBuildPhi(l->b, l->i32, ""), zero = c_i32(l, 0);
	for (u32 i = 0; i < n; i++) {
		at[i] = LLVMBuildPhi(l->b, wide, "");
		LLVMAddIncoming(at[i], &sum[i], &before, 1);
		sum[i] = at[i];
	}
	rows = at_turn(l, &rows, turn);
	cols = at_turn(l, &cols, turn);
	add_products(l, &rows, &cols, lay, (u32)steps, sum, n);
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->b);
	LLVMValueRef next = LLVMBuildAdd(l->b, turn, c_i32(l, 1), "");
	LLVMAddIncoming(turn, &zero, &before, 1);
	LLVMAddIncoming(turn, &next, &latch, 1);
	for (u32 i = 0; i < n; i++)
		LLVMAddIncoming(at[i], &sum[i], &latch, 1);
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntULT, next, c_i32(l, turns), ""), loop, exit);
	LLVMPositionBuilderAtEnd(l->b, exit);
	for (u32 i = 0; i < n && out == DT_F16; i++)
		sum[i] = f32_to_small(l, sum[i], DT_F16, ROUND_DEFAULT);
	set_tile(l, v, sum, n);
}

void lower_dot(struct lower *l, const struct op *o)
{
	const struct mma *m = mma_of_dot(o);
	if (m)
		lower_mma(l, o, m);
	else
		lower_fma(l, o);
}

#include "gpu/layout/mma.h"

/* In order of preference: the first row that fits is used. */
static const struct mma table[] = {
	{"mma_f16_f32", DT_F16, DT_F16, DT_F32, AS_IT_IS, 16, 8, 16, MMA_AMPERE},
	{"mma_f16_f16", DT_F16, DT_F16, DT_F16, AS_IT_IS, 16, 8, 16, MMA_AMPERE},
	{"mma_f16_f32_k8", DT_F16, DT_F16, DT_F32, AS_IT_IS, 16, 8, 8, MMA_TURING},
	{"mma_f16_f16_k8", DT_F16, DT_F16, DT_F16, AS_IT_IS, 16, 8, 8, MMA_TURING},
	{"mma_bf16_f32", DT_BF16, DT_BF16, DT_F32, AS_IT_IS, 16, 8, 16, MMA_AMPERE},
	{"mma_tf32_f32", DT_F32, DT_F32, DT_F32, AS_TF32, 16, 8, 8, MMA_AMPERE},
	{"mma_s8_s32", DT_I8, DT_I8, DT_I32, AS_IT_IS, 16, 8, 32, MMA_AMPERE},
	{"mma_s8_s32_m8", DT_I8, DT_I8, DT_I32, AS_IT_IS, 8, 8, 16, MMA_TURING},
	{"mma_e4m3_e4m3", DT_E4M3, DT_E4M3, DT_F32, AS_IT_IS, 16, 8, 32, MMA_ADA},
	{"mma_e4m3_e5m2", DT_E4M3, DT_E5M2, DT_F32, AS_IT_IS, 16, 8, 32, MMA_ADA},
	{"mma_e5m2_e4m3", DT_E5M2, DT_E4M3, DT_F32, AS_IT_IS, 16, 8, 32, MMA_ADA},
	{"mma_e5m2_e5m2", DT_E5M2, DT_E5M2, DT_F32, AS_IT_IS, 16, 8, 32, MMA_ADA},
	{"mma_f16_f32", DT_E4M3, DT_E4M3, DT_F32, TO_F16, 16, 8, 32, MMA_ADA},
	{"mma_f16_f32", DT_E4M3, DT_E5M2, DT_F32, TO_F16, 16, 8, 32, MMA_ADA},
	{"mma_f16_f32", DT_E5M2, DT_E4M3, DT_F32, TO_F16, 16, 8, 32, MMA_ADA},
	{"mma_f16_f32", DT_E5M2, DT_E5M2, DT_F32, TO_F16, 16, 8, 32, MMA_ADA},
	{"mma_f64_f64", DT_F64, DT_F64, DT_F64, AS_IT_IS, 8, 8, 4, MMA_AMPERE},
};

i64 mma_shape(const struct mma *m)
{
	return dims_pack((int[]){m->m, m->n, m->operands == TO_F16 ? m->k / 2 : m->k}, 3);
}

static bool is_there(const struct target *d, const struct mma *m, enum dot_precision precision)
{
	return d->mma >= m->since && (m->operands != AS_TF32 || precision == PRECISION_TF32) &&
	       (!dtype_is_fp8(m->a) || d->widens_fp8_mma == (m->operands == TO_F16));
}

const struct mma *mma_select(const struct target *d, enum dtype a, enum dtype b, enum dtype acc,
			     enum dot_precision precision)
{
	for (u32 i = 0; i < ARRAY_LEN(table); i++) {
		const struct mma *m = &table[i];
		if (m->a == a && m->b == b && m->acc == acc && is_there(d, m, precision))
			return m;
	}
	return NULL;
}

const struct mma *mma_for_dot(const struct target *d, const struct op *dot)
{
	return mma_select(d, type_dtype(operand(dot, 0)->type), type_dtype(operand(dot, 1)->type),
			  type_dtype(result(dot)->type), (enum dot_precision)dot->attr[ATTR_PRECISION]);
}

const struct mma *mma_of_dot(const struct op *dot)
{
	enum dtype a = type_dtype(operand(dot, 0)->type), b = type_dtype(operand(dot, 1)->type);
	for (u32 i = 0; i < ARRAY_LEN(table); i++) {
		const struct mma *m = &table[i];
		if (m->a == a && m->b == b && m->acc == type_dtype(result(dot)->type) &&
		    mma_shape(m) == dot->attr[ATTR_INSTR])
			return m;
	}
	return NULL;
}

const struct layout *mma_operand(struct layout_pool *p, const struct type *t, int i, const int *warps,
				 const struct mma *m, int run)
{
	const struct layout *l = layout_dot_operand(p, t->rank, t->shape, i, warps, m->m, type_elem_bits(t));
	int d = t->rank - 1 - i, word = ilog2((u64)MAX(32 / type_elem_bits(t), 1)), to[LAYOUT_MAX_BITS];
	int more = run ? ilog2((u64)run) - word : 0;
	/* after the bits of a word come those of four lanes: they go past the other bits of the run */
	for (int bit = 0; bit < l->log2_size[d]; bit++)
		to[bit] = bit < word || bit >= word + more + 2 ? bit : bit < word + 2 ? bit + more : bit - 2;
	return more > 0 ? layout_permute_bits(p, l, d, to) : l;
}

int mma_run(const struct type *t, int i)
{
	int d = t->rank - 1 - i;
	return (int)((t->layout->basis[LL_LANE][0] & layout_dim_mask(t->layout, d)) >> layout_dim_shift(t->layout, d));
}

/* --- wgmma --------------------------------------------------------------------------------------------------- */

static const struct wgmma wgmma_table[] = {
	{DT_F16, DT_F16, DT_F32, "f32.f16.f16", 16, true},
	{DT_F16, DT_F16, DT_F16, "f16.f16.f16", 16, true},
	{DT_BF16, DT_BF16, DT_F32, "f32.bf16.bf16", 16, true},
	{DT_F32, DT_F32, DT_F32, "f32.tf32.tf32", 8, false},
	{DT_I8, DT_I8, DT_I32, "s32.s8.s8", 32, false},
	{DT_E4M3, DT_E4M3, DT_F32, "f32.e4m3.e4m3", 32, false},
	{DT_E4M3, DT_E5M2, DT_F32, "f32.e4m3.e5m2", 32, false},
	{DT_E5M2, DT_E4M3, DT_F32, "f32.e5m2.e4m3", 32, false},
	{DT_E5M2, DT_E5M2, DT_F32, "f32.e5m2.e5m2", 32, false},
};

static const struct wgmma *wgmma_of_types(enum dtype a, enum dtype b, enum dtype acc)
{
	for (u32 i = 0; i < ARRAY_LEN(wgmma_table); i++)
		if (wgmma_table[i].a == a && wgmma_table[i].b == b && wgmma_table[i].acc == acc)
			return &wgmma_table[i];
	return NULL;
}

const struct wgmma *wgmma_for_dot(const struct pass_state *s, const struct op *dot)
{
	const struct type *t = result(dot)->type, *a = operand(dot, 0)->type, *b = operand(dot, 1)->type;
	const struct wgmma *w = wgmma_of_types(type_dtype(a), type_dtype(b), type_dtype(t));
	/* rows of shared memory have at least 32 bytes */
	bool yes = w && s->target->has_wgmma && !s->cuda.limits.no_warpgroups && s->num_warps % 4 == 0 &&
		   t->rank == 2 && a->shape[1] * dtype_bits(w->a) >= 256 &&
		   (w->a != DT_F32 || dot->attr[ATTR_PRECISION] == PRECISION_TF32);
	return yes ? w : NULL;
}

const struct wgmma *wgmma_of_dot(const struct op *dot)
{
	u32 first = dot->attr[ATTR_EXCHANGED];
	return wgmma_of_types(type_dtype(operand(dot, first)->type), type_dtype(operand(dot, 1 - first)->type),
			      type_dtype(result(dot)->type));
}

bool wgmma_split(int num_warps, const struct type *t, int row_dim, struct wgmma_split *out)
{
	int groups = num_warps / 4, rows = t->shape[row_dim], columns = t->shape[1 - row_dim],
	    down = MIN(groups, rows / 64);
	if (rows < 64 || columns * down / groups < 16)
		return false;
	*out = (struct wgmma_split){row_dim, {4 * down, groups / down}, MIN(columns * down / groups, 256)};
	return true;
}

/* Renumbers the rows of l for an A that is loaded MN-major into registers. Takes the bits of a row's number in this
 * order: first the bits that select elements of a thread, then the bits in which the lanes of one wavefront differ.
 * Assigns them to bits of the element's position along MN. With 4-byte elements, a vector takes two bits. The next bits
 * avoid bank conflicts with each other and with the two lane bits of k, which layout_swizzled exchanges with bits 2 and
 * 3. With 1-byte elements, 16 adjacent elements are a matrix row, which ldmatrix gives to 8 lanes. */
static const struct layout *number_rows(struct layout_pool *p, const struct layout *l, int row_warps, int bytes)
{
	static const u8 places[] = {0, 1, 4, 2, 3};
	enum { HALF = 3 /* bit of the row number that selects registers; bits 0 to 2 select lanes */ };
	int side = l->log2_size[0], block = 4 + ilog2((u64)row_warps), n = bytes == 1 ? HALF + 1 : 1,
	    to[LAYOUT_MAX_BITS];
	u8 order[LAYOUT_MAX_BITS] = {HALF, 0, 1, 2};
	if (block < side)
		order[n++] = (u8)block; /* registers of the next instruction */
	for (int i = bytes == 1 ? HALF : 0; i < side; i++)
		if (i != HALF && i != block)
			order[n++] = (u8)i;
	for (int i = 0; i < side; i++)
		to[order[i]] = bytes > 1 && i < (int)ARRAY_LEN(places) ? places[i] : i;
	return layout_permute_bits(p, l, 0, to);
}

/* l, whose dimensions are the instruction's rows and the other dimension, with the dimensions of the dot. */
static const struct layout *as_in_dot(struct layout_pool *p, const struct layout *l, const struct wgmma_split *s,
				      int bytes)
{
	if (bytes)
		l = number_rows(p, l, s->warps[0], bytes);
	return s->row_dim ? layout_trans(p, l, (int[]){1, 0}) : l;
}

const struct layout *wgmma_accumulator(struct layout_pool *p, const struct type *t, const struct wgmma_split *s,
				       int bytes)
{
	const i32 shape[] = {t->shape[s->row_dim], t->shape[1 - s->row_dim]};
	return as_in_dot(p, layout_mma(p, 2, shape, s->warps, 16, s->n), s, bytes);
}

const struct layout *wgmma_operand(struct layout_pool *p, const struct type *t, const struct wgmma_split *s, int bytes)
{
	const i32 shape[] = {t->shape[s->row_dim], t->shape[1 - s->row_dim]};
	return as_in_dot(p, layout_dot_operand(p, 2, shape, 0, s->warps, 16, type_elem_bits(t)), s, bytes);
}

bool wgmma_turns(const struct type *t, u32 i, int num_warps)
{
	enum { PIECE = 512 /* bytes that a warp transposes at once */, ROW = 32 /* the shortest in shared memory */ };
	int bytes = type_elem_bits(t) / 8;
	return type_numel(t) * bytes >= (i64)PIECE * num_warps && t->shape[i] * bytes >= ROW;
}

void wgmma_set(struct op *dot, const struct wgmma *w, const struct wgmma_split *s, int groups)
{
	dot->attr[ATTR_INSTR] = dims_pack((int[]){64, s->n, w->k}, 3);
	dot->attr[ATTR_WARPS] = dims_pack(s->warps, 2);
	dot->attr[ATTR_EXCHANGED] = s->row_dim;
	dot->attr[ATTR_REGISTER_GROUPS] = MIN(groups, operand(dot, 1)->type->shape[0] / w->k);
}

int wgmma_groups(const struct op *dot)
{
	return MAX((int)dot->attr[ATTR_REGISTER_GROUPS], 1);
}

#include "layout/layout.h"

/* --- interning and shapes ------------------------------------------------------------------------------------ */

static u64 layout_hash(const struct layout *l)
{
	return hash_bytes(l, sizeof *l, 0);
}

const struct layout *layout_intern(struct layout_pool *p, const struct layout *l)
{
	if ((p->len + 1) * 4 > p->cap * 3) {
		u32 cap = p->cap ? p->cap * 2 : 32;
		const struct layout **at = arena_array(p->arena, const struct layout *, cap);
		for (u32 i = 0; i < p->cap; i++)
			if (p->at[i]) {
				u32 h = (u32)layout_hash(p->at[i]) & (cap - 1);
				while (at[h])
					h = (h + 1) & (cap - 1);
				at[h] = p->at[i];
			}
		p->at = at;
		p->cap = cap;
	}
	u32 h = (u32)layout_hash(l) & (p->cap - 1);
	for (; p->at[h]; h = (h + 1) & (p->cap - 1))
		if (!memcmp(p->at[h], l, sizeof *l))
			return p->at[h];
	p->len++;
	return p->at[h] = arena_dup(p->arena, l, sizeof *l);
}

_Static_assert(sizeof(struct layout) == 1 + MAX_RANK + LL_DIMS + LL_DIMS * LAYOUT_MAX_BITS * sizeof(u32),
	       "layouts compare and hash as bytes: no padding");

struct layout layout_empty(int rank, const i32 *shape)
{
	struct layout l;
	memset(&l, 0, sizeof l);
	l.rank = (u8)rank;
	for (int d = 0; d < rank; d++) {
		tl_assert(is_pow2(shape[d]));
		l.log2_size[d] = (u8)ilog2((u64)shape[d]);
	}
	return l;
}

int layout_tile_bits(const struct layout *l)
{
	int n = 0;
	for (int d = 0; d < l->rank; d++)
		n += l->log2_size[d];
	return n;
}

int layout_dim_shift(const struct layout *l, int d)
{
	int n = 0;
	for (int i = l->rank - 1; i > d; i--)
		n += l->log2_size[i];
	return n;
}

u32 layout_dim_mask(const struct layout *l, int d)
{
	return ((1u << l->log2_size[d]) - 1) << layout_dim_shift(l, d);
}

int layout_num_regs(const struct layout *l)
{
	return 1 << l->bits[LL_REG];
}

static u32 apply_dim(const struct layout *l, enum layout_dim dim, u32 index)
{
	u32 pos = 0;
	for (int i = 0; i < l->bits[dim]; i++)
		if (index >> i & 1)
			pos ^= l->basis[dim][i];
	return pos;
}

u32 layout_apply(const struct layout *l, u32 reg, u32 lane, u32 warp)
{
	return apply_dim(l, LL_REG, reg) ^ apply_dim(l, LL_LANE, lane) ^ apply_dim(l, LL_WARP, warp);
}

u32 layout_bits_in(const struct layout *l, enum layout_dim dim, u32 mask)
{
	u32 bits = 0;
	for (int i = 0; i < l->bits[dim]; i++)
		bits |= l->basis[dim][i] & mask ? 1u << i : 0;
	return bits;
}

/* --- constructors -------------------------------------------------------------------------------------------- */

static void push(struct layout *l, enum layout_dim dim, u32 basis)
{
	tl_assert(l->bits[dim] < LAYOUT_MAX_BITS);
	l->basis[dim][l->bits[dim]++] = basis;
}

/* Appends input bits of dimension `dim` for `count` (a power of two) consecutive elements along d. used[d]: the number
 * of coordinate bits of d that have input bits already. Bits beyond the tile get zero basis vectors (copies); for
 * registers they are omitted. */
static void extend(struct layout *l, enum layout_dim dim, int d, int count, u8 *used)
{
	for (int n = count; n > 1; n >>= 1) {
		if (used[d] < l->log2_size[d])
			push(l, dim, 1u << (layout_dim_shift(l, d) + used[d]++));
		else if (dim != LL_REG)
			push(l, dim, 0);
	}
}

/* Appends register bits for all coordinate bits that have no input bit yet, in `order`. */
static void fill_registers(struct layout *l, const int *order, u8 *used)
{
	for (int i = 0; i < l->rank; i++)
		extend(l, LL_REG, order[i], 1 << (l->log2_size[order[i]] - MIN(used[order[i]], l->log2_size[order[i]])),
		       used);
}

const struct layout *layout_blocked(struct layout_pool *p, int rank, const i32 *shape, const int *size_per_thread,
				    const int *threads_per_warp, const int *warps_per_block, const int *order)
{
	struct layout l = layout_empty(rank, shape);
	u8 used[MAX_RANK] = {0};
	for (int i = 0; i < rank; i++)
		extend(&l, LL_REG, order[i], size_per_thread[order[i]], used);
	for (int i = 0; i < rank; i++)
		extend(&l, LL_LANE, order[i], threads_per_warp[order[i]], used);
	for (int i = 0; i < rank; i++)
		extend(&l, LL_WARP, order[i], warps_per_block[order[i]], used);
	fill_registers(&l, order, used);
	return layout_intern(p, &l);
}

/* For the dimensions before the last two (batches): appends their warp bits. fill_registers then appends the rest. */
static void batch_warps(struct layout *l, const int *warps, u8 *used)
{
	for (int d = 0; d < l->rank - 2; d++)
		extend(l, LL_WARP, d, warps[d], used);
}

const struct layout *layout_mma(struct layout_pool *p, int rank, const i32 *shape, const int *warps, int instr_m,
				int instr_n)
{
	struct layout l = layout_empty(rank, shape);
	u8 used[MAX_RANK] = {0};
	int m = rank - 2, n = rank - 1, order[MAX_RANK] = {0};
	for (int i = 0; i < rank; i++)
		order[i] = rank - 1 - i;
	extend(&l, LL_REG, n, 2, used);
	extend(&l, LL_LANE, n, 4, used);
	extend(&l, LL_LANE, m, 8, used);
	if (instr_m == 16)
		extend(&l, LL_REG, m, 2, used);
	extend(&l, LL_REG, n, instr_n / 8, used);
	extend(&l, LL_WARP, m, warps[m], used);
	extend(&l, LL_WARP, n, warps[n], used);
	batch_warps(&l, warps, used);
	fill_registers(&l, order, used);
	return layout_intern(p, &l);
}

const struct layout *layout_dot_operand(struct layout_pool *p, int rank, const i32 *shape, int operand,
					const int *warps, int instr_m, int elem_bits)
{
	struct layout l = layout_empty(rank, shape);
	u8 used[MAX_RANK] = {0};
	int row = rank - 2, col = rank - 1; /* operand 0 is M×K, operand 1 is K×N */
	int k = operand == 0 ? col : row, other = operand == 0 ? row : col;
	int per_reg = MAX(32 / elem_bits, 1), order[MAX_RANK] = {0};
	extend(&l, LL_REG, k, per_reg, used);
	extend(&l, LL_LANE, k, 4, used);
	extend(&l, LL_LANE, other, 8, used);
	if (operand == 0 && instr_m == 16)
		extend(&l, LL_REG, other, 2, used);
	/* Warps are distributed as in the accumulator: warps along the dimension of the other operand hold copies. The
	 * rest of K, including the second half of the instruction's K, comes first among the other register bits. */
	for (int i = warps[row]; i > 1; i >>= 1)
		if (operand == 0)
			extend(&l, LL_WARP, row, 2, used);
		else
			push(&l, LL_WARP, 0);
	for (int i = warps[col]; i > 1; i >>= 1)
		if (operand == 1)
			extend(&l, LL_WARP, col, 2, used);
		else
			push(&l, LL_WARP, 0);
	batch_warps(&l, warps, used);
	order[0] = k;
	order[1] = other;
	for (int i = 2; i < rank; i++)
		order[i] = rank - 1 - i;
	fill_registers(&l, order, used);
	return layout_intern(p, &l);
}

const struct layout *layout_fma_operand(struct layout_pool *p, const struct layout *acc, const i32 *shape, int operand)
{
	struct layout l = layout_empty(acc->rank, shape);
	int k = acc->rank - 1 - operand;
	for (int dim = 0; dim < LL_DIMS; dim++)
		for (int i = 0; i < acc->bits[dim]; i++) {
			u32 at = 0;
			for (int d = 0; d < acc->rank; d++) {
				u32 c = (acc->basis[dim][i] & layout_dim_mask(acc, d)) >> layout_dim_shift(acc, d);
				at |= d == k ? 0 : c << layout_dim_shift(&l, d);
			}
			if (at || dim != LL_REG)
				push(&l, dim, at);
		}
	for (int i = 0; i < l.log2_size[k]; i++)
		push(&l, LL_REG, 1u << (layout_dim_shift(&l, k) + i));
	return layout_intern(p, &l);
}

const struct layout *layout_swizzled(struct layout_pool *p, int rank, const i32 *shape, int along, int elem_bits)
{
	struct layout l = layout_empty(rank, shape);
	u8 used[MAX_RANK] = {0};
	int unit = ilog2(128 / (u64)elem_bits), row = MIN((int)l.log2_size[along], ilog2(1024 / (u64)elem_bits));
	extend(&l, LL_OFFSET, along, 1 << row, used);
	for (int i = rank - 1; i >= 0; i--)
		if (i != along)
			extend(&l, LL_OFFSET, i, shape[i], used);
	extend(&l, LL_OFFSET, along, shape[along] >> row, used);
	/* address bits 7 to 9 are XORed to bits 4 to 6, as many as number the 16-byte units of a row: row - unit
	 * bits */
	for (int i = 0; i < row - unit; i++)
		if (unit + 3 + i < l.bits[LL_OFFSET])
			l.basis[LL_OFFSET][unit + 3 + i] ^= l.basis[LL_OFFSET][unit + i];
	return layout_intern(p, &l);
}

/* --- transformations ----------------------------------------------------------------------------------------- */

/* Applies a map of position bits to every basis vector: bit k becomes bit to[k], or is deleted if to[k] is -1. Register
 * bits whose basis vectors become zero are removed: a thread does not keep two copies of an element. */
static const struct layout *remap(struct layout_pool *p, const struct layout *l, struct layout out, const int *to)
{
	for (int dim = 0; dim < LL_DIMS; dim++)
		for (int i = 0; i < l->bits[dim]; i++) {
			u32 b = 0;
			for (int k = 0; k < LAYOUT_MAX_BITS; k++)
				if (l->basis[dim][i] >> k & 1 && to[k] >= 0)
					b ^= 1u << to[k];
			if (b || dim != LL_REG)
				push(&out, (enum layout_dim)dim, b);
		}
	return layout_intern(p, &out);
}

const struct layout *layout_trans(struct layout_pool *p, const struct layout *l, const int *perm)
{
	i32 shape[MAX_RANK] = {0};
	int to[LAYOUT_MAX_BITS];
	for (int d = 0; d < l->rank; d++)
		shape[d] = 1 << l->log2_size[perm[d]];
	struct layout out = layout_empty(l->rank, shape);
	for (int d = 0; d < l->rank; d++)
		for (int i = 0; i < out.log2_size[d]; i++)
			to[layout_dim_shift(l, perm[d]) + i] = layout_dim_shift(&out, d) + i;
	for (int i = layout_tile_bits(l); i < LAYOUT_MAX_BITS; i++)
		to[i] = -1;
	return remap(p, l, out, to);
}

const struct layout *layout_permute_bits(struct layout_pool *p, const struct layout *l, int d, const int *to)
{
	struct layout out = *l;
	int moved[LAYOUT_MAX_BITS], shift = layout_dim_shift(l, d);
	for (int i = 0; i < LAYOUT_MAX_BITS; i++)
		moved[i] = i < shift || i >= shift + l->log2_size[d] ? i : shift + to[i - shift];
	memset(out.bits, 0, sizeof out.bits);
	memset(out.basis, 0, sizeof out.basis);
	return remap(p, l, out, moved);
}

const struct layout *layout_row_major(struct layout_pool *p, int rank, const i32 *shape)
{
	struct layout l = layout_empty(rank, shape);
	for (int i = 0; i < layout_tile_bits(&l); i++)
		l.basis[LL_OFFSET][l.bits[LL_OFFSET]++] = 1u << i;
	return layout_intern(p, &l);
}

const struct layout *layout_half(struct layout_pool *p, const struct layout *l, int bit)
{
	i32 shape[MAX_RANK] = {0};
	int to[LAYOUT_MAX_BITS];
	for (int d = 0; d < l->rank; d++)
		shape[d] = 1 << (l->log2_size[d] - (layout_dim_mask(l, d) >> bit & 1));
	for (int i = 0; i < LAYOUT_MAX_BITS; i++)
		to[i] = i == bit ? -1 : i - (i > bit);
	return remap(p, l, layout_empty(l->rank, shape), to);
}

const struct layout *layout_reshape(struct layout_pool *p, const struct layout *l, int rank, const i32 *shape)
{
	struct layout out = *l, empty = layout_empty(rank, shape);
	out.rank = empty.rank;
	memcpy(out.log2_size, empty.log2_size, sizeof out.log2_size);
	tl_assert(layout_tile_bits(l) == layout_tile_bits(&out));
	return layout_intern(p, &out);
}

const struct layout *layout_unbroadcast(struct layout_pool *p, const struct layout *l, const i32 *shape)
{
	struct layout out = layout_empty(l->rank, shape);
	int to[LAYOUT_MAX_BITS];
	memset(to, -1, sizeof to);
	for (int d = 0; d < l->rank; d++)
		for (int i = 0; i < out.log2_size[d]; i++)
			to[layout_dim_shift(l, d) + i] = layout_dim_shift(&out, d) + i;
	return remap(p, l, out, to);
}

const struct layout *layout_drop_dim(struct layout_pool *p, const struct layout *l, int axis)
{
	i32 shape[MAX_RANK] = {0};
	int n = 0;
	for (int d = 0; d < l->rank; d++)
		if (d != axis)
			shape[n++] = 1 << l->log2_size[d];
	tl_assert(l->log2_size[axis] == 0);
	return layout_reshape(p, l, n, shape);
}

const struct layout *layout_slice(struct layout_pool *p, const struct layout *l, int axis)
{
	i32 shape[MAX_RANK] = {0};
	for (int d = 0; d < l->rank; d++)
		shape[d] = d == axis ? 1 : 1 << l->log2_size[d];
	return layout_drop_dim(p, layout_unbroadcast(p, l, shape), axis);
}

const struct layout *layout_add_dim(struct layout_pool *p, const struct layout *l, int axis)
{
	i32 shape[MAX_RANK] = {0};
	tl_assert(l->rank < MAX_RANK);
	for (int d = 0; d <= l->rank; d++)
		shape[d] = d == axis ? 1 : 1 << l->log2_size[d - (d > axis)];
	return layout_reshape(p, l, l->rank + 1, shape);
}

void layout_redundant(const struct layout *l, u32 *lane_bits, u32 *warp_bits)
{
	struct gf2 g = {0};
	u32 *out[LL_DIMS] = {NULL, lane_bits, warp_bits};
	for (int i = 0; i < l->bits[LL_REG]; i++)
		gf2_add(&g, l->basis[LL_REG][i]);
	for (int dim = LL_LANE; dim < LL_DIMS; dim++) {
		*out[dim] = 0;
		for (int i = 0; i < l->bits[dim]; i++)
			if (!gf2_add(&g, l->basis[dim][i]))
				*out[dim] |= 1u << i;
	}
}

/* --- linear algebra ------------------------------------------------------------------------------------------ */

/* Reduces v by the vectors of g. Returns the remainder; *combo is the set of added vectors used. */
static u32 reduce(const struct gf2 *g, u32 v, u32 *combo)
{
	for (int i = 0; i < g->n; i++)
		if (v >> ilog2(g->vec[i]) & 1) {
			v ^= g->vec[i];
			*combo ^= g->combo[i];
		}
	return v;
}

bool gf2_add(struct gf2 *g, u32 v)
{
	u32 combo = g->added < 32 ? 1u << g->added : 0; /* beyond 32 vectors only membership is known */
	g->added++;
	v = reduce(g, v, &combo);
	if (!v)
		return false;
	/* keep the set fully reduced: no other vector has this leading bit, so one pass reduces anything */
	int lead = ilog2(v);
	for (int i = 0; i < g->n; i++)
		if (g->vec[i] >> lead & 1) {
			g->vec[i] ^= v;
			g->combo[i] ^= combo;
		}
	g->vec[g->n] = v;
	g->combo[g->n++] = combo;
	return true;
}

bool gf2_solve(const struct gf2 *g, u32 v, u32 *combo)
{
	*combo = 0;
	return reduce(g, v, combo) == 0;
}

#include "layout/convert.h"

/* --- conversions --------------------------------------------------------------------------------------------- */

static bool same_warps(const struct layout *a, const struct layout *b)
{
	if (a->bits[LL_WARP] != b->bits[LL_WARP])
		return false;
	return !memcmp(a->basis[LL_WARP], b->basis[LL_WARP], a->bits[LL_WARP] * sizeof(u32));
}

/* Expresses position v as a source register and lane; registers alone if they can. `all` holds lanes then registers. */
static bool locate(const struct gf2 *regs, const struct gf2 *all, u32 v, u32 *reg, u32 *lane)
{
	u32 combo;
	if (gf2_solve(regs, v, &combo)) {
		*reg = combo;
		*lane = 0;
		return true;
	}
	if (!gf2_solve(all, v, &combo))
		return false;
	*lane = combo & ((1u << LANE_BITS) - 1);
	*reg = combo >> LANE_BITS;
	return true;
}

/* Inverts the 5×5 map lane_of_lane. */
static bool invert_lanes(struct conversion *c)
{
	struct gf2 g = {0};
	for (int i = 0; i < LANE_BITS; i++)
		gf2_add(&g, c->lane_of_lane[i]);
	for (int i = 0; i < LANE_BITS; i++)
		if (!gf2_solve(&g, 1u << i, &c->lane_back[i]))
			return false;
	return true;
}

struct conversion plan_conversion(const struct layout *src, const struct layout *dst)
{
	struct conversion c = {.kind = CONVERT_SHARED}, none = c;
	struct gf2 regs = {0}, all = {0};
	bool identity = true;
	tl_assert(src->bits[LL_LANE] == LANE_BITS && dst->bits[LL_LANE] == LANE_BITS);
	if (!same_warps(src, dst))
		return none;
	for (int i = 0; i < src->bits[LL_REG]; i++)
		gf2_add(&regs, src->basis[LL_REG][i]);
	for (int i = 0; i < LANE_BITS; i++)
		gf2_add(&all, src->basis[LL_LANE][i]);
	for (int i = 0; i < src->bits[LL_REG]; i++)
		gf2_add(&all, src->basis[LL_REG][i]);
	for (int i = 0; i < dst->bits[LL_REG]; i++) {
		if (!locate(&regs, &all, dst->basis[LL_REG][i], &c.reg_of_reg[i], &c.lane_of_reg[i]))
			return none;
		identity &= !c.lane_of_reg[i];
	}
	for (int i = 0; i < LANE_BITS; i++) {
		u32 d = dst->basis[LL_LANE][i];
		if (d == src->basis[LL_LANE][i]) { /* stay: also right for copies, where d is zero */
			c.reg_of_lane[i] = 0;
			c.lane_of_lane[i] = 1u << i;
		} else {
			u32 combo;
			if (!gf2_solve(&all, d, &combo))
				return none;
			c.lane_of_lane[i] = combo & ((1u << LANE_BITS) - 1);
			c.reg_of_lane[i] = combo >> LANE_BITS;
		}
		identity &= c.lane_of_lane[i] == 1u << i && !c.reg_of_lane[i];
		c.selects |= c.reg_of_lane[i] != 0;
	}
	struct gf2 rank = {0};
	for (int i = 0; i < LANE_BITS; i++)
		gf2_add(&rank, c.reg_of_lane[i]);
	if (c.selects && (rank.n > MAX_SELECT_BITS || !invert_lanes(&c)))
		return none;
	c.kind = identity ? CONVERT_REGISTERS : CONVERT_SHUFFLE;
	return c;
}

/* --- shared memory ------------------------------------------------------------------------------------------- */

static int log2_units(int bytes, int elem_bits)
{
	return ilog2((u64)bytes * 8 / (u64)elem_bits);
}

static bool has_reg(const struct layout *l, u32 v)
{
	for (int i = 0; i < l->bits[LL_REG]; i++)
		if (l->basis[LL_REG][i] == v)
			return true;
	return false;
}

/* The position bits of a 16-byte row, lowest first. Returns how many; 0 when dst does not have the form. */
static int matrix_row(const struct layout *dst, int elem_bits, enum matrix_load kind, u32 *row)
{
	int n = 0, per_reg = elem_bits <= 32 ? log2_units(4, elem_bits) : -1;
	if (per_reg < 0 || dst->bits[LL_REG] < per_reg)
		return 0;
	if (kind == MATRIX_PLAIN) {
		for (int i = 0; i < per_reg; i++)
			row[n++] = dst->basis[LL_REG][i];
		row[n++] = dst->basis[LL_LANE][0];
		row[n++] = dst->basis[LL_LANE][1];
	} else {
		if (elem_bits != 16)
			return 0;
		for (int i = 2; i < LANE_BITS; i++)
			row[n++] = dst->basis[LL_LANE][i];
	}
	for (int i = 0; i < n; i++)
		if (!row[i])
			return 0;
	return n;
}

/* The three position bits that count the rows of one 8×8 matrix. */
static void matrix_rows(const struct layout *dst, enum matrix_load kind, u32 *rows)
{
	rows[0] = kind == MATRIX_PLAIN ? dst->basis[LL_LANE][2] : dst->basis[LL_REG][0];
	rows[1] = dst->basis[LL_LANE][kind == MATRIX_PLAIN ? 3 : 0];
	rows[2] = dst->basis[LL_LANE][kind == MATRIX_PLAIN ? 4 : 1];
}

bool layout_is_matrix(const struct layout *dst, int elem_bits, enum matrix_load kind)
{
	u32 row[8], rows[3];
	if (!matrix_row(dst, elem_bits, kind, row))
		return false;
	matrix_rows(dst, kind, rows);
	return rows[0] && rows[1] && rows[2];
}

struct vectors {
	u32 at[32];
	int n;
};

/* Adds v to list and set, if independent. */
static bool take(struct vectors *list, struct gf2 *set, u32 v)
{
	if (!v || !gf2_add(set, v))
		return false;
	list->at[list->n++] = v;
	return true;
}

/* The lane bits that are served together when each lane moves 2^vec_bits elements. */
static struct vectors wavefront(const struct layout *l, int vec_bits, int elem_bits)
{
	struct vectors v = {0};
	int words = vec_bits - log2_units(4, elem_bits > 32 ? 32 : elem_bits) + (elem_bits > 32);
	int lanes = LANE_BITS - MAX(words, 0);
	for (int i = 0; i < lanes; i++)
		v.at[v.n++] = l->basis[LL_LANE][i];
	return v;
}

/* Lays memory out: vector bits V lowest, then bank bits, then segment bits, which run across wavefronts of neither
 * side where possible. */
static const struct layout *assemble(struct layout_pool *p, const struct layout *src, const struct vectors *vec,
				     const struct vectors *a, const struct vectors *b, int elem_bits)
{
	int n = layout_tile_bits(src), bank_bits = log2_units(128, elem_bits) - vec->n;
	int segments = MAX(n - vec->n - MAX(bank_bits, 0), 0);
	struct gf2 in_a = {0}, in_b = {0}, in_either = {0}, used = {0};
	struct vectors seg = {0}, only_a = {0}, only_b = {0}, bank = {0};
	for (int i = 0; i < vec->n; i++) {
		gf2_add(&in_a, vec->at[i]);
		gf2_add(&in_b, vec->at[i]);
		gf2_add(&in_either, vec->at[i]);
		gf2_add(&used, vec->at[i]);
	}
	for (int i = 0; i < a->n; i++)
		gf2_add(&in_a, a->at[i]), gf2_add(&in_either, a->at[i]);
	for (int i = 0; i < b->n; i++)
		gf2_add(&in_b, b->at[i]), gf2_add(&in_either, b->at[i]);
	u32 combo;
	for (int i = 0; i < a->n; i++)
		if (a->at[i] && !gf2_solve(&in_b, a->at[i], &combo))
			only_a.at[only_a.n++] = a->at[i];
	for (int i = 0; i < b->n; i++)
		if (b->at[i] && !gf2_solve(&in_a, b->at[i], &combo))
			only_b.at[only_b.n++] = b->at[i];
	/* positions in neither wavefront */
	for (int i = n - 1; i >= 0 && seg.n < segments; i--)
		if (gf2_add(&in_either, 1u << i))
			take(&seg, &used, 1u << i);
	/* one of each side combined: such a pair is crossed by neither wavefront alone */
	for (int i = 0; i < MIN(only_a.n, only_b.n) && seg.n < segments; i++)
		take(&seg, &used, only_a.at[i] ^ only_b.at[i]);
	for (int i = n - 1; i >= 0 && seg.n < segments; i--)
		take(&seg, &used, 1u << i);
	for (int i = 0; i < a->n; i++)
		take(&bank, &used, a->at[i]);
	for (int i = 0; i < b->n; i++)
		take(&bank, &used, b->at[i]);
	for (int i = 0; i < n; i++)
		take(&bank, &used, 1u << i);
	struct layout mem = *src;
	memset(mem.bits, 0, sizeof mem.bits);
	memset(mem.basis, 0, sizeof mem.basis);
	for (int i = 0; i < vec->n; i++)
		mem.basis[LL_OFFSET][mem.bits[LL_OFFSET]++] = vec->at[i];
	for (int i = 0; i < bank.n; i++)
		mem.basis[LL_OFFSET][mem.bits[LL_OFFSET]++] = bank.at[i];
	for (int i = 0; i < seg.n; i++)
		mem.basis[LL_OFFSET][mem.bits[LL_OFFSET]++] = seg.at[i];
	tl_assert(mem.bits[LL_OFFSET] == n);
	return layout_intern(p, &mem);
}

const struct layout *plan_shared(struct layout_pool *p, const struct layout *src, const struct layout *dst, int elem_bits,
				 enum matrix_load *how)
{
	struct vectors vec = {0}, a, b = {0};
	u32 row[8];
	int max_vec = log2_units(16, elem_bits), src_vec = 0;
	*how = MATRIX_NONE;
	for (enum matrix_load k = MATRIX_PLAIN; k <= MATRIX_TRANS && *how == MATRIX_NONE; k++) {
		int n = layout_is_matrix(dst, elem_bits, k) ? matrix_row(dst, elem_bits, k, row) : 0, common = 0;
		while (common < n && has_reg(src, row[common]))
			common++;
		/* worth it when the writers' vectors run along the rows, or hold a whole register's worth */
		if (n && (common == n || (k == MATRIX_PLAIN && common >= log2_units(4, elem_bits)))) {
			*how = k;
			src_vec = common;
			for (int i = 0; i < n; i++)
				vec.at[vec.n++] = row[i];
			b.n = 3;
			matrix_rows(dst, k, b.at);
		}
	}
	if (*how == MATRIX_NONE) {
		struct gf2 g = {0};
		for (int i = 0; i < src->bits[LL_REG] && vec.n < max_vec; i++)
			if (has_reg(dst, src->basis[LL_REG][i]))
				take(&vec, &g, src->basis[LL_REG][i]);
		src_vec = vec.n;
		b = wavefront(dst, vec.n, elem_bits);
	}
	a = wavefront(src, src_vec, elem_bits);
	return assemble(p, src, &vec, &a, &b, elem_bits);
}

struct memory_map map_to_memory(const struct layout *l, const struct layout *mem, int max_vec_bits)
{
	struct memory_map m;
	struct gf2 g = {0};
	memset(&m, 0, sizeof m);
	for (int i = 0; i < mem->bits[LL_OFFSET]; i++)
		gf2_add(&g, mem->basis[LL_OFFSET][i]);
	for (int dim = 0; dim < LL_DIMS; dim++) {
		m.bits[dim] = l->bits[dim];
		for (int i = 0; i < l->bits[dim]; i++)
			tl_assert(gf2_solve(&g, l->basis[dim][i], &m.basis[dim][i]));
	}
	/* a vector: register bits that count offsets 1, 2, 4, …, which nothing else touches */
	for (; m.vec_bits < max_vec_bits; m.vec_bits++) {
		u32 bit = 1u << m.vec_bits;
		int holder = -1, others = 0;
		for (int dim = 0; dim < LL_DIMS; dim++)
			for (int i = 0; i < m.bits[dim]; i++) {
				if (dim == LL_REG && m.basis[dim][i] == bit && holder < 0)
					holder = i;
				else
					others |= (m.basis[dim][i] & bit) != 0;
			}
		if (holder < 0 || others)
			break;
		m.vec_reg[m.vec_bits] = (u8)holder;
	}
	return m;
}

#include "layout/conversion.h"

/* --- conversions --------------------------------------------------------------------------------------------- */

static bool same_warps(const struct layout *a, const struct layout *b)
{
	if (a->bits[LL_WARP] != b->bits[LL_WARP])
		return false;
	return !memcmp(a->basis[LL_WARP], b->basis[LL_WARP], a->bits[LL_WARP] * sizeof(u32));
}

/* For the source layout: the span of the basis vectors of its register bits, and of its lane and register bits. */
struct source {
	struct gf2 regs, all; /* combos of `all` have lane bits in bits 0 to 4, then register bits */
};

static struct source describe(const struct layout *src)
{
	struct source s = {0};
	for (int i = 0; i < src->bits[LL_REG]; i++)
		gf2_add(&s.regs, src->basis[LL_REG][i]);
	for (int i = 0; i < LANE_BITS; i++)
		gf2_add(&s.all, src->basis[LL_LANE][i]);
	for (int i = 0; i < src->bits[LL_REG]; i++)
		gf2_add(&s.all, src->basis[LL_REG][i]);
	return s;
}

bool warps_apart(const struct layout *a, const struct layout *b)
{
	struct source s = describe(a);
	u32 lanes, warps, combo;
	layout_redundant(a, &lanes, &warps);
	bool apart = !warps && same_warps(a, b);
	for (int dim = LL_REG; dim <= LL_LANE; dim++)
		for (int i = 0; i < b->bits[dim]; i++)
			apart &= gf2_solve(&s.all, b->basis[dim][i], &combo);
	return apart;
}

static bool locate(const struct source *s, u32 v, u32 *reg, u32 *lane)
{
	u32 combo;
	*lane = 0;
	if (gf2_solve(&s->regs, v, reg))
		return true;
	if (!gf2_solve(&s->all, v, &combo))
		return false;
	*lane = combo & ((1u << LANE_BITS) - 1);
	*reg = combo >> LANE_BITS;
	return true;
}

/* One shuffle cannot give two receiving lanes different registers of the same sending lane. The second lane then
 * receives in this shuffle another of its result registers, which comes from another lane. Its registers are put in
 * order after all shuffles (c->moved). False if that is not possible. */
static bool spread_lanes(struct conversion *c, int regs, u32 *reg_of_lane)
{
	struct gf2 senders = {0};
	for (int i = 0; i < LANE_BITS; i++) {
		u32 combo = 0, reg = reg_of_lane[i];
		if (gf2_solve(&senders, c->lane_of_lane[i], &combo))
			for (u32 k = combo; k; k &= k - 1)
				reg ^= reg_of_lane[__builtin_ctz(k)];
		else
			reg = 0;
		for (int j = 0; reg && j < regs; j++)
			if (!gf2_solve(&senders, c->lane_of_lane[i] ^ c->lane_of_reg[j], &combo)) {
				c->lane_of_lane[i] ^= c->lane_of_reg[j];
				reg_of_lane[i] ^= c->reg_of_reg[j];
				c->moved[i] = 1u << j;
				reg = 0;
			}
		if (reg)
			return false;
		gf2_add(&senders, c->lane_of_lane[i]);
	}
	return true;
}

/* A sending lane s must know which register the receiver needs. It sends to lane back(s ^ lane_of_reg(q)), where `back`
 * is the inverse of lane_of_lane. So that register, reg_of_lane(receiver), becomes a function of s: c->sent. */
static void from_sender(struct conversion *c, int regs, const u32 *reg_of_lane)
{
	struct gf2 g = {0};
	for (int i = 0; i < LANE_BITS; i++)
		gf2_add(&g, c->lane_of_lane[i]);
	for (int i = 0; i < LANE_BITS; i++) /* completes the inverse for lanes from which no lane receives */
		gf2_add(&g, 1u << i);
	for (int i = 0; i < LANE_BITS; i++) {
		u32 back;
		gf2_solve(&g, 1u << i, &back);
		c->sent[i] = linear(reg_of_lane, back & ((1u << LANE_BITS) - 1));
	}
	for (int j = 0; j < regs; j++)
		c->reg_of_reg[j] ^= linear(c->sent, c->lane_of_reg[j]);
}

int count_selects(const struct conversion *c)
{
	int n = 0;
	for (int i = 0; i < LANE_BITS; i++)
		n += (c->sent[i] != 0) + (c->moved[i] != 0);
	return n;
}

struct conversion plan_conversion(const struct layout *src, const struct layout *dst)
{
	struct conversion c = {.kind = CONVERSION_MEMORY}, none = c;
	struct source from = describe(src);
	u32 reg_of_lane[LANE_BITS] = {0};
	int regs = dst->bits[LL_REG];
	bool stays = true;
	tl_assert(src->bits[LL_LANE] == LANE_BITS && dst->bits[LL_LANE] == LANE_BITS);
	if (!same_warps(src, dst))
		return none;
	for (int i = 0; i < regs; i++) {
		if (!locate(&from, dst->basis[LL_REG][i], &c.reg_of_reg[i], &c.lane_of_reg[i]))
			return none;
		stays &= !c.lane_of_reg[i];
	}
	for (int i = 0; i < LANE_BITS; i++) {
		c.lane_of_lane[i] = 1u << i;
		if (dst->basis[LL_LANE][i] == src->basis[LL_LANE][i])
			continue; /* also right for copies, where both are zero */
		if (!locate(&from, dst->basis[LL_LANE][i], &reg_of_lane[i], &c.lane_of_lane[i]))
			return none;
		stays = false;
	}
	if (stays) {
		c.kind = CONVERSION_REGISTERS;
		return c;
	}
	if (!spread_lanes(&c, regs, reg_of_lane))
		return none;
	from_sender(&c, regs, reg_of_lane);
	/* with more selects, shared memory is faster: it takes a store, a load and barriers */
	if (count_selects(&c) > (regs <= 4 ? 4 : 2))
		return none;
	c.kind = CONVERSION_SHUFFLES;
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

struct vectors {
	u32 at[32];
	int n;
};

/* Stores to `row` the position bits of the elements of a 16-byte row of a matrix, lowest first. Returns their number; 0
 * if a tile of layout l cannot be moved by matrices of this kind. */
static int matrix_row(const struct layout *l, int elem_bits, enum matrix_kind kind, u32 *row)
{
	int n = 0, per_reg = elem_bits <= 32 ? log2_units(4, elem_bits) : -1;
	if (per_reg < 0 || l->bits[LL_REG] < per_reg)
		return 0;
	if (kind == MATRIX_PLAIN) {
		for (int i = 0; i < per_reg; i++)
			row[n++] = l->basis[LL_REG][i];
		row[n++] = l->basis[LL_LANE][0];
		row[n++] = l->basis[LL_LANE][1];
	} else {
		if (elem_bits != 16)
			return 0;
		for (int i = 2; i < LANE_BITS; i++)
			row[n++] = l->basis[LL_LANE][i];
	}
	for (int i = 0; i < n; i++)
		if (!row[i])
			return 0;
	return n;
}

/* The three position bits that number the rows of one 8×8 matrix. */
static void matrix_rows(const struct layout *l, enum matrix_kind kind, u32 *rows)
{
	rows[0] = kind == MATRIX_PLAIN ? l->basis[LL_LANE][2] : l->basis[LL_REG][0];
	rows[1] = l->basis[LL_LANE][kind == MATRIX_PLAIN ? 3 : 0];
	rows[2] = l->basis[LL_LANE][kind == MATRIX_PLAIN ? 4 : 1];
}

bool layout_is_matrix(const struct layout *l, int elem_bits, enum matrix_kind kind)
{
	u32 row[8], rows[3];
	if (!matrix_row(l, elem_bits, kind, row))
		return false;
	matrix_rows(l, kind, rows);
	return rows[0] && rows[1] && rows[2];
}

/* Appends v to the list, and adds it to the set, if it is linearly independent of the set. */
static bool take(struct vectors *list, struct gf2 *set, u32 v)
{
	if (!v || !gf2_add(set, v))
		return false;
	list->at[list->n++] = v;
	return true;
}

/* A basis of the positions that one wavefront touches if each lane accesses a vector of 2^vec_bits elements (a
 * wavefront is the set of lanes that shared memory serves in one cycle if there are no bank conflicts): the position
 * bits of the vector, filled up to a 4-byte word, and of the lane bits that are served together. Lanes with copies are
 * served along with the others: an H100 serves 32 lanes that load 16 bytes each from four places in one cycle, or in
 * four cycles if these places share banks. */
static struct vectors wavefront(const struct layout *l, const struct vectors *vec, int vec_bits, int elem_bits)
{
	struct vectors v = {0};
	struct gf2 set = {0};
	int word = log2_units(4, MIN(elem_bits, 32)), wider = vec_bits - word + (elem_bits > 32);
	for (int i = 0; i < MIN(MAX(vec_bits, word), vec->n); i++)
		take(&v, &set, vec->at[i]);
	for (int i = 0, left = LANE_BITS - MAX(wider, 0); i < LANE_BITS && left; i++)
		left -= take(&v, &set, l->basis[LL_LANE][i]);
	return v;
}

/* The vectors of `from` that are linearly independent of `of` and of each other. */
static struct vectors modulo(const struct vectors *from, const struct vectors *of)
{
	struct vectors out = {0}, ignored = {0};
	struct gf2 set = {0};
	for (int i = 0; i < of->n; i++)
		take(&ignored, &set, of->at[i]);
	for (int i = 0; i < from->n; i++)
		take(&out, &set, from->at[i]);
	return out;
}

static struct vectors joined(const struct vectors *a, const struct vectors *b)
{
	struct vectors v = *a;
	for (int i = 0; i < b->n; i++)
		v.at[v.n++] = b->at[i];
	return v;
}

/* Builds a memory layout. The lowest bits of an offset number the elements of a vector (`vec`), the next bits the
 * banks, the others segments (of 128 bytes). Two lanes have a bank conflict if their positions differ only by segment
 * bits. So the position vectors of the segment bits must be a complement of both wavefronts a and b: first vectors that
 * are in neither wavefront, then sums of one vector of each, which neither wavefront contains. Vectors of `vec` are not
 * part of these sums, since the address of a matrix's row must be that of its first element. */
static const struct layout *assemble(struct layout_pool *p, const struct layout *src, const struct vectors *vec,
				     const struct vectors *a, const struct vectors *b, int elem_bits)
{
	int n = layout_tile_bits(src), bank_bits = log2_units(128, elem_bits) - vec->n;
	int segments = MAX(n - vec->n - MAX(bank_bits, 0), 0);
	struct vectors seg = {0}, order = *vec, units = {0}, with_a = joined(vec, a), with_b = joined(vec, b);
	struct vectors only_a = modulo(a, &with_b), only_b = modulo(b, &with_a), all = joined(&with_a, &only_b);
	struct gf2 used = {0};
	for (int i = 0; i < n; i++)
		units.at[units.n++] = 1u << (n - 1 - i);
	struct vectors neither = modulo(&units, &all);
	for (int i = 0; i < vec->n; i++)
		gf2_add(&used, vec->at[i]);
	for (int i = 0; i < neither.n && seg.n < segments; i++)
		take(&seg, &used, neither.at[i]);
	for (int i = 0; i < MIN(only_a.n, only_b.n) && seg.n < segments; i++)
		take(&seg, &used, only_a.at[i] ^ only_b.at[i]);
	for (int i = 0; i < n && seg.n < segments; i++) /* wavefronts wider than the banks: conflicts are unavoidable */
		take(&seg, &used, units.at[i]);
	for (int i = 0; i < all.n; i++)
		take(&order, &used, all.at[i]);
	for (int i = n; i-- > 0;)
		take(&order, &used, units.at[i]);
	struct layout mem = *src;
	memset(mem.bits, 0, sizeof mem.bits);
	memset(mem.basis, 0, sizeof mem.basis);
	for (int i = 0; i < order.n; i++)
		mem.basis[LL_OFFSET][mem.bits[LL_OFFSET]++] = order.at[i];
	for (int i = seg.n; i-- > 0;) /* in increasing order of positions: they were taken from the highest down */
		mem.basis[LL_OFFSET][mem.bits[LL_OFFSET]++] = seg.at[i];
	tl_assert(mem.bits[LL_OFFSET] == n);
	return layout_intern(p, &mem);
}

/* One side (writers or readers) of a shared_plan. wave: a basis of the positions of a wavefront. cost: the number of
 * instructions with which a thread moves its part of the tile. */
struct side {
	struct vectors wave;
	int cost;
};

/* Accesses by vectors. vec: the position bits that number adjacent elements in memory. A vector in memory covers the
 * first of these bits, as many as are given by register bits of l. */
static struct side by_vectors(const struct layout *l, const struct vectors *vec, int elem_bits)
{
	int width = 0;
	while (width < vec->n && has_reg(l, vec->at[width]))
		width++;
	return (struct side){wavefront(l, vec, width, elem_bits), layout_num_regs(l) >> width};
}

/* Whether a wavefront can avoid bank conflicts in a memory of 16-byte rows with the position bits `row`: it touches at
 * most 8 rows, which fill the 32 banks. */
static bool suits_rows(const struct vectors *wave, const struct vectors *row)
{
	return modulo(wave, row).n <= 3;
}

/* Accesses by 8×8 matrices of 16-bit units, up to four matrices (16 bytes of each thread) per instruction. */
static struct side by_matrices(const struct layout *l, const struct vectors *row, int elem_bits, enum matrix_kind kind)
{
	struct side s = {*row, MAX(layout_num_regs(l) >> log2_units(16, elem_bits), 1)};
	matrix_rows(l, kind, s.wave.at + s.wave.n);
	s.wave.n += 3;
	return s;
}

static struct side side_of(const struct layout *l, const struct vectors *vec, int elem_bits, enum matrix_kind kind)
{
	return kind ? by_matrices(l, vec, elem_bits, kind) : by_vectors(l, vec, elem_bits);
}

/* The position bits that number adjacent elements in memory, if both sides use vectors: those of register bits of both
 * sides, for at most 16 bytes. */
static struct vectors common_vector(const struct layout *src, const struct layout *dst, int elem_bits)
{
	struct vectors vec = {0};
	struct gf2 g = {0};
	int most = log2_units(16, elem_bits), word = log2_units(4, MIN(elem_bits, 32));
	for (int i = 0; i < src->bits[LL_REG] && vec.n < most; i++)
		if (has_reg(dst, src->basis[LL_REG][i]))
			take(&vec, &g, src->basis[LL_REG][i]);
	/* less than a 4-byte word would share a bank with other elements: the word is filled with elements that are in
	 * registers of the writers, which can store them together */
	for (int i = 0; i < src->bits[LL_REG] && vec.n < word; i++)
		take(&vec, &g, src->basis[LL_REG][i]);
	for (int i = 0; i < layout_tile_bits(src) && vec.n < word; i++)
		take(&vec, &g, 1u << i);
	return vec;
}

/* Sets *row to the position bits of the 16-byte rows in memory that stmatrix and ldmatrix of these kinds (MATRIX_NONE:
 * not used) need. False if the layout of a side has no such rows, or both sides have different ones. */
static bool common_row(const struct layout *src, const struct layout *dst, int elem_bits, enum matrix_kind store,
		       enum matrix_kind load, struct vectors *row)
{
	struct vectors other = {0};
	if ((store && !layout_is_matrix(src, elem_bits, store)) || (load && !layout_is_matrix(dst, elem_bits, load)))
		return false;
	row->n = load ? matrix_row(dst, elem_bits, load, row->at) : matrix_row(src, elem_bits, store, row->at);
	other.n = load && store ? matrix_row(src, elem_bits, store, other.at) : row->n;
	return !(load && store) || !memcmp(row->at, other.at, (size_t)row->n * sizeof *row->at);
}

struct shared_plan plan_shared(struct layout_pool *p, const struct layout *src, const struct layout *dst, int elem_bits,
			       bool stmatrix)
{
	struct shared_plan best = {0};
	struct vectors vec = common_vector(src, dst, elem_bits), row;
	struct side from = by_vectors(src, &vec, elem_bits), to = by_vectors(dst, &vec, elem_bits);
	for (enum matrix_kind store = MATRIX_NONE; store <= (stmatrix ? MATRIX_TRANS : MATRIX_NONE); store++)
		for (enum matrix_kind load = MATRIX_NONE; load <= MATRIX_TRANS; load++) {
			if ((!store && !load) || !common_row(src, dst, elem_bits, store, load, &row))
				continue;
			struct side a = side_of(src, &row, elem_bits, store), b = side_of(dst, &row, elem_bits, load);
			if (!suits_rows(&a.wave, &row) || !suits_rows(&b.wave, &row))
				continue;
			/* at equal cost ldmatrix is preferred to vectors: it needs no address for each vector */
			if (a.cost + b.cost < from.cost + to.cost + (!best.store && !best.load && !store)) {
				best = (struct shared_plan){.store = store, .load = load};
				vec = row, from = a, to = b;
			}
		}
	best.mem = assemble(p, src, &vec, &from.wave, &to.wave, elem_bits);
	best.stores = from.cost;
	best.loads = to.cost;
	return best;
}

const struct layout *plan_for_writers(struct layout_pool *p, const struct layout *src, const struct layout *dst,
				      int elem_bits)
{
	struct vectors vec = {0};
	struct gf2 g = {0};
	for (int i = 0; i < src->bits[LL_REG] && vec.n < log2_units(16, elem_bits); i++)
		take(&vec, &g, src->basis[LL_REG][i]);
	struct side from = by_vectors(src, &vec, elem_bits), to = by_vectors(dst, &vec, elem_bits);
	return assemble(p, src, &vec, &from.wave, &to.wave, elem_bits);
}

int buffer_reads(struct layout_pool *p, const struct layout *src, const struct layout *dst, int elem_bits)
{
	struct shared_plan plan = plan_shared(p, src, dst, elem_bits, false);
	const struct layout *own = plan_shared(p, src, src, elem_bits, false).mem;
	int most = log2_units(16, elem_bits), reads = map_to_memory(dst, plan.mem, most).vec_bits;
	if (map_to_memory(src, plan.mem, most).vec_bits == map_to_memory(src, own, most).vec_bits)
		return plan.loads;
	if (elem_bits < 32 && (plan.load || reads))
		return -1;
	reads = map_to_memory(dst, plan_for_writers(p, src, dst, elem_bits), most).vec_bits;
	return layout_num_regs(dst) >> reads;
}

/* The register bit whose basis vector is exactly position bit `bit`, if no other basis vector of l (of registers, lanes
 * or warps) contains that bit; else -1. */
static int sole_register(const struct layout *l, int bit)
{
	int at = -1;
	for (int dim = 0; dim < LL_DIMS; dim++)
		for (int i = 0; i < l->bits[dim]; i++) {
			if (!(l->basis[dim][i] >> bit & 1))
				continue;
			if (dim != LL_REG || at >= 0 || l->basis[dim][i] != 1u << bit)
				return -1;
			at = i;
		}
	return at;
}

struct pieces plan_pieces(struct layout_pool *p, const struct layout *src, const struct layout *dst, int elem_bits,
			  int most)
{
	struct pieces s = {.src = src, .dst = dst};
	for (int bit = layout_tile_bits(src); bit-- > 0 && s.bits < MAX_PIECE_BITS;) {
		int from = sole_register(s.src, bit), to = sole_register(s.dst, bit);
		bool fits = (i64)elem_bits << layout_tile_bits(s.src) <= (i64)most * 8;
		if (fits || from < 0 || to < log2_units(16, elem_bits)) /* the lowest 16 bytes stay for vectors */
			continue;
		s.src_reg[s.bits] = (u8)from;
		s.dst_reg[s.bits++] = (u8)to;
		s.src = layout_half(p, s.src, bit);
		s.dst = layout_half(p, s.dst, bit);
	}
	return s;
}

u32 piece_register(const u8 *regs, int bits, u32 piece, u32 r)
{
	for (int i = bits; i-- > 0;) {
		u32 low = (1u << regs[i]) - 1;
		r = (r & ~low) << 1 | (piece >> i & 1) << regs[i] | (r & low);
	}
	return r;
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
	/* a vector: register bits whose basis vectors are 1, 2, 4, …, bits that no other basis vector contains */
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

/* Layout conversions, loads and stores of tiles in shared memory, ldmatrix and stmatrix. */
#include "gpu/codegen/nvptx_internal.h"

static bool has_stmatrix(const struct lower *l)
{
	return l->s->target->has_stmatrix;
}

static LLVMValueRef thread_offset(struct lower *l, const struct memory_map *m)
{
	return thread_map(l, l->b, m->basis[LL_LANE], m->basis[LL_WARP], m->bits[LL_WARP]);
}

u32 thread_bits(const struct memory_map *m)
{
	u32 all = 0;
	for (int dim = LL_LANE; dim < LL_DIMS; dim++)
		for (int i = 0; i < m->bits[dim]; i++)
			all |= m->basis[dim][i];
	return all;
}

static u32 elem_bytes(struct lower *l, const struct value *v)
{
	return (u32)MAX(type_bits(llvm_type(l, v->type)), 8) / 8;
}

/* The bits of `at` that p->thread may set too are combined with it by XOR; the other bits are a constant to add. */
LLVMValueRef mapped_address(struct lower *l, const struct mapped *p, u32 at)
{
	u32 clash = at & p->thread_bits;
	LLVMValueRef off = clash ? LLVMBuildXor(l->b, p->thread, c_i32(l, clash), "") : p->thread;
	return shared_at(l, p->base, LLVMBuildMul(l->b, off, c_i32(l, p->bytes), ""), (at & ~clash) * p->bytes);
}

struct mapped map_layout(struct lower *l, const struct layout *lay, const struct layout *mem, LLVMValueRef base,
			 u32 bytes)
{
	struct mapped p = {.base = base, .bytes = bytes};
	p.m = map_to_memory(lay, mem, ilog2(16 / bytes));
	p.thread = thread_offset(l, &p.m);
	p.thread_bits = thread_bits(&p.m);
	return p;
}

static struct mapped map_value(struct lower *l, const struct value *v, const struct layout *mem, LLVMValueRef base)
{
	return map_layout(l, v->type->layout, mem, base, elem_bytes(l, v));
}

u32 vector_base(const struct memory_map *m, u32 i)
{
	return spread(i, ~vector_elem(m, 0, (1u << m->vec_bits) - 1));
}

u32 vector_elem(const struct memory_map *m, u32 base, u32 e)
{
	for (int k = 0; k < m->vec_bits; k++)
		if (e >> k & 1)
			base |= 1u << m->vec_reg[k];
	return base;
}

/* v as it is stored in shared memory: a pointer as an integer. */
static LLVMValueRef to_shared(struct lower *l, LLVMValueRef v)
{
	bool is_pointer = LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMPointerTypeKind;
	return is_pointer ? to_bits(l->b, v) : to_memory(l->b, v);
}

static LLVMTypeRef shared_type(struct lower *l, LLVMTypeRef t)
{
	return LLVMGetTypeKind(t) == LLVMPointerTypeKind ? l->i64 : memory_type(t);
}

static LLVMValueRef from_shared(struct lower *l, LLVMValueRef v, LLVMTypeRef t)
{
	return t == l->i1 ? LLVMBuildTrunc(l->b, v, l->i1, "") : from_bits(l->b, v, t);
}

/* Whether the elements of a vector in memory are consecutive registers, so that packed words can be stored. */
static bool in_order(const struct memory_map *m)
{
	for (int i = 0; i < m->vec_bits; i++)
		if (m->vec_reg[i] != i)
			return false;
	return true;
}

struct value *tile_like(struct lower *l, const struct value *v, const struct layout *lay)
{
	struct value *piece = arena_new(&l->scratch, struct value);
	i32 shape[MAX_RANK];
	for (int d = 0; d < lay->rank; d++)
		shape[d] = 1 << lay->log2_size[d];
	piece->type = type_with_layout(l->s->ctx, type_tensor(l->s->ctx, type_elem(v->type), lay->rank, shape), lay);
	return piece;
}

/* Stores a vector of nwords words at the address of the element of register r. */
static void store_words(struct lower *l, const struct mapped *p, u32 r, const LLVMValueRef *words, u32 nwords)
{
	LLVMValueRef x = as_vector(l, words, nwords);
	LLVMValueRef st = LLVMBuildStore(l->b, x, mapped_address(l, p, linear(p->m.basis[LL_REG], r)));
	LLVMSetAlignment(st, p->bytes << p->m.vec_bits);
}

static void write_vectors(struct lower *l, const struct value *v, const struct layout *mem, LLVMValueRef base)
{
	struct mapped p = map_value(l, v, mem, base);
	u32 width = 1u << p.m.vec_bits, n = num_elems(v) / width;
	int bits = (int)MIN(width * p.bytes * 8, MAX(p.bytes * 8, 32));
	u32 nwords = width * p.bytes * 8 / (u32)bits, per = (u32)bits / (p.bytes * 8);
	LLVMValueRef elems[16], made[16], *ready = bits == 32 && in_order(&p.m) ? words_of_tile(l, v) : NULL;
	for (u32 i = 0; i < n; i++) {
		u32 r = vector_base(&p.m, i);
		LLVMValueRef *words = ready ? ready + r / per : made;
		if (!ready) {
			for (u32 e = 0; e < width; e++)
				elems[e] = to_shared(l, elem(l, v, vector_elem(&p.m, r, e)));
			pack(l, elems, width, bits, words);
		}
		store_words(l, &p, r, words, nwords);
	}
}

/* Loads a tile of 8-bit elements of which only two consecutive registers are adjacent in memory: each packed word by
 * two 16-bit loads. */
static void read_pairs(struct lower *l, const struct value *v, const struct mapped *p)
{
	u32 n = num_elems(v) / 4;
	LLVMValueRef *words = arena_array(&l->scratch, LLVMValueRef, n), half[2];
	for (u32 i = 0; i < n; i++) {
		for (u32 k = 0; k < 2; k++) {
			half[k] = LLVMBuildLoad2(l->b, l->i16,
						 mapped_address(l, p, linear(p->m.basis[LL_REG], 4 * i + 2 * k)), "");
			LLVMSetAlignment(half[k], 2);
			half[k] = LLVMBuildZExt(l->b, half[k], l->i32, "");
		}
		words[i] = LLVMBuildOr(l->b, half[0], LLVMBuildShl(l->b, half[1], c_i32(l, 16), ""), "");
	}
	set_words(l, v, words, n);
}

static void read_vectors(struct lower *l, const struct value *v, const struct layout *mem, LLVMValueRef base)
{
	struct mapped p = map_value(l, v, mem, base);
	u32 width = 1u << p.m.vec_bits, n = num_elems(v) / width;
	LLVMTypeRef et = llvm_type(l, v->type), t = shared_type(l, et);
	if (p.bytes == 1 && et != l->i1 && width == 2 && p.m.vec_reg[0] == 0 && num_elems(v) >= 4) {
		read_pairs(l, v, &p);
		return;
	}
	LLVMValueRef *at = new_tile(l, v), in[16];
	for (u32 i = 0; i < n; i++) {
		u32 r = vector_base(&p.m, i);
		load_vector(l, t, width, mapped_address(l, &p, linear(p.m.basis[LL_REG], r)), in);
		for (u32 e = 0; e < width; e++)
			at[vector_elem(&p.m, r, e)] = from_shared(l, in[e], et);
	}
}

/* --- transposed bytes ---------------------------------------------------------------------------------------- */

/* Stores of 8-bit elements that are transposed on the way to shared memory, as wgmma needs bytes K-major. The tile was
 * loaded MN-major: the first `bits` register bits, and thus the four bytes of a packed word, run along M or N. In
 * memory, vectors run along K. prmt transposes squares of 4 x 4 bytes in four packed words to words along K.
 * Neighbouring lanes run along M or N too, and would all store to the same banks. So each lane stores its vectors in
 * another order: register r of layout `lay` is register r ^ flip of the tile, where bit i of flip is bit lanes[i] of
 * the lane number. */
struct transposed {
	const struct layout *lay;
	int bits, nlanes, lanes[3];
};

static struct transposed turn(struct lower *l, const struct layout *from)
{
	struct layout lay = *from;
	struct transposed t = {0};
	int d = 0;
	for (int i = 0; i < from->rank; i++)
		if (from->bits[LL_REG] && from->basis[LL_REG][0] & layout_dim_mask(from, i))
			d = i;
	while (t.bits < from->bits[LL_REG] && from->basis[LL_REG][t.bits] == 1u << (layout_dim_shift(from, d) + t.bits))
		t.bits++;
	for (int i = 0; i < LANE_BITS && t.nlanes < MIN(t.bits, 3); i++)
		if (from->basis[LL_LANE][i] & layout_dim_mask(from, d)) {
			lay.basis[LL_LANE][i] ^= from->basis[LL_REG][t.nlanes];
			t.lanes[t.nlanes++] = i;
		}
	t.lay = layout_intern(&l->s->ctx->layouts, &lay);
	return t;
}

/* is_1 if bit i of this lane's flip is set, else is_0. */
static LLVMValueRef by_flip(struct lower *l, const struct transposed *t, int i, LLVMValueRef is_0, LLVMValueRef is_1)
{
	return i < t->nlanes ? LLVMBuildSelect(l->b, lane_bit(l, t->lanes[i]), is_1, is_0, "") : is_0;
}

static bool write_transposed(struct lower *l, const struct value *v, const struct layout *mem, LLVMValueRef base)
{
	enum { LOW_HALVES = 0x5140, HIGH_HALVES = 0x7362, LOW_PAIRS = 0x5410, HIGH_PAIRS = 0x7632 };
	if (elem_bytes(l, v) != 1 || !words_of_tile(l, v))
		return false;
	struct transposed t = turn(l, v->type->layout);
	struct mapped p = map_value(l, tile_like(l, v, t.lay), mem, base);
	const struct memory_map *m = &p.m;
	if (t.bits < 2 || m->vec_bits < 2)
		return false;
	for (int i = 0; i < m->vec_bits; i++)
		if (m->vec_reg[i] < t.bits)
			return false;
	LLVMValueRef *words = words_of_tile(l, v), halves[2], pairs[2], rows[4][4], half[4];
	u32 nwords = 1u << (m->vec_bits - 2);
	for (u32 i = 0; i < 2; i++) {
		halves[i] = by_flip(l, &t, 1, c_i32(l, i ? HIGH_HALVES : LOW_HALVES),
				    c_i32(l, i ? LOW_HALVES : HIGH_HALVES));
		pairs[i] =
			by_flip(l, &t, 0, c_i32(l, i ? HIGH_PAIRS : LOW_PAIRS), c_i32(l, i ? LOW_PAIRS : HIGH_PAIRS));
	}
	for (u32 i = 0; i < num_elems(v) >> m->vec_bits; i++) {
		u32 r = vector_base(m, i);
		if (r % 4)
			continue;
		for (u32 w = 0; w < nwords; w++) {
			LLVMValueRef in[4];
			for (u32 e = 0; e < 4; e++) {
				u32 word = vector_elem(m, r, 4 * w + e) / 4;
				in[e] = by_flip(l, &t, 2, words[word], words[word ^ 1]);
			}
			for (u32 e = 0; e < 4; e++)
				half[e] = permute_bytes(l, in[e % 2 * 2], in[e % 2 * 2 + 1], halves[e / 2]);
			for (u32 e = 0; e < 4; e++)
				rows[e][w] = permute_bytes(l, half[e / 2 * 2], half[e / 2 * 2 + 1], pairs[e % 2]);
		}
		for (u32 e = 0; e < 4; e++)
			store_words(l, &p, r | e, rows[e], nwords);
	}
	return true;
}

/* --- ldmatrix, stmatrix -------------------------------------------------------------------------------------- */

/* How the bytes of a packed word of the tile's layout relate to what ldmatrix.trans gives. ldmatrix.trans moves units
 * of 16 bits, pairs of adjacent bytes of a row in memory. A thread gets, in one 32-bit word, the pairs of two rows. So
 * both bytes of a pair are in one thread; the enumerator's number is the register bit by which their registers differ.
 *
 * TWO_PAIRS: a word of the layout has the pairs of two rows, one after the other. TWO_INTERLEAVED: it has the first
 * bytes of both rows, then the second bytes. FOUR_ROWS: it has bytes of four rows, 4t to 4t + 3 in lane t of four, all
 * first bytes or all second bytes; it is made from the words of two matrices with two of these rows each. The first
 * matrix has the first two rows, except for lanes t = 2 and 3, where it has the last two. So its rows differ modulo 8
 * and are in different banks. */
enum pairs { TWO_PAIRS, TWO_INTERLEAVED, FOUR_ROWS, NO_PAIRS };

/* A tile as 8×8 matrices of 16-bit units in shared memory, for ldmatrix or stmatrix. The register bits `counts` number
 * a thread's matrices; one instruction moves the 2^together matrices that the first `together` of these bits number. */
struct matrices {
	struct mapped p; /* addresses of the rows of matrices: lane j's row, for the instruction */
	enum matrix_kind kind;
	enum pairs pairs; /* for kind MATRIX_TRANS and 8-bit elements; else NO_PAIRS */
	int counts[LAYOUT_MAX_BITS], together, per_word; /* per_word: log2 of the elements of a 32-bit word */
	u32 n; /* number of instructions */
};

static enum pairs pairs_of(const struct memory_map *m)
{
	int i = 0;
	while (i < MIN(NO_PAIRS, m->bits[LL_REG]) && m->basis[LL_REG][i] != 1)
		i++;
	return i < m->bits[LL_REG] ? (enum pairs)i : NO_PAIRS;
}

/* Whether the threads' registers, mapped to memory by m, form 8×8 matrices with rows of 16 bytes. Sets rows[i] to the
 * element offset of bit i of a matrix's row number, and out->counts. Returns the number of bits in out->counts, or
 * -1. */
static int matrix_shape(const struct memory_map *m, int elem_bits, enum matrix_kind kind, u32 *rows,
			struct matrices *out)
{
	bool bytes = elem_bits == 8;
	int per_word = ilog2((u64)32 / (u64)elem_bits), row_bits = ilog2((u64)128 / (u64)elem_bits);
	u32 row_mask = (1u << row_bits) - 1, expect[8];
	int n = 0, ncounts = 0;
	out->kind = kind;
	out->pairs = bytes && kind == MATRIX_TRANS ? pairs_of(m) : NO_PAIRS;
	bool four = out->pairs == FOUR_ROWS;
	if (kind == MATRIX_PLAIN) {
		for (int i = 0; i < per_word; i++)
			expect[n++] = m->basis[LL_REG][i];
		expect[n++] = m->basis[LL_LANE][0];
		expect[n++] = m->basis[LL_LANE][1];
		for (int i = 0; i < 3; i++)
			rows[i] = m->basis[LL_LANE][2 + i];
	} else {
		if (bytes && out->pairs == NO_PAIRS)
			return -1;
		if (bytes)
			expect[n++] = 1;
		for (int i = 0; i < 3; i++) /* FOUR_ROWS: first or second bytes may depend on the lane (offset bit 0) */
			expect[n++] = four ? m->basis[LL_LANE][2 + i] & ~1u : m->basis[LL_LANE][2 + i];
		rows[0] = m->basis[LL_REG][out->pairs == TWO_PAIRS];
		rows[1] = m->basis[LL_LANE][0];
		rows[2] = m->basis[LL_LANE][1] ^ (four ? m->basis[LL_REG][1] : 0);
	}
	if (n != row_bits || m->bits[LL_REG] < per_word)
		return -1;
	for (int i = 0; i < n; i++)
		if (expect[i] != 1u << i)
			return -1;
	for (int i = four ? 1 : per_word; i < m->bits[LL_REG]; i++) {
		if (four && i == FOUR_ROWS)
			continue;
		if (m->basis[LL_REG][i] & row_mask)
			return -1;
		out->counts[ncounts++] = i;
	}
	for (int i = 0; i < 3; i++)
		/* a zero offset: several lanes have the same row, which is possible for bytes only */
		if ((!rows[i] && !(bytes && i)) || rows[i] & row_mask)
			return -1;
	for (int i = 0; i < m->bits[LL_WARP]; i++)
		if (m->basis[LL_WARP][i] & row_mask)
			return -1;
	return ncounts;
}

static bool as_matrices(struct lower *l, const struct value *v, const struct layout *mem, LLVMValueRef base,
			struct matrices *out)
{
	int bits = type_bits(llvm_type(l, v->type));
	u32 rows[3], lane_bases[5] = {0};
	if (bits < 8 || bits > 32)
		return false;
	struct mapped p = {.base = base, .bytes = (u32)bits / 8, .m = map_to_memory(v->type->layout, mem, 0)};
	int n = matrix_shape(&p.m, bits, MATRIX_PLAIN, rows, out);
	if (n < 0 && bits <= 16)
		n = matrix_shape(&p.m, bits, MATRIX_TRANS, rows, out);
	if (n < 0)
		return false;
	/* the instruction takes the address of row j % 8 of matrix j / 8 from lane j, and moves at most four
	 * matrices */
	out->together = MIN(n, 2), out->per_word = ilog2((u64)32 / (u64)bits), out->n = 1u << (n - out->together);
	for (int i = 0; i < 3; i++)
		lane_bases[i] = rows[i];
	for (int i = 0; i < out->together; i++)
		lane_bases[3 + i] = p.m.basis[LL_REG][out->counts[i]];
	p.thread = thread_map(l, l->b, lane_bases, p.m.basis[LL_WARP], p.m.bits[LL_WARP]);
	for (int i = 0; i < 3 + out->together; i++)
		p.thread_bits |= lane_bases[i];
	for (int i = 0; i < p.m.bits[LL_WARP]; i++)
		p.thread_bits |= p.m.basis[LL_WARP][i];
	out->p = p;
	return true;
}

/* The first register of this thread in matrix k of instruction i. */
static u32 matrix_reg(const struct matrices *m, u32 i, u32 k)
{
	u32 reg = 0, at = i << m->together | k;
	for (int bit = 0; at >> bit; bit++)
		if (at >> bit & 1)
			reg |= 1u << m->counts[bit];
	return reg;
}

static LLVMValueRef matrix_address(struct lower *l, const struct matrices *m, u32 i)
{
	return mapped_address(l, &m->p, linear(m->p.m.basis[LL_REG], matrix_reg(m, i, 0)));
}

/* FOUR_ROWS: the prmt selectors that make the two words of the layout from the words of two matrices: which[0] for the
 * word of the layout's first register, which[1] for the other. */
static void byte_selectors(struct lower *l, const struct memory_map *m, LLVMValueRef *which)
{
	LLVMValueRef latter = lane_bit(l, 1),
		     first = LLVMBuildSelect(l->b, latter, c_i32(l, 0x2064), c_i32(l, 0x6420), ""),
		     second = LLVMBuildSelect(l->b, latter, c_i32(l, 0x3175), c_i32(l, 0x7531), "");
	for (int i = 2; i < LANE_BITS; i++)
		if (m->basis[LL_LANE][i] & 1) {
			LLVMValueRef was = first, other = lane_bit(l, i);
			first = LLVMBuildSelect(l->b, other, second, was, "");
			second = LLVMBuildSelect(l->b, other, was, second, "");
		}
	which[0] = first;
	which[1] = second;
}

static void read_matrices(struct lower *l, const struct value *v, const struct matrices *m)
{
	static const char *const cons[] = {"=r,r,~{memory}", "=r,=r,r,~{memory}", "=r,=r,=r,=r,r,~{memory}"};
	enum { FROM_PAIRS = 0x3120 };
	LLVMTypeRef types[] = {l->i32, l->i32, l->i32, l->i32};
	LLVMValueRef which[2], w[4];
	u32 x = 1u << m->together;
	const char *text = arena_printf(&l->scratch, "ldmatrix.sync.aligned.m8n8.x%u%s.shared.b16 %s, [$%u];", x,
					m->kind == MATRIX_TRANS ? ".trans" : "", register_list(l, "$", 0, x), x);
	LLVMTypeRef ret = x == 1 ? l->i32 : LLVMStructTypeInContext(l->ctx, types, x, false);
	struct tile *t = arena_new(&l->scratch, struct tile);
	t->n = num_elems(v);
	t->words = arena_array(&l->scratch, LLVMValueRef, t->n >> m->per_word);
	if (m->pairs == FOUR_ROWS)
		byte_selectors(l, &m->p.m, which);
	for (u32 i = 0; i < m->n; i++) {
		LLVMValueRef a = matrix_address(l, m, i);
		LLVMValueRef r = inline_asm(l, text, cons[m->together], ASM_CONVERGENT, ret, &a, 1);
		for (u32 k = 0; k < x; k++)
			w[k] = x == 1 ? r : LLVMBuildExtractValue(l->b, r, k, "");
		for (u32 k = 0; k < x; k++) {
			u32 reg = matrix_reg(m, i, k);
			LLVMValueRef word = w[k];
			if (m->pairs == FOUR_ROWS) {
				reg = matrix_reg(m, i, k & ~1u) | (k & 1) << FOUR_ROWS;
				word = permute_bytes(l, w[k & ~1u], w[k | 1], which[k % 2]);
			} else if (m->pairs == TWO_INTERLEAVED) {
				word = permute_bytes(l, w[k], w[k], c_i32(l, FROM_PAIRS));
			}
			t->last = t->words[reg >> m->per_word] = word;
		}
	}
	map_put(&l->tiles, v, t);
}

static void write_matrices(struct lower *l, const struct value *v, const struct matrices *m)
{
	static const char *const cons[] = {"r,r,~{memory}", "r,r,r,~{memory}", "r,r,r,r,r,~{memory}"};
	u32 x = 1u << m->together;
	const char *text = arena_printf(&l->scratch, "stmatrix.sync.aligned.m8n8.x%u%s.shared.b16 [$0], %s;", x,
					m->kind == MATRIX_TRANS ? ".trans" : "", register_list(l, "$", 1, x));
	for (u32 i = 0; i < m->n; i++) {
		LLVMValueRef args[5] = {matrix_address(l, m, i)};
		for (u32 k = 0; k < x; k++)
			args[1 + k] = word_of(l, v, matrix_reg(m, i, k) >> m->per_word);
		inline_asm(l, text, cons[m->together], ASM_CONVERGENT, l->v, args, 1 + x);
	}
}

LLVMValueRef read_element(struct lower *l, LLVMValueRef at, LLVMTypeRef t)
{
	return from_shared(l, LLVMBuildLoad2(l->b, shared_type(l, t), at, ""), t);
}

void write_shared(struct lower *l, const struct value *v, const struct layout *mem, LLVMValueRef base)
{
	int most = ilog2(16 / elem_bytes(l, v));
	struct matrices m;
	if (has_stmatrix(l) && map_to_memory(v->type->layout, mem, most).vec_bits < most &&
	    as_matrices(l, v, mem, base, &m) && (m.kind == MATRIX_PLAIN || m.p.bytes > 1))
		write_matrices(l, v, &m);
	else
		write_vectors(l, v, mem, base);
}

void read_shared(struct lower *l, const struct value *v, const struct layout *mem, LLVMValueRef base)
{
	struct matrices m;
	if (as_matrices(l, v, mem, base, &m))
		read_matrices(l, v, &m);
	else
		read_vectors(l, v, mem, base);
}

void lower_local_load(struct lower *l, const struct op *o)
{
	read_shared(l, result(o), operand(o, 0)->type->layout, elem(l, operand(o, 0), 0));
}

void lower_local_store(struct lower *l, const struct op *o)
{
	const struct layout *mem = operand(o, 1)->type->layout;
	LLVMValueRef base = elem(l, operand(o, 1), 0);
	if (!write_transposed(l, operand(o, 0), mem, base))
		write_shared(l, operand(o, 0), mem, base);
}

/* --- conversions --------------------------------------------------------------------------------------------- */

/* Permutes registers by lane: at[r] becomes the former at[r ^ linear(of_lane, lane)], for the registers r that are
 * subsets of the bits `mask`. */
static void rename_by_lane(struct lower *l, LLVMValueRef *at, u32 mask, const u32 *of_lane)
{
	LLVMValueRef *was = arena_array(&l->scratch, LLVMValueRef, mask + 1);
	for (int i = 0; i < LANE_BITS; i++) {
		if (!of_lane[i])
			continue;
		LLVMValueRef bit = lane_bit(l, i);
		memcpy(was, at, (mask + 1) * sizeof *was);
		for (u32 k = 0, r; (r = spread(k, mask)), k >> __builtin_popcount(mask) == 0; k++)
			at[r] = LLVMBuildSelect(l->b, bit, was[r ^ of_lane[i]], was[r], "");
	}
}

/* The set of register bits of the result such that the elements of registers which differ only in these bits come from
 * the same lane, stay together, and fit in 32 bits. They are packed before the shuffles and register permutations,
 * which are then fewer. renamed: c->sent, the sender's permutation of its registers, in terms of the result's
 * registers. */
static u32 packed_bits(const struct conversion *c, int regs, int elem_bits, u32 *renamed)
{
	struct gf2 sources = {0};
	u32 busy = 0, packed = 0;
	for (int i = 0; i < regs; i++)
		gf2_add(&sources, c->reg_of_reg[i]);
	for (int i = 0; i < LANE_BITS; i++) {
		if (!gf2_solve(&sources, c->sent[i], &renamed[i]))
			return 0;
		busy |= renamed[i] | c->moved[i];
	}
	for (int i = 0; i < regs && elem_bits >= 8 && elem_bits << __builtin_popcount(packed) < 32; i++)
		if (!(busy >> i & 1) && !c->lane_of_reg[i])
			packed |= 1u << i;
	return packed;
}

/* Merges the receiver's permutation of registers (`moved`) and the regrouping of packed words to words of the result
 * into one prmt per word, with a selector chosen by lane. This requires that the permutation exchanges only the 16-bit
 * halves of the result's words, and that a packed word is two such halves of different words. at: the packed words, by
 * their first register. False if this does not hold; nothing is emitted then. */
static bool merge_halves(struct lower *l, const struct value *v, LLVMValueRef *at, u32 words, u32 packed,
			 const u32 *moved)
{
	int eb = type_bits(llvm_type(l, v->type)), lane = -1;
	u32 half = 16 / (u32)eb, within = half - 1, later = packed & ~within, n = num_elems(v) * (u32)eb / 32;
	for (int i = 0; i < LANE_BITS; i++) {
		if (moved[i] && (lane >= 0 || moved[i] != half))
			return false;
		lane = moved[i] ? i : lane;
	}
	if (lane < 0 || (packed & within) != within || __builtin_popcount(later) != 1 || later <= half)
		return false;
	/* selectors of lower and upper halves */
	static const i32 selectors[2][2] = {{0x5410, 0x1054}, {0x7632, 0x3276}};
	LLVMValueRef *out = arena_array(&l->scratch, LLVMValueRef, n), bit = lane_bit(l, lane);
	for (u32 k = 0, q; (q = spread(k, words & ~half)), k < n / 2; k++)
		for (u32 upper = 0; upper < 2; upper++) {
			LLVMValueRef which = LLVMBuildSelect(l->b, bit, c_i32(l, selectors[upper][1]),
							     c_i32(l, selectors[upper][0]), "");
			out[(q | upper * later) / (2 * half)] = permute_bytes(l, at[q], at[q | half], which);
		}
	set_words(l, v, out, n);
	return true;
}

static void convert_by_shuffle(struct lower *l, const struct op *o, const struct conversion *c)
{
	const struct value *x = operand(o, 0), *v = result(o);
	LLVMValueRef source = linear_map(l, l->b, l->lane, c->lane_of_lane, LANE_BITS), *at = new_tile(l, v), parts[4];
	LLVMValueRef *from = arena_array(&l->scratch, LLVMValueRef, num_elems(x));
	LLVMTypeRef t = LLVMTypeOf(elem(l, x, 0));
	bool stays = true;
	u32 renamed[LANE_BITS], packed = packed_bits(c, v->type->layout->bits[LL_REG], type_bits(t), renamed),
				per = 1u << __builtin_popcount(packed), words = (num_elems(v) - 1) & ~packed;
	for (int i = 0; i < LANE_BITS; i++)
		stays &= c->lane_of_lane[i] == 1u << i;
	for (u32 r = 0; r < num_elems(x); r++)
		from[r] = elem(l, x, r);
	if (!packed)
		rename_by_lane(l, from, num_elems(x) - 1, c->sent);
	for (u32 w = 0, q; (q = spread(w, words)), w < num_elems(v) / per; w++) {
		for (u32 i = 0; i < per; i++)
			parts[i] = from[linear(c->reg_of_reg, q | spread(i, packed))];
		pack(l, parts, per, type_bits(t) * (int)per, &at[q]);
	}
	if (packed)
		rename_by_lane(l, at, words, renamed);
	for (u32 w = 0, q; (q = spread(w, words)), w < num_elems(v) / per; w++) {
		u32 turn = linear(c->lane_of_reg, q);
		if (stays && turn)
			at[q] = shuffle_xor(l, at[q], turn);
		else if (!stays)
			at[q] = shuffle(l, at[q], turn ? LLVMBuildXor(l->b, source, c_i32(l, turn), "") : source);
	}
	if (packed && merge_halves(l, v, at, words, packed, c->moved))
		return;
	rename_by_lane(l, at, words, c->moved);
	for (u32 w = 0, q; (q = spread(w, words)), w < num_elems(v) / per; w++) {
		unpack(l, &at[q], 1, t, per, parts);
		for (u32 i = 0; i < per; i++)
			at[q | spread(i, packed)] = parts[i];
	}
}

/* Whether o may be executed more than once: it is in a loop or in a function. */
static bool runs_again(const struct lower *l, const struct op *o)
{
	const struct block *b = o->block;
	bool again = false;
	for (; b->parent; b = b->parent->block)
		again |= op_is_loop(b->parent);
	return again || b != l->k->body; /* otherwise o is in a function */
}

static void convert_by_memory(struct lower *l, const struct op *o)
{
	const struct value *x = operand(o, 0), *v = result(o);
	int bits = MAX(type_bits(llvm_type(l, v->type)), 8);
	struct pieces p = plan_pieces(&l->s->ctx->layouts, x->type->layout, v->type->layout, bits, o->scratch_size);
	const struct layout *mem = plan_shared(&l->s->ctx->layouts, p.src, p.dst, bits, has_stmatrix(l)).mem;
	/* warps write and read separate parts of the scratch memory, so warp barriers suffice */
	bool apart = o->attr[ATTR_CONVERSION] == CONVERSION_WARP_MEMORY;
	LLVMValueRef base = shared_base(l, o), *at = p.bits ? new_tile(l, v) : NULL;
	for (u32 i = 0; i >> p.bits == 0; i++) {
		const struct value *in = p.bits ? tile_like(l, x, p.src) : x,
				   *out = p.bits ? tile_like(l, v, p.dst) : v;
		LLVMValueRef *from = p.bits ? new_tile(l, in) : NULL;
		for (u32 r = 0; from && r < num_elems(in); r++)
			from[r] = elem(l, x, piece_register(p.src_reg, p.bits, i, r));
		/* before it is overwritten, all warps must have read the previous piece, or with `apart` what the
		 * previous execution of o left; gpu/smem/barriers.c inserts barriers after reads by other operations */
		if (i || (apart && runs_again(l, o)))
			(apart ? warp_barrier : barrier)(l);
		write_shared(l, in, mem, base);
		(apart ? warp_barrier : barrier)(l);
		read_shared(l, out, mem, base);
		for (u32 r = 0; at && r < num_elems(out); r++)
			at[piece_register(p.dst_reg, p.bits, i, r)] = elem(l, out, r);
	}
}

void lower_convert(struct lower *l, const struct op *o)
{
	const struct value *x = operand(o, 0), *v = result(o);
	if (o->attr[ATTR_CONVERSION] >= CONVERSION_MEMORY) {
		convert_by_memory(l, o);
		return;
	}
	struct conversion c = plan_conversion(x->type->layout, v->type->layout);
	if (o->attr[ATTR_CONVERSION] == CONVERSION_SHUFFLES) {
		convert_by_shuffle(l, o, &c);
		return;
	}
	LLVMValueRef *at = new_tile(l, v);
	for (u32 r = 0; r < num_elems(v); r++)
		at[r] = elem(l, x, linear(c.reg_of_reg, r));
}

/* Layouts: constructors against the definitions they come from, transformations and conversions against brute force
 * over every register, lane and warp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layout/conversion.h"

static struct arena arena;
static struct layout_pool pool = {.arena = &arena};

enum { LANES = 32, MAX_POS = 1 << 14 };

static u32 dim_of(const struct layout *l, u32 pos, int d)
{
	return (pos & layout_dim_mask(l, d)) >> layout_dim_shift(l, d);
}

static int warps_of(const struct layout *l) { return 1 << l->bits[LL_WARP]; }

#define FOR_EACH_PLACE(l, r, t, w) \
	for (u32 w = 0; w < (u32)warps_of(l); w++) \
		for (u32 t = 0; t < LANES; t++) \
			for (u32 r = 0; r < (u32)layout_num_regs(l); r++)

/* Every element is somewhere, and a thread holds none twice. */
static void check_covers(const struct layout *l)
{
	static u16 seen[MAX_POS];
	u32 n = 1u << layout_tile_bits(l);
	assert_true(n <= MAX_POS);
	memset(seen, 0, n * sizeof *seen);
	FOR_EACH_PLACE(l, r, t, w) {
		u32 pos = layout_apply(l, r, t, w);
		assert_true(pos < n);
		seen[pos]++;
		for (u32 q = 0; q < r && w == 0 && t == 0; q++)
			assert_int_not_equal(layout_apply(l, q, t, w), pos);
	}
	u32 copies = (u32)(layout_num_regs(l) * LANES * warps_of(l)) / n;
	for (u32 i = 0; i < n; i++)
		assert_int_equal(seen[i], copies);
}

/* --- constructors -------------------------------------------------------------------------------------------- */

typedef void each_layout(const struct layout *l, void *arg);

struct blocked_spec {
	int rank, shape[3], spt[3], lanes[3], warps[3], order[3];
};

/* Every two-dimensional blocked layout with the given warps: sizes per thread 1..8, all splits of 32 lanes and of the
 * warps, both orders. */
static void each_blocked(int m, int n, int warps, int max_spt, each_layout *f, void *arg)
{
	i32 shape[2] = {m, n};
	for (int order0 = 0; order0 < 2; order0++)
		for (int s0 = 1; s0 <= max_spt; s0 *= 2)
			for (int s1 = 1; s1 <= max_spt; s1 *= 2)
				for (int l0 = 1; l0 <= 32; l0 *= 2)
					for (int w0 = 1; w0 <= warps; w0 *= 2) {
						int spt[] = {s0, s1}, lanes[] = {l0, 32 / l0}, ws[] = {w0, warps / w0};
						int order[] = {order0, 1 - order0};
						f(layout_blocked(&pool, 2, shape, spt, lanes, ws, order), arg);
					}
}

static void covers(const struct layout *l, void *count)
{
	check_covers(l);
	++*(int *)count;
}

static void test_blocked_covers(void **state)
{
	(void)state;
	int count = 0;
	for (int m = 1; m <= 64; m *= 4)
		for (int n = 1; n <= 64; n *= 4)
			for (int w = 1; w <= 4; w *= 2)
				each_blocked(m, n, w, 4, covers, &count);
	assert_int_equal(count, 16 * (2 * 9 * 6) * (1 + 2 + 3));
}

/* Thread t of warp w owns elements by division and remainder, as the definition says it. */
static void test_blocked_definition(void **state)
{
	(void)state;
	static const struct blocked_spec specs[] = {
		{1, {1024}, {4}, {32}, {4}, {0}},
		{2, {64, 128}, {1, 8}, {4, 8}, {2, 2}, {1, 0}},
		{2, {128, 32}, {2, 1}, {16, 2}, {1, 4}, {0, 1}},
		{3, {4, 32, 64}, {1, 2, 4}, {1, 4, 8}, {2, 2, 2}, {2, 1, 0}},
		{3, {8, 16, 32}, {2, 1, 1}, {2, 8, 2}, {1, 2, 4}, {1, 2, 0}},
	};
	for (u32 s = 0; s < ARRAY_LEN(specs); s++) {
		const struct blocked_spec *b = &specs[s];
		const struct layout *l = layout_blocked(&pool, b->rank, b->shape, b->spt, b->lanes, b->warps, b->order);
		check_covers(l);
		FOR_EACH_PLACE(l, r, t, w) {
			u32 reg = r, lane = t, warp = w, want[3], pos = layout_apply(l, r, t, w);
			for (int i = 0; i < b->rank; i++) {
				int d = b->order[i];
				u32 within = reg % (u32)b->spt[d];
				reg /= (u32)b->spt[d];
				want[d] = within + (u32)b->spt[d] * (lane % (u32)b->lanes[d]);
				lane /= (u32)b->lanes[d];
				want[d] += (u32)(b->spt[d] * b->lanes[d]) * (warp % (u32)b->warps[d]);
				warp /= (u32)b->warps[d];
			}
			for (int i = 0; i < b->rank; i++) { /* repeats, in order */
				int d = b->order[i], size = b->spt[d] * b->lanes[d] * b->warps[d],
				    reps = b->shape[d] / size;
				want[d] += (u32)size * (reg % (u32)reps);
				reg /= (u32)reps;
			}
			for (int d = 0; d < b->rank; d++)
				assert_int_equal(dim_of(l, pos, d), want[d]);
		}
	}
}

/* Rows and columns of the fragments as the PTX ISA gives them, for the first instruction's tile. */
struct fragment {
	const char *name;
	int m, n, k, elem_bits, acc_regs, a_regs, b_regs;
};
static const struct fragment fragments[] = {
	{"m16n8k16 f16", 16, 8, 16, 16, 4, 8, 4}, {"m16n8k8 f16", 16, 8, 8, 16, 4, 4, 2},
	{"m16n8k8 tf32", 16, 8, 8, 32, 4, 4, 2},  {"m16n8k32 s8", 16, 8, 32, 8, 4, 16, 8},
	{"m8n8k16 s8", 8, 8, 16, 8, 2, 4, 4},	  {"m8n8k4 f64", 8, 8, 4, 64, 2, 1, 1},
};

static void test_mma_fragments(void **state)
{
	(void)state;
	for (u32 f = 0; f < ARRAY_LEN(fragments); f++) {
		const struct fragment *s = &fragments[f];
		int warps[2] = {1, 1}, per = MAX(32 / s->elem_bits, 1);
		const struct layout *acc = layout_mma(&pool, 2, (i32[]){s->m, s->n}, warps, s->m, 8);
		const struct layout *a =
			layout_dot_operand(&pool, 2, (i32[]){s->m, s->k}, 0, warps, s->m, s->elem_bits);
		const struct layout *b =
			layout_dot_operand(&pool, 2, (i32[]){s->k, s->n}, 1, warps, s->m, s->elem_bits);
		check_covers(acc), check_covers(a), check_covers(b);
		assert_int_equal(layout_num_regs(acc), s->acc_regs);
		assert_int_equal(layout_num_regs(a), s->a_regs);
		assert_int_equal(layout_num_regs(b), s->b_regs);
		for (u32 t = 0; t < LANES; t++) {
			u32 group = t / 4, in_group = t % 4;
			for (u32 i = 0; i < (u32)s->acc_regs; i++) {
				u32 pos = layout_apply(acc, i, t, 0);
				assert_int_equal(dim_of(acc, pos, 0), group + 8 * (i / 2));
				assert_int_equal(dim_of(acc, pos, 1), in_group * 2 + i % 2);
			}
			for (u32 i = 0; i < (u32)s->a_regs; i++) { /* 32-bit registers go down the rows first */
				u32 pos = layout_apply(a, i, t, 0), word = i / (u32)per, down = s->m == 16 ? 2 : 1;
				assert_int_equal(dim_of(a, pos, 0), group + 8 * (word % down));
				assert_int_equal(dim_of(a, pos, 1),
						 in_group * (u32)per + i % (u32)per + 4 * (u32)per * (word / down));
			}
			for (u32 i = 0; i < (u32)s->b_regs; i++) {
				u32 pos = layout_apply(b, i, t, 0), word = i / (u32)per;
				assert_int_equal(dim_of(b, pos, 0),
						 in_group * (u32)per + i % (u32)per + 4 * (u32)per * word);
				assert_int_equal(dim_of(b, pos, 1), group);
			}
		}
	}
}

/* Warps of an operand hold what their accumulators need: row r of A wherever row r of the accumulator is. */
static void test_mma_warps(void **state)
{
	(void)state;
	for (int w0 = 1; w0 <= 8; w0 *= 2)
		for (int w1 = 1; w1 * w0 <= 8; w1 *= 2)
			for (int m = 16; m <= 128; m *= 2)
				for (int n = 8; n <= 128; n *= 2) {
					int warps[2] = {w0, w1}, k = 32;
					const struct layout *acc = layout_mma(&pool, 2, (i32[]){m, n}, warps, 16, 8);
					const struct layout *a =
						layout_dot_operand(&pool, 2, (i32[]){m, k}, 0, warps, 16, 16);
					const struct layout *b =
						layout_dot_operand(&pool, 2, (i32[]){k, n}, 1, warps, 16, 16);
					check_covers(acc), check_covers(a), check_covers(b);
					for (u32 w = 0; w < (u32)(w0 * w1); w++) {
						u8 rows[128] = {0}, cols[128] = {0};
						for (u32 t = 0; t < LANES; t++) {
							for (u32 r = 0; r < (u32)layout_num_regs(a); r++)
								rows[dim_of(a, layout_apply(a, r, t, w), 0)] = 1;
							for (u32 r = 0; r < (u32)layout_num_regs(b); r++)
								cols[dim_of(b, layout_apply(b, r, t, w), 1)] = 1;
						}
						for (u32 t = 0; t < LANES; t++)
							for (u32 r = 0; r < (u32)layout_num_regs(acc); r++) {
								u32 pos = layout_apply(acc, r, t, w);
								assert_true(rows[dim_of(acc, pos, 0)]);
								assert_true(cols[dim_of(acc, pos, 1)]);
							}
					}
				}
}

/* --- transformations ----------------------------------------------------------------------------------------- */

static void transposes(const struct layout *l, void *arg)
{
	(void)arg;
	const struct layout *t = layout_trans(&pool, l, (int[]){1, 0});
	assert_ptr_equal(layout_trans(&pool, t, (int[]){1, 0}), l);
	FOR_EACH_PLACE(l, r, lane, w) {
		u32 p = layout_apply(l, r, lane, w), q = layout_apply(t, r, lane, w);
		assert_int_equal(dim_of(l, p, 0), dim_of(t, q, 1));
		assert_int_equal(dim_of(l, p, 1), dim_of(t, q, 0));
	}
}

static void reverses_bits(const struct layout *l, void *arg)
{
	(void)arg;
	for (int d = 0; d < 2; d++) {
		int to[LAYOUT_MAX_BITS], n = l->log2_size[d];
		for (int i = 0; i < n; i++)
			to[i] = n - 1 - i;
		const struct layout *p = layout_permute_bits(&pool, l, d, to);
		assert_ptr_equal(layout_permute_bits(&pool, p, d, to), l);
		FOR_EACH_PLACE(l, r, lane, w) {
			u32 was = layout_apply(l, r, lane, w), is = layout_apply(p, r, lane, w), reversed = 0;
			for (int i = 0; i < n; i++)
				reversed |= (dim_of(l, was, d) >> i & 1) << (n - 1 - i);
			assert_int_equal(dim_of(p, is, d), reversed);
			assert_int_equal(dim_of(p, is, 1 - d), dim_of(l, was, 1 - d));
		}
	}
}

static void slices(const struct layout *l, void *arg)
{
	(void)arg;
	for (int axis = 0; axis < 2; axis++) {
		const struct layout *s = layout_slice(&pool, l, axis);
		check_covers(s);
		/* each thread holds exactly the coordinates it held before, each once */
		for (u32 w = 0; w < (u32)warps_of(l); w++)
			for (u32 t = 0; t < LANES; t++) {
				u8 had[64] = {0};
				int n = 0;
				for (u32 r = 0; r < (u32)layout_num_regs(l); r++)
					had[dim_of(l, layout_apply(l, r, t, w), 1 - axis)] = 1;
				for (int i = 0; i < 64; i++)
					n += had[i];
				assert_int_equal(n, layout_num_regs(s));
				for (u32 r = 0; r < (u32)layout_num_regs(s); r++)
					assert_true(had[layout_apply(s, r, t, w)]);
			}
		/* and a dimension of 1 comes and goes without a trace */
		assert_ptr_equal(layout_drop_dim(&pool, layout_add_dim(&pool, s, axis), axis), s);
	}
}

static void redundancy(const struct layout *l, void *arg)
{
	(void)arg;
	u32 lanes, warps, n = 1u << layout_tile_bits(l);
	layout_redundant(l, &lanes, &warps);
	static u8 seen[MAX_POS];
	memset(seen, 0, n);
	FOR_EACH_PLACE(l, r, t, w)
		if (!(t & lanes) && !(w & warps))
			seen[layout_apply(l, r, t, w)]++;
	for (u32 i = 0; i < n; i++)
		assert_int_equal(seen[i], 1);
}

static void test_transformations(void **state)
{
	(void)state;
	for (int m = 2; m <= 64; m *= 4)
		for (int n = 1; n <= 64; n *= 4) {
			each_blocked(m, n, 4, 4, transposes, NULL);
			each_blocked(m, n, 4, 4, reverses_bits, NULL);
			each_blocked(m, n, 4, 4, slices, NULL);
			each_blocked(m, n, 4, 4, redundancy, NULL);
		}
	for (int operand = 0; operand < 2; operand++) {
		const struct layout *l = layout_dot_operand(&pool, 2, (i32[]){64, 64}, operand, (int[]){2, 2}, 16, 16);
		transposes(l, NULL), slices(l, NULL), redundancy(l, NULL);
	}
}

static void test_reshape_keeps_positions(void **state)
{
	(void)state;
	const struct layout *l =
		layout_blocked(&pool, 2, (i32[]){32, 64}, (int[]){2, 4}, (int[]){4, 8}, (int[]){2, 2}, (int[]){1, 0});
	const struct layout *r = layout_reshape(&pool, l, 3, (i32[]){8, 64, 4});
	FOR_EACH_PLACE(l, i, t, w)
		assert_int_equal(layout_apply(l, i, t, w), layout_apply(r, i, t, w));
	assert_int_equal(dim_of(r, 5 * 256 + 17 * 4 + 3, 0), 5);
	assert_int_equal(dim_of(r, 5 * 256 + 17 * 4 + 3, 1), 17);
	assert_int_equal(dim_of(r, 5 * 256 + 17 * 4 + 3, 2), 3);
}

static void test_interning(void **state)
{
	(void)state;
	int one[] = {1}, lanes[] = {32}, warps[] = {4}, order[] = {0};
	const struct layout *a = layout_blocked(&pool, 1, (i32[]){128}, one, lanes, warps, order);
	assert_ptr_equal(a, layout_blocked(&pool, 1, (i32[]){128}, one, lanes, warps, order));
	assert_ptr_not_equal(a, layout_blocked(&pool, 1, (i32[]){256}, one, lanes, warps, order));
}

/* --- linear algebra ------------------------------------------------------------------------------------------ */

/* Against the span enumerated outright, on every set of up to four 4-bit vectors. */
static void test_gf2(void **state)
{
	(void)state;
	for (u32 set = 0; set < 1u << 16; set++) {
		u32 v[4] = {set & 15, set >> 4 & 15, set >> 8 & 15, set >> 12};
		struct gf2 g = {0};
		bool in_span[16] = {true};
		for (int i = 0; i < 4; i++) {
			assert_int_equal(gf2_add(&g, v[i]), !in_span[v[i]]);
			bool next[16];
			for (u32 x = 0; x < 16; x++)
				next[x] = in_span[x] || in_span[x ^ v[i]];
			memcpy(in_span, next, sizeof next);
		}
		for (u32 x = 0; x < 16; x++) {
			u32 combo, sum = 0;
			assert_int_equal(gf2_solve(&g, x, &combo), in_span[x]);
			for (int i = 0; i < 4; i++)
				sum ^= combo >> i & 1 ? v[i] : 0;
			if (in_span[x])
				assert_int_equal(sum, x);
		}
	}
}

static int teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

/* The byte address of each element, computed as the PTX ISA describes the swizzling modes: 16-byte units of rows of 32,
 * 64 or 128 bytes change places by XOR of address bits 4 to 6 with bits 7 to 9. */
static void test_swizzled(void **state)
{
	(void)state;
	for (int elem_bits = 8; elem_bits <= 32; elem_bits *= 2)
		for (int rows = 8; rows <= 256; rows *= 2)
			for (int cols = 256 / elem_bits; cols <= 256; cols *= 2)
				for (int along = 0; along < 2; along++) {
					i32 shape[2] = {along ? rows : cols, along ? cols : rows};
					const struct layout *l = layout_swizzled(&pool, 2, shape, along, elem_bits);
					u32 bytes = (u32)elem_bits / 8,
					    width = (u32)cols * bytes < 128 ? (u32)cols * bytes : 128;
					assert_int_equal(l->bits[LL_OFFSET], layout_tile_bits(l));
					for (u32 at = 0; at < (u32)(rows * cols); at++) {
						u32 pos = layout_apply(l, at, 0, 0), row = dim_of(l, pos, 1 - along),
						    col = dim_of(l, pos, along) * bytes;
						u32 address =
							col / width * width * (u32)rows + row * width + col % width;
						address ^= (address >> 7 & (width / 16 - 1)) << 4;
						assert_int_equal(at * bytes, address);
					}
				}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocked_covers),	   cmocka_unit_test(test_blocked_definition),
		cmocka_unit_test(test_mma_fragments),	   cmocka_unit_test(test_mma_warps),
		cmocka_unit_test(test_swizzled),
		cmocka_unit_test(test_transformations),	   cmocka_unit_test(test_reshape_keeps_positions),
		cmocka_unit_test(test_interning),	   cmocka_unit_test(test_gf2),
	};
	return cmocka_run_group_tests(tests, NULL, teardown);
}

/* Conversions between layouts: every pair out of a few hundred layouts, carried out element by element as the generated
 * code would, and the bank conflicts of the shared-memory route counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layout/conversion.h"

static struct arena arena;
static struct layout_pool pool = {.arena = &arena};

enum { LANES = 32 };

struct list {
	const struct layout *at[4096];
	int n;
};

static void add(struct list *l, const struct layout *x)
{
	for (int i = 0; i < l->n; i++)
		if (l->at[i] == x)
			return;
	assert_true(l->n < (int)ARRAY_LEN(l->at));
	l->at[l->n++] = x;
}

/* Distinct layouts of an m×n tile on `warps` warps: blocked ones, fragments, operands and their transposes. */
static struct list layouts_of(int m, int n, int warps, int max_spt)
{
	struct list l = {0};
	i32 shape[2] = {m, n}, turned[2] = {n, m};
	for (int o = 0; o < 2; o++)
		for (int s0 = 1; s0 <= max_spt; s0 *= 2)
			for (int s1 = 1; s1 <= max_spt; s1 *= 2)
				for (int l0 = 1; l0 <= 32; l0 *= 2)
					for (int w0 = 1; w0 <= warps; w0 *= 2)
						add(&l, layout_blocked(&pool, 2, shape, (int[]){s0, s1},
								       (int[]){l0, 32 / l0}, (int[]){w0, warps / w0},
								       (int[]){o, 1 - o}));
	for (int w0 = 1; w0 <= warps; w0 *= 2) {
		int ws[2] = {w0, warps / w0};
		for (int im = 8; im <= 16; im += 8) {
			add(&l, layout_mma(&pool, 2, shape, ws, im, 8));
			add(&l, layout_trans(&pool, layout_mma(&pool, 2, turned, ws, im, 8), (int[]){1, 0}));
			for (int operand = 0; operand < 2; operand++)
				for (int bits = 8; bits <= 32; bits *= 2) {
					add(&l, layout_dot_operand(&pool, 2, shape, operand, ws, im, bits));
					add(&l,
					    layout_trans(&pool,
							 layout_dot_operand(&pool, 2, turned, operand, ws, im, bits),
							 (int[]){1, 0}));
				}
		}
	}
	return l;
}

/* --- registers and shuffles ---------------------------------------------------------------------------------- */

/* Every destination finds its element where the plan says. */
static void check_plan(const struct layout *src, const struct layout *dst, const struct conversion *c)
{
	for (u32 w = 0; w < 1u << dst->bits[LL_WARP]; w++)
		for (u32 t = 0; t < LANES; t++)
			for (u32 q = 0; q < (u32)layout_num_regs(dst); q++) {
				u32 lane = linear(c->lane_of_reg, q) ^ linear(c->lane_of_lane, t);
				u32 reg = linear(c->reg_of_reg, q) ^ linear(c->sent, lane);
				assert_true(reg < (u32)layout_num_regs(src));
				assert_int_equal(layout_apply(dst, q ^ linear(c->moved, t), t, w),
						 layout_apply(src, reg, lane, w));
				if (c->kind == CONVERSION_REGISTERS)
					assert_int_equal(lane, t);
			}
}

static void test_all_pairs(void **state)
{
	(void)state;
	static const struct {
		int m, n, warps, spt;
	} tiles[] = {{16, 32, 1, 4}, {32, 16, 2, 4}, {4, 8, 1, 2}, {1, 64, 2, 2}, {64, 16, 4, 2}};
	int kinds[CONVERSION_WARP_MEMORY] = {0}, exchanges = 0;
	for (u32 i = 0; i < ARRAY_LEN(tiles); i++) {
		struct list l = layouts_of(tiles[i].m, tiles[i].n, tiles[i].warps, tiles[i].spt);
		for (int a = 0; a < l.n; a++)
			for (int b = 0; b < l.n; b++) {
				struct conversion c = plan_conversion(l.at[a], l.at[b]);
				kinds[c.kind]++;
				exchanges += linear(c.moved, 31) != 0;
				if (c.kind != CONVERSION_MEMORY)
					check_plan(l.at[a], l.at[b], &c);
				if (a == b)
					assert_int_equal(c.kind, CONVERSION_REGISTERS);
			}
	}
	print_message("%d by registers, %d by shuffles, %d by shared memory, %d exchanges\n",
		      kinds[CONVERSION_REGISTERS], kinds[CONVERSION_SHUFFLES], kinds[CONVERSION_MEMORY], exchanges);
	assert_true(kinds[CONVERSION_REGISTERS] > 100 && exchanges > 1000 && kinds[CONVERSION_MEMORY] > 1000);
}

/* Each piece is a conversion of a part of the tile, the same part on both sides, and together they are all of it. */
static void check_pieces(const struct layout *src, const struct layout *dst, const struct pieces *p)
{
	static u32 place[1 << 12]; /* in its piece, and which that is, plus one */
	memset(place, 0, sizeof place);
	for (int side = 0; side < 2; side++) {
		const struct layout *whole = side ? dst : src, *part = side ? p->dst : p->src;
		const u8 *regs = side ? p->dst_reg : p->src_reg;
		assert_int_equal(layout_num_regs(part) << p->bits, layout_num_regs(whole));
		for (u32 i = 0; i < 1u << p->bits; i++)
			for (u32 r = 0; r < (u32)layout_num_regs(part); r++)
				for (u32 w = 0; w < 1u << part->bits[LL_WARP]; w++)
					for (u32 t = 0; t < LANES; t++) {
						u32 *at = &place[layout_apply(
							whole, piece_register(regs, p->bits, i, r), t, w)];
						u32 here = i << 16 | (layout_apply(part, r, t, w) + 1);
						if (side || *at)
							assert_int_equal(*at, here);
						*at = here;
					}
	}
	for (u32 i = 0; i < 1u << layout_tile_bits(src); i++)
		assert_true(place[i]);
}

static void test_pieces(void **state)
{
	(void)state;
	int split = 0, fit = 0;
	for (int bits = 8; bits <= 64; bits *= 2)
		for (int most = 256; most <= 1024; most *= 2) {
			struct list l = layouts_of(64, 16, 2, 2);
			for (int a = 0; a < l.n; a += 13)
				for (int b = 0; b < l.n; b += 2) {
					struct pieces p = plan_pieces(&pool, l.at[a], l.at[b], bits, most);
					check_pieces(l.at[a], l.at[b], &p);
					split += p.bits > 0;
					fit += bits << layout_tile_bits(p.src) <= 8 * most;
					/* no more than needed */
					assert_true(!p.bits || bits << (layout_tile_bits(p.src) + 1) > 8 * most);
				}
		}
	print_message("%d in pieces, %d fit\n", split, fit);
	assert_true(split > 1000 && fit > 1000);
}

/* What a thread or its warp already holds never goes through memory, up to the number of selects we allow. */
static void test_cheapest_route(void **state)
{
	(void)state;
	i32 shape[2] = {32, 32};
	const struct layout *rows =
		layout_blocked(&pool, 2, shape, (int[]){1, 4}, (int[]){4, 8}, (int[]){4, 1}, (int[]){1, 0});
	const struct layout *swapped =
		layout_blocked(&pool, 2, shape, (int[]){1, 4}, (int[]){4, 8}, (int[]){4, 1}, (int[]){0, 1});
	const struct layout *narrow =
		layout_blocked(&pool, 2, shape, (int[]){1, 2}, (int[]){4, 8}, (int[]){4, 1}, (int[]){1, 0});
	const struct layout *cols =
		layout_blocked(&pool, 2, shape, (int[]){1, 4}, (int[]){4, 8}, (int[]){1, 4}, (int[]){1, 0});
	assert_int_equal(plan_conversion(rows, swapped).kind, CONVERSION_SHUFFLES);
	assert_int_equal(plan_conversion(rows, narrow).kind, CONVERSION_SHUFFLES);
	assert_int_equal(plan_conversion(rows, cols).kind, CONVERSION_MEMORY);
	/* attention: the first product's accumulator is the second's operand without leaving the thread */
	int warps[2] = {4, 1};
	const struct layout *acc = layout_mma(&pool, 2, (i32[]){64, 32}, warps, 16, 8);
	assert_int_equal(plan_conversion(acc, layout_dot_operand(&pool, 2, (i32[]){64, 32}, 0, warps, 16, 16)).kind,
			 CONVERSION_REGISTERS);
}

/* A layout of `len` elements with these bases, one of registers, of the first lane and of the only warp bit each. */
static const struct layout *line_of(int len, u32 reg, u32 lane, u32 warp)
{
	struct layout l = layout_empty(1, (i32[]){len});
	if (reg)
		l.basis[LL_REG][l.bits[LL_REG]++] = reg;
	l.basis[LL_LANE][0] = lane;
	l.bits[LL_LANE] = 5;
	l.basis[LL_WARP][l.bits[LL_WARP]++] = warp;
	return layout_intern(&pool, &l);
}

/* Warps need not wait for each other where each has elements of its own, and the same before and after: not if they
 * have copies, or if what belongs to a warp differs. */
static void test_warps_apart(void **state)
{
	(void)state;
	assert_true(warps_apart(line_of(8, 1, 2, 4), line_of(8, 2, 1, 4)));
	assert_true(warps_apart(line_of(4, 1, 0, 2), line_of(4, 0, 1, 2)));
	assert_false(warps_apart(line_of(4, 1, 2, 0), line_of(4, 2, 1, 0)));
	assert_false(warps_apart(line_of(4, 1, 2, 3), line_of(4, 2, 1, 3)));
	assert_false(warps_apart(line_of(8, 1, 2, 4), line_of(8, 5, 2, 4)));
	assert_false(warps_apart(line_of(8, 1, 2, 4), line_of(8, 1, 4, 2)));
}

/* --- shared memory ------------------------------------------------------------------------------------------- */

/* Wavefronts of one access by a warp: as many as the most loaded bank has different words. *least: as few as there
 * could be. */
static int wavefronts(const u32 *byte_of_lane, int bytes, int *least)
{
	u32 words[32][4 * LANES];
	int count[32] = {0}, worst = 0, all = 0;
	for (int t = 0; t < LANES; t++)
		for (int b = 0; b < bytes; b += MIN(bytes, 4)) {
			u32 word = (byte_of_lane[t] + (u32)b) / 4, bank = word % 32;
			bool known = false;
			for (int i = 0; i < count[bank]; i++)
				known |= words[bank][i] == word;
			if (known)
				continue;
			words[bank][count[bank]++] = word;
			worst = MAX(worst, count[bank]);
			all++;
		}
	*least = (all + 31) / 32;
	return worst;
}

/* Wavefronts that a whole tile takes, and the accesses it takes them in. `vec_bits` from the map. */
static void count_accesses(const struct layout *l, const struct memory_map *m, int elem_bits, int *waves, int *least)
{
	int bytes = (elem_bits << m->vec_bits) / 8, skip = 0;
	for (int i = 0; i < m->vec_bits; i++)
		skip |= 1 << m->vec_reg[i];
	*waves = *least = 0;
	for (u32 r = 0; r < (u32)layout_num_regs(l); r++) { /* other warps differ by a constant */
		u32 at[LANES];
		if (r & (u32)skip)
			continue;
		for (u32 t = 0; t < LANES; t++)
			at[t] = (linear(m->basis[LL_REG], r) ^ linear(m->basis[LL_LANE], t)) * (u32)elem_bits / 8;
		int few;
		*waves += wavefronts(at, bytes, &few);
		*least += few;
	}
}

static void check_addresses(const struct layout *l, const struct layout *mem, const struct memory_map *m)
{
	for (u32 w = 0; w < 1u << l->bits[LL_WARP]; w++)
		for (u32 t = 0; t < LANES; t++)
			for (u32 r = 0; r < (u32)layout_num_regs(l); r++) {
				u32 offset = linear(m->basis[LL_REG], r) ^ linear(m->basis[LL_LANE], t) ^
					     linear(m->basis[LL_WARP], w);
				assert_int_equal(linear(mem->basis[LL_OFFSET], offset), layout_apply(l, r, t, w));
			}
	for (int i = 0; i < m->vec_bits; i++)
		assert_int_equal(m->basis[LL_REG][m->vec_reg[i]], 1u << i);
}

/* The eight rows of a matrix lie in different banks. */
static int matrix_conflicts(const struct layout *l, const struct memory_map *m, int elem_bits, enum matrix_kind how)
{
	int bad = 0, per_reg = ilog2(32 / (u64)elem_bits);
	for (u32 w = 0; w < 1u << l->bits[LL_WARP]; w++)
		for (u32 r = 0; r < (u32)layout_num_regs(l); r++) {
			u32 banks = 0;
			for (u32 i = 0; i < 8; i++) {
				u32 lane = how == MATRIX_PLAIN ? i << 2 : i >> 1, reg = how == MATRIX_PLAIN ? 0 : i & 1;
				u32 at = linear(m->basis[LL_REG], (r & ~((1u << per_reg) - 1)) ^ reg) ^
					 linear(m->basis[LL_LANE], lane) ^ linear(m->basis[LL_WARP], w);
				banks |= 1u << (at * (u32)elem_bits / 8 / 16 % 8);
			}
			bad += banks != 0xff;
		}
	return bad;
}

/* Each thread finds its 4 bytes where ldmatrix puts them: in 16-byte rows whose parts go to four lanes in order, or
 * whose elements to eight. */
static bool has_rows(const struct layout *l, const struct memory_map *m, int elem_bits, enum matrix_kind how)
{
	u32 per_word = 32 / (u32)elem_bits, mask = 128 / (u32)elem_bits - 1;
	for (u32 w = 0; w < 1u << l->bits[LL_WARP]; w++)
		for (u32 t = 0; t < LANES; t++)
			for (u32 r = 0; r < (u32)layout_num_regs(l); r++) {
				u32 at = linear(m->basis[LL_REG], r) ^ linear(m->basis[LL_LANE], t) ^
					 linear(m->basis[LL_WARP], w);
				if ((at & mask) != (how == MATRIX_PLAIN ? t % 4 * per_word + r % per_word : t / 4))
					return false;
			}
	return true;
}

/* Wavefronts beyond the least that one side of a plan takes. */
static int excess(const struct layout *l, const struct layout *mem, int elem_bits, enum matrix_kind how)
{
	int waves, least;
	struct memory_map m = map_to_memory(l, mem, how ? 0 : ilog2(128 / (u64)elem_bits));
	check_addresses(l, mem, &m);
	if (how) {
		assert_true(has_rows(l, &m, elem_bits, how));
		return matrix_conflicts(l, &m, elem_bits, how);
	}
	count_accesses(l, &m, elem_bits, &waves, &least);
	return waves - least;
}

/* A memory layout must hold each element once, and both sides must find it, without bank conflicts on either, whatever
 * the pair. */
static void test_shared_pairs(void **state)
{
	(void)state;
	static const struct {
		int m, n, warps, spt, elem_bits;
	} tiles[] = {{32, 32, 2, 4, 32}, {32, 64, 2, 8, 16}, {64, 16, 4, 2, 8}, {16, 16, 1, 2, 64}, {1, 128, 4, 2, 16}};
	int pairs = 0, loads = 0, stores = 0, both = 0, conflicts = 0;
	for (u32 i = 0; i < ARRAY_LEN(tiles); i++) {
		struct list l = layouts_of(tiles[i].m, tiles[i].n, tiles[i].warps, tiles[i].spt);
		int bits = tiles[i].elem_bits;
		for (int a = 0; a < l.n; a += (l.n > 150 ? 3 : 1))
			for (int b = 0; b < l.n; b += (l.n > 150 ? 3 : 1))
				for (int stmatrix = 0; stmatrix < 2; stmatrix++) {
					struct shared_plan plan = plan_shared(&pool, l.at[a], l.at[b], bits, stmatrix);
					pairs++;
					loads += !plan.store && plan.load;
					stores += plan.store && !plan.load;
					both += plan.store && plan.load;
					assert_true(stmatrix || !plan.store);
					conflicts += excess(l.at[a], plan.mem, bits, plan.store) > 0;
					conflicts += excess(l.at[b], plan.mem, bits, plan.load) > 0;
				}
	}
	print_message("%d pairs, %d by ldmatrix, %d by stmatrix, %d by both, %d with conflicts\n", pairs, loads, stores,
		      both, conflicts);
	assert_true(loads > 1000 && stores > 1000 && both > 50);
	assert_int_equal(conflicts, 0);
}

/* Tiles as a matmul loads them: coalesced 16-byte vectors, read by ldmatrix, no conflicts on either side, for all
 * tile sizes, both storage orders, both operands. */
static void test_matmul_operands(void **state)
{
	(void)state;
	int checked = 0;
	for (int m = 32; m <= 256; m *= 2)
		for (int k = 32; k <= 128; k *= 2)
			for (int operand = 0; operand < 2; operand++)
				for (int k_contiguous = 0; k_contiguous < 2; k_contiguous++) {
					i32 shape[2] = {operand == 0 ? m : k, operand == 0 ? k : m};
					int fast = (operand == 0) == k_contiguous, side = shape[fast],
					    order[2] = {fast, 1 - fast};
					int spt[2] = {1, 1}, lanes[2], warps[2] = {1, 1};
					spt[fast] = 8;
					lanes[fast] = MIN(side / 8, 32);
					lanes[1 - fast] = 32 / lanes[fast];
					warps[1 - fast] = MIN(4, shape[1 - fast] / lanes[1 - fast]);
					warps[fast] = 4 / warps[1 - fast];
					const struct layout *src =
						layout_blocked(&pool, 2, shape, spt, lanes, warps, order);
					const struct layout *dst =
						layout_dot_operand(&pool, 2, shape, operand, (int[]){2, 2}, 16, 16);
					const struct shared_plan plan = plan_shared(&pool, src, dst, 16, true);
					const struct layout *mem = plan.mem;
					const enum matrix_kind how = plan.load;
					assert_int_equal(plan.store, MATRIX_NONE);
					assert_int_equal(how, k_contiguous ? MATRIX_PLAIN : MATRIX_TRANS);
					struct memory_map in = map_to_memory(src, mem, 3),
							  out = map_to_memory(dst, mem, 0);
					assert_int_equal(in.vec_bits, 3);
					int waves, least;
					count_accesses(src, &in, 16, &waves, &least);
					assert_int_equal(waves, least);
					assert_int_equal(matrix_conflicts(dst, &out, 16, how), 0);
					checked++;
				}
	assert_int_equal(checked, 4 * 3 * 2 * 2);
}

/* Operands of multiply-adds, copied by 16 bytes of either dimension: a thread reads all k of the rows, or columns, of
 * its results, by 16 bytes too, and no bank is wanted twice. */
static void test_fma_operands(void **state)
{
	(void)state;
	static const struct {
		int side, k, lanes, warps;
	} tiles[] = {{128, 16, 4, 2}, {128, 16, 8, 4}, {64, 32, 4, 4}, {64, 32, 8, 1}};
	for (u32 i = 0; i < 4 * ARRAY_LEN(tiles); i++) {
		int other = i & 1, fast = i & 2 ? 1 - other : other, side = tiles[i / 4].side, k = tiles[i / 4].k;
		int lanes = tiles[i / 4].lanes, warps = tiles[i / 4].warps, by_lanes[2], by_warps[2], spt[2] = {1, 1},
		    copy[2], rows[2];
		i32 acc_shape[2] = {side, side}, shape[2];
		by_lanes[other] = lanes, by_lanes[1 - other] = 32 / lanes;
		by_warps[other] = warps, by_warps[1 - other] = 4 / warps;
		shape[other] = side, shape[1 - other] = k;
		const struct layout *acc =
			layout_blocked(&pool, 2, acc_shape, (int[]){4, 4}, by_lanes, by_warps, (int[]){1, 0});
		const struct layout *dst = layout_fma_operand(&pool, acc, shape, other);
		for (u32 t = 0; t < LANES; t++)
			for (u32 w = 0; w < 4; w++) {
				u32 here = layout_apply(dst, 0, t, w),
				    there = layout_apply(acc, 0, t, w) & layout_dim_mask(acc, other);
				assert_int_equal(here & ~layout_dim_mask(dst, other), 0);
				assert_int_equal(here >> layout_dim_shift(dst, other),
						 there >> layout_dim_shift(acc, other));
			}
		assert_int_equal(layout_num_regs(dst), k * side / (lanes * warps));
		spt[fast] = 4;
		copy[fast] = MIN(shape[fast] / 4, 32);
		copy[1 - fast] = 32 / copy[fast];
		rows[fast] = 1, rows[1 - fast] = 4;
		const struct layout *src = layout_blocked(&pool, 2, shape, spt, copy, rows, (int[]){fast, 1 - fast});
		const struct layout *mem = plan_shared(&pool, src, dst, 32, false).mem;
		struct memory_map in = map_to_memory(src, mem, 2), out = map_to_memory(dst, mem, 2);
		assert_int_equal(in.vec_bits, 2);
		assert_int_equal(out.vec_bits, 2);
		assert_int_equal(excess(src, mem, 32, MATRIX_NONE), 0);
		assert_int_equal(excess(dst, mem, 32, MATRIX_NONE), 0);
	}
}

static int teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_pairs), cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_cheapest_route),
		cmocka_unit_test(test_warps_apart),
		cmocka_unit_test(test_shared_pairs),
		cmocka_unit_test(test_matmul_operands),
		cmocka_unit_test(test_fma_operands),
	};
	return cmocka_run_group_tests(tests, NULL, teardown);
}

/* ldmatrix, stmatrix, movmatrix and mma: matrices are spread over registers by the formulas of the PTX ISA's tables of
 * fragments, and products computed in double or in 64-bit integers. */
#include "test_sim_matrix.h"

/* --- mma --------------------------------------------------------------------------------------------------------- */

struct shape {
	u32 m, k;
	enum ptx_type a, b, c;
	const char *target;
};

/* The ISA's formulas. Element i of a lane's fragment, `per` elements in a register. */
static void place_a(u32 lane, u32 i, u32 per, u32 *row, u32 *col)
{
	u32 r = i / per;
	*row = lane / 4 + (r % 2 ? 8 : 0);
	*col = lane % 4 * per + i % per + r / 2 * 4 * per;
}
static void place_b(u32 lane, u32 i, u32 per, u32 *row, u32 *col)
{
	*row = lane % 4 * per + i % per + i / per * 4 * per;
	*col = lane / 4;
}
static void place_c(u32 lane, u32 i, u32 *row, u32 *col)
{
	*row = lane / 4 + (i < 2 ? 0 : 8);
	*col = lane % 4 * 2 + (i & 1);
}

static int reg_bits(enum ptx_type t)
{
	return bits_of(t) == 64 ? 64 : 32;
}

static void set_element(struct bench *b, enum ptx_type t, u32 first_slot, u32 lane, u32 i, u64 bits)
{
	u32 per = (u32)(reg_bits(t) / bits_of(t));
	u64 *v = &b->slot[first_slot + i / per][lane];
	u64 mask = bits_of(t) == 64 ? ~0ull : ((u64)1 << bits_of(t)) - 1;
	u32 shift = i % per * (u32)bits_of(t);
	*v = (*v & ~(mask << shift)) | bits << shift;
}
static u64 get_element(const struct bench *b, enum ptx_type t, u32 first_slot, u32 lane, u32 i)
{
	u32 per = (u32)(reg_bits(t) / bits_of(t));
	u64 mask = bits_of(t) == 64 ? ~0ull : ((u64)1 << bits_of(t)) - 1;
	return b->slot[first_slot + i / per][lane] >> i % per * (u32)bits_of(t) & mask;
}

enum { A_SLOT, B_SLOT = 16, C_SLOT = 24, D_SLOT = 32, N = 8 };

static u32 nregs(u32 elements, enum ptx_type t)
{
	return elements / 32 * (u32)bits_of(t) / (u32)reg_bits(t);
}

static void write_mma(struct bench *b, const struct shape *s, const char *flags, bool in_place)
{
	u32 na = nregs(s->m * s->k, s->a), nb = nregs(s->k * N, s->b), nc = nregs(s->m * N, s->c);
	for (u32 r = 0; r < na; r++)
		load_slot(b, reg_bits(s->a), A_SLOT + r, A_SLOT + r);
	for (u32 r = 0; r < nb; r++)
		load_slot(b, reg_bits(s->b), B_SLOT + r, B_SLOT + r);
	for (u32 r = 0; r < nc; r++)
		load_slot(b, reg_bits(s->c), C_SLOT + r, C_SLOT + r);
	u32 d = in_place ? C_SLOT : D_SLOT;
	sb_printf(&b->text, "mma.sync.aligned.m%un8k%u.row.col%s.%s.%s.%s.%s ", s->m, s->k, flags, ptx_type_name(s->c),
		  ptx_type_name(s->a), ptx_type_name(s->b), ptx_type_name(s->c));
	print_registers(&b->text, reg_bits(s->c), d, nc);
	sb_puts(&b->text, ", ");
	print_registers(&b->text, reg_bits(s->a), A_SLOT, na);
	sb_puts(&b->text, ", ");
	print_registers(&b->text, reg_bits(s->b), B_SLOT, nb);
	sb_puts(&b->text, ", ");
	print_registers(&b->text, reg_bits(s->c), C_SLOT, nc);
	sb_puts(&b->text, ";\n");
	for (u32 r = 0; r < nc; r++)
		store_slot(b, reg_bits(s->c), d + r, D_SLOT + r);
}

struct matrices {
	u64 a[16][32], b[32][8], c[16][8];
};

static void fill(struct bench *bench, const struct shape *s, struct matrices *m, bool whole)
{
	u32 row, col;
	for (u32 r = 0; r < 16; r++)
		for (u32 k = 0; k < 32; k++)
			m->a[r][k] = random_element(s->a, whole);
	for (u32 k = 0; k < 32; k++)
		for (u32 n = 0; n < 8; n++)
			m->b[k][n] = random_element(s->b, whole);
	for (u32 r = 0; r < 16; r++)
		for (u32 n = 0; n < 8; n++)
			m->c[r][n] = random_element(s->c, whole);
	for (u32 l = 0; l < 32; l++) {
		for (u32 i = 0; i < s->m * s->k / 32; i++) {
			place_a(l, i, (u32)(reg_bits(s->a) / bits_of(s->a)), &row, &col);
			set_element(bench, s->a, A_SLOT, l, i, m->a[row][col]);
		}
		for (u32 i = 0; i < s->k * N / 32; i++) {
			place_b(l, i, (u32)(reg_bits(s->b) / bits_of(s->b)), &row, &col);
			set_element(bench, s->b, B_SLOT, l, i, m->b[row][col]);
		}
		for (u32 i = 0; i < s->m * N / 32; i++) {
			place_c(l, i, &row, &col);
			set_element(bench, s->c, C_SLOT, l, i, m->c[row][col]);
		}
	}
}

static void compare(const struct bench *bench, const struct shape *s, const struct matrices *m, bool whole)
{
	u32 row, col;
	for (u32 l = 0; l < 32; l++)
		for (u32 i = 0; i < s->m * N / 32; i++) {
			place_c(l, i, &row, &col);
			double want = value_of(s->c, m->c[row][col]), magnitude = fabs(want);
			for (u32 k = 0; k < s->k; k++) {
				double p = value_of(s->a, m->a[row][k]) * value_of(s->b, m->b[k][col]);
				want += p;
				magnitude += fabs(p);
			}
			double got = value_of(s->c, get_element(bench, s->c, D_SLOT, l, i));
			if (!(fabs(got - want) <= tolerance(s->c, whole, magnitude)))
				fail_msg("m%uk%u %s %s %s: [%u][%u] is %g, want %g", s->m, s->k, ptx_type_name(s->a),
					 ptx_type_name(s->b), ptx_type_name(s->c), row, col, got, want);
		}
}

static const struct shape shapes[] = {
	{16, 8, PT_F16, PT_F16, PT_F32, "sm_75"},    {16, 8, PT_F16, PT_F16, PT_F16, "sm_75"},
	{16, 16, PT_F16, PT_F16, PT_F32, "sm_80"},   {16, 16, PT_F16, PT_F16, PT_F16, "sm_80"},
	{16, 8, PT_BF16, PT_BF16, PT_F32, "sm_80"},  {16, 16, PT_BF16, PT_BF16, PT_F32, "sm_80"},
	{16, 4, PT_TF32, PT_TF32, PT_F32, "sm_80"},  {16, 8, PT_TF32, PT_TF32, PT_F32, "sm_80"},
	{8, 4, PT_F64, PT_F64, PT_F64, "sm_80"},     {16, 4, PT_F64, PT_F64, PT_F64, "sm_90"},
	{16, 8, PT_F64, PT_F64, PT_F64, "sm_90"},    {16, 16, PT_F64, PT_F64, PT_F64, "sm_90"},
	{8, 16, PT_S8, PT_S8, PT_S32, "sm_75"},      {8, 16, PT_U8, PT_S8, PT_S32, "sm_75"},
	{16, 16, PT_S8, PT_U8, PT_S32, "sm_80"},     {16, 16, PT_U8, PT_U8, PT_S32, "sm_80"},
	{16, 32, PT_S8, PT_S8, PT_S32, "sm_80"},     {16, 32, PT_U8, PT_S8, PT_S32, "sm_80"},
	{16, 16, PT_E4M3, PT_E5M2, PT_F32, "sm_89"}, {16, 16, PT_E5M2, PT_E5M2, PT_F16, "sm_89"},
	{16, 32, PT_E4M3, PT_E4M3, PT_F32, "sm_89"}, {16, 32, PT_E4M3, PT_E5M2, PT_F32, "sm_89"},
	{16, 32, PT_E5M2, PT_E4M3, PT_F16, "sm_90"}, {16, 32, PT_E4M3, PT_E4M3, PT_F16, "sm_90"},
};

static void test_mma(void **state)
{
	(void)state;
	struct matrices m;
	for (u32 n = 0; n < ARRAY_LEN(shapes); n++)
		for (u32 kind = 0; kind < 4; kind++) {
			struct bench *b = bench_new(shapes[n].target, LANES);
			bool whole = kind & 1;
			fill(b, &shapes[n], &m, whole);
			write_mma(b, &shapes[n], "", kind & 2);
			expect_ok(b);
			compare(b, &shapes[n], &m, whole);
			bench_free(b);
		}
}

/* Sums beyond 32 bits. */
static void test_mma_overflow(void **state)
{
	(void)state;
	for (u32 sat = 0; sat < 2; sat++) {
		struct shape s = {16, 32, PT_U8, PT_S8, PT_S32, "sm_80"};
		struct matrices m;
		struct bench *b = bench_new(s.target, LANES);
		fill(b, &s, &m, true);
		u32 row, col;
		for (u32 l = 0; l < 32; l++)
			for (u32 i = 0; i < 4; i++) {
				place_c(l, i, &row, &col);
				m.c[row][col] = (row & 1 ? 0x7FFFFFFF - random_bits() % 100000
							 : 0x80000000 + random_bits() % 100000);
				set_element(b, PT_S32, C_SLOT, l, i, m.c[row][col]);
			}
		write_mma(b, &s, sat ? ".satfinite" : "", true);
		expect_ok(b);
		for (u32 l = 0; l < 32; l++)
			for (u32 i = 0; i < 4; i++) {
				place_c(l, i, &row, &col);
				i64 sum = (i32)m.c[row][col];
				for (u32 k = 0; k < s.k; k++)
					sum += (i64)(u8)m.a[row][k] * (i8)m.b[k][col];
				i64 want = sat ? MIN(MAX(sum, INT32_MIN), INT32_MAX) : (i32)(u32)sum;
				assert_int_equal((i32)get_element(b, PT_S32, D_SLOT, l, i), want);
			}
		bench_free(b);
	}
}

/* Infinities, NaN, subnormals, the largest numbers. */
static void test_mma_specials(void **state)
{
	(void)state;
	const struct shape s = {16, 16, PT_F16, PT_F16, PT_F32, "sm_80"};
	struct bench *b = bench_new(s.target, LANES);
	for (u32 l = 0; l < 32; l++)
		for (u32 r = 0; r < 8; r++) {
			b->slot[A_SLOT + r][l] = 0;
			b->slot[C_SLOT + r][l] = 0;
			b->slot[B_SLOT + r][l] = 0x3C003C00;
		}
	const u32 row_of[] = {0, 1, 2, 3, 4, 5};
	const u64 in[] = {0x7C00, 0xFC00, 0x7E01, 0x0001, 0x7BFF, 0x8000},
		  want[] = {0x7F800000, 0xFF800000, 0x7FFFFFFF, 0x33800000, 0x477FE000, 0};
	for (u32 n = 0; n < 6; n++)
		set_element(b, PT_F16, A_SLOT, row_of[n] * 4, 0, in[n]);
	/* infinity minus infinity */
	set_element(b, PT_F16, A_SLOT, 6 * 4, 0, 0x7C00);
	set_element(b, PT_F32, C_SLOT, 6 * 4, 0, 0xFF800000);
	write_mma(b, &s, "", false);
	expect_ok(b);
	for (u32 n = 0; n < 6; n++)
		assert_int_equal(get_element(b, PT_F32, D_SLOT, n * 4, 0), want[n]);
	assert_int_equal(get_element(b, PT_F32, D_SLOT, 6 * 4, 0), 0x7FFFFFFF);
	assert_int_equal(get_element(b, PT_F32, D_SLOT, 6 * 4, 1), 0x7F800000);
	bench_free(b);
}

static void expect_refusal(const char *target, const char *instruction, const char *part)
{
	struct bench *b = bench_new(target, LANES);
	sb_printf(&b->text, "%s;\n", instruction);
	expect_fault(b, part);
}

static void test_refusals(void **state)
{
	(void)state;
	expect_refusal("sm_75",
		       "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1,%r2,%r3,%r4}, "
		       "{%r5,%r6,%r7,%r8}, {%r9,%r10}, "
		       "{%r1,%r2,%r3,%r4}",
		       "needs sm_80");
	expect_refusal("sm_80",
		       "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%r1,%r2,%r3,%r4}, "
		       "{%r5,%r6,%r7,%r8}, {%r9,%r10}, "
		       "{%r1,%r2,%r3,%r4}",
		       "needs sm_89");
	expect_refusal(
		"sm_90",
		"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1,%r2}, "
		"{%r5,%r6,%r7,%r8}, {%r9,%r10}, {%r1,%r2,%r3,%r4}",
		"takes 4, 4, 2 and 4 registers");
	expect_refusal("sm_90",
		       "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r1,%r2,%r3,%r4}, "
		       "{%r5,%r6,%r7,%r8}, {%r9,%r10}, "
		       "{%r1,%r2,%r3,%r4}",
		       "mma.sync");
	expect_refusal("sm_90",
		       "mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32 {%r1,%r2,%r3,%r4}, "
		       "{%r5,%r6,%r7,%r8}, {%r9,%r10}, "
		       "{%r1,%r2,%r3,%r4}",
		       "mma.sync");
	expect_refusal(
		"sm_90",
		"mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32 {%r1,%r2,%r3,%r4}, "
		"{%r5,%r6,%r7,%r8}, {%r9,%r10}, "
		"{%r1,%r2,%r3,%r4}",
		"mma.sync");
	expect_refusal("sm_90",
		       "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%r9,%r10}, "
		       "{%r1,%r2,%r3,%r4}, %r11, 0",
		       "mma.sp");
	expect_refusal("sm_80", "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2}", "needs sm_90");
	expect_refusal("sm_80", "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r2}, [%r1]", "takes 2 registers");
	expect_refusal("sm_90", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r2}, [%r1]", "ldmatrix");
}

static void test_missing_lanes(void **state)
{
	(void)state;
	struct bench *b = bench_new("sm_80", LANES);
	sb_puts(&b->text, "setp.lt.u32 %p1, %r399, 31;\n@%p1 movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r399;\n");
	expect_fault(b, "lane 31");
}

/* --- ldmatrix, stmatrix, movmatrix -------------------------------------------------------------------------------- */

enum { DATA_SLOT, ADDRESS_SLOT = 4, OUT_SLOT = 8, ROW_STRIDE = 48 };

/* Random rows of 16 bytes in shared memory, wherever the addresses of slot ADDRESS_SLOT say; %r20 has the addresses. */
static void fill_rows(struct bench *b, u16 rows[32][8])
{
	u32 order[32];
	for (u32 r = 0; r < 32; r++)
		order[r] = r;
	for (u32 r = 31; r; r--) {
		u32 other = (u32)(random_bits() % (r + 1)), was = order[r];
		order[r] = order[other];
		order[other] = was;
	}
	b->dynamic_shared = 32 * ROW_STRIDE;
	for (u32 r = 0; r < 32; r++) {
		for (u32 k = 0; k < 8; k++)
			rows[r][k] = (u16)random_bits();
		for (u32 k = 0; k < 4; k++)
			b->slot[DATA_SLOT + k][r] = rows[r][2 * k] | (u32)rows[r][2 * k + 1] << 16;
		b->slot[ADDRESS_SLOT][r] = order[r] * ROW_STRIDE;
	}
	load_slot(b, 32, 21, ADDRESS_SLOT);
	sb_puts(&b->text, "mov.u32 %r22, sh;\nadd.s32 %r20, %r21, %r22;\n");
	for (u32 k = 0; k < 4; k++) {
		load_slot(b, 32, k, DATA_SLOT + k);
		sb_printf(&b->text, "st.shared.b32 [%%r20+%u], %%r%u;\n", 4 * k, k);
	}
	sb_puts(&b->text, "bar.sync 0;\n");
}

static void test_ldmatrix(void **state)
{
	(void)state;
	for (u32 n = 1; n <= 4; n *= 2)
		for (u32 trans = 0; trans < 2; trans++)
			for (u32 generic = 0; generic < 2; generic++) {
				u16 rows[32][8];
				struct bench *b = bench_new("sm_75", LANES);
				fill_rows(b, rows);
				if (generic)
					sb_puts(&b->text, "cvt.u64.u32 %rd9, %r20;\ncvta.shared.u64 %rd10, %rd9;\n");
				sb_printf(&b->text, "ldmatrix.sync.aligned.m8n8.x%u%s%s.b16 ", n, trans ? ".trans" : "",
					  generic ? "" : ".shared");
				print_registers(&b->text, 32, 10, n);
				sb_printf(&b->text, ", [%s];\n", generic ? "%rd10" : "%r20");
				for (u32 m = 0; m < n; m++)
					store_slot(b, 32, 10 + m, OUT_SLOT + m);
				expect_ok(b);
				for (u32 m = 0; m < n; m++)
					for (u32 l = 0; l < 32; l++)
						for (u32 e = 0; e < 2; e++) {
							u32 along = l % 4 * 2 + e, across = l / 4;
							u16 want = trans ? rows[8 * m + along][across]
									 : rows[8 * m + across][along];
							assert_int_equal((u16)(b->slot[OUT_SLOT + m][l] >> 16 * e),
									 want);
						}
				bench_free(b);
			}
}

static void test_stmatrix(void **state)
{
	(void)state;
	for (u32 n = 1; n <= 4; n *= 2)
		for (u32 trans = 0; trans < 2; trans++) {
			u16 rows[32][8];
			struct bench *b = bench_new("sm_90", LANES);
			fill_rows(b, rows);
			for (u32 m = 0; m < n; m++) {
				for (u32 l = 0; l < 32; l++)
					b->slot[20 + m][l] = random_bits() & 0xFFFFFFFF;
				load_slot(b, 32, 10 + m, 20 + m);
			}
			sb_printf(&b->text, "stmatrix.sync.aligned.m8n8.x%u%s.shared.b16 [%%r20], ", n,
				  trans ? ".trans" : "");
			print_registers(&b->text, 32, 10, n);
			sb_puts(&b->text, ";\nbar.sync 0;\n");
			for (u32 k = 0; k < 4; k++) {
				sb_printf(&b->text, "ld.shared.b32 %%r30, [%%r20+%u];\n", 4 * k);
				store_slot(b, 32, 30, OUT_SLOT + k);
			}
			expect_ok(b);
			for (u32 m = 0; m < n; m++)
				for (u32 l = 0; l < 32; l++)
					for (u32 e = 0; e < 2; e++) {
						u32 along = l % 4 * 2 + e, across = l / 4;
						rows[8 * m + (trans ? along : across)][trans ? across : along] =
							(u16)(b->slot[20 + m][l] >> 16 * e);
					}
			for (u32 r = 0; r < 32; r++)
				for (u32 k = 0; k < 8; k++)
					assert_int_equal((u16)(b->slot[OUT_SLOT + k / 2][r] >> 16 * (k % 2)),
							 rows[r][k]);
			bench_free(b);
		}
}

static void test_rows_misused(void **state)
{
	(void)state;
	u16 rows[32][8];
	struct bench *b = bench_new("sm_90", LANES);
	fill_rows(b, rows);
	sb_puts(&b->text, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r20+8];\n");
	expect_fault(b, "misaligned");
	b = bench_new("sm_90", LANES);
	fill_rows(b, rows);
	sb_puts(&b->text, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r20+4096];\n");
	expect_fault(b, "outside shared memory");
	b = bench_new("sm_90", LANES);
	fill_rows(b, rows);
	sb_puts(&b->text, "ldmatrix.sync.aligned.m8n8.x1.b16 {%r10}, [%rd63];\n");
	expect_fault(b, "");
	b = bench_new("sm_90", LANES);
	fill_rows(b, rows);
	sb_puts(&b->text, "mov.u32 %r20, sh;\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [%r20], {%r399};\n");
	expect_fault(b, "another row with the same address");
}

/* Two warps store to the same rows: the same values, which is no race, or one bit of one lane differs. */
static void test_stored_twice(void **state)
{
	(void)state;
	for (u32 differs = 0; differs < 2; differs++) {
		struct bench *b = bench_new("sm_90", 2 * LANES);
		b->dynamic_shared = 32 * 16;
		sb_puts(&b->text, "and.b32 %r20, %r399, 31;\nshl.b32 %r20, %r20, 4;\n"
			"mov.u32 %r22, sh;\nadd.s32 %r20, %r20, %r22;\n");
		for (u32 m = 0; m < 4; m++) {
			for (u32 t = 0; t < 2 * LANES; t++)
				b->slot[m][t] = t < LANES ? random_bits() & 0xFFFFFFFF : b->slot[m][t - LANES];
			load_slot(b, 32, 10 + m, m);
		}
		b->slot[random_bits() % 4][random_bits() % (2 * LANES)] ^= (u64)differs << random_bits() % 32;
		sb_puts(&b->text, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r20], {%r10, %r11, %r12, %r13};\n");
		if (differs) {
			expect_fault(b, "race");
		} else {
			expect_ok(b);
			bench_free(b);
		}
	}
}

static void test_movmatrix(void **state)
{
	(void)state;
	struct bench *b = bench_new("sm_75", LANES);
	for (u32 l = 0; l < 32; l++)
		b->slot[0][l] = random_bits() & 0xFFFFFFFF;
	load_slot(b, 32, 1, 0);
	sb_puts(&b->text, "movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;\n");
	store_slot(b, 32, 2, OUT_SLOT);
	expect_ok(b);
	for (u32 row = 0; row < 8; row++)
		for (u32 col = 0; col < 8; col++) {
			u16 in = (u16)(b->slot[0][row * 4 + col / 2] >> 16 * (col % 2));
			assert_int_equal((u16)(b->slot[OUT_SLOT][col * 4 + row / 2] >> 16 * (row % 2)), in);
		}
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mma),           cmocka_unit_test(test_mma_overflow),
		cmocka_unit_test(test_mma_specials),  cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_missing_lanes), cmocka_unit_test(test_ldmatrix),
		cmocka_unit_test(test_stmatrix),      cmocka_unit_test(test_rows_misused),
		cmocka_unit_test(test_stored_twice),  cmocka_unit_test(test_movmatrix),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

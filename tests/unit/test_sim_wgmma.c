/* wgmma: operands in shared memory are laid out as a tensor copy with swizzling would leave them, or by hand as core
 * matrices; products are computed in double. Then what happens too early, too late or never. */
#include "test_sim_matrix.h"

enum { ACC_SLOT, OUT_SLOT = 128, A_SLOT = 256, A_REG = 200, M = 64, A_AT = 1024, B_AT = 32768 };

/* How an operand lies in shared memory. */
struct layout {
	u32 width; /* 16-byte units of a swizzled row; 1: core matrices */
	bool mn_major;
	u32 at, leading, stride;
	u32 slice; /* K-major: the product begins at this byte of a row */
};

static u64 descriptor(const struct layout *o)
{
	u64 mode = o->width == 8 ? 1 : o->width == 4 ? 2 : o->width == 2 ? 3 : 0;
	return (o->at + o->slice) / 16 | (u64)(o->leading / 16) << 16 | (u64)(o->stride / 16) << 32 | mode << 62;
}

/* Where the copy engine puts byte `b` of row `row`, in a box of rows of `width` units. */
static u32 swizzled_box(u32 width, u32 row, u32 b)
{
	u32 chunk = b / 16, rows_per_line = 8 / width;
	return row * width * 16 + ((chunk ^ row / rows_per_line % width) * 16) + b % 16;
}

static struct layout random_layout(u32 mn, u32 at, bool mn_major)
{
	struct layout o = {.width = 1u << random_bits() % 4, .mn_major = mn_major, .at = at};
	bool other = random_bits() & 1;
	if (o.width == 1) {
		/* core matrices of 128 bytes, either order */
		o.leading = other ? mn / 8 * 128 : 128;
		o.stride = other ? 128 : 256;
		if (mn_major) {
			u32 was = o.leading;
			o.leading = other ? was : 128;
		}
	} else if (mn_major) {
		o.stride = 8 * o.width * 16;
		o.leading = 16 * o.width * 16 + (other ? 1024 : 0);
	} else {
		o.stride = 8 * o.width * 16 * (other ? 2 : 1);
		o.leading = 16;
		o.slice = (u32)(random_bits() % (o.width / 2)) * 32;
	}
	return o;
}

static u32 element_at(const struct layout *o, u32 mn, u32 k, u32 size)
{
	if (o->width == 1 && o->mn_major)
		return o->at + mn / 8 * o->stride + k / 8 * o->leading + k % 8 * 16 + mn % 8 * size;
	if (o->width == 1)
		return o->at + mn / 8 * o->stride + k * size / 16 * o->leading + mn % 8 * 16 + k * size % 16;
	if (o->mn_major) {
		u32 per_row = o->width * 16 / size;
		return o->at + mn / per_row * o->leading + k / 8 * o->stride +
		       swizzled_box(o->width, k % 8, mn % per_row * size);
	}
	return o->at + mn / 8 * o->stride + swizzled_box(o->width, mn % 8, o->slice + k * size);
}

struct trial {
	enum ptx_type a, b, c;
	u32 n, k;
	bool a_in_regs, whole, reads_d, chained, neg_a, neg_b;
	struct layout a_at, b_at;
	u64 av[M][32], bv[32][256], cv[M][256];
};

static void put(struct bench *b, u32 at, enum ptx_type t, u64 bits)
{
	assert_true(at + 4 <= IMAGE_BYTES);
	memcpy(&b->image[at], &bits, (size_t)bits_of(t) / 8);
}

static void pack(u64 *v, enum ptx_type t, u32 i, u64 bits)
{
	u32 size = (u32)bits_of(t), per = 32 / size;
	if (i % per == 0)
		*v = 0;
	*v |= bits << i % per * size;
}

static void d_place(u32 thread, u32 i, u32 *row, u32 *col)
{
	u32 lane = thread % 32;
	*row = thread / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
	*col = i / 4 * 8 + lane % 4 * 2 + i % 2;
}

static void fill(struct bench *b, struct trial *t)
{
	u32 row, col;
	for (u32 k = 0; k < t->k; k++) {
		for (u32 m = 0; m < M; m++) {
			t->av[m][k] = random_element(t->a, t->whole);
			if (!t->a_in_regs)
				put(b, element_at(&t->a_at, m, k, (u32)bits_of(t->a) / 8), t->a, t->av[m][k]);
		}
		for (u32 n = 0; n < t->n; n++) {
			t->bv[k][n] = random_element(t->b, t->whole);
			put(b, element_at(&t->b_at, n, k, (u32)bits_of(t->b) / 8), t->b, t->bv[k][n]);
		}
	}
	for (u32 thread = 0; thread < 128; thread++) {
		u32 per = 32 / (u32)bits_of(t->a);
		for (u32 i = 0; i < 4 * per; i++) {
			row = thread / 32 * 16 + thread % 32 / 4 + i / per % 2 * 8;
			col = thread % 4 * per + i % per + i / per / 2 * 4 * per;
			pack(&b->slot[A_SLOT + i / per][thread], t->a, i, t->av[row][col]);
		}
		for (u32 i = 0; i < t->n / 2; i++) {
			d_place(thread, i, &row, &col);
			t->cv[row][col] = random_element(t->c, t->whole);
			pack(&b->slot[ACC_SLOT + i * (u32)bits_of(t->c) / 32][thread], t->c, i, t->cv[row][col]);
		}
	}
}

/* The image to shared memory. */
static void copy_image(struct bench *b)
{
	b->dynamic_shared = IMAGE_BYTES;
	sb_printf(&b->text,
		  "mov.u32 %%r393, sh;\nshl.b32 %%r394, %%r399, 2;\n"
		  "add.s32 %%r393, %%r393, %%r394;\nmul.wide.u32 %%rd50, "
		  "%%r399, 4;\n"
		  "add.s64 %%rd50, %%rd50, %%rd60;\nadd.s64 %%rd50, %%rd50, %zu;\nmov.u32 %%r395, 0;\n"
		  "COPY:\nld.global.b32 %%r392, [%%rd50];\nst.shared.b32 [%%r393], %%r392;\n"
		  "add.s64 %%rd50, %%rd50, 512;\n"
		  "add.s32 %%r393, %%r393, 512;\nadd.s32 %%r395, %%r395, 512;\n"
		  "setp.lt.u32 %%p7, %%r395, %u;\n@%%p7 bra "
		  "COPY;\nfence.proxy.async;\nbar.sync 0;\n",
		  offsetof(struct bench, image) - offsetof(struct bench, slot), (u32)IMAGE_BYTES);
}

static void write_product(struct bench *b, const struct trial *t, bool adds)
{
	bool is_int = t->c == PT_S32;
	sb_printf(&b->text, "setp.eq.u32 %%p1, %%r399, %s;\nwgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s ",
		  adds ? "%r399" : "1000", t->n, t->k, ptx_type_name(t->c), ptx_type_name(t->a), ptx_type_name(t->b));
	print_registers(&b->text, 32, 0, t->n / 2 * (u32)bits_of(t->c) / 32);
	sb_puts(&b->text, ", ");
	if (t->a_in_regs)
		print_registers(&b->text, 32, A_REG, 4);
	else
		sb_puts(&b->text, "%rd1");
	sb_puts(&b->text, ", %rd2, %p1");
	if (!is_int)
		sb_printf(&b->text, ", %d, %d", t->neg_a ? -1 : 1, t->neg_b ? -1 : 1);
	if (bits_of(t->a) == 16 && !t->a_in_regs)
		sb_printf(&b->text, ", %d", t->a_at.mn_major);
	if (bits_of(t->a) == 16)
		sb_printf(&b->text, ", %d", t->b_at.mn_major);
	sb_puts(&b->text, ";\n");
}

/* All up to the first wgmma. */
static void write_start(struct bench *b, const struct trial *t)
{
	copy_image(b);
	for (u32 r = 0; r < t->n / 2 * (u32)bits_of(t->c) / 32; r++)
		load_slot(b, 32, r, ACC_SLOT + r);
	for (u32 r = 0; r < 4; r++)
		load_slot(b, 32, A_REG + r, A_SLOT + r);
	sb_printf(&b->text, "mov.u64 %%rd1, %llu;\nmov.u64 %%rd2, %llu;\n", (unsigned long long)descriptor(&t->a_at),
		  (unsigned long long)descriptor(&t->b_at));
}

static void write_end(struct bench *b, const struct trial *t)
{
	for (u32 r = 0; r < t->n / 2 * (u32)bits_of(t->c) / 32; r++)
		store_slot(b, 32, r, OUT_SLOT + r);
}

static void compare(const struct bench *b, const struct trial *t)
{
	u32 row, col, times = t->chained ? 2 : 1;
	for (u32 thread = 0; thread < 128; thread++)
		for (u32 i = 0; i < t->n / 2; i++) {
			d_place(thread, i, &row, &col);
			double sum = 0, magnitude = 0, c = t->reads_d ? value_of(t->c, t->cv[row][col]) : 0;
			for (u32 k = 0; k < t->k; k++) {
				double p = value_of(t->a, t->av[row][k]) * value_of(t->b, t->bv[k][col]);
				sum += p;
				magnitude += fabs(p);
			}
			double want = c + times * (t->neg_a != t->neg_b ? -sum : sum);
			u64 v = b->slot[OUT_SLOT + i * (u32)bits_of(t->c) / 32][thread];
			if (t->c == PT_F16)
				v = v >> i % 2 * 16 & 0xFFFF;
			double got = value_of(t->c, v);
			/* of fp8: 13 bits below the largest addend */
			double coarse = bits_of(t->a) == 8 && !t->whole ? 0x1p-9 : 0;
			magnitude = fabs(c) + times * magnitude;
			if (!(fabs(got - want) <= tolerance(t->c, t->whole, magnitude) + coarse * magnitude))
				fail_msg("n%u %s %s %s, A %s%u, B %s%u: [%u][%u] is %g, want %g", t->n,
					 ptx_type_name(t->a), ptx_type_name(t->b), ptx_type_name(t->c),
					 t->a_in_regs       ? "regs "
					 : t->a_at.mn_major ? "mn "
							    : "k ",
					 t->a_at.width, t->b_at.mn_major ? "mn " : "k ", t->b_at.width, row, col, got,
					 want);
		}
}

static const struct {
	enum ptx_type a, b, c;
} types[] = {
	{PT_F16, PT_F16, PT_F32},   {PT_F16, PT_F16, PT_F16},   {PT_BF16, PT_BF16, PT_F32}, {PT_TF32, PT_TF32, PT_F32},
	{PT_E4M3, PT_E5M2, PT_F32}, {PT_E5M2, PT_E4M3, PT_F16}, {PT_S8, PT_U8, PT_S32},     {PT_S8, PT_S8, PT_S32},
};

static struct trial *random_trial(u32 type)
{
	static const u32 ns[] = {8, 16, 24, 64, 112, 128, 256};
	struct trial *t = calloc(1, sizeof *t);
	t->a = types[type].a;
	t->b = types[type].b;
	t->c = types[type].c;
	t->n = ns[random_bits() % ARRAY_LEN(ns)];
	t->k = 256 / (u32)bits_of(t->a);
	bool half = bits_of(t->a) == 16, is_int = t->c == PT_S32;
	t->a_in_regs = random_bits() % 3 == 0;
	t->whole = random_bits() & 1;
	t->reads_d = random_bits() & 1;
	t->chained = random_bits() & 1;
	t->neg_a = !is_int && random_bits() % 4 == 0;
	t->neg_b = !is_int && random_bits() % 4 == 0;
	t->a_at = random_layout(M, A_AT, half && random_bits() & 1);
	t->b_at = random_layout(t->n, B_AT, half && random_bits() & 1);
	return t;
}

static void test_products(void **state)
{
	(void)state;
	for (u32 n = 0; n < 120; n++) {
		struct trial *t = random_trial(n % ARRAY_LEN(types));
		struct bench *b = bench_new("sm_90a", 128);
		b->seed = n;
		b->timing = (enum async_timing)(random_bits() % 3);
		fill(b, t);
		write_start(b, t);
		sb_puts(&b->text, "wgmma.fence.sync.aligned;\n");
		write_product(b, t, t->reads_d);
		if (t->chained)
			write_product(b, t, true);
		sb_puts(&b->text, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
		write_end(b, t);
		expect_ok(b);
		compare(b, t);
		bench_free(b);
		free(t);
	}
}

/* --- order ------------------------------------------------------------------------------------------------------- */

static struct bench *plain(struct trial *t, bool a_in_regs)
{
	*t = (struct trial){.a = PT_F16,
			    .b = PT_F16,
			    .c = PT_F32,
			    .n = 64,
			    .k = 16,
			    .a_in_regs = a_in_regs,
			    .whole = true,
			    .reads_d = true};
	t->a_at = (struct layout){.width = 8, .at = A_AT, .stride = 1024};
	t->b_at = (struct layout){.width = 8, .at = B_AT, .stride = 1024};
	struct bench *b = bench_new("sm_90a", 128);
	b->timing = ASYNC_LATE;
	fill(b, t);
	write_start(b, t);
	return b;
}

#define FENCE "wgmma.fence.sync.aligned;\n"
#define COMMIT "wgmma.commit_group.sync.aligned;\n"
#define WAIT(n) "wgmma.wait_group.sync.aligned " #n ";\n"

/* Loads, one product in flight, then `after`. */
static struct bench *in_flight(struct trial *t, bool a_in_regs, const char *after)
{
	struct bench *b = plain(t, a_in_regs);
	sb_puts(&b->text, FENCE);
	write_product(b, t, true);
	sb_puts(&b->text, COMMIT);
	sb_puts(&b->text, after);
	return b;
}

static void test_order(void **state)
{
	(void)state;
	struct trial t;
	struct bench *b = plain(&t, false);
	write_product(b, &t, true);
	expect_fault(b, "no wgmma.fence");

	expect_fault(in_flight(&t, false, "mov.b32 %r3, 0;\n" WAIT(0)), "accumulators were written before");
	expect_fault(in_flight(&t, true, "mov.b32 %r200, 0;\n" WAIT(0)), "registers of A");
	expect_fault(in_flight(&t, false, "bar.sync 0;\nmov.u32 %r300, sh;\nst.shared.b32 [%r300+33000], %r399;\n"
			       WAIT(0)),
		     "race");
	expect_fault(
		in_flight(&t, false,
			  "bar.sync 0;\nsetp.eq.u32 %p2, %r399, 0;\nmov.u32 %r300, sh;\n"
			  "@%p2 st.shared.b32 [%r300+32768], 77;\n"
			  "fence.proxy.async; bar.sync 0;\n" WAIT(0)),
		"shared memory changed");

	b = in_flight(&t, false, WAIT(0) "mov.b32 %r5, 0;\n");
	write_product(b, &t, true);
	expect_fault(b, "without a wgmma.fence");

	b = in_flight(&t, false, "");
	t.n = 32;
	write_product(b, &t, true);
	expect_fault(b, "not waited for");
}

/* Until it is waited for, the result is not there: also when a later group is left. */
static void test_groups(void **state)
{
	(void)state;
	struct trial t;
	for (u32 left = 0; left < 3; left++) {
		struct bench *b = in_flight(&t, false, left == 0 ? WAIT(0) : left == 1 ? COMMIT WAIT(1) : WAIT(1));
		write_end(b, &t);
		sb_puts(&b->text, WAIT(0));
		expect_ok(b);
		if (left < 2)
			compare(b, &t);
		else
			for (u32 r = 0; r < 32; r++)
				assert_true(isnan(fp_f32_bits((u32)b->slot[OUT_SLOT + r][17])));
		bench_free(b);
	}
}

static void test_never_waited_for(void **state)
{
	(void)state;
	struct trial t;
	expect_fault(in_flight(&t, false, ""), "without having waited");
}

static void test_refusals(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %rd1, %rd2, %p1, 1, 1, 0",
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %rd1, %rd2, %p1, 1, 2, 0, 0",
		"wgmma.mma_async.sync.aligned.m64n8k8.f32.f16.f16 {%r0, %r1, %r2, %r3}, %rd1, %rd2, %p1, 1, 1, 0, 0",
		"wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%r0, %r1, %r2, %r3, %r4, "
		"%r5}, %rd1, %rd2, %p1, 1, 1, 0, 0",
		"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%r0, %r1, %r2, %r3}, %rd1, %rd2, %p1, 1, 1, 0, 0",
		"wgmma.mma_async.sync.aligned.m64n8k16.bf16.bf16.bf16 {%r0, %r1}, %rd1, %rd2, %p1, 1, 1, 0, 0",
		"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%r0, %r1, %r2, %r3}, %rd1, %rd2, %r9, 0, %p1, 1",
	};
	for (u32 n = 0; n < ARRAY_LEN(bad); n++) {
		struct bench *b = bench_new("sm_90a", 128);
		sb_printf(&b->text, "%s;\n", bad[n]);
		expect_fault(b, "wgmma");
	}
	struct bench *b = bench_new("sm_90", 128);
	sb_puts(&b->text, FENCE);
	expect_fault(b, "sm_90a");
	b = bench_new("sm_90a", 64);
	sb_puts(&b->text, FENCE);
	expect_fault(b, "four warps");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_products),         cmocka_unit_test(test_order),    cmocka_unit_test(test_groups),
		cmocka_unit_test(test_never_waited_for), cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The estimate of a launch against closed forms, which do not walk the IR: bytes, cycles of the tensor cores,
 * iterations. The grids are small enough that the sample has all programs. And the tuner that ranks by the estimate. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "random_bits.h"
#include "runtime/api/objects.h"

enum { SAMPLE = 32, TRIALS = 40, MULTIPROCESSORS = 132 };

static const char source[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\n"
	"def copy(x, y, n, BLOCK: tl.constexpr):\n"
	"    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
	"    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)\n\n"
	"@triton.jit\n"
	"def triangle(x, y, BLOCK: tl.constexpr):\n"
	"    i, total = tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.float32)\n"
	"    for k in range(0, (tl.program_id(0) + 1) * BLOCK, BLOCK):\n"
	"        if k < tl.program_id(1) * BLOCK:\n"
	"            total += tl.load(x + k + i)\n"
	"    tl.store(y + tl.program_id(0) * BLOCK + i, total)\n\n"
	"@triton.jit\n"
	"def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):\n"
	"    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)\n"
	"    k, acc = tl.arange(0, BK), tl.zeros((BM, BN), tl.float32)\n"
	"    for begin in range(0, K, BK):\n"
	"        x = tl.load(a + m[:, None] * K + (begin + k)[None, :],\n"
	"                    mask=(m[:, None] < M) & ((begin + k)[None, :] < K), other=0)\n"
	"        w = tl.load(b + (begin + k)[:, None] * N + n[None, :],\n"
	"                    mask=((begin + k)[:, None] < K) & (n[None, :] < N), other=0)\n"
	"        acc = tl.dot(x, w, acc)\n"
	"    tl.store(c + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < "
	"N))\n\n"
	"@triton.jit\n"
	"def refused(x, FAST: tl.constexpr):\n"
	"    i = tl.arange(0, 128)\n"
	"    v = tl.load(x + i)\n"
	"    if FAST:\n"
	"        v = tl.inline_asm_elementwise('no.such.instruction $0, $1;', '=r,r', [v], tl.int32, True, 1)\n"
	"    else:\n"
	"        v += tl.sum(tl.cumsum(v, 0), 0)\n"
	"    tl.store(x + i, v)\n\n"
	"@triton.jit\n"
	"def rows(x, y, n, BLOCK: tl.constexpr):\n"
	"    i, r = tl.arange(0, BLOCK), tl.program_id(0)\n"
	"    v = tl.load(x + r * n + i, mask=i < n, other=0.0)\n"
	"    tl.store(y + r * n + i, v / tl.sum(v, 0), mask=i < n)\n";

struct rig {
	tl_context *ctx;
	tl_module *module;
};

static struct rig rig;

static int open_rig(void **state)
{
	(void)state;
	ok(tl_context_create("sim", &rig.ctx));
	ok(tl_module_load_source(rig.ctx, "estimate.tl", source, sizeof source - 1, &rig.module));
	return 0;
}

static int close_rig(void **state)
{
	(void)state;
	tl_context_destroy(rig.ctx);
	return 0;
}

static struct launch_estimate estimate(const char *kernel, tl_config cfg, const tl_arg *args, size_t n)
{
	tl_kernel *k;
	struct launch_estimate e;
	ok(tl_module_kernel(rig.module, kernel, &k));
	ok(kernel_estimate(k, &cfg, args, n, &e));
	assert_true(e.us > 0 && isfinite(e.us));
	assert_true(e.resident >= 1);
	return e;
}

static uint32_t below(uint32_t n)
{
	return (uint32_t)(random_bits() % n);
}

static tl_arg memory(tl_dtype t, int which)
{
	return tl_range(t, (void *)((uintptr_t)(which + 1) << 36), 1 << 30); /* nothing accesses it */
}

static void assert_close(double x, double expected)
{
	if (fabs(x - expected) > 1e-6 * fabs(expected))
		fail_msg("%.17g instead of %.17g", x, expected);
}

/* Elements under the mask are read once and written once. */
static void copies(void **state)
{
	(void)state;
	for (int i = 0; i < TRIALS; i++) {
		uint32_t block = 32u << below(8), programs = 1 + below(SAMPLE), n = 1 + below(programs * block);
		const tl_arg args[] = {memory(TL_F32, 0), memory(TL_F32, 1), tl_int(n), tl_int(block)};
		struct launch_estimate e =
			estimate("copy", (tl_config){.grid = {programs}, .num_warps = 1 << below(4)}, args, 4);
		double bytes = e.bill.bytes * e.blocks;
		assert_true(bytes >= 8.0 * n); /* whole sectors */
		if (block >= 1024)
			assert_close(bytes, 8.0 * n);
		assert_close(e.blocks, programs);
		assert_int_equal((int)e.bill.tensor, 0);
	}
}

/* Loops and branches that depend on the program's number. */
static void loops(void **state)
{
	(void)state;
	for (int i = 0; i < TRIALS; i++) {
		uint32_t x = 1 + below(3), y = 1 + below(2), loads = 0; /* at most SAMPLE programs */
		const tl_arg args[] = {memory(TL_F32, 0), memory(TL_F32, 1), tl_int(1024)};
		struct launch_estimate e =
			estimate("triangle", (tl_config){.grid = {x, y}, .num_warps = 4, .num_stages = 1}, args, 3);
		for (uint32_t p = 0; p < x; p++)
			for (uint32_t q = 0; q < y; q++)
				loads += p + 1 < q ? p + 1 : q;
		assert_close(e.bill.bytes * e.blocks, 4096.0 * (loads + x * y));
	}
}

/* TMA reads the parts of tiles that lie in the matrices, and tensor cores multiply whole tiles. */
static void products(void **state)
{
	(void)state;
	for (int i = 0; i < TRIALS; i++) {
		uint32_t bm = 64u << below(2), bn = 64u << below(2), bk = 64, x = 1 + below(3), y = 1 + below(2);
		uint32_t m = x * bm - 8 * below(bm / 8), n = y * bn - 8 * below(bn / 8), k = 64 + 8 * below(100);
		const tl_arg args[] = {memory(TL_F16, 0), memory(TL_F16, 1), memory(TL_F16, 2), tl_int(m), tl_int(n),
				       tl_int(k),         tl_int(bm),        tl_int(bn),        tl_int(bk)};
		const tl_config cfg = {.grid = {x, y}, .num_warps = 4, .num_stages = 3};
		struct launch_estimate e = estimate("product", cfg, args, 9);
		double steps = ceil((double)k / bk);
		assert_close(e.bill.tensor * e.blocks, x * y * steps * bm * bn * bk / 2048.0);
		/* an average step has the part of k that it would have without the edge */
		double read = 2.0 * ((double)m * y + (double)n * x) * k, written = 2.0 * m * n;
		double bytes = e.bill.bytes * e.blocks;
		assert_true(bytes >= 0.999 * (read + written));
		assert_true(bytes <= 1.001 * (read * steps * bk / k + written) + 32.0 * (m + n) * x * y);
	}
}

/* A persistent block has several programs; the sum over the blocks is the same. */
static void persistent(void **state)
{
	(void)state;
	uint32_t x = 4 * MULTIPROCESSORS, k = 4096;
	const tl_arg args[] = {memory(TL_F16, 0), memory(TL_F16, 1), memory(TL_F16, 2), tl_int(x * 128), tl_int(256),
			       tl_int(k),         tl_int(128),       tl_int(256),       tl_int(64)};
	const tl_config once = {.grid = {x}, .num_warps = 8, .num_stages = 3, .max_ctas = -1};
	tl_config all = once;
	all.max_ctas = 0;
	struct launch_estimate e = estimate("product", once, args, 9), p = estimate("product", all, args, 9);
	assert_close(e.bill.tensor * e.blocks, p.bill.tensor * p.blocks);
	assert_true(e.us / p.us < 1.5 && p.us / e.us < 1.5);
}

/* More work takes longer, and more bytes than the memory has are not read from memory. */
static void order(void **state)
{
	(void)state;
	double last = 0;
	for (uint32_t n = 1 << 20; n <= 1 << 26; n *= 4) {
		const tl_arg args[] = {memory(TL_F32, 0), memory(TL_F32, 1), tl_int(n), tl_int(1024)};
		double us = estimate("copy", (tl_config){.grid = {n / 1024}}, args, 4).us;
		assert_true(us > last);
		last = us;
	}
}

static tl_tuner *new_tuner(tl_kernel **k, int most)
{
	tl_tuner *t;
	ok(tl_module_kernel(rig.module, "rows", k));
	ok(tl_tuner_create(*k, &(tl_tuning){.most = most, .again = true}, &t));
	return t;
}

static uint32_t count(const char *text, const char *part)
{
	uint32_t n = 0;
	for (; (text = strstr(text, part)); text += strlen(part))
		n++;
	return n;
}

enum { ROWS = 4, COLUMNS = 200 };

/* The model chooses without a run, or some that run; and proposes configurations for a kernel without any. */
static void tuners(void **state)
{
	(void)state;
	tl_buffer *x, *y;
	ok(tl_buffer_create(rig.ctx, ROWS * COLUMNS * sizeof(float), &x));
	ok(tl_buffer_create(rig.ctx, ROWS * COLUMNS * sizeof(float), &y));
	ok(tl_buffer_fill(x, 1));
	const tl_arg args[] = {tl_buf(TL_F32, x), tl_buf(TL_F32, y), tl_int(COLUMNS), tl_int(256)};
	for (int added = 0; added < 2; added++)
		for (int most = 0; most <= 3; most++) {
			tl_kernel *k;
			tl_choice choice;
			char *report;
			tl_tuner *t = new_tuner(&k, most);
			for (int warps = 1; added && warps <= 8; warps *= 2)
				ok(tl_tuner_add(t, &(tl_config){.num_warps = warps}, NULL, 0));
			ok(tl_tuner_choose(t, &(tl_config){.grid = {ROWS}}, NULL, NULL, args, 4, &choice));
			ok(tl_tuner_report(t, &report));
			int all = added ? 4 : 5; /* numbers of warps; stages have no effect */
			assert_int_equal(choice.tried, most == 1 ? 0 : most ? most : all);
			assert_int_equal(choice.cost > 0, most != 1);
			assert_int_equal((int)count(report, "\"rank\": 1,"), most || !added);
			assert_int_equal((int)count(report, "by the model"), most ? all - most : 0);
			assert_int_equal((int)count(report, "the same as"), added ? 0 : 10);
			tl_free(report);
			tl_tuner_destroy(t);
		}
	tl_kernel *k;
	tl_tuner *t = new_tuner(&k, 0);
	tl_choice choice;
	ok(tl_tuner_choose(t, &(tl_config){.grid = {ROWS}, .num_warps = 2}, NULL, NULL, args, 4, &choice));
	assert_int_equal(choice.config.num_warps, 2); /* the launch's number is kept */
	tl_tuner_destroy(t);
	tl_buffer_destroy(x);
	tl_buffer_destroy(y);
}

/* If the configurations that the model prefers do not compile, the next ones are tried. */
static void refused(void **state)
{
	(void)state;
	tl_kernel *k;
	tl_tuner *t;
	tl_buffer *x;
	tl_choice choice;
	ok(tl_buffer_create(rig.ctx, 512, &x));
	ok(tl_buffer_fill(x, 1));
	ok(tl_module_kernel(rig.module, "refused", &k));
	ok(tl_tuner_create(k, &(tl_tuning){.most = 1, .again = true}, &t));
	for (int fast = 1; fast >= 0; fast--)
		ok(tl_tuner_add(t, NULL, &(tl_named_arg){"FAST", tl_bool(fast)}, 1));
	const tl_arg args[] = {tl_buf(TL_I32, x)};
	ok(tl_tuner_choose(t, &(tl_config){.grid = {1}}, NULL, NULL, args, 1, &choice));
	assert_string_equal(choice.text, "FAST=False");
	assert_int_equal(choice.failed, 1);
	tl_tuner_destroy(t);
	tl_buffer_destroy(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(copies),   cmocka_unit_test(loops),
					   cmocka_unit_test(products), cmocka_unit_test(persistent),
					   cmocka_unit_test(order),    cmocka_unit_test(tuners),
					   cmocka_unit_test(refused)};
	return cmocka_run_group_tests(tests, open_rig, close_rig);
}

/* The runtime around the kernels: contexts, buffers, modules, the checks of a call; and, on a device that only counts,
 * which variants are compiled and when. */
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/internal.h"

#define ARGS(...) (tl_arg[]){__VA_ARGS__}, sizeof((tl_arg[]){__VA_ARGS__}) / sizeof(tl_arg)

static const char source[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\ndef relu(x):\n    return tl.maximum(x, 0.0)\n\n"
	"@triton.constexpr_function\ndef twice(x):\n    return 2 * x\n\n"
	"@triton.jit\ndef scale_kernel(x, n, s, BLOCK: tl.constexpr, ACT: tl.constexpr = None):\n"
	"    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
	"    v = tl.load(x + i, mask=i < n) * s\n"
	"    if ACT is not None:\n        v = ACT(v)\n"
	"    tl.store(x + i, v, mask=i < n)\n\n"
	"@triton.jit\ndef broken(x):\n    tl.store(x, undefined_name)\n";

static tl_module *load(tl_context *ctx)
{
	tl_module *m;
	if (tl_module_load_source(ctx, "t.tl", source, sizeof source - 1, &m))
		fail_msg("%s", tl_error(ctx));
	return m;
}

static void assert_error(tl_status is, tl_status expected, const char *part)
{
	if (is != expected || !strstr(tl_error(NULL), part))
		fail_msg("status '%s', text '%s'; expected '%s', '%s'", tl_status_name(is), tl_error(NULL),
			 tl_status_name(expected), part);
}

/* --- a device that counts ------------------------------------------------------------------------------------ */

struct counter {
	struct device device; /* first */
	_Atomic int compiled, loaded, live, launched;
	_Atomic int refuse; /* this many loads fail */
	bool keep;          /* the last launch; only in tests of one thread */
	struct device_launch last;
	u64 args[32];
};

static void counter_close(struct device *d)
{
	(void)d;
}

static tl_status counter_synchronize(struct device *d)
{
	(void)d;
	return TL_OK;
}

static bool counter_compile(struct device *d, const struct build *b, struct compiled *out)
{
	((struct counter *)d)->compiled++;
	usleep(2000);
	out->kernel = compile_ir(b->unit, b->func, b->args);
	return out->kernel;
}

static tl_status counter_load(struct device *d, struct unit *u, const struct compiled *c, void **out)
{
	(void)u;
	struct counter *k = (struct counter *)d;
	if (k->refuse > 0) {
		k->refuse--;
		return failed(TL_ERR_MEMORY, "no room just now");
	}
	k->loaded++;
	k->live++;
	*out = (void *)(uintptr_t)c->num_warps;
	return TL_OK;
}

static void counter_unload(struct device *d, void *kernel)
{
	(void)kernel;
	((struct counter *)d)->live--;
}

static tl_status counter_launch(struct device *d, const struct device_launch *l)
{
	struct counter *c = (struct counter *)d;
	c->launched++;
	if (c->keep) {
		c->last = *l;
		memcpy(c->args, l->args, l->nargs * sizeof *l->args);
	}
	return TL_OK;
}

static const struct device_ops counter_ops = {
	.name = "counter", .stages = " ttir ", .close = counter_close, .compile = counter_compile, .load = counter_load,
	.unload = counter_unload, .launch = counter_launch, .synchronize = counter_synchronize,
};

static void *const x16 = (void *)(uintptr_t)0x1000, *const x4 = (void *)(uintptr_t)0x1004;

static tl_status launch(tl_kernel *k, void *p, int64_t n, int64_t block)
{
	return tl_launch(k, &(tl_config){.grid = {2}}, ARGS(tl_ptr(TL_F32, p), tl_int(n), tl_float(2), tl_int(block)));
}

static void variants(void **state)
{
	(void)state;
	struct counter c = {.device.ops = &counter_ops, .keep = true};
	tl_context *ctx;
	tl_kernel *k;
	assert_int_equal(context_new(&c.device, &ctx), TL_OK);
	assert_int_equal(tl_module_kernel(load(ctx), "scale_kernel", &k), TL_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(launch(k, x16, 5 + 2 * i, 64), TL_OK);
		assert_int_equal(c.compiled, 1);
	}
	/* alternating between two finds both */
	for (int i = 0; i < 6; i++)
		assert_int_equal(launch(k, i % 2 ? x16 : x4, 5, 64), TL_OK);
	assert_int_equal(c.compiled, 2);
	launch(k, x16, 32, 64);
	launch(k, x16, 512, 64);
	launch(k, x16, 1, 64);
	launch(k, x16, (int64_t)5 << 40, 64);
	launch(k, x16, 5, 128);
	assert_int_equal(c.compiled, 6);
	tl_arg args[] = {tl_ptr(TL_F32, x16), tl_int(5), tl_float(2), tl_int(64), tl_func("relu")};
	assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}}, args, 5), TL_OK);
	assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}, .num_warps = 8}, args, 5), TL_OK);
	assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}, .num_stages = 2}, args, 5), TL_OK);
	assert_int_equal(c.compiled, 9);
	/* the defaults, spelled out */
	assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}, .num_warps = 4, .num_stages = 3}, args, 5), TL_OK);
	assert_int_equal(tl_prepare(k, NULL, args, 5), TL_OK);
	assert_int_equal(c.compiled, 9);
	assert_int_equal(c.loaded, 9);
	/* enough of them for the table to grow */
	for (int i = 0; i < 100; i++)
		assert_int_equal(launch(k, x16, 5, 1 << (i % 10)), TL_OK);
	for (int i = 0; i < 60; i++)
		assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}, .num_stages = 1 + i}, args, 5), TL_OK);
	assert_int_equal(c.loaded, 9 + 8 + 58);
	tl_context_destroy(ctx);
	assert_int_equal(c.live, 0);
}

/* In a kernel with dots, multiples of 256 have a variant of their own. */
static void multiples(void **state)
{
	(void)state;
	static const char text[] = "import triton\nimport triton.language as tl\n\n"
				   "@triton.jit\ndef square(p, n):\n"
				   "    i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]\n"
				   "    x = tl.load(p + i)\n"
				   "    tl.store(p + n + i, tl.dot(x, x).to(tl.float16))\n";
	static const struct {
		int64_t n;
		int compiled;
	} launches[] = {{512, 1}, {768, 1}, {0, 1}, {528, 2}, {384, 2}, {520, 3}, {521, 4}, {256, 4}};
	struct counter c = {.device.ops = &counter_ops, .keep = true};
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	assert_int_equal(context_new(&c.device, &ctx), TL_OK);
	assert_int_equal(tl_module_load_source(ctx, "t.tl", text, sizeof text - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "square", &k), TL_OK);
	for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
		assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}},
					   (tl_arg[]){tl_ptr(TL_F16, x16), tl_int(launches[i].n)}, 2),
				 TL_OK);
		assert_int_equal(c.compiled, launches[i].compiled);
	}
	tl_context_destroy(ctx);
}

/* A dot is a call, in the kernel or in a function that it names; a word in a comment is none. */
static void dots_of_calls(void **state)
{
	(void)state;
	static const char text[] =
		"import triton\nimport triton.language as tl\nfrom triton.language import dot as product\n"
		"# polka dots\n"
		"@triton.jit\ndef mine(p, n):\n    # no dot\n    dots = 1.0\n    tl.store(p + n, dots)\n\n"
		"@triton.jit\ndef square(x):\n    if x.shape[0] > 1:\n"
		"        x = tl.dot(x, x).to(tl.float16)\n    return x\n\n"
		"@triton.jit\ndef tile(p):\n"
		"    return tl.load(p + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :])\n\n"
		"@triton.jit\ndef outer(p, n):\n    x = square(tile(p))\n"
		"    tl.store(p + n, tl.sum(tl.sum(x, 1), 0))\n\n"
		"@triton.jit\ndef given(p, n, F: tl.constexpr):\n"
		"    tl.store(p + n, tl.sum(tl.sum(F(tile(p)), 1), 0))\n\n"
		"@triton.jit\ndef imported(p, n):\n    x = tile(p)\n"
		"    tl.store(p + n, tl.sum(tl.sum(product(x, x), 1), 0).to(tl.float16))\n";
	static const struct { const char *name; int variants; } kernels[] = {{"mine", 1}, {"outer", 2}, {"given", 2},
									     {"imported", 2}};
	struct counter c = {.device.ops = &counter_ops, .keep = true};
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	assert_int_equal(context_new(&c.device, &ctx), TL_OK);
	assert_int_equal(tl_module_load_source(ctx, "t.tl", text, sizeof text - 1, &m), TL_OK);
	for (size_t i = 0; i < ARRAY_LEN(kernels); i++) {
		int before = c.compiled;
		assert_int_equal(tl_module_kernel(m, kernels[i].name, &k), TL_OK);
		for (int64_t n = 16; n <= 256; n += 240)
			if (tl_launch(k, &(tl_config){.grid = {1}},
				      (tl_arg[]){tl_ptr(TL_F16, x16), tl_int(n), tl_func("square")}, 2 + (i == 2)))
				fail_msg("%s: %s", kernels[i].name, tl_error(NULL));
		assert_int_equal(c.compiled - before, kernels[i].variants);
	}
	tl_context_destroy(ctx);
}

/* What is folded is not passed; the rest comes in order, with the bits of its type. */
static void slots(void **state)
{
	(void)state;
	struct counter c = {.device.ops = &counter_ops, .keep = true};
	tl_context *ctx;
	tl_kernel *k;
	assert_int_equal(context_new(&c.device, &ctx), TL_OK);
	assert_int_equal(tl_module_kernel(load(ctx), "scale_kernel", &k), TL_OK);
	assert_int_equal(launch(k, x16, -7, 64), TL_OK);
	assert_int_equal(c.last.nargs, 3);
	assert_int_equal(c.args[0], 0x1000);
	assert_int_equal(c.args[1], 0xFFFFFFF9);
	assert_int_equal(c.args[2], 0x40000000);
	assert_int_equal(c.last.grid[0], 2);
	assert_int_equal(c.last.grid[1], 1);
	assert_int_equal(c.last.grid[2], 1);
	assert_int_equal((uintptr_t)c.last.kernel, 4);
	assert_int_equal(launch(k, x16, 1, 64), TL_OK);
	assert_int_equal(c.last.nargs, 2);
	assert_int_equal(c.args[1], 0x40000000);
	assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}},
				   ARGS(tl_ptr(TL_F32, x16), tl_int(-7 * ((int64_t)1 << 40)), tl_float_typed(TL_F64, 2),
					tl_int(64))),
			 TL_OK);
	assert_true(c.args[1] == (u64)(-7 * ((int64_t)1 << 40)));
	assert_true(c.args[2] == 0x4000000000000000u);
	tl_context_destroy(ctx);
}

static bool sm90_compile(struct device *d, const struct build *b, struct compiled *out)
{
	((struct counter *)d)->compiled++;
	struct description target = cuda_description(90, true);
	return device_compile(&target, b, out);
}

/* Where there are more programs than multiprocessors, few blocks run those of a product, which is compiled for that;
 * other kernels are compiled once, whichever grid comes first. */
static void few_blocks(void **state)
{
	(void)state;
	static const char text[] =
		"import triton\nimport triton.language as tl\n\n"
		"@triton.jit\ndef product(a, b, c, K, BM: tl.constexpr):\n"
		"    m = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]\n"
		"    n = tl.program_id(1) * 256 + tl.arange(0, 256)[None, :]\n"
		"    acc = tl.zeros((BM, 256), tl.float32)\n"
		"    for i in range(0, K, 64):\n"
		"        k = i + tl.arange(0, 64)\n"
		"        acc = tl.dot(tl.load(a + m * K + k[None, :], mask=k[None, :] < K, other=0), tl.load(b + "
		"k[:, None] * 4096 + n), acc)\n"
		"    tl.store(c + m * 4096 + n, acc)\n\n"
		"@triton.jit\ndef copy(a, b, c, K, BM: tl.constexpr):\n"
		"    i = tl.program_id(0) * BM + tl.arange(0, BM)\n"
		"    tl.store(c + i, tl.load(a + i))\n";
	struct device_ops ops = counter_ops;
	ops.compile = sm90_compile;
	struct counter c = {.device = {&ops, .num_sms = 4}, .keep = true};
	tl_context *ctx;
	tl_module *m;
	tl_kernel *product, *copy;
	tl_arg args[] = {tl_ptr(TL_F16, x16), tl_ptr(TL_F16, x16), tl_ptr(TL_F32, (void *)(uintptr_t)0x2000),
			 tl_int(520), tl_int(128)};
	assert_int_equal(context_new(&c.device, &ctx), TL_OK);
	assert_int_equal(tl_module_load_source(ctx, "t.tl", text, sizeof text - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "product", &product), TL_OK);
	assert_int_equal(tl_module_kernel(m, "copy", &copy), TL_OK);
	static const struct {
		tl_config config;
		uint32_t grid[3];
		bool few;
		int compiled;
	} launches[] = {
		{{.grid = {2, 2}}, {2, 2, 1}, false, 1},
		{{.grid = {5, 1, 3}}, {4, 1, 1}, true, 2},
		{{.grid = {5, 1, 3}, .num_blocks = -1}, {5, 1, 3}, false, 2},
		{{.grid = {5, 1, 3}, .num_blocks = 7}, {7, 1, 1}, true, 2},
		{{.grid = {5, 1, 3}, .num_blocks = 15}, {5, 1, 3}, false, 2},
		{{.grid = {2, 2}, .num_blocks = 3}, {3, 1, 1}, true, 2},
		{{.grid = {1 << 20, 4096}}, {1 << 20, 4096, 1}, false, 2}, /* programs are counted in 32 bits */
	};
	for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
		tl_config config = launches[i].config;
		config.num_warps = 8;
		assert_int_equal(tl_launch(product, &config, args, 5), TL_OK);
		assert_int_equal(c.compiled, launches[i].compiled);
		assert_memory_equal(c.last.grid, launches[i].grid, sizeof launches[i].grid);
		assert_int_equal(c.last.nargs, launches[i].few ? 7 : 4);
		for (u32 d = 0; d < 3 && launches[i].few; d++)
			assert_int_equal(c.args[4 + d], MAX(config.grid[d], 1));
		assert_int_equal(tl_prepare(product, &config, args, 5), TL_OK);
	}
	args[4] = tl_int(64); /* two blocks fit a multiprocessor */
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(tl_launch(product, &(tl_config){.grid = {i % 2 ? 2 : 20}, .num_stages = 2}, args, 5),
				 TL_OK);
		assert_int_equal(c.last.grid[0], i % 2 ? 2 : 20);
		assert_int_equal(c.compiled, 3);
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(tl_launch(copy, &(tl_config){.grid = {i % 2 ? 20 : 2}}, args, 5), TL_OK);
	assert_int_equal(c.compiled, 4);
	assert_int_equal(c.loaded, 4);
	assert_error(tl_launch(copy, &(tl_config){.grid = {1}, .num_blocks = -2}, args, 5), TL_ERR_ARGUMENT,
		     "num_blocks is -2");
	tl_context_destroy(ctx);
	assert_int_equal(c.live, 0);
}

static tl_status no_tensor_map(struct device *d, const struct tensor_box *b, void *out)
{
	(void)d, (void)b;
	memset(out, 0, TENSOR_MAP_BYTES);
	return TL_OK;
}

static tl_status counter_resources(struct device *d, void *kernel, tl_resources *out)
{
	(void)d;
	*out = (tl_resources){.threads = (int)(uintptr_t)kernel};
	return TL_OK;
}

/* What is prepared, dumped and measured is what a launch with the same arguments runs: no TMA where rows lie
 * backwards. */
static void described(void **state)
{
	(void)state;
	struct device_ops ops = counter_ops;
	ops.compile = sm90_compile;
	ops.tensor_map = no_tensor_map;
	ops.resources = counter_resources;
	ops.stages = " ttir ptx ";
	struct counter c = {.device = {&ops, .num_sms = 4}, .keep = true};
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	tl_resources r;
	assert_int_equal(context_new(&c.device, &ctx), TL_OK);
	assert_int_equal(tl_module_load(ctx, "examples/attention.tl", &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "attention_kernel", &k), TL_OK);
	static const struct { int64_t stride; bool tma; } launches[] = {{64, true}, {-64, false}, {64, true}};
	const tl_config config = {.grid = {1, 1}, .num_warps = 8};
	const tl_arg x = tl_ptr(TL_F16, x16), all = tl_int(128 * 64), row = tl_int(64);
	for (size_t i = 0; i < ARRAY_LEN(launches); i++) {
		const tl_arg args[] = {x,
				       x,
				       x,
				       x,
				       tl_float(0.125),
				       all,
				       all,
				       row,
				       all,
				       all,
				       tl_int(launches[i].stride),
				       all,
				       all,
				       row,
				       all,
				       all,
				       row,
				       tl_int(1),
				       tl_int(128),
				       tl_int(64),
				       tl_int(128),
				       tl_int(64),
				       tl_bool(false)};
		char *ptx;
		assert_int_equal(tl_prepare(k, &config, args, ARRAY_LEN(args)), TL_OK);
		int prepared = c.compiled;
		assert_int_equal(tl_launch(k, &config, args, ARRAY_LEN(args)), TL_OK);
		assert_int_equal(c.compiled, prepared);
		assert_int_equal(tl_kernel_resources(k, &config, args, ARRAY_LEN(args), &r), TL_OK);
		assert_int_equal(c.compiled, prepared);
		assert_int_equal(r.threads, (uintptr_t)c.last.kernel);
		assert_int_equal(tl_kernel_dump(k, &config, args, ARRAY_LEN(args), "ptx", &ptx), TL_OK);
		assert_int_equal(strstr(ptx, "cp.async.bulk.tensor") != NULL, launches[i].tma);
		assert_int_equal(c.last.nmaps > 0, launches[i].tma);
		tl_free(ptx);
	}
	tl_context_destroy(ctx);
}

static bool counter_allocation(struct device *d, const void *p, void **base, size_t *size)
{
	(void)d;
	u64 a = (u64)(uintptr_t)p;
	*base = (void *)(uintptr_t)(a & ~(u64)0xFFFF); /* allocations of 64 KB; none from 2^32 on */
	*size = 0x10000;
	return a < (u64)1 << 32;
}

/* Overlapping arguments get a variant that keeps their order, where the kernel counts on their being apart. */
static void overlapping(void **state)
{
	(void)state;
	static const char text[] =
		"import triton\nimport triton.language as tl\n\n"
		"@triton.jit\ndef add(x, y, z):\n    i = tl.arange(0, 1024)\n"
		"    tl.store(y + i, tl.load(x + i) + tl.load(z + i))\n\n"
		"@triton.jit\ndef steps(x, y, z):\n    i = tl.arange(0, 1024)\n"
		"    for k in tl.range(0, 8, num_stages=3):\n"
		"        tl.store(y + k * 1024 + i, tl.load(x + k * 1024 + i) + 1)\n";
	struct device_ops ops = counter_ops;
	ops.compile = sm90_compile;
	ops.allocation = counter_allocation;
	struct counter c = {.device = {&ops, .num_sms = 4}, .keep = true};
	tl_context *ctx;
	tl_module *m;
	tl_kernel *add, *steps;
	assert_int_equal(context_new(&c.device, &ctx), TL_OK);
	assert_int_equal(tl_module_load_source(ctx, "t.tl", text, sizeof text - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "add", &add), TL_OK);
	assert_int_equal(tl_module_kernel(m, "steps", &steps), TL_OK);
	static const u64 far = (u64)1 << 40;
	static const struct {
		u64 x, y;
		size_t bytes; /* of each; 0: not said */
		int add, steps; /* variants: 0 apart, 1 the same address, 2 any */
	} table[] = {
		{0x10000, 0x20000, 0, 0, 0},   {0x10000, 0x1F000, 0, 2, 2},	{0x10000, 0x10000, 0, 0, 1},
		{0x10000, 0x11000, 4096, 0, 0}, {0x10000, 0x11000, 4097, 2, 2}, {far, far + 16, 0, 0, 0},
		{far, far, 0, 0, 1},		{0x10000, 0x10000, 4096, 0, 1}, {0, 0, 0, 0, 0},
	};
	int compiled[2][3] = {0};
	for (int k = 0; k < 2; k++)
		for (u32 i = 0; i < ARRAY_LEN(table); i++) {
			int wants = k ? table[i].steps : table[i].add, before = c.compiled,
			    fresh = !compiled[k][0] + (wants && !compiled[k][wants]);
			tl_arg args[] = {tl_range(TL_F32, (void *)(uintptr_t)table[i].x, table[i].bytes),
					 tl_range(TL_F32, (void *)(uintptr_t)table[i].y, table[i].bytes),
					 tl_ptr(TL_F32, (void *)(uintptr_t)0x900000)};
			assert_int_equal(tl_launch(k ? steps : add, &(tl_config){.grid = {1}}, args, 3), TL_OK);
			if (c.compiled - before != fresh)
				fail_msg("row %u, kernel %d: %d variants were compiled, not %d", i, k,
					 c.compiled - before, fresh);
			compiled[k][0] = compiled[k][wants] = 1;
		}
	tl_context_destroy(ctx);
	assert_int_equal(c.live, 0);
}

/* 0 programs run nothing, but all else is checked; axes that are not set count as 1. */
static void grids(void **state)
{
	(void)state;
	struct counter c = {.device.ops = &counter_ops, .keep = true};
	tl_context *ctx;
	tl_kernel *k;
	assert_int_equal(context_new(&c.device, &ctx), TL_OK);
	assert_int_equal(tl_module_kernel(load(ctx), "scale_kernel", &k), TL_OK);
	tl_arg args[] = {tl_ptr(TL_F32, x16), tl_int(5), tl_float(2), tl_int(64)};
	static const struct {
		tl_config config;
		uint32_t grid[3]; /* that runs; 0: nothing does */
	} table[] = {
		{{.grid = {3}}, {3, 1, 1}},
		{{.grid = {3, 2}}, {3, 2, 1}},
		{{.grid = {3, 0, 0}}, {3, 1, 1}},
		{{.grid = {3, 1, 4}}, {3, 1, 4}},
		{{.grid = {0}}, {0}},
		{{.grid = {0, 2}}, {0}},
		{{.grid = {3, 0, 4}}, {0}},
		{{.grid = {3, 0}, .grid_dims = 1}, {3, 1, 1}},
		{{.grid = {3, 0}, .grid_dims = 2}, {0}},
		{{.grid = {3, 2}, .grid_dims = 2}, {3, 2, 1}},
		{{.grid = {3, 2, 0}, .grid_dims = 3}, {0}},
		{{.grid = {3, 1, 1}, .grid_dims = 1}, {3, 1, 1}},
	};
	for (u32 i = 0; i < ARRAY_LEN(table); i++) {
		int before = c.launched;
		double ms = 7;
		assert_int_equal(tl_launch(k, &table[i].config, args, 4), TL_OK);
		assert_int_equal(c.launched - before, table[i].grid[0] != 0);
		if (table[i].grid[0])
			assert_memory_equal(c.last.grid, table[i].grid, sizeof table[i].grid);
		else
			assert_int_equal(tl_time(k, &table[i].config, args, 4, 1, 1, &ms), TL_OK);
		assert_true(ms == (table[i].grid[0] ? 7 : 0));
	}
	assert_int_equal(c.compiled, 1);
	args[1] = tl_str("x");
	assert_error(tl_launch(k, &(tl_config){.grid = {0}}, args, 4), TL_ERR_ARGUMENT, "argument 2, 'n'");
	tl_context_destroy(ctx);
}

struct worker {
	pthread_t thread;
	tl_kernel *k;
	int64_t block;
	tl_status status;
	char text[400];
};

static void *work(void *arg)
{
	struct worker *w = arg;
	for (int i = 0; i < 50 && !w->status; i++)
		w->status = launch(w->k, i % 2 ? x16 : x4, 5, w->block);
	snprintf(w->text, sizeof w->text, "%s", tl_error(NULL));
	return NULL;
}

static void run_workers(struct worker *w, u32 n)
{
	for (u32 i = 0; i < n; i++)
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	for (u32 i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
}

/* Threads that launch the same new variant compile it once. */
static void threads(void **state)
{
	(void)state;
	struct counter c = {.device.ops = &counter_ops};
	tl_context *ctx;
	struct worker w[8] = {0};
	assert_int_equal(context_new(&c.device, &ctx), TL_OK);
	tl_module *m = load(ctx);
	for (u32 i = 0; i < ARRAY_LEN(w); i++) {
		assert_int_equal(tl_module_kernel(m, "scale_kernel", &w[i].k), TL_OK);
		assert_ptr_equal(w[i].k, w[0].k);
		w[i].block = i % 2 ? 64 : 32;
	}
	run_workers(w, ARRAY_LEN(w));
	for (u32 i = 0; i < ARRAY_LEN(w); i++)
		assert_int_equal(w[i].status, TL_OK);
	assert_int_equal(c.compiled, 4);
	assert_int_equal(c.launched, 50 * ARRAY_LEN(w));
	tl_context_destroy(ctx);
	assert_int_equal(c.live, 0);
}

/* A compile error is remembered, and every thread gets its text; a failure of the device is tried again. */
static void failures(void **state)
{
	(void)state;
	struct counter c = {.device.ops = &counter_ops};
	tl_context *ctx;
	tl_kernel *k;
	assert_int_equal(context_new(&c.device, &ctx), TL_OK);
	tl_module *m = load(ctx);
	assert_int_equal(tl_module_kernel(m, "broken", &k), TL_OK);
	for (int i = 0; i < 3; i++) {
		assert_error(tl_launch(k, &(tl_config){.grid = {1}}, ARGS(tl_ptr(TL_F32, x16))), TL_ERR_COMPILE,
			     "t.tl:22:");
		assert_non_null(strstr(tl_error(ctx), "'undefined_name' is not defined"));
		assert_non_null(strstr(tl_error(ctx), "tl.store(x, undefined_name)"));
	}
	assert_int_equal(c.compiled, 1);
	struct worker w[4] = {0};
	for (u32 i = 0; i < ARRAY_LEN(w); i++) {
		assert_int_equal(tl_module_kernel(m, "scale_kernel", &w[i].k), TL_OK);
		w[i].block = 48; /* not a power of two */
	}
	run_workers(w, ARRAY_LEN(w));
	for (u32 i = 0; i < ARRAY_LEN(w); i++) {
		assert_int_equal(w[i].status, TL_ERR_COMPILE);
		assert_non_null(strstr(w[i].text, "power of two"));
	}
	assert_int_equal(c.compiled, 2);
	c.refuse = 2;
	assert_error(launch(w[0].k, x16, 5, 64), TL_ERR_MEMORY, "no room just now");
	assert_error(launch(w[0].k, x16, 5, 64), TL_ERR_MEMORY, "no room just now");
	assert_int_equal(launch(w[0].k, x16, 5, 64), TL_OK);
	tl_context_destroy(ctx);
	assert_int_equal(c.live, 0);
}

/* --- contexts, modules, kernels ------------------------------------------------------------------------------ */

static void contexts(void **state)
{
	(void)state;
	tl_context *ctx = NULL;
	tl_device_info info;
	assert_error(tl_context_create("interp", NULL), TL_ERR_ARGUMENT, "NULL");
	assert_error(tl_context_create("tpu", &ctx), TL_ERR_DEVICE, "unknown device 'tpu'; there are cuda[:N], interp");
	assert_error(tl_context_create("", &ctx), TL_ERR_DEVICE, "unknown device ''");
	assert_error(tl_context_create("interp:1", &ctx), TL_ERR_DEVICE, "unknown device");
	assert_error(tl_context_create("cuda:x", &ctx), TL_ERR_DEVICE, "unknown device");
	assert_error(tl_context_create("cuda:", &ctx), TL_ERR_DEVICE, "unknown device");
	assert_error(tl_context_create("cuda:99999999999", &ctx), TL_ERR_DEVICE, "unknown device");
	assert_null(ctx);
	tl_status cuda = tl_context_create("cuda", &ctx);
	assert_true(cuda == TL_OK || (cuda == TL_ERR_DEVICE && *tl_error(NULL)));
	tl_context_destroy(ctx);
	if (cuda)
		assert_error(tl_context_from_cuda(NULL, &ctx), TL_ERR_DEVICE, "");
	assert_int_equal(tl_context_create(NULL, &ctx), TL_OK); /* there is always one */
	tl_context_destroy(ctx);
	assert_int_equal(tl_context_create("interp", &ctx), TL_OK);
	assert_error(tl_device(ctx, NULL), TL_ERR_ARGUMENT, "NULL");
	assert_int_equal(tl_device(ctx, &info), TL_OK);
	assert_string_equal(info.kind, "interp");
	assert_string_equal(info.target, "cpu");
	assert_true(info.name[0] && info.num_sms > 0 && info.memory_bytes > 1 << 20);
	assert_int_equal(tl_synchronize(ctx), TL_OK);
	assert_error(tl_synchronize(NULL), TL_ERR_ARGUMENT, "NULL");
	tl_context_destroy(ctx);
	tl_context_destroy(NULL);
}

static void modules(void **state)
{
	(void)state;
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k, *again;
	assert_int_equal(tl_context_create("interp", &ctx), TL_OK);
	assert_error(tl_module_load(ctx, "/nonexistent.tl", &m), TL_ERR_FILE,
		     "cannot read '/nonexistent.tl': No such file");
	assert_null(m);
	assert_error(tl_module_load(ctx, "/tmp", &m), TL_ERR_FILE, "Is a directory");
	assert_error(tl_module_load(NULL, "x.tl", &m), TL_ERR_ARGUMENT, "the context is NULL");
	assert_error(tl_module_load(ctx, NULL, &m), TL_ERR_ARGUMENT, "the path is NULL");
	assert_error(tl_module_load_source(ctx, "x.tl", "@triton.jit\ndef f(x:\n  pass\n", 28, &m), TL_ERR_COMPILE,
		     "x.tl:3:");
	m = load(ctx);
	assert_error(tl_module_kernel(m, "scale_kernle", &k), TL_ERR_ARGUMENT,
		     "t.tl has no kernel 'scale_kernle'; it has relu, scale_kernel, broken\n"
		     "      = hint: did you mean 'scale_kernel'?");
	assert_null(k);
	assert_error(tl_module_kernel(m, "xyzzy", &k), TL_ERR_ARGUMENT, "it has relu, scale_kernel, broken");
	assert_null(strstr(tl_error(ctx), "did you mean"));
	assert_error(tl_module_kernel(m, "twice", &k), TL_ERR_ARGUMENT, "constexpr_function");
	assert_error(tl_module_kernel(m, NULL, &k), TL_ERR_ARGUMENT, "the name is NULL");
	assert_int_equal(tl_module_kernel(m, "relu", &k), TL_OK);
	assert_int_equal(tl_module_kernel(m, "relu", &again), TL_OK);
	assert_ptr_equal(k, again);
	tl_module_destroy(m);
	tl_module_destroy(NULL);
	assert_int_equal(tl_module_load_source(ctx, NULL, "", 0, &m), TL_OK);
	assert_error(tl_module_kernel(m, "f", &k), TL_ERR_ARGUMENT,
		     "<source> has no kernel 'f': it has no jit functions");
	char path[] = "/tmp/test_runtime_XXXXXX";
	int fd = mkstemp(path);
	assert_int_equal(write(fd, source, sizeof source - 1), sizeof source - 1);
	close(fd);
	assert_int_equal(tl_module_load(ctx, path, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "scale_kernel", &k), TL_OK);
	unlink(path);
	tl_context_destroy(ctx); /* with its modules */
}

static void calls(void **state)
{
	(void)state;
	tl_context *ctx;
	tl_kernel *k;
	assert_int_equal(tl_context_create("interp", &ctx), TL_OK);
	assert_int_equal(tl_module_kernel(load(ctx), "scale_kernel", &k), TL_OK);
	tl_arg a[] = {tl_ptr(TL_F32, x16), tl_int(5), tl_float(2), tl_int(64), tl_none()};
	const struct {
		tl_config cfg;
		const char *error;
	} bad[] = {
		{{.num_warps = 3}, "num_warps is 3; it must be a power of two"},
		{{.num_warps = 64}, "num_warps is 64"},
		{{.num_warps = -4}, "num_warps is -4"},
		{{.num_stages = -1}, "num_stages is -1"},
		{{.num_stages = 65}, "num_stages is 65"},
		{{.grid = {1u << 31}}, "2147483648 programs along axis 0; the limit is 2147483647"},
		{{.grid = {1, 65536}}, "65536 programs along axis 1"},
		{{.grid = {1, 1, 65536}}, "65536 programs along axis 2"},
		{{.grid = {1}, .grid_dims = 4}, "grid_dims is 4; it must be from 0 to 3"},
		{{.grid = {1, 2}, .grid_dims = 1}, "2 programs along axis 1, but grid_dims is 1"},
		{{.stream = ctx}, "the interp device has no streams"},
	};
	for (u32 i = 0; i < ARRAY_LEN(bad); i++)
		assert_error(tl_launch(k, &bad[i].cfg, a, 5), TL_ERR_ARGUMENT, bad[i].error);
	const tl_config one = {0};
	double ms;
	char *text;
	assert_error(tl_launch(NULL, &one, a, 5), TL_ERR_ARGUMENT, "the kernel is NULL");
	assert_error(tl_launch(k, NULL, a, 5), TL_ERR_ARGUMENT, "the config is NULL");
	assert_error(tl_launch(k, &one, NULL, 5), TL_ERR_ARGUMENT, "the arguments are NULL");
	assert_error(tl_launch(k, &one, a, 3), TL_ERR_ARGUMENT, "argument 4, 'BLOCK', is missing");
	assert_error(tl_prepare(k, &bad[0].cfg, a, 5), TL_ERR_ARGUMENT, "num_warps");
	assert_error(tl_time(k, &one, a, 5, 0, 0, &ms), TL_ERR_ARGUMENT, "repeats");
	assert_error(tl_time(k, &one, a, 5, 0, 1, NULL), TL_ERR_ARGUMENT, "NULL");
	a[4] = tl_func("rleu");
	assert_error(tl_prepare(k, &one, a, 5), TL_ERR_ARGUMENT, "argument 5, 'ACT': t.tl has no function 'rleu'");
	a[4] = tl_func("relu");
	assert_error(tl_kernel_dump(k, &one, a, 5, "ptx", &text), TL_ERR_ARGUMENT,
		     "the interp device has no stage 'ptx'; it has ttir");
	assert_error(tl_kernel_dump(k, &one, a, 5, "", &text), TL_ERR_ARGUMENT, "no stage ''");
	assert_error(tl_kernel_dump(k, &one, a, 5, "ttir ", &text), TL_ERR_ARGUMENT, "no stage 'ttir '");
	assert_error(tl_kernel_dump(k, &one, a, 3, "ttir", &text), TL_ERR_ARGUMENT, "missing");
	a[4] = tl_func("s");
	assert_error(tl_prepare(k, &one, a, 5), TL_ERR_ARGUMENT, "t.tl has no function 's'");
	a[4] = tl_func("relu");
	assert_int_equal(tl_kernel_dump(k, NULL, a, 5, "ttir", &text), TL_OK);
	assert_non_null(strstr(text, "tt.func public @scale_kernel(%x: !tt.ptr<f32> {tt.divisibility = 16"));
	tl_free(text);
	tl_context_destroy(ctx);
}

/* Remarks and resources, where there is code for a GPU. */
static void machine_code(void **state)
{
	(void)state;
	tl_context *ctx;
	tl_kernel *k;
	tl_resources r;
	char *text;
	tl_arg a[] = {tl_ptr(TL_F32, x16), tl_int(5), tl_float(2), tl_int(512), tl_none()};
	const tl_config eight = {.num_warps = 8};
	assert_int_equal(tl_context_create("sim:80", &ctx), TL_OK);
	assert_int_equal(tl_module_kernel(load(ctx), "scale_kernel", &k), TL_OK);
	memset(&r, 0xFF, sizeof r);
	assert_int_equal(tl_kernel_resources(k, &eight, a, 5, &r), TL_OK);
	assert_int_equal(r.threads, 256);
	assert_int_equal(r.blocks, 1);
	assert_int_equal(r.shared_bytes, 0);
	assert_int_equal(r.registers, 0);
	assert_int_equal(tl_kernel_dump(k, NULL, a, 5, "remarks", &text), TL_OK);
	assert_non_null(strstr(text, "t.tl:15:9: remark: load: "));
	tl_free(text);
	tl_context_destroy(ctx);
	assert_int_equal(tl_context_create("interp", &ctx), TL_OK);
	assert_int_equal(tl_module_kernel(load(ctx), "scale_kernel", &k), TL_OK);
	assert_int_equal(tl_kernel_resources(k, NULL, a, 5, &r), TL_OK);
	assert_int_equal(r.threads, 0);
	assert_error(tl_kernel_dump(k, NULL, a, 5, "remarks", &text), TL_ERR_ARGUMENT,
		     "the interp device has no stage 'remarks'");
	assert_error(tl_kernel_resources(k, NULL, a, 5, NULL), TL_ERR_ARGUMENT, "out is NULL");
	assert_error(tl_kernel_resources(NULL, NULL, a, 5, &r), TL_ERR_ARGUMENT, "the kernel is NULL");
	assert_error(tl_kernel_resources(k, NULL, a, 3, &r), TL_ERR_ARGUMENT, "missing");
	tl_context_destroy(ctx);
}

/* A function is passed by its name, which a parameter may hide from the kernel. */
static void hidden_function(void **state)
{
	(void)state;
	static const char text[] = "@triton.jit\ndef act(x):\n    return x\n\n"
				   "@triton.jit\ndef f(x, act, g: tl.constexpr):\n    tl.store(x, g(1.0))\n";
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	assert_int_equal(tl_context_create("interp", &ctx), TL_OK);
	assert_int_equal(tl_module_load_source(ctx, "t.tl", text, sizeof text - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "f", &k), TL_OK);
	assert_error(tl_prepare(k, NULL, ARGS(tl_ptr(TL_F32, x16), tl_int(3), tl_func("act"))), TL_ERR_ARGUMENT,
		     "argument 3, 'g': the function 'act' has the name of a parameter");
	tl_context_destroy(ctx);
}

/* The host program's locale may write numbers with a comma. */
static void locales(void **state)
{
	(void)state;
	static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "C.UTF-8"};
	for (u32 i = 0; i < ARRAY_LEN(names) && !setlocale(LC_ALL, names[i]); i++)
		;
	static const char text[] = "@triton.jit\ndef f(x, S: tl.constexpr):\n    tl.store(x, S * 0.5)\n";
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	char *dump;
	assert_int_equal(tl_context_create("interp", &ctx), TL_OK);
	assert_int_equal(tl_module_load_source(ctx, "t.tl", text, sizeof text - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "f", &k), TL_OK);
	assert_int_equal(tl_kernel_dump(k, NULL, ARGS(tl_ptr(TL_F32, x16), tl_float(0.5)), "ttir", &dump), TL_OK);
	assert_non_null(strstr(dump, "2.500000e-01"));
	tl_free(dump);
	tl_context_destroy(ctx);
	setlocale(LC_ALL, "C");
}

/* --- buffers ------------------------------------------------------------------------------------------------- */

static void buffers(void **state)
{
	(void)state;
	tl_context *ctx;
	tl_buffer *b, *empty;
	u8 host[100], back[100];
	for (u32 i = 0; i < sizeof host; i++)
		host[i] = (u8)i;
	assert_int_equal(tl_context_create("interp", &ctx), TL_OK);
	assert_error(tl_buffer_create(ctx, 100, NULL), TL_ERR_ARGUMENT, "NULL");
	assert_error(tl_buffer_create(NULL, 100, &b), TL_ERR_ARGUMENT, "NULL");
	assert_error(tl_buffer_create(ctx, SIZE_MAX - 10, &b), TL_ERR_MEMORY, "out of memory");
	assert_error(tl_buffer_create(ctx, SIZE_MAX / 4, &b), TL_ERR_MEMORY, "out of memory");
	assert_int_equal(tl_buffer_create(ctx, 100, &b), TL_OK);
	assert_int_equal((uintptr_t)tl_buffer_ptr(b) % 256, 0);
	assert_int_equal(tl_buffer_size(b), 100);
	assert_int_equal(tl_buffer_read(b, 0, back, 100), TL_OK);
	assert_int_equal(back[99], 0xA5);
	assert_int_equal(tl_buffer_fill(b, 0), TL_OK);
	assert_int_equal(tl_buffer_write(b, 10, host, 90), TL_OK);
	assert_int_equal(tl_buffer_read(b, 0, back, 100), TL_OK);
	assert_int_equal(back[9], 0);
	assert_memory_equal(back + 10, host, 90);
	assert_error(tl_buffer_write(b, 11, host, 90), TL_ERR_ARGUMENT,
		     "90 bytes at offset 11 end outside this buffer of 100");
	assert_error(tl_buffer_read(b, 101, back, 0), TL_ERR_ARGUMENT, "outside");
	assert_error(tl_buffer_read(b, SIZE_MAX, back, 2), TL_ERR_ARGUMENT, "outside");
	assert_error(tl_buffer_read(b, 2, back, SIZE_MAX), TL_ERR_ARGUMENT, "outside");
	assert_error(tl_buffer_read(b, 0, NULL, 1), TL_ERR_ARGUMENT, "the host address is NULL");
	assert_error(tl_buffer_read(NULL, 0, back, 1), TL_ERR_ARGUMENT, "the buffer is NULL");
	assert_error(tl_buffer_fill(NULL, 0), TL_ERR_ARGUMENT, "NULL");
	assert_int_equal(tl_buffer_read(b, 100, NULL, 0), TL_OK);
	assert_int_equal(tl_buffer_create(ctx, 0, &empty), TL_OK);
	assert_non_null(tl_buffer_ptr(empty));
	assert_int_equal(tl_buffer_fill(empty, 1), TL_OK);
	assert_null(tl_buffer_ptr(NULL));
	assert_int_equal(tl_buffer_size(NULL), 0);
	tl_buffer_destroy(b);
	tl_buffer_destroy(NULL);
	tl_context_destroy(ctx); /* with the other buffer */
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(tl_dtype_name(TL_F8E4M3), "fp8e4nv");
	assert_string_equal(tl_dtype_name((tl_dtype)99), "unknown");
	assert_int_equal(tl_dtype_size(TL_I1), 1);
	assert_int_equal(tl_dtype_size(TL_BF16), 2);
	assert_int_equal(tl_dtype_size((tl_dtype)-1), 0);
	assert_string_equal(tl_status_name(TL_ERR_KERNEL), "kernel failed");
	assert_string_equal(tl_status_name((tl_status)99), "unknown status");
}

/* A text that does not fit is cut and says so; two threads have two texts. */
static void *other_thread(void *arg)
{
	(void)arg;
	assert_string_equal(tl_error(NULL), "");
	failed(TL_ERR_FILE, "other");
	return NULL;
}

static void error_texts(void **state)
{
	(void)state;
	static char big[40000];
	memset(big, 'x', sizeof big - 1);
	failed_text(TL_ERR_FILE, big);
	assert_true(strlen(tl_error(NULL)) < 16384);
	assert_non_null(strstr(tl_error(NULL), "was cut)"));
	failed_more("%s", "more");
	failed_text(TL_ERR_FILE, "lines\n\n");
	assert_string_equal(tl_error(NULL), "lines");
	failed_more(" and %d", 5);
	assert_string_equal(tl_error(NULL), "lines and 5");
	pthread_t t;
	pthread_create(&t, NULL, other_thread, NULL);
	pthread_join(t, NULL);
	assert_string_equal(tl_error(NULL), "lines and 5");
}

/* --- diagnostics --------------------------------------------------------------------------------------------- */

struct heard {
	int n[4];
	char first[400], shown[1000];
	uint32_t line, column;
};

static void hear(void *user, const tl_diagnostic *d)
{
	struct heard *h = user;
	if (!h->n[d->severity]++ && d->severity == TL_SEVERITY_WARNING) {
		snprintf(h->first, sizeof h->first, "%s|%s|%s", d->file, d->text, d->hint);
		snprintf(h->shown, sizeof h->shown, "%s", d->shown);
		h->line = d->line;
		h->column = d->column;
	}
	assert_int_equal(tl_synchronize(NULL), TL_ERR_ARGUMENT); /* the library may be called */
}

static void diagnostics(void **state)
{
	(void)state;
	static const char warned[] = "import triton\nimport triton.language as tl\n\n@triton.jit\n"
				     "def k(x, B: tl.constexpr):\n    i = tl.arange(0, B)\n"
				     "    v = tl.load(x + i)\n    show(v)\n    tl.store(x + i, v * 2)\n\n"
				     "def show(v):\n    print(v)\n\n"
				     "@triton.jit\ndef wrong(x):\n    tl.store(x, undefined_name)\n";
	static float x[256];
	struct heard h = {{0}, "", "", 0, 0};
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k, *wrong;
	char *text;
	assert_int_equal(tl_context_create("sim:80", &ctx), TL_OK);
	assert_int_equal(tl_module_load_source(ctx, "w.tl", warned, sizeof warned - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "k", &k), TL_OK);
	assert_int_equal(tl_module_kernel(m, "wrong", &wrong), TL_OK);
	assert_int_equal(tl_module_diagnostics(m, &text), TL_OK);
	assert_string_equal(text, "");
	tl_free(text);
	/* without a callback they are kept, once */
	assert_int_equal(tl_prepare(k, NULL, ARGS(tl_ptr(TL_F32, x), tl_int(64))), TL_OK);
	assert_string_equal(tl_error(ctx), "");
	assert_int_equal(tl_prepare(k, NULL, ARGS(tl_ptr(TL_F32, x), tl_int(128))), TL_OK);
	assert_int_equal(tl_module_diagnostics(m, &text), TL_OK);
	char *at = strstr(text, "w.tl:8:");
	assert_non_null(at);
	assert_non_null(strstr(at, "warning: "));
	assert_null(strstr(at + 1, "w.tl:8:"));
	/* with one they are heard */
	assert_int_equal(tl_context_diagnostics(ctx, hear, &h, false), TL_OK);
	assert_int_equal(tl_prepare(k, NULL, ARGS(tl_ptr(TL_F32, x), tl_int(256))), TL_OK);
	assert_int_equal(h.n[TL_SEVERITY_WARNING], 1);
	assert_int_equal(h.n[TL_SEVERITY_REMARK], 0);
	assert_int_equal(h.line, 8);
	assert_true(h.column > 1);
	assert_memory_equal(h.first, "w.tl|", 5);
	assert_string_equal(h.shown, text);
	tl_free(text);
	assert_error(tl_prepare(wrong, NULL, ARGS(tl_ptr(TL_F32, x))), TL_ERR_COMPILE, "undefined_name");
	assert_int_equal(h.n[TL_SEVERITY_ERROR], 1);
	assert_int_equal(tl_context_diagnostics(ctx, hear, &h, true), TL_OK);
	assert_int_equal(tl_prepare(k, NULL, ARGS(tl_ptr(TL_F32, x), tl_int(32))), TL_OK);
	assert_true(h.n[TL_SEVERITY_REMARK] > 0);
	assert_int_equal(tl_module_diagnostics(m, &text), TL_OK);
	assert_null(strstr(text, "remark: "));
	assert_non_null(strstr(text, "undefined_name"));
	tl_free(text);
	/* and with none no more */
	assert_int_equal(tl_context_diagnostics(ctx, NULL, NULL, false), TL_OK);
	assert_int_equal(tl_prepare(k, NULL, ARGS(tl_ptr(TL_F32, x), tl_int(16))), TL_OK);
	assert_int_equal(h.n[TL_SEVERITY_WARNING], 2);
	tl_context_destroy(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variants),    cmocka_unit_test(multiples),    cmocka_unit_test(dots_of_calls),
		cmocka_unit_test(described),   cmocka_unit_test(grids),        cmocka_unit_test(overlapping),
		cmocka_unit_test(slots),       cmocka_unit_test(few_blocks),   cmocka_unit_test(threads),
		cmocka_unit_test(failures),    cmocka_unit_test(contexts),     cmocka_unit_test(modules),
		cmocka_unit_test(calls),       cmocka_unit_test(machine_code), cmocka_unit_test(hidden_function),
		cmocka_unit_test(locales),     cmocka_unit_test(buffers),      cmocka_unit_test(names),
		cmocka_unit_test(diagnostics), cmocka_unit_test(error_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which variants of a kernel are compiled and when, on a device that only counts compilations, loads and launches. */
#include <pthread.h>
#include <unistd.h>

#include "test_runtime.h"

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
	out->kernel = compile_ir(b->unit, b->func, b->args, &(struct compile_options){0});
	return out->kernel;
}

static tl_status counter_load(struct device *d, const struct device_load *l, void **out)
{
	struct counter *k = (struct counter *)d;
	if (k->refuse > 0) {
		k->refuse--;
		return failed(TL_ERR_MEMORY, "no room just now");
	}
	k->loaded++;
	k->live++;
	*out = (void *)(uintptr_t)l->image->num_warps;
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

static void *const x4 = (void *)(uintptr_t)0x1004;

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
	assert_int_equal(tl_prepare(k, NULL, args, 5, NULL), TL_OK);
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
		"    tl.store(p + n + tl.arange(0, 16), tl.sum(x, 1))\n\n"
		"@triton.jit\ndef given(p, n, F: tl.constexpr):\n"
		"    tl.store(p + n + tl.arange(0, 16), tl.sum(F(tile(p)), 1))\n\n"
		"@triton.jit\ndef imported(p, n):\n    x = tile(p)\n"
		"    tl.store(p + n + tl.arange(0, 16), tl.sum(product(x, x), 1).to(tl.float16))\n";
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

/* Divisors make variants only where they can change the code, and nowhere where they are not wanted. */
static void useful(void **state)
{
	(void)state;
	static const char text[] =
		"import triton\nimport triton.language as tl\n\n"
		"@triton.jit\ndef noise(p, seed, n, step):\n"
		"    i = tl.program_id(0) * 16 + tl.arange(0, 16)\n"
		"    tl.store(p + i, tl.rand(seed, i) + step, mask=i < n)\n\n"
		"NAMES = ['n']\n\n"
		"@triton.jit(do_not_specialize=NAMES, do_not_specialize_on_alignment=[0])\ndef told(p, n):\n"
		"    i = tl.arange(0, 16)\n    tl.store(p + i, 1.0, mask=i < n)\n";
	static const struct {
		int64_t seed, n, step;
		int compiled;
	} launches[] = {{5, 5, 5, 1}, {16, 5, 8, 1}, {0, 5, 256, 1}, {5, 16, 0, 2}, {8, 32, 5, 2}, {1, 32, 5, 3}};
	struct counter c = {.device.ops = &counter_ops, .keep = true};
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	assert_int_equal(context_new(&c.device, &ctx), TL_OK);
	assert_int_equal(tl_module_load_source(ctx, "t.tl", text, sizeof text - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "noise", &k), TL_OK);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < ARRAY_LEN(launches); i++) {
			assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}},
						   ARGS(tl_ptr(TL_F32, x16), tl_int(launches[i].seed),
							tl_int(launches[i].n), tl_int(launches[i].step))),
					 TL_OK);
			assert_int_equal(c.compiled, pass ? 3 : launches[i].compiled);
			assert_int_equal((int64_t)(int32_t)c.args[2 - (launches[i].seed == 1)], launches[i].n);
		}
	const tl_config plain = {.grid = {1}, .specialization = TL_SPECIALIZE_NONE};
	for (int64_t n = 0; n < 20; n++) { /* in turn with others: each finds its own */
		assert_int_equal(
			tl_launch(k, &plain, ARGS(tl_ptr(TL_F32, n % 2 ? x4 : x16), tl_int(n), tl_int(n), tl_int(n))),
			TL_OK);
		assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}},
					   ARGS(tl_ptr(TL_F32, x16), tl_int(5), tl_int(16), tl_int(n + 2))),
				 TL_OK);
		assert_int_equal(c.compiled, 4);
	}
	assert_int_equal(tl_launch(k, &(tl_config){.grid = {1}, .specialization = (tl_specialization)2},
				   ARGS(tl_ptr(TL_F32, x16), tl_int(5), tl_int(16), tl_int(2))),
			 TL_ERR_ARGUMENT);
	for (int64_t n = 0; n < 20; n++)
		assert_int_equal(
			tl_launch(k, &(tl_config){.grid = {1}},
				  ARGS(tl_ptr(TL_F32, x16), tl_int(5), tl_unspecialized(tl_int(n)), tl_int(2))),
			TL_OK);
	assert_int_equal(c.compiled, 4); /* n = 5 was there */
	assert_int_equal(tl_module_kernel(m, "told", &k), TL_OK);
	for (int64_t n = 0; n < 20; n++)
		assert_int_equal(
			tl_launch(k, &(tl_config){.grid = {1}}, ARGS(tl_ptr(TL_F32, n % 2 ? x4 : x16), tl_int(n))),
			TL_OK);
	assert_int_equal(c.compiled, 5);
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
	struct target target = cuda_description(90, true);
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
		{{.grid = {5, 1, 3}, .max_ctas = -1}, {5, 1, 3}, false, 2},
		{{.grid = {5, 1, 3}, .max_ctas = 7}, {7, 1, 1}, true, 2},
		{{.grid = {5, 1, 3}, .max_ctas = 15}, {5, 1, 3}, false, 2},
		{{.grid = {2, 2}, .max_ctas = 3}, {3, 1, 1}, true, 2},
		{{.grid = {1 << 20, 4096}}, {1 << 20, 4096, 1}, false, 2}, /* programs are counted in 32 bits */
		{{.grid = {33, 1}}, {4, 1, 1}, true, 2},
		{{.grid = {8, 3}}, {4, 1, 1}, true, 2},
		{{.grid = {33, 2}}, {4, 1, 1}, true, 3}, /* so many rows and columns are taken in groups */
		{{.grid = {40, 3}}, {4, 1, 1}, true, 3},
		{{.grid = {40, 3}, .max_ctas = 30}, {30, 1, 1}, true, 3},
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
		assert_int_equal(tl_prepare(product, &config, args, 5, NULL), TL_OK);
	}
	args[4] = tl_int(64); /* two blocks fit a multiprocessor */
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(tl_launch(product, &(tl_config){.grid = {i % 2 ? 2 : 20}, .num_stages = 2}, args, 5),
				 TL_OK);
		assert_int_equal(c.last.grid[0], i % 2 ? 2 : 20);
		assert_int_equal(c.compiled, 4);
	}
	for (uint32_t i = 0; i < 4; i++) {
		const tl_config config = {.grid = {i % 2 ? 2 : 40, 4}, .num_stages = 2};
		assert_int_equal(tl_launch(product, &config, args, 5), TL_OK);
		assert_int_equal(c.last.grid[0], config.grid[0]);
		assert_int_equal(c.compiled, 5);
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(tl_launch(copy, &(tl_config){.grid = {i % 2 ? 20 : 2}}, args, 5), TL_OK);
	assert_int_equal(c.compiled, 6);
	assert_int_equal(c.loaded, 6);
	assert_error(tl_launch(copy, &(tl_config){.grid = {1}, .max_ctas = -2}, args, 5), TL_ERR_ARGUMENT,
		     "max_ctas is -2");
	tl_context_destroy(ctx);
	assert_int_equal(c.live, 0);
}

static tl_status no_tensor_map(struct device *d, const struct tensor_map_shape *b, void *out)
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
		assert_int_equal(tl_prepare(k, &config, args, ARRAY_LEN(args), NULL), TL_OK);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variants),      cmocka_unit_test(useful),    cmocka_unit_test(multiples),
		cmocka_unit_test(dots_of_calls), cmocka_unit_test(described), cmocka_unit_test(grids),
		cmocka_unit_test(overlapping),   cmocka_unit_test(slots),     cmocka_unit_test(few_blocks),
		cmocka_unit_test(threads),       cmocka_unit_test(failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

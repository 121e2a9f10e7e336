/* Code that is assembled once more, for another number of resident blocks, on a simulated CUDA driver. */
#include "cache_folder.h"
#include "fake_cuda.h"

static const char source[] = "import triton\nimport triton.language as tl\n\n@triton.jit\n"
			     "def k(x):\n    i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]\n"
			     "    y = tl.load(x + i)\n    tl.store(x + i, tl.dot(y, y))\n";

enum { FEW = 1, MANY = 100000 };

static int new_driver_and_folder(void **state)
{
	reset(state);
	return new_folder(state);
}

static int registers(tl_kernel *k, unsigned programs)
{
	const tl_arg x = tl_ptr(TL_F32, (void *)(uintptr_t)0x8000000);
	tl_resources r;
	assert_int_equal(tl_kernel_resources(k, &(tl_config){.grid = {programs}, .num_warps = 4}, &x, 1, &r), TL_OK);
	return r.registers;
}

/* Compares the registers of a thread in the code for a number of programs. */
static void assert_registers(unsigned programs, int expected)
{
	struct device *d;
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	assert_int_equal(cuda_device_new(&api, 0, NULL, &d), TL_OK);
	assert_int_equal(context_new(d, &ctx), TL_OK);
	assert_int_equal(tl_module_load_source(ctx, "k.tl", source, sizeof source - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "k", &k), TL_OK);
	assert_int_equal(registers(k, programs), expected);
	assert_int_equal(registers(k, FEW), expected); /* the same code */
	tl_context_destroy(ctx);
	assert_clean(0);
}

static void resident_blocks(void **state)
{
	static const struct {
		int registers, spilled, few, many;
	} cases[] = {
		{100, 0, 128, 80},   /* two blocks more than 4; for few programs all registers of 4 blocks */
		{100, 16, 128, 80},  /* a few bytes are spilled */
		{112, 17, 112, 112}, /* too many */
		{100, 17, 128, 128}, /* too many, and 4 blocks may take more registers */
		{108, 0, 128, 96},   /* one block more than 4 */
		{172, 0, 172, 168},  /* one block more than 2 */
		{250, 0, 250, 250},  /* 2 blocks with almost all registers */
		{32, 0, 32, 32},     /* many resident warps */
		{88, 0, 88, 88},     /* 20 resident warps */
	};
	for (u32 i = 0; i < ARRAY_LEN(cases); i++) {
		remove_folder(state);
		new_driver_and_folder(state);
		driver.registers = cases[i].registers;
		driver.spilled = cases[i].spilled;
		assert_registers(FEW, cases[i].few);
		assert_registers(MANY, cases[i].many);
		/* from the disk cache: assembled once */
		driver.loads = 0;
		assert_registers(MANY, cases[i].many);
		assert_int_equal(driver.loads, 1);
	}
}

/* Images of which the PTX must not be assembled for other numbers of resident blocks, and an image for comparison. */
static void excluded_images(void **state)
{
	static char large[200 << 10];
	(void)state;
	snprintf(large, sizeof large, ".version 8.0\n.reqntid 128\n%*s", (int)sizeof large - 100, "");
	const struct {
		const char *code;
		bool compiled, persistent;
		int cluster, grid, loads;
	} cases[] = {
		{".version 8.0\n.reqntid 128\n", true, false, 1, GRID_MANY, 2},
		{".version 8.0\n.reqntid 128\n", true, false, 1, GRID_FEW, 2},
		{".version 8.0\n.reqntid 128\n", false, false, 1, GRID_MANY, 1}, /* from a file */
		{".version 8.0\n.reqntid 128\n", true, true, 1, GRID_MANY, 1},
		{".version 8.0\n.reqntid 128\n", true, false, 2, GRID_MANY, 1},
		{".version 8.0\n.reqntid 128\n.minnctapersm 1\n", true, false, 1, GRID_MANY, 1},
		{".version 8.0\n.reqntid 128\n.maxnreg 104\n", true, false, 1, GRID_MANY, 1},
		{".version 8.0\n.reqntid 128\nsetmaxnreg.inc.sync.aligned.u32 232;\n", true, false, 1, GRID_MANY, 1},
		{large, true, false, 1, GRID_MANY, 1},
	};
	struct device *d = open_device(NULL);
	driver.registers = 100;
	for (u32 i = 0; i < ARRAY_LEN(cases); i++) {
		struct image im = {.name = "k",
				   .code = cases[i].code,
				   .code_bytes = (u32)strlen(cases[i].code),
				   .codegen.grid = cases[i].grid,
				   .persistent = cases[i].persistent,
				   .num_warps = 4,
				   .cluster = cases[i].cluster};
		void *k;
		driver.loads = 0;
		const struct compiled compiled = {0};
		const struct device_load l = {.image = &im, .compiled = cases[i].compiled ? &compiled : NULL};
		assert_int_equal(d->ops->load(d, &l, &k), TL_OK);
		assert_int_equal(driver.loads, cases[i].loads);
		assert_int_equal(im.code != cases[i].code, cases[i].loads > 1);
		d->ops->unload(d, k);
		arena_free(&im.arena);
	}
	d->ops->close(d);
	assert_clean(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(resident_blocks, new_driver_and_folder, remove_folder),
		cmocka_unit_test_setup(excluded_images, reset),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

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

/* The registers of a thread in the code for so many programs. */
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
		int registers, spilled, many;
	} cases[] = {
		{100, 0, 80},    /* two blocks more than 4 */
		{100, 16, 80},   /* a few bytes are spilled */
		{112, 17, 112},  /* too many */
		{100, 17, 128},  /* too many, and 4 blocks may take more registers */
		{108, 0, 96},    /* one block more than 4 */
		{172, 0, 168},   /* one block more than 2 */
		{250, 0, 250},   /* 2 blocks with almost all registers */
		{32, 0, 32},     /* many resident warps */
		{88, 0, 88},     /* 20 resident warps */
	};
	for (u32 i = 0; i < ARRAY_LEN(cases); i++) {
		remove_folder(state);
		new_driver_and_folder(state);
		driver.registers = cases[i].registers;
		driver.spilled = cases[i].spilled;
		assert_registers(FEW, cases[i].registers);
		assert_registers(MANY, cases[i].many);
		/* from the disk cache: assembled once */
		driver.loads = 0;
		assert_registers(MANY, cases[i].many);
		assert_int_equal(driver.loads, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(resident_blocks, new_driver_and_folder, remove_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

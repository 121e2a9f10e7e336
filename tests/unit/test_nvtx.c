/* Ranges for profilers: those of compilations and launches, and what is made of tools that are none. */
#include "fake_cuda.h"

#include <dlfcn.h>
#include <libgen.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/device/nvtx.h"

static char tool[4096]; /* the library, beside this program */
static char *ranges;    /* what it writes down */

static const char source[] = "@triton.jit\ndef k(x):\n    tl.store(x, 1)\n",
		  wrong[] = "@triton.jit\ndef k(x):\n    tl.store(x, y)\n";

/* In a process of its own, since a process attaches one tool for good. */
static bool attaches(const char *path, bool refuses)
{
	pid_t pid = fork();
	if (!pid) {
		path ? setenv("NVTX_INJECTION64_PATH", path, 1) : unsetenv("NVTX_INJECTION64_PATH");
		if (refuses)
			setenv("NVTX_TOOL_REFUSES", "1", 1);
		_exit(nvtx_tool() != NULL);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void attaching(void **state)
{
	(void)state;
	assert_true(attaches(tool, false));
	assert_false(attaches(tool, true));
	assert_false(attaches(NULL, false));
	assert_false(attaches("", false));
	assert_false(attaches("/none.so", false));
	assert_false(attaches("libpthread.so.0", false)); /* no tool's library */
}

static void launching(void **state)
{
	(void)state;
	tl_context *ctx;
	tl_module *m;
	tl_kernel *k;
	tl_buffer *b;
	tl_prepared *p;
	double ms;
	setenv("NVTX_INJECTION64_PATH", tool, 1);
	assert_int_equal(context_new(open_device(NULL), &ctx), TL_OK);
	void *lib = dlopen(tool, RTLD_LAZY | RTLD_NOLOAD);
	assert_non_null(lib);
	ranges = dlsym(lib, "tool_log");
	assert_int_equal(tl_buffer_create(ctx, 16, &b), TL_OK);
	tl_arg x = tl_buf(TL_F32, b);
	const tl_config config = {.grid = {1}}, together = {.grid = {1}, .launch_cooperative_grid = true};
	assert_int_equal(tl_module_load_source(ctx, "k.tl", source, sizeof source - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "k", &k), TL_OK);
	assert_int_equal(tl_launch(k, &config, &x, 1), TL_OK);
	assert_string_equal(ranges, "(compile k;);(k;);");
	ranges[0] = 0;
	assert_int_equal(tl_launch(k, &together, &x, 1), TL_OK);
	assert_int_equal(tl_time(k, &config, &x, 1, 1, 1, &ms), TL_OK);
	assert_int_equal(tl_prepare(k, &config, &x, 1, &p), TL_OK);
	assert_int_equal(tl_prepared_launch(p, NULL, NULL, &x, 1), TL_OK);
	assert_string_equal(ranges, "(k;);(k;);(k;);(k;);");
	/* a launch that fails ends its range, too */
	ranges[0] = 0;
	driver.fail = "launch";
	driver.error = 1;
	assert_int_equal(tl_launch(k, &config, &x, 1), TL_ERR_DRIVER);
	driver.fail = NULL;
	assert_string_equal(ranges, "(k;);");
	/* a kernel that cannot be compiled, as well */
	ranges[0] = 0;
	assert_int_equal(tl_module_load_source(ctx, "k.tl", wrong, sizeof wrong - 1, &m), TL_OK);
	assert_int_equal(tl_module_kernel(m, "k", &k), TL_OK);
	assert_int_equal(tl_launch(k, &config, &x, 1), TL_ERR_COMPILE);
	assert_string_equal(ranges, "(compile k;);");
	tl_context_destroy(ctx);
	dlclose(lib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(attaching, reset),
		cmocka_unit_test_setup(launching, reset),
	};
	char self[3000] = "";
	if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
		return 1;
	snprintf(tool, sizeof tool, "%s/nvtx-tool.so", dirname(self));
	return cmocka_run_group_tests(tests, NULL, NULL);
}

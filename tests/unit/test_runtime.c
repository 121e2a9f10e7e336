/* The runtime around the kernels: contexts, buffers, modules, diagnostics, the checks of a call. */
#include <locale.h>
#include <pthread.h>
#include <unistd.h>

#include "test_runtime.h"

/* --- contexts, modules, kernels ------------------------------------------------------------------------------ */

static void contexts(void **state)
{
	(void)state;
	tl_context *ctx = NULL;
	tl_device_info info;
	assert_error(tl_context_create("interp", NULL), TL_ERR_ARGUMENT, "NULL");
	assert_error(tl_context_create("tpu", &ctx), TL_ERR_DEVICE,
		     "unknown device 'tpu'; there are cuda[:N], cpu[:check], interp");
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
		{{.group_pids = -1}, "group_pids is -1; it must be from 0 to 1048576"},
		{{.maxnreg = -1}, "maxnreg is -1; it must be from 0 to 256"},
		{{.maxnreg = 257}, "maxnreg is 257"},
		{{.fp_fusion = 3}, "fp_fusion is 3; it must be 0 (default), 1 (on) or 2 (off)"},
		{{.ftz = (tl_ftz)3}, "ftz is 3; it must be 0 (default), 1 (on) or 2 (off)"},
		{{.abi = (tl_abi)2}, "abi is 2, which does not exist"},
		{{.abi = TL_ABI_TRITON}, "code for Triton's launcher is for tl_kernel_dump"},
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
	assert_error(tl_prepare(k, &bad[0].cfg, a, 5, NULL), TL_ERR_ARGUMENT, "num_warps");
	assert_error(tl_time(k, &one, a, 5, 0, 0, &ms), TL_ERR_ARGUMENT, "repeats");
	assert_error(tl_time(k, &one, a, 5, 0, 1, NULL), TL_ERR_ARGUMENT, "NULL");
	a[4] = tl_func("rleu");
	assert_error(tl_prepare(k, &one, a, 5, NULL), TL_ERR_ARGUMENT,
		     "argument 5, 'ACT': t.tl has no function 'rleu'");
	a[4] = tl_func("relu");
	assert_error(tl_kernel_dump(k, &one, a, 5, "ptx", &text), TL_ERR_ARGUMENT,
		     "the interp device has no stage 'ptx'; it has ttir");
	assert_error(tl_kernel_dump(k, &one, a, 5, "", &text), TL_ERR_ARGUMENT, "no stage ''");
	assert_error(tl_kernel_dump(k, &one, a, 5, "ttir ", &text), TL_ERR_ARGUMENT, "no stage 'ttir '");
	assert_error(tl_kernel_dump(k, &one, a, 3, "ttir", &text), TL_ERR_ARGUMENT, "missing");
	a[4] = tl_func("s");
	assert_error(tl_prepare(k, &one, a, 5, NULL), TL_ERR_ARGUMENT, "t.tl has no function 's'");
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
	for (int maxnreg = 0; maxnreg <= 40; maxnreg += 40) { /* variants of their own */
		assert_int_equal(tl_kernel_dump(k, &(tl_config){.maxnreg = maxnreg}, a, 5, "ptx", &text), TL_OK);
		assert_true(!strstr(text, ".maxnreg 40\n") == !maxnreg);
		tl_free(text);
	}
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
	assert_error(tl_prepare(k, NULL, ARGS(tl_ptr(TL_F32, x16), tl_int(3), tl_func("act")), NULL), TL_ERR_ARGUMENT,
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
	assert_int_equal(tl_prepare(k, NULL, ARGS(tl_ptr(TL_F32, x), tl_int(64)), NULL), TL_OK);
	assert_string_equal(tl_error(ctx), "");
	assert_int_equal(tl_prepare(k, NULL, ARGS(tl_ptr(TL_F32, x), tl_int(128)), NULL), TL_OK);
	assert_int_equal(tl_module_diagnostics(m, &text), TL_OK);
	char *at = strstr(text, "w.tl:8:");
	assert_non_null(at);
	assert_non_null(strstr(at, "warning: "));
	assert_null(strstr(at + 1, "w.tl:8:"));
	/* with one they are heard */
	assert_int_equal(tl_context_diagnostics(ctx, hear, &h, false), TL_OK);
	assert_int_equal(tl_prepare(k, NULL, ARGS(tl_ptr(TL_F32, x), tl_int(256)), NULL), TL_OK);
	assert_int_equal(h.n[TL_SEVERITY_WARNING], 1);
	assert_int_equal(h.n[TL_SEVERITY_REMARK], 0);
	assert_int_equal(h.line, 8);
	assert_true(h.column > 1);
	assert_memory_equal(h.first, "w.tl|", 5);
	assert_string_equal(h.shown, text);
	tl_free(text);
	assert_error(tl_prepare(wrong, NULL, ARGS(tl_ptr(TL_F32, x)), NULL), TL_ERR_COMPILE, "undefined_name");
	assert_int_equal(h.n[TL_SEVERITY_ERROR], 1);
	assert_int_equal(tl_context_diagnostics(ctx, hear, &h, true), TL_OK);
	assert_int_equal(tl_prepare(k, NULL, ARGS(tl_ptr(TL_F32, x), tl_int(32)), NULL), TL_OK);
	assert_true(h.n[TL_SEVERITY_REMARK] > 0);
	assert_int_equal(tl_module_diagnostics(m, &text), TL_OK);
	assert_null(strstr(text, "remark: "));
	assert_non_null(strstr(text, "undefined_name"));
	tl_free(text);
	/* and with none no more */
	assert_int_equal(tl_context_diagnostics(ctx, NULL, NULL, false), TL_OK);
	assert_int_equal(tl_prepare(k, NULL, ARGS(tl_ptr(TL_F32, x), tl_int(16)), NULL), TL_OK);
	assert_int_equal(h.n[TL_SEVERITY_WARNING], 2);
	tl_context_destroy(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contexts),
		cmocka_unit_test(modules),
		cmocka_unit_test(calls),
		cmocka_unit_test(machine_code),
		cmocka_unit_test(hidden_function),
		cmocka_unit_test(locales),
		cmocka_unit_test(buffers),
		cmocka_unit_test(names),
		cmocka_unit_test(diagnostics),
		cmocka_unit_test(error_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The CUDA device on a GPU, with PTX written by hand in place of the code generator: what the driver really does with
 * our calls, and what a launch costs beside a bare cuLaunchKernel. Skipped where no GPU answers. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "runtime/device/cuda_api.h"
#include "runtime/api/objects.h"

#define ARGS(...) (tl_arg[]){__VA_ARGS__}, sizeof((tl_arg[]){__VA_ARGS__}) / sizeof(tl_arg)

/* The same kernels twice: the source gives the parameters, the PTX the code. */
static const char source[] =
	"import triton\nimport triton.language as tl\n"
	"@triton.jit\ndef add(x, y, out, n):\n    tl.store(out, tl.load(x) + tl.load(y) + n)\n"
	"@triton.jit\ndef widths(out, a, b, c, d, e, f):\n    tl.store(out, a + b + c + d + e + f)\n"
	"@triton.jit\ndef shared(out):\n    tl.store(out, 0.0)\n"
	"@triton.jit\ndef wrong(out):\n    tl.store(out, 0.0)\n";

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"
static const struct {
	const char *name, *ptx;
	i32 shared_bytes;
} kernels[] = {
	{"add", HEAD ".visible .entry add(.param .u64 x, .param .u64 y, .param .u64 out, .param .u32 n)\n{\n"
		".reg .pred %p;\n.reg .u32 %i<5>;\n.reg .u64 %a<8>;\n.reg .f32 %f<4>;\n"
		"ld.param.u64 %a1, [x];\nld.param.u64 %a2, [y];\nld.param.u64 %a3, [out];\nld.param.u32 %i1, [n];\n"
		"mov.u32 %i2, %ctaid.x;\nmov.u32 %i3, %ntid.x;\nmov.u32 %i4, %tid.x;\nmad.lo.u32 %i2, %i2, %i3, %i4;\n"
		"setp.ge.u32 %p, %i2, %i1;\n@%p ret;\n"
		"mul.wide.u32 %a4, %i2, 4;\nadd.u64 %a1, %a1, %a4;\nadd.u64 %a2, %a2, %a4;\nadd.u64 %a3, %a3, %a4;\n"
		"ld.global.f32 %f1, [%a1];\nld.global.f32 %f2, [%a2];\nadd.f32 %f3, %f1, %f2;\n"
		"st.global.f32 [%a3], %f3;\nret;\n}\n", 0},
	{"widths", HEAD ".visible .entry widths(.param .u64 out, .param .u8 a, .param .u16 b, "
	 ".param .u32 c, .param .u64 d,\n"
		".param .u16 e, .param .f64 f)\n{\n.reg .u64 %a<4>;\n.reg .f64 %f<2>;\n"
		".reg .u32 %i<4>;\n.reg .u16 %s<4>;\n"
		"ld.param.u64 %a1, [out];\nld.param.u8 %s1, [a];\nst.global.u16 [%a1], %s1;\nld.param.u16 %s1, [b];\n"
		"st.global.u16 [%a1+2], %s1;\nld.param.u32 %i1, [c];\n"
		"st.global.u32 [%a1+4], %i1;\nld.param.u64 %a2, [d];\n"
		"st.global.u64 [%a1+8], %a2;\nld.param.u16 %s1, [e];\n"
		"st.global.u16 [%a1+16], %s1;\nld.param.f64 %f1, [f];\n"
		"st.global.f64 [%a1+24], %f1;\nret;\n}\n", 0},
	{"shared", HEAD ".extern .shared .align 16 .b8 smem[];\n.visible .entry shared(.param .u64 out)\n{\n"
		".reg .u32 %i<6>;\n.reg .u64 %a<4>;\n"
		"ld.param.u64 %a1, [out];\nmov.u32 %i1, %tid.x;\nshl.b32 %i2, %i1, 2;\n"
		"mov.u32 %i3, smem;\nadd.u32 %i3, %i3, %i2;\n"
		"st.shared.u32 [%i3+63488], %i1;\nbar.sync 0;\nxor.b32 %i4, %i2, 508;\n"
		"mov.u32 %i3, smem;\nadd.u32 %i3, %i3, %i4;\n"
		"ld.shared.u32 %i5, [%i3+63488];\nmul.wide.u32 %a2, %i1, 4;\nadd.u64 %a1, %a1, %a2;\n"
		"st.global.u32 [%a1], %i5;\nret;\n}\n",
		64 * 1024},
	{"wrong", HEAD ".visible .entry wrong(.param .u64 out)\n{\nthis is no instruction;\nret;\n}\n", 0},
};

static bool by_hand(struct device *d, const struct build *b, struct compiled *out)
{
	(void)d;
	out->kernel = compile_ir(b->unit, b->func, b->args, &(struct compile_options){0});
	out->num_warps = b->codegen.num_warps;
	out->cluster = 1;
	for (u32 i = 0; out->kernel && i < ARRAY_LEN(kernels); i++)
		if (!strcmp(kernels[i].name, out->kernel->name)) {
			out->code = kernels[i].ptx;
			out->code_len = strlen(out->code);
			out->shared_bytes = kernels[i].shared_bytes;
		}
	return out->code;
}

static struct device_ops ops;
static struct cuda_api api;
static tl_context *ctx;
static tl_module *module;

static void ok(tl_status s)
{
	if (s)
		fail_msg("%s: %s", tl_status_name(s), tl_error(NULL));
}

static void ready(tl_context *c, tl_module **m)
{
	c->dev->ops = &ops;
	ok(tl_module_load_source(c, "t.tl", source, sizeof source - 1, m));
}

static tl_kernel *get(tl_module *m, const char *name)
{
	tl_kernel *k;
	ok(tl_module_kernel(m, name, &k));
	return k;
}

static tl_buffer *buffer(size_t bytes)
{
	tl_buffer *b;
	ok(tl_buffer_create(ctx, bytes, &b));
	return b;
}

/* --- tests --------------------------------------------------------------------------------------------------- */

static void check_add(tl_context *c, tl_module *m, int n, void *stream)
{
	float *x = malloc((size_t)n * 4), *z = malloc((size_t)n * 4);
	tl_buffer *bx, *bz;
	for (int i = 0; i < n; i++)
		x[i] = (float)i * 0.5f;
	ok(tl_buffer_create(c, (size_t)n * 4, &bx));
	ok(tl_buffer_create(c, (size_t)n * 4, &bz));
	ok(tl_buffer_fill(bz, 0xFF));
	ok(tl_buffer_write(bx, 0, x, (size_t)n * 4));
	tl_config cfg = {.grid = {(uint32_t)(n + 127) / 128}, .stream = stream};
	ok(tl_launch(get(m, "add"), &cfg, ARGS(tl_buf(TL_F32, bx), tl_buf(TL_F32, bx), tl_buf(TL_F32, bz), tl_int(n))));
	if (stream)
		ok(tl_synchronize(c));
	ok(tl_buffer_read(bz, 0, z, (size_t)n * 4));
	for (int i = 0; i < n; i++)
		assert_true(z[i] == (float)i);
	tl_buffer_destroy(bx);
	tl_buffer_destroy(bz);
	free(x);
	free(z);
}

static void add(void **state)
{
	(void)state;
	for (int n = 2; n < 4000000; n = n * 3 + 1)
		check_add(ctx, module, n, NULL);
}

static void widths(void **state)
{
	(void)state;
	tl_buffer *b = buffer(32);
	u8 out[32];
	ok(tl_launch(get(module, "widths"), &(tl_config){.grid = {1}, .num_warps = 1},
		     ARGS(tl_buf(TL_F32, b), tl_int_typed(TL_I8, -2), tl_int_typed(TL_I16, -3), tl_float(1.5),
			  tl_int(-((int64_t)1 << 40)), tl_float_typed(TL_F16, 0.1), tl_float_typed(TL_F64, 0.1))));
	ok(tl_buffer_read(b, 0, out, sizeof out));
	static const u8 expect[] = {0xFE, 0, 0xFD, 0xFF, 0, 0, 0xC0, 0x3F, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0x66, 0x2E};
	assert_memory_equal(out, expect, sizeof expect);
	double f;
	memcpy(&f, out + 24, 8);
	assert_true(f == 0.1);
	tl_buffer_destroy(b);
}

static void big_shared_memory(void **state)
{
	(void)state;
	tl_buffer *b = buffer(128 * 4);
	u32 out[128];
	ok(tl_launch(get(module, "shared"), &(tl_config){.grid = {1}}, ARGS(tl_buf(TL_F32, b))));
	ok(tl_buffer_read(b, 0, out, sizeof out));
	for (u32 i = 0; i < 128; i++)
		assert_int_equal(out[i], i ^ 127);
	tl_resources r;
	ok(tl_kernel_resources(get(module, "shared"), NULL, ARGS(tl_buf(TL_F32, b)), &r));
	assert_true(r.registers > 0 && r.registers <= 255 && r.threads == 128 && r.blocks == 1);
	assert_true(r.shared_bytes > 48 << 10 && r.resident >= 1 && r.resident <= 4);
	assert_int_equal(r.local_bytes, 0);
	tl_buffer_destroy(b);
}

static void refusals(void **state)
{
	(void)state;
	tl_buffer *b = buffer(16), *huge;
	assert_int_equal(tl_launch(get(module, "wrong"), &(tl_config){.grid = {1}}, ARGS(tl_buf(TL_F32, b))),
			 TL_ERR_DRIVER);
	print_message("%s\n", tl_error(ctx));
	assert_non_null(strstr(tl_error(ctx), "cuModuleLoadDataEx"));
	assert_non_null(strstr(tl_error(ctx), "ptxas"));
	assert_int_equal(tl_buffer_create(ctx, (size_t)1 << 45, &huge), TL_ERR_MEMORY);
	print_message("%s\n", tl_error(ctx));
	tl_context *none;
	assert_int_equal(tl_context_create("cuda:99", &none), TL_ERR_DEVICE);
	print_message("%s\n", tl_error(ctx));
	tl_buffer_destroy(b);
}

/* The caller's context and stream. */
static void adopted(void **state)
{
	(void)state;
	CUcontext c, now = NULL;
	CUstream stream;
	tl_context *mine;
	tl_module *m;
	assert_int_equal(tl_context_from_cuda(NULL, &mine), TL_ERR_ARGUMENT);
	assert_int_equal(api.primary_retain(&c, 0), 0);
	assert_int_equal(api.ctx_push(c), 0);
	assert_int_equal(api.stream_create(&stream, 1), 0);
	ok(tl_context_from_cuda(NULL, &mine));
	ready(mine, &m);
	check_add(mine, m, 10000, stream);
	check_add(mine, m, 10000, (void *)1); /* the legacy default stream */
	tl_context_destroy(mine);
	assert_int_equal(api.stream_destroy(stream), 0);
	assert_int_equal(api.ctx_current(&now), 0);
	assert_ptr_equal(now, c);
	api.ctx_pop(&now);
	api.primary_release(0);
}

static void *symbol(const char *name)
{
	void *f = dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), name);
	if (!f)
		fail_msg("no %s", name);
	return f;
}

/* Launches find their context whatever is current: another one, which stays so, or none. */
static void elsewhere(void **state)
{
	(void)state;
	CUresult (*create)(CUcontext *, unsigned, CUdevice) = symbol("cuCtxCreate_v2");
	CUresult (*destroy)(CUcontext) = symbol("cuCtxDestroy_v2");
	CUcontext c, other, now = NULL;
	CUstream stream;
	assert_int_equal(api.primary_retain(&c, 0), 0);
	assert_int_equal(api.ctx_push(c), 0);
	assert_int_equal(api.stream_create(&stream, 1), 0);
	assert_int_equal(api.ctx_pop(&now), 0);
	assert_int_equal(create(&other, 0, 0), 0); /* current from now on */
	void *const streams[] = {NULL, stream, (void *)CU_STREAM_LEGACY, (void *)CU_STREAM_PER_THREAD};
	for (int none = 0; none < 2; none++) {
		for (u32 i = 0; i < ARRAY_LEN(streams); i++) {
			check_add(ctx, module, 10000, streams[i]);
			assert_int_equal(api.ctx_current(&now), 0);
			assert_ptr_equal(now, none ? NULL : other);
		}
		if (!none)
			api.ctx_pop(&now);
	}
	assert_int_equal(destroy(other), 0);
	assert_int_equal(api.stream_destroy(stream), 0);
	api.primary_release(0);
}

static void *work(void *arg)
{
	for (int i = 0; i < 20; i++)
		check_add(ctx, module, 1000 + 100 * *(int *)arg + i, NULL);
	return NULL;
}

static void threads(void **state)
{
	(void)state;
	pthread_t t[8];
	int id[8];
	for (int i = 0; i < 8; i++) {
		id[i] = i;
		assert_int_equal(pthread_create(&t[i], NULL, work, &id[i]), 0);
	}
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
}

/* --- graphs -------------------------------------------------------------------------------------------------- */

/* Three launches, by tl_launch and a handle, one of them while no context is current, become a graph; what was not
 * prepared is refused, and the capture goes on. */
static void graph(void **state)
{
	(void)state;
	enum { N = 4096, ROUNDS_OF_IT = 3 };
	CUresult (*begin)(CUstream, int) = symbol("cuStreamBeginCapture_v2");
	CUresult (*end)(CUstream, void **) = symbol("cuStreamEndCapture");
	CUresult (*instantiate)(void **, void *, unsigned long long) = symbol("cuGraphInstantiateWithFlags");
	CUresult (*launch_graph)(void *, CUstream) = symbol("cuGraphLaunch");
	CUresult (*destroy_exec)(void *) = symbol("cuGraphExecDestroy"), (*destroy)(void *) = symbol("cuGraphDestroy");
	CUcontext c, popped;
	CUstream stream;
	void *made = NULL, *exec = NULL;
	tl_buffer *b[4];
	tl_arg a[4];
	tl_prepared *p;
	static float x[N], y[N];
	tl_kernel *k = get(module, "add");
	assert_int_equal(api.primary_retain(&c, 0), 0);
	assert_int_equal(api.ctx_push(c), 0);
	assert_int_equal(api.stream_create(&stream, 1), 0);
	for (int i = 0; i < 4; i++) {
		b[i] = buffer(sizeof x);
		a[i] = tl_buf(TL_F32, b[i]);
	}
	tl_config config = {.grid = {N / 128}, .stream = stream}, other = config;
	other.num_warps = 16; /* there is no such variant */
	ok(tl_prepare(k, &config, ARGS(a[0], a[0], a[1], tl_int(N)), &p));
	/* as strict as it can be: no thread of the process may do what is unsafe */
	assert_int_equal(begin(stream, 0), 0);
	ok(tl_launch(k, &config, ARGS(a[0], a[0], a[1], tl_int(N))));
	api.ctx_pop(&popped);
	ok(tl_prepared_launch(p, NULL, stream, ARGS(a[1], a[1], a[2], tl_int(N))));
	assert_int_equal(api.ctx_push(c), 0);
	assert_int_equal(tl_launch(k, &other, ARGS(a[1], a[1], a[2], tl_int(N))), TL_ERR_ARGUMENT);
	print_message("%s\n", tl_error(ctx));
	ok(tl_launch(k, &config, ARGS(a[2], a[2], a[3], tl_int(N))));
	assert_int_equal(end(stream, &made), 0);
	assert_int_equal(instantiate(&exec, made, 0), 0);
	for (int r = 0; r < ROUNDS_OF_IT; r++) {
		for (int i = 0; i < N; i++)
			x[i] = (float)(i + r);
		ok(tl_buffer_write(b[0], 0, x, sizeof x));
		ok(tl_buffer_fill(b[3], 0xFF));
		assert_int_equal(launch_graph(exec, stream), 0);
		ok(tl_synchronize(ctx));
		ok(tl_buffer_read(b[3], 0, y, sizeof y));
		for (int i = 0; i < N; i++)
			assert_true(y[i] == 8 * x[i]);
	}
	destroy_exec(exec);
	destroy(made);
	tl_prepared_destroy(p);
	for (int i = 0; i < 4; i++)
		tl_buffer_destroy(b[i]);
	api.stream_destroy(stream);
	api.ctx_pop(&popped);
	api.primary_release(0);
}

static void timing(void **state)
{
	(void)state;
	int n = 1 << 26;
	tl_buffer *x = buffer((size_t)n * 4), *y = buffer((size_t)n * 4), *z = buffer((size_t)n * 4);
	double ms;
	ok(tl_time(get(module, "add"), &(tl_config){.grid = {(uint32_t)n / 1024}, .num_warps = 32},
		   ARGS(tl_buf(TL_F32, x), tl_buf(TL_F32, y), tl_buf(TL_F32, z), tl_int(n)), 3, 20, &ms));
	print_message("add of 2^26 floats: %.3f ms, %.0f GB/s\n", ms, 12.0 * n / ms * 1e-6);
	assert_true(ms > 0.05 && ms < 50);
	tl_buffer_destroy(x);
	tl_buffer_destroy(y);
	tl_buffer_destroy(z);
}

/* --- the cost of a launch ------------------------------------------------------------------------------------ */

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

enum { ROUNDS = 41, BATCH = 400 };

static void launch_cost(void **state)
{
	(void)state;
	tl_buffer *b = buffer(4096);
	tl_kernel *k = get(module, "add");
	CUcontext c;
	CUmodule m;
	CUfunction f;
	CUstream s;
	assert_int_equal(api.primary_retain(&c, 0), 0);
	api.ctx_push(c);
	assert_int_equal(api.module_load(&m, kernels[0].ptx, 0, NULL, NULL), 0);
	assert_int_equal(api.module_function(&f, m, "add"), 0);
	assert_int_equal(api.stream_create(&s, 0), 0);
	void *p = tl_buffer_ptr(b);
	u32 n = 1000;
	void *params[] = {&p, &p, &p, &n};
	tl_arg args[] = {tl_buf(TL_F32, b), tl_buf(TL_F32, b), tl_buf(TL_F32, b), tl_int(1000)};
	for (int current = 1; current >= 0; current--) {
		double raw[ROUNDS], ours[ROUNDS], ratio[ROUNDS]; /* of neighbours: the host's pace changes */
		CUcontext popped;
		for (int r = 0; r < ROUNDS; r++) {
			if (!current)
				api.ctx_push(c);
			double t0 = now_us();
			for (int i = 0; i < BATCH; i++)
				api.launch(f, 8, 1, 1, 128, 1, 1, 0, s, params, NULL);
			raw[r] = (now_us() - t0) / BATCH;
			api.stream_synchronize(s);
			if (!current)
				api.ctx_pop(&popped);
			t0 = now_us();
			for (int i = 0; i < BATCH; i++)
				tl_launch(k, &(tl_config){.grid = {8}}, args, 4);
			ours[r] = (now_us() - t0) / BATCH;
			ratio[r] = ours[r] / raw[r];
			ok(tl_synchronize(ctx));
		}
		double a = median(raw, ROUNDS), o = median(ours, ROUNDS), more = median(ratio, ROUNDS);
		print_message("launch, context %s: cuLaunchKernel %.3f us, tl_launch %.3f us, ratio %.3f\n",
			      current ? "current" : "not current", a, o, more);
		assert_true(!current || more < 1.15);
		if (current)
			api.ctx_pop(&popped);
	}
	api.ctx_push(c);
	api.stream_destroy(s);
	api.module_unload(m);
	api.ctx_pop(&c);
	api.primary_release(0);
	tl_buffer_destroy(b);
}

/* Last: CUDA does not recover from it. */
static void illegal_address(void **state)
{
	(void)state;
	void *nowhere = (void *)(uintptr_t)0x10;
	ok(tl_launch(get(module, "add"), &(tl_config){.grid = {1}},
		     ARGS(tl_ptr(TL_F32, nowhere), tl_ptr(TL_F32, nowhere), tl_ptr(TL_F32, nowhere), tl_int(100))));
	assert_int_equal(tl_synchronize(ctx), TL_ERR_KERNEL);
	print_message("%s\n", tl_error(ctx));
	tl_buffer *b;
	assert_int_equal(tl_buffer_create(ctx, 16, &b), TL_ERR_KERNEL);
}

int main(void)
{
	if (tl_context_create("cuda", &ctx)) {
		print_message("skipped: %s\n", tl_error(NULL));
		return 0;
	}
	tl_device_info info;
	tl_device(ctx, &info);
	print_message("%s, %s, %d multiprocessors, %zu bytes shared, %zu MB\n", info.name, info.target, info.num_sms,
		      info.shared_bytes, info.memory_bytes >> 20);
	ops = cuda_ops;
	ops.compile = by_hand;
	bool absent;
	ok(cuda_api_open(&api, &absent));
	ready(ctx, &module);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add),         cmocka_unit_test(widths),          cmocka_unit_test(big_shared_memory),
		cmocka_unit_test(refusals),    cmocka_unit_test(adopted),         cmocka_unit_test(elsewhere),
		cmocka_unit_test(threads),     cmocka_unit_test(graph),           cmocka_unit_test(timing),
		cmocka_unit_test(launch_cost), cmocka_unit_test(illegal_address),
	};
	int failures = cmocka_run_group_tests(tests, NULL, NULL);
	tl_context_destroy(ctx);
	return failures;
}

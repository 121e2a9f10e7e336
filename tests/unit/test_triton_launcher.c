/* Code for Triton's launcher (tl_config.abi), launched as Triton 3.9 does: its backends/nvidia/driver.py and driver.c
 * make the arguments from the signature and the metadata. The driver is that of the simulator. */
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "fixture.h"
#include "random_bits.h"
#include "runtime/device/cuda_api.h"
#include "support/json.h"
#include "support/small_floats.h"

static const char source[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\n"
	"def scale(x, y, n, factor, flag: 'i1', out, BLOCK: tl.constexpr):\n"
	"    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
	"    r = tl.load(x + i, mask=i < n) * factor + tl.load(y + i, mask=i < n)\n"
	"    tl.store(out + i, tl.where(flag, r, -r), mask=i < n)\n\n"
	"@triton.jit\n"
	"def product(a, b, c, ROWS, COLS, K, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr):\n"
	"    i, j = tl.program_id(0) * M, tl.program_id(1) * N\n"
	"    acc = tl.zeros((M, N), tl.float32)\n"
	"    for k in range(0, K, STEP):\n"
	"        acc = tl.dot(a.load([i, k]), b.load([k, j]), acc)\n"
	"    row, col = i + tl.arange(0, M), j + tl.arange(0, N)\n"
	"    inside = (row[:, None] < ROWS) & (col[None, :] < COLS)\n"
	"    tl.store(c + row[:, None] * COLS + col[None, :], acc, mask=inside)\n\n"
	"@triton.jit\n"
	"def copy(x, y):\n"
	"    at = tl.program_id(0) * x.block_shape[0]\n"
	"    y.store([at, 0], x.load([at, 4]) + x.shape[0] + x.strides[0].to(tl.float32))\n";

static struct {
	CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*push)(CUcontext),
		(*alloc)(CUdeviceptr *, size_t), (*free)(CUdeviceptr),
		(*to_device)(CUdeviceptr, const void *, size_t, CUstream),
		(*to_host)(void *, CUdeviceptr, size_t, CUstream), (*synchronize)(void),
		(*load)(CUmodule *, const void *, unsigned, const int *, void **),
		(*function)(CUfunction *, CUmodule, const char *),
		(*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
			  void **, void **),
		(*encode)(void *, int, unsigned, void *, const u64 *, const u64 *, const unsigned *, const unsigned *,
			  int, int, int, int);
} cu;

/* --- the launcher ------------------------------------------------------------------------------------------------ */

enum { MAX_ARGS = 64, ROOM = 128 };

struct launcher {
	struct arena arena;
	struct json_member metadata[32];
	u32 n;
	char *ptx;
	/* the arguments, each at its own place */
	_Alignas(64) unsigned char at[MAX_ARGS][ROOM];
	void *args[MAX_ARGS];
	u32 nargs, descriptors;
};

static const char *text_of(const struct launcher *l, const char *name)
{
	const char *v = json_value(l->metadata, l->n, name);
	assert_non_null(v);
	return v;
}

static int number_of(const struct launcher *l, const char *name) { return atoi(text_of(l, name)); }

static void add_bytes(struct launcher *l, const void *value, size_t size)
{
	assert_true(l->nargs < MAX_ARGS && size <= ROOM);
	memcpy(l->at[l->nargs], value, size);
	l->args[l->nargs] = l->at[l->nargs];
	l->nargs++;
}

#define ADD(l, type, value) add_bytes(l, &(type){value}, sizeof(type))

/* The number after "name": in the metadata of descriptor i, an object of the list tensordesc_meta. */
static const char *of_descriptor(const struct launcher *l, u32 i, const char *name)
{
	const char *at = text_of(l, "tensordesc_meta");
	for (u32 k = 0; k <= i; k++) {
		at = strchr(k ? at + 1 : at, '{');
		assert_non_null(at);
	}
	at = strstr(at, name);
	assert_non_null(at);
	return at + strlen(name) + 2;
}

/* The types of cuTensorMapEncodeTiled that differ from those of the metadata. */
static int host_type(int t) { return t == 8 ? 10 : t == 9 ? 8 : t == 10 ? 9 : t; }

struct tensor {
	CUdeviceptr base;
	int rank;
	i64 shape[2], strides[2];
	bool nan, tf32;
};

/* make_tensordesc_arg: a tensor map, or the parts of the descriptor, and then the sizes and the strides. */
static void add_descriptor(struct launcher *l, const struct tensor *t)
{
	if (strcmp(text_of(l, "tensordesc_meta"), "[]") != 0) {
		u32 i = l->descriptors++;
		int size = atoi(of_descriptor(l, i, "elem_size")), type = atoi(of_descriptor(l, i, "elem_type"));
		const char *block = of_descriptor(l, i, "block_size") + 1;
		unsigned box[2] = {0}, steps[] = {1, 1};
		u64 sizes[] = {(u64)t->shape[1], (u64)t->shape[0]},
		    strides[] = {(u64)(t->strides[0] * size), sizes[1] * (u64)(t->strides[0] * size)};
		box[1] = (unsigned)atoi(block);
		box[0] = (unsigned)atoi(strchr(block, ',') + 1);
		_Alignas(64) unsigned char map[ROOM];
		assert_int_equal(cu.encode(map, t->tf32 ? 11 : host_type(type), 2, (void *)(uintptr_t)t->base, sizes,
					   strides, box, steps, 0, atoi(of_descriptor(l, i, "swizzle")), 2, t->nan),
				 0);
		assert_true(!strncmp(of_descriptor(l, i, "fp4_padded"), "false", 5));
		add_bytes(l, map, sizeof map);
	} else {
		ADD(l, CUdeviceptr, t->base);
		for (int i = 0; i < 2 * t->rank; i++)
			ADD(l, i64, i < t->rank ? t->shape[i] : t->strides[i - t->rank]);
		ADD(l, char, t->nan);
		ADD(l, char, t->tf32);
	}
	for (int i = 0; i < t->rank; i++)
		ADD(l, i32, (i32)t->shape[i]);
	for (int i = 0; i < t->rank; i++)
		ADD(l, i64, t->strides[i]);
}

/* Compiles the kernel for Triton's launcher. */
static struct launcher *compiled(tl_context *ctx, const char *kernel, int warps, const tl_arg *args, size_t nargs)
{
	tl_module *m;
	tl_kernel *k;
	char *metadata;
	const tl_config cfg = {.num_warps = warps, .abi = TL_ABI_TRITON, .specialization = TL_SPECIALIZE_NONE};
	struct launcher *l = calloc(1, sizeof *l);
	assert_non_null(l);
	ok(tl_module_load_source(ctx, "t.tl", source, sizeof source - 1, &m));
	ok(tl_module_kernel(m, kernel, &k));
	ok(tl_kernel_dump(k, &cfg, args, nargs, "ptx", &l->ptx));
	ok(tl_kernel_dump(k, &cfg, args, nargs, "metadata", &metadata));
	assert_true(json_read(&l->arena, metadata, strlen(metadata), l->metadata, ARRAY_LEN(l->metadata), &l->n));
	tl_free(metadata);
	tl_module_destroy(m);
	return l;
}

/* CudaLauncher.__call__ and _launch. */
static void launch(struct launcher *l, unsigned gx, unsigned gy)
{
	CUmodule m;
	CUfunction f;
	const char *name = json_text(&l->arena, text_of(l, "name"));
	assert_int_equal(number_of(l, "global_scratch_size") | number_of(l, "profile_scratch_size"), 0);
	ADD(l, CUdeviceptr, 0); /* global scratch */
	ADD(l, CUdeviceptr, 0); /* profile scratch */
	assert_int_equal(cu.load(&m, l->ptx, 0, NULL, NULL), 0);
	assert_int_equal(cu.function(&f, m, name), 0);
	assert_int_equal(number_of(l, "num_ctas"), 1);
	assert_int_equal(cu.launch(f, gx, gy, 1, 32 * (unsigned)number_of(l, "num_warps"), 1, 1,
				   (unsigned)number_of(l, "shared"), NULL, l->args, NULL),
			 0);
	assert_int_equal(cu.synchronize(), 0);
	tl_free(l->ptx);
	arena_free(&l->arena);
	free(l);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static CUdeviceptr to_device(const void *data, size_t bytes)
{
	CUdeviceptr p;
	assert_int_equal(cu.alloc(&p, bytes), 0);
	assert_int_equal(cu.to_device(p, data, bytes, NULL), 0);
	return p;
}

static void from_device(void *data, CUdeviceptr p, size_t bytes)
{
	assert_int_equal(cu.to_host(data, p, bytes, NULL), 0);
	assert_int_equal(cu.free(p), 0);
}

static int small(void) { return (int)(random_bits() % 9) - 4; }

static tl_context *open_sim(const char *device)
{
	tl_context *ctx;
	ok(tl_context_create(device, &ctx));
	return ctx;
}

/* --- tests ------------------------------------------------------------------------------------------------------- */

/* More programs than a GPU has multiprocessors, and a result that overlaps an argument by one element: each program
 * reads all of its elements before it writes. */
static void plain(void **state)
{
	(void)state;
	enum { N = 5000, BLOCK = 32 };
	static float x[N + 1], y[N], out[N + 1];
	for (int i = 0; i < N; i++) {
		x[i] = (float)small();
		y[i] = (float)small();
	}
	tl_context *ctx = open_sim("sim");
	CUdeviceptr dx = to_device(x, sizeof x), dy = to_device(y, sizeof y);
	const tl_arg args[] = {tl_ptr(TL_F32, x), tl_ptr(TL_F32, y),   tl_int(N),
			       tl_float(3),       tl_int_typed(TL_I1, 0), tl_ptr(TL_F32, x), tl_int(BLOCK)};
	struct launcher *l = compiled(ctx, "scale", 2, args, ARRAY_LEN(args));
	assert_non_null(strstr(l->ptx, ".param .u64 scale_param_7\n"));
	assert_null(strstr(l->ptx, "scale_param_8"));
	assert_int_equal(number_of(l, "num_warps"), 2);
	ADD(l, CUdeviceptr, dx);
	ADD(l, CUdeviceptr, dy);
	ADD(l, i32, N);
	ADD(l, float, 3);
	ADD(l, char, 0);
	ADD(l, CUdeviceptr, dx);
	launch(l, (N + BLOCK - 1) / BLOCK, 1);
	from_device(out, dx, sizeof out);
	from_device((float[N]){0}, dy, sizeof y);
	for (int i = 0; i < N; i++)
		assert_true(out[i] == -(x[i] * 3 + y[i]));
	assert_true(out[N] == 0);
	tl_context_destroy(ctx);
}

static void check_product(const char *device, int warps, bool maps)
{
	/* rows, columns and depth do not fill the last blocks */
	enum { ROWS = 200, COLS = 136, K = 72, M = 128, N = 128, STEP = 64 };
	static u16 a[ROWS * K], b[K * COLS];
	static float c[ROWS * COLS + 64];
	for (int i = 0; i < ROWS * K; i++)
		a[i] = fp_to_f16((float)small());
	for (int i = 0; i < K * COLS; i++)
		b[i] = fp_to_f16((float)small());
	memset(c, 0xA5, sizeof c);
	float last = c[ROWS * COLS];
	tl_context *ctx = open_sim(device);
	struct tensor ta = {to_device(a, sizeof a), 2, {ROWS, K}, {K, 1}, false, false},
		      tb = {to_device(b, sizeof b), 2, {K, COLS}, {COLS, 1}, false, false};
	CUdeviceptr dc = to_device(c, sizeof c);
	_Alignas(16) static char there[16];
	tl_descriptor da = tl_describe(TL_F16, there, 2, ta.shape, (i32[]){M, STEP}),
		      db = tl_describe(TL_F16, there, 2, tb.shape, (i32[]){STEP, N});
	const tl_arg args[] = {tl_desc(&da), tl_desc(&db), tl_ptr(TL_F32, there), tl_int(ROWS), tl_int(COLS),
			       tl_int(K),    tl_int(M),    tl_int(N),             tl_int(STEP)};
	struct launcher *l = compiled(ctx, "product", warps, args, ARRAY_LEN(args));
	assert_int_equal(strcmp(text_of(l, "tensordesc_meta"), "[]") != 0, maps);
	assert_int_equal(strstr(l->ptx, "cp.async.bulk.tensor") != NULL, maps);
	assert_int_equal(strstr(l->ptx, ".param .align 64 .b8 product_param_0[128]") != NULL, maps);
	add_descriptor(l, &ta);
	add_descriptor(l, &tb);
	ADD(l, CUdeviceptr, dc);
	ADD(l, i32, ROWS);
	ADD(l, i32, COLS);
	ADD(l, i32, K);
	launch(l, (ROWS + M - 1) / M, (COLS + N - 1) / N);
	from_device(c, dc, sizeof c);
	from_device((u16[ROWS * K]){0}, ta.base, sizeof a);
	from_device((u16[K * COLS]){0}, tb.base, sizeof b);
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLS; j++) {
			double sum = 0;
			for (int k = 0; k < K; k++)
				sum += (double)fp_from_f16(a[i * K + k]) * (double)fp_from_f16(b[k * COLS + j]);
			assert_true((double)c[i * COLS + j] == sum);
		}
	assert_memory_equal(&c[ROWS * COLS], &last, sizeof last);
	tl_context_destroy(ctx);
}

static void product_with_maps(void **state)
{
	(void)state;
	check_product("sim", 4, true);
	check_product("sim", 8, true);
}

static void product_in_parts(void **state)
{
	(void)state;
	check_product("sim:80", 4, false);
}

/* fp32 with a mantissa of 10 bits, ties to even. */
static float tf32(float x)
{
	u32 bits = fp_bits_f32(x);
	return fp_f32_bits((bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000);
}

/* The launcher says how a descriptor pads and rounds. */
static void padding(void **state)
{
	(void)state;
	enum { ROWS = 12, COLS = 16, BLOCK = 8 };
	for (int way = 0; way < 4; way++) {
		bool nan = way & 1, rounds = way & 2;
		float x[ROWS * COLS], y[2 * BLOCK * COLS];
		for (int i = 0; i < ROWS * COLS; i++)
			x[i] = (float)(random_bits() >> 40) * 0x1p-24f;
		memset(y, 0xA5, sizeof y);
		tl_context *ctx = open_sim("sim");
		struct tensor tx = {to_device(x, sizeof x), 2, {ROWS, COLS}, {COLS, 1}, nan, rounds},
			      ty = {to_device(y, sizeof y), 2, {2 * BLOCK, COLS}, {COLS, 1}, false, false};
		_Alignas(16) static char there[16];
		tl_descriptor dx = tl_describe(TL_F32, there, 2, tx.shape, (i32[]){BLOCK, COLS}),
			      dy = tl_describe(TL_F32, there, 2, ty.shape, (i32[]){BLOCK, COLS});
		const tl_arg args[] = {tl_desc(&dx), tl_desc(&dy)};
		struct launcher *l = compiled(ctx, "copy", 1, args, ARRAY_LEN(args));
		assert_string_equal(text_of(l, "tensordesc_meta"), "[]"); /* it writes through a descriptor */
		add_descriptor(l, &tx);
		add_descriptor(l, &ty);
		launch(l, 2, 1);
		from_device(y, ty.base, sizeof y);
		from_device((float[ROWS * COLS]){0}, tx.base, sizeof x);
		for (int i = 0; i < 2 * BLOCK * COLS; i++) {
			int row = i / COLS, col = i % COLS + 4;
			bool inside = row < ROWS && col < COLS;
			float v = !inside ? nan ? NAN : 0 : rounds ? tf32(x[row * COLS + col]) : x[row * COLS + col];
			float expected = v + ROWS + COLS;
			assert_true(isnan(expected) ? isnan(y[i]) : y[i] == expected);
		}
		tl_context_destroy(ctx);
	}
}

/* Code for Triton's launcher is only for dumps. */
static void misuse(void **state)
{
	(void)state;
	float x[4] = {0};
	char *text;
	tl_module *m;
	tl_kernel *k;
	tl_context *ctx = open_sim("sim");
	const tl_arg args[] = {tl_ptr(TL_F32, x), tl_ptr(TL_F32, x), tl_int(4), tl_float(3), tl_int_typed(TL_I1, 0),
			       tl_ptr(TL_F32, x), tl_int(4)};
	const tl_config triton = {.grid = {1}, .abi = TL_ABI_TRITON};
	ok(tl_module_load_source(ctx, "t.tl", source, sizeof source - 1, &m));
	ok(tl_module_kernel(m, "scale", &k));
	assert_error(tl_launch(k, &triton, args, ARRAY_LEN(args)), TL_ERR_ARGUMENT, "leave tl_config.abi 0");
	assert_error(tl_prepare(k, &triton, args, ARRAY_LEN(args), NULL), TL_ERR_ARGUMENT, "leave tl_config.abi 0");
	assert_error(tl_kernel_dump(k, NULL, args, ARRAY_LEN(args), "metadata", &text), TL_ERR_ARGUMENT,
		     "TL_ABI_TRITON");
	tl_context_destroy(ctx);
}

static bool take(void *library, const char *name, void *to)
{
	void *f = dlsym(library, name);
	memcpy(to, &f, sizeof f);
	return f;
}

/* Opens the simulated driver, beside the programs of tests. */
static bool open_driver(void)
{
	char path[PATH_MAX + 40];
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);
	while (len > 0 && path[len - 1] != '/')
		len--;
	strcpy(path + (len > 0 ? len : 0), "../simcuda/libcuda.so.1");
	void *d = dlopen(path, RTLD_NOW);
	CUcontext c;
	return d && take(d, "cuInit", &cu.init) && take(d, "cuDevicePrimaryCtxRetain", &cu.retain) &&
	       take(d, "cuCtxPushCurrent_v2", &cu.push) && take(d, "cuMemAlloc_v2", &cu.alloc) &&
	       take(d, "cuMemFree_v2", &cu.free) && take(d, "cuMemcpyHtoDAsync_v2", &cu.to_device) &&
	       take(d, "cuMemcpyDtoHAsync_v2", &cu.to_host) && take(d, "cuCtxSynchronize", &cu.synchronize) &&
	       take(d, "cuModuleLoadDataEx", &cu.load) && take(d, "cuModuleGetFunction", &cu.function) &&
	       take(d, "cuLaunchKernel", &cu.launch) && take(d, "cuTensorMapEncodeTiled", &cu.encode) && !cu.init(0) &&
	       !cu.retain(&c, 0) && !cu.push(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),   cmocka_unit_test(product_with_maps), cmocka_unit_test(product_in_parts),
		cmocka_unit_test(padding), cmocka_unit_test(misuse),
	};
	setenv("TL_CACHE", "0", 1);
	if (!open_driver()) {
		fprintf(stderr, "no simulated driver: %s\n", dlerror());
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

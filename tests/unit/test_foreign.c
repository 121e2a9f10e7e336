/* A binding as another language makes it: the functions are found by name in libtl.so, tl.h is not included, and
 * arguments are opaque. A kernel gets each kind of argument, on devices without a GPU. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* enum tl_dtype */
enum { I32 = 3, I64 = 4, U8 = 5, U64 = 8, F32 = 13, F64 = 14 };
enum { PTR = 1, INT = 2, DESCRIPTOR = 10 }; /* enum tl_arg_kind */

static void *library;

static void *find(const char *name)
{
	void *f = dlsym(library, name);
	if (!f)
		fail_msg("libtl.so has no %s", name);
	return f;
}

/* Calls tl_NAME with the parameter types `types`. */
#define CALL(result, name, types, ...) (((result(*) types)(uintptr_t)find("tl_" #name))(__VA_ARGS__))
#define OK(name, types, ...)                                                                                           \
	do {                                                                                                           \
		if (CALL(int, name, types, __VA_ARGS__))                                                               \
			fail_msg("tl_%s: %s", #name, CALL(const char *, error, (void *), NULL));                       \
	} while (0)
#define SIZE(name) CALL(size_t, struct_size, (const char *), name)

static int open_library(void **state)
{
	(void)state;
	char path[1000];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 30);
	assert_true(n > 0);
	path[n] = 0;
	strcpy(strrchr(path, '/'), "/../libtl.so"); /* build/tests/test_foreign */
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail_msg("%s", dlerror());
	return 0;
}

static const char text[] =
	"import triton\nimport triton.language as tl\n\n"
	"@triton.jit\ndef double(v):\n    return v * 2\n\n"
	"@triton.jit\n"
	"def k(x, y, z, w, i, i64, u, u64, f, f64, yes, no, open=7, S: tl.constexpr = '', T: tl.constexpr = tl.int8,\n"
	"      F: tl.constexpr = None, t=None, d=None, C=0, free=0):\n"
	"    at = tl.arange(0, 64)\n"
	"    v = F(tl.load(x + at))\n"
	"    if no is None:\n        v += 1000\n"
	"    tile = tl.reshape(d.load([0, 16]), [64])\n"
	"    tl.store(y + at, v + tile)\n"
	"    tl.store(z, i)\n    tl.store(z + 1, i64)\n    tl.store(z + 2, u)\n"
	"    tl.store(z + 3, u64.to(tl.int64, bitcast=True))\n"
	"    tl.store(z + 4, yes.to(tl.int64))\n    tl.store(z + 5, open)\n    tl.store(z + 6, len(S))\n"
	"    tl.store(z + 7, tl.full([], -1, tl.int32).to(T).to(tl.int64))\n"
	"    tl.store(z + 8, t.first)\n    tl.store(z + 9, t[1])\n"
	"    known: tl.constexpr = C\n    tl.store(z + 10, known)\n    tl.store(z + 11, free)\n"
	"    tl.store(w, f)\n    tl.store(w + 1, f64)\n";

enum { N = 64, NARGS = 20, INTS = 12 };
struct tuple {
	size_t len;
	const void *items;
	const char *const *names;
};

static void fill_arguments(char *args, size_t each, const float *x, void *y, void *z, double *w, const struct tuple *t,
			   const void *d)
{
#define AT(i) (args + (i) * each)
	CALL(void, arg_ptr, (void *, int, const void *), AT(0), F32, x);
	CALL(void, arg_buf, (void *, int, const void *), AT(1), F32, y);
	CALL(void, arg_buf, (void *, int, const void *), AT(2), I64, z);
	CALL(void, arg_range, (void *, int, const void *, size_t), AT(3), F64, w, 2 * sizeof *w);
	CALL(void, arg_int, (void *, int64_t), AT(4), -5);
	CALL(void, arg_int_typed, (void *, int, int64_t), AT(5), I64, -((int64_t)1 << 40) - 3);
	CALL(void, arg_uint, (void *, uint64_t), AT(6), 4000000000);
	CALL(void, arg_uint_typed, (void *, int, uint64_t), AT(7), U64, ((uint64_t)1 << 63) + 5);
	CALL(void, arg_float, (void *, double), AT(8), 0.1);
	CALL(void, arg_float_typed, (void *, int, double), AT(9), F64, 0.1);
	CALL(void, arg_bool, (void *, bool), AT(10), true);
	CALL(void, arg_none, (void *), AT(11));
	CALL(void, arg_open, (void *), AT(12));
	CALL(void, arg_str, (void *, const char *), AT(13), "a string");
	CALL(void, arg_type, (void *, int), AT(14), U8);
	CALL(void, arg_func, (void *, const char *), AT(15), "double");
	CALL(void, arg_tuple, (void *, const void *), AT(16), t);
	CALL(void, arg_desc, (void *, const void *), AT(17), d);
	CALL(void, arg_int, (void *, int64_t), AT(18), 99);
	CALL(void, arg_constexpr, (void *), AT(18));
	CALL(void, arg_int, (void *, int64_t), AT(19), 48);
	CALL(void, arg_unspecialized, (void *), AT(19));
#undef AT
}

static void launch_on(const char *device)
{
	_Alignas(16) float x[N], tensor[4][32], y[N];
	_Alignas(16) double w[2] = {-1, -1};
	int64_t z[INTS];
	void *ctx, *module, *kernel, *by, *bz;
	size_t each = SIZE("tl_arg");
	char *args = malloc(NARGS * each), *items = malloc(2 * each), *config = calloc(1, SIZE("tl_config"));
	void *d = malloc(SIZE("tl_descriptor"));
	static const char *const names[] = {"first", "second"};
	struct tuple t = {2, items, names};
	assert_int_equal(sizeof t, SIZE("tl_tuple"));
	for (int i = 0; i < N; i++)
		x[i] = (float)(rand() % 1000) / 8;
	for (int i = 0; i < 4 * 32; i++)
		tensor[i / 32][i % 32] = (float)(rand() % 1000) / 8;
	memset(args, 0xA5, NARGS * each);
	memset(items, 0xA5, 2 * each);
	CALL(void, arg_describe, (void *, int, const void *, int, const int64_t *, const int32_t *), d, F32, tensor, 2,
	     (const int64_t[]){4, 32}, (const int32_t[]){4, 16});
	CALL(void, arg_int, (void *, int64_t), items, 31);
	CALL(void, arg_int_typed, (void *, int, int64_t), items + each, I32, -32);
	memcpy(config, (uint32_t[]){1, 1, 1}, 12); /* grid */
	OK(context_create, (const char *, void **), device, &ctx);
	OK(module_load_source, (void *, const char *, const char *, size_t, void **), ctx, "f.py", text,
	   sizeof text - 1, &module);
	OK(module_kernel, (void *, const char *, void **), module, "k", &kernel);
	OK(buffer_create, (void *, size_t, void **), ctx, sizeof y, &by);
	OK(buffer_create, (void *, size_t, void **), ctx, sizeof z, &bz);
	OK(buffer_fill, (void *, uint8_t), by, 0xFF);
	OK(buffer_fill, (void *, uint8_t), bz, 0x55);
	fill_arguments(args, each, x, by, bz, w, &t, d);
	OK(launch, (void *, const void *, const void *, size_t), kernel, config, args, NARGS);
	OK(buffer_read, (void *, size_t, void *, size_t), by, 0, y, sizeof y);
	OK(buffer_read, (void *, size_t, void *, size_t), bz, 0, z, sizeof z);
	for (int i = 0; i < N; i++)
		assert_true(y[i] == 2 * x[i] + 1000 + tensor[i / 16][16 + i % 16]);
	const int64_t expected[INTS] = {-5, -((int64_t)1 << 40) - 3, 4000000000, (int64_t)(((uint64_t)1 << 63) + 5),
					1,  7, 8, 255, 31, -32, 99, 48};
	for (int i = 0; i < INTS; i++)
		assert_int_equal(z[i], expected[i]);
	assert_true(w[0] == (double)0.1f && w[1] == 0.1);
	CALL(void, context_destroy, (void *), ctx);
	free(args);
	free(items);
	free(config);
	free(d);
}

static void every_kind(void **state)
{
	(void)state;
	static const char *const devices[] = {"interp", "cpu", "sim"};
	for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
		launch_on(devices[i]);
}

/* struct tl_arg_members */
struct members {
	int kind, dtype, typed, constant;
	uint64_t bytes, value;
};

static void members(void **state)
{
	(void)state;
	char *a = malloc(SIZE("tl_arg"));
	struct members m;
	int object;
	double f;
	assert_int_equal(sizeof m, SIZE("tl_arg_members"));
	memset(a, 0xA5, SIZE("tl_arg"));
	CALL(void, arg_range, (void *, int, const void *, size_t), a, F64, &object, ((size_t)1 << 40) + 1);
	CALL(void, arg_read, (const void *, void *), a, &m);
	assert_true(m.kind == PTR && m.dtype == F64 && m.typed == 1 && m.constant == 0);
	assert_true(m.bytes == ((uint64_t)1 << 40) + 1 && m.value == (uintptr_t)&object);
	CALL(void, arg_int, (void *, int64_t), a, -2);
	CALL(void, arg_unspecialized, (void *), a);
	CALL(void, arg_read, (const void *, void *), a, &m);
	assert_true(m.kind == INT && m.dtype == I32 && m.typed == 0 && m.constant == 2 && m.bytes == 0);
	assert_true(m.value == (uint64_t)-2);
	CALL(void, arg_float_typed, (void *, int, double), a, F64, -0.75);
	CALL(void, arg_constexpr, (void *), a);
	CALL(void, arg_read, (const void *, void *), a, &m);
	memcpy(&f, &m.value, sizeof f);
	assert_true(f == -0.75 && m.constant == 1);
	CALL(void, arg_desc, (void *, const void *), a, &object);
	CALL(void, arg_read, (const void *, void *), a, &m);
	assert_true(m.kind == DESCRIPTOR && m.value == (uintptr_t)&object);
	assert_int_equal(SIZE("tl_nothing"), 0);
	assert_int_equal(SIZE(NULL), 0);
	free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind),
		cmocka_unit_test(members),
	};
	return cmocka_run_group_tests(tests, open_library, NULL);
}

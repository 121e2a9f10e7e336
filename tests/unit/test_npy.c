/* .npy files: what is written can be read, what NumPy writes can be read, and nothing malformed does harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/base.h"
#include "cli/npy.h"

struct file {
	u8 bytes[4096];
	size_t len;
};

static struct file make(int version, const char *dict, const void *data, size_t len)
{
	struct file f = {.len = 0};
	size_t n = strlen(dict), start = version == 1 ? 10 : 12;
	memcpy(f.bytes, "\x93NUMPY", 6);
	f.bytes[6] = (u8)version;
	for (size_t i = 8; i < start; i++)
		f.bytes[i] = (u8)(n >> (8 * (i - 8)));
	memcpy(f.bytes + start, dict, n);
	if (len)
		memcpy(f.bytes + start + n, data, len);
	f.len = start + n + len;
	return f;
}

/* From memory of exactly that size, so that a read past the end is seen by the sanitizer. */
static tl_status parse(const struct file *f, struct npy *out)
{
	void *exact = malloc(f->len ? f->len : 1);
	memcpy(exact, f->bytes, f->len);
	tl_status s = npy_parse(exact, f->len, "t.npy", out);
	free(exact);
	return s;
}

static void round_trips(void **state)
{
	(void)state;
	static const tl_dtype types[] = {TL_I1,  TL_I8,  TL_I16, TL_I32, TL_I64, TL_U8,
					 TL_U16, TL_U32, TL_U64, TL_F16, TL_F32, TL_F64};
	static const size_t shapes[][4] = {{0}, {7}, {1}, {3, 5}, {2, 3, 4}, {2, 0, 4}, {1, 1, 1, 9}};
	static const u32 ranks[] = {0, 1, 1, 2, 3, 3, 4};
	char path[] = "/tmp/test_npy_XXXXXX";
	close(mkstemp(path));
	for (u32 t = 0; t < ARRAY_LEN(types); t++)
		for (u32 k = 0; k < ARRAY_LEN(shapes); k++) {
			u8 data[24 * 8];
			struct npy a = {types[t], ranks[k], (size_t *)shapes[k], 1, data}, b;
			for (u32 i = 0; i < ranks[k]; i++)
				a.count *= shapes[k][i];
			size_t bytes = a.count * tl_dtype_size(a.dtype);
			for (size_t i = 0; i < bytes; i++)
				data[i] = (u8)(a.dtype == TL_I1 ? i & 1 : i * 37 + t);
			assert_int_equal(npy_write(path, &a), TL_OK);
			assert_int_equal(npy_read(path, &b), TL_OK);
			assert_int_equal(b.dtype, a.dtype);
			assert_int_equal(b.rank, a.rank);
			assert_int_equal(b.count, a.count);
			assert_memory_equal(b.data, data, bytes);
			for (u32 i = 0; i < a.rank; i++)
				assert_int_equal(b.shape[i], a.shape[i]);
			npy_free(&b);
		}
	unlink(path);
}

/* Byte for byte what numpy.save writes. */
static void layout_of_files(void **state)
{
	(void)state;
	char path[] = "/tmp/test_npy_XXXXXX", bytes[256];
	close(mkstemp(path));
	float x[] = {1, 2, 3};
	assert_int_equal(npy_write(path, &(struct npy){TL_F32, 1, (size_t[]){3}, 3, x}), TL_OK);
	FILE *f = fopen(path, "rb");
	assert_int_equal(fread(bytes, 1, sizeof bytes, f), 128 + 12);
	fclose(f);
	unlink(path);
	static const char start[] = "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
	assert_memory_equal(bytes, start, sizeof start - 1);
	for (size_t i = sizeof start - 1; i < 127; i++)
		assert_int_equal(bytes[i], ' ');
	assert_int_equal(bytes[127], '\n');
	assert_memory_equal(bytes + 128, x, sizeof x);
}

static void spellings(void **state)
{
	(void)state;
	static const char *const dicts[] = {
		"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }   \n",
		"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3)}",
		"{\"shape\":(2,3,),\"fortran_order\":False,\"descr\":\"<i2\"}\n",
		"  {  'fortran_order' : False , 'descr' : '=i2' , 'shape' : ( 2 , 3 ) , }",
		"{'descr': 'i2', 'fortran_order': False, 'shape': (2L, 3L), }",
	};
	i16 x[] = {1, -2, 3, -4, 5, -6};
	for (int version = 1; version <= 3; version++)
		for (u32 i = 0; i < ARRAY_LEN(dicts); i++) {
			struct file f = make(version, dicts[i], x, sizeof x);
			struct npy a;
			assert_int_equal(parse(&f, &a), TL_OK);
			assert_int_equal(a.dtype, TL_I16);
			assert_int_equal(a.rank, 2);
			assert_int_equal(a.shape[0], 2);
			assert_int_equal(a.shape[1], 3);
			assert_memory_equal(a.data, x, sizeof x);
			npy_free(&a);
		}
	struct npy a;
	struct file f = make(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", "\x02\x00\x01", 3);
	assert_int_equal(parse(&f, &a), TL_OK);
	assert_memory_equal(a.data, "\x01\x00\x01", 3);
	npy_free(&a);
	f = make(1, "{'descr': '>u1', 'fortran_order': False, 'shape': (), }", "\x07", 1);
	assert_int_equal(parse(&f, &a), TL_OK);
	assert_int_equal(a.rank, 0);
	assert_int_equal(a.count, 1);
	npy_free(&a);
}

static void fortran_order(void **state)
{
	(void)state;
	i32 x[24], expect[24];
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 3; j++)
			for (int k = 0; k < 4; k++) {
				x[i + 2 * j + 6 * k] = 100 * i + 10 * j + k;
				expect[12 * i + 4 * j + k] = 100 * i + 10 * j + k;
			}
	struct npy a;
	struct file f = make(1, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 4), }", x, sizeof x);
	assert_int_equal(parse(&f, &a), TL_OK);
	assert_memory_equal(a.data, expect, sizeof expect);
	npy_free(&a);
	f = make(1, "{'descr': '<i4', 'fortran_order': True, 'shape': (24,), }", x, sizeof x);
	assert_int_equal(parse(&f, &a), TL_OK);
	assert_memory_equal(a.data, x, sizeof x);
	npy_free(&a);
	f = make(1, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 0, 4), }", x, 0);
	assert_int_equal(parse(&f, &a), TL_OK);
	assert_int_equal(a.count, 0);
	npy_free(&a);
}

static void malformed(void **state)
{
	(void)state;
	static const struct {
		const char *dict, *error;
	} bad[] = {
		{"", "not a dictionary"},
		{"{", "not a dictionary"},
		{"{}", "lacks descr"},
		{"{'descr': '<f4', 'fortran_order': False}", "lacks descr"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", "unknown key"},
		{"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "twice"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "follows the dictionary"},
		{"{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", "not a dictionary"},
		{"{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "big-endian"},
		{"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "'c8' are not supported"},
		{"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "'O' are not supported"},
		{"{'descr': '<U5', 'fortran_order': False, 'shape': (1,)}", "'U5' are not supported"},
		{"{'descr': '', 'fortran_order': False, 'shape': (1,)}", "'' are not supported"},
		{"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "records"},
		{"{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}", "not supported"},
		{"{'descr': '<f4", "records"},
		{"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "neither True nor False"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': 1}", "not a tuple"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", "not a tuple"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}", "not a tuple"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", "not a number"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "not a number"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,", "not a number"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "not a number"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "file ends before"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}", "file ends before"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "file ends before"},
	};
	for (u32 i = 0; i < ARRAY_LEN(bad); i++) {
		struct npy a;
		struct file f = make(1, bad[i].dict, "12345678", 8);
		assert_int_equal(parse(&f, &a), TL_ERR_FILE);
		if (!strstr(tl_error(NULL), bad[i].error))
			fail_msg("%s: '%s' is not in '%s'", bad[i].dict, bad[i].error, tl_error(NULL));
		assert_null(a.data);
	}
	struct npy a;
	struct file f = make(4, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "1234", 4);
	assert_int_equal(parse(&f, &a), TL_ERR_FILE);
	assert_int_equal(npy_read("/nonexistent/x.npy", &a), TL_ERR_FILE);
	assert_non_null(strstr(tl_error(NULL), "/nonexistent/x.npy"));
	assert_int_equal(npy_read("/tmp", &a), TL_ERR_FILE);
	assert_int_equal(npy_write("/nonexistent/x.npy", &(struct npy){TL_F32, 0, NULL, 1, "1234"}), TL_ERR_FILE);
	assert_int_equal(npy_write("/tmp/x.npy", &(struct npy){TL_BF16, 0, NULL, 1, "12"}), TL_ERR_ARGUMENT);
}

/* Every truncation and many corruptions of good files: no crash, and the array agrees with itself. */
static void corrupted(void **state)
{
	(void)state;
	u8 x[48] = {0};
	u32 random = 12345;
	for (int order = 0; order < 2; order++)
		for (int version = 1; version <= 2; version++) {
			struct file good = make(version,
						order ? "{'descr': '<f2', 'fortran_order': True, 'shape': (2, 3, "
							"4), }\n"
							       : "{'descr': '<i4', 'fortran_order': False, 'shape': "
								       "(12,), }\n", x, 48);
			struct npy a;
			for (size_t len = 0; len < good.len; len++) {
				struct file f = good;
				f.len = len;
				assert_int_not_equal(parse(&f, &a), TL_OK);
			}
			for (int i = 0; i < 20000; i++) {
				struct file f = good;
				for (u32 n = 1 + (random >> 20) % 3; n--;) {
					random = random * 1664525 + 1013904223;
					static const char likely[] = "0123456789(),{}'\" FT<>|fiub";
					u8 any = (u8)(random >> 24);
					f.bytes[(random >> 8) % 80] =
						random & 1 ? (u8)likely[any % (sizeof likely - 1)] : any;
				}
				if (parse(&f, &a))
					continue;
				size_t count = 1;
				for (u32 d = 0; d < a.rank; d++)
					count *= a.shape[d];
				assert_int_equal(count, a.count);
				assert_true(count * tl_dtype_size(a.dtype) <= 48 + 80);
				npy_free(&a);
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips), cmocka_unit_test(layout_of_files), cmocka_unit_test(spellings),
		cmocka_unit_test(fortran_order), cmocka_unit_test(malformed), cmocka_unit_test(corrupted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The exported functions for arguments against the inline functions of tl.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "random_bits.h"
#include "runtime/tl.h"

/* Both have the same bytes; `out` had others. */
#define SAME(inline_call, name, ...)                                                                                   \
	do {                                                                                                           \
		tl_arg a, b;                                                                                           \
		memset(&a, 0xA5, sizeof a);                                                                            \
		memset(&b, 0x5A, sizeof b);                                                                            \
		b = (inline_call);                                                                                     \
		tl_arg_##name(__VA_ARGS__);                                                                            \
		assert_memory_equal(&a, &b, sizeof a);                                                                 \
	} while (0)

static void arguments(void **state)
{
	(void)state;
	for (int round = 0; round < 1000; round++) {
		tl_dtype t = (tl_dtype)(random_bits() % 18);
		uint64_t u = (uint64_t)random_bits() << 32 ^ random_bits();
		int64_t i = (int64_t)u;
		double f = (double)i / 3;
		void *p = (void *)(uintptr_t)u;
		SAME(tl_ptr(t, p), ptr, &a, t, p);
		SAME(tl_range(t, p, u >> u % 64), range, &a, t, p, u >> u % 64);
		SAME(tl_buf(t, NULL), buf, &a, t, NULL);
		SAME(tl_int(i), int, &a, i);
		SAME(tl_int_typed(t, i), int_typed, &a, t, i);
		SAME(tl_uint(u), uint, &a, u);
		SAME(tl_uint_typed(t, u), uint_typed, &a, t, u);
		SAME(tl_float(f), float, &a, f);
		SAME(tl_float_typed(t, f), float_typed, &a, t, f);
		SAME(tl_bool(u & 1), bool, &a, u & 1);
		SAME(tl_none(), none, &a);
		SAME(tl_open(), open, &a);
		SAME(tl_str(p), str, &a, p);
		SAME(tl_type(t), type, &a, t);
		SAME(tl_func(p), func, &a, p);
		SAME(tl_tuple_arg(p), tuple, &a, p);
		SAME(tl_desc(p), desc, &a, p);
		SAME(tl_constexpr(tl_int(i)), constexpr, (a = tl_int(i), &a));
		SAME(tl_unspecialized(tl_ptr(t, p)), unspecialized, (a = tl_ptr(t, p), &a));
		const int64_t shape[] = {(int64_t)(u % 1000), i, 3, 4, 5};
		const int32_t block[] = {1, 2, 4, 8, (int32_t)u};
		int rank = (int)(u % 8) - 1;
		tl_descriptor d, e = tl_describe(t, p, rank, shape, block);
		memset(&d, 0xA5, sizeof d);
		tl_arg_describe(&d, t, p, rank, shape, block);
		assert_true(d.dtype == e.dtype && d.rank == e.rank && d.base == e.base);
		assert_memory_equal(d.shape, e.shape, sizeof d.shape);
		assert_memory_equal(d.strides, e.strides, sizeof d.strides);
		assert_memory_equal(d.block_shape, e.block_shape, sizeof d.block_shape);
		assert_true(!d.pads_with_nan && !d.rounds_to_tf32);
	}
}

static void sizes(void **state)
{
	(void)state;
	assert_int_equal(tl_struct_size("tl_arg"), sizeof(tl_arg));
	assert_int_equal(tl_struct_size("tl_source"), sizeof(tl_source));
	assert_int_equal(tl_struct_size("tl_error_info"), sizeof(tl_error_info));
	assert_int_equal(tl_struct_size("tl_config"), sizeof(tl_config));
	assert_int_equal(tl_struct_size("tl_module"), 0); /* an object */
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(arguments), cmocka_unit_test(sizes)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

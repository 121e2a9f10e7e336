/* The inline functions of tl.h as functions of the library, and the sizes of its structures, for languages that cannot
 * use a C header. */
#include <string.h>

#include "runtime/tl.h"

#define RETURNS_ARG(name, parameters, value)                                                                           \
	void tl_arg_##name parameters                                                                                  \
	{                                                                                                              \
		*out = (value);                                                                                        \
	}
RETURNS_ARG(ptr, (tl_arg *out, tl_dtype t, const void *p), tl_ptr(t, p))
RETURNS_ARG(range, (tl_arg *out, tl_dtype t, const void *p, size_t bytes), tl_range(t, p, bytes))
RETURNS_ARG(buf, (tl_arg *out, tl_dtype t, const tl_buffer *b), tl_buf(t, b))
RETURNS_ARG(int, (tl_arg *out, int64_t i), tl_int(i))
RETURNS_ARG(int_typed, (tl_arg *out, tl_dtype t, int64_t i), tl_int_typed(t, i))
RETURNS_ARG(uint, (tl_arg *out, uint64_t u), tl_uint(u))
RETURNS_ARG(uint_typed, (tl_arg *out, tl_dtype t, uint64_t u), tl_uint_typed(t, u))
RETURNS_ARG(float, (tl_arg *out, double f), tl_float(f))
RETURNS_ARG(float_typed, (tl_arg *out, tl_dtype t, double f), tl_float_typed(t, f))
RETURNS_ARG(bool, (tl_arg *out, bool b), tl_bool(b))
RETURNS_ARG(none, (tl_arg *out), tl_none())
RETURNS_ARG(open, (tl_arg *out), tl_open())
RETURNS_ARG(str, (tl_arg *out, const char *s), tl_str(s))
RETURNS_ARG(type, (tl_arg *out, tl_dtype t), tl_type(t))
RETURNS_ARG(func, (tl_arg *out, const char *name), tl_func(name))
RETURNS_ARG(tuple, (tl_arg *out, const tl_tuple *t), tl_tuple_arg(t))
RETURNS_ARG(desc, (tl_arg *out, const tl_descriptor *d), tl_desc(d))
RETURNS_ARG(describe,
	    (tl_descriptor *out, tl_dtype t, const void *base, int rank, const int64_t *shape,
	     const int32_t *block_shape),
	    tl_describe(t, base, rank, shape, block_shape))

void tl_arg_constexpr(tl_arg *a)
{
	*a = tl_constexpr(*a);
}

void tl_arg_unspecialized(tl_arg *a)
{
	*a = tl_unspecialized(*a);
}

void tl_arg_read(const tl_arg *a, tl_arg_members *out)
{
	*out = (tl_arg_members){.kind = a->kind,
				.dtype = a->dtype,
				.typed = a->typed,
				.constant = a->constant,
				.bytes = a->bytes,
				.value = a->u};
}

size_t tl_struct_size(const char *name)
{
#define SIZE(structure)                                                                                                \
	{                                                                                                              \
		#structure, sizeof(structure)                                                                          \
	}
	static const struct {
		const char *name;
		size_t size;
	} all[] = {SIZE(tl_error_info), SIZE(tl_device_info), SIZE(tl_allocator),   SIZE(tl_diagnostic),
		   SIZE(tl_source),     SIZE(tl_parameter),   SIZE(tl_arg),         SIZE(tl_tuple),
		   SIZE(tl_descriptor), SIZE(tl_arg_members), SIZE(tl_config),      SIZE(tl_resources),
		   SIZE(tl_tuning),     SIZE(tl_named_arg),   SIZE(tl_choice),      SIZE(tl_blob),
		   SIZE(tl_built)};
#undef SIZE
	for (size_t i = 0; name && i < sizeof all / sizeof *all; i++)
		if (!strcmp(name, all[i].name))
			return all[i].size;
	return 0;
}

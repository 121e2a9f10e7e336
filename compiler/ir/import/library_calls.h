/* What operations of Triton's text mean that the IR lacks, such as tt.dot_scaled: calls of functions that are written
 * in the language. Who evaluates the language gives the reader a way to call them. */
#ifndef TLC_IR_IMPORT_LIBRARY_CALLS_H
#define TLC_IR_IMPORT_LIBRARY_CALLS_H

#include "ir/ir.h"

struct text_arg {
	enum { TEXT_NONE, TEXT_VALUE, TEXT_INT, TEXT_BOOL, TEXT_STR, TEXT_TUPLE } kind;
	bool is_unsigned; /* TEXT_VALUE: how its integers are meant */
	struct value *value;
	i64 integer;
	const char *text;
	const struct text_arg *items;
	u32 nitems;
};

struct text_library {
	/* Builds at b what the function does, and adds its results to *out; a single one as of type `t`, if that is not
	 * NULL and a conversion or another shape makes it so. False after an error, which has been reported. */
	bool (*call)(void *arg, struct builder *b, const char *function, const struct text_arg *args, u32 n,
		     const struct type *t, value_vec *out);
	/* The function that a symbol of NVIDIA's libdevice, such as __nv_erff, is; NULL: none. */
	const char *(*extern_function)(void *arg, const char *symbol);
	void *arg;
};

#endif

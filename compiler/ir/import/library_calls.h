/* Calls of library functions for operations of Triton's text that the IR lacks, such as tt.dot_scaled. The functions
 * are written in the language. The evaluator of the language passes the reader these callbacks. */
#ifndef TLC_IR_IMPORT_LIBRARY_CALLS_H
#define TLC_IR_IMPORT_LIBRARY_CALLS_H

#include "ir/ir.h"

struct text_arg {
	enum { TEXT_NONE, TEXT_VALUE, TEXT_INT, TEXT_BOOL, TEXT_STR, TEXT_TUPLE } kind;
	bool is_unsigned; /* TEXT_VALUE: its integers are unsigned */
	struct value *value;
	i64 integer;
	const char *text;
	const struct text_arg *items;
	u32 nitems;
};

struct text_library {
	/* Builds the body of the function at b and adds its results to *out. A single result is converted or reshaped
	 * to type `t`, if that is not NULL and possible. False after an error, which has been reported. */
	bool (*call)(void *arg, struct builder *b, const char *function, const struct text_arg *args, u32 n,
		     const struct type *t, value_vec *out);
	/* The function for a symbol of NVIDIA's libdevice, such as __nv_erff; NULL if there is none. */
	const char *(*extern_function)(void *arg, const char *symbol);
	void *arg;
};

#endif

/* Arguments as text on the command line. */
#ifndef TLC_CLI_VALUE_H
#define TLC_CLI_VALUE_H

#include "support/dtype.h"
#include "cli/npy.h"
#include "runtime/tl.h"
#include "cli/cli.h"

struct argument {
	const char *name;
	tl_arg arg;
	bool given, tensor, empty, is_descriptor, is_tuple; /* empty: uninitialised memory */
	struct npy data; /* the host copy of a tensor; its dtype is the kernel's */
	tl_dtype dtype;
	tl_buffer *buffer;
	const char *save; /* path, or NULL */
	tl_descriptor descriptor;
	struct argument *items; /* of a tuple */
	u32 nitems;
	const char *const *fields; /* or NULL */
	tl_tuple tuple;
};

struct value_reader {
	struct arena *arena;
	struct unit *unit; /* for looking up functions */
	int code;          /* exit code if a file cannot be read */
};

/* Prints the error of a failed call, and returns the exit code. */
int api_failed(const tl_context *ctx, tl_status status);
/* ARG=VALUE; false after a message. */
bool read_argument(struct value_reader *r, struct argument *a, const char *text);
/* -D NAME=VALUE as an argument: numbers, strings, dtypes, functions, tuples of these. */
bool read_constant(struct value_reader *r, struct argument *a, const char *value);
/* Makes buffers for the tensors, and the argument. */
tl_status value_upload(tl_context *ctx, struct argument *a);
/* Reads the tensors back. */
tl_status value_read(struct argument *a);
/* The first difference of the tensors above tolerance * (1 + |b|); NULL: there is none. */
char *value_difference(struct arena *arena, const struct argument *a, const struct argument *b, double tolerance);
/* Reads the tensors back, and saves or prints them. */
tl_status value_download(struct argument *a);
void value_free(struct argument *a);

#endif

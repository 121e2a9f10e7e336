/* Manifests: the variants of kernels that a program used, for `tlc build` to compile before the program starts.
 *
 * A manifest is a text file with a JSON object on each line. Arguments have the syntax of tlc's options -s and -D:
 * "x=*fp32:16, n=i32, BLOCK=1024". Options with their default value are omitted. */
#ifndef TL_LAUNCH_MANIFEST_H
#define TL_LAUNCH_MANIFEST_H

#include "runtime/api/objects.h"

struct manifest_entry {
	const char *source; /* the file's name */
	const char *text;   /* of the source, if it is not in a file of that name; else NULL */
	/* of a module that is not one whole file: its sources; else none */
	const struct unit_source *sources;
	u32 nsources;
	const char *hash;   /* of the sources: hexadecimal digits */
	const char *path;   /* PYTHONPATH, or NULL */
	const char *kernel, *arguments;
	struct target target; /* with the device's limits */
	struct options options;
};

/* Describes a launch. */
void manifest_describe(struct arena *a, const tl_kernel *k, const struct params *ps, const struct options *o,
		       const tl_arg *args, size_t nargs, struct manifest_entry *out);
/* Prints a line with its newline. */
void manifest_print(struct strbuf *out, const struct manifest_entry *e);
/* NULL, or the reason why the line is invalid. */
const char *manifest_read(struct arena *a, const char *line, size_t len, struct manifest_entry *out);
/* Appends the line to the file unless the file has it, safely with other processes. NULL, or a message, in `a`, with
 * the reason why the file is not trusted. */
const char *manifest_add(struct arena *a, const char *path, const char *line, size_t len);

/* Arguments with the specialisation that the text describes, with invented numbers and addresses. False: the text is
 * invalid. */
bool manifest_arguments(struct arena *a, const struct params *ps, const char *text, tl_arg *out, size_t *n);

#endif

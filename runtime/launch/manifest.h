/* Manifests: which variants of which kernels a program used, so that `tlc build` compiles them before it starts.
 *
 * A text file of JSON objects, a line each. Arguments are written as -s and -D of tlc take them: "x=*fp32:16, n=i32,
 * BLOCK=1024". Options that have their usual value are left out. */
#ifndef TL_LAUNCH_MANIFEST_H
#define TL_LAUNCH_MANIFEST_H

#include "runtime/api/objects.h"

struct manifest_entry {
	const char *source; /* the file's name */
	const char *text;   /* of the source, where no file of that name holds it; else NULL */
	const char *hash;   /* of the source: hexadecimal digits */
	const char *path;   /* PYTHONPATH, or NULL */
	const char *kernel, *arguments;
	struct target target; /* with the device's own limits */
	struct options options;
};

/* What a launch asks for. */
void manifest_describe(struct arena *a, const tl_kernel *k, const struct params *ps, const struct options *o,
		       const tl_arg *args, size_t nargs, struct manifest_entry *out);
/* A line, with its end. */
void manifest_print(struct strbuf *out, const struct manifest_entry *e);
/* NULL, or why this line is none. */
const char *manifest_read(struct arena *a, const char *line, size_t len, struct manifest_entry *out);
/* Adds the line to the file unless it is there, whatever other processes do at the same time. NULL, or a message
 * in `a` that says why the file is not trusted. */
const char *manifest_add(struct arena *a, const char *path, const char *line, size_t len);

/* Arguments that the kernel is specialised for in the same way as for those that were written so: numbers and addresses
 * of their own. False: it is no such text. */
bool manifest_arguments(struct arena *a, const struct params *ps, const char *text, tl_arg *out, size_t *n);

#endif

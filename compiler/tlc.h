/* Shared by the files of the command line. */
#ifndef TLC_TLC_H
#define TLC_TLC_H

#include "compile.h"

/* Exit codes. */
enum { EXIT_DONE = 0, EXIT_USER = 1, EXIT_ENVIRONMENT = 2, EXIT_BUG = 3 };

struct define {
	const char *name, *value;
};

struct command {
	struct arena arena;
	const char *file, *kernel, *signature, *target, *emit, *output, *device, *grid, *bytes, *flops;
	bool sim_report;
	VEC(struct define) defines;
	VEC(const char *) args; /* ARG=VALUE of `run` and `bench` */
	struct compile_options options;
};

/* The file's text, NUL-terminated; NULL after a message. */
char *read_file(struct arena *a, const char *path, size_t *len);
/* Prints "tlc: error: …" and returns `code`. */
int complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The kernel called `name`, or the only one of the file; NULL after a message. */
const struct func *pick_kernel(struct unit *u, const char *name);

int command_run(struct command *c, bool bench);

#endif

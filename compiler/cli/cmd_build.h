/* Shared by the files of `tlc build`. */
#ifndef TLC_CLI_CMD_BUILD_H
#define TLC_CLI_CMD_BUILD_H

#include "runtime/launch/manifest.h"
#include "cli/cli.h"

/* The text that the entry was recorded for. NULL after a message. */
const char *manifest_source(struct arena *a, const struct manifest_entry *e, size_t *len);
/* A header and a C source: of FILE, or of what a manifest lists. */
int build_sources(struct command *c, const char *text, size_t len);
int build_manifest_sources(struct command *c, const struct manifest_entry *entries, u32 n);

/* What a kernel's functions, and a parameter of theirs, are called in C. `prefix` may be NULL. */
const char *c_function_name(struct arena *a, const char *prefix, const char *name);
const char *c_parameter_name(struct arena *a, const char *name);
/* Why no function of a program in C or C++ can have this name, as in "is a function of the C library"; or NULL. */
const char *c_name_taken(struct arena *a, const char *name);

/* A file that was read, and those that kernels of the unit have imported. */
void note_file(struct command *c, const char *path);
void note_imports(struct command *c, const struct unit *u);
/* The exit status; with a message if that is not 0. */
int write_depfile(struct command *c);

#endif

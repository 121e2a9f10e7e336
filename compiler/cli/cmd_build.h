/* Declarations shared by the files of `tlc build`. */
#ifndef TLC_CLI_CMD_BUILD_H
#define TLC_CLI_CMD_BUILD_H

#include "runtime/launch/manifest.h"
#include "cli/cli.h"

/* The source text of the recorded entry. NULL after a message. */
const struct unit_source *manifest_sources(struct arena *a, const struct manifest_entry *e, u32 *n);
/* Write a header and a C source, for FILE or for the entries of a manifest. */
int build_sources(struct command *c, const char *text, size_t len);
int build_manifest_sources(struct command *c, const struct manifest_entry *entries, u32 n);

/* The C names of a kernel's function and of a parameter. `prefix` may be NULL. */
const char *c_function_name(struct arena *a, const char *prefix, const char *name);
const char *c_parameter_name(struct arena *a, const char *name);
/* The reason why no C or C++ function can have this name, as in "is a function of the C library"; or NULL. */
const char *c_name_taken(struct arena *a, const char *name);

/* Record for the depfile a file that was read, and the files that kernels of the unit have imported. */
void note_file(struct command *c, const char *path);
void note_imports(struct command *c, const struct unit *u);
/* Returns the exit status, after a message if it is not 0. */
int write_depfile(struct command *c);

#endif

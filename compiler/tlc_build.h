/* Shared by the files of `tlc build`. */
#ifndef TLC_TLC_BUILD_H
#define TLC_TLC_BUILD_H

#include "runtime/manifest.h"
#include "tlc.h"

/* The text that the entry was recorded for. NULL after a message. */
const char *manifest_source(struct arena *a, const struct manifest_entry *e, size_t *len);
/* A header and a C source: of FILE, or of what a manifest lists. */
int build_sources(struct command *c, const char *text, size_t len);
int build_manifest_sources(struct command *c, const struct manifest_entry *entries, u32 n);

#endif

/* LLVM IR → PTX: the math library linked in, a short pass pipeline with the real target machine, and the back end. */
#ifndef TLC_LLVM_EMIT_PTX_H
#define TLC_LLVM_EMIT_PTX_H

#include "llvm/session.h"

/* Optimises the session's module in place for the GPU and returns its PTX, NUL-terminated, in the session's arena;
 * NULL after an error, whose text is in *error (there, too). loops: it has some; in_flight: it has asynchronous
 * dots, whose accumulators the back end must not copy: its optimisations stay on. *llir, unless NULL, gets the
 * optimised LLVM IR. */
const char *emit_ptx(struct session *s, const struct target *target, bool loops, bool in_flight,
		     const char **llir, size_t *len, const char **error);
/* The PTX with lines added to the directives of its one kernel: those that this LLVM cannot be asked for. */
const char *ptx_with_directives(struct arena *arena, const char *ptx, size_t *len, const char *lines);

#endif

/* LLVM IR to PTX: links the math library, runs a short pass pipeline with the real target machine, and runs the back
 * end. */
#ifndef TLC_LLVM_EMIT_PTX_H
#define TLC_LLVM_EMIT_PTX_H

#include "llvm/session.h"

struct ptx_kernel {
	bool loops;
	bool in_flight; /* asynchronous dots: the back end must not copy accumulators, so it always optimizes */
	int threads;    /* of a block */
	/* The kernel is elementwise. False if maxnreg is set. */
	bool elementwise;
	/* Registers of a thread for the data of loops that load an iteration ahead (registers_for_loads_ahead). 0 if
	 * there is no such loop, or maxnreg is set. */
	int loads_ahead;
};
/* Optimizes the session's module in place for the GPU and returns its PTX, NUL-terminated, in the session's arena.
 * NULL after an error, with the message in *error (in the same arena). *llir, unless NULL, receives the optimized LLVM
 * IR. */
const char *emit_ptx(struct session *s, const struct target *target, const struct ptx_kernel *k, const char **llir,
		     size_t *len, const char **error);
/* The PTX with lines added to the directives of its only kernel, for directives that this version of LLVM cannot
 * emit. */
const char *ptx_with_directives(struct arena *arena, const char *ptx, size_t *len, const char *lines);

#endif

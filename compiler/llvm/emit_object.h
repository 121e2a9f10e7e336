/* LLVM IR to machine code of a CPU, for functions that are vectorized already. */
#ifndef TLC_LLVM_EMIT_OBJECT_H
#define TLC_LLVM_EMIT_OBJECT_H

#include "llvm/session.h"

/* Optimizes the session's module in place. False after an error, with the message in *error. */
bool optimize_for_cpu(struct session *s, const struct target *target, const char **error);
/* The optimized module as assembly (NUL-terminated) or, called afterwards, as an object, in the session's arena. NULL
 * after an error. */
const char *emit_for_cpu(struct session *s, LLVMCodeGenFileType type, size_t *len, const char **error);
/* Replaces masked loads and stores that the CPU has no instruction for by calls of a loop (masked_access.c). */
void expand_masked_accesses(LLVMModuleRef mod, const struct target *target);

#endif

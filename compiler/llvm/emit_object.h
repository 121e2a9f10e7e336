/* LLVM IR → machine code of a CPU, for functions that are vectorised already. */
#ifndef TLC_LLVM_EMIT_OBJECT_H
#define TLC_LLVM_EMIT_OBJECT_H

#include "llvm/session.h"

/* Optimises the session's module in place; false after an error, whose text is in *error. */
bool optimize_for_cpu(struct session *s, const struct target *target, const char **error);
/* The optimised module as assembly, NUL-terminated, and after that as an object, in the session's arena. NULL after an
 * error. */
const char *emit_for_cpu(struct session *s, LLVMCodeGenFileType type, size_t *len, const char **error);
/* Masked loads and stores that the processor has no instruction for become calls of a loop (masked_access.c). */
void expand_masked_accesses(LLVMModuleRef mod, const struct target *target);
/* Hides parts of long sums from a pass whose time grows with the cube of their terms (long_sums.c). */
void freeze_long_sums(LLVMModuleRef mod);

#endif

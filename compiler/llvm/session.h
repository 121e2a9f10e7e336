/* One compilation's use of LLVM: its objects, and recovery from LLVM's fatal errors.
 *
 * LLVM ends the process for errors that it calls fatal, prints diagnostics that have no handler, and the C++ library
 * under it terminates if memory runs out in code that was built without exceptions, as LLVM is. The process has one
 * handler for each of these. tlc sets the handlers at its first use of LLVM. They test whether the current thread is
 * between session_open and session_close. If so, they raise a fault (support/recover.h) and leak the LLVM objects of
 * the session, since LLVM may have been changing them. In other threads they do what would have happened without them.
 * LLVM does not tell which handler was set before: a program that uses the same LLVM and sets its own handlers must do
 * so after its first compilation by tlc. */
#ifndef TLC_LLVM_SESSION_H
#define TLC_LLVM_SESSION_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "support/target.h"
#include "support/recover.h"

/* Creating a target machine takes a tenth of a short kernel's compilation, so a few are kept for later compilations.
 * One thread at a time uses a machine. LLVM lets a machine grow a little with each module, so its uses are limited. */
struct machine {
	LLVMTargetMachineRef tm;
	struct target target;
	bool quick; /* without optimizations */
	u32 uses;
};

/* This thread's use of LLVM, from llvm_enter to llvm_leave. */
struct llvm_use {
	struct cleanup inside;
};
void llvm_enter(struct llvm_use *u);
void llvm_leave(struct llvm_use *u);

struct session {
	struct arena *arena;
	LLVMContextRef ctx;
	LLVMModuleRef mod;
	struct machine machine;   /* tm is NULL before session_machine */
	LLVMTargetDataRef data;   /* these four are NULL, or owned by the session */
	char *layout, *text;
	LLVMMemoryBufferRef out;
	/* number of errors that LLVM reported; next the text of the first error and of the first warning */
	u32 nerrors;
	char error[512], warning[512];
	/* loops (GPU) or instructions (CPU) of a very large module compiled without optimizations; 0: optimized */
	u32 unoptimized;
	struct cleanup objects;
	struct llvm_use use;
};
void session_open(struct session *s, struct arena *arena, const char *name);
void session_close(struct session *s);
/* Takes a machine for the target, and sets the module's triple and data layout. False after an error, with the message
 * in *error. */
bool session_machine(struct session *s, const struct target *target, const char **error);
/* Replaces the session's machine by a machine without optimisations if the module is very large
 * (driver/backend_level.c), and sets `unoptimized`. False after an error. */
bool session_bound_time(struct session *s, const struct target *target, const char **error);
bool session_quick_machine(struct session *s, const struct target *target, const char **error);
/* Runs LLVM passes over the module. False after an error. */
bool session_passes(struct session *s, const char *passes, const char **error);
/* Raises a fault if the module is invalid, unless NDEBUG is defined. */
void session_verify(const struct session *s);
/* The module as text, in the session's arena. */
const char *session_text(struct session *s);

/* Replaces negations and absolute values that ptxas miscompiles (ptxas_negation.c). */
void protect_negations(LLVMModuleRef mod);
struct ptx_kernel;
/* Lets a kernel keep more loads in flight (registers_for_loads.c). */
void allow_registers_for_loads(const struct session *s, const struct target *target, const struct ptx_kernel *k);
/* Freezes parts of integer sums that have more than `most` terms, or `most_invariant` terms if they depend on no phi
 * (long_sums.c). */
void freeze_long_sums(LLVMModuleRef mod, u32 most, u32 most_invariant);
/* Branches around operands of selections with an unlikely condition (unlikely_selects.c). */
void branch_around_unlikely(LLVMModuleRef mod);
/* Hides operands from LLVM if it would crash on simplifying them (min_max_operands.c). Runs before each LLVM pass that
 * simplifies. */
void separate_shared_operands(LLVMModuleRef mod);

#endif

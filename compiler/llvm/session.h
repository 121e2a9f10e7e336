/* One compilation's use of LLVM: its objects, and what happens when LLVM cannot go on.
 *
 * LLVM ends the process for what its authors call fatal errors, prints diagnostics that nobody takes, and the C++
 * library under it terminates when memory runs out in code that was built without exceptions, as LLVM is. The handlers
 * for these are one of each in the process. They are set when LLVM is first used here, and ask which thread is meant:
 * one that is between session_open and session_close raises a fault (support/recover.h), and the LLVM objects of its
 * session are left behind, since LLVM may have been in the middle of changing them; in all others happens what would
 * have happened. There is no way to learn which handler of LLVM's was set before: a program that uses the same LLVM and
 * sets its own does so after its first compilation here. */
#ifndef TLC_LLVM_SESSION_H
#define TLC_LLVM_SESSION_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "support/target.h"
#include "support/recover.h"

/* Making a target machine takes a tenth of a short kernel's compilation, so a few are kept for the next ones. One
 * thread at a time uses each; LLVM lets it grow a little with each module, so not for ever. */
struct machine {
	LLVMTargetMachineRef tm;
	struct target target;
	bool quick; /* without optimisations */
	u32 uses;
};

/* This thread's calls of LLVM, from llvm_enter to llvm_leave. */
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
	LLVMTargetDataRef data;   /* these four are NULL, or to be disposed of */
	char *layout, *text;
	LLVMMemoryBufferRef out;
	u32 nerrors;              /* that LLVM told; the first one's words follow, and then the first warning's */
	char error[512], warning[512];
	u32 unoptimized;          /* the loops (GPU) or instructions (CPU) of a very large module; 0: it is optimised */
	struct cleanup objects;
	struct llvm_use use;
};
void session_open(struct session *s, struct arena *arena, const char *name);
void session_close(struct session *s);
/* The machine for the target, whose triple and layout of data the module gets; false after an error, which is in
 * *error. */
bool session_machine(struct session *s, const struct target *target, const char **error);
/* Replaces the session's machine by a machine without optimisations if the module is very large
 * (driver/backend_level.c), and sets `unoptimized`. False after an error. */
bool session_bound_time(struct session *s, const struct target *target, const char **error);
bool session_quick_machine(struct session *s, const struct target *target, const char **error);
/* Runs LLVM's passes over the module; false after an error. */
bool session_passes(struct session *s, const char *passes, const char **error);
/* Raises a fault where the module is no LLVM IR, unless NDEBUG is defined. */
void session_verify(const struct session *s);
/* The module's text, in the session's arena. */
const char *session_text(struct session *s);

/* Replaces negations and absolute values that ptxas would compile wrongly (ptxas_negation.c). */
void protect_negations(LLVMModuleRef mod);
/* Hides from LLVM operands whose simplification would end the process (min_max_operands.c); before each of its passes
 * that simplifies. */
void separate_shared_operands(LLVMModuleRef mod);

#endif

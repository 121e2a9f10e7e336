/* CPU code generation: tile IR to LLVM IR, as loop nests over vectors.
 *
 * Operations on tiles are not executed one after another. Operations that end in the same store, reduction or dot form
 * a loop nest over the tile, and its innermost loop computes a vector of each value. Only values that several nests
 * need, or that a nest needs in another order of elements, are stored in memory. See docs/internals/cpu.md. */
#ifndef TLC_CPU_CPU_H
#define TLC_CPU_CPU_H

#include <llvm-c/Core.h>

#include "cpu/cpu_abi.h"
#include "ir/pass.h"

/* Adds one function of type cpu_program, named as the kernel, to an empty module. Needs ANALYSIS_AXIS. Returns the size
 * in bytes of a program's scratch memory. */
u64 cpu_lower(struct pass_state *s, LLVMModuleRef mod);

/* The number of instructions for x after LLVM has split its vectors into vector registers. */
u32 cpu_instruction_count(LLVMValueRef x, const struct target *target);

#endif

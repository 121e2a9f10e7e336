/* Tile IR, as it is before placement → LLVM IR for the CPU: loop nests over vectors.
 *
 * Operations on tiles are not carried out one after the other. Those that end in the same store, reduction or dot form
 * a nest of loops over the tile, in whose innermost loop a vector of each value is computed. Only values that several
 * nests need, or that are needed in another order, lie in memory in between. See docs/internals/cpu.md. */
#ifndef TLC_CPU_CPU_H
#define TLC_CPU_CPU_H

#include <llvm-c/Core.h>

#include "cpu/cpu_abi.h"
#include "ir/pass.h"

/* Fills an empty module with one function of type cpu_program, named like the kernel. Needs ANALYSIS_AXIS. Returns the
 * bytes of scratch memory that a program needs. */
u64 cpu_lower(struct pass_state *s, LLVMModuleRef mod);

/* The number of instructions for x after LLVM has split its vectors into vector registers. */
u32 cpu_instruction_count(LLVMValueRef x, const struct target *target);

#endif

/* NVPTX code generation: laid-out GPU IR to LLVM IR. Each tile becomes the registers that a thread holds of it. */
#ifndef TLC_GPU_CODEGEN_NVPTX_H
#define TLC_GPU_CODEGEN_NVPTX_H

#include <llvm-c/Core.h>

#include "ir/pass.h"

/* Adds one kernel function to the empty module. Math functions are declared but not defined. Needs ANALYSIS_AXIS. */
void lower_kernel(struct pass_state *s, LLVMModuleRef mod);
/* tma.c: fills k->cuda.maps from the TMA copies of the kernel. */
void collect_tensor_maps(struct kernel *k);
/* Emits a warning if LLVM may take minutes to compile the kernel (instruction_count.c). */
void warn_of_amount(struct pass_state *s);

/* Approximate division. emit_ptx replaces it by div.full.f32, which has no intrinsic in LLVM 19; as inline PTX it
 * takes ten times as long to compile. */
#define APPROXIMATE_DIVISION "llvm.nvvm.div.approx.f"

#endif

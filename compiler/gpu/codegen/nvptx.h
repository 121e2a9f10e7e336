/* Placed IR → LLVM IR for NVPTX: every tile becomes the registers a thread holds of it. */
#ifndef TLC_GPU_CODEGEN_NVPTX_H
#define TLC_GPU_CODEGEN_NVPTX_H

#include <llvm-c/Core.h>

#include "ir/pass.h"

/* Fills an empty module with one kernel function; math functions it calls are declared only. Needs ANALYSIS_AXIS. */
void lower_kernel(struct pass_state *s, LLVMModuleRef mod);
/* Warns of a kernel for whose code LLVM may take minutes. */
void warn_of_amount(struct pass_state *s);

/* emit_ptx makes it div.full.f32, for which LLVM 19 has no intrinsic; inline PTX takes it ten times as long. */
#define APPROXIMATE_DIVISION "llvm.nvvm.div.approx.f"

#endif

/* A dot's operand from registers (A of wgmma): its run consists of the loads from buffers, and of the operations that
 * compute the operand from them and have no other use. If the dot may be in flight, the run is directly before the dot:
 * no operation with effects and no barrier is in between. NVPTX code generation emits the run with the dot, for one
 * group of steps of k at a time, after the wait for earlier groups that read the same registers (gpu/codegen/wgmma.c).
 * gpu/codegen/verify_gpu_ir.c rejects a dot with an operand that is loaded elsewhere. The pipeliner makes runs, and
 * barriers go before them. */
#ifndef TLC_GPU_LAYOUT_REGISTER_OPERAND_H
#define TLC_GPU_LAYOUT_REGISTER_OPERAND_H

#include "gpu/layout/mma.h"

/* True if o's tile has no other use than as A of the dot, and in operations of the run. */
bool is_for_operand(const struct op *o, const struct op *dot, const op_vec *run);
/* The run of the dot (see above): the operations that load and compute its A operand in registers, in program
 * order. */
op_vec operand_run(struct arena *a, const struct op *dot);

#endif

/* A dot's operand that is fetched into registers: the loads of buffers and the operations that compute it of them,
 * which nothing else needs. Where the dot may be in flight they are a run right in front of it: nothing between has
 * effects, and no threads meet. So they are lowered with the dot, which runs them for a group of steps of k when the
 * products that read the same registers before are done (gpu/codegen/wgmma.c); gpu/codegen/verify_gpu_ir.c refuses a
 * dot whose operand is loaded elsewhere. The pipeliner makes runs, and barriers are placed in front of them. */
#ifndef TLC_GPU_LAYOUT_REGISTER_OPERAND_H
#define TLC_GPU_LAYOUT_REGISTER_OPERAND_H

#include "gpu/layout/mma.h"

/* Does nothing need o's tile but A of the dot, and operations of the run? */
bool is_for_operand(const struct op *o, const struct op *dot, const op_vec *run);
/* Those in front of a dot whose A is fetched, in program order. */
op_vec operand_run(struct arena *a, const struct op *dot);

#endif

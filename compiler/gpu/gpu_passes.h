/* Passes from Triton's tile IR to laid-out GPU IR (TTGIR): layouts of tiles, pipelining, and shared memory. In order:
 *
 *   legalize-dots         operand types that the target's tensor cores take
 *   cluster               several blocks for a program whose tiles do not fit the registers of one block
 *   layouts               a layout for every tile, and conversions between layouts (gpu/layout/assign_layouts.h)
 *   pipeline              loads of loops issued ahead, into shared memory or registers; persistent kernels
 *   early-loads           loads issued before threads wait for one another
 *   multiply-adds         operands in shared memory for dots without tensor cores
 *   vectorize             how many elements a load, store or copy takes at once
 *   allocate              offsets in shared memory
 *   barriers              barriers between accesses to shared or global memory
 *   prove-buffers         proof that buffers in shared memory are synchronised (gpu/smem/model_checker.h)
 *   remarks               how memory is accessed, for --remarks
 *
 * The result is the ttgir dump. */
#ifndef TLC_GPU_GPU_PASSES_H
#define TLC_GPU_GPU_PASSES_H

#include "ir/pass.h"

void pass_legalize_dots(struct pass_state *s);
void pass_cluster(struct pass_state *s);
void pass_layouts(struct pass_state *s);
void pass_multiply_adds(struct pass_state *s);
void pass_vectorize(struct pass_state *s);
void pass_allocate(struct pass_state *s);
void pass_barriers(struct pass_state *s);
void pass_remarks(struct pass_state *s);

/* Bytes of scratch in shared memory that o needs while it runs. Before pass_allocate, a layout conversion counts as
 * done in the smallest pieces. */
i32 scratch_bytes(const struct pass_state *s, const struct op *o);
/* Bytes in shared memory of the buffer that o allocates, or of its scratch. */
i32 own_bytes(const struct pass_state *s, const struct op *o);
/* Chooses how o converts a layout, with at most `most` bytes of shared memory at once if it can be done in pieces. */
void choose_conversion(const struct pass_state *s, struct op *o, i32 most);

/* Sets the sizes of the buffers and scratch that a kernel in textual TTGIR gives offsets. `allocated`: all that need
 * shared memory must have an offset within the kernel's bytes; otherwise sets s->failed. */
void measure_shared(struct pass_state *s, bool allocated);

/* Verifies that the layouts of TTGIR, and the attributes that the passes up to `stage` have set, fit the operations.
 * Errors go to `report`, or if that is NULL, are broken invariants after `pass`. */
bool gpu_ir_verify(struct pass_state *s, enum gpu_stage stage, const char *pass, struct diags *report);
/* The source location of o, or of the nearest operation around it that has one. */
struct loc gpu_ir_loc(const struct op *o);
/* Reports the operation `bad` that a verifier has found wrong, with the reason `what`. True if there is none (NULL). */
bool gpu_ir_report(struct pass_state *s, const char *pass, struct diags *report, const struct op *bad,
		   const char *what);

/* Allocates a buffer with layout mem in shared memory, and stores v there. */
struct value *store_shared(struct builder *b, struct value *v, const struct layout *mem);

/* The number (number_ops) of v's last use, at least `begin`. A use inside a loop counts as its end, seen from the block
 * that v is defined in. Uses through views of a buffer count, too. */
u32 last_use(const struct value *v, const struct block *home, u32 begin);

/* Alignment of buffers in shared memory, in bytes: a period of the widest swizzle (layout_swizzled) on targets with
 * instructions that require it. */
i32 shared_align(const struct pass_state *s);

#endif

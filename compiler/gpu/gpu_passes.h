/* Placement: who holds what, where and when. The passes, in order:
 *
 *   dots      operand types that the target's tensor cores take
 *   cluster   several blocks for a program whose tiles do not fit the registers of one
 *   layouts   a layout for every tile, conversions where they meet (gpu/layout/assign_layouts.h)
 *   operands  dots' operands that stay in shared memory while a loop runs
 *   pipeline  loads of loops issued ahead, into shared memory or registers; few blocks for many programs
 *   multiply-adds
 *             operands of dots that no tensor core does, in shared memory
 *   vectorize how many elements a load, store or copy takes at once
 *   allocate  offsets in shared memory
 *   barriers  where threads must wait for each other's shared memory
 *   remarks   what became of memory accesses, for --remarks
 *
 * What comes out is the ttgir dump. */
#ifndef TLC_GPU_GPU_PASSES_H
#define TLC_GPU_GPU_PASSES_H

#include "ir/pass.h"

void pass_legalize_dots(struct pass_state *s);
void pass_cluster(struct pass_state *s);
void pass_layouts(struct pass_state *s);
void pass_promote_operands(struct pass_state *s);
void pass_multiply_adds(struct pass_state *s);
void pass_vectorize(struct pass_state *s);
void pass_allocate(struct pass_state *s);
void pass_barriers(struct pass_state *s);
void pass_remarks(struct pass_state *s);

/* Shared memory an operation needs for itself while it runs, in bytes. Before `allocate` has decided on it, a change of
 * layout is one in the smallest pieces. */
i32 scratch_bytes(const struct pass_state *s, const struct op *o);
/* Decides how o changes a layout, with at most so many bytes of memory at once if it can be done in pieces. */
void choose_conversion(const struct pass_state *s, struct op *o, i32 most);

/* Sizes of what the text of a placed kernel gives offsets in shared memory. `allocated`: all that needs some must have
 * an offset, within the kernel's bytes; s->failed otherwise. */
void measure_shared(struct pass_state *s, bool allocated);

/* Do the layouts of placed IR fit its operations, and what has been decided about these? In a `report`, or else as a
 * broken invariant behind `pass`. `last`: the number of the last pass that has run, in the list of compile.c. */
enum { PLACE_LAYOUTS = 2, PLACE_MULTIPLY_ADDS = 6, PLACE_VECTORIZE = 7, PLACE_ALLOCATE = 8, PLACE_BARRIERS = 9 };
bool placed_verify(struct pass_state *s, int last, const char *pass, struct diags *report);
/* Where o is, or what it is in. */
struct loc placed_loc(const struct op *o);
/* The answer of a verifier that has found `bad` to be wrong, as `what` says, or has found nothing (NULL). */
bool placed_answer(struct pass_state *s, const char *pass, struct diags *report, const struct op *bad,
		   const char *what);

/* A buffer in shared memory, laid out like mem, and v stored there. */
struct value *store_shared(struct builder *b, struct value *v, const struct layout *mem);

/* The end of v's last use, seen from the block `home` that v lives in: a number of an operation (number_ops), at least
 * `begin`. Views of a buffer use it. */
u32 last_use(const struct value *v, const struct block *home, u32 begin);

/* What buffers in shared memory are aligned to, in bytes: a period of the widest swizzle (layout_swizzled) where
 * instructions count on it. */
i32 shared_align(const struct pass_state *s);

#endif

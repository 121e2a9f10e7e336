/* The tensor-core instructions, and which one a dot gets. */
#ifndef TLC_GPU_LAYOUT_MMA_H
#define TLC_GPU_LAYOUT_MMA_H

#include "layout/layout.h"
#include "ir/pass.h"

/* What becomes of operands in the registers: fp32 is rounded to tf32; fp8 is widened. Hopper has no mma.sync of fp8.
 * ptxas makes two of fp16 from it, and ptxas 13.0 takes the lower half of a register for both if that is the same in
 * all lanes. So its fragments are widened, each half the fragments of an m16n8k16, the order of k being of no
 * account. */
enum mma_operands { AS_IT_IS, TO_TF32, TO_F16 };

/* One form of mma.sync (PTX ISA, "mma"). Fragment layouts follow from m, the element width and k alone; see
 * layout.h. */
struct mma {
	const char *name;            /* of the entry in the table of inline PTX */
	enum dtype a, b, acc;
	enum mma_operands operands;
	u8 m, n, k;
	enum mma_generation since;
};

/* The instruction for a dot of these types on this target; NULL: it is done with fused multiply-adds. */
const struct mma *mma_select(const struct target *d, enum dtype a, enum dtype b, enum dtype acc,
			     enum dot_precision precision);
const struct mma *mma_for_dot(const struct target *d, const struct op *dot);
/* Its m, n and k, as ATTR_INSTR has them. */
i64 mma_shape(const struct mma *m);
/* The one that a placed dot has; NULL: multiply-adds. */
const struct mma *mma_of_dot(const struct op *dot);

/* One type of wgmma.mma_async (PTX ISA, "Asynchronous Warpgroup Level Matrix"): m is 64, k covers 256 bits. */
struct wgmma {
	enum dtype a, b, acc;
	const char *types;           /* of the instruction: accumulator, A, B */
	u8 k;
	bool any_major;              /* operands may be contiguous along M and N; else along K alone */
};
/* The instruction for a dot of these types on this target; NULL: mma.sync or multiply-adds. */
const struct wgmma *wgmma_for_dot(const struct pass_state *s, const struct op *dot);
/* The one that a WARP_GROUP_DOT has, whose A is the dot's B if the operands are exchanged. */
const struct wgmma *wgmma_of_dot(const struct op *dot);

/* How the warpgroups of a block share a result. The rows of the instruction run along its rows or, the operands being
 * exchanged since (A·B)ᵀ = Bᵀ·Aᵀ, along its columns. */
struct wgmma_split {
	/* of the result, along which the instruction's rows run; also the operand that is its A */
	int row_dim;
	int warps[2];                /* along the instruction's rows, in multiples of four, and columns */
	int n;                       /* columns of one instruction */
};
/* False when a result of type t is too small for that. */
bool wgmma_split(int num_warps, const struct type *t, int row_dim, struct wgmma_split *out);
/* The layout of a result. `bytes` not 0: A is fetched from shared memory into registers, where it lies across k with
 * elements of so many bytes. Then any of its elements may be any row, and the rows are numbered so that this is done by
 * vectors and without bank conflicts. */
const struct layout *wgmma_accumulator(struct layout_pool *p, const struct type *t, const struct wgmma_split *s,
				       int bytes);
/* The layout of A of type t in registers. */
const struct layout *wgmma_operand(struct layout_pool *p, const struct type *t, const struct wgmma_split *s, int bytes);
/* Can all threads turn operand i of this type where it lies across k in shared memory? */
bool wgmma_turns(const struct type *t, u32 i, int num_warps);
/* Writes it down in the attributes of the operation. A is fetched into registers for so many groups of steps of k, or
 * for each step if there are no more; 0: it is not fetched. */
void wgmma_set(struct op *dot, const struct wgmma *w, const struct wgmma_split *s, int groups);
/* How many groups (wgmma.commit_group) the dot's products are. Where A is fetched, the registers of a group are free
 * again when that has been waited for. */
int wgmma_groups(const struct op *dot);

#endif

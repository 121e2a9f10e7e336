/* Tensor-core instructions, and the choice of one for a dot. */
#ifndef TLC_GPU_LAYOUT_MMA_H
#define TLC_GPU_LAYOUT_MMA_H

#include "layout/layout.h"
#include "ir/pass.h"

/* Operands in registers: fp32 is read as tf32, without its last 13 bits; fp8 is widened to fp16. Hopper has no mma.sync
 * for fp8: ptxas emulates it by two of fp16, and ptxas 13.0 uses the lower half of a register for both if the register
 * is the same in all lanes. So the fragments are widened here: each half is the fragments of an m16n8k16, since the
 * order of k has no effect. */
enum mma_operands { AS_IT_IS, AS_TF32, TO_F16 };

/* A form of mma.sync (PTX ISA, "mma"). Fragment layouts depend only on m, the element width and k: see layout.h. */
struct mma {
	const char *name;            /* of the entry in the table of inline PTX */
	enum dtype a, b, acc;
	enum mma_operands operands;
	u8 m, n, k;
	enum mma_generation since;
};

/* The instruction for a dot of these types on this target; NULL: fused multiply-adds. */
const struct mma *mma_select(const struct target *d, enum dtype a, enum dtype b, enum dtype acc,
			     enum dot_precision precision);
const struct mma *mma_for_dot(const struct target *d, const struct op *dot);
/* The m, n and k of the instruction, as in ATTR_INSTR. */
i64 mma_shape(const struct mma *m);
/* The instruction of a dot with layouts; NULL: multiply-adds. */
const struct mma *mma_of_dot(const struct op *dot);

/* The layout of operand i of mma.sync, of type t. A thread has `run` adjacent elements along k, or those of a 32-bit
 * register if these are more. The order of k has no effect on the result, if both operands have the same order. */
const struct layout *mma_operand(struct layout_pool *p, const struct type *t, int i, const int *warps,
				 const struct mma *m, int run);
/* The `run` of an operand with a layout; 0: any would give this layout. */
int mma_run(const struct type *t, int i);

/* A type of wgmma.mma_async (PTX ISA, "Asynchronous Warpgroup Level Matrix"): m is 64, k covers 256 bits. */
struct wgmma {
	enum dtype a, b, acc;
	const char *types;           /* of the instruction: accumulator, A, B */
	u8 k;
	bool any_major;              /* operands may be MN-major; otherwise only K-major */
};
/* The instruction for a dot of these types on this target; NULL: mma.sync or multiply-adds. */
const struct wgmma *wgmma_for_dot(const struct pass_state *s, const struct op *dot);
/* The instruction of a WARP_GROUP_DOT. If the operands are exchanged, its A is the dot's B. */
const struct wgmma *wgmma_of_dot(const struct op *dot);

/* How the warpgroups of a block divide a result. The rows of the instruction are rows of the result or, with exchanged
 * operands, its columns, since (A·B)ᵀ = Bᵀ·Aᵀ. */
struct wgmma_split {
	/* dimension of the result along the instruction's rows; also the number of the operand that is its A */
	int row_dim;
	int warps[2];                /* along the instruction's rows, in multiples of four, and columns */
	int n;                       /* columns of one instruction */
};
/* False if a result of type t is too small for wgmma. */
bool wgmma_split(int num_warps, const struct type *t, int row_dim, struct wgmma_split *out);
/* The layout of a result. `bytes`: element size of an A that is MN-major in shared memory and loaded into registers, or
 * 0. Any element of such an A may be any row of the instruction, so the rows are numbered for loads by vectors and
 * without bank conflicts. */
const struct layout *wgmma_accumulator(struct layout_pool *p, const struct type *t, const struct wgmma_split *s,
				       int bytes);
/* The layout of A of type t in registers. */
const struct layout *wgmma_operand(struct layout_pool *p, const struct type *t, const struct wgmma_split *s, int bytes);
/* True if all threads together can transpose operand i of this type in place, where it is MN-major in shared memory. */
bool wgmma_turns(const struct type *t, u32 i, int num_warps);
/* Sets the attributes of the dot. `groups`: the groups of steps of k in which A is loaded into registers, at most one
 * for each step; 0: A is not loaded into registers. */
void wgmma_set(struct op *dot, const struct wgmma *w, const struct wgmma_split *s, int groups);
/* The number of groups (wgmma.commit_group) in which the dot is issued. If A is loaded into registers, the registers of
 * a group are free again after the wait for that group. */
int wgmma_groups(const struct op *dot);

#endif

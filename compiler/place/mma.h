/* The tensor-core instructions, and which one a dot gets. */
#ifndef TLC_PLACE_MMA_H
#define TLC_PLACE_MMA_H

#include "opt/pass.h"

/* One form of mma.sync (PTX ISA, "mma"). Fragment layouts follow from m, the element width and k alone; see layout.h. */
struct mma {
	const char *name;            /* of the entry in the table of inline PTX */
	enum dtype a, b, acc;
	bool tf32;                   /* fp32 operands rounded to tf32 */
	u8 m, n, k;
	int min_sm;
};

/* The instruction for a dot of these types on this architecture; NULL: it is done with fused multiply-adds. */
const struct mma *mma_select(int sm, enum dtype a, enum dtype b, enum dtype acc, enum dot_precision precision);
const struct mma *mma_of_dot(int sm, const struct op *dot);

/* One type of wgmma.mma_async (PTX ISA, "Asynchronous Warpgroup Level Matrix"): m is 64, k covers 256 bits. */
struct wgmma {
	enum dtype a, b, acc;
	const char *types;           /* of the instruction: accumulator, A, B */
	u8 k;
	bool any_major;              /* operands may be contiguous along M and N; else along K alone */
};
/* The instruction by which warpgroups of a block of num_warps do this dot; NULL: mma.sync or multiply-adds. */
const struct wgmma *wgmma_of_dot(const struct pass_state *s, const struct op *dot);
/* How the warpgroups split the result: warps[] along the last two dimensions, multiples of four along the rows. */
void wgmma_warps(int num_warps, const struct type *t, int *warps);
/* Columns of one instruction. */
int wgmma_n(const struct type *t, const int *warps);

#endif

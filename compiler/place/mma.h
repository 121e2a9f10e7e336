/* The tensor-core instructions, and which one a dot gets. */
#ifndef TLC_PLACE_MMA_H
#define TLC_PLACE_MMA_H

#include "ir/ir.h"

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

#endif

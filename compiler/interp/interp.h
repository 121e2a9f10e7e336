/* The reference interpreter of the tile IR: the meaning of every operation.
 *
 * Plain and exact rather than fast, but it works on whole tiles at a time and runs the programs of a grid in parallel,
 * so that a kernel of ordinary size takes seconds. Every memory access is checked. What a program must not rely on is
 * filled with poison: elements of a load that are masked off without `other` become NaN, or a large odd integer. */
#ifndef TLC_INTERP_INTERP_H
#define TLC_INTERP_INTERP_H

#include "ir/ir.h"

/* Memory that kernels may touch. */
struct mem_range {
	const char *name; /* for messages; may be NULL */
	char *base;
	size_t size;
};

struct interp_launch {
	const struct kernel *kernel;
	const u64 *args;                /* the bits of each kernel parameter: an address, an integer, a float */
	u32 grid[3];
	const struct mem_range *ranges; /* sorted by base, not overlapping */
	u32 nranges;
	bool open;                      /* addresses outside all ranges are the caller's own memory: not checked */
	int threads;                    /* 0: as many as the machine has */
};

/* Runs every program of the grid. False when one failed (an access outside every range, a misaligned or null pointer,
 * a device_assert, an integer division by zero): *error then has the text, with source line, program, element. */
bool interp_run(const struct interp_launch *l, struct strbuf *error);

#endif

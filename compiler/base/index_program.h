/* What a launch's sizes make of a kernel's indices: the intervals of their values as the source means them, without a
 * width. opt/wide_indices.h makes such programs, kernel images hold them, and launches run them. */
#ifndef TLC_BASE_INDEX_PROGRAM_H
#define TLC_BASE_INDEX_PROGRAM_H

#include "base/base.h"

enum index_op {
	/* leaves, which come first */
	INDEX_PARAM,    /* a: its number */
	INDEX_PROGRAM,  /* a: the axis */
	INDEX_PROGRAMS, /* likewise */
	/* of earlier nodes a and b */
	INDEX_CONSTANT, /* from `min` to `max` */
	INDEX_ANY,      /* not known */
	INDEX_ADD,
	INDEX_SUB,
	INDEX_MUL,
	INDEX_DIV, /* toward zero */
	INDEX_REM, /* with the sign of a */
	INDEX_MIN,
	INDEX_MAX,
	INDEX_EITHER,
	INDEX_LOOP, /* the index of a loop from a to b */
	INDEX_OPS
};

struct index_node {
	i64 min, max;
	i32 a, b;
	i32 op;
	i32 is_32_bits; /* the kernel computes it so: a sum, difference or product */
	u32 line, column;
};

enum { MAX_INDEX_NODES = 512 };

struct index_interval {
	i64 min, max;
	bool known;
};

/* Fills in at[nleaves] … at[n - 1] from the leaves. The first node of 32 bits that may not fit them; -1: all do. */
i32 index_program_run(const struct index_node *nodes, u32 nleaves, u32 n, struct index_interval *at);

#endif

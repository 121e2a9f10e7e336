/* Intervals of integers of one type, read as signed numbers; of i1: 0 and 1. */
#ifndef TLC_ANALYSIS_INTERVAL_H
#define TLC_ANALYSIS_INTERVAL_H

#include "ir/ir.h"

struct interval {
	i128 lo, hi;
};

struct interval interval_of_type(const struct type *t);
bool interval_within(struct interval i, struct interval outer);
struct interval interval_joined(struct interval a, struct interval b);
/* The interval of an operation's results for operands in x and y; `all`: the interval of the type. Unsigned operations
 * equal signed ones where no operand is negative. If the interval leaves the type, the operation may wrap. */
struct interval interval_binary(enum opcode code, struct interval x, struct interval y, struct interval all);
/* Of absolute values. */
struct interval interval_magnitude(struct interval x, struct interval all);

#endif

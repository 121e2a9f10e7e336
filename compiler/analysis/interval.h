/* Intervals of the integers of a type, read as signed numbers. i1 has the values 0 and 1. */
#ifndef TLC_ANALYSIS_INTERVAL_H
#define TLC_ANALYSIS_INTERVAL_H

#include "ir/ir.h"

struct interval {
	i128 lo, hi;
};

struct interval interval_of_type(const struct type *t);
bool interval_within(struct interval i, struct interval outer);
struct interval interval_joined(struct interval a, struct interval b);
/* The interval of the results of an operation for operands in x and y. `all` is the interval of the type. Unsigned
 * operations equal signed operations if no operand is negative. The operation may wrap if the interval exceeds the
 * type. */
struct interval interval_binary(enum opcode code, struct interval x, struct interval y, struct interval all);
/* The interval of absolute values. */
struct interval interval_magnitude(struct interval x, struct interval all);

#endif

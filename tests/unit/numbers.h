/* Floats near the ends of formats and of integer types, ties between neighbours, and special values, without their
 * signs. */
#ifndef TEST_NUMBERS_H
#define TEST_NUMBERS_H

#include <math.h>

static const double edge_numbers[] = {
	0.0,
	1,
	0.5,
	1.5,
	2.5,
	3,
	1e-3,
	100,
	448,
	449,
	464,
	480,
	57344,
	61440,
	65504,
	65519,
	65520,
	1e9,
	2147483647,
	2147483648.0,
	2147483649.0,
	4294967296.0,
	9.3e18,
	1e30,
	3.5e38,
	0x1p-6,
	0x1p-9,
	0x1p-10,
	0x1.8p-10,
	0x1p-14,
	0x1p-16,
	0x1p-24,
	0x1p-25,
	0x1p-126,
	0x1p-149,
	0x1p-150,
	0x1.fffffep127,
	INFINITY,
	NAN,
	65535.5,
	127.5,
	32768,
	9223372036854775807.0,
	18446744073709551615.0,
	0x1.8p-25,
	1e300,
	254.9,
	255.1,
};
enum { EDGE_NUMBERS = sizeof edge_numbers / sizeof *edge_numbers };
static inline double edge_number(unsigned k) /* k < 2 * EDGE_NUMBERS: with both signs */
{
	double x = edge_numbers[k / 2 % EDGE_NUMBERS];
	return k % 2 ? -x : x;
}

#endif

#include <stdlib.h>

#include "runtime/device/device.h"

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double median(double *x, int n)
{
	qsort(x, (size_t)n, sizeof *x, compare);
	return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

#include "runtime/tune/ranking.h"

#include <string.h>

#include "runtime/device/device.h"

/* The k-th smallest and the k-th largest value enclose the median unless fewer than k of the n values are on one side
 * of it. The probability of that is a sum of the binomial distribution. */
bool median_interval(const double *sorted, u32 n, double *lo, double *hi)
{
	const double outside = 0.002;
	double term = 2, sum = 0; /* 2 (n over k) / 2^n, and the sum of these terms up to k */
	u32 k = 0;
	for (u32 i = 0; i < n; i++)
		term /= 2;
	while (2 * k < n && sum + term <= outside) {
		sum += term;
		term *= (double)(n - k) / (k + 1);
		k++;
	}
	if (!k)
		return false;
	*lo = sorted[k - 1];
	*hi = sorted[n - k];
	return true;
}

/* Compares the rounds that c was timed in with the same rounds of the best contender. */
static void compare(struct contender *c, const struct contender *best)
{
	double ratios[MOST_ROUNDS], lo = 0, hi = 0;
	for (u32 i = 0; i < c->rounds; i++)
		ratios[i] = best->times[i] > 0 ? c->times[i] / best->times[i] : 1;
	double ratio = median(ratios, (int)c->rounds); /* reorders `ratios` */
	if (c->rounds < best->rounds)
		c->time = best->time * ratio;
	bool known = median_interval(ratios, c->rounds, &lo, &hi);
	c->equal = !known || lo <= 1;
	c->apart = known ? MAX(hi - 1, 1 - lo) : -1;
}

static double median_time(const struct contender *c)
{
	double sorted[MOST_ROUNDS];
	memcpy(sorted, c->times, c->rounds * sizeof *sorted);
	return median(sorted, (int)c->rounds);
}

i32 rank_times(struct contender *c, u32 n, u32 rounds, measure_fn *measure, void *arg)
{
	u32 best = 0, left = n;
	for (u32 i = 0; i < n; i++)
		c[i].equal = true;
	for (u32 round = 0; round < MIN(rounds, (u32)MOST_ROUNDS) && (left > 1 || !round); round++) {
		for (u32 k = 0; k < n; k++) {
			u32 i = round % 2 ? n - 1 - k : k;
			if (!c[i].equal)
				continue;
			if (!measure(arg, i, &c[i].times[round]))
				return -1;
			c[i].rounds = round + 1;
			c[i].time = median_time(&c[i]);
		}
		for (u32 i = 0; i < n; i++)
			if (c[i].equal && (!c[best].equal || c[i].time < c[best].time))
				best = i;
		left = 0;
		for (u32 i = 0; i < n; i++) {
			if (c[i].equal && i != best)
				compare(&c[i], &c[best]);
			left += c[i].equal;
		}
	}
	for (u32 i = 0; i < n; i++) /* contenders that left early were compared with another best */
		if (i != best)
			compare(&c[i], &c[best]);
	return (i32)best;
}

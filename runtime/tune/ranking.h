/* Ranking of contenders by times that vary. */
#ifndef TL_TUNE_RANKING_H
#define TL_TUNE_RANKING_H

#include "support/base.h"

enum { MOST_ROUNDS = 64 };

struct contender {
	double times[MOST_ROUNDS];
	u32 rounds;
	/* the median; with fewer rounds than the best contender: the ratio in these rounds times the best median */
	double time;
	/* the rounds do not show that it is slower than the best contender; true for the best contender */
	bool equal;
	double apart; /* if equal: its time and the best time differ by at most this fraction; < 0: unknown */
};

/* Measures a contender once; false ends the ranking. */
typedef bool measure_fn(void *arg, u32 who, double *time);

/* Times all contenders once in each round, in alternating order, so that a change of the clock frequency affects all of
 * them. The best contender has the smallest median. Another contender is slower if the median of its times over the
 * best one's, round by round, is above 1 with a confidence of 99.8 %; it is then not timed again. The confidence is
 * high because the test is repeated after each round. The ranking ends when all others are slower, or after `rounds`
 * rounds. Returns the index of the best contender; -1: `measure` has returned false. */
i32 rank_times(struct contender *c, u32 n, u32 rounds, measure_fn *measure, void *arg);

/* For n sorted numbers: an interval that contains the median with a confidence of 99.8 %, by order statistics, without
 * an assumption about the distribution. False: n is too small. */
bool median_interval(const double *sorted, u32 n, double *lo, double *hi);

#endif

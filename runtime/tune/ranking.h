/* Which of several things is the fastest, from times that vary. */
#ifndef TL_TUNE_RANKING_H
#define TL_TUNE_RANKING_H

#include "support/base.h"

enum { MOST_ROUNDS = 64 };

struct contender {
	double times[MOST_ROUNDS];
	u32 rounds;
	double time;  /* the median; of fewer rounds than the best one's: the ratio in these rounds times its median */
	bool equal;   /* to the best one, which is equal to itself: the rounds do not tell them apart */
	double apart; /* then: its time and the best one's lie within this part of each other; < 0: not known */
};

/* The time of one of them in one round; false ends the ranking. */
typedef bool measure_fn(void *arg, u32 who, double *time);

/* Times all contenders once in each round, so that a clock that changes meets them all, in both orders by turns. The
 * best one has the least median. Another one is slower if the median of its times over the best one's, round by round,
 * is above 1 with a confidence of 99.8 %, so high because it is asked after each round; it is not timed again then.
 * Ends when all others are slower, or after `rounds` of them. Returns the index of the best one; -1: `measure` has
 * returned false. */
i32 rank_times(struct contender *c, u32 n, u32 rounds, measure_fn *measure, void *arg);

/* Of n sorted numbers: an interval around the median with a confidence of 99.8 %, by their order alone, without an
 * assumption about how they vary. False: n is too small. */
bool median_interval(const double *sorted, u32 n, double *lo, double *hi);

#endif

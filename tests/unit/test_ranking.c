/* The rule by which the tuner decides, on timers whose times are made up: the same in each run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "random_bits.h"
#include "runtime/device/device.h"
#include "runtime/tune/ranking.h"

enum { MOST = 8 };

/* Contender i takes cost[i], more by a part of up to `noise`, and now and then by `spike`; and all of them by a drift
 * of the clock that goes on with each round. */
struct timer {
	u32 n, calls, fails_at;
	double cost[MOST], noise, spike, drift;
};

static double uniform(void)
{
	return (double)(random_bits() >> 11) / 9007199254740992.0;
}

static bool tick(void *arg, u32 who, double *time)
{
	struct timer *t = arg;
	double x = t->cost[who] * (1 + t->noise * uniform()) * (1 + t->drift * (t->calls / t->n));
	if (uniform() < 0.1)
		x *= 1 + t->spike;
	*time = x;
	return ++t->calls != t->fails_at;
}

static i32 run(struct timer *t, struct contender *c)
{
	memset(c, 0, MOST * sizeof *c);
	return rank_times(c, t->n, MOST_ROUNDS, tick, t);
}

/* The distribution by counting: in how many of 2^n outcomes of n coins does the interval miss the median? */
static void interval(void **state)
{
	(void)state;
	for (u32 n = 1; n <= 16; n++) {
		double x[16], lo, hi;
		for (u32 i = 0; i < n; i++)
			x[i] = i;
		bool known = median_interval(x, n, &lo, &hi);
		u32 narrower = 0, missed = 0;
		for (u32 coins = 0; coins < 1u << n; coins++) {
			u32 below = (u32)__builtin_popcount(coins); /* numbers below the median */
			u32 k = known ? (u32)lo + 1 : 0;
			missed += below < k || n - below < k;
			narrower += below < k + 1 || n - below < k + 1;
		}
		assert_true(missed <= 0.002 * (1u << n));
		assert_true(narrower > 0.002 * (1u << n) || 2 * ((known ? (u32)lo + 1 : 0) + 1) > n);
		assert_int_equal(known, n >= 10);
		if (known)
			assert_true(lo + hi == n - 1 && lo <= hi);
	}
}

/* Times that differ by 4 % under noise of 20 % and spikes, on a clock that gets slower: the right one wins, and the
 * other one is told to be slower. The median of three rounds, without more, is wrong in a part of the runs. */
static void different(void **state)
{
	(void)state;
	u32 right = 0, sure = 0, three = 0, runs = 400;
	for (u32 i = 0; i < runs; i++) {
		struct timer t = {2, 0, 0, {1.04, 1}, 0.1, 1, 0.002};
		struct contender c[MOST];
		right += run(&t, c) == 1;
		sure += !c[0].equal && c[1].equal;
		double x[2][3];
		for (u32 k = 0; k < 6; k++)
			x[k % 2][k / 2] = c[k % 2].times[k / 2];
		three += median(x[1], 3) < median(x[0], 3);
	}
	assert_true(right >= runs * 98 / 100);
	assert_true(sure >= runs * 80 / 100);
	assert_true(three < runs * 95 / 100);
}

/* Equal ones are said to be equal, within a part that gets small. */
static void equal(void **state)
{
	(void)state;
	u32 told = 0, runs = 400;
	for (u32 i = 0; i < runs; i++) {
		struct timer t = {2, 0, 0, {1, 1}, 0.02, 1, 0};
		struct contender c[MOST];
		i32 best = run(&t, c);
		const struct contender *other = &c[1 - best];
		told += other->equal;
		assert_true(other->time >= c[best].time * 0.98);
		if (other->equal)
			assert_true(other->apart >= 0 && other->apart < 0.02);
	}
	assert_true(told >= runs * 95 / 100);
}

/* Those that are far behind are not timed again. */
static void dropped(void **state)
{
	(void)state;
	struct timer t = {5, 0, 0, {2, 1, 3, 1.001, 4}, 0.05, 0, 0};
	struct contender c[MOST];
	i32 best = run(&t, c);
	assert_true(best == 1 || best == 3);
	assert_true(!c[0].equal && !c[2].equal && !c[4].equal);
	assert_true(t.calls <= 5 * 10 + 2 * (MOST_ROUNDS - 10));
	t = (struct timer){2, 0, 0, {2, 1}, 0.05, 0, 0};
	assert_int_equal(run(&t, c), 1);
	assert_int_equal(t.calls, 2 * 10); /* as few as the confidence needs */
}

/* Too few rounds say nothing, and a failure ends them. */
static void limits(void **state)
{
	(void)state;
	struct timer t = {2, 0, 0, {2, 1}, 0.05, 0, 0};
	struct contender c[MOST] = {{.time = 0}};
	assert_int_equal(rank_times(c, 2, 9, tick, &t), 1);
	assert_true(c[0].equal && c[0].apart < 0);
	t = (struct timer){2, 0, 4, {2, 1}, 0.05, 0, 0};
	assert_int_equal(run(&t, c), -1);
	assert_int_equal(t.calls, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interval), cmocka_unit_test(different), cmocka_unit_test(equal),
		cmocka_unit_test(dropped),  cmocka_unit_test(limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "support/program_threads.h"

#include <sched.h>
#include <time.h>

enum { LAST_ROUNDS = 4, LAST_MS = 1000 };

static u64 now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000 + (u64)t.tv_nsec / 1000000;
}

/* Starts a new event: every waiting thread must be counted again. */
static void note_event(struct program_threads *g)
{
	u64 w = atomic_load(&g->waiting);
	while (!atomic_compare_exchange_weak(&g->waiting, &w, ((w >> 32) + 1) << 32))
		;
}

static void end_thread(struct program_threads *g)
{
	atomic_fetch_sub(&g->alive, 1);
	note_event(g);
}

static void help(void *gang)
{
	struct program_threads *g = gang;
	g->work(g->arg);
	end_thread(g);
}

/* Starts a thread. False if `most` threads run, or the system refuses another one. */
static bool start(struct program_threads *g, u32 most)
{
	u32 alive = atomic_load(&g->alive);
	do
		if (alive >= most || atomic_load(&g->full))
			return false;
	while (!atomic_compare_exchange_weak(&g->alive, &alive, alive + 1));
	if (thread_team_start(&g->crew, help, g))
		return true;
	atomic_store(&g->full, true);
	end_thread(g);
	return false;
}

bool program_threads_next(struct program_threads *g, u64 *program)
{
	*program = atomic_fetch_add(&g->next, 1);
	if (*program >= g->total)
		return false;
	atomic_store(&g->rounds, 0);
	note_event(g);
	if (*program + 1 < g->total)
		start(g, g->threads);
	return true;
}

u64 program_threads_left(const struct program_threads *g)
{
	return g->total - MIN(atomic_load(&g->next), g->total);
}

/* Called by the thread that makes the number of waiting threads equal to the number of all threads: doubles the number
 * of threads, up to `most` and the programs left. False if all have waited for LAST_ROUNDS rounds and LAST_MS without a
 * new thread. */
static bool all_wait(struct program_threads *g)
{
	u64 left = program_threads_left(g);
	u32 started = 0, others = (u32)MIN(left, atomic_load(&g->alive));
	while (started < others && start(g, g->most))
		started++;
	if (!left || started)
		return true;
	note_event(g);
	if (!atomic_fetch_add(&g->rounds, 1))
		atomic_store(&g->since, now_ms());
	return atomic_load(&g->rounds) < LAST_ROUNDS || now_ms() - atomic_load(&g->since) < LAST_MS;
}

bool program_threads_wait(struct program_threads *g, struct program_threads_waiter *w)
{
	u64 seen = atomic_load(&g->waiting);
	bool counts = !w->counted || w->event != (u32)(seen >> 32), good = true;
	if (counts && atomic_compare_exchange_strong(&g->waiting, &seen, seen + 1)) {
		*w = (struct program_threads_waiter){(u32)(seen >> 32), true};
		if ((u32)seen + 1 == atomic_load(&g->alive))
			good = all_wait(g);
	}
	sched_yield();
	return good;
}

void program_threads_run(struct program_threads *g)
{
	atomic_store(&g->alive, 1);
	help(g);
	thread_team_join(&g->crew);
}

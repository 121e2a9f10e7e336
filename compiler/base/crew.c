#include "base/crew.h"

#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

struct member {
	struct member *next;
	pthread_t thread;
	void (*run)(void *);
	void *arg;
};

static void *run_member(void *member)
{
	struct member *m = member;
	m->run(m->arg);
	return NULL;
}

bool crew_start(struct crew *c, void (*run)(void *), void *arg)
{
	struct member *m = malloc(sizeof *m);
	if (!m)
		return false;
	*m = (struct member){.run = run, .arg = arg};
	pthread_mutex_lock(&c->lock); /* whoever joins it sees the thread */
	bool ok = !pthread_create(&m->thread, NULL, run_member, m);
	if (ok) {
		m->next = c->members;
		c->members = m;
	} else {
		free(m);
	}
	pthread_mutex_unlock(&c->lock);
	return ok;
}

void crew_join(struct crew *c)
{
	for (struct member *m;; free(m)) {
		pthread_mutex_lock(&c->lock);
		m = c->members;
		c->members = m ? m->next : NULL;
		pthread_mutex_unlock(&c->lock);
		if (!m)
			return;
		pthread_join(m->thread, NULL);
	}
}

u32 crew_most(void)
{
#ifdef _OPENMP
	return (u32)omp_get_max_threads();
#else
	return 1;
#endif
}

#if defined(_OPENMP) && !defined(__SANITIZE_THREAD__)
/* OpenMP keeps its threads from one region to the next. */
void crew_run(u32 threads, void (*begin)(void *arg, u32 threads), void (*work)(void *arg), void *arg)
{
#pragma omp parallel num_threads(threads)
	{
#pragma omp single
		begin(arg, (u32)omp_get_num_threads());
		work(arg);
	}
}
#else
/* The thread sanitizer does not see how OpenMP's threads wait for each other. */
void crew_run(u32 threads, void (*begin)(void *arg, u32 threads), void (*work)(void *arg), void *arg)
{
	struct crew c = CREW_INIT;
	begin(arg, threads);
	for (u32 i = 1; i < threads; i++)
		if (!crew_start(&c, work, arg))
			abort();
	work(arg);
	crew_join(&c);
}
#endif

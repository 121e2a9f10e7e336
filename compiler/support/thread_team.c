#include "support/thread_team.h"

#include <sched.h>
#include <stdlib.h>

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

bool thread_team_start(struct thread_team *c, void (*run)(void *), void *arg)
{
	struct member *m = malloc(sizeof *m);
	if (!m)
		return false;
	*m = (struct member){.run = run, .arg = arg};
	pthread_mutex_lock(&c->lock); /* thread_team_join then sees the thread */
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

void thread_team_join(struct thread_team *c)
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

/* The rules of OpenMP. */
u32 thread_team_most(void)
{
	cpu_set_t set;
	const char *text = getenv("OMP_NUM_THREADS");
	int asked = text ? atoi(text) : 0;
	if (asked > 0)
		return (u32)asked;
	return sched_getaffinity(0, sizeof set, &set) ? 1 : (u32)MAX(CPU_COUNT(&set), 1);
}

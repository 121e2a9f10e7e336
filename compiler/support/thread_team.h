/* A thread team that grows while it runs: a running thread may wait for the results of work that has not begun. */
#ifndef TLC_SUPPORT_THREAD_TEAM_H
#define TLC_SUPPORT_THREAD_TEAM_H

#include <pthread.h>

#include "support/base.h"

struct thread_team {
	pthread_mutex_t lock;
	struct member *members;
};
#define THREAD_TEAM_INIT {.lock = PTHREAD_MUTEX_INITIALIZER}

/* Starts a thread of the team. False if the system refuses. */
bool thread_team_start(struct thread_team *c, void (*run)(void *), void *arg);
/* Waits for all threads of the team, including threads that are started meanwhile. */
void thread_team_join(struct thread_team *c);

/* Number of threads for a launch: $OMP_NUM_THREADS, or the number of CPUs that this thread may use. */
u32 thread_team_most(void);
#endif

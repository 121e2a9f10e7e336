/* Threads that are started while others run: a running thread may wait for results of work that has not begun. */
#ifndef TLC_SUPPORT_THREAD_TEAM_H
#define TLC_SUPPORT_THREAD_TEAM_H

#include <pthread.h>

#include "support/base.h"

struct thread_team {
	pthread_mutex_t lock;
	struct member *members;
};
#define THREAD_TEAM_INIT {.lock = PTHREAD_MUTEX_INITIALIZER}

/* False when the machine has no room for another thread. */
bool thread_team_start(struct thread_team *c, void (*run)(void *), void *arg);
/* Waits for all threads of the crew, including those started meanwhile. */
void thread_team_join(struct thread_team *c);

/* The threads for a launch: $OMP_NUM_THREADS, or as many as there are processors that this thread may use. */
u32 thread_team_most(void);
#endif

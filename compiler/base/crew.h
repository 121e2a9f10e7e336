/* Threads that are started while others run, because what these wait for is done by work that nobody has begun. */
#ifndef TLC_BASE_CREW_H
#define TLC_BASE_CREW_H

#include <pthread.h>

#include "base/base.h"

struct crew {
	pthread_mutex_t lock;
	struct member *members;
};
#define CREW_INIT {.lock = PTHREAD_MUTEX_INITIALIZER}

/* False when the machine has no room for another thread. */
bool crew_start(struct crew *c, void (*run)(void *), void *arg);
/* Waits for all of them, and for those that they start. */
void crew_join(struct crew *c);

#endif

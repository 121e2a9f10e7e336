#include "support/forked.h"

#include <pthread.h>

/* State of the process, changed by the handlers of fork(). */
static _Atomic u32 generation;
static pthread_rwlock_t sections = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static _Thread_local u32 depth; /* nesting depth of this thread's sections */

static void before_fork(void)
{
	if (!depth)
		pthread_rwlock_wrlock(&sections);
}

static void in_parent(void)
{
	if (!depth)
		pthread_rwlock_unlock(&sections);
}

/* Resets the lock: it identifies its owner by a thread id, which the child's thread does not have. */
static void in_child(void)
{
	static const pthread_rwlock_t unlocked = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
	if (!depth)
		sections = unlocked;
	atomic_fetch_add(&generation, 1);
}

static void install(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

u32 fork_generation(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, install);
	return atomic_load_explicit(&generation, memory_order_relaxed);
}

bool fork_enter(fork_calls *calls)
{
	u64 was = atomic_load(calls), now = (u64)fork_generation() << 32, is;
	do {
		bool before = (was ^ now) >> 32;
		if (before && (u32)was)
			return false;
		is = (before ? now : was) + 1;
	} while (!atomic_compare_exchange_weak(calls, &was, is));
	return true;
}

void fork_leave(fork_calls *calls)
{
	atomic_fetch_sub(calls, 1);
}

static void leave_section(void *unused)
{
	(void)unused;
	if (!--depth)
		pthread_rwlock_unlock(&sections);
}

void fork_section_begin(struct fork_section *s)
{
	fork_generation();
	if (!depth)
		pthread_rwlock_rdlock(&sections);
	depth++;
	cleanup_push(&s->cleanup, leave_section, NULL);
}

void fork_section_end(struct fork_section *s)
{
	cleanup_run(&s->cleanup);
}

/* The threads of a launch whose programs may wait for others.
 *
 * A thread runs its program to the end, so a program that waits for another one may wait for one that no thread has
 * begun. Where all threads run programs that wait, a further thread is started, up to a limit. */
#ifndef TLC_SUPPORT_PROGRAM_THREADS_H
#define TLC_SUPPORT_PROGRAM_THREADS_H

#include <stdatomic.h>

#include "support/thread_team.h"

struct program_threads {
	u64 total;                /* programs, from 0 on: begun in order */
	u32 threads;              /* that run at least as long as there are programs, the caller's among them */
	u32 most;                 /* with those that are started since all others wait */
	void (*work)(void *arg);  /* what a thread does: calls program_threads_next until there is no program */
	void *arg;
	struct thread_team crew;
	/* the rest: of program_threads.c */
	_Atomic u64 next;   /* the first program that no thread has begun */
	_Atomic u32 alive;  /* threads */
	_Atomic bool full;  /* the system has no room for another one */
	/* events, which are programs that begin and threads that end, in the upper half; in the lower half the threads
	 * that have waited since the last event */
	_Atomic u64 waiting;
	_Atomic u32 rounds; /* in which all threads waited, and no other one could be started */
	_Atomic u64 since;  /* the first of these, in ms */
};

/* What a thread must keep from one call of program_threads_wait to the next; zeroed at first. */
struct program_threads_waiter {
	u32 event;
	bool counted;
};

/* Runs all programs. The fields up to `crew`, which is THREAD_TEAM_INIT, are given, and the others 0. */
void program_threads_run(struct program_threads *g);
/* The next program for this thread. */
bool program_threads_next(struct program_threads *g, u64 *program);
/* Called every so often by a program that waits. False: it waits in vain, since other programs cannot begin. */
bool program_threads_wait(struct program_threads *g, struct program_threads_waiter *w);
u64 program_threads_left(const struct program_threads *g); /* programs that have not begun */
/* What to say then; of these programs, and of the threads that are alive. */
#define GANG_VAIN                                                                                                      \
	"the program waits for others, of which %llu have not begun: %u run at once here, and a GPU has its limit too"

#endif

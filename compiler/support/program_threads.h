/* The threads of a launch of programs that may wait for each other.
 *
 * A thread runs a program to its end, so a waiting program may wait for a program that no thread has begun. If all
 * threads run waiting programs, further threads are started, up to a limit. */
#ifndef TLC_SUPPORT_PROGRAM_THREADS_H
#define TLC_SUPPORT_PROGRAM_THREADS_H

#include <stdatomic.h>

#include "support/thread_team.h"

struct program_threads {
	u64 total;                /* number of programs; they begin in order, from 0 */
	u32 threads;              /* number of threads while programs are left, including the calling thread */
	u32 most;                 /* limit, including threads that are started because all others wait */
	void (*work)(void *arg);  /* body of a thread: calls program_threads_next until no program is left */
	void *arg;
	struct thread_team crew;
	/* the remaining fields are private to program_threads.c */
	_Atomic u64 next;   /* the first program that no thread has begun */
	_Atomic u32 alive;  /* number of running threads */
	_Atomic bool full;  /* the system refused to start another thread */
	/* Upper half: number of events. An event is a program that begins or a thread that ends. Lower half: number of
	 * threads that have waited since the last event. */
	_Atomic u64 waiting;
	_Atomic u32 rounds; /* rounds in which all threads waited and no further thread could be started */
	_Atomic u64 since;  /* time of the first such round, in ms */
};

/* State of a thread between calls of program_threads_wait. Initially zero. */
struct program_threads_waiter {
	u32 event;
	bool counted;
};

/* Runs all programs. The caller sets the fields up to `crew`, which is THREAD_TEAM_INIT; the others are 0. */
void program_threads_run(struct program_threads *g);
/* Sets *program to the next program for this thread. False after the last program. */
bool program_threads_next(struct program_threads *g, u64 *program);
/* Called repeatedly by a waiting program. False if the wait is in vain, because no other program can begin. */
bool program_threads_wait(struct program_threads *g, struct program_threads_waiter *w);
u64 program_threads_left(const struct program_threads *g); /* number of programs that have not begun */
/* Message for a wait in vain. Arguments: programs that have not begun, running threads. */
#define GANG_VAIN                                                                                                      \
	"the program waits for other programs, but %llu programs cannot begin: only %u run at once here, and a GPU "   \
	"has such a limit too"

#endif

/* The threads of the cpu device. They stay from one launch to the next: they look for work for some microseconds, then
 * sleep. */
#ifndef TL_DEVICE_CPU_POOL_H
#define TL_DEVICE_CPU_POOL_H

#include "support/program_threads.h"

struct pool;

/* One launch: programs 0 to total - 1, run in any order, neighbours one after the other in the same thread. */
struct pool_job {
	u64 total;
	u32 threads;          /* at most, the caller's among them */
	size_t scratch_bytes; /* of each thread, aligned to 64 */
	/* not NULL: programs may wait, in program_threads_wait. It gets the threads that run them, which are not the
	 * pool's */
	struct program_threads **gang;
	/* nanoseconds of a program as the last launch found them, in units of 1/16; 0: not known. Kept with what is
	 * launched: a grid that takes less than others need to wake up is run by the caller alone. */
	_Atomic u32 *cost;
	void (*run)(void *arg, u64 from, u64 to, char *scratch);
	void *arg;
};

struct pool *pool_open(void); /* NULL: out of memory */
void pool_close(struct pool *p);
/* Runs all of it; may be called from several threads at once. False: out of memory, and nothing was run. */
bool pool_run(struct pool *p, const struct pool_job *j);

#endif

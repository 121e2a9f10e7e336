/* The threads of the cpu device. They persist between launches: they spin for some microseconds for a new launch, then
 * sleep. */
#ifndef TL_DEVICE_CPU_POOL_H
#define TL_DEVICE_CPU_POOL_H

#include "support/program_threads.h"

struct pool;

/* A launch of programs 0 to total - 1. They run in any order; neighbouring programs run in order in one thread. */
struct pool_job {
	u64 total;
	u32 threads;          /* at most, including the caller's thread */
	size_t scratch_bytes; /* of each thread, aligned to 64 */
	/* Not NULL: programs may wait, in program_threads_wait. Receives the threads that run the programs, which are
	 * separate from the pool's. */
	struct program_threads **gang;
	/* Nanoseconds per program in the last launch, in units of 1/16; 0: unknown. It is kept with the kernel. If the
	 * grid takes less time than to wake a thread, the caller's thread runs all of it. */
	_Atomic u32 *cost;
	void (*run)(void *arg, u64 from, u64 to, char *scratch);
	void *arg;
};

struct pool *pool_open(void); /* NULL: out of memory */
void pool_close(struct pool *p);
/* Runs all programs. Several threads may call it at once. False: out of memory, and no program ran. */
bool pool_run(struct pool *p, const struct pool_job *j);

#endif

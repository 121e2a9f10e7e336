#include "base/crew.h"

#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

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

/* Several processes that each compute a part of a step's sequences: with MPI, where the program is built with it. */
#include "program.h"

#ifdef WITH_MPI
#include <mpi.h>

#include <stdlib.h>
#include <string.h>

/* Sums of gradients that are under way, by the order in which they have begun. */
enum { MOST_SUMS = 1024, PIECE = 1 << 22 }; /* elements of one */
static MPI_Request sums[MOST_SUMS];
static int nsums;
static float *staged; /* the gradients on the host, where those of the device are not */

void team_begin(struct team *t)
{
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &t->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &t->size);
}

void team_end(struct team *t)
{
	(void)t;
	free(staged);
	MPI_Finalize();
}

void team_add(const struct team *t, double *values, int n)
{
	if (t->size > 1)
		MPI_Allreduce(MPI_IN_PLACE, values, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Waits for all sums; on a device of its own memory they go back there. */
static void finish(struct gpt *g)
{
	MPI_Waitall(nsums, sums, MPI_STATUSES_IGNORE);
	nsums = 0;
	if (staged)
		must(tl_buffer_write(g->gradients, 0, staged, g->size * sizeof *staged));
}

void team_reduce(void *gpt, size_t first, size_t len)
{
	struct gpt *g = gpt;
	if (!len) {
		finish(g);
		return;
	}
	float *gradients = tl_buffer_ptr(g->gradients);
	if (!strcmp(g->device.kind, "cuda")) {
		if (!staged && !(staged = malloc(g->size * sizeof *staged)))
			die("out of memory");
		must(tl_buffer_read(g->gradients, first * sizeof *staged, staged + first, len * sizeof *staged));
		gradients = staged;
	}
	for (size_t done = 0, n; done < len; done += n) {
		n = len - done < PIECE ? len - done : PIECE;
		if (nsums == MOST_SUMS) {
			MPI_Waitall(nsums, sums, MPI_STATUSES_IGNORE);
			nsums = 0;
		}
		MPI_Iallreduce(MPI_IN_PLACE, gradients + first + done, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
			       &sums[nsums++]);
	}
	int complete; /* lets those under way go on */
	MPI_Testall(nsums, sums, &complete, MPI_STATUSES_IGNORE);
	if (complete)
		nsums = 0;
}

#else

void team_begin(struct team *t)
{
	*t = (struct team){0, 1};
}

void team_end(struct team *t)
{
	(void)t;
}

void team_add(const struct team *t, double *values, int n)
{
	(void)t, (void)values, (void)n;
}

void team_reduce(void *gpt, size_t first, size_t len)
{
	(void)gpt, (void)first, (void)len;
}

#endif

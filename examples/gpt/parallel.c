/* Training in several processes, each with a part of a step's sequences: with MPI, if the program is built with it.
 * NCCL sums the gradients if each process has a GPU, else MPI sums them on the host. */
#include "program.h"

#ifdef WITH_MPI
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pending sums of gradients, in the order in which they were started. */
enum { MOST_SUMS = 1024, PIECE = 1 << 22 }; /* elements of a sum */
static MPI_Request sums[MOST_SUMS];
static int nsums;
static float *staged; /* host copy of the gradients, if the device has separate memory */
static bool by_nccl;

void team_begin(struct team *t)
{
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &t->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &t->size);
	MPI_Comm here;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, t->rank, MPI_INFO_NULL, &here);
	MPI_Comm_rank(here, &t->local);
	MPI_Comm_size(here, &t->beside);
	MPI_Comm_free(&here);
}

static int count_gpus(void)
{
	int n = 0, gpus = 0;
	tl_device_info info;
	must(tl_device_count(&n));
	for (int i = 0; i < n; i++)
		gpus += !tl_device_at(i, &info) && !strcmp(info.kind, "cuda");
	return gpus;
}

const char *team_device(const struct team *t, const char *name)
{
	static char own[32];
	int gpus = t->beside > 1 && (!name || !strcmp(name, "cuda")) ? count_gpus() : 0;
	if (!gpus)
		return name;
	snprintf(own, sizeof own, "cuda:%d", t->local % gpus);
	return own;
}

void team_join(const struct team *t, struct gpt *g)
{
	char id[NCCL_ID];
	int can = t->size > 1 && !strcmp(g->device.kind, "cuda") && t->beside <= count_gpus() && nccl_is_here();
	MPI_Allreduce(MPI_IN_PLACE, &can, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	by_nccl = can;
	if (!by_nccl)
		return;
	if (!t->rank)
		nccl_begin(id);
	MPI_Bcast(id, NCCL_ID, MPI_BYTE, 0, MPI_COMM_WORLD);
	nccl_join(g, id, t->rank, t->size);
}

void team_end(struct team *t)
{
	(void)t;
	free(staged);
	if (by_nccl)
		nccl_end();
	MPI_Finalize();
}

void team_add(const struct team *t, double *values, int n)
{
	if (t->size > 1)
		MPI_Allreduce(MPI_IN_PLACE, values, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Waits for all sums, and copies them back to a device with separate memory. */
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
	if (by_nccl && len)
		nccl_add(g, first, len);
	else if (by_nccl)
		nccl_finish();
	else if (!len)
		finish(g);
	if (by_nccl || !len)
		return;
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
	int complete; /* lets pending sums progress */
	MPI_Testall(nsums, sums, &complete, MPI_STATUSES_IGNORE);
	if (complete)
		nsums = 0;
}

#else

void team_begin(struct team *t)
{
	*t = (struct team){0, 1, 0, 1};
}

const char *team_device(const struct team *t, const char *name)
{
	(void)t;
	return name;
}

void team_join(const struct team *t, struct gpt *g)
{
	(void)t, (void)g;
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

/* Sums over the GPUs of several processes by NCCL, if the library is installed. They run on a separate stream, in
 * parallel with the launches that compute other gradients. */
#include "program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* As declared in nccl.h of NCCL 2. */
typedef struct {
	char bytes[NCCL_ID];
} nccl_id;
enum { NCCL_FLOAT = 7, NCCL_SUM = 0 };

static struct {
	int (*get_id)(nccl_id *id);
	int (*init)(void **comm, int size, nccl_id id, int rank);
	int (*all_reduce)(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream);
	int (*destroy)(void *comm);
	const char *(*error)(int result);
} nccl;

static void *comm, *stream;
static tl_event *computed, *summed;

static void succeed(const char *call, int result)
{
	if (result)
		die("%s: %s", call, nccl.error(result));
}

bool nccl_is_here(void)
{
	void *library = dlopen("libnccl.so.2", RTLD_NOW);
	if (!library)
		return false;
	*(void **)&nccl.get_id = dlsym(library, "ncclGetUniqueId");
	*(void **)&nccl.init = dlsym(library, "ncclCommInitRank");
	*(void **)&nccl.all_reduce = dlsym(library, "ncclAllReduce");
	*(void **)&nccl.destroy = dlsym(library, "ncclCommDestroy");
	*(void **)&nccl.error = dlsym(library, "ncclGetErrorString");
	return nccl.get_id && nccl.init && nccl.all_reduce && nccl.destroy && nccl.error;
}

void nccl_begin(void *id)
{
	succeed("ncclGetUniqueId", nccl.get_id(id));
}

void nccl_join(struct gpt *g, const void *id, int rank, int size)
{
	void *own = tl_context_stream(g->ctx);
	nccl_id all;
	memcpy(&all, id, sizeof all);
	stream = cuda_stream(own);
	cuda_enter(own);
	succeed("ncclCommInitRank", nccl.init(&comm, size, all, rank));
	cuda_leave();
	must(tl_event_create(g->ctx, &computed));
	must(tl_event_create(g->ctx, &summed));
}

void nccl_add(struct gpt *g, size_t first, size_t len)
{
	float *at = (float *)tl_buffer_ptr(g->gradients) + first;
	must(tl_event_record(computed, NULL));
	must(tl_event_wait(computed, stream));
	cuda_enter(stream);
	succeed("ncclAllReduce", nccl.all_reduce(at, at, len, NCCL_FLOAT, NCCL_SUM, comm, stream));
	cuda_leave();
}

void nccl_finish(void)
{
	must(tl_event_record(summed, stream));
	must(tl_event_wait(summed, NULL));
}

void nccl_end(void)
{
	cuda_enter(stream);
	nccl.destroy(comm);
	cuda_leave();
}

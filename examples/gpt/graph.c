/* CUDA graphs, by the driver's own functions: libtl launches into the stream that is being captured. */
#include "gpt.h"

#include <dlfcn.h>

/* Of the driver; CUstream, CUgraph, CUgraphExec and CUcontext are pointers, and errors other numbers than 0. */
static struct {
	int (*get_context)(void *stream, void **context);
	int (*push_context)(void *context);
	int (*pop_context)(void **context);
	int (*begin)(void *stream, int mode);
	int (*end)(void *stream, void **graph);
	int (*instantiate)(void **executable, void *graph, unsigned long long flags);
	int (*destroy)(void *graph);
	int (*launch)(void *executable, void *stream);
	int (*destroy_executable)(void *executable);
} cuda;

static const struct {
	void *function;
	const char *name;
} functions[] = {
	{&cuda.get_context, "cuStreamGetCtx"},
	{&cuda.push_context, "cuCtxPushCurrent_v2"},
	{&cuda.pop_context, "cuCtxPopCurrent_v2"},
	{&cuda.begin, "cuStreamBeginCapture_v2"},
	{&cuda.end, "cuStreamEndCapture"},
	{&cuda.instantiate, "cuGraphInstantiateWithFlags"},
	{&cuda.destroy, "cuGraphDestroy"},
	{&cuda.launch, "cuGraphLaunch"},
	{&cuda.destroy_executable, "cuGraphExecDestroy"},
};

static void succeed(const char *call, int result)
{
	if (result)
		die("%s: CUDA's error %d", call, result);
}

/* libtl leaves the thread's context as it was: the driver's functions need that of the stream. */
static void enter(void *stream)
{
	void *context;
	succeed("cuStreamGetCtx", cuda.get_context(stream, &context));
	succeed("cuCtxPushCurrent", cuda.push_context(context));
}

static void leave(void)
{
	void *context;
	succeed("cuCtxPopCurrent", cuda.pop_context(&context));
}

bool graph_begin(struct graph *g, void *stream)
{
	if (!stream || g->executable)
		return false;
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	for (size_t i = 0; i < COUNT(functions); i++) {
		*(void **)functions[i].function = library ? dlsym(library, functions[i].name) : NULL;
		if (!*(void **)functions[i].function)
			return false;
	}
	enter(stream);
	succeed("cuStreamBeginCapture", cuda.begin(stream, 2)); /* CU_STREAM_CAPTURE_MODE_RELAXED */
	leave();
	return true;
}

void graph_end(struct graph *g, void *stream)
{
	void *graph;
	enter(stream);
	succeed("cuStreamEndCapture", cuda.end(stream, &graph));
	succeed("cuGraphInstantiateWithFlags", cuda.instantiate(&g->executable, graph, 0));
	cuda.destroy(graph);
	leave();
}

bool graph_launch(const struct graph *g, void *stream)
{
	if (!g->executable)
		return false;
	enter(stream);
	succeed("cuGraphLaunch", cuda.launch(g->executable, stream));
	leave();
	return true;
}

void graph_destroy(struct graph *g)
{
	if (g->executable)
		cuda.destroy_executable(g->executable);
	g->executable = NULL;
}

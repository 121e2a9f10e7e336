/* CUDA graphs and a second stream, through the driver API: libtl launches into the stream that is being captured. */
#include "gpt.h"

#include <dlfcn.h>

/* Functions of the driver. CUstream, CUgraph, CUgraphExec and CUcontext are pointers, and errors are numbers other than
 * 0. */
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
	int (*create_stream)(void **stream, unsigned flags);
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
	{&cuda.create_stream, "cuStreamCreate"},
};

/* Loads the driver's functions. False: there is no driver. */
static bool load_driver(void)
{
	static bool loaded;
	void *library = loaded ? NULL : dlopen("libcuda.so.1", RTLD_NOW);
	for (size_t i = 0; i < COUNT(functions) && library; i++) {
		*(void **)functions[i].function = dlsym(library, functions[i].name);
		loaded = *(void **)functions[i].function != NULL;
		if (!loaded)
			break;
	}
	return loaded;
}

static void succeed(const char *call, int result)
{
	if (result)
		die("%s: CUDA's error %d", call, result);
}

void cuda_enter(void *stream)
{
	void *context;
	succeed("cuStreamGetCtx", cuda.get_context(stream, &context));
	succeed("cuCtxPushCurrent", cuda.push_context(context));
}

void cuda_leave(void)
{
	void *context;
	succeed("cuCtxPopCurrent", cuda.pop_context(&context));
}

void *cuda_stream(void *beside)
{
	void *stream;
	if (!load_driver())
		return NULL;
	cuda_enter(beside);
	succeed("cuStreamCreate", cuda.create_stream(&stream, 1)); /* CU_STREAM_NON_BLOCKING */
	cuda_leave();
	return stream;
}

bool graph_begin(struct graph *g, void *stream)
{
	if (!stream || g->executable)
		return false;
	if (!load_driver())
		return false;
	cuda_enter(stream);
	succeed("cuStreamBeginCapture", cuda.begin(stream, 2)); /* CU_STREAM_CAPTURE_MODE_RELAXED */
	cuda_leave();
	return true;
}

void graph_end(struct graph *g, void *stream)
{
	void *graph;
	cuda_enter(stream);
	succeed("cuStreamEndCapture", cuda.end(stream, &graph));
	succeed("cuGraphInstantiateWithFlags", cuda.instantiate(&g->executable, graph, 0));
	cuda.destroy(graph);
	cuda_leave();
}

bool graph_launch(const struct graph *g, void *stream)
{
	if (!g->executable)
		return false;
	cuda_enter(stream);
	succeed("cuGraphLaunch", cuda.launch(g->executable, stream));
	cuda_leave();
	return true;
}

void graph_destroy(struct graph *g)
{
	if (g->executable)
		cuda.destroy_executable(g->executable);
	g->executable = NULL;
}

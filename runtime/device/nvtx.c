#include "runtime/device/nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "support/base.h"

/* A tool is attached as in the headers of NVTX 3 (nvtxDetail/nvtxTypes.h): the InitializeInjectionNvtx2 function of the
 * tool's library receives a function that finds tables by number. The table CALLBACKS has the addresses of function
 * pointers, by module and number. The tool sets these pointers to its functions. */
typedef void (*function)(void);
typedef const void *export_fn(u32 table);

enum { CALLBACKS = 1, VERSION = 3 };                       /* numbers of tables */
enum { CORE = 1, NMODULES = 7, MOST = 16 };                /* numbers of modules; the most functions of a module */
enum { RANGE_PUSH = 9, RANGE_POP = 11, NVTX_VERSION = 3 }; /* function numbers in CORE; the version */

static const unsigned numbers[NMODULES] = {0, 16, 9, 15, 7, 16, 7};

/* One for the process, because the tool keeps the addresses. */
static struct {
	pthread_once_t once;
	function called[NMODULES][MOST];
	function *tables[NMODULES][MOST + 1];
	struct nvtx tool;
	bool attached;
} state = {.once = PTHREAD_ONCE_INIT};

static int table_of_module(int module, function ***table, unsigned *n)
{
	if (module < CORE || module >= NMODULES)
		return 0;
	if (table)
		*table = state.tables[module];
	if (n)
		*n = numbers[module];
	return 1;
}

static void version_of_tool(u32 version)
{
	(void)version;
}

static const void *export(u32 table)
{
	static const struct {
		size_t size;
		int (*table_of_module)(int module, function ***table, unsigned *n);
	} callbacks = {sizeof callbacks, table_of_module};
	static const struct {
		size_t size;
		u32 version, reserved;
		void (*version_of_tool)(u32 version);
	} version = {sizeof version, NVTX_VERSION, 0, version_of_tool};
	return table == CALLBACKS ? (const void *)&callbacks : table == VERSION ? &version : NULL;
}

static int no_push(const char *name)
{
	(void)name;
	return -1;
}

static int no_pop(void)
{
	return -1;
}

static void attach(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *lib = path && *path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*initialize)(export_fn *) = NULL;
	for (u32 m = CORE; m < NMODULES; m++)
		for (u32 i = 1; i < numbers[m]; i++)
			state.tables[m][i] = &state.called[m][i];
	if (lib)
		*(void **)&initialize = dlsym(lib, "InitializeInjectionNvtx2");
	state.attached = initialize && initialize(export);
	if (lib && !state.attached)
		dlclose(lib);
	function push = state.called[CORE][RANGE_PUSH], pop = state.called[CORE][RANGE_POP];
	state.tool = (struct nvtx){push ? (int (*)(const char *))push : no_push, pop ? (int (*)(void))pop : no_pop};
}

const struct nvtx *nvtx_tool(void)
{
	pthread_once(&state.once, attach);
	return state.attached ? &state.tool : NULL;
}

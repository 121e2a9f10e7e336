/* Ranges on the timeline of a profiler: NVIDIA's NVTX 3. Its tools (Nsight Systems, Nsight Compute with --nvtx) set
 * NVTX_INJECTION64_PATH to a library for the programs that they start. The library is opened at run time. Without a
 * tool, a range costs a comparison. */
#ifndef TL_DEVICE_NVTX_H
#define TL_DEVICE_NVTX_H

struct nvtx {
	int (*push)(const char *name); /* begins a range of this thread, nested in the open ranges */
	int (*pop)(void);              /* ends the innermost range */
};
/* The tool's functions, for the lifetime of the process; NULL: there is no tool. */
const struct nvtx *nvtx_tool(void);

#endif

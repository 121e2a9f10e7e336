/* Ranges on the timeline of a profiler: NVIDIA's NVTX 3, whose tools (Nsight Systems, Nsight Compute with --nvtx) name
 * a library in NVTX_INJECTION64_PATH for the programs that they start. It is opened at run time; without one, ranges
 * cost a comparison. */
#ifndef TL_DEVICE_NVTX_H
#define TL_DEVICE_NVTX_H

struct nvtx {
	int (*push)(const char *name); /* a range of this thread begins, inside of those that have begun */
	int (*pop)(void);              /* the last one ends */
};
/* What the tool has asked to be called, for as long as the process lives; NULL: there is no tool. */
const struct nvtx *nvtx_tool(void);

#endif

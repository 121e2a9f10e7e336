/* The table of passes, and which of them run for a target. */
#ifndef TLC_DRIVER_PASSES_H
#define TLC_DRIVER_PASSES_H

#include "ir/pass.h"

/* Sets of passes, in pass.groups. */
enum {
	PASSES_GPU = 1,   /* over tile IR, for GPUs; --emit ttir prints their result */
	PASSES_CPU = 2,   /* the same, for CPUs */
	PASSES_DEBUG = 4, /* the same, for targets with `lines`, whose code is for debuggers */
	PASSES_TTGIR = 8, /* for GPUs, after PASSES_GPU; --emit ttgir prints their result */
	PASSES_ALL = 15,
};

extern const struct pass passes[];
extern const u32 npasses;

/* The set of passes over tile IR for the target. */
u32 tile_passes(const struct target *target);
/* The set of passes that follow them; 0: none. */
u32 gpu_passes(const struct target *target);
/* The index in `passes` of a pass of these sets; -1 if there is none of this name. */
int pass_index(u32 groups, const char *name);
/* The stage of the IR after pass i. */
enum gpu_stage pass_stage(u32 i);

#endif

/* The memory that configurations of a kernel write while they are tried: saved, restored and compared. */
#ifndef TL_TUNE_TUNE_MEMORY_H
#define TL_TUNE_TUNE_MEMORY_H

#include "runtime/device/device.h"

struct kept;
struct saved_memory {
	struct device *dev;
	struct arena *arena;
	VEC(struct kept) at;
	bool lost; /* the device cannot be used any more, not even to free memory */
};

/* What one argument points to, which the kernel reads and writes as said. `name` is the parameter's. */
struct touched {
	const char *name;
	const tl_arg *arg;
	bool reads, writes;
	bool reset, restore; /* fill with 0, or restore, in front of each run, whatever the kernel does */
};
/* An error where that cannot be kept, since its size is not known. What is not written is not kept. */
tl_status memory_add(struct saved_memory *m, const struct touched *t);
/* Copies all of it, once it is all added; again, where the copies have been lost. */
tl_status memory_save(struct saved_memory *m);
/* In front of a run: what was read or is to be restored is as it was, what is to be reset is 0. */
tl_status memory_renew(struct saved_memory *m);
/* Behind the last run: all of it is as it was. */
tl_status memory_restore(struct saved_memory *m);
/* Keeps what is there now, for memory_compare. */
tl_status memory_keep_result(struct saved_memory *m);
/* Is what is there now within `tolerance` of the result kept? *difference says where it is not; or NULL. */
tl_status memory_compare(struct saved_memory *m, double tolerance, const char **difference);
/* Gives back the copies. */
void memory_free(struct saved_memory *m);

#endif

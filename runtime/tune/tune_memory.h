/* The memory that a kernel writes while its configurations run: saved, restored and compared. */
#ifndef TL_TUNE_TUNE_MEMORY_H
#define TL_TUNE_TUNE_MEMORY_H

#include "runtime/device/device.h"

/* A range of memory; where ranges of arguments overlap, the range that spans them. */
struct kept {
	const char *name; /* of a parameter */
	char *at;
	size_t size;
	enum dtype dtype;
	bool saves;          /* the tuner saves it: the kernel writes it, or tl_tuning names it */
	bool renews, resets; /* before each run: restore it, fill it with 0 */
	void *saved;         /* in device memory, or in host memory; NULL: not saved */
	bool on_device;
	char *result; /* of the first configuration */
};

struct saved_memory {
	struct device *dev;
	struct arena *arena;
	VEC(struct kept) at;
	bool reads; /* memory that the kernel only reads is added too */
	bool lost;  /* the device is unusable, even for freeing memory */
};

/* The memory of an argument, and the kernel's accesses to it. `name` is the parameter's. */
struct touched {
	const char *name;
	const tl_arg *arg;
	bool reads, writes;
	bool reset, restore; /* fill with 0, or restore, before each run, whatever the kernel does */
};
/* Adds the memory, unless the kernel only reads it. An error if its size is unknown. */
tl_status memory_add(struct saved_memory *m, const struct touched *t);
/* Copies all memory that the kernel writes. */
tl_status memory_save(struct saved_memory *m);
/* Before a run: restores memory that the kernel reads or that is marked `restore`, and fills memory marked `reset` with
 * 0. */
tl_status memory_renew(struct saved_memory *m);
/* After the last run: restores all memory. */
tl_status memory_restore(struct saved_memory *m);
/* Keeps the current contents for memory_compare. */
tl_status memory_keep_result(struct saved_memory *m);
/* Compares the contents with the kept result. *difference describes the first element beyond `tolerance`; NULL:
 * none. */
tl_status memory_compare(struct saved_memory *m, double tolerance, const char **difference);
/* Frees the copies. */
void memory_free(struct saved_memory *m);

#endif

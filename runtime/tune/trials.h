/* Runs of configurations on a device, in the process of the tuner or in its helper process. */
#ifndef TL_TUNE_TRIALS_H
#define TL_TUNE_TRIALS_H

#include "runtime/device/grid.h"
#include "runtime/device/loaded.h"
#include "runtime/tune/tune_memory.h"

/* The device of the runs, and the memory that they write. */
struct trials {
	struct device *dev;
	struct saved_memory memory;
	bool has_result; /* the result of the first configuration is kept */
	bool ended;      /* the last launch has ended, or an error came before it */
};

/* A run of a configuration. */
struct trial {
	const struct image *image;
	void *code; /* the image, loaded on the device */
	tl_config config;
	u64 bits[MAX_KERNEL_PARAMS]; /* of the image's slots */
	bool renews;                 /* the memory is renewed before */
	/* A timed run: `repeats` launches after `warmup` launches. A run with 0 repeats is a single launch, which fails
	 * after limit_ms on devices with the operation `try`. */
	int warmup, repeats, limit_ms;
	/* of a single launch: compares the memory with the result of the first configuration */
	bool compares;
	double tolerance;
};

/* Runs it. *cost: the median time in milliseconds; of a single launch the estimated cost, on devices where time is
 * meaningless. */
tl_status trial_run(struct trials *r, const struct trial *t, double *cost);
/* True if the device has become unusable. Call it only after an error, which stays this thread's error. */
bool trials_broken(const struct trials *r);

#endif

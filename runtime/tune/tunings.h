/* Tunings on disk: the best configuration of a kernel on a device, for launches with a key.
 *
 * Each kernel and source has a file in the folder of the disk cache, KERNEL-HASH.tuning. Each line is a JSON object.
 * Processes append whole lines, and files of several machines can be joined with cat. The last matching line is valid,
 * and malformed lines are ignored:
 *
 *   {"kernel":"matmul","source":"6f…","device":"NVIDIA H100","version":"0.1-…","configurations":"1a…",
 *    "key":{"M":1024},"values":{"BLOCK":128,"num_warps":4},"cost":0.012,"unit":"ms","tried":8}
 *
 * A configuration that destroyed the device's context has "failed":"why" instead of the cost. */
#ifndef TL_TUNE_TUNINGS_H
#define TL_TUNE_TUNINGS_H

#include "support/arena.h"

/* The key of a tuning. */
struct tuning_key {
	const char *kernel, *device, *version;
	u64 source, configurations; /* hashes */
	const char *key;            /* an object in JSON without white space */
};
/* A line. */
struct tuned {
	const char *values; /* an object in JSON without white space */
	const char *failed; /* reason of the failure; NULL: it is the best configuration */
	double cost;
	const char *unit;
	u32 tried;
};

/* Receives a line of the file `path`. */
typedef void tuned_fn(void *arg, const char *path, const struct tuning_key *key, const struct tuned *t);

/* Calls fn for each line with `key`, the oldest first; texts in `a`. */
void tunings_read(struct arena *a, const struct tuning_key *key, tuned_fn *fn, void *arg);
/* Appends a line. If the file cannot be written, nothing is stored. */
void tunings_write(const struct tuning_key *key, const struct tuned *t);

/* For tlc cache: calls fn for all tunings; removes all files, and returns their number. */
void tunings_each(tuned_fn *fn, void *arg);
u32 tunings_clear(void);

#endif

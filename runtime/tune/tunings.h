/* Tunings on disk: which configuration of a kernel was the best on a device, for the launches of one key.
 *
 * A file for each kernel and source, in the folder of the disk cache: KERNEL-HASH.tuning, of which each line is an
 * object in JSON. Processes append whole lines; files of several machines can be joined by cat. The last line that fits
 * counts, and what is no such line is ignored:
 *
 *   {"kernel":"matmul","source":"6f…","device":"NVIDIA H100","version":"0.1-…","configurations":"1a…",
 *    "key":{"M":1024},"values":{"BLOCK":128,"num_warps":4},"cost":0.012,"unit":"ms","tried":8}
 *
 * or, of a configuration that ended the device's context, with "failed":"why" in the place of the cost. */
#ifndef TL_TUNE_TUNINGS_H
#define TL_TUNE_TUNINGS_H

#include "support/arena.h"

/* What a tuning is about. */
struct tuning_key {
	const char *kernel, *device, *version;
	u64 source, configurations; /* hashes */
	const char *key;            /* an object in JSON without white space */
};
/* One line. */
struct tuned {
	const char *values; /* an object in JSON without white space */
	const char *failed; /* why it did; NULL: it is the best */
	double cost;
	const char *unit;
	u32 tried;
};

/* Calls fn for each line about `key`, the oldest first; texts in `a`. */
void tunings_read(struct arena *a, const struct tuning_key *key, void (*fn)(void *arg, const struct tuned *t),
		  void *arg);
/* Where it cannot be written, nothing is kept. */
void tunings_write(const struct tuning_key *key, const struct tuned *t);

/* For tlc cache: all of them; and how many files were removed. */
void tunings_each(void (*fn)(void *arg, const char *path, const struct tuning_key *key, const struct tuned *t),
		  void *arg);
u32 tunings_clear(void);

#endif
